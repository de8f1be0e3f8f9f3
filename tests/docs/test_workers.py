"""What the guide to workers shows works as shown."""

from __future__ import annotations

import os
import re
import shlex
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.docs.pages import ROOT, URL, named

import emq_native
from emq_native import App, Pump, Worker, provision
from emq_native.executors import NATIVE, SCRIPTED, Executor
from emq_native.server import Server

PAGE = (ROOT / "docs" / "workers.md").read_text()
BLOCKS = named(
    "docs/workers.md",
    {
        "tasks": "def resize",
        "sending": "from shop import resize",
        "charges": "def charge",
        "running": "--burst",
        "watching": "emq-native queues",
        "worker": "Worker(",
        "pump": "Pump(",
        "test": "emq_work",
    },
)
EMQ = [sys.executable, "-m", "emq_native"]


def lines(name: str) -> list[str]:
    return [line.split("#")[0].strip() for line in BLOCKS[name].text.splitlines()]


def rights(executor: Executor, user: str) -> list[str]:
    """The words of the ACL SETUSER that the page shows for a user."""
    both: list[list[str]] = [line.split() for line in re.findall(rf"^ACL (SETUSER {user} .*)$", PAGE, re.MULTILINE)]
    assert len(both) == 2
    return both[executor is SCRIPTED]


@pytest.fixture(params=[NATIVE, SCRIPTED], ids=lambda executor: executor.name)
def node(request: pytest.FixtureRequest) -> Iterator[tuple[Server, Executor]]:
    with Server(module=request.param is NATIVE) as server:
        provision.claim(server.url, wire=request.param.wire)
        yield server, request.param


@pytest.fixture
def run(node: tuple[Server, Executor], tmp_path: Path) -> Callable[..., str]:
    """Runs a command beside shop.py and returns what it prints."""
    url = node[0].url
    (tmp_path / "shop.py").write_text((BLOCKS["tasks"].text + BLOCKS["charges"].text).replace(URL, url))
    environment = os.environ | {"EMQ_URL": url, "PYTHONPATH": str(tmp_path)}

    def call(*command: str) -> str:
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout

    return call


def test_tasks_are_sent_and_worked_on(run: Callable[..., str], tmp_path: Path) -> None:
    send = "import shop; shop.charge.enqueue('ada', 500); shop.resize.enqueue('', width=1)"
    run(sys.executable, "-c", BLOCKS["sending"].text + send)
    [burst] = [line for line in lines("running") if "--burst" in line]

    assert "resized cat.png to 200" in run(*EMQ, *burst.split()[1:])

    assert sqlite3.connect(tmp_path / "charges.db").execute("SELECT token, cents FROM charges").fetchall() == [(1, 500)]
    assert "no path" in run(*EMQ, "dead", "ls", "default")
    for line in lines("watching"):
        if not line.startswith("export"):
            run(*EMQ, *shlex.split(line)[1:], *(["--count", "1"] if line.endswith("top") else []))
    assert run(*EMQ, "dead", "ls", "default", "--json").strip() == "[]"


@pytest.mark.parametrize("line", lines("running"))
def test_every_way_to_run_a_worker_is_understood(line: str, run: Callable[..., str]) -> None:
    run(sys.executable, "-c", BLOCKS["sending"].text)

    run(*EMQ, *line.split()[1:], *([] if "--burst" in line else ["--burst"]))


def test_an_overtaken_run_books_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"app": App()}
    exec(compile(BLOCKS["charges"].text, "workers.md", "exec"), names)
    with sqlite3.connect("charges.db") as ledger:
        ledger.execute("CREATE TABLE charges (job PRIMARY KEY, token, cents)")
        for token, cents in ((2, 700), (1, 500)):
            ledger.execute(str(names["BOOK"]), ("JOB", token, cents))
        assert ledger.execute("SELECT token, cents FROM charges").fetchall() == [(2, 700)]


def test_a_picture_is_resized(run: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "test_shop.py").write_text(BLOCKS["test"].text)

    assert "1 passed" in run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_shop.py")


@pytest.mark.parametrize(("name", "kind"), [("worker", Worker), ("pump", Pump)])
def test_it_works_without_tasks(
    name: str, kind: type, node: tuple[Server, Executor], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[object] = []
    monkeypatch.setattr(kind, "run", lambda made: started.append(made))

    exec(compile(BLOCKS[name].text.replace(URL, node[0].url), "workers.md", "exec"), {})

    [made] = started
    assert isinstance(made, kind)
    if isinstance(made, Worker):
        made.queue.enqueue(b"one")
        made.start()
        while not made.stats.taken:
            time.sleep(0.01)
        made.stop()
        assert made.join(20)
        assert made.stats.completed == 1
        made.queue.bus.close()
    elif isinstance(made, Pump):
        made.step()
        made.stop()
        made.queue.bus.close()


def test_the_rights_suffice(node: tuple[Server, Executor]) -> None:
    server, executor = node
    with server.client() as client:
        for user in ("worker", "pump"):
            client.execute_command("ACL", *rights(executor, user))
        url = server.url.replace("redis://", "redis://{}:secret@").format
        app, seen = App(url("worker"), queue="orders"), threading.Semaphore(0)
        try:

            @app.task("call", lane=lambda number: "lane" if number else None)
            def call(number: int) -> None:
                seen.release()

            @app.task("tick")
            def tick() -> None:
                seen.release()

            tick.every(0.1)
            call.enqueue(0)
            call.enqueue(1)
            worker = app.worker(repeats=True, lease=0.5)
            worker.start()
            for _ in range(5):
                assert seen.acquire(timeout=20)
            worker.stop()
            assert worker.join(20)
        finally:
            app.close()
        with emq_native.connect(server.url) as sender:
            sender.queue("orders").enqueue_in(b"{}", 0)
        with emq_native.connect(url("pump")) as bus:
            pump = Pump(bus.queue("orders"))
            while not (stroke := pump.step()).fired:
                time.sleep(stroke.pause)
            pump.stop()
        assert client.acl_log() == []
