"""Branded ids: what they say, and how new ones are minted.

An id is 14 characters, three namespace letters and 11 base62 digits. The digits are a 63-bit number: 41 bits of
milliseconds since 2024, 10 bits of node, 12 bits of sequence. Within a namespace, ids sort by the time of their mint.

    mint()                       'JOB0NgWEfAEJft'
    JobId("JOB0NgWEfAEJfs").ms   1780512970164, and .node .sequence .datetime .value
    is_job_id("JOB0NgWEfAEJ")    False

A process mints from one cell, whoever asks: its ids strictly increase over threads, bursts and clocks that step back. A
forked child goes on from its parent's cell under a node of its own.
"""

from __future__ import annotations

import datetime as dt
import os
import random
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from emq_native import _core, nodes
from emq_native.errors import InvalidArgument, InvalidId
from emq_native.nodes import Node

if TYPE_CHECKING:
    from typing_extensions import Self

EPOCH_MS: Final = _core.EPOCH_MS
"""Unix milliseconds of the first instant that an id can hold, 2024-01-01T00:00:00Z."""

LAST_MS: Final = EPOCH_MS + (1 << 41) - 1
"""Unix milliseconds of the last one, 2093-09-06T15:47:35.551Z."""

_MOST: Final = 100_000_000
"""Most ids at once: those of 24 seconds, 1.4 GB of text."""

_UNIX_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)


class BrandedId(str):
    """A text that is an id, of any namespace. Raises InvalidId, whose `reason` says what is wrong first."""

    __slots__ = ()

    def __new__(cls, text: str | bytes) -> Self:
        _core.id_decode(text)
        return super().__new__(cls, text if isinstance(text, str) else text.decode("ascii"))

    @classmethod
    def of(cls, namespace: str, value: int) -> Self:
        """The id of a number, 0 to 2**63 - 1, in a namespace of three letters A..Z."""
        return cls(_core.id_encode(namespace, value))

    @property
    def namespace(self) -> str:
        """Its three letters."""
        return self[:3]

    @property
    def value(self) -> int:
        """The number behind its digits, 0 to 2**63 - 1."""
        return _core.id_decode(self)[1]

    @property
    def ms(self) -> int:
        """Unix milliseconds of the mint."""
        return (self.value >> 22) + EPOCH_MS

    @property
    def node(self) -> int:
        """The node that minted it, 0 to 1023."""
        return self.value >> 12 & 1023

    @property
    def sequence(self) -> int:
        """Its number within the millisecond, 0 to 4095."""
        return self.value & 4095

    @property
    def datetime(self) -> dt.datetime:
        """The time of the mint, aware, in UTC."""
        return _UNIX_EPOCH + dt.timedelta(milliseconds=self.ms)

    @property
    def hash32(self) -> int:
        """A placement hash of the number, 0 to 2**32 - 1."""
        return _core.id_hash32(self.value)


class JobId(BrandedId):
    """A text that is a job's id, of namespace JOB. Raises InvalidJobId, whose `refusal` is the server's line."""

    __slots__ = ()

    def __new__(cls, text: str | bytes) -> Self:
        return str.__new__(cls, _core.job_id(text).decode("ascii"))

    @classmethod
    def first_at(cls, moment: int | dt.datetime) -> Self:
        """The smallest id of an instant, given in Unix milliseconds or as an aware datetime.

        It is the lower end of a range by time. Raises InvalidArgument outside of EPOCH_MS to LAST_MS.
        """
        if isinstance(moment, dt.datetime):
            if moment.tzinfo is None:
                raise InvalidArgument("a datetime must be aware")
            moment = (moment - _UNIX_EPOCH) // dt.timedelta(milliseconds=1)
        ms = _core.as_integer(moment, "the Unix milliseconds of an id", EPOCH_MS, LAST_MS)
        return cls(_core.id_encode("JOB", ms - EPOCH_MS << 22))


def is_id(text: str | bytes) -> bool:
    """Whether a text is a branded id of any namespace."""
    try:
        _core.id_decode(text)
    except InvalidId:
        return False
    return True


def is_job_id(text: str | bytes) -> bool:
    """Whether a text is a job id."""
    try:
        _core.job_id(text)
    except InvalidId:
        return False
    return True


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


class Mint:
    """Mints ids. A process has one, the one behind `mint()`; another object would be a second cell.

    clock: answers Unix milliseconds. acquire: answers a node other than the given one.
    """

    def __init__(
        self,
        clock: Callable[[], int] = _wall_ms,
        acquire: Callable[[int | None], Node] = nodes.acquired,
    ) -> None:
        self._clock = clock
        self._acquire = acquire
        self._cell = _core.Cell(clock())
        self._node: Node | None = None
        self._left: int | None = None
        self._settling = threading.Lock()
        self._draw = random.Random().getrandbits

    def __call__(self, namespace: str = "JOB") -> str:
        """The next id in a namespace of three letters A..Z. Raises InvalidId, MintExhausted."""
        return self._next(namespace, 1)

    def many(self, count: int) -> list[str]:
        """The next `count` job ids, 0 or more. Raises InvalidArgument, MintExhausted."""
        _core.as_integer(count, "the number of ids", 0, _MOST)
        texts = self._next("JOB", count)
        return [texts[start : start + 14] for start in range(0, len(texts), 14)]

    def _next(self, namespace: str, count: int) -> str:
        node = self._node
        if node is None or node.pid != os.getpid():
            node = self._settle()
        return self._cell.mint(self._clock(), node.number, self._draw(10) if node.shared else 0, namespace, count)

    @property
    def node(self) -> Node:
        """The node of this process, which it acquires now if it has none yet."""
        return self._settle()

    @property
    def last_ms(self) -> int:
        """Unix milliseconds of the last id: later than the clock while a burst or a step back lasts."""
        return self._cell.last_ms

    def configure(self, number: int) -> None:
        """Mints under this node from now on, in this process; a child that is forked later gets a node of its own."""
        _core.as_integer(number, "a node", 0, nodes.NODES - 1)
        with self._settling:
            self._leave()
            self._node = nodes.configured(number)

    def forked(self) -> None:
        """To be called in a forked child, before anything else: lets go of what belongs to the parent."""
        self._settling = threading.Lock()
        self._draw = random.Random().getrandbits
        self._leave()

    def _settle(self) -> Node:
        with self._settling:
            if self._node is not None and self._node.pid != os.getpid():
                self._leave()
            if self._node is None:
                self._node = self._acquire(self._left)
            return self._node

    def _leave(self) -> None:
        if self._node is not None:
            self._left = self._node.number
            self._node.release()
            self._node = None


_mint: Final = Mint()
os.register_at_fork(after_in_child=_mint.forked)


def mint(namespace: str = "JOB") -> str:
    """A new id, later than every other of this process and, with the nodes well chosen, found nowhere else.

    Raises InvalidId for a namespace that is not three letters A..Z, MintExhausted when the clock is beyond 2093.
    """
    return _mint(namespace)


def mint_many(count: int) -> list[str]:
    """New job ids, 0 or more, as `mint` makes them one by one. Raises InvalidArgument for any other number,
    MintExhausted as `mint` does.
    """
    return _mint.many(count)


def configure_node(number: int) -> None:
    """Fixes the node of this process, 0 to 1023; it must be unique among the living processes that mint.

    Without it the process leases a number that no other process of its host has, which is safe on one host. A child
    that is forked later does not inherit the number: call this in the child. Raises InvalidArgument.
    """
    _mint.configure(number)


def node() -> Node:
    """The node that this process mints under: `.number`, and `.origin` configured, leased or drawn."""
    return _mint.node
