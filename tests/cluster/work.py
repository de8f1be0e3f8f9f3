"""People at work on one queue while its nodes change under them."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING

import emq_native
from emq_native import Queue
from emq_native.errors import Refused, Unavailable
from emq_native.executors import Executor
from emq_native.values import Job

if TYPE_CHECKING:
    from typing_extensions import Self

LEASE = 30.0
"""Longer than the servers hold up all calls while a queue changes its node: whoever works keeps what he has."""

GROUPS = (None, "g", "h")


class Work:
    """A producer and two workers, each with a connection of its own, until the block ends and all work is done.

    Everyone bears what a node in motion may answer: an Unavailable, after which a lost claim waits for its lease to
    end. Any other error fails the block, and so does work that does not end.
    """

    def __init__(self, url: str, executor: Executor, name: str) -> None:
        self.url, self.executor, self.name = url, executor, name
        self.admitted: list[str] = []
        self.completed: list[str] = []
        self.interrupted = 0
        self._errors: list[BaseException] = []
        self._closed = threading.Event()
        self._threads = [threading.Thread(target=self._be, args=(life,)) for life in (self._produce, *[self._run] * 2)]

    def _be(self, life: object) -> None:
        assert callable(life)
        try:
            with emq_native.connect(self.url, wire=self.executor.wire, cluster=True, resend=True) as bus:
                life(bus.queue(self.name))
        except BaseException as error:
            self._errors.append(error)

    def _produce(self, queue: Queue) -> None:
        number = 0
        while not self._closed.is_set():
            number += 1
            job_id = emq_native.mint()
            while True:
                try:
                    queue.enqueue(b"payload", id=job_id, group=GROUPS[number % 3])
                    break
                except Unavailable:
                    self.interrupted += 1
            self.admitted.append(job_id)
            time.sleep(0.002)

    def _run(self, queue: Queue) -> None:
        idle = 0.0
        while not (self._closed.is_set() and len(self.completed) >= len(self.admitted)):
            assert idle < 2 * LEASE, f"{len(self.admitted) - len(self.completed)} jobs are not done"
            job = None
            try:
                queue.promote()
                queue.reap()
                job = queue.claim(LEASE) or queue.claim_fair(LEASE)
                if job is not None:
                    self._work(queue, job)
            except Unavailable:
                self.interrupted += 1
            idle = 0.0 if job else idle + 0.01
            time.sleep(0 if job else 0.01)

    def _work(self, queue: Queue, job: Job) -> None:
        if job.token == 1 and int.from_bytes(job.id[-2:].encode(), "big") % 5 == 0:
            try:
                queue.retry(job, max_attempts=5, error="once more")
            except Refused as refused:
                if not refused.resent:  # else the first one counted
                    raise
            return
        while True:
            try:
                queue.complete(job)  # False: it was sent again, and the first one counted
                break
            except Unavailable:
                self.interrupted += 1
        self.completed.append(job.id)

    def goes_on(self, jobs: int = 50) -> None:
        """Wait until so many more jobs were done."""
        wanted, deadline = len(self.completed) + jobs, time.monotonic() + 30
        while len(self.completed) < wanted and not self._errors:
            assert time.monotonic() < deadline, "the work does not go on"
            time.sleep(0.005)

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed.set()
        for thread in self._threads:
            thread.join()
        if error is None:
            assert self._errors == []
            assert sorted(self.completed) == sorted(self.admitted)
