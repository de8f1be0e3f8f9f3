"""The commands about queues and jobs, and the pytest plugin."""

from __future__ import annotations

import asyncio
import io
import json
import pickle
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from rich.console import Console
from tests.cli.conftest import PROGRAM
from tests.worker.apps import note, other, slow
from tests.worker.conftest import wait_until

from emq_native import App, Bus, PermissionDenied, Queue, Worker, connect, mint, provision
from emq_native.cli import main
from emq_native.cli.jobs import STATES, age, rich_table
from emq_native.cli.top import HEADER
from emq_native.cli.worker import Work, _run_async
from emq_native.serializers import Json, Message
from emq_native.server import Server
from emq_native.worker import _work

Run = Callable[..., Result]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def run(own_server: Server, monkeypatch: pytest.MonkeyPatch) -> Run:
    """`run("queues", "--json")`: the command in this process, on a server of its own."""
    monkeypatch.setenv("EMQ_URL", own_server.url)

    def invoke(*words: str, stdin: bytes | None = None) -> Result:
        return CliRunner().invoke(main, words, input=stdin, catch_exceptions=False)

    return invoke


@pytest.fixture
def bus(own_server: Server) -> Any:
    with connect(own_server.url) as made:
        yield made


@pytest.fixture
def queue(bus: Bus) -> Queue:
    return bus.queue("jobs")


def dead(queue: Queue, count: int) -> list[str]:
    queue.enqueue_many([b"payload"] * count)
    jobs = queue.claim_many(60, count)
    for job in jobs:
        queue.retry(job, max_attempts=1, error="ValueError: bad\nsecond line")
    return [job.id for job in jobs]


def test_queues_are_listed_with_their_numbers(run: Run, bus: Bus, queue: Queue) -> None:
    queue.enqueue(b"")
    queue.enqueue(b"", group="g")
    bus.queue("later").enqueue_in(b"", 60)
    bus.queue("later").pause()

    shown = json.loads(run("queues", "--json").stdout)
    lines = run("queues").stdout.splitlines()

    assert [(each["queue"], each["pending"], each["scheduled"], each["paused"]) for each in shown] == [
        ("jobs", 2, 0, False),
        ("later", 0, 1, True),
    ]
    assert shown[0]["groups"] == [{"group": "g", "pending": 1, "active": 0}]
    assert 0 <= shown[0]["oldest"] < 60
    assert lines[1].split("\t")[:2] == ["jobs", "2"]
    assert lines[2].startswith("later (paused)\t0\t")


def test_a_state_has_the_same_name_in_tables_json_and_options(run: Run, queue: Queue) -> None:
    queue.enqueue(b"")
    columns = run("queues").stdout.splitlines()[0].split("\t")
    for state in ("pending", "active", "scheduled", "dead", "awaiting_children"):
        assert state in columns
        assert state in json.loads(run("queues", "--json").stdout)[0]
        assert run("jobs", "ls", "jobs", "--state", state).exit_code == 0
    assert set(HEADER) - {"rate"} < set(columns)
    assert run("jobs", "ls", "jobs", "--state", "waiting").exit_code == 2


def test_a_queue_is_paused_resumed_and_drained(run: Run, queue: Queue) -> None:
    queue.enqueue_many([b""] * 3)
    queue.enqueue_in(b"", 60)
    assert run("queues", "pause", "jobs").exit_code == 0
    assert queue.claim(1) is None
    assert run("queues", "resume", "jobs").exit_code == 0
    assert run("queues", "drain", "jobs").exit_code == 2
    assert run("queues", "drain", "jobs", "--yes").stdout == "3 jobs deleted\n"
    assert run("queues", "drain", "jobs", "--scheduled", "--yes").stdout == "1 jobs deleted\n"


def test_a_pause_tells_what_it_holds_up_so_that_a_mistyped_name_shows(run: Run, queue: Queue) -> None:
    queue.enqueue_many([b""] * 3)
    assert run("queues", "pause", "jobs").stdout == "jobs is paused: 3 jobs wait, 0 run\n"
    assert run("queues", "resume", "jobs").stdout == "jobs goes on: 3 jobs wait, 0 run\n"
    assert run("queues", "pause", "jbos").stdout == "jbos is paused: 0 jobs wait, 0 run; no job was ever there\n"


