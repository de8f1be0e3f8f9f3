"""Several worker processes under one supervisor, which starts anew those that die and hands its signals on.

Processes are spawned, not forked: each imports what it runs. One that ends by itself in order is not started again.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, Final

from emq_native.errors import EmqError
from emq_native.running import bell
from emq_native.terms import logger
from emq_native.wiring import backoff

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

__all__ = ["WorkerFailed", "run_processes"]

HOPELESS: Final = 3
"""The exit status of a process for which starting anew is pointless."""

SETTLED_S: Final = 30.0
"""A process that lived as long is none that fails at once."""


class WorkerFailed(EmqError, RuntimeError):
    """A worker process ended by an error that starting anew does not mend; its own output tells which."""


@dataclass(eq=False)
class _Place:
    """Where one process runs after another."""

    number: int
    process: BaseProcess | None = None
    started: float = 0.0
    failures: int = 0
    due: float = field(default_factory=time.monotonic)
    done: bool = False

    def fails(self, how: str) -> None:
        """The process is not there any more: another one is due soon, later with each that fails at once."""
        self.failures = 0 if time.monotonic() - self.started > SETTLED_S else self.failures + 1
        pause = backoff(self.failures, 1.0)
        self.due = time.monotonic() + pause
        logger.error("worker process %d %s; started anew in %.1f s", self.number, how, pause)


def run_processes(work: Callable[[], Any], processes: int) -> None:
    """Run `work` in so many processes until they end. work: can be pickled, and ends by itself at SIGTERM.

    SIGTERM and SIGINT are handed on as SIGTERM, each time they come; what is left after the third is killed. Call it
    in the main thread. Raises WorkerFailed.
    """
    context = multiprocessing.get_context("spawn")
    places = [_Place(number) for number in range(processes)]
    signals = 0
    hopeless = False
    with bell() as (reader, rung):
        try:
            while not all(place.done for place in places):
                now = time.monotonic()
                for place in places:
                    if place.process is None and not place.done and place.due <= now:
                        process = context.Process(
                            target=_child, args=(work,), name=f"emq-worker-{place.number}", daemon=True
                        )
                        place.started = now
                        try:
                            process.start()
                        except OSError as error:
                            place.fails(f"cannot be started, {error}")
                        else:
                            place.process = process
                alive = [place for place in places if place.process is not None]
                waits = [place.due - now for place in places if place.process is None and not place.done]
                ready = wait(
                    [reader, *(place.process.sentinel for place in alive if place.process)],
                    max(0.0, min(waits)) if waits else None,
                )
                heard = reader in ready and rung()
                signals += heard
                for place in alive:
                    hopeless = _see_to(place, stopping=bool(signals) or hopeless) or hopeless
                if signals or hopeless:
                    for place in places:
                        place.done = place.done or place.process is None
                if heard or (hopeless and not signals):
                    signals = signals or 1
                    for place in places:
                        if place.process is not None:
                            (place.process.kill if signals > 2 else place.process.terminate)()
        finally:
            for place in places:
                if place.process is not None:
                    place.process.kill()
                    place.process.join()
    if hopeless:
        raise WorkerFailed("a worker process gave up: see its messages")


def _see_to(place: _Place, stopping: bool) -> bool:
    """Note the end of a process, if it has ended. Returns whether starting anew would be pointless."""
    process = place.process
    if process is None or process.exitcode is None:
        return False
    status, place.process = process.exitcode, None
    process.join()
    place.done = stopping or status in (0, HOPELESS)
    if not place.done:
        place.fails(f"ended with status {status}")
    return status == HOPELESS


def _child(work: Callable[[], Any]) -> None:
    # Ctrl-C reaches the whole group of the terminal; the supervisor turns it into one SIGTERM.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    try:
        work()
    except EmqError as error:
        logger.error("the worker gave up: %s", error)
        sys.exit(HOPELESS)


def _end_with(parent: BaseProcess) -> None:
    """A supervisor that is killed takes its processes along, in order."""
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
