"""The fence in an operator's hands: show it, claim a node for an executor, move it from one executor to the other.

Connectors of wire 6 and the module only ever read the fence; whoever provisions a node writes it here. `queue` names
the queue whose fence is meant: required in cluster mode, where each queue has its own, and refused otherwise.

    provision.claim("redis://127.0.0.1", wire=6)

To move a node: stop the clients of the old wire, wait until none is connected, move, start the clients of the new one.
"""

from __future__ import annotations

from dataclasses import dataclass

from emq_native._core import queue_key
from emq_native.errors import InvalidArgument, Unavailable, WrongType
from emq_native.fence import IDENTITIES, fence_key
from emq_native.session import Session, is_clustered

__all__ = ["Fence", "claim", "move", "show"]

_WIRES = {identity: wire for wire, identity in IDENTITIES.items()}


@dataclass(frozen=True, slots=True)
class Fence:
    """What stands at the fence's key.

    key: its name.   value: the string, None when the key is absent or no string.   is_string: False for another kind.
    ttl_ms: milliseconds until the key expires by itself, None when it stays, as a fence should.
    """

    key: str
    value: str | None
    is_string: bool = True
    ttl_ms: int | None = None

    @property
    def wire(self) -> int | None:
        """The wire whose executor may write: 4, 6, or None when it is unclaimed or foreign."""
        return _WIRES.get(self.value or "")

    def __str__(self) -> str:
        if not self.is_string:
            return "not a string"
        return "unclaimed" if self.value is None else self.value or "an empty string"


def show(target: object, *, queue: str | None = None) -> Fence:
    """Read the fence. Raises InvalidArgument, Unavailable, PermissionDenied."""
    with _session(target) as session:
        return read(session, _key(session, queue))


def claim(target: object, *, wire: int, queue: str | None = None) -> Fence:
    """Claim an unclaimed node for wire 4 or 6; what is there already stays. Returns what the fence holds then.

    It was a success when the result's `wire` is the one asked for. Raises InvalidArgument, Unavailable, OutOfMemory,
    PermissionDenied.
    """
    identity = _identity(wire)
    with _session(target) as session:
        key = _key(session, queue)
        session.send_following("SET", key, identity, "NX")
        return read(session, key)


def move(target: object, *, source: int, to: int, queue: str | None = None) -> tuple[bool, Fence]:
    """Hand the node from wire `source` to wire `to`, unless the fence is not `source`'s or changes meanwhile.

    Returns whether it was moved, and what the fence holds then. Raises as `claim`.
    """
    if source == to:
        raise InvalidArgument("a move goes from one wire to the other")
    old, new = _identity(source), _identity(to)
    with _session(target) as session:
        key = _key(session, queue)
        session.send_following("WATCH", key)
        if session.asking:
            raise Unavailable("TRYAGAIN the slot of the fence is being moved to another node")
        found = read(session, key)
        if found.value != old:
            return False, found
        session.send("MULTI")
        session.send("SET", key, new)
        moved = session.send("EXEC") is not None
        return moved, read(session, key)


def read(session: Session, key: bytes) -> Fence:
    """The fence at `key`, wherever in the cluster it is."""
    name = key.decode()
    try:
        value = session.send_following("GET", key)
    except WrongType:
        return Fence(name, None, is_string=False, ttl_ms=_ttl(session, key))
    if value is None:
        return Fence(name, None)
    return Fence(name, value.decode("utf-8", "backslashreplace"), ttl_ms=_ttl(session, key))


def _ttl(session: Session, key: bytes) -> int | None:
    left = int(session.send_following("PTTL", key))
    return left if left >= 0 else None


def _session(target: object) -> Session:
    return target if isinstance(target, Session) else Session(target)


def _identity(wire: int) -> str:
    if isinstance(wire, bool) or wire not in IDENTITIES:
        raise InvalidArgument(f"wire is 4 or 6, not {wire!r}")
    return IDENTITIES[wire]


def _key(session: Session, queue: str | None) -> bytes:
    if is_clustered(session):
        if queue is None:
            raise InvalidArgument("in cluster mode each queue has its own fence: name the queue")
        return fence_key(queue_key(queue))
    if queue is not None:
        raise InvalidArgument("outside cluster mode one fence guards all queues of the database: name no queue")
    return fence_key(None)