def test_lanes_are_listed_with_their_settings_also_those_without_jobs(run: Run, queue: Queue) -> None:
    queue.enqueue_many([b""] * 2)
    for group in ("ada", "ada", "bob"):
        queue.enqueue(b"", group=group)
    assert run("lanes", "limit", "jobs", "ada", "1").stdout == "ada of jobs: at most 1 jobs run at a time\n"
    assert run("lanes", "weight", "jobs", "ada", "5").stdout == "ada of jobs: 5 a turn\n"
    assert run("lanes", "pause", "jobs", "cid").stdout == "cid of jobs is paused\n"
    assert queue.claim_fair(60) is not None

    lanes = {each.pop("group"): each for each in json.loads(run("lanes", "ls", "jobs", "--json").stdout)}

    assert lanes == {
        "ada": {"pending": 1, "active": 1, "limit": 1, "weight": 5, "paused": False},
        "bob": {"pending": 1, "active": 0, "limit": 0, "weight": 1, "paused": False},
        "cid": {"pending": 0, "active": 0, "limit": 0, "weight": 1, "paused": True},
    }
    assert [line.split("\t") for line in run("lanes", "ls", "jobs").stdout.splitlines()] == [
        ["lane", "pending", "active", "limit", "weight"],
        ["ada", "1", "1", "1", "5"],
        ["bob", "1", "0", "-", "1"],
        ["cid (paused)", "0", "0", "-", "1"],
    ]


def test_the_settings_of_a_lane_are_taken_back(run: Run, queue: Queue) -> None:
    for words in (("limit", "jobs", "ada", "1"), ("weight", "jobs", "ada", "5"), ("pause", "jobs", "ada")):
        assert run("lanes", *words).exit_code == 0
    assert run("lanes", "limit", "jobs", "ada", "0").stdout == "ada of jobs: no limit\n"
    assert run("lanes", "weight", "jobs", "ada", "0").stdout == "ada of jobs: 1 a turn\n"
    assert run("lanes", "resume", "jobs", "ada").stdout == "ada of jobs goes on\n"
    assert json.loads(run("lanes", "ls", "jobs", "--json").stdout) == []
    assert run("lanes", "limit", "jobs", "ada", "-1").exit_code == 2


def test_a_lane_is_drained_and_its_neighbours_are_not(run: Run, queue: Queue) -> None:
    for group in ("ada", "ada", "bob"):
        queue.enqueue(b"", group=group)
    assert run("lanes", "drain", "jobs", "ada").exit_code == 2
    assert run("lanes", "drain", "jobs", "ada", "--yes").stdout == "2 jobs deleted\n"
    assert [each["group"] for each in json.loads(run("lanes", "ls", "jobs", "--json").stdout)] == ["bob"]


def test_a_queue_is_obliterated_in_steps(run: Run, bus: Bus, queue: Queue) -> None:
    queue.enqueue_many([b""] * 1200)
    assert run("queues", "obliterate", "jobs", "--yes").stdout == "jobs is gone\n"
    assert bus.client.keys("emq:{jobs}*") == []


def test_jobs_are_listed_place_by_place(run: Run, queue: Queue) -> None:
    flat, lane = queue.enqueue(b"\xffflat"), queue.enqueue(b"lane", group="g")
    later = queue.enqueue_in(b"later", 60)
    assert queue.claim(60) is not None
    (ended,) = dead(queue, 1)

    shown = json.loads(run("jobs", "ls", "jobs", "--json").stdout)
    only = json.loads(run("jobs", "ls", "jobs", "--state", "pending", "--json").stdout)

    places = {each["id"]: each["place"] for each in shown}
    assert places == {flat: "active", lane: "pending", later: "scheduled", ended: "dead"}
    assert [each["id"] for each in only] == [lane]
    assert next(each for each in shown if each["id"] == flat)["payload"] == "\\xffflat"
    assert run("jobs", "ls", "jobs", "--state", "dead").stdout.splitlines()[1].endswith("\tpayload\tValueError: bad")


HOSTILE = "\x1b[2J\r\x9b31m\u202eevil"
HARMLESS = "\\x1b[2J\\r\\x9b31m\\u202eevil"


