"""Field cases of replicas, pauses, fences and expiry."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.proxy import Proxy, lose_reply

import emq_native
from emq_native.conformance.host import CONFIG, OwnServer
from emq_native.conformance.lab import LEASE, Lab
from emq_native.conformance.play import Play
from emq_native.conformance.scenes import READS, SCENES, flat
from emq_native.conformance.wire import Error, Wire
from emq_native.errors import Unavailable, WrongState
from emq_native.executors import Executor
from emq_native.server import Server

MakeLab = Callable[..., Lab]
WIRE_6 = "echomq:6.0.0"


@pytest.fixture
def protocol() -> int:
    """Nodes know nothing of protocol versions."""
    return 2


@pytest.fixture
def own(executor: Executor) -> Iterator[Server]:
    """A server of the test's own, its fence claimed."""
    with Server(module=executor.name == "native", config=CONFIG) as server:
        with Wire(server.url) as wire:
            wire.call("SET", "{emq}:version", executor.identity)
        yield server


def digest(wire: Wire) -> str:
    return str(getattr(wire.call("DEBUG", "DIGEST"), "text", ""))


def test_while_writes_are_paused_nothing_moves_and_the_server_lives(own: Server, executor: Executor) -> None:
    """case 51"""
    host = OwnServer(own, executor.name == "native")
    with Lab(own.url, executor, 2, host) as lab:
        waiting = []
        for scene in SCENES:
            words = scene.prepare(lab)
            lab.load(scene.verb)
            waiting.append((scene, lab.command(scene.verb, *words), scene.answer(lab), lab.connect(2)))
            lab.name = lab.new_queue()
            lab.a, lab.b, lab.c, lab.d = lab.ids(4)
        before = digest(lab.control)
        lab.plain("CLIENT", "PAUSE", 60_000, "WRITE")
        for _, command, _, wire in waiting:
            wire.send(*command)
        for _ in range(20):
            assert digest(lab.control) == before
        assert all(wire.quiet(0) for _, _, _, wire in waiting)
        lab.plain("CLIENT", "UNPAUSE")
        for scene, _, answer, wire in waiting:
            assert flat(wire.read()) == answer, scene
        assert own.running
        lab.check()


def test_after_a_failover_the_work_goes_on_at_the_new_primary(own: Server, executor: Executor) -> None:
    """case 51"""
    native = executor.name == "native"
    config = {**CONFIG, "repl-diskless-sync": "yes"}
    with Server(module=native, config=config, replica_of=own) as follower, Lab(own.url, executor) as lab:
        lab.seed(lab.a, "schedule", score=1)
        lab.seed(lab.b, "active", score=1)
        lab.plain("FAILOVER", "TO", "127.0.0.1", follower.port)
        with Wire(follower.url) as wire:
            lab.until(lambda: b"role:master" in _info(wire), "the replica has taken over", timeout=30)
            assert lab.send("promote", wire=wire) == 1
            assert lab.send("reap", wire=wire) == 1
            assert lab.send("complete", lab.b, "1", wire=wire) == 1
            assert _code(lab.send("claim", LEASE)) == "READONLY"
            lab.url = follower.url
            lab.reconnect()
            assert lab.audit() == []


def _info(wire: Wire) -> bytes:
    reply = wire.call("INFO", "replication")
    assert isinstance(reply, bytes)
    return reply


def _code(reply: object) -> str | None:
    return reply.code if isinstance(reply, Error) else None


def test_a_replica_that_follows_a_crowd_is_equal(own: Server, executor: Executor) -> None:
    """case 64"""
    with Server(module=False, config=CONFIG, replica_of=own) as follower, Lab(own.url, executor) as lab:
        with Wire(follower.url) as wire:
            for seed in range(4):
                play = Play(lab, seed)
                for _ in range(300):
                    play.step()
                lab.until(lambda: digest(wire) == digest(lab.control), "the replica is equal")
        lab.check()


def test_a_repeated_call_after_a_lost_answer_changes_nothing(own: Server, executor: Executor) -> None:
    """case 46"""
    with (
        Lab(own.url, executor) as lab,
        Proxy(own.port) as proxy,
        emq_native.connect(proxy.url, wire=executor.wire) as bus,
    ):
        queue = bus.queue(lab.name)

        def lost(verb: str, call: Callable[[], object]) -> None:
            """The server carries the command out, and nobody is left to read the answer."""
            lab.load(verb)
            proxy.on(lab.command(verb)[0].decode(), lose_reply)
            with pytest.raises(Unavailable) as caught:
                call()
            assert caught.value.outcome_unknown

        lost("enqueue", lambda: queue.enqueue(b"p", id=lab.a))
        assert lab.where(lab.a) == ["pending"]
        again = queue.enqueue(b"p", id=lab.a)
        assert (str(again), again.created) == (lab.a, False)
        job = queue.claim(lease=60)
        assert job is not None
        lost("retry", lambda: queue.retry(job, delay=60, max_attempts=3, error="e"))
        assert lab.where(lab.a) == ["schedule"]
        with lab.unchanged(), pytest.raises(WrongState):
            queue.retry(job, delay=60, max_attempts=3, error="e")
        lab.seed(lab.b)
        other = queue.claim(lease=60)
        assert other is not None
        lost("complete", lambda: queue.complete(other))
        assert lab.where(lab.b) == []
        with lab.unchanged():
            assert queue.complete(other) is False
        assert lab.record("metrics:completed") == {"count": b"1"}


