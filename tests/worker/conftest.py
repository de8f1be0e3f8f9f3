"""Queues for workers: one of its own for each test, on each executor, and servers that tests may bring down."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator

import pytest

from emq_native import Bus, Queue, Worker, connect, provision
from emq_native.executors import Executor
from emq_native.server import Server

_numbers = itertools.count(1)


def wait_until(holds: Callable[[], object], seconds: float = 20.0) -> None:
    """Return as soon as it holds. Fails when that takes too long."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it does not come to that"
        time.sleep(0.002)


@pytest.fixture
def bus(servers: Callable[[str], object], executor: Executor) -> Iterator[Bus]:
    """A bus to the server of the executor under test."""
    url = servers(executor.name).server.url  # type: ignore[attr-defined]
    with connect(url) as made:
        yield made


@pytest.fixture
def queue(bus: Bus) -> Queue:
    """A queue of its own."""
    return bus.queue(f"worker{next(_numbers)}")


@pytest.fixture
def own_server(executor: Executor) -> Iterator[Server]:
    """A server that the test may bring down; its data survive."""
    config = {"appendonly": "yes", "appendfsync": "always"}
    with Server(module=executor.name == "native", config=config) as server:
        provision.claim(server.client(), wire=executor.wire)
        yield server


@pytest.fixture
def fenced_server() -> Iterator[Server]:
    """A server with the module, whose fence the test may take away."""
    with Server() as server:
        provision.claim(server.client(), wire=6)
        yield server


@pytest.fixture
def started() -> Iterator[Callable[[Worker], Worker]]:
    """Starts workers, and ends them with the test."""
    workers: list[Worker] = []

    def start(worker: Worker) -> Worker:
        worker.start()
        workers.append(worker)
        return worker

    yield start
    for worker in workers:
        worker.stop()
        worker.stop()
    for worker in workers:
        worker._ended.wait(20)
