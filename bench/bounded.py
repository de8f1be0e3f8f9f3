"""How long do others wait while very many jobs are due?

A queue holds scheduled jobs that are all due and leases that have all lapsed. PROMOTE and REAP move them, DRAIN and
OBLITERATE delete them, each in bites of its default limit, as fast as one client can send them. Beside it another
process sends PING every millisecond and notes how long each answer takes.
"""

from __future__ import annotations

import multiprocessing
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import emq_native
from bench.common import AOF, MS, Size, Table, cpu_ns, served
from emq_native.executors import NATIVE, SCRIPTED, Executor
from emq_native.keys import Keys
from emq_native.server import Server

QUEUE = "bounded"
PAYLOAD = b"x" * 64
CONFIG = {**AOF, "latency-tracking-info-percentiles": "50 100"}
PAUSE_SECONDS = 0.001

# Rows and entries are written as the verbs leave them; admitting a million jobs one by one is not what is measured.
FILL = """
for at = 3, #ARGV do
    redis.call('HSET', KEYS[1] .. ':job:' .. ARGV[at], 'state', ARGV[1], 'attempts', ARGV[1] == 'active' and 1 or 0,
        'payload', ARGV[2])
    redis.call('ZADD', KEYS[2], 1, ARGV[at])
end
return #ARGV - 2
"""
CHUNK = 1000


@dataclass(frozen=True)
class Sizes:
    due: int
    lapsed: int
    idle_s: float


SIZES: dict[Size, Sizes] = {
    "full": Sizes(200_000, 50_000, 2.0),
    "quick": Sizes(40_000, 10_000, 1.0),
    "smoke": Sizes(2_000, 1_000, 0.1),
}

NOTE = """\
{due:,} scheduled jobs are due and {lapsed:,} leases have lapsed. One client calls PROMOTE, REAP, DRAIN and
OBLITERATE as fast as it can, each in bites of its default LIMIT of 1000; another process sends PING every
millisecond; append-only file, everysec. Milliseconds: what a call used of a processor, its median and its longest
by the server, and the longest wait for the answer to a PING; the aim is that nobody waits for 50. A call is as long
as its bite: LIMIT 100 takes a tenth, and neither grows with the number of jobs."""

COLUMNS = {
    "executor": "", "call": "", "jobs": ",", "calls": ",", "jobs_s": ",.0f",
    "cpu_ms": ".1f", "median_ms": ".1f", "longest_ms": ".1f", "ping_ms": ".1f",
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """What one kind of call did; None where there was none."""

    executor: str
    call: str
    jobs: int | None
    calls: int | None
    jobs_s: float | None
    cpu_ms: float | None
    median_ms: float | None
    longest_ms: float | None
    ping_ms: float | None


def ping(port: int, pipe: Connection) -> None:
    """Send PING until told to stop; then hand over the time at which each was sent and how long it took, in seconds."""
    samples: list[tuple[float, float]] = []
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pipe.send("ready")
        while not pipe.poll():
            began = time.monotonic()
            connection.sendall(b"PING\r\n")
            if connection.recv(64) != b"+PONG\r\n":
                raise ConnectionError("the server does not answer PING")
            samples.append((began, time.monotonic() - began))
            time.sleep(PAUSE_SECONDS)
    pipe.send(samples)


class Pings:
    """The process beside. `stop()` answers its samples."""

    def __init__(self, port: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=ping, args=(port, theirs), daemon=True)
        self._process.start()
        self._pipe.recv()

    def stop(self) -> list[tuple[float, float]]:
        self._pipe.send("stop")
        samples: list[tuple[float, float]] = self._pipe.recv()
        self._process.join()
        return samples


def fill(client: Any, state: str, place: bytes, count: int) -> None:
    """Write so many jobs into a place, their score long past."""
    script = client.register_script(FILL)
    for start in range(0, count, CHUNK):
        ids = [emq_native.mint() for _ in range(min(CHUNK, count - start))]
        script(keys=[Keys(QUEUE).queue, place], args=[state, PAYLOAD, *ids])


def latency(client: Any, command: str) -> tuple[float, float]:
    """Median and longest time of a command since the last reset, in milliseconds, as the server counted."""
    found = client.info("latencystats").get(f"latency_percentiles_usec_{command}", {"p50": 0, "p100": 0})
    return found["p50"] / 1000, found["p100"] / 1000


def until_nothing(call: Callable[[], int], most: int | None = None) -> tuple[int, int]:
    """Repeat a call until it answers 0, or `most` are done: how many jobs it took, in how many calls."""
    jobs = calls = 0
    while most is None or jobs < most:
        done = call()
        calls += 1
        jobs += done
        if not done:
            break
    return jobs, calls


@dataclass(frozen=True)
class Phase:
    """A stretch of time between two instants of the monotonic clock, and what was done in it."""

    name: str
    jobs: int
    calls: int
    began: float
    ended: float
    call: tuple[float, float, float]


def phases(server: Server, executor: Executor, sizes: Sizes) -> Iterator[Phase]:
    keys, due, lapsed = Keys(QUEUE), sizes.due, sizes.lapsed
    with server.client() as client, emq_native.connect(server.url, wire=executor.wire, socket_timeout=60) as bus:
        queue = bus.queue(QUEUE)
        fill(client, "scheduled", keys.schedule, due)
        fill(client, "active", keys.active, lapsed)

        def obliterate() -> tuple[int, int]:
            queue.pause()
            jobs, calls = queue.counts().pending, 1
            while not queue.obliterate():
                calls += 1
            return jobs, calls

        def nothing() -> tuple[int, int]:
            time.sleep(sizes.idle_s)
            return 0, 0

        works: list[tuple[str, Callable[[], tuple[int, int]]]] = [
            ("(nothing)", nothing),
            ("PROMOTE", lambda: until_nothing(queue.promote)),
            ("REAP", lambda: until_nothing(queue.reap)),
            ("DRAIN", lambda: until_nothing(queue.drain, (due + lapsed) // 2)),
            ("OBLITERATE", obliterate),
        ]
        for name, work in works:
            client.config_resetstat()
            before, began = cpu_ns(server), time.monotonic()
            jobs, calls = work()
            ended, spent = time.monotonic(), (cpu_ns(server) - before) / MS
            command = f"emq.{name.lower()}" if executor.name == "native" else "evalsha"
            yield Phase(name, jobs, calls, began, ended, (spent / max(calls, 1), *latency(client, command)))
        left = set(client.keys("*")) - {b"{emq}:version"}
        if left:
            raise AssertionError(f"{len(left)} keys are left")


def measure(size: Size) -> list[Table]:
    """One table, `bounded`."""
    sizes = SIZES[size]
    rows = [row for executor in (NATIVE, SCRIPTED) for row in rows_of(executor, sizes)]
    note = NOTE.format(due=sizes.due, lapsed=sizes.lapsed)
    return [Table("bounded", "How long do others wait while very many jobs are due?", note, COLUMNS, rows)]


def rows_of(executor: Executor, sizes: Sizes) -> Iterator[Row]:
    with served(executor, CONFIG) as server:
        pings = Pings(server.port)
        found = list(phases(server, executor, sizes))
        samples = pings.stop()
    for phase in found:
        beside = [took for began, took in samples if phase.began <= began + took and began <= phase.ended]
        longest = 1000 * max(beside) if beside else None
        if phase.calls:
            rate = phase.jobs / (phase.ended - phase.began)
            yield Row(executor.name, phase.name, phase.jobs, phase.calls, rate, *phase.call, longest)
        else:
            yield Row(executor.name, phase.name, None, None, None, None, None, None, longest)
