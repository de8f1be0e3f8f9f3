"""How soon a waiting worker has a job: measured with a queue of the watcher's own.

A client waits in EMQ.NEXT, another sends EMQ.ENQUEUE; what is measured is the time from then until the waiting one has
the job: one way to the server, the wake, one way back. Needs the module and a user who may work on the queue QUEUE,
which in a cluster needs its fence too. One watcher to a node: two would take each other's jobs.
"""

from __future__ import annotations

import time
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from emq_native._core import queue_key
from emq_native.errors import EmqError
from emq_native.ids import mint
from emq_native.session import Session

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["QUEUE", "Canary", "NoWake"]

QUEUE: Final = "emq-native.canary"
PAYLOAD: Final = b"emq-native metrics measures how soon a waiting worker is woken"
LEASE_MS: Final = 10_000
WAIT_MS: Final = 4_000
"""Less than the five seconds after which a connection gives up on an answer."""

HEAD_SECONDS: Final = 0.05
"""The waiting client sends so long before the other one, so that the server has it among those that wait."""


class NoWake(EmqError):
    """The waiting client got no job, or another one."""


class Canary:
    """The two connections and the queue, which is gone at the end of a `with` block.

    target: as for Session. In a cluster the connections go to the node that serves the queue.
    """

    def __init__(self, target: object) -> None:
        self._key = queue_key(QUEUE)
        self._waiter = Session(target)
        self._sender = Session(target)
        self._clean = False

    def measure(self) -> float:
        """Seconds from EMQ.ENQUEUE until the waiting client has the job. Raises EmqError; the next call starts anew."""
        try:
            return self._measured()
        except BaseException:
            # A reply may be under way, and a job left: the next measurement must not take them for its own.
            self._clean = False
            self._close()
            raise

    def _measured(self) -> float:
        if not self._clean:
            self.clear()
            self._waiter.send_following("EMQ.COUNTS", self._key)
            self._clean = True
        job = mint().encode()
        self._waiter.begin("EMQ.NEXT", self._key, LEASE_MS, "BLOCK", WAIT_MS)
        time.sleep(HEAD_SECONDS)
        began = time.perf_counter()
        self._sender.begin("EMQ.ENQUEUE", self._key, job, PAYLOAD)
        _, jobs, *_ = self._waiter.finish()
        seconds = time.perf_counter() - began
        self._sender.finish()
        for each in jobs:
            self._sender.send("EMQ.COMPLETE", self._key, each[0], each[2])
        if [each[0] for each in jobs] != [job]:
            raise NoWake(f"the waiting client got {_named(jobs)} and not the job that was sent for it")
        return seconds

    def clear(self) -> None:
        """Delete the queue. Raises EmqError."""
        self._sender.send_following("EMQ.PAUSE", self._key)
        while self._sender.send("EMQ.OBLITERATE", self._key, "FORCE"):
            pass

    def _close(self) -> None:
        self._waiter.close()
        self._sender.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(EmqError):
            self.clear()
        self._close()


def _named(jobs: list[Any]) -> str:
    return ", ".join(str(each[0], "utf-8", "replace") for each in jobs) or "none"
