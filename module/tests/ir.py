#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Instructions per command, counted by callgrind, next to those of the core commands that the same effects are made of.

    tests/ir.py                     compares with tests/ir.json; fails when a command needs over 5 % more than recorded
    tests/ir.py --record            writes tests/ir.json
    tests/ir.py claim retry         only these
    tests/ir.py --waiting 1000000   beside a longer backlog; --active 100000: beside more jobs in flight;
                                    --append-only: with the append-only file; --whole: whole requests. These only print

One server runs under valgrind; only instructions inside processCommand are counted. That leaves out what a request
costs before and after: its words are read, made strings and freed again, once for a transition, two or three times for
the core commands. --whole counts that, too; what the server writes to the socket is counted nowhere.

Every command works on a fixed data set: a queue with BACKLOG jobs in each place, a payload of 100 bytes, the hash
settings of docker/valkey.conf, a fixed hash seed. About 2 % of noise are left, because the server draws the levels of
its skip lists at random; a command that seems to need more is counted once more. The core commands are counted in the
same run on the same kind of data, so that a change of compiler, libc or server, which moves both sides, is told apart
from a change of the module: by the factor that they need more, the module may need more too. The ratio itself is no
gate: it would fail when the core gets faster.

Needs valgrind and a server with libc's malloc, as ci/servers builds them. No Python package.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, median_low

HERE = Path(__file__).resolve().parent
RECORD = HERE / "ir.json"
DEFAULT_SERVER = os.path.join(os.environ.get("EMQ_CACHE", "/var/cache/emq"), "9.1/bin/valkey-server")
TOLERANCE = 1.05
BACKLOG = 500
CALLS = 1000
PIPELINED = 50
RECORDED_ROUNDS = 3  # the one in the middle is recorded
EXECUTION = "processCommand"
WHOLE_REQUEST = "readQueryFromClient"
PAYLOAD = b"p" * 100
QUEUE = b"emq:{ir}"
LEASE = b"60000"
FUTURE = b"9000000000000"  # a deadline far ahead, as text of 13 digits
PAST = b"1700000000000"

Command = tuple[bytes, ...]
Commands = Iterable[Command]


def key(suffix: bytes) -> bytes:
    return QUEUE + b":" + suffix


def job_id(number: int) -> bytes:
    """A valid id, ascending with the number."""
    alphabet = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    value, digits = 274557032793636864 + (number << 12), bytearray()
    while len(digits) < 11:
        value, digit = divmod(value, 62)
        digits.append(alphabet[digit])
    return b"JOB" + bytes(reversed(digits))


def row(job: bytes) -> bytes:
    return key(b"job:" + job)


# The jobs that are measured have lower ids than those of the backlog, so a claim and a promotion meet them first.
JOBS = [job_id(number) for number in range(CALLS)]


def placed(jobs: Iterable[bytes], place: bytes, state: bytes, score: bytes, attempts: bytes) -> Iterator[Command]:
    """Jobs in a place, written with plain commands."""
    for job in jobs:
        yield (b"HSET", row(job), b"payload", PAYLOAD, b"state", state, b"attempts", attempts)
        yield (b"ZADD", key(place), score, job)


def pending(jobs: Sequence[bytes]) -> Iterator[Command]:
    return placed(jobs, b"pending", b"pending", b"0", b"0")


def active(jobs: Sequence[bytes]) -> Iterator[Command]:
    return placed(jobs, b"active", b"active", FUTURE, b"1")


def expired(jobs: Sequence[bytes]) -> Iterator[Command]:
    return placed(jobs, b"active", b"active", PAST, b"1")


def due(jobs: Sequence[bytes]) -> Iterator[Command]:
    return placed(jobs, b"schedule", b"scheduled", PAST, b"0")


def backlog(waiting: int, active_jobs: int) -> Iterator[Command]:
    """What is there all the time."""
    ids = map(job_id, itertools.count(CALLS))

    def some(number: int) -> Iterator[bytes]:
        return itertools.islice(ids, number)

    yield (b"SET", b"{emq}:version", b"echomq:6.0.0")
    yield (b"HSET", key(b"metrics:completed"), b"count", b"1000000")
    yield (b"HSET", key(b"metrics:failed"), b"count", b"1000000")
    yield from placed(some(waiting), b"pending", b"pending", b"0", b"0")
    yield from placed(some(active_jobs), b"active", b"active", FUTURE, b"1")
    yield from placed(some(BACKLOG), b"schedule", b"scheduled", FUTURE, b"0")
    yield from placed(some(BACKLOG), b"dead", b"dead", b"0", b"3")


