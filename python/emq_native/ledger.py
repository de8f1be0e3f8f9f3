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
from dataclasses import dataclass, field
from typing import Any, Final

from emq_native import transitions as t
from emq_native.compositions import Settling, Word
from emq_native.errors import StaleToken
from emq_native.outcome import Policy
from emq_native.values import Job

__all__ = ["HeldJob", "Hold", "Ledger", "Stats", "Verdict"]

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

    __slots__ = ("_hold",)
    _hold: Hold

    @property
    def lost(self) -> bool:
        """Whether this run has lost its lease, or was given up by its worker."""
        return self._hold.lost or self._hold.over

    def ensure(self) -> None:
        """Go on only as the holder of the lease. Raises StaleToken when it is lost."""
        if self.lost:
            raise StaleToken(f"EMQSTALE the lease of {self.id} with token {self.token} is lost")


@dataclass(eq=False, slots=True)
class Hold:
    """One job in hand. runner: what runs it now; over: its verdict is made, and what its handler still does is void."""

    job: HeldJob
    taken: float
    renewed: float
    begun: float = 0.0
    policy: Policy | None = None
    lost: bool = False
    over: bool = False
    runner: Any = None


@dataclass(eq=False, slots=True)
class Verdict:
    """How a job is to be settled. unsure: it was sent before and no answer came, so it may have been carried out."""

    hold: Hold
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


_COUNTED: Final[dict[Word, str]] = {
    "completed": "completed",
    "scheduled": "retried",
    "dead": "dead",
    "delayed": "delayed",
    "refused": "refused",
}


@dataclass
class Ledger:
    """The jobs of one worker. concurrency: runners; batch: most jobs taken ahead; lease: seconds."""

    concurrency: int
    batch: int
    lease: float
    stats: Stats = field(default_factory=Stats)
    asked: int = 0
    running: int = 0
    ready: deque[Hold] = field(default_factory=deque)
    holds: dict[str, Hold] = field(default_factory=dict)
    verdicts: deque[Verdict] = field(default_factory=deque)
    mean: float | None = None
    beaten: float = 0.0

    # Taking

    def room(self) -> int:
        """How many more jobs to ask for, 0 to 10000, beyond those that were asked for already."""
        ahead = 0 if self.mean is None else min(self.batch, int(AHEAD_S * self.concurrency / max(self.mean, 1e-6)))
        return max(0, min(MOST, self.concurrency + ahead - self.running - len(self.ready) - self.asked))

    def take(self, jobs: Sequence[Job], since: float, now: float) -> list[Hold]:
        """Jobs came. since: when they were asked for, so that their leases end no earlier than lease after it.

        Returns what is lost by it: a job that is still in hand under an older token.
        """
        displaced = []
        for job in jobs:
            older = self.holds.get(job.id)
            if older is not None and not older.lost:
                older.lost = True
                displaced.append(older)
            held = HeldJob(job.id, job.payload, job.attempts, job.queue, job.group)
            hold = Hold(held, now, since)
            object.__setattr__(held, "_hold", hold)
            self.holds[job.id] = hold
            self.ready.append(hold)
        self.stats.taken += len(jobs)
        return displaced

    def begin(self, now: float) -> Hold | None:
        """The next job to run; None when none is ready."""
        while self.ready:
            hold = self.ready.popleft()
            if hold.lost:
                self._drop(hold)
                self.stats.lost += 1
                continue
            hold.begun = now
            self.running += 1
            return hold
        return None

    # Settling

    def finish(self, hold: Hold, settling: Settling, now: float) -> bool:
        """A run ended. False when that does not count any more: the job was given up before."""
        self.running -= 1
        took = now - hold.begun
        self.mean = took if self.mean is None else self.mean + (took - self.mean) / 8
        if hold.over:
            return False
        self._judge(hold, settling, now)
        return True

    def forfeit(self, hold: Hold) -> None:
        """A run was ended because its lease is lost: there is nothing to settle."""
        self.running -= 1
        if not hold.over:
            hold.over = True
            self._drop(hold)
            self.stats.lost += 1

    def overdue(self, now: float) -> list[Hold]:
        """Running jobs whose time is up."""
        return [
            hold
            for hold in self.holds.values()
            if hold.policy is not None
            and hold.policy.timeout is not None
            and not hold.over
            and now >= hold.begun + hold.policy.timeout
        ]

    def give_up(self, hold: Hold, settling: Settling, now: float) -> None:
        """Settle a job while its handler still runs, which does not count any more."""
        self._judge(hold, settling, now)

    def hand_back(self, now: float) -> None:
        """Jobs that have not begun go back, so that others take them at once."""
        while self.ready:
            hold = self.ready.popleft()
            self._judge(hold, t.Delay(hold.job, 0), now)

    def reconsider(self, now: float) -> None:
        """Jobs that were taken ahead and cannot begin soon go back: what runs takes longer than the mean promised."""
        if self.ready and now - self.ready[0].taken >= PATIENCE_S:
            self.hand_back(now)
            self.mean = max(self.mean or 0.0, PATIENCE_S)

    def abandon(self, now: float) -> list[Hold]:
        """Running jobs go back too. Returns those whose handlers still run."""
        still = [hold for hold in self.holds.values() if not hold.over]
        for hold in still:
            self._judge(hold, t.Delay(hold.job, 0), now)
        return still

    def due(self, now: float) -> bool:
        """Whether verdicts should travel although there is other work to do."""
        return bool(self.verdicts) and (len(self.verdicts) >= self.batch or now - self.verdicts[0].since >= AHEAD_S)

    def collect(self) -> list[Verdict]:
        """The verdicts that travel now, oldest first."""
        return [self.verdicts.popleft() for _ in range(min(MOST, len(self.verdicts)))]

    def settled(self, verdicts: Sequence[Verdict], words: Sequence[Word]) -> None:
        """The server answered: these jobs are none of ours any more."""
        for verdict, word in zip(verdicts, words, strict=True):
            self._drop(verdict.hold)
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
        if not self.holds or now < self.beaten + self.lease / BEATS:
            return []
        self.beaten = now
        soon = now - self.lease / BEATS
        return [hold.job for hold in self.holds.values() if not hold.over and not hold.lost and hold.renewed <= soon]

    def renewed(self, jobs: Sequence[HeldJob], missing: Sequence[str], since: float) -> list[Hold]:
        """The server renewed leases at `since` or later, but not those of `missing`. Returns what was lost just now."""
        gone = set(missing)
        lost = []
        for job in jobs:
            hold = job._hold
            if job.id not in gone:
                hold.renewed = since
            elif not hold.over and not hold.lost:
                hold.lost = True
                lost.append(hold)
        return lost

    @property
    def idle(self) -> bool:
        """Whether nothing is in hand or on its way."""
        return not (self.running or self.holds or self.verdicts)

    def _judge(self, hold: Hold, settling: Settling, now: float) -> None:
        hold.over = True
        self.verdicts.append(Verdict(hold, settling, now))

    def _drop(self, hold: Hold) -> None:
        if self.holds.get(hold.job.id) is hold:
            del self.holds[hold.job.id]
