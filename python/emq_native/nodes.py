"""How a process gets the node number, 0 to 1023, that its ids carry.

    configured   the caller says which; it must be unique among the living processes of a fleet
    leased       one that no other process of this host holds; the lease ends with the process
    drawn        10 random bits, where this host cannot lease

A lease is an abstract Unix socket bound to the number's name: every user of the host can take one, the kernel takes it
back however the process ends, and nothing is left behind.

On one host, leased nodes differ. Between hosts, and where nodes are drawn, chance decides: of n processes about
n * (n - 1) / 2048 pairs have the same number, 2 pairs of 64 processes. Such a pair makes an equal id only when both
mint in the same millisecond, and then with odds of 1 in 1024 for one id each, of about k in 512 for k ids each, because
every fresh millisecond starts at a random sequence. A fleet configures its nodes instead.
"""

from __future__ import annotations

import errno
import os
import random
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Literal

NODES: Final = 1024

_entropy: Final = random.SystemRandom()


class Lease:
    """The hold of this process on one node of this host."""

    __slots__ = ("_descriptor",)

    def __init__(self, node: int) -> None:
        """Raises OSError: EADDRINUSE when another process holds the node, else this host cannot lease."""
        self._descriptor = -1
        if sys.platform != "linux":
            raise OSError(errno.EAFNOSUPPORT, "abstract sockets are a Linux feature")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as holder:
            holder.bind(f"\0emq-native/node/{node}")
            self._descriptor = holder.detach()

    def release(self) -> None:
        """Gives the node back. In a forked child this lets go of the copy only; the parent's hold goes on."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    __del__ = release


@dataclass(frozen=True, slots=True)
class Node:
    """The node of one process, and how the process came by it."""

    number: int
    origin: Literal["configured", "leased", "drawn"]
    pid: int = field(default_factory=os.getpid, repr=False)
    _lease: Lease | None = field(default=None, repr=False, compare=False)

    @property
    def shared(self) -> bool:
        """Whether a process elsewhere may have the same number, so that chance must keep their ids apart."""
        return self.origin != "configured"

    def release(self) -> None:
        """Ends the lease, if there is one."""
        if self._lease is not None:
            self._lease.release()


def configured(number: int) -> Node:
    """The node that the caller chose. It is leased as well if it is free, so that no neighbour leases it."""
    try:
        return Node(number, "configured", _lease=Lease(number))
    except OSError:
        return Node(number, "configured")


def acquired(besides: int | None = None, *, lease: Callable[[int], Lease] = Lease) -> Node:
    """A node other than `besides`: leased, tried from a random one, or drawn where that fails."""
    first = _entropy.randrange(NODES)
    candidates = [n % NODES for n in range(first, first + NODES) if n % NODES != besides]
    for number in candidates:
        try:
            held = lease(number)
        except OSError as failure:
            if failure.errno == errno.EADDRINUSE:
                continue
            break
        # The last holder may have minted in this very millisecond.
        time.sleep(0.002)
        return Node(number, "leased", _lease=held)
    return Node(candidates[0], "drawn")