def clean() -> Iterator[Command]:
    """Takes away what was measured."""
    yield (b"DEL", *map(row, JOBS))
    for place in (b"pending", b"active", b"schedule", b"dead"):
        yield (b"ZREM", key(place), *JOBS)


def warm() -> Iterator[Command]:
    """Lets the server's tables grow to what they will hold: while one grows, every look into it costs more."""
    yield from pending(JOBS)
    yield from clean()
    yield from itertools.repeat((b"EXISTS", b"{emq}:version"), 10 * CALLS)


@dataclass(frozen=True)
class Case:
    """A command that is called once per job, and the core commands that have the same effects on one job."""

    jobs: Callable[[Sequence[bytes]], Commands]  # where the jobs are before
    native: Callable[[bytes], Command]
    core: Callable[[bytes], Commands]


def hset(job: bytes, *pairs: bytes) -> Command:
    return (b"HSET", row(job), *pairs)


def zadd(place: bytes, score: bytes, job: bytes) -> Command:
    return (b"ZADD", key(place), score, job)


def zrem(place: bytes, job: bytes) -> Command:
    return (b"ZREM", key(place), job)


def nothing(_: Sequence[bytes]) -> Commands:
    return ()


ADMITTED = (b"attempts", b"0", b"payload", PAYLOAD)
ERROR = b"worker: connection reset"

CASES: dict[str, Case] = {
    "enqueue": Case(
        nothing,
        lambda job: (b"EMQ.ENQUEUE", QUEUE, job, PAYLOAD),
        lambda job: (hset(job, b"state", b"pending", *ADMITTED), zadd(b"pending", b"0", job)),
    ),
    "schedule": Case(
        nothing,
        lambda job: (b"EMQ.SCHEDULE", QUEUE, job, PAYLOAD, b"AT", FUTURE),
        lambda job: (hset(job, b"state", b"scheduled", *ADMITTED), zadd(b"schedule", FUTURE, job)),
    ),
    "claim": Case(
        pending,
        lambda job: (b"EMQ.CLAIM", QUEUE, LEASE),
        lambda job: (
            zrem(b"pending", job),
            hset(job, b"state", b"active", b"attempts", b"1"),
            zadd(b"active", FUTURE, job),
        ),
    ),
    "complete": Case(
        active,
        lambda job: (b"EMQ.COMPLETE", QUEUE, job, b"1"),
        lambda job: (
            zrem(b"active", job),
            (b"DEL", row(job)),
            (b"HSET", key(b"metrics:completed"), b"count", b"1000001"),
        ),
    ),
    "retry": Case(
        active,
        lambda job: (b"EMQ.RETRY", QUEUE, job, b"1", b"60000", b"3", ERROR),
        lambda job: (
            zrem(b"active", job),
            hset(job, b"last_error", ERROR, b"state", b"scheduled"),
            zadd(b"schedule", FUTURE, job),
        ),
    ),
    "delay": Case(
        active,
        lambda job: (b"EMQ.DELAY", QUEUE, job, b"1", b"AT", FUTURE),
        lambda job: (
            zrem(b"active", job),
            hset(job, b"floor", b"1", b"state", b"scheduled"),
            zadd(b"schedule", FUTURE, job),
        ),
    ),
    "extend": Case(
        active,
        lambda job: (b"EMQ.EXTEND", QUEUE, job, b"1", LEASE),
        lambda job: (zadd(b"active", FUTURE + b"1", job),),
    ),
    "promote": Case(
        due,
        lambda job: (b"EMQ.PROMOTE", QUEUE, b"LIMIT", b"1"),
        lambda job: (zrem(b"schedule", job), hset(job, b"state", b"pending"), zadd(b"pending", b"0", job)),
    ),
    "reap": Case(
        expired,
        lambda job: (b"EMQ.REAP", QUEUE, b"LIMIT", b"1"),
        lambda job: (
            zrem(b"active", job),
            hset(job, b"reaped", b"1", b"state", b"pending"),
            zadd(b"pending", b"0", job),
        ),
    ),
    "state": Case(
        pending,
        lambda job: (b"EMQ.STATE", QUEUE, job),
        lambda job: ((b"HGET", row(job), b"state"), (b"ZSCORE", key(b"pending"), job)),
    ),
    "peek": Case(
        pending,
        lambda job: (b"EMQ.PEEK", QUEUE, job),
        lambda job: ((b"HGETALL", row(job)),),
    ),
    "counts": Case(
        nothing,
        lambda job: (b"EMQ.COUNTS", QUEUE),
        lambda job: (
            *((b"ZCARD", key(place)) for place in (b"pending", b"active", b"schedule", b"dead", b"held")),
            (b"SMEMBERS", key(b"lanes")),
            (b"HGET", key(b"metrics:completed"), b"count"),
            (b"HGET", key(b"metrics:failed"), b"count"),
        ),
    ),
}


