"""The three ways in which a slot with queues may be moved to another node."""

from __future__ import annotations

import pytest
from tests.cluster.nodes import Cluster, done, slot_of, until
from tests.cluster.work import Work

import emq_native
from emq_native.conformance.lab import LEASE, Lab
from emq_native.conformance.play import Play
from emq_native.conformance.scenes import VERBS, fill
from emq_native.conformance.wire import Error, Reply, Wire, Word
from emq_native.errors import FenceRefused, WireUnclaimed
from emq_native.executors import SCRIPTED, Executor
from emq_native.server import Server

pytestmark = pytest.mark.cluster

ATOMIC = int(Server(module=False).version.split(".")[0]) >= 9
"""Whether the server can move a slot in one step, CLUSTER MIGRATESLOTS."""


def follow(lab: Lab, node: Server) -> None:
    """Go on with a lab at the node to which its queue was moved."""
    lab.url = node.url
    lab.reconnect()


def migrate(cluster: Cluster, number: int, source: Server, target: Server) -> None:
    with cluster.wire(source) as wire:
        done(wire.call("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", number, number, "NODE", cluster.id_of(target)))
        until(lambda: _state(wire, number) in (b"success", b"failed"), "the slot has moved")
        assert _state(wire, number) == b"success"


def _state(wire: Wire, number: int) -> Reply:
    """Of the newest migration of a slot."""
    for entry in _list(wire.call("CLUSTER", "GETSLOTMIGRATIONS")):
        words = _list(entry)
        fields = {name: value for name, value in zip(words[::2], words[1::2], strict=True) if isinstance(name, bytes)}
        if fields[b"slot_ranges"] == b"%d-%d" % (number, number):
            return fields[b"state"]
    return None


def _list(reply: Reply) -> list[Reply]:
    assert isinstance(reply, list)
    return reply


def populate(lab: Lab) -> None:
    """Keys of every kind."""
    play = Play(lab, 11)
    for _ in range(250):
        play.step()
    lab.resume()
    ids = lab.ids(3)
    lab.seed(ids[0], "active", group="g")
    lab.seed(ids[1], "schedule", score=1)
    lab.seed(ids[2], "held", children=2)
    lab.send("log", ids[0], "line")
    lab.send("repeat", "nightly", "EVERY", 1000, "template")


def work_on(lab: Lab) -> None:
    """The queue serves, and all of it can be deleted."""
    assert lab.audit() == []
    lab.send("promote")
    while lab.send("claim", LEASE) or lab.send("gclaim", LEASE):
        pass
    assert lab.send("enqueue", lab.c, "p") == 1
    assert lab.send("claim", LEASE) == [lab.c.encode(), b"p", 1]
    assert lab.send("complete", lab.c, "1") == 1
    assert lab.audit() == []
    lab.send("pause")
    while lab.send("obliterate", "FORCE", "LIMIT", 100):
        pass
    assert set(lab.data()) == {b"version"}


if ATOMIC:

    def test_a_queue_in_use_moves_in_one_step_and_nobody_loses_a_job(
        cluster: Cluster, labs: list[Lab], executor: Executor
    ) -> None:
        lab, number = labs[0], slot_of(labs[0].name)
        here, there = cluster.nodes[:2]
        with Work(cluster.nodes[2].url, executor, lab.name) as work:
            for source, target in ((here, there), (there, here)):
                work.goes_on()
                migrate(cluster, number, source, target)
                follow(lab, target)
                work.goes_on()
        assert lab.audit() == []
        assert lab.record("metrics:completed") == {"count": str(len(work.admitted)).encode()}
        assert lab.plain("GET", lab.fence) == executor.identity.encode()


def test_a_queue_whose_clients_are_stopped_moves_key_by_key(
    cluster: Cluster, labs: list[Lab], executor: Executor
) -> None:
    lab, number = labs[0], slot_of(labs[0].name)
    source, target = cluster.nodes[:2]
    populate(lab)
    before = lab.data()
    cluster.open_move(number, source, target)
    steps = list(cluster.move_keys(number, source, target, at_once=5))
    assert len(steps) > 3
    cluster.assign(number, target)
    follow(lab, target)
    assert lab.data() == before
    work_on(lab)


def test_a_queue_without_its_fence_moves_key_by_key_while_every_write_is_refused(
    cluster: Cluster, labs: list[Lab], executor: Executor
) -> None:
    if executor is SCRIPTED:
        return  # scripts do not read the fence
    lab, number = labs[0], slot_of(labs[0].name)
    source, target = cluster.nodes[:2]
    refusal = Error(f"EMQFENCE wants echomq:6.0.0 at {lab.key('version')}, found nothing")
    writes: list[list[Word]] = [
        [name.upper(), lab.q, *fill(verb.forms[0], lab)] for name, verb in VERBS.items() if verb.writes
    ]
    arrived = lab.connect(2, target.url)

    def at_target(command: list[Word]) -> Reply:
        return arrived.pipeline([["ASKING"], command])[1]

    populate(lab)
    with emq_native.connect(cluster.nodes[2].url, wire=6, cluster=True) as bus:
        client = bus.queue(lab.name)
        client.counts()
        lab.plain("DEL", lab.fence)
        before = lab.data()
        assert {lab.control.call(*command) for command in writes} == {refusal}

        cluster.open_move(number, source, target)
        asked = Error(f"ASK {number} 127.0.0.1:{target.port}")
        for _ in cluster.move_keys(number, source, target, at_once=5):
            assert {lab.control.call(*command) for command in writes} == {asked}
            assert {at_target(command) for command in writes} == {refusal}
            with pytest.raises((FenceRefused, WireUnclaimed)):
                client.enqueue(b"p")
        cluster.assign(number, target)
        assert {arrived.call(*command) for command in writes} == {refusal}
        with pytest.raises((FenceRefused, WireUnclaimed)):
            client.enqueue(b"p")

        follow(lab, target)
        assert lab.data() == before
        cluster.claim(lab.name)
        admitted = client.enqueue(b"p")
        assert client.state(admitted) == "pending"
        assert client.remove(admitted)
    work_on(lab)
