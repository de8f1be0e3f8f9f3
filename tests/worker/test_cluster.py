"""Workers of queues that live on different nodes of a cluster."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from tests.worker.conftest import wait_until

from emq_native import HeldJob, Worker, aio, connect, provision
from emq_native.executors import Executor
from emq_native.server import Server, form_cluster

pytestmark = pytest.mark.cluster

QUEUES = ("orders", "fills")


@pytest.fixture
def url(executor: Executor) -> Iterator[str]:
    """A cluster of two nodes, the fence of each queue claimed."""
    config = {"cluster-enabled": "yes"}
    native = executor.name == "native"
    with Server(module=native, config=config) as first, Server(module=native, config=config) as second:
        form_cluster([first, second])
        for queue in QUEUES:
            provision.claim(first.url, wire=executor.wire, queue=queue)
        yield first.url


def test_workers_follow_their_queues(url: str) -> None:
    def nothing(job: HeldJob) -> None:
        pass

    with connect(url, cluster=True) as bus:
        workers = [Worker(bus.queue(queue), nothing, concurrency=2) for queue in QUEUES]
        for worker in workers:
            worker.start()
        for queue in QUEUES:
            bus.queue(queue).enqueue_many([b""] * 20)
            bus.queue(queue).enqueue(b"", group="g")
        wait_until(lambda: [bus.queue(queue).counts().completed for queue in QUEUES] == [21, 21])
        for worker in workers:
            worker.stop()
        assert all(worker.join(10) for worker in workers)


async def test_the_same_for_asyncio(url: str) -> None:
    async def nothing(job: HeldJob) -> None:
        pass

    async with await aio.connect(url, cluster=True) as bus:
        for name in QUEUES:
            queue = bus.queue(name)
            await queue.enqueue_many([b""] * 20)
            worker = aio.Worker(queue, nothing, burst=True)
            await worker.run(signals=False)
            assert worker.stats.completed == 20


async def test_a_client_talks_in_its_own_event_loop_alone(
    executor: Executor, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    talked: set[threading.Thread] = set()

    async def hold(job: HeldJob) -> None:
        server.kill()
        while "leases are not renewed" not in caplog.text:
            await asyncio.sleep(0.01)
        worker.stop()
        worker.stop()

    with Server(module=executor.name == "native", config={"cluster-enabled": "yes"}) as server:
        server.own_slots()
        provision.claim(server.url, wire=executor.wire, queue="q")
        async with await aio.connect(server.url, cluster=True) as bus:
            manager = type(bus.client.nodes_manager)
            initialize = manager.initialize

            async def noted(*arguments: Any, **options: Any) -> None:
                talked.add(threading.current_thread())
                await initialize(*arguments, **options)

            monkeypatch.setattr(manager, "initialize", noted)
            await bus.queue("q").enqueue(b"")
            worker = aio.Worker(bus.queue("q"), hold, lease=1)
            await asyncio.wait_for(worker.run(signals=False), 60)
    assert talked <= {threading.main_thread()}
