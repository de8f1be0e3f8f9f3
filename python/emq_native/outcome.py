"""How a run of a handler ends, and how the job is settled for it.

A handler that returns completes its job. One that raises fails it: the job runs again after its backoff, or is dead
when it has had its runs. Three exceptions say something else on purpose: `Retry`, `Snooze` and `Reject`.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from inspect import isawaitable
from pathlib import Path
from types import TracebackType
from typing import Final, TypeGuard, TypeVar

from emq_native import transitions as t
from emq_native.arguments import MAX_PAYLOAD, Duration, instant, integer, milliseconds
from emq_native.backoff import Backoff, exponential
from emq_native.compositions import Settling
from emq_native.errors import InvalidArgument
from emq_native.values import Job

__all__ = ["Policy", "Reject", "Retry", "Snooze", "TimedOut", "result_of", "settling_of"]

T = TypeVar("T")

ERROR_BYTES: Final = 4096
"""Most bytes of an error that are kept in the row."""

FRAMES: Final = 12
"""Most frames of a traceback that are kept, the innermost ones."""

LONGEST_MS: Final = 2**52
"""Longest delay: the server keeps the moment that it ends at, which must be less than 2**53."""

_PACKAGE: Final = str(Path(__file__).parent)


class Signal(Exception):
    """What a handler raises to say how its job is to be settled."""


class Retry(Signal):
    """The run failed; let the job run again, or be dead when it has had its runs.

    after: seconds or timedelta, by default the backoff of the job; reason: text, kept as the error.
    """

    def __init__(self, after: Duration | None = None, reason: str = "the handler asked for another run") -> None:
        if after is not None:
            _bearable(after)
        super().__init__(after, reason)
        self.after = after
        self.reason = str(reason)


class Snooze(Signal):
    """Not now: let the job run later. It is no failure and uses up no run.

    until: seconds or timedelta from now, or an aware datetime.
    """

    def __init__(self, until: Duration | datetime) -> None:
        if isinstance(until, datetime):
            instant("until", until)
        else:
            _bearable(until)
        super().__init__(until)
        self.until = until


class Reject(Signal):
    """Never again: the job is dead, whatever runs it has left. reason: text, kept as the error."""

    def __init__(self, reason: str = "rejected by the handler") -> None:
        super().__init__(reason)
        self.reason = str(reason)


class TimedOut(BaseException):
    """The handler ran for longer than it may. No Exception, so that a handler that catches those still ends."""

    def __init__(self, seconds: float = 0.0) -> None:
        super().__init__(seconds)
        self.seconds = seconds

    def __str__(self) -> str:
        return f"the handler ran for longer than {self.seconds:g} s"


_BACKOFF: Final = exponential()


@dataclass(frozen=True, slots=True)
class Policy:
    """What a job is allowed. max_attempts: runs in all; backoff: from the number of a run to seconds; timeout: seconds
    that one run may take, None for as long as it likes.
    """

    max_attempts: int = 4
    backoff: Backoff = _BACKOFF
    timeout: float | None = None

    def __post_init__(self) -> None:
        integer("max_attempts", self.max_attempts)
        # The keeper reckons with it, whom a number of another kind would end.
        if self.timeout is not None and not (isinstance(self.timeout, (int, float)) and self.timeout > 0):
            raise InvalidArgument("timeout must be more than 0 seconds, as int or float")


Policies = Callable[[Job], Policy]
"""The policy of a job."""


def is_a(value: object, kind: type[T]) -> TypeGuard[T]:
    """Whether a value is one of a class by its own type, whatever class it says to be, or raises when it is asked."""
    return issubclass(type(value), kind)


def result_of(value: object) -> object:
    """What a handler returned, as it ends the run: bytes that fit as they are, an exception as if it was raised, of
    anything else nothing.

    Raises TypeError for what has to be awaited, and what the value raises when it is asked of which class it is.
    """
    if value is None or is_a(value, BaseException):
        return value
    if isawaitable(value):
        # Whoever completed the job now would lose it: its work was never begun.
        raise TypeError("the handler returned what has to be awaited: emq_native.aio.Worker runs coroutine functions")
    return value if isinstance(value, (bytes, bytearray, memoryview)) and len(value) <= MAX_PAYLOAD else None


def settling_of(job: Job, ended: object, policy: Policy) -> Settling:
    """How to settle a job whose handler ended with this result, or with this exception.

    Raises nothing: where the backoff or the exception is of no use, the run failed and the next one is a second later.
    """
    if ended is None:
        return t.Complete(job)
    try:
        return _settling_of(job, ended, policy)
    except BaseException as error:
        reason = error_text(BaseException.with_traceback(error, None)).decode()
        return _settling_of(job, Retry(1.0, f"the backoff failed: {reason}"), policy)


def _settling_of(job: Job, ended: object, policy: Policy) -> Settling:
    if not is_a(ended, BaseException):
        return t.Complete(job, result=ended)  # type: ignore[arg-type]
    if is_a(ended, Snooze):
        return t.Delay(job, ended.until)
    if is_a(ended, Reject):
        return t.Retry(job, max_attempts=1, error=_bounded(ended.reason))
    after = ended.after if is_a(ended, Retry) else None
    error = _bounded(ended.reason) if is_a(ended, Retry) else error_text(ended)
    return t.Retry(
        job,
        max_attempts=policy.max_attempts,
        delay=_bearable(policy.backoff(job.attempts) if after is None else after),
        error=error,
    )


def _bearable(delay: Duration) -> Duration:
    """The delay. Raises InvalidArgument for one that the server would refuse, and so leave the job to its lease."""
    if milliseconds("delay", delay) > LONGEST_MS:
        raise InvalidArgument(f"delay must be at most {LONGEST_MS} milliseconds, not {delay!r}")
    return delay


def without_our_frames(
    error: BaseException,
) -> tuple[type[BaseException], BaseException, TracebackType | None]:
    """The error for the log, with a traceback that begins where the handler does."""
    trace = _trace_of(error)
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_PACKAGE):
        trace = trace.tb_next
    # Our frames hold the error: with them it would hold itself.
    return type(error), BaseException.with_traceback(error, trace), trace


def error_text(error: BaseException) -> bytes:
    """The error on the first line, then where it came from, the innermost frames, without those of this package."""
    try:
        text = "".join(traceback.format_exception_only(error)).strip()
        module = type(error).__module__
        if module.startswith(f"{__package__}."):
            # Which of our modules it is from helps nobody.
            text = text.removeprefix(f"{module}.")
    except BaseException:
        text = type(error).__name__
    frames = [frame for frame in _frames(_trace_of(error)) if not frame.filename.startswith(_PACKAGE)]
    kept = frames[-FRAMES:]
    lines = ["Traceback (most recent call last):\n"]
    if len(frames) > len(kept):
        lines.append(f"  ... {len(frames) - len(kept)} frames left out\n")
    lines += traceback.format_list(kept)
    if not kept:
        return _bounded(text)
    first = _bounded(text, ERROR_BYTES // 2)
    rest = "".join(lines).encode("utf-8", "backslashreplace")
    room = ERROR_BYTES - len(first) - 2
    if len(rest) > room:
        rest = b"..." + rest[-(room - 3) :].decode("utf-8", "ignore").encode()
    return first + b"\n\n" + rest.rstrip()


def _trace_of(error: BaseException) -> TracebackType | None:
    """Not by the error's own attribute, which somebody may have overridden."""
    trace: TracebackType | None = vars(BaseException)["__traceback__"].__get__(error)
    return trace


def _frames(trace: TracebackType | None) -> traceback.StackSummary:
    return traceback.StackSummary.extract(traceback.walk_tb(trace))


def _bounded(text: str, size: int = ERROR_BYTES) -> bytes:
    whole = text.encode("utf-8", "backslashreplace")
    return whole if len(whole) <= size else whole[: size - 3].decode("utf-8", "ignore").encode() + b"..."
