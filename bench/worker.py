"""How fast a worker is, and how late.

Two questions, on the module and on the scripts, each on a server of its own, beside redis-py with plain lists:

How late: eight waiters, each on a queue of its own, have nothing to do. Another process sends a job now and then; how
long until the waiter has it? Then the same with jobs that are scheduled, counted from the instant they are due.

How fast: one process enqueues jobs, then works them off with one runner and a handler that does nothing.

    python bench/worker.py                         # a minute, on both executors
    python bench/worker.py --note "idle machine"   # and this is noted in bench/results/worker.json

It prints two tables and writes bench/results/worker.json.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

import redis
from rich import box
from rich.console import Console
from rich.table import Table

import emq_native
from emq_native import Queue, Worker, provision
from emq_native.executors import NATIVE, SCRIPTED, Executor
from emq_native.server import Server

RESULTS = Path(__file__).parent / "results" / "worker.json"
WAITERS = 8
LEASE_MS = 30_000
BATCH = 100
ROUNDS = 3
PAYLOAD = b"x" * 64
MS = 1_000_000  # nanoseconds
MOST_S = 180


# How late. A payload is the instant, in nanoseconds, at which its job should begin.

Note = Callable[[bytes], None]


@dataclass
class Lateness:
    """Milliseconds from the instant a job was sent, or due, until its waiter had it."""

    executor: str
    what: str
    waiter: str
    samples: int
    p50: float
    p99: float
    longest: float


def list_waiter(server: Server, name: str, jobs: int, note: Note) -> None:
    with server.client(socket_timeout=60) as client:
        for _ in range(jobs):
            note(client.blpop([name], 0)[1])


def next_waiter(server: Server, name: str, jobs: int, note: Note) -> None:
    """Asks again at once, and settles by that."""
    with server.client(socket_timeout=60) as client:
        settle: tuple[Any, ...] = ()
        options = ("FROM", "FLAT", "BLOCK", 5000, "PROMOTE", 100, "REAP", 100)
        while jobs:
            _, taken, _ = client.execute_command("EMQ.NEXT", f"emq:{{{name}}}", LEASE_MS, *options, *settle)
            settle = ()
            for job_id, payload, token, _ in taken:
                note(payload)
                settle = ("SETTLE", 1, "COMPLETE", job_id, token)
                jobs -= 1


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


def send(url: str, what: str, names: list[str], gap: float) -> None:
    """The process beside: a job for each name in turn, at uneven distances of `gap` seconds in the mean."""
    with redis.Redis.from_url(url) as client, emq_native.connect(url) as bus:
        time.sleep(1.5)  # all wait
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


Waiter = Callable[[Server, str, int, Note], None]


def lateness(server: Server, executor: str, what: str, waiter: Waiter, each: int, gap: float) -> Lateness:
    names = [f"{what}-{waiter.__name__}-{number}" for number in range(WAITERS)]
    samples: list[float] = []

    def note(payload: bytes) -> None:
        samples.append((time.time_ns() - int(payload)) / MS)

    sender = multiprocessing.get_context("spawn").Process(target=send, args=(server.url, what, names * each, gap))
    sender.start()
    with ThreadPoolExecutor(WAITERS) as pool:
        list(pool.map(lambda name: waiter(server, name, each, note), names))
    sender.join()
    samples.sort()
    shown = {"list_waiter": "redis-py, BLPOP", "next_waiter": "redis-py, EMQ.NEXT", "worker_waiter": "Worker"}
    p50, p99 = (samples[int(share * len(samples))] for share in (0.5, 0.99))
    return Lateness(executor, what, shown[waiter.__name__], len(samples), p50, p99, samples[-1])


def latenesses(server: Server, executor: Executor) -> Iterator[Lateness]:
    if executor is NATIVE:
        yield lateness(server, "(list)", "BLPOP", list_waiter, 25, 0.015)
        for what in ("enqueued", "due"):
            yield lateness(server, executor.name, what, next_waiter, 25, 0.015)
            yield lateness(server, executor.name, what, worker_waiter, 25, 0.015)
    else:
        # So far apart that each waiter has come to the longest pause between two looks.
        for what in ("enqueued", "due"):
            yield lateness(server, executor.name, what, worker_waiter, 8, 0.12)


# How fast.

Handle = Callable[[object], None]


@dataclass
class Speed:
    """Jobs per second, and what one job took: calls that the server counted, reads of sockets, and CPU.

    whole: enqueued and worked off; ratio: of that, to the first row; calls: also those that scripts make.
    """

    executor: str
    worker: str
    jobs: int
    enqueued: float
    worked: float
    whole: float
    calls: float
    reads: float
    worker_us: float
    server_us: float
    by_name: dict[str, float]
    ratio: float = 0.0


class Finish:
    """The handler: does nothing, and notes when it has done so for the last time."""

    def __init__(self, jobs: int) -> None:
        self.left = jobs

    def __call__(self, _: object) -> None:
        self.left -= 1
        if not self.left:
            self.at = time.perf_counter(), time.process_time()


def push(client: redis.Redis, jobs: int, batch: int) -> None:
    for _ in range(jobs // batch):
        client.lpush("list", *[PAYLOAD] * batch)


def enqueue(queue: Queue, jobs: int, batch: int) -> None:
    for _ in range(jobs // batch):
        if batch == 1:
            queue.enqueue(PAYLOAD)
        else:
            queue.enqueue_many([PAYLOAD] * batch)


def list_loop(client: redis.Redis, jobs: int, batch: int, handle: Handle) -> None:
    """In batches, what was done goes in the same round trip as what comes next."""
    payloads: list[Any] = []
    for first in range(0, jobs if batch == 1 else jobs + batch, batch):
        if batch == 1:
            payload: Any = client.blmove("list", "doing", 5, "RIGHT", "LEFT")
            handle(payload)
            client.lrem("doing", 1, payload)
            continue
        pipe = client.pipeline(transaction=False)
        for payload in payloads:
            pipe.lrem("doing", 1, payload)
        for _ in range(batch if first < jobs else 0):
            pipe.lmove("list", "doing", "RIGHT", "LEFT")
        payloads = pipe.execute()[len(payloads) :]
        for payload in payloads:
            handle(payload)


def next_loop(client: redis.Redis, jobs: int, batch: int, handle: Handle) -> None:
    settle: list[Any] = []
    while jobs or settle:
        _, taken, _ = client.execute_command("EMQ.NEXT", "emq:{speed}", LEASE_MS, "COUNT", batch, *settle)
        jobs -= len(taken)
        settle = ["SETTLE", len(taken)] if taken else []
        for job_id, payload, token, _ in taken:
            handle(payload)
            settle += ["COMPLETE", job_id, token]


def worker_loop(queue: Queue, jobs: int, batch: int, handle: Handle) -> None:
    worker = Worker(queue, handle, batch=batch, burst=True)
    worker.start()
    worker.join()
    assert worker.stats.completed == jobs


def speed(
    client: Any, executor: str, worker: str, batch: int, fill: Callable[..., None], work: Callable[..., None]
) -> Speed:
    """Of a few rounds the one in the middle."""
    jobs = 2_000 if batch == 1 else 10_000
    rounds = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        fill(jobs, batch)
        filling = time.perf_counter() - began
        client.config_resetstat()
        before, finish = client.info("cpu"), Finish(jobs)
        began, used = time.perf_counter(), time.process_time()
        work(jobs, batch, finish)
        working, spent = finish.at[0] - began, finish.at[1] - used
        after = client.info("everything")
        calls = {name[8:]: row["calls"] / jobs for name, row in after.items() if name.startswith("cmdstat_")}
        calls = {name: share for name, share in calls.items() if share >= 0.005}
        server = sum(after[name] - before[name] for name in ("used_cpu_user_main_thread", "used_cpu_sys_main_thread"))
        rounds.append(
            Speed(
                executor,
                worker=f"{worker}, {batch}",
                jobs=jobs,
                enqueued=jobs / filling,
                worked=jobs / working,
                whole=jobs / (filling + working),
                calls=sum(calls.values()),
                reads=after["total_reads_processed"] / jobs,
                worker_us=1e6 * spent / jobs,
                server_us=1e6 * server / jobs,
                by_name=calls,
            )
        )
    return sorted(rounds, key=lambda each: each.whole)[ROUNDS // 2]


def speeds(server: Server, executor: Executor) -> Iterator[Speed]:
    with server.client() as client, emq_native.connect(server.url) as bus:
        queue = bus.queue("speed")
        for batch in (1, BATCH):
            loops = [(executor.name, "Worker", partial(enqueue, queue), partial(worker_loop, queue))]
            if executor is NATIVE:
                loops[:0] = [
                    ("(list)", "redis-py, lists", partial(push, client), partial(list_loop, client)),
                    ("native", "redis-py, EMQ.NEXT", partial(enqueue, queue), partial(next_loop, client)),
                ]
            for name, worker, fill, work in loops:
                yield speed(client, name, worker, batch, fill, work)


# Both.


@contextmanager
def served(executor: Executor) -> Iterator[Server]:
    with Server(module=executor is NATIVE) as server:
        provision.claim(server.url, wire=executor.wire)
        yield server


def table(title: str, rows: list[Any], columns: dict[str, str]) -> Table:
    """columns: the name of a field and how to write it."""
    made = Table(title=title, box=box.MARKDOWN, title_justify="left")
    for name, form in columns.items():
        made.add_column(name.replace("_", " "), justify="right" if form else "left")
    for row in rows:
        made.add_row(*(format(getattr(row, name), form) for name, form in columns.items()))
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--note", default="", help="about the machine, for the results")
    chosen = parser.parse_args()
    signal.alarm(MOST_S)  # a waiter waits for ever for what is never sent
    load = os.getloadavg()[0]
    late: list[Lateness] = []
    fast: list[Speed] = []
    for executor in (NATIVE, SCRIPTED):
        with served(executor) as server:
            late += latenesses(server, executor)
            fast += speeds(server, executor)
    for row in fast:
        row.ratio = row.whole / fast[0].whole
    console = Console(width=160)
    console.print(table("How late, milliseconds", late, {
        "executor": "", "what": "", "waiter": "", "samples": ",", "p50": ".2f", "p99": ".2f", "longest": ".2f"
    }))  # fmt: skip
    console.print(table("How fast, jobs per second, and what one job took", fast, {
        "executor": "", "worker": "", "jobs": ",", "enqueued": ",.0f", "worked": ",.0f", "whole": ",.0f",
        "ratio": ".2f", "calls": ".2f", "reads": ".2f", "worker_us": ".0f", "server_us": ".0f",
    }))  # fmt: skip
    found = {
        "at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "note": chosen.note,
        "machine": {"platform": platform.platform(), "cpus": os.cpu_count(), "load_before": round(load, 2)},
        "versions": {
            "valkey": Server(module=False).version,
            "emq_native": emq_native.__version__,
            "python": platform.python_version(),
            "redis-py": redis.__version__,
        },
        "late_ms": [asdict(row) for row in late],
        "fast": [asdict(row) for row in fast],
    }
    shorter = json.loads(json.dumps(found), parse_float=lambda text: float(f"{float(text):.4g}"))
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(shorter, indent=1) + "\n")


if __name__ == "__main__":
    main()
