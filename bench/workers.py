"""How fast is a worker in Python, end to end: with threads, with asyncio, in one process and in two?

One process enqueues jobs, then works them off with a handler that does nothing. redis-py does the same with a plain
list, which knows no leases, retries or who holds what; the others are divided by its figures of the same round.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import redis

import emq_native
from bench.common import Size, Table, cpu_ns, median, ratio, served, spread
from bench.load import FILLING, Client, Verbs
from bench.load import ids as fresh_ids
from emq_native import Worker, aio
from emq_native.executors import NATIVE, SCRIPTED, Executor
from emq_native.server import Server

BATCH = 100
PAYLOAD = b"x" * 100
MOST_S = 60


@dataclass(frozen=True)
class Sizes:
    """jobs of a round, by what is worked off at a time."""

    rounds: int
    jobs: dict[int, int]
    fleet: int


SIZES: dict[Size, Sizes] = {
    "full": Sizes(5, {1: 1_000, BATCH: 5_000}, 10_000),
    "quick": Sizes(3, {1: 500, BATCH: 2_000}, 3_000),
    "smoke": Sizes(1, {1: 100, BATCH: 200}, 300),
}

NOTE = """\
Jobs per second, medians of {rounds} rounds: enqueued by one process, one by one or by the hundred; worked off by
one process with one runner and a handler that does nothing, one by one or in batches of 100; `whole` is both.
`ratio` is that of `whole` to the list loop one by one (LPUSH; BLMOVE and LREM) within each round. Calls and reads
of sockets are the server's count per job while jobs are worked off, calls of scripts included; microseconds of CPU
per job are those of the worker and of the server's main thread."""

COLUMNS = {
    "executor": "", "worker": "", "batch": ",", "jobs": ",", "enqueued": ",.0f", "worked": ",.0f", "whole": ",.0f",
    "spread": ".0%", "ratio": ".2f", "calls": ".2f", "reads": ".2f", "worker_us": ".0f", "server_us": ".0f",
}  # fmt: skip

FLEET_NOTE = """\
`Worker(...).run(processes=n)`: supervised processes with one runner each wait on an empty queue; then all jobs are
put there at once. Jobs per second from then until the last is completed, medians of {rounds} rounds of {jobs:,}
jobs; server microseconds per job. On two processors two workers share one of them with the server."""

FLEET_COLUMNS = {
    "executor": "", "processes": ",", "batch": ",", "jobs": ",", "worked": ",.0f", "spread": ".0%", "server_us": ".0f",
}  # fmt: skip


@dataclass
class Speed:
    """rounds: of `whole`. by_name: calls per job by the name of the command."""

    executor: str
    worker: str
    batch: int
    jobs: int
    enqueued: float
    worked: float
    whole: float
    spread: float
    ratio: float
    calls: float
    reads: float
    worker_us: float
    server_us: float
    rounds: list[float]
    by_name: dict[str, float]


@dataclass
class Fleet:
    """rounds: of `worked`."""

    executor: str
    processes: int
    batch: int
    jobs: int
    worked: float
    spread: float
    server_us: float
    rounds: list[float]


def measure(size: Size) -> list[Table]:
    """Two tables, `workers` and `fleets`."""
    sizes = SIZES[size]
    note = NOTE.format(rounds=sizes.rounds)
    fleet_note = FLEET_NOTE.format(rounds=sizes.rounds, jobs=sizes.fleet)
    return [
        Table("workers", "How fast is a worker?", note, COLUMNS, list(speeds(sizes))),
        Table("fleets", "How fast are several processes?", fleet_note, FLEET_COLUMNS, list(fleets(sizes))),
    ]


# One process


class Finish:
    """The handler: does nothing, and notes when it has done so for the last time."""

    def __init__(self, jobs: int) -> None:
        self.left = jobs

    def __call__(self, _: object) -> None:
        self.left -= 1
        if not self.left:
            self.at = time.perf_counter(), time.process_time()


