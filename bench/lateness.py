"""How late does an idle worker have a job: one that is enqueued, and one that falls due?

Waiters have nothing to do; now and then a job comes. Beside the module's wait stands BLPOP, its jobs in turn with ours.
Raw sockets tell what the server does, redis-py and the package's worker what a program gets.
"""

from __future__ import annotations

import multiprocessing
import random
import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timezone

import redis

import emq_native
from bench.common import MS, Size, Table, aside, percentile, served
from bench.load import Client, encode, ids
from bench.waiters import BLPOP, NEXT, Site, crowd
from emq_native import Worker
from emq_native.executors import NATIVE, SCRIPTED
from emq_native.server import Server

WAITERS = 8


@dataclass(frozen=True)
class Sizes:
    """wakes, due: of raw sockets. native, scripted: jobs for each of eight waiters in Python, ready in ready_s."""

    wakes: int
    due: int
    native: int
    scripted: int
    ready_s: float


SIZES: dict[Size, Sizes] = {
    "full": Sizes(1_000, 1_000, 50, 8, 1.5),
    "quick": Sizes(300, 300, 15, 3, 1.5),
    "smoke": Sizes(10, 10, 1, 1, 0.1),
}

NOTE = """\
Milliseconds from the instant a job was sent, or is due, until its waiter has it, on raw sockets or in a program
with eight waiters; everybody is idle between two jobs. A scripted worker has nothing to wait on for jobs without a
lane, so it looks again and again."""

COLUMNS = {
    "executor": "", "what": "", "waiter": "", "samples": ",", "p50_ms": ".3f", "p99_ms": ".3f", "longest_ms": ".3f",
}  # fmt: skip


@dataclass
class Late:
    """Milliseconds."""

    executor: str
    what: str
    waiter: str
    samples: int
    p50_ms: float
    p99_ms: float
    longest_ms: float


def late(executor: str, what: str, waiter: str, samples: list[float]) -> Late:
    return Late(
        executor, what, waiter, len(samples), percentile(samples, 0.5), percentile(samples, 0.99), max(samples)
    )  # fmt: skip


def measure(size: Size) -> list[Table]:
    """One table, `lateness`."""
    sizes = SIZES[size]
    rows = [*raw_wakes(sizes.wakes), raw_due(sizes.due), *in_python(sizes)]
    return [Table("lateness", "How late does an idle worker have its job?", NOTE, COLUMNS, rows)]


# Raw sockets


def raw_wakes(wakes: int) -> Iterator[Late]:
    """One waiter by BLPOP and one by EMQ.NEXT, woken in turn after uneven pauses."""
    with ExitStack() as stack:
        stack.enter_context(aside())
        sites = []
        for by in (BLPOP, NEXT):
            server = stack.enter_context(served(by.executor))
            selector = stack.enter_context(crowd(server, 1, by))
            sites.append(Site(server, by, selector, stack.enter_context(Client(server))))
        for _ in range(wakes):
            for site in sites:
                time.sleep(random.uniform(0.001, 0.006))
                site.wake()
        for site, executor in zip(sites, ("(list)", "native"), strict=True):
            yield late(executor, "enqueued", f"socket, {site.by.name}", [each / MS for each in site.late])