@pytest.mark.parametrize("words", [("jobs", "show", "jobs"), ("jobs", "ls", "jobs"), ("dead", "ls", "jobs")])
def test_what_could_steer_a_terminal_is_shown_with_backslashes(run: Run, queue: Queue, words: tuple[str, ...]) -> None:
    queue.enqueue(HOSTILE.encode())
    job = queue.claim(60)
    assert job is not None
    queue.log(job, HOSTILE)
    queue.retry(job, max_attempts=1, error=HOSTILE)

    shown = CliRunner().invoke(main, (*words, *([job.id] if "show" in words else [])), color=True).stdout

    assert HARMLESS in shown
    assert not set("\x1b\r\x9b\u202e") & set(shown)


def test_a_table_on_a_terminal_steers_it_no_more_than_lines_do() -> None:
    page = Console(file=io.StringIO(), width=200)
    page.print(rich_table("jobs", ("payload",), [(HOSTILE,)]))
    assert HARMLESS in page.file.getvalue()  # type: ignore[attr-defined]


def test_eighty_columns_show_the_name_of_a_queue_and_all_its_numbers() -> None:
    header = ("queue", *STATES, "completed", "failed", "oldest")

    def shown(*row: str) -> list[list[str]]:
        page = io.StringIO()
        Console(file=page, width=80).print(rich_table("queues", header, [row]))
        return [line.split() for line in page.getvalue().splitlines()]

    flat = shown("thumbnails", "105", "3", "12", "2", "0", "1912345", "5", "22.9 m")
    assert flat[1] == [name for name in header if name != "awaiting_children"]
    assert flat[-1] == ["thumbnails", "105", "3", "12", "2", "1912345", "5", "22.9", "m"]
    assert shown("mail", "105", "3", "12", "2", "4", "1912345", "5", "-")[-1] == (
        ["mail", "105", "3", "12", "2", "4", "1912345", "5", "-"]
    )


def test_a_job_is_shown_with_its_log(run: Run, queue: Queue) -> None:
    job = queue.enqueue(b"p", group="g")
    queue.log(job, "first line")

    shown = json.loads(run("jobs", "show", "jobs", job, "--json").stdout)

    assert {name: shown[name] for name in ("id", "place", "payload", "group", "attempts", "logs")} == {
        "id": job,
        "place": "pending",
        "payload": "p",
        "group": "g",
        "attempts": "0",
        "logs": ["first line"],
    }
    assert "log: first line" in run("jobs", "show", "jobs", job).stdout
    assert run("jobs", "show", "jobs", mint()).exit_code == 1
    assert run("jobs", "show", "jobs", "nonsense").exit_code == 2


def test_a_job_is_added_with_its_bytes_a_lane_a_delay_or_an_id(run: Run, queue: Queue) -> None:
    job = run("jobs", "add", "jobs", "two coff\u00e9es").stdout.strip()
    assert (queue.peek(job) or {})["payload"] == "two coff\u00e9es".encode()
    piped = run("jobs", "add", "jobs", "-", stdin=b"\x00\xff").stdout.strip()
    assert (queue.peek(piped) or {})["payload"] == b"\x00\xff"
    laned = run("jobs", "add", "jobs", "", "--group", "ada").stdout.strip()
    assert (queue.peek(laned) or {})["group"] == b"ada"
    assert queue.state(run("jobs", "add", "jobs", "", "--in", "60").stdout.strip()) == "scheduled"
    assert run("jobs", "add", "jobs", "", "--in", "60", "--group", "ada").exit_code == 2

    known = str(mint())
    assert run("jobs", "add", "jobs", "", "--id", known).stdout == f"{known}\n"
    again = run("jobs", "add", "jobs", "", "--id", known)
    assert (again.exit_code, again.stdout) == (1, "")
    assert "already" in again.stderr


def test_jobs_are_retried_and_removed(run: Run, queue: Queue) -> None:
    first, second = dead(queue, 2)
    assert run("jobs", "retry", "jobs", first).exit_code == 0
    assert queue.state(first) == "pending"
    assert run("jobs", "retry", "jobs", first).exit_code == 1
    assert run("jobs", "remove", "jobs", first, second).exit_code == 0
    assert queue.counts().dead == queue.counts().pending == 0
    assert run("jobs", "remove", "jobs", first).exit_code == 1


