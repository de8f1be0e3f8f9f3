"""The fence: which executor may write to a node, and what a connector makes of the answer.

The fence is one string key. Its value is the identity of the executor that owns the node, or, in cluster mode, one
queue. A connector asks for it on every connect, before anything of a caller is sent, and never remembers a verdict.

Everything here is without I/O. `verify` is a generator: it yields the commands of a round trip and is sent their
answers, each bytes, None, or the exception that the server's error line became. It returns the wire of the node, or
raises.

    answer to GET            wire 4                       wire 6, and "auto"
    own identity             pass                         pass
    nothing                  SET NX, then GET again       WireUnclaimed
    another string           WireMismatch                 WireMismatch
    WRONGTYPE                WireMismatch                 WireMismatch
    any other error          that error: no verdict       that error: no verdict
"""

from __future__ import annotations

from typing import Any, Final

from emq_native._core import IDENTITY, IDENTITY_SCRIPTED
from emq_native.dispatch import Steps
from emq_native.errors import InvalidArgument, WireMismatch, WireUnclaimed, WrongType

__all__ = ["IDENTITIES", "Wire", "fence_key", "parse_wire", "verify"]

Wire = int | None
"""4, 6, or None for whichever of them owns the node."""

IDENTITIES: Final = {4: IDENTITY_SCRIPTED, 6: IDENTITY}
KEY: Final = b"{emq}:version"
NOT_A_STRING: Final = "(not a string)"

_WIRES: Final = {identity.encode(): wire for wire, identity in IDENTITIES.items()}


def parse_wire(wire: object) -> Wire:
    """The argument `wire` of connect: 4, 6 or "auto". Raises InvalidArgument."""
    if wire == "auto":
        return None
    if isinstance(wire, int) and not isinstance(wire, bool) and wire in IDENTITIES:
        return wire
    raise InvalidArgument(f'wire is 4, 6 or "auto", not {wire!r}')


def fence_key(queue_key: bytes | None) -> bytes:
    """The key of the fence: of one queue in cluster mode, of the logical database without a queue."""
    return KEY if queue_key is None else queue_key + b":version"


def verify(wire: Wire, key: bytes) -> Steps[int]:
    """Ask for the fence, claim it where that is ours to do, and judge. Returns 4 or 6.

    Raises WireMismatch or WireUnclaimed: a refusal; any other exception: no verdict. Wire 6 and "auto" never write.
    """
    (found,) = yield [(b"GET", key)]
    if wire == 4 and found is None:
        (claimed,) = yield [(b"SET", key, IDENTITY_SCRIPTED.encode(), b"NX")]
        if isinstance(claimed, BaseException):
            raise claimed
        (found,) = yield [(b"GET", key)]
    return _judge(wire, key, found)


def _judge(wire: Wire, key: bytes, found: Any) -> int:
    expected = " or ".join(IDENTITIES.values()) if wire is None else IDENTITIES[wire]
    if isinstance(found, WrongType):
        raise WireMismatch(expected, NOT_A_STRING)
    if isinstance(found, BaseException):
        raise found
    if found is None:
        raise WireUnclaimed(expected, key.decode())
    owner = _WIRES.get(found)
    if owner is None or wire not in (None, owner):
        raise WireMismatch(expected, found.decode("utf-8", "backslashreplace"))
    return owner
