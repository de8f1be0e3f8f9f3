"""The round trips of a worker, without I/O: what it sends and what that brought, on either wire.

A round is a generator. It yields what travels together: transitions, or plain commands as tuples of words; it is sent
the list of the answers, each a value or an EmqError; and it returns a Step. On wire 6 a round is one EMQ.NEXT. On wire
4 it is a pipeline of single scripts, and the wait is a pop of `wake`, which lanes fill, between looks at the places
where jobs come from. A look is a few plain reads, much cheaper than the scripts, so it can be taken often.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import inf
from typing import Any, Final

from emq_native import transitions as t
from emq_native.compositions import Next, Settling, Source, Step, Word, settled_word
from emq_native.dispatch import Words
from emq_native.errors import EmqError, Refused, refuses_job
from emq_native.executors import NATIVE, Executor
from emq_native.transitions import Transition
from emq_native.values import Job

__all__ = ["Round", "Rounds", "settle", "unrenewed"]

Batch = Sequence[Transition[Any] | Words]
Round = Generator[Batch, "list[Any]", Step]

SWEEP: Final = 100
"""Most due and most expired jobs that one round moves in passing."""

SHORTEST_PAUSE_S: Final = 0.005
LONGEST_PAUSE_S: Final = 0.05
"""Between two looks that find nothing. An idle server ends a pop as its own clock ticks, by `hz` 10 each 0.1 s."""

LONGEST_VAIN_S: Final = 0.5
"""Between two looks that find what cannot be taken, for example because the queue is paused."""

LONGEST_REST_S: Final = 1.0
"""Between two sweeps by scripts, whatever the looks find."""


@dataclass
class Rounds:
    """The rounds of one worker.

    lease, block: seconds; max_attempts: an expired job that has had so many runs is dead; sources: "flat", "lanes".
    """

    key: bytes
    lease: float
    block: float
    max_attempts: int
    sources: tuple[Source, ...] = ("flat", "lanes")
    _pause: float = field(default=SHORTEST_PAUSE_S, init=False)
    _vain: float = field(default=SHORTEST_PAUSE_S, init=False)
    _rested: float = field(default=0.0, init=False)

    def round(self, executor: Executor, count: int, settlings: Sequence[Settling], *, wait: bool) -> Round:
        """Settle, sweep, take at most `count` jobs; wait for one if asked to and if there is none.

        Every round begins with another source.
        """
        self.sources = (*self.sources[1:], self.sources[0])
        return (self._native if executor is NATIVE else self._scripted)(count, settlings, wait)

    def _native(self, count: int, settlings: Sequence[Settling], wait: bool) -> Round:
        block = self.block if wait else None
        (answer,) = yield [_next(self.lease, count, self.sources, block, self.max_attempts).settling(settlings)]
        if settlings and refuses_job(answer):
            # One that is refused refuses all. By themselves, the others go through.
            step = yield from settle(settlings)
            return Step(step.settled, [], answer.text)
        return _value(answer)  # type: ignore[no-any-return]

    def _scripted(self, count: int, settlings: Sequence[Settling], wait: bool) -> Round:
        rests = wait and not settlings and 0 < self._rested < LONGEST_REST_S
        if rests and not (yield from self._look()):
            return Step([], [])
        self._rested = 0.0
        sweep: list[Transition[Any]] = [t.Reap(SWEEP, max_attempts=self.max_attempts), t.Promote(SWEEP)]
        first, *others = self.sources
        settled, answers = yield from _settle(settlings, [*sweep, self._claim(first, count)])
        jobs: list[Job] = []
        fault = _take(answers, jobs)
        if first == "lanes" and 0 < len(jobs) < count:
            fault = (yield from self._more_of_lanes(count, jobs)) or fault
        for source in others:
            before = len(jobs)
            if before < count:
                fault = _take((yield [self._claim(source, count - before)]), jobs) or fault
            if source == "lanes" and before < len(jobs) < count:
                fault = (yield from self._more_of_lanes(count, jobs)) or fault
        if jobs:
            self._pause = self._vain = SHORTEST_PAUSE_S
        elif wait and not fault and not settled:
            yield from self._look()
        return Step(settled, jobs, fault)

    def _look(self) -> Generator[Batch, list[Any], bool]:
        """Wait for a lane to wake us, but not for long, and look. Returns whether there may be something to take."""
        pause, key = self._pause, self.key
        popped, *answers, clock = yield [
            (b"BLPOP", key + b":wake", b"%.3f" % pause),
            (b"ZRANGE", key + b":schedule", b"0", b"0", b"WITHSCORES"),
            (b"ZRANGE", key + b":active", b"0", b"0", b"WITHSCORES"),
            *([(b"ZRANGE", key + b":pending", b"0", b"0")] if "flat" in self.sources else []),
            *([(b"LRANGE", key + b":ring", b"0", b"0")] if "lanes" in self.sources else []),
            (b"TIME",),
        ]
        if _value(popped):
            self._rested = 0.0
            return True
        seconds, micros = _value(clock)
        now = int(seconds) * 1000 + int(micros) // 1000
        # What is refused is for the scripts to tell.
        schedule, active, *waiting = [True if isinstance(each, Refused) else _value(each) for each in answers]
        due = min(_first_score(schedule), _first_score(active))
        if due <= now or any(waiting):
            self._rested = 0.0
            self._pause = self._vain
            self._vain = min(self._vain * 2, LONGEST_VAIN_S)
            return True
        self._rested += pause
        self._pause = max(0.001, min(pause * 2, LONGEST_PAUSE_S, (due - now) / 1000))
        self._vain = SHORTEST_PAUSE_S
        return False

    def _claim(self, source: Source, count: int) -> Transition[Any]:
        return t.ClaimMany(self.lease, count) if source == "flat" else t.ClaimFair(self.lease)

    def _more_of_lanes(self, count: int, jobs: list[Job]) -> Generator[Batch, list[Any], str | None]:
        """Each claim serves one job of the lane whose turn it is; where one came, more may."""
        return _take((yield [t.ClaimFair(self.lease) for _ in range(count - len(jobs))]), jobs)


@lru_cache(maxsize=64)
def _next(lease: float, count: int, sources: tuple[Source, ...], block: float | None, max_attempts: int) -> Next:
    return Next(lease, count, sources=sources, block=block, promote=SWEEP, reap=SWEEP, max_attempts=max_attempts)


def settle(settlings: Sequence[Settling]) -> Round:
    """Settle and take nothing."""
    words, _ = yield from _settle(settlings, [])
    return Step(words, [])


def unrenewed(jobs: Sequence[Job], answers: Sequence[Any]) -> list[str]:
    """The ids of those jobs whose lease is lost, by the answers to an Extend of each.

    Raises what keeps the server from answering: it says nothing about a lease.
    """
    return [
        job.id for job, answer in zip(jobs, answers, strict=True) if refuses_job(answer) or _value(answer) is not True
    ]


def _settle(
    settlings: Sequence[Settling], further: Sequence[Transition[Any]]
) -> Generator[Batch, list[Any], tuple[list[Word], list[Any]]]:
    """Settle by single transitions, but all plain completions by one, and carry further ones in the same round trip.

    Returns the words of the settlings and the answers of the further ones.
    """
    plain = [each for each in settlings if isinstance(each, t.Complete) and each.result is None]
    if len(plain) < 2:
        answers = yield [*settlings, *further]
        return _words(settlings, answers[: len(settlings)]), answers[len(settlings) :]
    others = [each for each in settlings if not (isinstance(each, t.Complete) and each.result is None)]
    many = t.CompleteMany([each.job for each in plain if isinstance(each.job, Job)])
    answer, *answers = yield [many, *others, *further]
    # One that is refused refuses all. One by one, the others go through.
    completed = iter(_words(plain, (yield plain)) if refuses_job(answer) else _value(answer))
    rest = iter(_words(others, answers[: len(others)]))
    words = [next(completed if isinstance(each, t.Complete) and each.result is None else rest) for each in settlings]
    return words, answers[len(others) :]


def _words(settlings: Sequence[Settling], answers: Sequence[Any]) -> list[Word]:
    return [settled_word(settling, answer) for settling, answer in zip(settlings, answers, strict=True)]


def _first_score(reply: Any) -> float:
    """The score of the only member: a pair on RESP3, a flat list on RESP2. Without one infinity, refused 0."""
    if not isinstance(reply, list):
        return 0.0
    if not reply:
        return inf
    return float(reply[0][1] if isinstance(reply[0], list) else reply[1])


def _value(answer: Any) -> Any:
    if isinstance(answer, EmqError):
        raise answer
    return answer


def _take(answers: Sequence[Any], jobs: list[Job]) -> str | None:
    """Add the jobs among the answers of sweeps and claims to `jobs`. Returns a refusal.

    Raises what keeps the server from answering, unless there are jobs: those are ours, and the trouble will come again.
    """
    fault = None
    for answer in answers:
        if isinstance(answer, EmqError):
            if not jobs and not refuses_job(answer):
                raise answer
            fault = fault or str(answer)
        elif isinstance(answer, list):
            jobs += answer
        elif isinstance(answer, Job):
            jobs.append(answer)
    return fault
