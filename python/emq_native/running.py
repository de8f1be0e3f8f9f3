"""Workers in the foreground of a process, from their start to the signal that ends them."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from emq_native.worker import Worker

__all__ = ["run"]

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


def run(*workers: Worker) -> None:
    """Run workers together until they end. SIGTERM and SIGINT stop them, a second one makes them leave at once.

    When one ends by an error, the others are stopped. Raises that error.
    """
    with _bell(SIGNALS) as (reader, ring):
        for worker in workers:
            worker._at_end.append(ring)
        for worker in workers:
            worker.start()
        left = len(workers)
        while left:
            if os.read(reader, 1) == b"s":
                for worker in workers:
                    worker.stop()
            else:
                left -= 1
                failed = [worker for worker in workers if worker._error is not None]
                if failed and left:
                    for worker in workers:
                        if worker not in failed and not worker._ended.is_set():
                            worker.stop()
    for worker in workers:
        worker.join()


@contextmanager
def _bell(signals: Sequence[signal.Signals]) -> Iterator[tuple[int, Callable[[], object]]]:
    """A pipe that says "s" for each signal. A handler may do no more: what it interrupts may hold any lock."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)

    def heard(number: int, frame: FrameType | None) -> None:
        os.write(writer, b"s")

    main = threading.current_thread() is threading.main_thread()
    previous = {number: signal.signal(number, heard) for number in signals} if main else {}
    try:
        yield reader, lambda: os.write(writer, b"e")
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        os.close(reader)
        os.close(writer)
