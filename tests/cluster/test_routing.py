"""Clients that know nothing of us: where a command belongs, they learn from the server alone."""

from __future__ import annotations

import pytest
import redis
from tests.cluster.nodes import Cluster, slot_of
from tests.cluster.test_verbs import plain, scenes

from emq_native.conformance.lab import Lab
from emq_native.conformance.play import Play
from emq_native.conformance.wire import Error
from emq_native.executors import Executor
from emq_native.ids import mint
from emq_native.keys import Keys, slot
from emq_native.verbs import VERBS

pytestmark = pytest.mark.cluster


def test_a_verb_at_the_wrong_node_is_sent_to_the_right_one_and_changes_nothing(
    cluster: Cluster, labs: list[Lab], executor: Executor
) -> None:
    """case 70, case 71"""
    lab, *others = labs
    strangers = [lab.connect(2, other.url) for other in others]
    for scene in scenes(executor):
        lab.anew()
        moved = Error(f"MOVED {slot_of(lab.name)} 127.0.0.1:{cluster.nodes[0].port}")
        words = scene.prepare(lab)
        before = lab.data()
        for stranger in strangers:
            assert lab.send(scene.verb, *words, wire=stranger) == moved, scene
        assert lab.data() == before
    assert all(lab.plain("DBSIZE") == 1 for lab in others)


def test_a_cluster_client_runs_every_command_unaided(cluster: Cluster, labs: list[Lab], executor: Executor) -> None:
    """case 71"""
    with cluster.client(cluster.nodes[1]) as client:
        for lab in labs:
            for scene in scenes(executor):
                words = scene.prepare(lab)
                name, *rest = lab.command(scene.verb, *words, inline=True)
                assert plain(client.execute_command(name.decode(), *rest)) == scene.answer(lab), scene
                lab.anew()


def test_a_command_without_arguments_is_refused_by_every_node(cluster: Cluster, labs: list[Lab]) -> None:
    """case 71"""
    if cluster.executor.name == "scripted":
        return
    for lab in labs:
        for name in VERBS:
            reply = lab.control.call(name.upper())
            if name in ("tra.capabilities", "emq.version"):
                assert not isinstance(reply, Error)
            else:
                assert reply == Error(f"ERR wrong number of arguments for '{name}' command")
                assert isinstance(lab.control.call("COMMAND", "GETKEYS", name), Error)
    with cluster.client() as client:
        for name in set(VERBS) - {"tra.capabilities", "emq.version"}:
            with pytest.raises(redis.RedisClusterException, match="No way to dispatch"):
                client.execute_command(name.upper())
    assert cluster.running


def test_all_keys_of_a_queue_are_in_one_slot(cluster: Cluster, labs: list[Lab]) -> None:
    """case 70"""
    for lab in labs:
        play = Play(lab, 7)
        for _ in range(150):
            play.step()
        names = cluster.keys() - {other.fence.encode() for other in labs}
        mine = {name for name in names if name.startswith(lab.q.encode())}
        assert len(mine) > 5
        assert {lab.plain("CLUSTER", "KEYSLOT", name) for name in mine} == {slot_of(lab.name)}
        assert lab.plain("CLUSTER", "COUNTKEYSINSLOT", slot_of(lab.name)) == len(mine) + 1
        assert names - mine == set()
        lab.anew()


@pytest.mark.parametrize("name", ["q", "orders", "a.b-c_d", "0", "-", "x" * 128, "job", "version", "emq2"])
def test_every_name_that_the_package_derives_is_in_the_slot_of_its_queue(labs: list[Lab], name: str) -> None:
    keys, job = Keys(name), mint()
    fixed = [
        getattr(keys, each)
        for each in dir(Keys)
        if not each.startswith("_") and isinstance(getattr(keys, each, None), bytes)
    ]
    derived = [keys.queue, *fixed, *keys.job(job), keys.lane("g"), keys.lane("x" * 64), keys.repeat("nightly")]
    assert len(derived) > 25
    assert {labs[0].plain("CLUSTER", "KEYSLOT", each) for each in derived} == {keys.slot} == {slot(name)}
    assert all(slot(each) == keys.slot for each in derived)
