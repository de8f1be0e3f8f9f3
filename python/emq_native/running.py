"""Workers in the foreground of a process, from their start to the signal that ends them."""

from __future__ import annotations

import asyncio
import os
import random
import select
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Final, TypeVar

from emq_native.errors import Unavailable
from emq_native.terms import logger, tell_stopping
from emq_native.wiring import backoff

if TYPE_CHECKING:
    from emq_native.worker import Worker

__all__ = ["apatiently", "bell", "patiently", "run"]

R = TypeVar("R")

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


def run(*workers: Worker) -> None:
    """Run workers together until they end. SIGTERM and SIGINT stop them, a second one makes them leave at once.

    When one ends by an error, the others are stopped. Raises that error.
    """
    left, signals, stopped = len(workers), 0, False
    ended, ring = os.pipe()
    with bell() as (reader, rung):
        try:
            for worker in workers:
                worker._at_end.append(lambda: os.write(ring, b"e"))
                worker.start()
            # The second signal is for those, too, that wait for a thread that is about to answer.
            while left and signals < 2:
                ready, _, _ = select.select([reader, ended], [], [])
                heard = reader in ready and rung()
                if heard:
                    tell_stopping(again=signals > 0, grace=max(worker.terms.grace for worker in workers))
                signals += heard
                if ended in ready:
                    left -= len(os.read(ended, left))
                if signals > 1 or (not stopped and (heard or any(worker._error for worker in workers))):
                    stopped = True
                    for worker in workers:
                        worker.stop()
        except BaseException:
            for worker in (*workers, *workers):
                worker.stop()
            raise
    if not left:
        os.close(ended)
        os.close(ring)
    for worker in workers:
        if worker._error is not None:
            raise worker._error


def patiently(attempt: Callable[[], R]) -> R:
    """What the first attempt returns that finds the node: as at work, one that does not answer is waited for.

    Raises what no waiting can mend, for example PermissionDenied and WireRefused.
    """
    for number in count():
        try:
            return attempt()
        except Unavailable as error:
            time.sleep(_pause(number, error))
    raise AssertionError("attempts do not end")


async def apatiently(attempt: Callable[[], Awaitable[R]]) -> R:
    """As `patiently`, for asyncio."""
    for number in count():
        try:
            return await attempt()
        except Unavailable as error:
            await asyncio.sleep(_pause(number, error))
    raise AssertionError("attempts do not end")


def _pause(number: int, error: Unavailable) -> float:
    pause = backoff(number, random.random())
    logger.warning("the node is not there, next try in %.1f s: %s", pause, error)
    return pause


@contextmanager
def bell() -> Iterator[tuple[int, Callable[[], bool]]]:
    """A file that can be read for each signal, and the call that reads one: True for SIGTERM and SIGINT.

    The signals are heard in the main thread only. Their handlers do nothing, because what they interrupt may hold any
    lock; it is the interpreter that writes to the file, whatever thread the signal came to.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    main = threading.current_thread() is threading.main_thread()
    # The file before the handlers, and after them at the end: no signal finds a handler without the file.
    before = signal.set_wakeup_fd(writer) if main else -1
    previous = {number: signal.signal(number, lambda *_: None) for number in SIGNALS} if main else {}
    try:
        yield reader, lambda: os.read(reader, 1)[0] in SIGNALS
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        if main:
            signal.set_wakeup_fd(before)
        os.close(reader)
        os.close(writer)
