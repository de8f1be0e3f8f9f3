"""The names of a queue's keys, as bytes, and the slot that they share.

    keys = Keys("orders")
    keys.queue              b"emq:{orders}", the first argument of every verb; no key has this name
    keys.pending            b"emq:{orders}:pending"
    keys.row(job)           b"emq:{orders}:job:JOB0NgWEfAEJfs"
    keys.lane("acme")       b"emq:{orders}:g:acme:pending"

A name is built when it is asked for; nothing is cached.
"""

from __future__ import annotations

from typing import Final

from emq_native import _core

FENCE: Final = _core.FENCE_KEY
"""The key of the fence outside cluster mode: one per logical database."""

slot = _core.slot
"""The cluster slot of any key, 0 to 16383."""


class _Fixed:
    """A key whose name only the queue decides."""

    __slots__ = ("_suffix",)

    def __init__(self, suffix: bytes) -> None:
        self._suffix = suffix

    def __get__(self, keys: Keys, owner: type[Keys]) -> bytes:
        return _core.key_fixed(keys.queue, self._suffix)


class Keys:
    """The keys of one queue. Raises InvalidArgument when the name is none."""

    __slots__ = ("name", "queue")

    def __init__(self, name: str | bytes) -> None:
        self.queue: Final = _core.queue_key(name)
        self.name: Final = _core.queue_key_name(self.queue).decode("ascii")

    @classmethod
    def of(cls, queue_key: str | bytes) -> Keys:
        """The keys of the queue that a queue key names."""
        return cls(_core.queue_key_name(queue_key))

    # Places
    pending = _Fixed(b"pending")
    active = _Fixed(b"active")
    schedule = _Fixed(b"schedule")
    dead = _Fixed(b"dead")
    held = _Fixed(b"held")

    # Lanes
    lanes = _Fixed(b"lanes")
    ring = _Fixed(b"ring")
    wake = _Fixed(b"wake")
    paused = _Fixed(b"paused")
    glimit = _Fixed(b"glimit")
    gweight = _Fixed(b"gweight")
    gactive = _Fixed(b"gactive")

    # The queue itself
    meta = _Fixed(b"meta")
    completed = _Fixed(b"metrics:completed")
    failed = _Fixed(b"metrics:failed")
    repeats = _Fixed(b"repeat")
    outbox = _Fixed(b"flow:outbox")
    poison = _Fixed(b"flow:poison")
    events = _Fixed(b"events")
    version = _Fixed(b"version")

    def row(self, job: str | bytes) -> bytes:
        """The hash that is the job."""
        return _core.key_job(self.queue, job, b"")

    def logs(self, job: str | bytes) -> bytes:
        """The list of the job's log lines."""
        return _core.key_job(self.queue, job, b":logs")

    def lock(self, job: str | bytes) -> bytes:
        """A foreign holder's marker."""
        return _core.key_job(self.queue, job, b":lock")

    def dependencies(self, job: str | bytes) -> bytes:
        """The number of a parent's open children."""
        return _core.key_job(self.queue, job, b":dependencies")

    def processed(self, job: str | bytes) -> bytes:
        """The hash of a parent's completed children and their results."""
        return _core.key_job(self.queue, job, b":processed")

    def child_failures(self, job: str | bytes) -> bytes:
        """The hash of a parent's failed children, policy fp, and their errors."""
        return _core.key_job(self.queue, job, b":failed")

    def ignored_failures(self, job: str | bytes) -> bytes:
        """The hash of a parent's failed children, policy id, and their errors."""
        return _core.key_job(self.queue, job, b":unsuccessful")

    def job(self, job: str | bytes) -> tuple[bytes, ...]:
        """The row and its six subkeys: everything that goes with the job."""
        return (
            self.row(job),
            self.logs(job),
            self.lock(job),
            self.dependencies(job),
            self.processed(job),
            self.child_failures(job),
            self.ignored_failures(job),
        )

    def lane(self, group: str | bytes) -> bytes:
        """The sorted set of a group's waiting jobs."""
        return _core.key_lane(self.queue, group)

    def repeat(self, name: str | bytes) -> bytes:
        """The hash of one repeat."""
        return _core.key_repeat(self.queue, name)

    def fence(self, *, cluster: bool) -> bytes:
        """The key of the fence that guards this queue."""
        return self.version if cluster else FENCE

    @property
    def slot(self) -> int:
        """The cluster slot of every key of the queue, 0 to 16383."""
        return slot(self.queue)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Keys) and self.queue == other.queue

    def __hash__(self) -> int:
        return hash(self.queue)

    def __repr__(self) -> str:
        return f"Keys({self.name!r})"
