"""Tasks: typed calls, messages, policies, repeats."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.proxy import Proxy, hold
from tests.worker.conftest import wait_until

from emq_native import App, Bus, InvalidArgument, Queue, Snooze, UnknownTask, constant, current_job
from emq_native.serializers import Json, Message
from emq_native.server import Server
from emq_native.testing import work_off


@pytest.fixture
def app(bus: Bus, queue: Queue) -> App:
    return App(bus.client, queue=queue.name)


def payload(queue: Queue, job: str) -> Any:
    return json.loads((queue.peek(job) or {})["payload"])


def test_a_call_is_made_by_a_worker(app: App) -> None:
    made: list[object] = []

    @app.task()
    def greet(name: str, *, loud: bool = False) -> None:
        made.append((name, loud, current_job().token))

    greet.enqueue("Ada", loud=True)
    assert work_off(app).completed == 1
    assert made == [("Ada", True, 1)]


def test_what_is_due_later_is_worked_off_at_once_on_demand(app: App, queue: Queue) -> None:
    @app.task(retries=1, backoff=constant(3600))
    def fail() -> None:
        raise ValueError

    fail.enqueue_in(3600)
    assert work_off(app).taken == 0
    assert work_off(app, later=True).retried == 1
    assert queue.counts().scheduled == 1
    assert work_off(app, later=True).dead == 1


def test_a_call_is_the_function_itself(app: App) -> None:
    @app.task()
    def double(number: int) -> int:
        return 2 * number

    assert double(4) == 8


def test_wrong_arguments_are_refused_before_anything_is_sent(app: App, queue: Queue) -> None:
    @app.task()
    def greet(name: str) -> None: ...

    with pytest.raises(TypeError):
        greet.enqueue()  # type: ignore[call-arg]
    with pytest.raises(InvalidArgument, match="not JSON"):
        greet.enqueue(object())  # type: ignore[arg-type]
    assert queue.counts().pending == 0


def test_messages_are_plain_json(app: App, queue: Queue) -> None:
    @app.task("greet")
    def greet(name: str, loud: bool = False) -> None: ...

    job = greet.enqueue("Ada", loud=True)
    other = app.enqueue("elsewhere", 1)

    assert payload(queue, job) == {"task": "greet", "args": ["Ada"], "kwargs": {"loud": True}}
    assert payload(queue, other) == {"task": "elsewhere", "args": [1]}


def test_a_call_by_name_is_that_of_the_task(app: App, queue: Queue) -> None:
    @app.task("greet", lane="letters")
    def greet(name: str) -> None: ...

    job = app.enqueue("greet", "Ada")

    assert (queue.peek(job) or {})["group"] == b"letters"
    with pytest.raises(TypeError):
        app.enqueue("greet")


DEFINITION = """
from emq_native import App

app = App()

@app.task()
def resize() -> None: ...

if __name__ == "__main__":
    print(*app.tasks)