class Replies:
    """Reads replies off a socket; only as much of RESP2 as it takes to count them and to find errors."""

    def __init__(self, connection: socket.socket) -> None:
        self.stream = connection.makefile("rb")

    def take(self) -> None:
        line = self.stream.readline()
        if line[:1] == b"-" or not line:
            raise SystemExit(f"the server answered {line!r}")
        if line[:1] == b"$" and line != b"$-1\r\n":
            self.stream.read(int(line[1:]) + 2)
        elif line[:1] == b"*":
            for _ in range(int(line[1:])):
                self.take()


class Server:
    """A server that is ours alone, and a connection to it."""

    def __init__(self, command: Sequence[str], directory: Path, **settings: object) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        settings |= {
            "port": port,
            "bind": "127.0.0.1",
            "dir": directory,
            "save": "",
            "hash-seed": "emq",
            "hash-max-listpack-value": 4096,
        }
        log = directory / "log"
        self.process = subprocess.Popen(
            [*command, *(word for name, value in settings.items() for word in (f"--{name}", str(value)))],
            stdout=log.open("wb"),
            stderr=subprocess.STDOUT,
        )
        self.connection = self.connect(port, log)
        self.replies = Replies(self.connection)

    def connect(self, port: int, log: Path) -> socket.socket:
        """Waits until the server has started and loaded its data."""
        while self.process.poll() is None:
            try:
                connection = socket.create_connection(("127.0.0.1", port))
            except OSError:
                time.sleep(0.1)
                continue
            connection.sendall(b"PING\r\n")
            if connection.recv(64).startswith(b"+PONG"):
                return connection
            connection.close()
            time.sleep(0.5)
        raise SystemExit(f"the server did not start\n{log.read_text(errors='replace')}")

    def send(self, commands: Commands) -> None:
        """Sends commands, pipelined, and waits for their replies."""
        commands = iter(commands)
        while batch := list(itertools.islice(commands, PIPELINED)):
            words = (b"*%d\r\n%b" % (len(command), b"".join(map(bulk, command))) for command in batch)
            self.connection.sendall(b"".join(words))
            for _ in batch:
                self.replies.take()

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


def bulk(word: bytes) -> bytes:
    return b"$%d\r\n%b\r\n" % (len(word), word)


class Counter(Server):
    """A server under callgrind, which counts inside one function of it.

    TIME is the mark between what is counted apart: it makes callgrind write a dump.
    """

    def __init__(self, server: str, module: str, directory: Path, function: str, **settings: object) -> None:
        self.out = directory / "out"
        self.dumps = 0
        valgrind = [
            "valgrind",
            "--tool=callgrind",
            f"--toggle-collect={function}",
            "--dump-before=timeCommand",
            f"--callgrind-out-file={self.out}",
        ]
        super().__init__(
            [*valgrind, server], directory, loadmodule=module, **settings, **{"enable-debug-command": "yes"}
        )
        self.send(
            [(b"DEBUG", b"REPLYBUFFER", b"RESIZING", b"0")]
        )  # by the clock, which would decide what a reply costs

    def run(self, commands: Commands) -> int:
        """Answers the number of instructions that the commands took."""
        self.send((*commands, (b"TIME",)))
        self.dumps += 1
        return self.count(Path(f"{self.out}.{self.dumps}"))

    @staticmethod
    def count(dump: Path) -> int:
        for line in dump.read_text().splitlines():
            if line.startswith("summary:"):
                return int(line.split()[1])
        raise SystemExit(f"{dump} has no summary")


def prepare(server: str, directory: Path, commands: Commands, **settings: object) -> None:
    """Writes the data that a server in this directory starts with, at full speed."""
    writer = Server([server], directory, **settings)
    try:
        writer.send((*commands, (b"SAVE",)))
    finally:
        writer.stop()


