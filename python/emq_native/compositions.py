"""The worker's composition: settle what is done, take what is next, wait when there is nothing, in one round trip.

`Next` is a transition of the native executor. On wire 4 the same step is made of single scripts, which is why a
settling is one of the transitions Complete, Retry and Delay: `Next` carries them in its list, a pipeline carries them
one by one, and `settled_word` says of either in the same words what became of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from emq_native.arguments import Duration, integer, milliseconds
from emq_native.errors import EmqError, InvalidArgument, JobGone, StaleToken, WrongState, refuses_job
from emq_native.transitions import Complete, Delay, Reply, Retry, Transition, _at_most_members, _job, _text
from emq_native.values import Job

__all__ = ["Next", "Settling", "Source", "Step", "Word", "settled_word"]

Settling = Complete | Retry | Delay
"""How a job may be settled in the list of `Next`."""

Source = Literal["flat", "lanes"]
"""Where jobs come from: those without a group, and the lanes of the groups."""

Word = Literal["completed", "scheduled", "dead", "delayed", "gone", "stale", "inactive", "refused"]
"""What became of a settling. The last four: nothing was changed, because the job does not exist any more, was claimed
anew, is not active, or because the server refused it for another reason, which `Next` never does for a single one."""


@dataclass(frozen=True, slots=True)
class Step:
    """What `Next` answers.

    settled: a word for each settling, in order; jobs: those taken, perhaps none; fault: None, or the error line of a
    part that was refused and left out, while the other parts were carried out.
    """

    settled: list[Word]
    jobs: list[Job]
    fault: str | None = None


@dataclass
class Next(Transition[Step], verb="emq.next"):
    """Settle jobs, reap and promote a bounded share, take the next jobs, and wait for them if there are none.

    lease: seconds or timedelta, 1 ms or more, of the jobs taken; count: at most so many, 1 to 10000; sources: where to
    take from, the first one first, one or both of "flat" and "lanes"; block: seconds or timedelta to wait, 1 ms to a
    day, None for not at all; promote, reap: at most so many due and expired jobs in passing, 0 to 10000;
    max_attempts: an expired job that has had so many runs is dead; settle: at most 10000 of Complete, Retry, Delay.

    A wait must end before the socket times out. It also ends, with no jobs, when something became due meanwhile.
    """

    lease: Duration
    count: int = 1
    sources: Sequence[Source] = field(default=("flat", "lanes"), kw_only=True)
    block: Duration | None = field(default=None, kw_only=True)
    promote: int | None = field(default=None, kw_only=True)
    reap: int | None = field(default=None, kw_only=True)
    max_attempts: int | None = field(default=None, kw_only=True)
    settle: Sequence[Settling] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        words = [b"%d" % milliseconds("lease", self.lease), b"COUNT", b"%d" % integer("count", self.count)]
        words += [b"FROM", *_sources(self.sources)]
        if self.block is not None:
            words += [b"BLOCK", b"%d" % milliseconds("block", self.block)]
        for option, name, number in ((b"PROMOTE", "promote", self.promote), (b"REAP", "reap", self.reap)):
            if number is not None:
                words += [option, b"%d" % integer(name, number)]
        if self.max_attempts is not None:
            words += [b"MAX", b"%d" % integer("max_attempts", self.max_attempts)]
        self._options = words
        self._words = [*words, *_list(self.settle)]

    def settling(self, settle: Sequence[Settling]) -> Next:
        """The same but for what it settles. A worker asks with few options, over and over."""
        other = object.__new__(Next)
        vars(other).update(vars(self), settle=settle)
        other._words = [*self._options, *_list(settle)]
        return other

    def decode(self, reply: Reply, queue: str) -> Step:
        settled, jobs, fault = reply
        return Step([word.decode() for word in settled], [_job(each, queue) for each in jobs], _text(fault))


def _sources(sources: Sequence[Source]) -> list[bytes]:
    words = {"flat": b"FLAT", "lanes": b"LANES"}
    if isinstance(sources, str) or not sources or len(set(sources)) != len(sources) or not words.keys() >= set(sources):
        raise InvalidArgument('sources must be one or both of "flat" and "lanes"')
    return [words[source] for source in sources]


def _list(settle: Sequence[Settling]) -> list[bytes]:
    if not settle:
        return []
    _at_most_members(len(settle))
    words = [b"SETTLE", b"%d" % len(settle)]
    for settling in settle:
        if isinstance(settling, Complete):
            job_id, token, *result = settling._words
            words += (b"RESULT", job_id, token, result[1]) if result else (b"COMPLETE", job_id, token)
        else:
            words += (b"RETRY" if isinstance(settling, Retry) else b"DELAY", *settling._words)
    return words


def settled_word(settling: Settling, answer: Any) -> Word:
    """The word for what a settling answered when it was carried out by itself. Raises an EmqError that is none."""
    if isinstance(answer, JobGone):
        return "gone"
    if isinstance(answer, StaleToken):
        return "stale"
    if isinstance(answer, WrongState) and answer.text == "EMQSTATE job is not active":
        return "inactive"
    if refuses_job(answer):
        return "refused"
    if isinstance(answer, EmqError):
        raise answer
    if isinstance(settling, Retry):
        return "dead" if answer == "dead" else "scheduled"
    if isinstance(settling, Delay):
        return "delayed"
    return "completed" if answer else "gone"
