"""What nodes and their queues say at one moment, for programs that watch them: the exporter and the doctor.

Everything here reads, needs no fence, works on replicas, and has a bound on each look: three round trips for a batch of
queues, however many jobs and lanes they have; a walk for names goes on where the last one stopped. Numbers come from
the readers of the contract, by the module where it is loaded and by the scripts elsewhere; the rest are plain reads.
What a user may not ask is None.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from emq_native import transitions as t
from emq_native._core import group_name
from emq_native.arguments import MAX_INTEGER
from emq_native.errors import EmqError, InvalidArgument, PermissionDenied, Unavailable, WrongType
from emq_native.executors import NATIVE, SCRIPTED, Executor
from emq_native.fence import IDENTITIES, fence_key
from emq_native.keys import Keys
from emq_native.overview import QUEUE_KEYS, job_id_of, queue_of
from emq_native.session import Session, is_clustered
from emq_native.topology import Primary, primaries
from emq_native.transitions import Transition
from emq_native.values import Counts

__all__ = ["About", "Fleet", "Lane", "Names", "Node", "Reading", "fence_state", "over_a_living_connection"]

T = TypeVar("T")

SECTIONS: Final = ("server", "replication", "emq")
TOGETHER: Final = 50
"""Queues that are asked in one round trip."""

WALK_CALLS: Final = 200
WALK_COUNT: Final = 1000
"""A look walks over at most so many times so many keys to find queues."""

_STATES: Final = {identity: f"wire{wire}" for wire, identity in IDENTITIES.items()}


@dataclass(frozen=True, slots=True)
class About:
    """A node. info: what INFO said, empty when it may not be asked; fence: see `fence_state`, None in cluster mode."""

    info: dict[str, str]
    fence: str | None

    @property
    def server(self) -> tuple[str, str]:
        """Name and version of the server."""
        name = self.info.get("server_name", "redis" if "redis_version" in self.info else "")
        return name, self.info.get(f"{name}_version", "")


@dataclass(frozen=True, slots=True)
class Lane:
    """A group. limit: most active jobs at a time, 0 for no limit; None: not told."""

    group: str
    pending: int
    active: int
    limit: int | None
    paused: bool | None


@dataclass(frozen=True, slots=True)
class Reading:
    """A queue at one moment. Times are seconds by the server's clock; None: this user was not told.

    oldest     since the oldest waiting job was minted, also of those in the lanes listed; 0 when none waits
    late       since the earliest scheduled job became due; 0 when none is due
    lapsed     leases that ended and were not reaped yet; lapse: since the first of them ended
    lanes      groups with a backlog or active jobs, at most as many as were asked for; left_out: those with a backlog
               that are not listed
    fence      see `fence_state`, in cluster mode only
    """

    queue: str
    counts: Counts
    paused: bool | None
    oldest: float | None
    late: float | None
    lapsed: int | None
    lapse: float | None
    lanes: tuple[Lane, ...]
    lanes_known: int | None
    left_out: int
    fence: str | None


def fence_state(answer: Any) -> str:
    """What a fence's value says: wire4, wire6, missing, foreign, or unknown for a question that was denied."""
    if isinstance(answer, EmqError):
        return "foreign" if isinstance(answer, WrongType) else "unknown"
    return "missing" if answer is None else _STATES.get(answer.decode("utf-8", "replace"), "foreign")


