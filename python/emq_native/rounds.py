"""The round trips of a worker, without I/O: what it sends and what that brought, on either wire.

A round is a generator. It yields what travels together: transitions, or plain commands as tuples of words; it is sent
the list of the answers, each a value or an EmqError; and it returns a Step. On wire 6 a round is one EMQ.NEXT. On wire
4 it is a pipeline of single scripts, and the wait is a pop of `wake`, which lanes fill, between looks at the flat jobs.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from emq_native import transitions as t
from emq_native.compositions import Next, Settling, Source, Step, Word, settled_word
from emq_native.dispatch import Words
from emq_native.errors import EmqError, FenceRefused, Refused
from emq_native.executors import NATIVE, Executor
from emq_native.transitions import Transition
from emq_native.values import Job

__all__ = ["Round", "Rounds", "settle"]

Batch = Sequence[Transition[Any] | Words]
Round = Generator[Batch, "list[Any]", Step]

SWEEP: Final = 100
"""Most due and most expired jobs that one round moves in passing."""

SHORTEST_PAUSE_S: Final = 0.01
LONGEST_PAUSE_S: Final = 0.5


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
    pause: float = field(default=SHORTEST_PAUSE_S, init=False)

    def round(self, executor: Executor, count: int, settlings: Sequence[Settling], *, wait: bool) -> Round:
        """Settle, sweep, take at most `count` jobs; wait for one if asked to and if there is none.

        Every round begins with another source.
        """
        self.sources = (*self.sources[1:], self.sources[0])
        return (self._native if executor is NATIVE else self._scripted)(count, settlings, wait)

    def _native(self, count: int, settlings: Sequence[Settling], wait: bool) -> Round:
        block = self.block if wait else None
        (answer,) = yield [_next(self.lease, count, self.sources, block, self.max_attempts).settling(settlings)]
        if settlings and isinstance(answer, Refused) and not isinstance(answer, FenceRefused):
            # One that is refused refuses all. By themselves, the others go through.
            step = yield from settle(settlings)
            return Step(step.settled, [], answer.text)
        return _value(answer)  # type: ignore[no-any-return]

    def _scripted(self, count: int, settlings: Sequence[Settling], wait: bool) -> Round:
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
            self.pause = SHORTEST_PAUSE_S
        elif wait and not fault and not settled:
            (answer,) = yield [(b"BLPOP", self.key + b":wake", b"%.3f" % self.pause)]
            self.pause = SHORTEST_PAUSE_S if _value(answer) else min(self.pause * 2, LONGEST_PAUSE_S)
        return Step(settled, jobs, fault)

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
    if isinstance(answer, Refused) and not isinstance(answer, FenceRefused):
        # One that is refused refuses all. One by one, the others go through.
        completed = iter(_words(plain, (yield plain)))
    else:
        completed = iter(_value(answer))
    rest = iter(_words(others, answers[: len(others)]))
    words = [next(completed if isinstance(each, t.Complete) and each.result is None else rest) for each in settlings]
    return words, answers[len(others) :]


def _words(settlings: Sequence[Settling], answers: Sequence[Any]) -> list[Word]:
    return [settled_word(settling, answer) for settling, answer in zip(settlings, answers, strict=True)]


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
            if not jobs and (isinstance(answer, FenceRefused) or not isinstance(answer, Refused)):
                raise answer
            fault = fault or str(answer)
        elif isinstance(answer, list):
            jobs += answer
        elif isinstance(answer, Job):
            jobs.append(answer)
    return fault
