"""What is in the queues of a node, for people: names, numbers, the age of the oldest job, jobs place by place.

Everything here reads. Lists and ages are plain reads of the keys of the contract, so they are a moment's picture.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, NamedTuple

from emq_native import transitions as t
from emq_native._core import group_name, queue_key
from emq_native.connector import Bus
from emq_native.errors import EmqError, InvalidArgument, translated
from emq_native.ids import JobId
from emq_native.session import pairs
from emq_native.values import Counts, GroupCounts

__all__ = [
    "PLACES",
    "QUEUE_KEYS",
    "Lane",
    "Listed",
    "Snapshot",
    "job_id_of",
    "jobs_in",
    "lanes_in",
    "queue_names",
    "queue_of",
    "snapshot",
]

Place = Literal["pending", "active", "scheduled", "dead", "awaiting_children"]

PLACES: Final[dict[str, bytes]] = {
    "pending": b"pending",
    "active": b"active",
    "scheduled": b"schedule",
    "dead": b"dead",
    "awaiting_children": b"held",
}
"""The places by their states, and the keys that list them."""

LANES: Final = 100
"""Most lanes of which a snapshot looks for the oldest job."""

PAGE: Final = 500

QUEUE_KEYS: Final = "emq:{*}:[^j]*"
"""The keys of queues without their rows: a queue that has a job has one of these too."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A queue at one moment. oldest: seconds since the oldest waiting job was minted, None when none waits."""

    queue: str
    counts: Counts
    paused: bool
    oldest: float | None
    groups: tuple[GroupCounts, ...]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        groups = [group._asdict() for group in self.groups]
        return {
            "queue": self.queue,
            **asdict(self.counts),
            "paused": self.paused,
            "oldest": self.oldest,
            "groups": groups,
        }


class Lane(NamedTuple):
    """A group. limit: most active jobs at a time, 0 for no limit; weight: jobs of one weighted claim."""

    group: str
    pending: int
    active: int
    limit: int
    weight: int
    paused: bool


@dataclass(frozen=True, slots=True)
class Listed:
    """A job in a list. score: milliseconds, when it is due or when its lease ends; None elsewhere. fields: the row,
    empty when it is gone.
    """

    id: JobId
    place: str
    score: int | None
    fields: dict[str, bytes]

    @property
    def error(self) -> str:
        """The first line of the last error."""
        return self.fields.get("last_error", b"").decode("utf-8", "backslashreplace").partition("\n")[0]

    def as_dict(self) -> dict[str, Any]:
        """For JSON; bytes that are no UTF-8 are shown with backslashes."""
        shown = {name: value.decode("utf-8", "backslashreplace") for name, value in self.fields.items()}
        return {
            "id": str(self.id),
            "place": self.place,
            "minted": self.id.datetime.isoformat(),
            "score": self.score,
            **shown,
        }


def queue_of(key: str | bytes) -> str | None:
    """The queue whose data a key is; None for a fence and for a key of no queue."""
    text = key.decode("utf-8", "replace") if isinstance(key, bytes) else key
    name, separator, kind = text.removeprefix("emq:{").partition("}:")
    if not text.startswith("emq:{") or not separator or kind == "version":
        return None
    try:
        queue_key(name)
    except InvalidArgument:
        return None
    return name


def queue_names(bus: Bus) -> list[str]:
    """The queues that have a key, sorted. It walks the whole key space, a bounded part per call. Raises EmqError."""
    with translated():
        found = {queue_of(key) for key in bus.client.scan_iter(match=QUEUE_KEYS, count=PAGE)}
    return sorted(name for name in found if name is not None)


def snapshot(bus: Bus, name: str) -> Snapshot:
    """One queue. Raises EmqError."""
    queue = bus.queue(name)
    counts, groups = queue.pipeline([t.Count(), t.CountGroups()])
    for answer in (counts, groups):
        if isinstance(answer, EmqError):
            raise answer
    waiting = [group.group for group in groups if group.pending][:LANES]
    keys = [b":pending", *(b":g:" + group_name(group) + b":pending" for group in waiting)]
    commands = [(b"ZRANGE", queue.key + key, b"0", b"0") for key in keys]
    paused, *firsts = bus.plain(queue, (b"HEXISTS", queue.key + b":meta", b"paused"), *commands)
    ids = [job_id_of(first[0]) for first in firsts if isinstance(first, list) and first]
    minted = [job_id.ms for job_id in ids if job_id is not None]
    oldest = max(0.0, time.time() - min(minted) / 1000) if minted else None
    return Snapshot(name, counts, paused == 1, oldest, tuple(groups))


def lanes_in(bus: Bus, name: str) -> list[Lane]:
    """The lanes of a queue that hold jobs or have a setting, by name. Raises EmqError."""
    queue = bus.queue(name)
    counts = {each.group: each for each in queue.group_counts()}
    answers = bus.plain(
        queue,
        (b"HGETALL", queue.key + b":glimit"),
        (b"HGETALL", queue.key + b":gweight"),
        (b"SMEMBERS", queue.key + b":paused"),
    )
    for answer in answers:
        if isinstance(answer, EmqError):
            raise answer
    limits, weights = map(pairs, answers[:2])
    paused = {group.decode() for group in answers[2]}
    lanes = []
    for group in sorted({*counts, *limits, *weights, *paused}):
        _, pending, active = counts.get(group) or GroupCounts(group, 0, 0)
        lanes.append(
            Lane(group, pending, active, int(limits.get(group, 0)), int(weights.get(group, 1)), group in paused)
        )
    return lanes


def jobs_in(bus: Bus, name: str, places: Sequence[str], limit: int) -> Iterator[Listed]:
    """The first `limit` jobs of each place, in its order; of the waiting ones, those of the lanes follow the others.

    Raises EmqError.
    """
    queue = bus.queue(name)
    for place in places:
        keys = [b":" + PLACES[place]]
        if place == "pending":
            keys += [b":g:" + group_name(each.group) + b":pending" for each in queue.group_counts() if each.pending]
        left = limit
        for key in keys:
            if left <= 0:
                break
            listed = _listed(bus, name, queue.key + key, place, left)
            left -= len(listed)
            yield from listed


def _listed(bus: Bus, name: str, key: bytes, place: str, limit: int) -> list[Listed]:
    queue = bus.queue(name)
    (members,) = bus.plain(queue, (b"ZRANGE", key, b"0", b"%d" % (limit - 1), b"WITHSCORES"))
    if isinstance(members, EmqError):
        raise members
    pairs = members if members and isinstance(members[0], list) else list(zip(members[::2], members[1::2], strict=True))
    known = [(job_id, float(score)) for member, score in pairs if (job_id := job_id_of(member)) is not None]
    rows: list[Any] = []
    for first in range(0, len(known), PAGE):
        rows += queue.pipeline(t.Peek(job_id) for job_id, _ in known[first : first + PAGE])
    timed = place in ("active", "scheduled")
    return [
        Listed(job_id, place, int(score) if timed else None, row if isinstance(row, dict) else {})
        for (job_id, score), row in zip(known, rows, strict=True)
    ]


def job_id_of(member: bytes) -> JobId | None:
    """The id that a place lists; None when a foreign client listed something else."""
    try:
        return JobId(member)
    except (InvalidArgument, UnicodeDecodeError):
        return None
