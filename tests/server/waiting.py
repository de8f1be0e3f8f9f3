"""Clients that wait in EMQ.NEXT, and the server that they wait on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from emq_native.conformance.cases.next import NOTHING, Waiter, job, jobs
from emq_native.conformance.host import CONFIG, OwnServer
from emq_native.conformance.lab import LEASE, Lab
from emq_native.conformance.wire import Reply, Word
from emq_native.executors import NATIVE
from emq_native.server import Server

__all__ = ["HOUR", "LEASE", "NOTHING", "Waiter", "counter", "job", "jobs", "lab_on", "own_lab", "waiters"]

HOUR = 3_600_000


def counter(lab: Lab, name: str) -> int:
    """`waiters`, `wakes` or `batons` of INFO emq."""
    return int(lab.info("emq")[f"emq_{name}"])


def waiters(lab: Lab, count: int, *words: Word) -> list[Waiter]:
    """So many clients that wait for an hour, in this order."""
    return [Waiter(lab, "BLOCK", HOUR, *words) for _ in range(count)]


def answers(some: Sequence[Waiter]) -> list[Reply]:
    """What each of them is told."""
    return [waiter.answer() for waiter in some]


@contextmanager
def lab_on(server: Server) -> Iterator[Lab]:
    """A lab on a running server of our own, its fence claimed; audited at the end."""
    with Lab(server.url, NATIVE, 2, OwnServer(server, True)) as lab:
        if not lab.cluster:
            lab.plain("SET", lab.fence, NATIVE.identity)
        yield lab
        lab.check()


@contextmanager
def own_lab(**config: str | int) -> Iterator[Lab]:
    """A lab on a server that nobody else uses."""
    settings = {**CONFIG, **{name.replace("_", "-"): value for name, value in config.items()}}
    with Server(config=settings) as server, lab_on(server) as lab:
        yield lab
        assert "BUG REPORT" not in server.log()
        assert server.running