@dataclass
class Loop:
    """One way to enqueue jobs and to work them off."""

    executor: str
    worker: str
    batch: int
    server: Server
    fill: Callable[[int], None]
    work: Callable[[int, Finish], None]
    found: dict[str, list[float]] = field(default_factory=dict)
    by_name: dict[str, float] = field(default_factory=dict)

    def round(self, jobs: int) -> None:
        with self.server.client() as client:
            began = time.perf_counter()
            self.fill(jobs)
            filling = time.perf_counter() - began
            client.config_resetstat()
            finish, cpu = Finish(jobs), cpu_ns(self.server)
            began, used = time.perf_counter(), time.process_time()
            self.work(jobs, finish)
            working, spent = finish.at[0] - began, finish.at[1] - used
            cpu = cpu_ns(self.server) - cpu
            after = client.info("everything")
        calls = {name[8:]: row["calls"] / jobs for name, row in after.items() if name.startswith("cmdstat_")}
        self.by_name = {name: share for name, share in calls.items() if share >= 0.005}
        round_of = {
            "enqueued": jobs / filling,
            "worked": jobs / working,
            "whole": jobs / (filling + working),
            "calls": sum(self.by_name.values()),
            "reads": after["total_reads_processed"] / jobs,
            "worker_us": 1e6 * spent / jobs,
            "server_us": cpu / 1e3 / jobs,
        }
        for name, value in round_of.items():
            self.found.setdefault(name, []).append(value)