"""


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["shop/pictures.py"], "pictures.resize"),
        (["-m", "shop.pictures"], "shop.pictures.resize"),
        (["-m", "shop"], "shop.__main__.resize"),
        (["-c", "import shop.pictures; print(*shop.pictures.app.tasks)"], "shop.pictures.resize"),
    ],
    ids=["a file", "a module", "a package", "imported"],
)
def test_a_task_is_named_by_the_module_that_workers_import(tmp_path: Path, words: list[str], name: str) -> None:
    (tmp_path / "shop").mkdir()
    for file in ("pictures.py", "__main__.py"):
        (tmp_path / "shop" / file).write_text(DEFINITION)

    ended = subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, text=True)

    assert (ended.stdout, ended.stderr) == (f"{name}\n", "")


def test_a_task_that_no_worker_could_import_is_refused_unless_it_has_a_name() -> None:
    unnamed = subprocess.run([sys.executable], input=DEFINITION, capture_output=True, text=True)
    named = subprocess.run(
        [sys.executable], input=DEFINITION.replace("task()", 'task("resize")'), capture_output=True, text=True
    )

    assert unnamed.stderr.splitlines()[-1] == (
        "emq_native.errors.InvalidArgument: resize is in no module that workers could import: "
        'put it into a file, or give it a name, @app.task("resize")'
    )
    assert (named.stdout, named.stderr) == ("resize\n", "")


def test_a_lane_is_told_from_the_arguments(app: App, queue: Queue) -> None:
    @app.task(lane=lambda tenant: f"t{tenant}")
    def bill(tenant: int) -> None: ...

    assert (queue.peek(bill.enqueue(7)) or {})["group"] == b"t7"
    with pytest.raises(InvalidArgument, match="has a lane"):
        bill.enqueue_in(1, 7)


def test_a_task_with_a_lane_does_not_repeat_outside_of_it(app: App) -> None:
    @app.task(lane="mail")
    def send() -> None: ...

    with pytest.raises(InvalidArgument, match="has a lane"):
        send.every(60)
    with pytest.raises(InvalidArgument, match="has a lane"):
        send.cron("0 3 * * *", "UTC")


def test_calls_for_later_are_scheduled(app: App, queue: Queue) -> None:
    @app.task()
    def greet(name: str) -> None: ...

    assert queue.state(greet.enqueue_in(60, "Ada")) == "scheduled"


def test_retries_backoff_and_control_flow_are_those_of_the_task(app: App, queue: Queue) -> None:
    runs: list[int] = []

    @app.task(retries=2, backoff=constant(0))
    def fail() -> None:
        runs.append(current_job().attempts)
        raise ValueError("x")

    @app.task(retries=0)
    def later() -> None:
        raise Snooze(3600)

    failed, snoozed = fail.enqueue(), later.enqueue()
    worker = app.worker()
    worker.start()
    wait_until(lambda: queue.state(failed) == "dead" and queue.state(snoozed) == "scheduled")
    worker.stop()
    worker.join()

    assert runs == [1, 2, 3]


def test_an_unknown_task_runs_again_and_a_payload_that_is_none_is_dead(app: App, queue: Queue) -> None:
    unknown = app.enqueue("newer")
    broken = queue.enqueue(b"\xff")

    work_off(app)

    assert queue.state(unknown) == "scheduled"
    assert (queue.peek(unknown) or {})["last_error"] == b"UnknownTask: this app has no task 'newer'"
    assert issubclass(UnknownTask, LookupError)
    assert queue.state(broken) == "dead"


def test_another_serializer_is_used_for_everything(bus: Bus, queue: Queue) -> None:
    class Words:
        def dumps(self, message: Message) -> bytes:
            return " ".join([message.task, *message.args]).encode()

        def loads(self, payload: bytes) -> Message:
            task, *args = payload.decode().split()
            return Message(task, tuple(args))

        def dumps_result(self, value: Any) -> bytes:
            return str(value).encode()

    app = App(bus.client, queue=queue.name, serializer=Words())
    made: list[str] = []

    @app.task("say")
    def say(*words: str) -> None:
        made.extend(words)

    job = say.enqueue("a", "b")

    assert (queue.peek(job) or {})["payload"] == b"say a b"
    work_off(app)
    assert made == ["a", "b"]


def test_coroutine_functions_and_plain_ones_run_on_both_workers(app: App, servers: Any, executor: Any) -> None:
    made: list[str] = []

    @app.task("plain")
    def plain() -> None:
        made.append(f"plain {current_job().attempts}")

    @app.task("coroutine")
    async def coroutine() -> None:
        await asyncio.sleep(0)
        made.append(f"coroutine {current_job().attempts}")

    plain.enqueue()
    coroutine.enqueue()
    work_off(app)
    assert sorted(made) == ["coroutine 1", "plain 1"]

    made.clear()
    app.retarget(servers(executor.name).server.url)

    async def main() -> None:
        await plain.aenqueue()
        await coroutine.aenqueue()
        await (await app.aworker(burst=True)).run()
        await (await app.abus()).close()

    asyncio.run(main())
    app.close()
    assert sorted(made) == ["coroutine 1", "plain 1"]


def test_repeats_of_tasks_are_installed_once_and_replaced_when_they_change(app: App, queue: Queue) -> None:
    made: list[str] = []

    @app.task("tick")
    def tick(word: str) -> None:
        made.append(word)

    tick.every(0.05, "tick")
    tick.cron("0 3 * * *", "Europe/Berlin", "night", name="nightly")
    with pytest.raises(InvalidArgument, match="give the further one a name"):
        tick.every(1, "again")

    assert app.install_repeats() == ["tick", "nightly"]
    assert app.install_repeats() == []
    queue.unrepeat("nightly")
    assert app.install_repeats() == ["nightly"]

    assert app.has_repeats(queue.name)
    assert not app.has_repeats("others")
    worker = app.worker(repeats=True)
    worker.start()
    wait_until(lambda: made.count("tick") >= 3)
    worker.stop()
    worker.join()
    assert "night" not in made


def test_a_name_is_given_once(app: App) -> None:
    @app.task("one")
    def first() -> None: ...

    with pytest.raises(InvalidArgument, match="a task one already"):

        @app.task("one")
        def second() -> None: ...


def test_a_declaration_without_parentheses_is_refused(app: App) -> None:
    with pytest.raises(InvalidArgument, match=r"@app\.task\(\)"):

        @app.task  # type: ignore[arg-type]
        def bare() -> None: ...


@pytest.mark.parametrize("retries", ["3", None, 1.5, True, -1])
def test_retries_that_are_no_number_of_runs_are_refused(app: App, retries: Any) -> None:
    with pytest.raises(InvalidArgument, match="retries must be an int"):
        app.task(retries=retries)


@pytest.mark.parametrize("seconds", [0, -1.0, float("nan"), Decimal(1), timedelta(seconds=1), "1"])
def test_a_time_for_a_run_that_no_keeper_could_reckon_with_is_refused(app: App, seconds: Any) -> None:
    with pytest.raises(InvalidArgument, match="timeout"):
        app.task(timeout=seconds)


async def test_callers_that_connect_at_once_share_one_bus(own_server: Server) -> None:
    async def alone() -> None:
        while len(control.client_list()) > 1:
            await asyncio.sleep(0.002)

    app = App(own_server.url)
    buses = await asyncio.gather(*(app.abus() for _ in range(5)))
    assert set(buses) == {await app.abus()}
    await buses[0].close()
    with own_server.client() as control:
        await asyncio.wait_for(alone(), 20)


def test_threads_that_connect_at_once_share_one_bus(own_server: Server) -> None:
    app = App(own_server.url)
    together = threading.Barrier(5)
    buses: list[Bus] = []

    def connects() -> None:
        together.wait()
        buses.append(app.bus)

    threads = [threading.Thread(target=connects) for _ in range(5)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert buses == [app.bus] * 5
    app.close()
    with own_server.client() as control:
        wait_until(lambda: len(control.client_list()) == 1)


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_child_that_was_forked_while_a_thread_connects_connects_itself(own_server: Server) -> None:
    gate = threading.Event()
    with Proxy(own_server.port) as proxy:
        app = App(proxy.url)
        proxy.on("GET", hold(gate))
        thread = threading.Thread(target=lambda: app.bus)
        thread.start()
        wait_until(lambda: proxy.sent("GET") == 1)
        child = os.fork()
        if not child:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(20)
            app.enqueue("task")
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        gate.set()
        thread.join()
        app.close()


def test_nothing_goes_on_behind_an_interrupted_test(app: App, queue: Queue) -> None:
    go_on = threading.Event()

    @app.task("interrupts")
    def interrupts() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        go_on.wait(20)

    interrupts.enqueue()
    interrupts.enqueue()
    with pytest.raises(KeyboardInterrupt):
        work_off(app, block=0.1)
    go_on.set()
    wait_until(lambda: not [each for each in threading.enumerate() if each.name.startswith(f"emq-{queue.name}-")])
    assert queue.counts().pending == 1


def test_an_app_without_a_target_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EMQ_URL", raising=False)
    with pytest.raises(InvalidArgument, match="EMQ_URL"):
        _ = App().bus


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"{}", b'{"task":1}', b'{"task":"a","args":1}', b'{"task":"a","kwargs":[]}']
)
def test_json_that_is_no_call_is_refused(text: bytes) -> None:
    with pytest.raises(InvalidArgument):
        Json().loads(text)


PROGRAM = """
from typing_extensions import assert_type
from emq_native import Admitted, App

app = App("valkey://localhost")

@app.task(retries=3, lane=lambda a, b: "x")
def add(a: int, b: int = 0) -> int:
    return a + b

assert_type(add(1), int)
assert_type(add.enqueue(1, b=2), Admitted)
add.enqueue("1")  # type: ignore[arg-type]
add.enqueue()  # type: ignore[call-arg]
add.enqueue_in(5, 1, c=2)  # type: ignore[call-arg]
"""


def test_a_strict_type_checker_checks_calls_by_the_function(tmp_path: Path) -> None:
    api = pytest.importorskip("mypy.api")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)

    report, complaints, status = api.run(["--strict", "--cache-dir", str(tmp_path / "cache"), str(program)])

    assert status == 0, report + complaints