OTHER_FENCES: dict[str, bytes | None] = {
    "the wire before": b"echomq:5.0.0",
    "the wire after": b"echomq:7.0.0",
    "the scripts": b"echomq:4.0.0",
    "nothing": None,
    "empty": b"",
    "text": b"abc",
    "a number": b"6",
    "blank before": b" echomq:6.0.0",
    "blank after": b"echomq:6.0.0 ",
    "a fraction": b"1.0",
    "a huge number": b"1" + b"0" * 30,
}


@pytest.mark.parametrize("fence", OTHER_FENCES)
def test_under_any_other_fence_every_writing_verb_refuses_and_looking_goes_on(make_lab: MakeLab, fence: str) -> None:
    """case 77, case 78"""
    lab = make_lab("native")
    for scene in SCENES:
        words = scene.prepare(lab)
        with lab.fence_as(OTHER_FENCES[fence]), lab.unchanged(str(scene)):
            reply = lab.send(scene.verb, *words)
            assert isinstance(reply, Error), scene
            assert reply.text.startswith(f"EMQFENCE wants {WIRE_6} at {{emq}}:version, found "), scene
        lab.anew()
    for scene in READS:
        words = scene.prepare(lab)
        with lab.fence_as(OTHER_FENCES[fence]):
            assert flat(lab.send(scene.verb, *words)) == scene.answer(lab)
        lab.anew()


@pytest.mark.parametrize("loss", ["deleted", "expired", "renamed", "a list", "a hash"])
def test_a_fence_that_is_lost_while_jobs_run_stops_writing_and_comes_back_only_by_hand(
    make_lab: MakeLab, loss: str
) -> None:
    """case 78"""
    lab = make_lab("native")
    lab.seed(lab.a, "active")
    with lab.fence_as(WIRE_6):
        if loss == "expired":
            lab.plain("PEXPIRE", lab.fence, 1)
            lab.until(lambda: lab.plain("EXISTS", lab.fence) == 0, "the fence has expired")
        elif loss == "renamed":
            lab.plain("RENAME", lab.fence, "elsewhere")
        else:
            lab.plain("DEL", lab.fence)
        if loss == "a list":
            lab.plain("RPUSH", lab.fence, WIRE_6)
        elif loss == "a hash":
            lab.plain("HSET", lab.fence, WIRE_6, WIRE_6)
        found = "a key that is no string" if loss.startswith("a ") else "nothing"
        for verb, words in (("complete", [lab.a, "1"]), ("enqueue", [lab.b, "p"]), ("reap", [])):
            lab.refused(f"EMQFENCE wants {WIRE_6} at {{emq}}:version, found {found}", verb, *words)
        lab.plain("DEL", "elsewhere")
        lab.plain("DEL", lab.fence)
        lab.plain("SET", lab.fence, WIRE_6)
        assert lab.send("complete", lab.a, "1") == 1


def test_a_fence_that_expired_but_was_not_yet_deleted_counts_as_nothing(make_lab: MakeLab) -> None:
    """case 78"""
    lab = make_lab("native")
    lab.plain("DEBUG", "SET-ACTIVE-EXPIRE", 0)
    try:
        with lab.fence_as(WIRE_6):
            lab.plain("PEXPIREAT", lab.fence, lab.now() + 5)
            lab.reach(lab.now() + 10)
            reply = lab.send("enqueue", lab.a, "p")
            assert reply == Error(f"EMQFENCE wants {WIRE_6} at {{emq}}:version, found nothing")
            assert lab.fields_of(lab.a) == {}
    finally:
        lab.plain("DEBUG", "SET-ACTIVE-EXPIRE", 1)


def test_no_key_has_a_ttl_at_any_time_of_a_queue(lab: Lab) -> None:
    """case 80"""
    for scene in SCENES:
        words = scene.prepare(lab)
        lab.send(scene.verb, *words)
        assert {name: key.expires for name, key in lab.data().items() if key.expires is not None} == {}
        lab.anew()


def test_pressure_on_keys_with_a_ttl_leaves_jobs_alone(own: Server, executor: Executor) -> None:
    """case 80"""
    with Lab(own.url, executor) as lab:
        jobs = sorted(lab.seed(job, payload="x" * 1000) for job in lab.ids(500))
        used = int(lab.info("memory")["used_memory"])
        lab.plain("CONFIG", "SET", "maxmemory-policy", "volatile-lru")
        lab.plain("CONFIG", "SET", "maxmemory", used + 2_000_000)
        for number in range(4_000):
            lab.control.call("SET", f"foreign:{number}", "x" * 1000, "EX", 1000)
        assert int(lab.info("stats")["evicted_keys"]) > 500
        assert sorted(lab.scores("pending")) == jobs
        lab.check()
        lab.plain("CONFIG", "SET", "maxmemory", 0)