def raw_due(wanted: int) -> Late:
    """A waiter on each of eight queues by EMQ.NEXT with PROMOTE; as soon as one has its job, the next is scheduled."""
    samples: list[float] = []
    with ExitStack() as stack:
        stack.enter_context(aside())
        server = stack.enter_context(served(NATIVE))
        selector = stack.enter_context(selectors.DefaultSelector())
        producer = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
        due: dict[bytes, int] = {}

        def schedule(queue: bytes) -> None:
            due[queue] = time.time_ns() // MS + random.randint(20, 100)
            producer.sendall(encode(b"EMQ.SCHEDULE", queue, ids(1)[0], b"x" * 100, b"AT", b"%d" % due[queue]))
            if producer.recv(64) != b":1\r\n":
                raise ConnectionError("a job was not scheduled")

        for number in range(WAITERS):
            queue = b"emq:{%d}" % number
            waiter = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            ask = encode(b"EMQ.NEXT", queue, b"60000", b"FROM", b"FLAT", b"BLOCK", b"5000", b"PROMOTE", b"100")
            waiter.sendall(ask)
            selector.register(waiter, selectors.EVENT_READ, (queue, ask))
            schedule(queue)
        while len(samples) < wanted:
            for key, _ in selector.select(30):
                (queue, ask), woken = key.data, key.fileobj
                assert isinstance(woken, socket.socket)
                answer, now = woken.recv(4096), time.time_ns()
                woken.sendall(ask)
                if b"x" * 100 in answer:  # else the wait ended: something is due earlier than it knew
                    samples.append(now / MS - due[queue])
                    schedule(queue)
    return late("native", "due", "socket, EMQ.NEXT", samples)


# Programs. A payload is the instant, in nanoseconds, at which its job should begin.

Note = Callable[[bytes], None]
Waiter = Callable[[Server, str, int, Note], None]


def list_waiter(server: Server, name: str, jobs: int, note: Note) -> None:
    with server.client(socket_timeout=60) as client:
        for _ in range(jobs):
            note(client.blpop([name], 0)[1])


def worker_waiter(server: Server, name: str, jobs: int, note: Note) -> None:
    seen = threading.Semaphore(0)

    def handle(job: emq_native.HeldJob) -> None:
        note(job.payload or b"")
        seen.release()

    with emq_native.connect(server.url) as bus:
        worker = Worker(bus.queue(name), handle)
        worker.start()
        for _ in range(jobs):
            seen.acquire()
        worker.stop()
        worker.join()


def send(url: str, what: str, names: list[str], gap: float, ready_s: float) -> None:
    """The process beside: a job for each name in turn, at uneven distances of `gap` seconds in the mean."""
    with redis.Redis.from_url(url) as client, emq_native.connect(url) as bus:
        time.sleep(ready_s)  # all wait
        for name in names:
            time.sleep(gap * random.uniform(0.5, 1.5))
            now = time.time_ns()
            if what == "BLPOP":
                client.rpush(name, b"%d" % now)
            elif what == "enqueued":
                bus.queue(name).enqueue(b"%d" % now)
            else:
                due = now // MS + 100
                bus.queue(name).enqueue_at(b"%d" % (due * MS), datetime.fromtimestamp(due / 1000, timezone.utc))


def in_python(sizes: Sizes) -> Iterator[Late]:
    with served(NATIVE, pinned=False) as server:
        samples = lateness(server, "BLPOP", list_waiter, sizes.native, 0.015, sizes.ready_s)
        yield late("(list)", "enqueued", "redis-py, BLPOP", samples)
        for what in ("enqueued", "due"):
            samples = lateness(server, what, worker_waiter, sizes.native, 0.015, sizes.ready_s)
            yield late("native", what, "Worker", samples)
    # So far apart that each waiter has come to the longest pause between two looks.
    with served(SCRIPTED, pinned=False) as server:
        for what in ("enqueued", "due"):
            samples = lateness(server, what, worker_waiter, sizes.scripted, 0.12, sizes.ready_s)
            yield late("scripted", what, "Worker", samples)


def lateness(server: Server, what: str, waiter: Waiter, each: int, gap: float, ready_s: float) -> list[float]:
    names = [f"{what}-{number}" for number in range(WAITERS)]
    samples: list[float] = []

    def note(payload: bytes) -> None:
        samples.append((time.time_ns() - int(payload)) / MS)

    sender = multiprocessing.get_context("spawn").Process(
        target=send, args=(server.url, what, names * each, gap, ready_s)
    )
    sender.start()
    with ThreadPoolExecutor(WAITERS) as pool:
        list(pool.map(lambda name: waiter(server, name, each, note), names))
    sender.join()
    return samples