class Node:
    """One node, over a connection that is kept. Each method raises Unavailable or PermissionDenied when it is lost."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.primary: Primary | None = None
        """What the cluster says of it, None outside one."""
        self.now_ms = 0
        self._executor: Executor = NATIVE

    @property
    def address(self) -> str:
        """host:port, or the path of a socket."""
        return self.session.address

    @property
    def cluster(self) -> bool:
        """Whether it is one of a cluster."""
        return self.primary is not None

    def about(self) -> About:
        """Look at the node; learns its clock and its executor for what is asked next."""
        ask: list[tuple[str | bytes, ...]] = [("INFO", *SECTIONS), ("EMQ.VERSION",)]
        info, version, *fence = self.session.send_all(ask if self.cluster else [*ask, ("GET", fence_key(None))])
        for answer in (info, version, *fence):
            if isinstance(answer, (Unavailable, PermissionDenied)) and answer.code != "NOPERM":
                raise answer
        absent = isinstance(version, EmqError) and "unknown command" in str(version).lower()
        self._executor = SCRIPTED if absent else NATIVE
        told = {} if isinstance(info, EmqError) else fields(info)
        self.now_ms = int(told.get("server_time_usec", "0")) // 1000 or round(time.time() * 1000)
        state = None if self.cluster else fence_state(fence[0])
        if state == "unknown":
            state = {"ok": "wire6", "missing": "missing", "foreign": "foreign"}.get(told.get("emq_fence", ""), state)
        return About(told, state)

    def owns(self, name: str) -> bool:
        """Whether a queue is served here; outside cluster mode each is."""
        return self.primary is None or self.primary.serves(Keys(name).slot)

    def queues(self, names: Sequence[str], lanes: int) -> Iterator[tuple[str, Reading | EmqError]]:
        """Look at queues, after `about`; lanes: most groups to list of each. Yields name and Reading or refusal."""
        for start in range(0, len(names), TOGETHER):
            looks = [_Look(self, name, lanes) for name in names[start : start + TOGETHER]]
            for step in (_Look.numbers, _Look.some_lanes, _Look.of_lanes):
                self._carry(looks, step)
            yield from ((look.keys.name, look.result()) for look in looks)

    def words(self, transition: Transition[Any], keys: Keys) -> tuple[bytes, ...]:
        """The command of a reading transition."""
        return self._executor.frame(transition.verb, transition.words(keys.queue), inline=True).argv

    def _carry(self, looks: Iterable[_Look], step: Any) -> None:
        rounds = [(look, step(look)) for look in looks]
        commands = [command for _, wanted in rounds for command in wanted]
        answers = iter(self.session.send_all(commands) if commands else ())
        for look, wanted in rounds:
            look.answers.append([next(answers) for _ in wanted])


class _Look:
    """The questions about one queue, a list of commands for each of its three round trips, and what they answered."""

    def __init__(self, node: Node, name: str, lanes: int) -> None:
        self.node = node
        self.keys = Keys(name)
        self.most = lanes
        self.answers: list[list[Any]] = []
        self.groups: list[bytes] = []

    def numbers(self) -> list[tuple[Any, ...]]:
        keys = self.keys
        return [
            self.node.words(t.Count(), keys),
            ("HEXISTS", keys.meta, "paused"),
            ("ZRANGE", keys.pending, 0, 0),
            ("ZRANGE", keys.schedule, 0, 0, "WITHSCORES"),
            ("ZRANGE", keys.active, 0, 0, "WITHSCORES"),
            ("ZCOUNT", keys.active, "-inf", self.node.now_ms),
            ("SCARD", keys.lanes),
            *([("GET", keys.version)] if self.node.cluster else ()),
        ]

    def some_lanes(self) -> list[tuple[Any, ...]]:
        # A large set answers about COUNT members to a scan, a small one all of them.
        if not self.most or isinstance(self.answers[0][0], EmqError):
            return []
        return [
            ("SSCAN", self.keys.lanes, 0, "COUNT", self.most),
            ("HSCAN", self.keys.gactive, 0, "COUNT", self.most),
        ]

    def of_lanes(self) -> list[tuple[Any, ...]]:
        for reply, stride in zip(self.answers[1], (1, 2), strict=False):
            if not isinstance(reply, EmqError):
                self.groups += [group for group in reply[1][::stride] if group not in self.groups and _is_group(group)]
        self.groups = sorted(self.groups[: self.most])
        if not self.groups:
            return []
        names = [group.decode("utf-8", "replace") for group in self.groups]
        return [
            self.node.words(t.CountGroups(*names), self.keys),
            ("HMGET", self.keys.glimit, *self.groups),
            ("SMISMEMBER", self.keys.paused, *self.groups),
            *(("ZRANGE", self.keys.lane(group), 0, 0) for group in self.groups),
        ]

    def result(self) -> Reading | EmqError:
        reply: Any
        counts, paused, first, due, deadline, lapsed, known, *fence = self.answers[0]
        groups, limits, parked, *firsts = self.answers[2] or ([], [], [])
        for reply in (counts, groups):
            if isinstance(reply, EmqError):
                return reply
        listed = t.CountGroups().decode(groups, self.keys.name)
        ceilings = _each(limits, _number, len(listed))
        stopped = _each(parked, bool, len(listed))
        lanes = tuple(Lane(*each, limit, stop) for each, limit, stop in zip(listed, ceilings, stopped, strict=True))
        known = None if isinstance(known, EmqError) else int(known)
        return Reading(
            queue=self.keys.name,
            counts=t.Count().decode(counts, self.keys.name),
            paused=None if isinstance(paused, EmqError) else bool(paused),
            oldest=self._age([first, *firsts]),
            late=self._since(due),
            lapsed=None if isinstance(lapsed, EmqError) else int(lapsed),
            lapse=self._since(deadline),
            lanes=lanes,
            lanes_known=known,
            left_out=max(0, (known or 0) - sum(1 for lane in lanes if lane.pending)),
            fence=fence_state(fence[0]) if fence else None,
        )

    def _age(self, firsts: list[Any]) -> float | None:
        if any(isinstance(first, EmqError) for first in firsts):
            return None
        ids = [job_id_of(first[0]) for first in firsts if first]
        minted = [job_id.ms for job_id in ids if job_id is not None]
        return max(0, self.node.now_ms - min(minted)) / 1000 if minted else 0.0

    def _since(self, scored: Any) -> float | None:
        if isinstance(scored, EmqError):
            return None
        # No time is before 1970; a score that says so is nobody's who means one.
        return max(0.0, self.node.now_ms - max(0.0, float(scored[1]))) / 1000 if scored else 0.0


class Names:
    """The queues of one node, found by a walk over its keys that goes on from look to look.

    rest: seconds from the end of a walk over all keys to the next one. A queue is forgotten when a whole walk did not
    find it.
    """

    def __init__(self, rest: float) -> None:
        self.rest = rest
        self._known: set[str] = set()
        self._found: set[str] = set()
        self._cursor = 0
        self._next = 0.0

    def look(self, session: Session) -> list[str]:
        """Walk on where it is time to, and return the names known by now, sorted. Raises EmqError."""
        if time.monotonic() >= self._next:
            for _ in range(WALK_CALLS):
                cursor, keys = session.send("SCAN", self._cursor, "MATCH", QUEUE_KEYS, "COUNT", WALK_COUNT)
                self._found.update(name for key in keys if (name := queue_of(key)) is not None)
                self._cursor = int(cursor)
                if not self._cursor:
                    self._known, self._found = self._found, set()
                    self._next = time.monotonic() + self.rest
                    break
        return sorted(self._known | self._found)


class Fleet:
    """The node that a target means, or every primary of the cluster that it is of; over connections that are kept.

    target: as for Session. Raises InvalidArgument and TypeError as that does.
    """

    def __init__(self, target: object) -> None:
        self._seed = Session(target)
        self._nodes: dict[str, Node] = {}
        self._cluster: bool | None = None

    @property
    def address(self) -> str:
        """The node that was named."""
        return self._seed.address

    def nodes(self) -> list[Node]:
        """Whom to ask now. Raises EmqError when nobody tells."""
        if self._cluster is None:
            self._cluster = is_clustered(self._seed)
        if not self._cluster:
            return [self._nodes.setdefault(self.address, Node(self._seed))]
        found: dict[str, Node] = {}
        for primary in primaries(self._topology()):
            session = self._seed.at(primary.host, primary.port)
            node = self._nodes.get(session.address) or Node(session)
            node.primary = primary
            found[session.address] = node
        for address, node in self._nodes.items():
            if address not in found:
                node.session.close()
        self._nodes = found
        return list(found.values())

    def close(self) -> None:
        """Close every connection. The next look opens new ones."""
        for session in (self._seed, *(node.session for node in self._nodes.values())):
            session.close()

    def _topology(self) -> bytes:
        first: EmqError | None = None
        for session in (self._seed, *(node.session for node in self._nodes.values())):
            try:
                return bytes(over_a_living_connection(session, partial(session.send, "CLUSTER", "NODES")))
            except EmqError as error:
                first = first or error
        assert first is not None
        raise first


def over_a_living_connection(session: Session, look: Callable[[], T]) -> T:
    """What a look gives; one more when a kept connection turns out to be lost, as it is after a restart of the server.

    Raises what the look raises; then the connection is closed.
    """
    kept = session.is_open
    try:
        return look()
    except EmqError as error:
        session.close()
        if not kept or not isinstance(error, Unavailable) or error.code:
            raise
    try:
        return look()
    except EmqError:
        session.close()
        raise


def fields(reply: bytes) -> dict[str, str]:
    """The names and values of INFO."""
    lines = (line.partition(":") for line in reply.decode("utf-8", "replace").splitlines() if ":" in line)
    return {name: value for name, _, value in lines}


def _is_group(name: bytes) -> bool:
    try:
        return bool(group_name(name))
    except InvalidArgument:
        return False


def _each(answer: Any, convert: Callable[[Any], T], count: int) -> list[T | None]:
    return [None] * count if isinstance(answer, EmqError) else [convert(value) for value in answer]


def _number(text: bytes | None) -> int:
    """A stored number, as the executors read it: what is not sound counts as absent."""
    number = int(text) if text is not None and re.fullmatch(rb"[1-9][0-9]{0,15}", text) else 0
    return number if number <= MAX_INTEGER else 0
