"""In a cluster every queue has a fence of its own, in its own slot: what a command declares is all that it can see."""

from __future__ import annotations

import pytest
from tests.cluster.nodes import Cluster, done, queue_key
from tests.cluster.test_verbs import scenes

import emq_native
from emq_native.conformance.audit import keys as scan
from emq_native.conformance.lab import LEASE, Lab
from emq_native.conformance.play import Play
from emq_native.conformance.scenes import READS, flat
from emq_native.conformance.wire import Error, Wire
from emq_native.errors import FenceRefused, WireMismatch, WireUnclaimed
from emq_native.executors import NATIVE, SCRIPTED, Executor

pytestmark = pytest.mark.cluster

WRONG = {
    "absent": (None, "nothing"),
    "of the scripts": ("echomq:4.0.0", "echomq:4.0.0"),
    "of the next wire": ("echomq:7.0.0", "echomq:7.0.0"),
    "empty": ("", "an empty string"),
}


def set_fence(lab: Lab, value: str | None) -> None:
    if value is None:
        lab.plain("DEL", lab.fence)
    else:
        lab.plain("SET", lab.fence, value)


@pytest.mark.parametrize("wrong", WRONG)
def test_a_writing_verb_obeys_the_fence_of_its_queue_and_a_reading_one_needs_none(
    labs: list[Lab], executor: Executor, wrong: str
) -> None:
    """C147, case 70"""
    if executor is SCRIPTED:
        return  # scripts do not read the fence, their connector does
    value, found = WRONG[wrong]
    for lab in labs:
        for scene in scenes(executor):
            words = scene.prepare(lab)
            set_fence(lab, value)
            if scene in READS:
                assert flat(lab.send(scene.verb, *words)) == scene.answer(lab), scene
            else:
                lab.refused(f"EMQFENCE wants echomq:6.0.0 at {lab.key('version')}, found {found}", scene.verb, *words)
            set_fence(lab, executor.identity)
            assert flat(lab.send(scene.verb, *words)) == scene.answer(lab), scene
            lab.anew()


def test_no_other_fence_opens_a_queue_or_closes_it(cluster: Cluster, labs: list[Lab], executor: Executor) -> None:
    """C147, case 70"""
    if executor is SCRIPTED:
        return
    with cluster.client() as client:
        for value in (NATIVE.identity, SCRIPTED.identity):
            client.set("{emq}:version", value)
            for lab in labs:
                assert lab.send("enqueue", lab.ids(1)[0], "p") == 1
        client.set("{emq}:version", NATIVE.identity)
        closed, *open_ = labs
        closed.plain("DEL", closed.fence)
        refusal = Error(f"EMQFENCE wants echomq:6.0.0 at {closed.key('version')}, found nothing")
        assert closed.send("claim", LEASE) == refusal
        assert all(lab.send("claim", LEASE) != [] for lab in open_)
        client.delete("{emq}:version")


def test_the_connector_asks_for_the_fence_of_each_queue(cluster: Cluster, labs: list[Lab], executor: Executor) -> None:
    """C147, case 70"""
    unclaimed, foreign, own = labs
    unclaimed.plain("DEL", unclaimed.fence)
    foreign.plain("SET", foreign.fence, (SCRIPTED if executor is NATIVE else NATIVE).identity)
    with emq_native.connect(cluster.url, wire=executor.wire, cluster=True) as bus:
        assert bus.queue(own.name).enqueue(b"p").created
        with pytest.raises(WireMismatch):
            bus.queue(foreign.name).enqueue(b"p")
        if executor is NATIVE:
            with pytest.raises(WireUnclaimed):
                bus.queue(unclaimed.name).enqueue(b"p")
            assert unclaimed.data() == {}
            cluster.claim(unclaimed.name)
        assert bus.queue(unclaimed.name).enqueue(b"p").created
        assert unclaimed.plain("GET", unclaimed.fence) == executor.identity.encode()
        own.plain("DEL", own.fence)
        if executor is NATIVE:
            with pytest.raises(FenceRefused):
                bus.queue(own.name).enqueue(b"p")
        own.plain("SET", own.fence, executor.identity)
    assert set(foreign.data()) == {b"version"}


def names_by(wire: Wire, pattern: str) -> set[bytes]:
    names = wire.call("KEYS", pattern)
    assert isinstance(names, list)
    return {name for name in names if isinstance(name, bytes)}


def counted(wire: Wire) -> int:
    size = wire.call("DBSIZE")
    assert isinstance(size, int)
    return size


def assert_plain_commands_see_every_key(wire: Wire) -> set[bytes]:
    """KEYS, SCAN, DBSIZE, EXISTS, TYPE and the counters of slots speak of the same keys."""
    names = names_by(wire, "*")
    assert scan(wire, b"*") == names
    assert counted(wire) == len(names)
    by_slot: dict[int, set[bytes]] = {}
    for name in names:
        assert wire.call("EXISTS", name) == 1
        assert getattr(wire.call("TYPE", name), "text", None) != "none"
        number = wire.call("CLUSTER", "KEYSLOT", name)
        assert isinstance(number, int)
        by_slot.setdefault(number, set()).add(name)
    for number, there in by_slot.items():
        assert wire.call("CLUSTER", "COUNTKEYSINSLOT", number) == len(there)
        found = wire.call("CLUSTER", "GETKEYSINSLOT", number, 10_000)
        assert isinstance(found, list)
        assert {name for name in found if isinstance(name, bytes)} == there
    return names


def digest(wire: Wire) -> str:
    return str(getattr(wire.call("DEBUG", "DIGEST"), "text", ""))


def test_plain_commands_see_every_key_before_and_after_a_reload(labs: list[Lab]) -> None:
    """case 70"""
    for number, lab in enumerate(labs):
        play = Play(lab, number)
        for step in range(300):
            play.step()
            if step % 60 == 0:
                assert_plain_commands_see_every_key(lab.control)
        lab.seed(lab.a, "schedule", score=1)
        lab.seed(lab.b, group="g")
        names = assert_plain_commands_see_every_key(lab.control)
        before = digest(lab.control)
        for reload in (("DEBUG", "RELOAD"), ("DEBUG", "LOADAOF")):
            done(lab.control.call(*reload))
            assert (digest(lab.control), assert_plain_commands_see_every_key(lab.control)) == (before, names)
        assert lab.audit() == []
        for _ in range(60):
            play.step()
        assert_plain_commands_see_every_key(lab.control)


def test_a_queue_that_shares_its_node_with_others_sees_only_its_own_keys(labs: list[Lab]) -> None:
    """case 70"""
    lab = labs[0]
    other = lab.new_queue()
    assert lab.send("enqueue", lab.a, "p", queue=queue_key(other)) == 1
    assert lab.send("claim", LEASE) == []
    assert lab.send("state", lab.a) == b"absent"
    assert lab.send("state", lab.a, queue=queue_key(other)) == b"pending"