def test_who_may_not_remove_a_running_job_is_told_how(run: Run, queue: Queue) -> None:
    running = queue.enqueue(b"")
    assert queue.claim(60) is not None

    refused = run("jobs", "remove", "jobs", running)

    assert refused.exit_code == 1
    assert f"{running}: EMQLOCK job is active; --force" in refused.stderr
    assert queue.state(running) == "active"
    assert run("jobs", "remove", "jobs", running, "--force").exit_code == 0
    assert queue.state(running) == "absent"


def test_dead_jobs_are_listed_and_replayed(run: Run, queue: Queue) -> None:
    jobs = dead(queue, 700)
    assert len(json.loads(run("dead", "ls", "jobs", "--json", "--limit", "3").stdout)) == 3
    assert run("dead", "replay", "jobs").exit_code == 2
    assert run("dead", "replay", "jobs", jobs[0]).stdout == "1 jobs wait again\n"
    assert run("dead", "replay", "jobs", jobs[0]).exit_code == 1
    assert json.loads(run("dead", "replay", "jobs", "--all", "--json").stdout) == {"replayed": 699, "not_dead": []}
    assert queue.counts().pending == 700


def test_top_tells_the_rate_of_what_ended(run: Run, queue: Queue) -> None:
    queue.enqueue(b"")
    looks = [json.loads(line) for line in run("top", "--count", "2", "--interval", "0.1").stdout.splitlines()]
    assert [look[0]["queue"] for look in looks] == ["jobs", "jobs"]
    assert [look[0]["rate"] for look in looks] == [None, 0.0]


def test_a_node_that_does_not_answer_gives_no_verdict(run: Run, own_server: Server) -> None:
    own_server.stop()
    for words in (("queues",), ("jobs", "ls", "jobs"), ("dead", "ls", "jobs"), ("top", "--count", "1")):
        assert run(*words).exit_code == 3


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, "-"), (0.04, "0.0 s"), (59, "59.0 s"), (90, "1.5 m"), (7200, "2.0 h"), (1e6, "11.6 d")]
)
def test_ages_are_short(seconds: float | None, text: str) -> None:
    assert age(seconds) == text


# Working


