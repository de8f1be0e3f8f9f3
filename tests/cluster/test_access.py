"""A user of one queue in a cluster: there everything works, and no way leads to another queue."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from tests.cluster.nodes import Cluster, done
from tests.cluster.test_verbs import plain, scenes

import emq_native
from emq_native import Bus
from emq_native.conformance.cases.access import SCRIPT_RIGHTS
from emq_native.conformance.lab import Lab
from emq_native.conformance.scenes import VERBS, fill
from emq_native.conformance.wire import Error, Wire
from emq_native.errors import PermissionDenied, Refused
from emq_native.executors import NATIVE, Executor

pytestmark = pytest.mark.cluster

CLIENT_RIGHTS = ["+cluster|slots", "+cluster|shards", "+cluster|myid", "+command", "+ping", "+hello", "+get"]
"""What a cluster client asks of a node, and the fence."""


@dataclass
class Limited:
    """Connections of a user who is limited to the queue of a lab."""

    lab: Lab
    url: str

    def bus(self, executor: Executor) -> Bus:
        return emq_native.connect(self.url, wire=executor.wire, cluster=True)


@pytest.fixture
def limited(cluster: Cluster, labs: list[Lab], executor: Executor) -> Iterator[Limited]:
    """`+@emq ~emq:{NAME}*` and nothing else of any queue, on every node; for scripts the commands they use."""
    lab = labs[0]
    rights = ["+@emq"] if executor is NATIVE else SCRIPT_RIGHTS
    user = ["limited", "reset", "on", ">secret", *rights, *CLIENT_RIGHTS, f"~{lab.q}*", f"&{lab.key('events')}"]
    for node in cluster.nodes:
        with cluster.wire(node) as wire:
            done(wire.call("ACL", "SETUSER", *user))
    try:
        yield Limited(lab, cluster.nodes[1].url.replace("redis://", "redis://limited:secret@"))
    finally:
        for node in cluster.nodes:
            with cluster.wire(node) as wire:
                wire.call("ACL", "DELUSER", "limited")


def empty(lab: Lab) -> None:
    """Delete all jobs of the queue and keep the queue, for which the user has the right."""
    found = [lab.key(name.decode()) for name in lab.data() if name != b"version"]
    if found:
        lab.plain("DEL", *found)


def test_every_verb_works_on_the_own_queue(limited: Limited, executor: Executor) -> None:
    """case 75"""
    lab = limited.lab
    with limited.bus(executor) as bus:
        for scene in scenes(executor):
            words = scene.prepare(lab)
            assert plain(bus.send(scene.row.name, lab.q, *words)) == scene.answer(lab), scene
            empty(lab)


def test_no_verb_reaches_another_queue_on_any_node(
    limited: Limited, cluster: Cluster, labs: list[Lab], executor: Executor
) -> None:
    """case 75"""
    neighbour = limited.lab.new_queue()
    for lab in labs:
        queue = neighbour if lab is limited.lab else lab.name
        before = lab.data(queue)
        with Wire(lab.url.replace("redis://", "redis://limited:secret@")) as wire:
            for name, verb in VERBS.items():
                for form in verb.forms if lab.serves(name) else ():
                    reply = lab.send(name, *fill(form, lab), queue=f"emq:{{{queue}}}", wire=wire)
                    assert isinstance(reply, Error), (name, form)
                    assert reply.code == "NOPERM", (name, form, reply)
        assert lab.data(queue) == before
    with limited.bus(executor) as bus:
        for lab in labs[1:]:
            with pytest.raises(PermissionDenied):
                bus.queue(lab.name).enqueue(b"p")
            assert set(lab.data()) == {b"version"}


TRICKS = ["}", "{other}", "g:pending", "../g", "g\0", "*", "emq:{other}:pending", ":pending", "job:JOB00000000000"]


@pytest.mark.parametrize("trick", TRICKS)
def test_no_name_that_looks_like_a_key_leads_out_of_the_queue(
    limited: Limited, cluster: Cluster, executor: Executor, trick: str
) -> None:
    """case 75"""
    lab = limited.lab
    before = cluster.keys()
    with limited.bus(executor) as bus:
        for name, verb in VERBS.items():
            for form in verb.forms:
                slots = form.split()
                if lab.serves(name) and {"group", "name"} & set(slots):
                    with pytest.raises(Refused, match=r"ERR (group|name) must be 1 to"):
                        bus.send(name, lab.q, *fill(form, lab, group=trick, name=trick))
    assert cluster.keys() == before


def test_a_key_that_the_pattern_does_not_cover_is_refused_though_the_queue_key_looks_right(
    limited: Limited, cluster: Cluster, executor: Executor
) -> None:
    """case 75"""
    lab = limited.lab
    with Wire(lab.url.replace("redis://", "redis://limited:secret@")) as wire:
        for key in (f"{lab.q}x", f"{lab.q}:pending", f"{lab.q}:{{other}}"):
            for name, verb in VERBS.items():
                if lab.serves(name):
                    reply = lab.send(name, *fill(verb.forms[0], lab), queue=key, wire=wire)
                    assert isinstance(reply, Error), (name, key)
                    assert reply.text.startswith("ERR queue key must be"), (name, key, reply)
    assert set(lab.data()) == {b"version"}


def test_who_may_not_say_hello_learns_of_cluster_mode_too(cluster: Cluster) -> None:
    for node in cluster.nodes:
        with cluster.wire(node) as wire:
            done(wire.call("ACL", "SETUSER", "silent", "reset", "on", ">secret", "+@all", "-hello", "~*"))
    try:
        url = cluster.url.replace("redis://", "redis://silent:secret@")
        found = emq_native.probe(url, queue="q")
        assert found.cluster is True
        assert found.fence is not None
        assert (found.fence.key, len(found.primaries)) == ("emq:{q}:version", 3)
        with pytest.raises(emq_native.InvalidArgument, match="name the queue"):
            emq_native.provision.claim(url, wire=6)
    finally:
        for node in cluster.nodes:
            with cluster.wire(node) as wire:
                wire.call("ACL", "DELUSER", "silent")
