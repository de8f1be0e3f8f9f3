"""Every verb through the package's own connections to a cluster, on queues of all nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from tests.cluster.nodes import Cluster

import emq_native
from emq_native import aio
from emq_native import transitions as t
from emq_native.conformance.lab import Lab
from emq_native.conformance.scenes import NATIVE_SCENES, READS, SCENES, Scene
from emq_native.executors import Executor
from emq_native.verbs import VERBS

pytestmark = pytest.mark.cluster

ABOUT = {"emq.version", "tra.capabilities"}
"""Verbs about the node; they have no scene."""


def scenes(executor: Executor) -> Sequence[Scene]:
    """A situation in which each verb of an executor has an effect or something to tell."""
    return [*SCENES, *READS, *(NATIVE_SCENES if executor.name == "native" else ())]


def plain(reply: Any) -> Any:
    """A map as the flat array of RESP2; all else as it is."""
    return [item for pair in reply.items() for item in pair] if isinstance(reply, dict) else reply


def test_the_scenes_cover_every_verb(executor: Executor) -> None:
    served = {name for name, verb in VERBS.items() if executor.name == "native" or verb.scripted}
    assert {scene.row.name for scene in scenes(executor)} | ABOUT == served | ABOUT


def test_every_verb_is_carried_to_the_node_of_its_queue(cluster: Cluster, labs: list[Lab], executor: Executor) -> None:
    with emq_native.connect(cluster.url, wire=executor.wire, cluster=True) as bus:
        for lab in labs:
            for scene in scenes(executor):
                words = scene.prepare(lab)
                assert plain(bus.send(scene.row.name, lab.q, *words)) == scene.answer(lab), scene
                lab.anew()


async def test_every_verb_is_carried_there_by_asyncio_too(
    cluster: Cluster, labs: list[Lab], executor: Executor
) -> None:
    async with await aio.connect(cluster.url, wire=executor.wire, cluster=True) as bus:
        for lab in labs:
            for scene in scenes(executor):
                words = scene.prepare(lab)
                assert plain(await bus.send(scene.row.name, lab.q, *words)) == scene.answer(lab), scene
                lab.anew()


async def test_the_executor_tells_what_it_is_and_which_fence_the_queue_has(
    cluster: Cluster, labs: list[Lab], executor: Executor
) -> None:
    sees = executor.identity if executor.name == "native" else None  # the scripts' answer comes from no server
    with emq_native.connect(cluster.url, wire=executor.wire, cluster=True) as bus:
        for lab in labs:
            about = bus.queue(lab.name).version()
            assert (about.wire, about.identity, about.node) == (executor.wire, executor.identity, sees)
        sync = bus.send("tra.capabilities")
    async with await aio.connect(cluster.url, wire=executor.wire, cluster=True) as abus:
        assert (await abus.queue(labs[2].name).version()).node == sees
        assert await abus.send("tra.capabilities") == sync
    assert b"emq.claim/1" in sync


def test_queues_of_all_nodes_are_served_in_one_round(cluster: Cluster, labs: list[Lab], executor: Executor) -> None:
    names = [lab.name for lab in labs]
    with emq_native.connect(cluster.url, wire=executor.wire, cluster=True) as bus:
        admitted = bus.pipeline([(t.Enqueue(name.encode()), name) for name in names])
        jobs = bus.pipeline([(t.Claim(60), name) for name in reversed(names)])
        assert [job.id for job in reversed(jobs)] == admitted
        assert [(job.queue, job.payload) for job in reversed(jobs)] == [(name, name.encode()) for name in names]
        for job in jobs:
            assert bus.transaction([(t.Extend(job, 90), job.queue), (t.Complete(job), job.queue)]) == [True, True]
        assert [bus.queue(name).counts().completed for name in names] == [1, 1, 1]


async def test_queues_of_all_nodes_are_served_at_the_same_time(
    cluster: Cluster, labs: list[Lab], executor: Executor
) -> None:
    async with await aio.connect(cluster.url, wire=executor.wire, cluster=True) as bus:
        queues = [bus.queue(lab.name) for lab in labs]

        async def life(queue: aio.Queue, number: int) -> None:
            admitted = await queue.enqueue(b"%d" % number, group=f"g{number % 3}" if number % 2 else None)
            job = await (queue.claim_fair(60) if number % 2 else queue.claim(60))
            assert job is not None
            assert admitted.created
            assert await queue.complete(job)

        await asyncio.gather(*(life(queue, number) for number in range(20) for queue in queues))
        assert [(await queue.counts()).completed for queue in queues] == [20, 20, 20]