@pytest.mark.parametrize("extra", [(), ("--asyncio",)])
def test_a_burst_works_on_all_queues_of_an_app(
    run: Run, bus: Bus, queue: Queue, own_server: Server, tmp_path: Path, extra: tuple[str, ...]
) -> None:
    note.app.retarget(own_server.url)
    file = tmp_path / "notes"
    note.enqueue(str(file), "done")
    failing = note.enqueue(str(file), "fail")
    other.enqueue()

    ended = subprocess.run(
        [PROGRAM, "worker", "tests.worker.apps:app", "--burst", "--json", *extra],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    note.app.retarget(None)
    assert "done" in file.read_text()
    assert (queue.counts().completed, queue.counts().dead, bus.queue("others").counts().completed) == (1, 1, 1)
    logged = [json.loads(line) for line in ended.stderr.splitlines()]
    failure = next(line for line in logged if "failed" in line["message"])
    assert (failure["job_id"], failure["queue"], failure["task"], failure["attempt"]) == (failing, "jobs", "note", 1)
    assert all(re.search(r"\.\d{3}[+-]\d\d:\d\d$", line["time"]) for line in logged)
    assert logged[-1]["message"].endswith(" is done: 3 taken, 2 completed, 1 dead")
    assert "ValueError" in failure["traceback"]


@pytest.mark.parametrize("extra", [(), ("--asyncio",), ("--processes", "2")], ids=" ".join)
def test_a_worker_waits_for_a_node_that_is_not_there_yet(
    queue: Queue, own_server: Server, tmp_path: Path, extra: tuple[str, ...]
) -> None:
    file = tmp_path / "notes"
    queue.enqueue(Json().dumps(Message("note", (str(file), "done"), {})))
    own_server.kill()
    words = [PROGRAM, "worker", "tests.worker.apps:app", "--url", own_server.url, *extra]
    with subprocess.Popen(words, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            said = next(line for line in process.stderr if "next try in" in line)
            own_server.start()
            wait_until(lambda: file.exists() and "done" in file.read_text())
            process.terminate()
            process.stderr.read()
            assert process.wait(20) == 0
        finally:
            process.kill()
    assert f"127.0.0.1:{own_server.port}" in said


@pytest.mark.parametrize("extra", [(), ("--asyncio",)], ids=" ".join)
def test_a_worker_says_that_it_stops_and_what_became_of_its_jobs(
    bus: Bus, own_server: Server, tmp_path: Path, extra: tuple[str, ...]
) -> None:
    bus.queue("others").enqueue(Json().dumps(Message("other", (), {})))
    words = [PROGRAM, "worker", "tests.worker.apps:app", "--url", own_server.url, "--grace", "7", *extra]
    with subprocess.Popen(words, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_until(lambda: bus.queue("others").counts().completed == 1)
            process.terminate()
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
    stops, done = said.splitlines()[-2:]
    assert stops.endswith(f"pid {process.pid} stops: nothing more is taken, what runs has 7 s to end")
    assert done.endswith(f"pid {process.pid} is done: 1 taken, 1 completed")


@pytest.mark.parametrize("extra", [(), ("--asyncio",)], ids=" ".join)
def test_a_worker_does_not_wait_where_it_is_refused(own_server: Server, extra: tuple[str, ...]) -> None:
    def status(url: str) -> int:
        words = [PROGRAM, "worker", "tests.worker.apps:app", "--url", url, *extra]
        return subprocess.run(words, cwd=ROOT, stderr=subprocess.DEVNULL, timeout=60).returncode

    assert status(own_server.url.replace("/0", "/9")) == 1
    own_server.client().config_set("requirepass", "secret")
    assert status(own_server.url) == 3


@pytest.mark.parametrize(
    ("extra", "status"),
    [((), 3), (("--asyncio",), 3), (("--processes", "2"), 1)],
    ids=["threads", "asyncio", "processes"],
)
def test_a_burst_ends_with_an_error_when_the_node_is_not_there(
    own_server: Server, extra: tuple[str, ...], status: int
) -> None:
    own_server.kill()
    words = [PROGRAM, "worker", "tests.worker.apps:app", "--burst", "--url", own_server.url, *extra]
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert ended.returncode == status
    assert f"127.0.0.1:{own_server.port}" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.fixture(scope="module")
def without_module() -> Iterator[str]:
    """A node that the module owns, which is not loaded there."""
    with Server(module=False) as server:
        provision.claim(server.url, wire=6)
        yield server.url


@pytest.mark.parametrize("extra", [(), ("--asyncio",), ("--processes", "2")], ids=["threads", "asyncio", "processes"])
def test_a_burst_ends_with_an_error_when_the_module_is_missing(without_module: str, extra: tuple[str, ...]) -> None:
    words = [PROGRAM, "worker", "tests.worker.apps:app", "--burst", "--url", without_module, *extra]
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert "the module is not loaded on this node" in ended.stderr
    assert "emq-native load" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_worker_that_waits_for_the_module_says_so(without_module: str) -> None:
    words = [PROGRAM, "worker", "tests.worker.apps:app", "--url", without_module]
    with subprocess.Popen(words, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            said = next(line for line in process.stderr if "next try in" in line)
            assert "the module is not loaded on this node" in said
            process.terminate()
            process.stderr.read()
            assert process.wait(20) == 0
        finally:
            process.kill()


def test_a_burst_on_a_paused_queue_says_why_it_does_nothing(run: Run, queue: Queue, own_server: Server) -> None:
    waiting = queue.enqueue(b"")
    queue.pause()
    words = [PROGRAM, "worker", "tests.worker.apps:app", "--burst", "--queues", "jobs", "--url", own_server.url]
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    (line,) = [line for line in ended.stderr.splitlines() if "paused" in line]
    assert "queue jobs is paused" in line
    assert queue.state(waiting) == "pending"
    assert run(*line.split("`emq-native ")[1].split("`")[0].split()).exit_code == 0
    assert queue.claim(60) is not None


def test_a_worker_fires_repeats_where_its_app_has_some_or_it_is_told_to() -> None:
    app = App("redis://localhost", queue="jobs")
    app.task("tick", queue="clock")(print).every(60)

    def fires(asked: bool | None) -> list[bool]:
        work = Work("", None, (), 1, {"repeats": asked}, False, "info", False)
        return [work.options_of(app, queue)["repeats"] for queue in ("jobs", "clock")]

    assert [fires(asked) for asked in (None, True, False)] == [[False, True], [True, True], [False, False]]


def test_who_may_not_fire_repeats_works_for_an_app_that_has_none(tmp_path: Path) -> None:
    with Server() as server, server.client() as control, connect_claimed(server) as bus:
        control.execute_command("ACL", "SETUSER", "u", "on", ">secret", "~*", "+@all", "-time")
        file = tmp_path / "notes"
        bus.queue("jobs").enqueue(Json().dumps(Message("note", (str(file), "done"), {})))
        url = f"redis://u:secret@127.0.0.1:{server.port}"
        words = [PROGRAM, "worker", "tests.worker.apps:app", "--burst", "--url", url]
        subprocess.run(words, cwd=ROOT, timeout=60, check=True)
        assert "done" in file.read_text()
        assert control.acl_log() == []


def connect_claimed(server: Server) -> Bus:
    provision.claim(server.url, wire=6)
    return connect(server.url)


def test_worker_processes_wait_for_a_node_that_is_not_there_yet(queue: Queue, own_server: Server) -> None:
    worker = pickle.dumps(Worker(queue, slow, burst=True))
    own_server.kill()
    working = threading.Thread(target=_work, args=(worker, True))
    working.start()
    own_server.start()
    working.join(20)
    assert not working.is_alive()


@pytest.mark.parametrize("target", ["tests.worker.apps", "tests.worker.nowhere:app", "tests.worker.apps:note"])
def test_what_is_no_app_is_a_wrong_command_line(run: Run, target: str) -> None:
    assert run("worker", target).exit_code == 2


def test_who_names_no_app_is_told_the_app_of_the_module(run: Run) -> None:
    assert "tests.worker.apps:app is one" in run("worker", "tests.worker.apps:ap").stderr


# The plugin

TESTS = """
from emq_native import App

app = App()
made = []

@app.task()
def greet(name): made.append(name)

def test_work(emq_app, emq_work):
    emq_app(app)
    greet.enqueue("Ada")
    assert emq_work(app).completed == 1
    assert made == ["Ada"]

def test_queue(emq_queue, emq_bus):
    assert emq_queue.counts().completed == 0
    assert emq_bus.executor.name == "EXECUTOR"
    emq_queue.enqueue(b"")

def test_empty(emq_queue):
    assert emq_queue.counts().pending == 0
"""


def test_the_plugin_serves_an_empty_node(tmp_path: Path, executor: Any) -> None:
    (tmp_path / "test_it.py").write_text(TESTS.replace("EXECUTOR", executor.name))
    (tmp_path / "pytest.ini").write_text(f"[pytest]\nemq_executor = {executor.name}\n")
    plugin = ["-p", "emq_native.testing"]

    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugin, str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "3 passed" in ended.stdout


def test_an_error_of_one_worker_on_a_loop_lets_the_others_finish_and_is_raised(own_server: Server) -> None:
    app = App(f"redis://u:x@127.0.0.1:{own_server.port}", queue="jobs")

    @app.task("last")
    async def last() -> None:
        with own_server.client() as control:
            control.execute_command("ACL", "SETUSER", "u", "resetkeys", "~emq:{jobs}*", "~{emq}:version")
            while not control.execute_command("ACL", "LOG"):
                await asyncio.sleep(0.01)
        await asyncio.sleep(1)

    with own_server.client() as control:
        control.execute_command("ACL", "SETUSER", "u", "on", "nopass", "~*", "+@all")
    with connect(own_server.url) as bus:
        bus.queue("jobs").enqueue(last.message())
        with pytest.raises(PermissionDenied):
            asyncio.run(_run_async(app, {"jobs": {}, "others": {"block": 0.1}}, patient=False, grace=30.0))
        assert bus.queue("jobs").counts().completed == 1
