"""A replica takes over while people work."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pytest
from tests.cluster.nodes import Cluster, done, info, slot_of, until
from tests.cluster.work import Work

from emq_native import Worker, connect, mint
from emq_native.conformance.lab import LEASE, Lab
from emq_native.conformance.scenes import VERBS, fill
from emq_native.conformance.wire import Error, Simple, Word
from emq_native.errors import Unavailable
from emq_native.executors import SCRIPTED, Executor
from emq_native.server import Server

pytestmark = pytest.mark.cluster


ATTEMPT = 8.0
"""Seconds after which a failover that found no agreement has been given up by the servers."""


def take_over(cluster: Cluster, node: Server, how: str) -> None:
    with cluster.wire(node) as wire:
        until(lambda: info(wire, "replication").get("master_link_status") == "up", "the replica follows")
        began = 0.0

        def is_primary() -> bool:
            nonlocal began
            if info(wire, "replication")["role"] == "master":
                return True
            asks = time.monotonic() > began + ATTEMPT
            # Refused as long as the replica believes its primary gone, as it may for a moment after a standstill.
            if asks and isinstance(wire.call("CLUSTER", "FAILOVER", *([how] if how else [])), Simple):
                began = time.monotonic()
            return False

        until(is_primary, "the replica takes over", seconds=60)


def test_a_replica_takes_over_and_back_while_people_work_and_no_job_is_lost(
    fresh: Callable[..., Cluster], executor: Executor
) -> None:
    cluster = fresh(replicas=1)
    primary, replica = cluster.nodes[0], cluster.replicas[0]
    with Lab(primary.url, executor) as lab:
        with Work(cluster.nodes[1].url, executor, lab.name) as work:
            for node in (replica, primary):
                work.goes_on()
                take_over(cluster, node, "")
                work.goes_on()
        assert lab.audit() == []
        assert lab.record("metrics:completed") == {"count": str(len(work.admitted)).encode()}
        assert lab.plain("GET", lab.fence) == executor.identity.encode()

        with cluster.wire(replica) as wire:
            until(
                lambda: (
                    info(wire, "replication").get("master_link_status") == "up"
                    and wire.call("DEBUG", "DIGEST") == lab.control.call("DEBUG", "DIGEST")
                ),
                "the replica is equal",
            )
            _replicas_serve_reads_and_send_writes_away(lab, cluster)


def test_a_worker_goes_on_where_its_queue_has_gone(fresh: Callable[..., Cluster], executor: Executor) -> None:
    cluster = fresh(replicas=1)
    primary, replica = cluster.nodes[0], cluster.replicas[0]
    with (
        Lab(primary.url, executor) as lab,
        connect(cluster.nodes[1].url, wire=executor.wire, cluster=True, resend=True) as bus,
    ):
        queue = bus.queue(lab.name)

        def is_worked_off(job_id: str) -> bool:
            with suppress(Unavailable):  # as long as the nodes do not know who has the queue
                queue.enqueue(b"", id=job_id)
                until(lambda: queue.state(job_id) == "absent", "the worker takes what is enqueued")
                return True
            return False

        worker = Worker(queue, lambda job: None, lease=10, block=60)
        worker.start()
        try:
            for node in (replica, primary):
                until(partial(is_worked_off, mint()), "the worker works")
                take_over(cluster, node, "")
            until(partial(is_worked_off, mint()), "the worker works again")
        finally:
            worker.stop()
        assert worker.join(30)
        assert worker.stats.completed + worker.stats.unsure >= 3
        assert lab.audit() == []


def _is_in_step(cluster: Cluster, replica: Server, lab: Lab) -> bool:
    """Nobody waits for a replica that takes over unilaterally: what it does not have then is lost."""
    with cluster.wire(replica) as wire:
        return info(wire, "replication")["slave_repl_offset"] == lab.info("replication")["master_repl_offset"]


def _replicas_serve_reads_and_send_writes_away(lab: Lab, cluster: Cluster) -> None:
    assert lab.send("enqueue", lab.a, "p") == 1
    moved = Error(f"MOVED {slot_of(lab.name)} 127.0.0.1:{cluster.nodes[0].port}")
    at_replica = lab.connect(2, cluster.replicas[0].url)
    assert lab.send("state", lab.a, wire=at_replica) == moved
    done(at_replica.call("READONLY"))
    lab.until(lambda: lab.send("state", lab.a, wire=at_replica) == b"pending", "the replica serves the read")
    for name, verb in VERBS.items():
        if lab.serves(name) and verb.writes:
            words: list[Word] = fill(verb.forms[0], lab)
            assert lab.send(name, *words, wire=at_replica) == moved, name
    assert lab.send("state", lab.a) == b"pending"


@pytest.mark.parametrize("how", ["", "TAKEOVER"], ids=["agreed", "unilateral"])
def test_a_worker_who_waits_at_a_primary_is_sent_to_the_one_that_took_over(
    fresh: Callable[..., Cluster], executor: Executor, how: str
) -> None:
    if executor is SCRIPTED:
        return  # EMQ.NEXT is native only
    cluster = fresh(primaries=1, replicas=1)
    primary, replica = cluster.nodes[0], cluster.replicas[0]
    with Lab(primary.url, executor) as lab:
        lab.seed(lab.a, "active")
        waiter = lab.connect(2)
        waiter.send("EMQ.NEXT", lab.q, LEASE, "BLOCK", 60_000, "SETTLE", 1, "COMPLETE", lab.a, "1")
        until(lambda: lab.info("clients")["blocked_clients"] == "1", "the worker waits")
        assert lab.where(lab.a) == []
        until(lambda: _is_in_step(cluster, replica, lab), "the replica knows that the job is completed")
        take_over(cluster, replica, how)
        reply = waiter.read(timeout=30)
        assert isinstance(reply, Error)
        assert reply.code in ("UNBLOCKED", "MOVED")
        lab.url = replica.url
        lab.reconnect()
        assert lab.record("metrics:completed") == {"count": b"1"}
        assert lab.send("enqueue", lab.b, "p") == 1
        assert lab.send("next", LEASE, "BLOCK", 60_000, "SETTLE", 1, "COMPLETE", lab.a, "1") == [
            [b"gone"],
            [[lab.b.encode(), b"p", 1, None]],
            None,
        ]
        assert lab.audit() == []
