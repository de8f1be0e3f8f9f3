"""Clients that wait in EMQ.NEXT, and the server that they wait on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from emq_native.conformance.cases.next import NOTHING, Waiter, job, jobs
from emq_native.conformance.host import CONFIG, OwnServer
from emq_native.conformance.lab import LEASE, Lab
from emq_native.conformance.wire import Reply, Wire, Word
from emq_native.executors import NATIVE
from emq_native.server import Server

__all__ = [
    "HOUR",
    "LEASE",
    "NOTHING",
    "Waiter",
    "assert_followed",
    "assert_reloads",
    "counter",
    "digest",
    "job",
    "jobs",
    "lab_on",
    "own_lab",
    "waiters",
]

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


def digest(wire: Wire) -> str:
    return str(getattr(wire.call("DEBUG", "DIGEST"), "text", ""))


def caught_up(lab: Lab, replica: Wire) -> bool:
    reply = replica.call("INFO", "replication")
    assert isinstance(reply, bytes)
    return f"slave_repl_offset:{lab.info('replication')['master_repl_offset']}\r".encode() in reply


def assert_followed(lab: Lab, replica: Wire, after: object) -> None:
    lab.until(lambda: caught_up(lab, replica), "the replica has caught up")
    assert digest(replica) == digest(lab.control), after


def assert_reloads(lab: Lab) -> None:
    """The append-only file, loaded without the module, gives the same data."""
    assert lab.own_server is not None
    server, before = lab.own_server.server, digest(lab.control)
    server.kill()
    server.restart(module=False)
    with Wire(server.url) as wire:
        assert digest(wire) == before
    server.restart(module=True)
    lab.reconnect()
