"""What a worker holds, without I/O: jobs in hand, verdicts on their way, leases to keep, room for more.

The threaded and the asyncio worker keep one ledger each and ask it what to do; neither decides anything by itself. A
job that was taken is *ready*, then *running*, then its *verdict* waits to travel, then it is settled and forgotten.
Times are seconds of a steady clock. Nothing here is safe for threads: the worker holds its lock.

Ahead. Short jobs are taken ahead of time, as many as run within AHEAD_S by the mean of those before, so that a round
trip serves many; a job that takes long is never taken before a runner is free for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field
from operator import add
from typing import Any, Final

from emq_native import transitions as t
from emq_native.compositions import Settling, Word
from emq_native.errors import StaleToken
from emq_native.outcome import Policy
from emq_native.values import Job

__all__ = ["HeldJob", "Ledger", "Stats", "Verdict"]

AHEAD_S: Final = 0.05
"""Jobs are taken ahead for so many seconds of work, and a verdict waits for company for at most as long."""

BEATS: Final = 3
"""A lease is renewed so many times within its length."""

PATIENCE_S: Final = 1.0
"""A job taken ahead that has waited for so long behind others goes back, and for a while none is taken ahead."""

MOST: Final = 10_000


class HeldJob(Job):
    """A job in the hands of a worker, as a handler gets it.

    lost: another worker may have the job, because the lease ended: whatever this run does further is in vain, and its
    settling will be refused.
    """

    # What its ledger and its worker know of it. _over: its verdict is made, and what its handler still does is void;
    # _runner: what runs it now; _task: the name of the task that it calls, for the log.
    __slots__ = ("_begun", "_lost", "_over", "_policy", "_renewed", "_runner", "_taken", "_task")

    def __init__(self, job: Job, taken: float, renewed: float) -> None:
        Job.__init__(self, job.id, job.payload, job.attempts, job.queue, job.group)
        self._taken = taken
        self._renewed = renewed
        self._begun = 0.0
        self._policy: Policy | None = None
        self._lost = False
        self._over = False
        self._runner: Any = None
        self._task: str | None = None

    @property
    def lost(self) -> bool:
        """Whether this run has lost its lease, or was given up by its worker."""
        return self._lost or self._over

    def ensure(self) -> None:
        """Go on only as the holder of the lease. Raises StaleToken when it is lost."""
        if self.lost:
            raise StaleToken(f"EMQSTALE the lease of {self.id} with token {self.token} is lost")

    def __reduce__(self) -> tuple[Any, ...]:
        # Elsewhere nobody holds it.
        return Job, (self.id, self.payload, self.attempts, self.queue, self.group)


@dataclass(eq=False, slots=True)
class Verdict:
    """How a job is to be settled. unsure: it was sent before and no answer came, so it may have been carried out."""

    job: HeldJob
    settling: Settling
    since: float
    unsure: bool = False


@dataclass(slots=True)
class Stats:
    """What became of the jobs of a worker, as far as the server has answered: with a wait, that is when it ends.

    lost: settlings refused because the lease was lost or the job removed; unsure: the same after a lost answer, so
    perhaps an earlier sending was carried out; refused: the server refused the settling for another reason.
    """

    taken: int = 0
    completed: int = 0
    retried: int = 0
    dead: int = 0
    delayed: int = 0
    lost: int = 0
    unsure: int = 0
    refused: int = 0

    def __add__(self, other: Stats) -> Stats:
        return Stats(*map(add, astuple(self), astuple(other)))


_COUNTED: Final[dict[Word, str]] = {
    "completed": "completed",
    "scheduled": "retried",
    "dead": "dead",
    "delayed": "delayed",
    "refused": "refused",
}


@dataclass(slots=True)
class Ledger:
    """The jobs of one worker. concurrency: runners; batch: most jobs taken ahead; lease: seconds."""

    concurrency: int
    batch: int
    lease: float
    stats: Stats = field(default_factory=Stats)
    asked: int = 0
    running: int = 0
    ready: deque[HeldJob] = field(default_factory=deque)
    held: dict[str, HeldJob] = field(default_factory=dict)
    verdicts: deque[Verdict] = field(default_factory=deque)
    mean: float | None = None
    beaten: float = 0.0

    # Taking

    def room(self) -> int:
        """How many more jobs to ask for, 0 to 10000, beyond those that were asked for already."""
        ahead = 0 if self.mean is None else min(self.batch, int(AHEAD_S * self.concurrency / max(self.mean, 1e-6)))
        return max(0, min(MOST, self.concurrency + ahead - self.running - len(self.ready) - self.asked))

    def take(self, jobs: Sequence[Job], since: float, now: float) -> list[HeldJob]:
        """Jobs came. since: when they were asked for, so that their leases end no earlier than lease after it.

        Returns what is lost by it: a job that is still in hand under an older token.
        """
        displaced = []
        for job in jobs:
            older = self.held.get(job.id)
            if older is not None and not older._lost:
                older._lost = True
                displaced.append(older)
            held = self.held[job.id] = HeldJob(job, now, since)
            self.ready.append(held)
        self.stats.taken += len(jobs)
        return displaced

    def begin(self, now: float) -> HeldJob | None:
        """The next job to run; None when none is ready."""
        while self.ready:
            job = self.ready.popleft()
            if job._lost:
                self._drop(job)
                self.stats.lost += 1
                continue
            job._begun = now
            self.running += 1
            return job
        return None

    # Settling

    def finish(self, job: HeldJob, settling: Settling, now: float) -> bool:
        """A run ended. False when that does not count any more: the job was given up before."""
        self.running -= 1
        took = now - job._begun
        self.mean = took if self.mean is None else self.mean + (took - self.mean) / 8
        if job._over:
            return False
        self._judge(job, settling, now)
        return True

    def forfeit(self, job: HeldJob) -> None:
        """A run was ended because its lease is lost: there is nothing to settle."""
        self.running -= 1
        if not job._over:
            job._over = True
            self._drop(job)
            self.stats.lost += 1

    def overdue(self, now: float) -> list[HeldJob]:
        """Running jobs whose time is up."""
        return [
            job
            for job in self.held.values()
            if job._policy is not None
            and job._policy.timeout is not None
            and not job._over
            and now >= job._begun + job._policy.timeout
        ]

    def give_up(self, job: HeldJob, settling: Settling, now: float) -> None:
        """Settle a job while its handler still runs, which does not count any more."""
        self._judge(job, settling, now)

    def hand_back(self, now: float) -> None:
        """Jobs that have not begun go back, so that others take them at once."""
        while self.ready:
            job = self.ready.popleft()
            self._judge(job, t.Delay(job, 0), now)

    def reconsider(self, now: float) -> None:
        """Jobs that were taken ahead and cannot begin soon go back: what runs takes longer than the mean promised."""
        if self.ready and now - self.ready[0]._taken >= PATIENCE_S:
            self.hand_back(now)
            self.mean = max(self.mean or 0.0, PATIENCE_S)

    def abandon(self, now: float) -> list[HeldJob]:
        """Running jobs go back too. Returns those whose handlers still run."""
        still = [job for job in self.held.values() if not job._over]
        for job in still:
            self._judge(job, t.Delay(job, 0), now)
        return still

    def due(self, now: float) -> bool:
        """Whether verdicts should travel although there is other work to do."""
        verdicts = self.verdicts
        return bool(verdicts) and (len(verdicts) >= self.batch or now - verdicts[0].since >= AHEAD_S)

    def collect(self) -> list[Verdict]:
        """The verdicts that travel now, oldest first."""
        return [self.verdicts.popleft() for _ in range(min(MOST, len(self.verdicts)))]

    def settled(self, verdicts: Sequence[Verdict], words: Sequence[Word]) -> None:
        """The server answered: these jobs are none of ours any more."""
        for verdict in verdicts:
            self._drop(verdict.job)
        if words.count("completed") == len(words):
            self.stats.completed += len(words)
            return
        for verdict, word in zip(verdicts, words, strict=True):
            name = _COUNTED.get(word) or ("unsure" if verdict.unsure else "lost")
            setattr(self.stats, name, getattr(self.stats, name) + 1)

    def unanswered(self, verdicts: Sequence[Verdict], *, unsure: bool) -> None:
        """No answer came: they travel again, before all others. unsure: they may have been carried out."""
        for verdict in reversed(verdicts):
            verdict.unsure = verdict.unsure or unsure
            self.verdicts.appendleft(verdict)

    # Keeping

    def beat(self, now: float) -> list[HeldJob]:
        """The jobs whose leases have to be renewed now."""
        if not self.held or now < self.beaten + self.lease / BEATS:
            return []
        self.beaten = now
        soon = now - self.lease / BEATS
        return [job for job in self.held.values() if not job._over and not job._lost and job._renewed <= soon]

    def renewed(self, jobs: Sequence[HeldJob], missing: Sequence[str], since: float) -> list[HeldJob]:
        """The server renewed leases at `since` or later, but not those of `missing`. Returns what was lost just now."""
        gone = set(missing)
        lost = []
        for job in jobs:
            if job.id not in gone:
                job._renewed = since
            elif not job._over and not job._lost:
                job._lost = True
                lost.append(job)
        return lost

    @property
    def idle(self) -> bool:
        """Whether nothing is in hand or on its way."""
        return not (self.running or self.held or self.verdicts)

    def _judge(self, job: HeldJob, settling: Settling, now: float) -> None:
        job._over = True
        self.verdicts.append(Verdict(job, settling, now))

    def _drop(self, job: HeldJob) -> None:
        if self.held.get(job.id) is job:
            del self.held[job.id]
