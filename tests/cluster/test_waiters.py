"""Waits in a cluster: the fence of the queue, slots that move, nodes that lose theirs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from tests.server.waiting import HOUR, LEASE, NOTHING, Waiter, counter, job, jobs, lab_on

from emq_native.conformance.host import CONFIG
from emq_native.conformance.lab import Lab
from emq_native.conformance.wire import Error, Reply, Wire
from emq_native.keys import slot
from emq_native.server import Server, form_cluster

pytestmark = pytest.mark.cluster
CLUSTER = {**CONFIG, "cluster-enabled": "yes"}


@pytest.fixture
def alone() -> Iterator[Lab]:
    """A lab on a node that has all slots."""
    with Server(config=CLUSTER) as server:
        server.own_slots()
        with lab_on(server) as lab:
            yield lab
            assert server.running


@pytest.fixture
def pair() -> Iterator[tuple[Lab, Wire]]:
    """A lab on one node of two, and a connection to the other."""
    with ExitStack() as stack:
        here, there = (stack.enter_context(Server(config=CLUSTER)) for _ in range(2))
        form_cluster([here, there])
        yield stack.enter_context(lab_on(here)), stack.enter_context(Wire(there.url))
        assert here.running
        assert there.running


def name_of(node: Wire) -> str:
    reply = node.call("CLUSTER", "MYID")
    assert isinstance(reply, bytes)
    return reply.decode()


def code(reply: Reply) -> str:
    return reply.code if isinstance(reply, Error) else str(reply)


def test_a_queue_in_a_cluster_has_waiters_like_any_other(alone: Lab) -> None:
    """The server looks at each blocked client once a second whether its slot is still here."""
    lab = alone
    short, waiter, lanes = Waiter(lab, "BLOCK", 1500), Waiter(lab, "BLOCK", HOUR), Waiter(lab, "BLOCK", HOUR)
    assert short.answer() == NOTHING
    lab.send("enqueue", lab.a, "payload")
    assert waiter.answer() == jobs(job(lab.a))
    lab.plain("HSET", lab.row(lab.b), "state", "pending", "attempts", 0, "payload", "payload")
    lab.plain("ZADD", lab.key("pending"), 0, lab.b)
    assert lanes.answer() == jobs(job(lab.b))


def test_a_waiter_learns_that_the_fence_of_its_queue_is_gone(alone: Lab) -> None:
    lab = alone
    waiter = Waiter(lab, "BLOCK", HOUR)
    with lab.fence_as(None):
        lab.seed(lab.a)
        fault = f"EMQFENCE wants echomq:6.0.0 at {lab.key('version')}, found nothing"
        assert waiter.answer() == jobs(fault=fault)


def test_a_slot_that_moves_as_a_whole_takes_its_waiters_along(pair: tuple[Lab, Wire]) -> None:
    lab, there = pair
    if lab.info("server")["valkey_version"].startswith("8."):
        return  # such a server moves slots key by key only
    lab.seed(lab.a, "active")
    waiter = Waiter(lab, "BLOCK", HOUR)
    number = str(slot(lab.q))
    lab.plain("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", number, number, "NODE", name_of(there))
    assert code(waiter.answer(30)) == "MOVED"
    lab.until(lambda: there.call("EXISTS", lab.fence) == 1, "the slot has moved", timeout=30)
    assert counter(lab, "waiters") == 0
    assert lab.send("complete", lab.a, 1, wire=there) == 1
    there.send(*lab.command("next", LEASE, "BLOCK", HOUR))
    with Wire(there.url) as other:
        assert lab.send("enqueue", lab.b, "payload", wire=other) == 1
        assert there.read() == jobs(job(lab.b))
        for suffix in ("active", f"job:{lab.b}", "metrics:completed", "version"):
            other.call("DEL", lab.key(suffix))
    lab._queues.clear()


def test_a_slot_that_moves_key_by_key_sends_its_waiters_on(pair: tuple[Lab, Wire]) -> None:
    lab, there = pair
    here_name, there_name, number = name_of(lab.control), name_of(there), str(slot(lab.q))
    lab.pause()
    lab.seed(lab.a)
    asked, waiter = Waiter(lab, "BLOCK", HOUR), Waiter(lab, "BLOCK", HOUR, "FROM", "LANES", "PROMOTE", 0)
    there.call("CLUSTER", "SETSLOT", number, "IMPORTING", here_name)
    lab.plain("CLUSTER", "SETSLOT", number, "MIGRATING", there_name)
    assert code(lab.send("next", LEASE)) == "ASK"
    lab.resume()
    assert asked.answer() == NOTHING
    assert list(lab.scores("pending")) == [lab.a]
    keys = [lab.key(suffix) for suffix in ("pending", f"job:{lab.a}", "version")]
    there_port = there.url.rpartition(":")[2].partition("/")[0]
    lab.plain("MIGRATE", "127.0.0.1", there_port, "", 0, 10_000, "KEYS", *keys)
    for node in (there, lab.control):
        node.call("CLUSTER", "SETSLOT", number, "NODE", there_name)
    assert code(waiter.answer(30)) == "MOVED"
    assert lab.send("next", LEASE, wire=there) == jobs(job(lab.a))
    there.call("DEL", *(lab.key(suffix) for suffix in ("active", f"job:{lab.a}", "version")))
    lab._queues.clear()
