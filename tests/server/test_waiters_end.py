"""How waits end: broken off, cut short by the server's own turns, or not at all while nothing may be written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from tests.server.waiting import HOUR, LEASE, NOTHING, Waiter, answers, counter, job, jobs, lab_on, own_lab, waiters

from emq_native.conformance.host import CONFIG
from emq_native.conformance.lab import Lab
from emq_native.conformance.wire import Error, Wire, Word
from emq_native.server import Server

UNBLOCKED = Error("UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)")


@pytest.fixture
def lab() -> Iterator[Lab]:
    with own_lab() as laboratory:
        yield laboratory


def config(lab: Lab, name: str, value: object) -> None:
    lab.plain("CONFIG", "SET", name, str(value))


def test_nobody_waits_beyond_the_most_that_may(lab: Lab) -> None:
    assert lab.plain("CONFIG", "GET", "emq.max-waiters") == [b"emq.max-waiters", b"10000"]
    config(lab, "emq.max-waiters", 2)
    first, second = waiters(lab, 2)
    assert lab.send("next", LEASE, "BLOCK", HOUR) == NOTHING
    lab.send("enqueue", lab.a, "payload")
    assert first.answer() == jobs(job(lab.a))
    first.wait("BLOCK", HOUR)
    config(lab, "emq.max-waiters", 0)
    assert lab.send("next", LEASE, "BLOCK", HOUR) == NOTHING
    lab.send("enqueue", lab.b, "payload")
    assert second.answer() == jobs(job(lab.b))
    for value in (-1, 1_000_001, "many"):
        reply = lab.control.call("CONFIG", "SET", "emq.max-waiters", value)
        assert isinstance(reply, Error), value


def test_the_most_that_may_wait_can_be_configured_at_start() -> None:
    with Server(config={**CONFIG, "emq.max-waiters": 0}) as server, lab_on(server) as lab:
        assert lab.send("next", LEASE, "BLOCK", HOUR) == NOTHING


def test_a_subscriber_does_not_wait(lab: Lab) -> None:
    wire = lab.connect(3)
    wire.send("SUBSCRIBE", "news")
    lab.until(lambda: lab.plain("PUBLISH", "news", "x") == 1, "it subscribes")
    version = lab.info("server")["valkey_version"]
    if version.startswith("8.0"):
        return  # such a server lets it wait
    assert lab.send("next", LEASE, "BLOCK", HOUR, wire=wire) == NOTHING


def test_a_wait_through_a_function_or_a_transaction_is_none(lab: Lab) -> None:
    body = "server.register_function('next', function(k) return server.call('EMQ.NEXT', k[1], 1, 'BLOCK', 9) end)"
    lab.plain("FUNCTION", "LOAD", "#!lua name=worker\n" + body)
    assert lab.wire.call("FCALL", "next", 1, lab.q) == NOTHING
    assert lab.in_multi("next", LEASE, "BLOCK", HOUR) == NOTHING


def test_the_server_ends_all_waits_when_it_becomes_a_replica(lab: Lab) -> None:
    crowd = waiters(lab, 10)
    lab.seed(lab.a, "active")
    crowd.append(Waiter(lab, "BLOCK", HOUR, "SETTLE", 1, "COMPLETE", lab.a, 1))
    with Server(config=CONFIG) as other:
        lab.plain("REPLICAOF", "127.0.0.1", other.port)
        assert answers(crowd) == [UNBLOCKED] * 11
        assert counter(lab, "waiters") == 0
        reply = lab.send("next", LEASE, "BLOCK", HOUR)
        assert isinstance(reply, Error)
        assert reply.code == "READONLY"
        lab.plain("REPLICAOF", "NO", "ONE")
    lab.plain("SET", lab.fence, lab.executor.identity)
    waiter = Waiter(lab, "BLOCK", HOUR)
    lab.send("enqueue", lab.b, "payload")
    assert waiter.answer() == jobs(job(lab.b))


def test_a_failover_loses_no_job_and_no_waiter(lab: Lab) -> None:
    assert lab.own_server is not None
    follower = Server(config=CONFIG, replica_of=lab.own_server.server)
    with follower, Wire(follower.url) as wire:
        crowd = waiters(lab, 3)
        lab.plain("FAILOVER", "TO", "127.0.0.1", follower.port)
        assert answers(crowd) == [UNBLOCKED] * 3
        lab.until(lambda: b"role:master" in bytes(wire.call("INFO", "replication")), "it has taken over")  # type: ignore[arg-type]
        assert lab.send("enqueue", lab.a, "payload", wire=wire) == 1
        assert lab.send("next", LEASE, wire=wire) == jobs(job(lab.a))
        assert lab.send("complete", lab.a, 1, wire=wire) == 1
        wire.call("REPLICAOF", "NO", "ONE")
        lab.until(lambda: lab.info("replication")["master_failover_state"] == "no-failover", "the old one knows too")
        lab.plain("REPLICAOF", "NO", "ONE")


def at_once(lab: Lab, *commands: Sequence[Word]) -> None:
    """Several commands between which no time goes by."""
    lab.control.pipeline([["MULTI"], *commands, ["EXEC"]])


def test_while_writes_are_paused_nothing_moves_and_then_it_does(lab: Lab) -> None:
    waiter, short = Waiter(lab, "BLOCK", HOUR), Waiter(lab, "BLOCK", 400)
    schedule = lab.command("schedule", lab.a, "payload", "IN", 100)
    at_once(lab, schedule, ["CLIENT", "PAUSE", HOUR, "WRITE"])
    before = lab.info("replication")["master_repl_offset"]
    assert short.answer() == NOTHING
    lab.reach(lab.scores("schedule")[lab.a])
    assert waiter.waits()
    assert list(lab.scores("schedule")) == [lab.a]
    assert lab.info("replication")["master_repl_offset"] == before
    lab.plain("CLIENT", "UNPAUSE")
    assert waiter.answer() == jobs(job(lab.a))


def test_a_job_that_comes_with_the_pause_is_served_after_it(lab: Lab) -> None:
    first, second = waiters(lab, 2)
    enqueue = lab.command("menqueue", lab.a, "payload", lab.b, "payload")
    at_once(lab, enqueue, ["CLIENT", "PAUSE", HOUR, "WRITE"])
    assert first.waits()
    assert len(lab.scores("pending")) == 2
    lab.plain("CLIENT", "UNPAUSE")
    assert answers([first, second]) == [jobs(job(lab.a)), jobs(job(lab.b))]


def test_a_waiter_that_leaves_during_a_pause_leaves_its_turn_to_the_next(lab: Lab) -> None:
    first, second = waiters(lab, 2)
    enqueue = lab.command("enqueue", lab.a, "payload")
    at_once(lab, enqueue, ["CLIENT", "PAUSE", HOUR, "WRITE"])
    assert lab.plain("CLIENT", "KILL", "ID", str(first.id)) == 1
    lab.plain("CLIENT", "UNPAUSE")
    assert second.answer() == jobs(job(lab.a))


def test_a_server_that_lost_its_replicas_gives_out_no_job(lab: Lab) -> None:
    """What it would refuse to one who asks it does not do for one who waits."""
    told, waiter = waiters(lab, 2)
    schedule = lab.command("schedule", lab.a, "payload", "IN", 100)
    at_once(lab, schedule, ["CONFIG", "SET", "min-replicas-to-write", 1])
    assert told.answer() == NOTHING
    assert waiter.answer() == NOTHING
    assert list(lab.scores("schedule")) == [lab.a]
    assert lab.send("next", LEASE, wire=waiter.wire) == Error("NOREPLICAS Not enough good replicas to write.")
    config(lab, "min-replicas-to-write", 0)
    assert lab.send("next", LEASE, wire=waiter.wire) == jobs(job(lab.a))


def test_a_waiter_outlives_a_flush(lab: Lab) -> None:
    told, told_anew, waiter = waiters(lab, 3)
    lab.send("schedule", lab.a, "payload", "IN", HOUR // 2)
    assert told.answer() == NOTHING
    lab.plain("FLUSHALL")
    lab.plain("SET", lab.fence, lab.executor.identity)
    lab.send("schedule", lab.b, "payload", "IN", HOUR // 2 + 1000)  # at no instant that is known already
    assert told_anew.answer() == NOTHING
    lab.send("enqueue", lab.c, "payload")
    assert waiter.answer() == jobs(job(lab.c))


def test_a_job_that_is_flushed_before_it_is_due_ends_no_wait(lab: Lab) -> None:
    crowd = waiters(lab, 2)
    schedule = lab.command("schedule", lab.a, "payload", "IN", 50)
    at_once(lab, schedule, ["FLUSHALL"], ["SET", lab.fence, lab.executor.identity])
    lab.reach(lab.now() + 50)
    assert all(waiter.waits() for waiter in crowd)
    lab.send("menqueue", lab.b, "payload", lab.c, "payload")
    assert answers(crowd) == [jobs(job(lab.b)), jobs(job(lab.c))]


def test_all_who_are_woken_learn_that_the_fence_is_gone(lab: Lab) -> None:
    crowd = waiters(lab, 3)
    lab.plain("FLUSHALL")
    lab.seed(lab.a)
    fault = f"EMQFENCE wants echomq:6.0.0 at {lab.fence}, found nothing"
    assert answers(crowd) == [jobs(fault=fault)] * 3
    assert lab.where(lab.a) == ["pending"]


def test_a_reloaded_server_goes_on_with_its_waiters(lab: Lab) -> None:
    waiter = Waiter(lab, "BLOCK", HOUR)
    lab.plain("DEBUG", "RELOAD")
    lab.plain("DEBUG", "LOADAOF")
    lab.send("enqueue", lab.a, "payload")
    assert waiter.answer() == jobs(job(lab.a))


def test_databases_have_waiters_of_their_own(lab: Lab) -> None:
    here = Waiter(lab, "BLOCK", HOUR)
    there = lab.connect(2)
    there.call("SELECT", 1)
    there.call("SET", lab.fence, lab.executor.identity)
    there.send(*lab.command("next", LEASE, "BLOCK", HOUR))
    lab.until(lambda: counter(lab, "waiters") == 2, "both wait")
    other = lab.connect(2)
    other.call("SELECT", 1)
    assert lab.send("enqueue", lab.a, "payload", wire=other) == 1
    assert there.read() == jobs(job(lab.a))
    assert here.waits()
    lab.send("enqueue", lab.b, "payload")
    assert here.answer() == jobs(job(lab.b))
    other.call("FLUSHDB")


def test_queues_have_waiters_of_their_own(lab: Lab) -> None:
    waiter = Waiter(lab, "BLOCK", HOUR)
    other = f"emq:{{{lab.new_queue()}}}"
    before = counter(lab, "wakes")
    lab.send("enqueue", lab.a, "payload", queue=other)
    assert lab.send("next", LEASE, queue=other) == jobs(job(lab.a))
    lab.plain("ZADD", lab.key("pending") + "x", 0, "x")
    lab.plain("ZADD", "x" + lab.key("pending"), 0, "x")
    lab.plain("ZADD", "emq:{", 0, "x")
    lab.plain("ZADD", "emq:{}:pending", 0, "x")
    lab.plain("RPUSH", "emq:{" + "x" * 200 + "}:ring", "x")
    assert counter(lab, "wakes") == before
    assert waiter.waits()
    lab.plain("FLUSHALL")


def test_a_foreign_hand_on_the_private_key_of_a_waiter_does_no_harm(lab: Lab) -> None:
    waiter = Waiter(lab, "BLOCK", HOUR)
    for number in range(1, 5):
        lab.plain("RPUSH", lab.key(f"waiter:{number}"), "x")
        lab.plain("DEL", lab.key(f"waiter:{number}"))
    assert waiter.waits()
    lab.send("enqueue", lab.a, "payload")
    assert waiter.answer() == jobs(job(lab.a))