def list_fill(client: redis.Redis, batch: int, jobs: int) -> None:
    for _ in range(jobs // batch):
        client.lpush("list", *[PAYLOAD] * batch)


def list_work(client: redis.Redis, batch: int, jobs: int, finish: Finish) -> None:
    """In batches, what was done goes in the same round trip as what comes next."""
    payloads: list[Any] = []
    for first in range(0, jobs if batch == 1 else jobs + batch, batch):
        if batch == 1:
            payload: Any = client.blmove("list", "doing", 5, "RIGHT", "LEFT")
            finish(payload)
            client.lrem("doing", 1, payload)
            continue
        pipe = client.pipeline(transaction=False)
        for payload in payloads:
            pipe.lrem("doing", 1, payload)
        for _ in range(batch if first < jobs else 0):
            pipe.lmove("list", "doing", "RIGHT", "LEFT")
        payloads = pipe.execute()[len(payloads) :]
        for payload in payloads:
            finish(payload)


def fill(queue: emq_native.Queue, batch: int, jobs: int) -> None:
    for _ in range(jobs // batch):
        if batch == 1:
            queue.enqueue(PAYLOAD)
        else:
            queue.enqueue_many([PAYLOAD] * batch)


def work(queue: emq_native.Queue, batch: int, jobs: int, finish: Finish) -> None:
    worker = Worker(queue, finish, batch=batch, burst=True)
    worker.start()
    worker.join()
    completed(worker.stats.completed, jobs)


def completed(found: int, jobs: int) -> None:
    if found != jobs:
        raise RuntimeError(f"a worker completed {found} jobs of {jobs}")


class Asyncio:
    """The same in an event loop, which lives as long as this."""

    def __init__(self, server: Server) -> None:
        self._loop = asyncio.new_event_loop()
        self._bus = self._loop.run_until_complete(aio.connect(server.url))
        self._queue = self._bus.queue("speed")

    def close(self) -> None:
        self._loop.run_until_complete(self._bus.close())
        self._loop.close()

    def fill(self, batch: int, jobs: int) -> None:
        async def all_of_them() -> None:
            for _ in range(jobs // batch):
                if batch == 1:
                    await self._queue.enqueue(PAYLOAD)
                else:
                    await self._queue.enqueue_many([PAYLOAD] * batch)

        self._loop.run_until_complete(all_of_them())

    def work(self, batch: int, jobs: int, finish: Finish) -> None:
        async def handle(job: emq_native.HeldJob) -> None:
            finish(job)

        async def all_of_them() -> None:
            worker = aio.Worker(self._queue, handle, concurrency=1, batch=batch, burst=True)
            await worker.run(signals=False)
            completed(worker.stats.completed, jobs)

        self._loop.run_until_complete(all_of_them())


def speeds(sizes: Sizes) -> Iterator[Speed]:
    with ExitStack() as stack:
        loops = [loop for executor in (None, NATIVE, SCRIPTED) for loop in loops_of(executor, stack)]
        for loop in loops:
            loop.round(loop.batch * 10)  # the first time is not like the others
            loop.found.clear()
        for number in range(sizes.rounds):
            for at in range(len(loops)):
                loop = loops[(at + number) % len(loops)]
                loop.round(sizes.jobs[loop.batch])
        for loop in loops:
            yield Speed(
                executor=loop.executor, worker=loop.worker, batch=loop.batch, jobs=sizes.jobs[loop.batch],
                spread=spread(loop.found["whole"]), ratio=ratio(loop.found["whole"], loops[0].found["whole"]),
                rounds=loop.found["whole"], by_name=loop.by_name,
                **{name: median(values) for name, values in loop.found.items()},
            )  # fmt: skip


def loops_of(executor: Executor | None, stack: ExitStack) -> Iterator[Loop]:
    server = stack.enter_context(served(executor, pinned=False))
    if executor is None:
        client = stack.enter_context(server.client())
        for batch in (1, BATCH):
            yield Loop(
                "(list)", "redis-py", batch, server,
                fill=partial(list_fill, client, batch), work=partial(list_work, client, batch),
            )  # fmt: skip
        return
    queue = stack.enter_context(emq_native.connect(server.url)).queue("speed")
    twin = Asyncio(server)
    stack.callback(twin.close)
    for batch in (1, BATCH):
        yield Loop(
            executor.name, "Worker", batch, server,
            fill=partial(fill, queue, batch), work=partial(work, queue, batch),
        )  # fmt: skip
        yield Loop(
            executor.name, "aio.Worker", batch, server,
            fill=partial(twin.fill, batch), work=partial(twin.work, batch),
        )  # fmt: skip


# Several processes


def nothing(_: emq_native.HeldJob) -> None:
    """The handler of a process."""


def run_workers(url: str, name: str, processes: int, batch: int) -> None:
    with emq_native.connect(url) as bus:
        Worker(bus.queue(name), nothing, batch=batch).run(processes=processes)


def fleets(sizes: Sizes) -> Iterator[Fleet]:
    with served(NATIVE, pinned=False) as server:
        for batch in (1, BATCH):
            for processes in (1, 2):
                worked, server_us = rounds_of(server, processes, batch, sizes)
                yield Fleet(
                    "native", processes, batch, sizes.fleet, median(worked), spread(worked), median(server_us), worked
                )  # fmt: skip


def rounds_of(server: Server, processes: int, batch: int, sizes: Sizes) -> tuple[list[float], list[float]]:
    """Jobs per second, and the server's microseconds per job, of each round."""
    verbs = Verbs(NATIVE, PAYLOAD)
    name = verbs.queue.decode()[5:-1]
    context = multiprocessing.get_context("spawn")
    supervisor = context.Process(target=run_workers, args=(server.url, name, processes, batch))
    worked, server_us = [], []
    with server.client() as client, Client(server) as loader:
        supervisor.start()
        try:
            for number in range(sizes.rounds + 1):
                jobs = FILLING.exchanges(verbs.enqueue, fresh_ids(sizes.fleet))
                until(lambda: client.info("clients")["blocked_clients"] >= processes)
                done = completions(client, verbs) + sizes.fleet
                cpu, began = cpu_ns(server), time.perf_counter()
                loader.run(jobs)
                until(partial(completed_are, client, verbs, done))
                if number:  # the first time is not like the others
                    worked.append(sizes.fleet / (time.perf_counter() - began))
                    server_us.append((cpu_ns(server) - cpu) / 1e3 / sizes.fleet)
        finally:
            supervisor.terminate()
            supervisor.join()
    return worked, server_us


def completed_are(client: redis.Redis, verbs: Verbs, wanted: int) -> bool:
    return completions(client, verbs) >= wanted


def completions(client: redis.Redis, verbs: Verbs) -> int:
    return int(client.hget(verbs.queue.decode() + ":metrics:completed", "count") or 0)


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + MOST_S
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("the workers did not come to an end")
        time.sleep(0.005)
