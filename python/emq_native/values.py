"""What calls answer: jobs, ids, numbers, words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from emq_native import _core
from emq_native.ids import JobId

if TYPE_CHECKING:
    from typing_extensions import Self

State = Literal["pending", "active", "scheduled", "dead", "awaiting_children", "absent", "unknown"]
Settled = Literal["completed", "gone", "stale"]
Retried = Literal["scheduled", "dead"]
Reassigned = Literal["moved", "same", "ungrouped", "not waiting"]


# Nobody changes a Job, as Final says to type checkers; `frozen` would triple the time that making one takes.
@dataclass(slots=True, unsafe_hash=True)
class Job:
    """A claimed job. It is yours until the lease ends; `token` proves it.

    id: 14 characters; payload: bytes, None when the stored row is damaged; attempts: how often it was claimed, this
    time included; queue: the name of its queue; group: its group, None for a job without one.
    """

    id: Final[str]
    payload: Final[bytes | None]
    attempts: Final[int]
    queue: Final[str]
    group: Final[str | None] = None

    @property
    def token(self) -> int:
        """The fencing token of this lease. Only the newest one of a job is accepted."""
        return self.attempts


class Admitted(JobId):
    """The id of a job that was admitted.

    created: False when a job of that id was there already; then nothing was changed.
    """

    __slots__ = ("created",)
    created: bool

    def __new__(cls, text: str | bytes, created: bool = True) -> Self:
        return cls._of(_core.job_id(text).decode("ascii"), created)

    @classmethod
    def _of(cls, job_id: str, created: bool) -> Self:
        """Of a text that is known to be a job id."""
        admitted = str.__new__(cls, job_id)
        admitted.created = created
        return admitted

    def __reduce__(self) -> tuple[type[Admitted], tuple[str, bool]]:
        return Admitted, (str(self), self.created)


@dataclass(frozen=True, slots=True)
class Counts:
    """How many jobs are in each place now, and how many ever completed and failed (moved to dead)."""

    pending: int
    active: int
    scheduled: int
    dead: int
    awaiting_children: int
    completed: int
    failed: int


class GroupCounts(NamedTuple):
    """One group: its name, its pending jobs, its active jobs."""

    group: str
    pending: int
    active: int


@dataclass(frozen=True, slots=True)
class Version:
    """What the executor is. None: absent, or not known there."""

    module: str | None
    module_version: str | None
    wire: int
    identity: str
    node: str | None
    server: str | None
    api: int
