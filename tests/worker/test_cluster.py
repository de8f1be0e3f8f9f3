"""Workers of queues that live on different nodes of a cluster."""

from __future__ import annotations

from collections.abc import Iterator

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
