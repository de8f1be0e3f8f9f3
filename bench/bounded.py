"""How long others wait while a million jobs are due.

A queue holds scheduled jobs that are all due and leases that have all lapsed. PROMOTE and REAP move them, DRAIN and
OBLITERATE delete them, each in bites of its default limit, as fast as one client can send them. Beside it another
process sends PING every millisecond and notes how long each answer takes.

    python bench/bounded.py                     # 1,000,000 due jobs, 200,000 lapsed leases, both executors
    python bench/bounded.py --due 100000 --lapsed 20000 --executor native

Needs about 1 GB of memory for the default numbers. It prints one table; its times are milliseconds:

    CPU       what the server's main thread used of a processor per call, whatever else the machine was doing
    median    of one call, on the clock
    longest   the longest call
    PING      the longest wait for an answer to PING while these calls went on
"""

from __future__ import annotations

import argparse
import multiprocessing
import platform
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import emq_native
from emq_native.executors import NATIVE, SCRIPTED, Executor
from emq_native.keys import Keys
from emq_native.server import Server

QUEUE = "bounded"
PAYLOAD = b"x" * 64
CONFIG: dict[str, str | int | Sequence[str]] = {
    "appendonly": "yes",
    "appendfsync": "everysec",
    "auto-aof-rewrite-percentage": 0,  # a fork would be measured too
    "latency-tracking-info-percentiles": "50 100",
}
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
class Row:
    """What one kind of call did. Times in milliseconds; those of a call are the server's own."""

    executor: str
    name: str
    jobs: int
    calls: int
    seconds: float
    call: tuple[float, float, float]
    longest_ping: float

    def cells(self) -> tuple[str, ...]:
        return (
            self.executor,
            self.name,
            f"{self.jobs:,}" if self.jobs else "",
            f"{self.calls:,}" if self.calls else "",
            f"{self.jobs / self.seconds:,.0f}" if self.jobs else "",
            *(f"{each:.1f}" if self.calls else "" for each in self.call),
            f"{self.longest_ping:.1f}",
        )


HEAD = ("executor", "call", "jobs", "calls", "jobs/s", "CPU", "median", "longest", "PING")


def ping(port: int, pipe: Connection) -> None:
    """Send PING until told to stop; then hand over the time at which each was sent and how long it took, in seconds."""
    samples: list[tuple[float, float]] = []
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
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


def processor(client: Any) -> float:
    """What the server's main thread has used of a processor, in milliseconds."""
    used = client.info("cpu")
    return 1000 * float(used["used_cpu_user_main_thread"] + used["used_cpu_sys_main_thread"])


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


def phases(server: Server, executor: Executor, due: int, lapsed: int) -> Iterator[Phase]:
    keys = Keys(QUEUE)
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
            time.sleep(3)
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
            spent, began = processor(client), time.monotonic()
            jobs, calls = work()
            ended, spent = time.monotonic(), processor(client) - spent
            command = f"emq.{name.lower()}" if executor.name == "native" else "evalsha"
            yield Phase(name, jobs, calls, began, ended, (spent / max(calls, 1), *latency(client, command)))
        left = set(client.keys("*")) - {b"{emq}:version"}
        if left:
            raise AssertionError(f"{len(left)} keys are left")


@contextmanager
def served(executor: Executor) -> Iterator[Server]:
    with Server(module=executor.name == "native", config=CONFIG) as server:
        with server.client() as client:
            client.set("{emq}:version", executor.identity)
        yield server


def measure(executor: Executor, due: int, lapsed: int) -> Iterator[Row]:
    with served(executor) as server:
        pings = Pings(server.port)
        found = list(phases(server, executor, due, lapsed))
        samples = pings.stop()
    for phase in found:
        longest = max(took for began, took in samples if phase.began <= began + took and began <= phase.ended)
        seconds = phase.ended - phase.began
        yield Row(executor.name, phase.name, phase.jobs, phase.calls, seconds, phase.call, longest * 1000)


def table(rows: Sequence[tuple[str, ...]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    lines = []
    for number, row in enumerate(rows):
        cells = [
            cell.ljust(width) if at < 2 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(f"| {' | '.join(cells)} |")
        if number == 0:
            lines.append("|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--due", type=int, default=1_000_000, help="scheduled jobs that are due")
    parser.add_argument("--lapsed", type=int, default=200_000, help="leases that have lapsed")
    parser.add_argument("--executor", choices=["native", "scripted"], help="default: both, one after the other")
    chosen = parser.parse_args()
    executors = [each for each in (NATIVE, SCRIPTED) if chosen.executor in (None, each.name)]
    rows = [row.cells() for each in executors for row in measure(each, chosen.due, chosen.lapsed)]
    print(f"Valkey {Server(module=False).version}, {platform.machine()}, {multiprocessing.cpu_count()} CPUs\n")
    print(table([HEAD, *rows]))


if __name__ == "__main__":
    main()
