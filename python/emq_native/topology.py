"""What CLUSTER NODES tells: the primaries of a cluster and the slots that each serves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Primary", "primaries"]


@dataclass(frozen=True, slots=True)
class Primary:
    """A primary. host: "" for the address by which the node that answered was reached; slots: ranges, ends included."""

    host: str
    port: int
    slots: tuple[tuple[int, int], ...]

    def serves(self, slot: int) -> bool:
        """Whether a slot is its own."""
        return any(first <= slot <= last for first, last in self.slots)


def primaries(reply: bytes) -> Iterator[Primary]:
    """The primaries in the reply to CLUSTER NODES that have an address, also those without slots."""
    for line in reply.decode("utf-8", "replace").splitlines():
        fields = line.split()
        flags = fields[2].split(",") if len(fields) > 2 else []
        if "master" not in flags or "noaddr" in flags:
            continue
        endpoint, _, names = fields[1].partition(",")
        host, _, port = endpoint.partition("@")[0].rpartition(":")
        words = (word.partition("-") for word in fields[8:] if not word.startswith("["))
        slots = tuple((int(first), int(last or first)) for first, _, last in words)
        yield Primary(host or names.partition(",")[0], int(port), slots)
