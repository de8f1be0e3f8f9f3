"""A pytest plugin for programs that use this package: a real server, a bus, a queue, and a way to work jobs off.

    def test_a_letter_is_sent(emq_app, emq_work):
        app = emq_app(shop.tasks.app)           # goes to the server of the tests
        shop.tasks.send.enqueue("ada@example.org")
        assert emq_work(app).completed == 1

The server is one for the whole run, started when the first test asks for it; every test finds it empty. It needs
emq-native[server], or a valkey-server in $EMQ_VALKEY_SERVER. `emq_executor = scripted` in pytest's configuration
chooses the scripts in place of the module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from emq_native import provision
from emq_native.connector import Bus, connect
from emq_native.ledger import Stats
from emq_native.queue import Queue
from emq_native.server import Server
from emq_native.tasks import App

__all__ = ["emq_app", "emq_bus", "emq_queue", "emq_server", "emq_work", "work_off"]

WIRES = {"native": 6, "scripted": 4}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        "emq_executor", "native (the module) or scripted (Lua), for the server of emq_native", default="native"
    )


def work_off(app: App, *, later: bool = False, **options: object) -> Stats:
    """Work on all queues of an app until nothing more can be taken. Returns what became of the jobs, over all queues.

    later: what is scheduled, delayed or to be retried when this is called is due at once; otherwise it stays, as does
    what this call itself makes for later. options: as for a Worker.
    """
    if later:
        for queue in app.queues:
            _make_due(app.bus.queue(queue))
    total = Stats()
    while True:
        taken = 0
        for queue in app.queues:
            worker = app.worker(queue, burst=True, **options)
            try:
                worker.start()
                worker.join()
            finally:
                # Nothing goes on behind a test that is interrupted.
                worker.stop()
                worker.stop()
            taken += worker.stats.taken
            total += worker.stats
        # A job of one queue may have made jobs for another one.
        if not taken or len(app.queues) == 1:
            return total


def _make_due(queue: Queue) -> None:
    client, schedule = queue.bus.client, queue.key + b":schedule"
    due = dict.fromkeys(client.zrange(schedule, 0, -1), 0)
    if due:
        client.zadd(schedule, due, xx=True)


@pytest.fixture(scope="session")
def _emq_node(request: pytest.FixtureRequest) -> Iterator[tuple[Server, int]]:
    executor = request.config.getini("emq_executor")
    if executor not in WIRES:
        raise pytest.UsageError(f"emq_executor is native or scripted, not {executor!r}")
    with Server(module=executor == "native") as server:
        yield server, WIRES[executor]


@pytest.fixture
def emq_server(_emq_node: tuple[Server, int]) -> Server:
    """A server of one's own, empty, its fence claimed for the executor."""
    server, wire = _emq_node
    with server.client() as client:
        client.flushall()
        provision.claim(client, wire=wire)
    return server


@pytest.fixture
def emq_bus(emq_server: Server) -> Iterator[Bus]:
    """A bus to that server."""
    with connect(emq_server.url) as bus:
        yield bus


@pytest.fixture
def emq_queue(emq_bus: Bus) -> Queue:
    """The queue `test` there."""
    return emq_bus.queue("test")


@pytest.fixture
def emq_app(emq_server: Server) -> Iterator[Callable[[App], App]]:
    """Takes an app to that server for one test, and gives it back with the target that it had."""
    borrowed: list[tuple[App, object]] = []

    def borrow(app: App) -> App:
        borrowed.append((app, app.retarget(emq_server.url)))
        return app

    yield borrow
    for app, target in reversed(borrowed):
        app.retarget(target)


@pytest.fixture
def emq_work() -> Callable[..., Stats]:
    """`work_off` as a fixture."""
    return work_off