Counts = dict[str, int]


def measure(counter: Counter, case: Case) -> Counts:
    def count(commands: Commands) -> int:
        counter.run((*clean(), *case.jobs(JOBS)))
        return counter.run(commands) // CALLS

    native = count(case.native(job) for job in JOBS)
    return {"native": native, "core": count(command for job in JOBS for command in case.core(job))}


def surroundings(counted: dict[str, Counts], recorded: dict[str, Counts]) -> float:
    """By which factor the core commands need more than recorded, all in all: a single one has noise of its own."""
    return max(
        1.0,
        median(
            [counts["core"] / recorded[name]["core"] for name, counts in counted.items() if name in recorded] or [1.0]
        ),
    )


def show(name: str, now: Counts, then: Counts | None) -> None:
    line = f"{name:<10} {now['native']:>8} {now['core']:>8} {now['native'] / now['core']:>6.2f}"
    if then:
        line += f"   {then['native']:>8} {now['native'] / then['native'] - 1:>+7.1%}"
    print(line, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="command", help=f"some of: {' '.join(CASES)}")
    parser.add_argument("--record", action="store_true", help="write what was counted to tests/ir.json")
    parser.add_argument("--waiting", type=int, metavar="N", help="other jobs that wait; compares nothing")
    parser.add_argument("--active", type=int, metavar="N", help="other jobs in flight; compares nothing")
    parser.add_argument("--append-only", action="store_true", help="with the append-only file; compares nothing")
    parser.add_argument("--whole", action="store_true", help="count whole requests; compares nothing")
    parser.add_argument("--module", default=str(HERE.parent / "build/emq.so"))
    parser.add_argument("--server", default=DEFAULT_SERVER, help="a valkey-server with libc's malloc")
    options = parser.parse_args()
    names = options.names or list(CASES)
    compares = options.waiting is None and options.active is None and not options.append_only and not options.whole
    if unknown := [name for name in names if name not in CASES]:
        parser.error(f"no such command: {' '.join(unknown)}")
    if options.record and not compares:
        parser.error("what is recorded is the execution, beside the usual backlog, without append-only file")
    if not shutil.which("valgrind"):
        parser.error("valgrind is missing (Debian: apt-get install valgrind)")
    if not os.access(options.server, os.X_OK):
        parser.error(f"there is no {options.server}: run ci/servers, or name a server with --server")

    recorded: dict[str, Counts] = json.loads(RECORD.read_text()) if compares and RECORD.exists() else {}
    counted: dict[str, Counts] = {}
    print(f"{'command':<10} {'native':>8} {'core':>8} {'ratio':>6}" + f"   {'recorded':>8} {'change':>7}" * compares)
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        waiting, active_jobs = (BACKLOG if number is None else number for number in (options.waiting, options.active))
        file = {"appendonly": "yes" if options.append_only else "no"}
        prepare(options.server, directory, backlog(waiting, active_jobs), **file)
        counter = Counter(
            options.server, options.module, directory, WHOLE_REQUEST if options.whole else EXECUTION, **file
        )
        try:
            counter.run(warm())
            for name in names:
                rounds = [measure(counter, CASES[name]) for _ in range(RECORDED_ROUNDS if options.record else 1)]
                counted[name] = {side: median_low(counts[side] for counts in rounds) for side in ("native", "core")}
                show(name, counted[name], recorded.get(name))
            allowed = TOLERANCE * surroundings(counted, recorded)

            def exceeds(name: str) -> bool:
                return name in recorded and counted[name]["native"] > allowed * recorded[name]["native"]

            for name in filter(exceeds, [] if options.record else names):
                counted[name] = measure(counter, CASES[name])
                show(name, counted[name], recorded[name])
        finally:
            counter.stop()

    if options.record:
        RECORD.write_text(json.dumps({**recorded, **counted}, indent=2) + "\n")
    if options.record or not compares:
        return 0
    if missing := [name for name in names if name not in recorded]:
        print(f"not recorded: {' '.join(missing)} (run tests/ir.py --record)")
    if slower := [name for name in names if exceeds(name)]:
        print(f"more than {allowed - 1:.1%} above the record: {' '.join(slower)}")
    return 1 if slower or missing else 0


if __name__ == "__main__":
    sys.exit(main())
