"""What does it cost to wake one of many?

So many connections wait for one queue by EMQ.NEXT, and for a list by BLPOP. Jobs are enqueued one after the other; each
wakes one waiter, which takes its job and waits again. The server's work per job has to stay the same however many wait.
"""

from __future__ import annotations

import resource
import selectors
import socket
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from bench.common import US, Size, Table, aside, cpu_ns, median, percentile, ratio, served, spread
from bench.load import Client, Exchange, encode, ids
from emq_native.executors import NATIVE, Executor
from emq_native.server import ConfigValue, Server

PAYLOAD = b"x" * 100
ROUND_S = 1.0  # a crowd that is woken slowly is woken less often
CONFIG: Mapping[str, ConfigValue] = {"maxclients": 6_000}
FILES = 12_000


@dataclass(frozen=True)
class Sizes:
    rounds: int
    wakes: int
    crowds: tuple[int, ...]


SIZES: dict[Size, Sizes] = {
    "full": Sizes(9, 200, (1, 10, 100, 1_000, 4_000)),
    "quick": Sizes(5, 100, (1, 100, 4_000)),
    "smoke": Sizes(2, 10, (1, 10)),
}

NOTE = """\
One server for each crowd; {rounds} rounds of {wakes} wakes. Microseconds of the server's main thread per wake, with
the enqueuing and the waiting again in it, and microseconds from sending the job to having it. `growth` is the ratio
to a single waiter within each round. Every waiter of the module has a key of its own; those of BLPOP share the
list's. PING: nobody waits, the connections say PING in turn; what grows there is what the kernel and the server
have to fetch for a connection that was silent."""

COLUMNS = {
    "waits_by": "", "waiters": ",", "wakes": ",", "us": ".1f", "spread": ".0%", "growth": ".2f",
    "p50_us": ",.0f", "p99_us": ",.0f",
}  # fmt: skip


@dataclass(frozen=True)
class By:
    """How one waits, and what wakes."""

    name: str
    executor: Executor | None
    wait: bytes
    queue: bytes

    @property
    def blocks(self) -> bool:
        return bool(self.wait)

    def job(self) -> bytes:
        if self.executor is None:
            return encode(b"RPUSH", self.queue, PAYLOAD)
        return encode(b"EMQ.ENQUEUE", self.queue, ids(1)[0], PAYLOAD)


# A lease is lost at the end of the server. Nothing is settled, so as not to measure that.
NEXT = By("EMQ.NEXT", NATIVE, encode(b"EMQ.NEXT", b"emq:{q}", b"60000", b"BLOCK", b"600000"), b"emq:{q}")
BLPOP = By("BLPOP", None, encode(b"BLPOP", b"list", b"600"), b"list")
PING = By("PING", None, b"", b"")


@dataclass
class Crowded:
    """One crowd. rounds: `us` of each."""

    waits_by: str
    waiters: int
    wakes: int
    us: float
    spread: float
    growth: float
    p50_us: float
    p99_us: float
    rounds: list[float]


@contextmanager
def crowd(server: Server, size: int, by: By) -> Iterator[selectors.BaseSelector]:
    """So many connections, which wait when `by` does."""
    with ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        for _ in range(size):
            each = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            each.sendall(by.wait)
            selector.register(each, selectors.EVENT_READ)
        with server.client() as client:
            while client.info("clients")["blocked_clients" if by.blocks else "connected_clients"] < size:
                time.sleep(0.01)
        yield selector


@dataclass
class Site:
    """A server with a crowd before it. late: nanoseconds."""

    server: Server
    by: By
    selector: selectors.BaseSelector
    producer: Client
    rounds: list[float] = field(default_factory=list)
    late: list[int] = field(default_factory=list)
    turn: deque[Any] = field(default_factory=deque)

    def ping(self) -> None:
        """On the connection that was silent for longest."""
        if not self.turn:
            self.turn.extend(key.fileobj for key in self.selector.get_map().values())
        said = self.turn.popleft()
        self.turn.append(said)
        began = time.perf_counter_ns()
        said.sendall(encode(b"PING"))
        answer = said.recv(64)
        self.late.append(time.perf_counter_ns() - began)
        if answer != b"+PONG\r\n":
            raise ConnectionError(f"PING was answered {answer!r}")

    def wake(self) -> None:
        """One job. When this returns, the waiter that had it waits again."""
        job = self.by.job()
        began = time.perf_counter_ns()
        self.producer.socket.sendall(job)
        ((key, _),) = self.selector.select(30)
        woken = key.fileobj
        assert isinstance(woken, socket.socket)
        answer = woken.recv(4096)
        self.late.append(time.perf_counter_ns() - began)
        if PAYLOAD not in answer:
            raise ConnectionError(f"a waiter was answered {answer!r}")
        self.producer.run([Exchange(b"", b":1\r\n")])
        woken.sendall(self.by.wait)
        self.barrier()

    def barrier(self) -> None:
        """The server has read what was sent before: an answer goes out only after all sockets that were ready then."""
        self.producer.run([Exchange(encode(b"PING"), b"+PONG\r\n")])

    def round(self, wakes: int) -> None:
        """So many wakes, less what the barriers cost."""
        before, end, count = cpu_ns(self.server), time.monotonic() + ROUND_S, 0
        while count < wakes and time.monotonic() < end:
            if self.by.blocks:
                self.wake()
            else:
                self.ping()
            count += 1
        if not self.by.blocks:
            self.rounds.append((cpu_ns(self.server) - before) / count / US)
            return
        used, quiet = cpu_ns(self.server) - before, cpu_ns(self.server)
        for _ in range(count):
            self.barrier()
        self.rounds.append((used - (cpu_ns(self.server) - quiet)) / count / US)


def measure(size: Size) -> list[Table]:
    """One table, `waiters`."""
    sizes = SIZES[size]
    rows = [row for by in (NEXT, BLPOP, PING) for row in crowds(by, sizes)]
    note = NOTE.format(rounds=sizes.rounds, wakes=sizes.wakes)
    return [Table("waiters", "What does it cost to wake one of many?", note, COLUMNS, rows)]


def crowds(by: By, sizes: Sizes) -> Iterator[Crowded]:
    with ExitStack() as stack:
        stack.enter_context(many_files())
        stack.enter_context(aside())
        sites = {}
        for waiters in sizes.crowds:
            server = stack.enter_context(served(by.executor, CONFIG))
            selector = stack.enter_context(crowd(server, waiters, by))
            sites[waiters] = Site(server, by, selector, stack.enter_context(Client(server)))
        for number in range(sizes.rounds + 1):
            for site in sites.values():
                site.round(sizes.wakes)
                if number == 0:  # it warms up
                    site.rounds.clear()
                    site.late.clear()
    first = sites[sizes.crowds[0]]
    for waiters, site in sites.items():
        yield Crowded(
            waits_by=by.name, waiters=waiters, wakes=len(site.late), us=median(site.rounds), spread=spread(site.rounds),
            growth=ratio(site.rounds, first.rounds), p50_us=percentile(site.late, 0.5) / US,
            p99_us=percentile(site.late, 0.99) / US, rounds=site.rounds,
        )  # fmt: skip


@contextmanager
def many_files() -> Iterator[None]:
    """Leave to have so many sockets."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
