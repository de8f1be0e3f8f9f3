"""What a worker was told, and what it tells the log: the same for the threaded and the asyncio worker."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from emq_native.arguments import integer, milliseconds, text_bytes
from emq_native.compositions import Source, Word, _sources
from emq_native.dispatch import Answer, Words
from emq_native.errors import (
    EmqError,
    InvalidArgument,
    ModuleMissing,
    PermissionDenied,
    ScriptMismatch,
    Unavailable,
    WireMismatch,
)
from emq_native.ledger import HeldJob, Verdict
from emq_native.outcome import Policy, Signal, is_a, without_our_frames
from emq_native.serializers import Serializer
from emq_native.transitions import Retry

__all__ = [
    "Prepare",
    "Terms",
    "ends_worker",
    "is_unsure",
    "logger",
    "simple",
    "tell_ended",
    "tell_paused",
    "tell_settled",
    "tell_stopping",
    "told",
    "whether_paused",
]

logger: Final = logging.getLogger("emq_native")

SOCKET_SPARE_S: Final = 10.0
"""A socket that waits in the server times out so much later than the wait."""

Prepare = Callable[[HeldJob], tuple[Policy, Callable[[], Any]]]
"""What a job is allowed, and the call that does its work."""


@dataclass(frozen=True)
class Terms:
    """The settings of a worker; see `emq_native.worker.Worker`."""

    prepare: Prepare
    concurrency: int
    lease: float
    batch: int
    max_attempts: int
    sources: Sequence[Source]
    block: float
    grace: float
    repeats: bool
    burst: bool
    serializer: Serializer

    def __post_init__(self) -> None:
        for name, number in (("concurrency", self.concurrency), ("batch", self.batch)):
            if not 1 <= number <= 10_000:
                raise InvalidArgument(f"{name} must be from 1 to 10000, not {number}")
        integer("max_attempts", self.max_attempts)
        milliseconds("lease", self.lease)
        milliseconds("block", self.block)
        if not self.grace >= 0:
            raise InvalidArgument("grace must be 0 seconds or more")
        _sources(self.sources)

    @property
    def socket_timeout(self) -> float:
        """Seconds, of a socket that waits in the server."""
        return self.block + SOCKET_SPARE_S

    def gives_up(self, error: EmqError, *, reached: bool) -> bool:
        """Whether an error ends the worker. reached: the node has served it before.

        A burst has an end: it waits neither for a node that is not there when it begins, nor for the module.
        """
        return ends_worker(error) or (self.burst and (not reached or isinstance(error, ModuleMissing)))


def simple(handler: Callable[[HeldJob], Any], policy: Policy) -> Prepare:
    """Every job is passed to one handler and allowed the same."""

    def prepare(job: HeldJob) -> tuple[Policy, Callable[[], Any]]:
        return policy, partial(handler, job)

    return prepare


def told(job: HeldJob) -> dict[str, object]:
    """What goes with a line of the log about a job."""
    task = {} if job._task is None else {"task": job._task}
    return {"job_id": job.id, "queue": job.queue, **task, "attempt": job.attempts}


def ends_worker(error: BaseException) -> bool:
    """Whether trying again is pointless: another executor owns the node, or this user may not. The rest passes."""
    if isinstance(error, (WireMismatch, ScriptMismatch, PermissionDenied, InvalidArgument)):
        return True
    return not isinstance(error, EmqError)


def is_unsure(error: EmqError) -> bool:
    """Whether what was sent may have been carried out."""
    return isinstance(error, Unavailable) and error.outcome_unknown


def whether_paused(key: bytes) -> Words:
    """The command that asks whether a queue is paused, for `tell_paused`; who fires repeats has the right to it."""
    return (b"HMGET", key + b":meta", b"paused")


def tell_paused(queue: str, answer: Answer) -> bool:
    """Log it when the queue is paused, and return whether it is. A user who may not ask is told nothing."""
    paused = isinstance(answer, list) and answer != [None]
    if paused:
        logger.warning(
            "queue %s is paused: nothing is taken before `emq-native queues resume %s`",
            queue,
            queue,
            extra={"queue": queue},
        )
    return paused


_LINES: Final[dict[Word, tuple[int, str]]] = {
    "completed": (logging.DEBUG, "job %s is completed"),
    "scheduled": (logging.INFO, "job %s runs again in %.1f s"),
    "dead": (logging.ERROR, "job %s is dead"),
    "delayed": (logging.INFO, "job %s is put off"),
    "refused": (logging.ERROR, "the server refused to settle job %s; it comes back when its lease ends"),
}


def tell_stopping(*, again: bool, grace: float) -> None:
    """Log what a signal has begun. again: it is the second one."""
    if again:
        logger.warning("pid %d leaves at once: what runs comes back when its lease ends", os.getpid())
    else:
        logger.info("pid %d stops: nothing more is taken, what runs has %g s to end", os.getpid(), grace)


def tell_ended(job: HeldJob, ended: object, *, counts: bool) -> None:
    """Log it when a run failed, or when it ended too late to count."""
    if not counts:
        logger.warning("job %s ended after it was given up", job.id, extra=told(job))
    elif is_a(ended, BaseException) and not is_a(ended, Signal):
        try:
            logger.warning("job %s failed: %r", job.id, ended, exc_info=without_our_frames(ended), extra=told(job))
        except Exception:
            # The error itself raises when it is to be shown.
            logger.warning("job %s failed: %s", job.id, type(ended).__name__, extra=told(job))


def tell_settled(verdicts: Sequence[Verdict], words: Sequence[Word]) -> None:
    """Log what became of settlings; without words, there was no answer."""
    if words.count("completed") == len(words) and not logger.isEnabledFor(logging.DEBUG):
        return
    for verdict, word in zip(verdicts, words, strict=True):
        job = verdict.job
        level, line = _LINES.get(word) or (
            (logging.INFO, "job %s was settled by an earlier sending, or its lease was lost")
            if verdict.unsure
            else (logging.WARNING, "job %s could not be settled: its lease was lost, or it was removed")
        )
        if logger.isEnabledFor(level):
            said: list[object] = [job.id]
            if isinstance(verdict.settling, Retry) and word in ("scheduled", "dead"):
                delay, why = _delay_and_reason(verdict.settling)
                if word == "scheduled":
                    said.append(delay)
                if why:
                    line += ": %s"
                    said.append(why)
            logger.log(level, line, *said, extra=told(job))


def _delay_and_reason(settling: Retry) -> tuple[float, str]:
    """Seconds until the next run, and the first line of the error that this one ended with."""
    error = text_bytes("error", settling.error)
    seconds = milliseconds("delay", settling.delay) / 1000
    return seconds, error.decode("utf-8", "backslashreplace").partition("\n")[0]
