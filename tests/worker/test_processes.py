"""Worker processes: signals, supervision, orphans."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.context import SpawnProcess
from pathlib import Path

import pytest
from tests.cli.conftest import PROGRAM
from tests.worker.apps import note
from tests.worker.conftest import wait_until

from emq_native import Queue, connect
from emq_native.processes import run_processes
from emq_native.server import Server

ROOT = Path(__file__).parents[2]


@pytest.fixture
def queue(own_server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Queue]:
    monkeypatch.setenv("EMQ_URL", own_server.url)
    note.app.retarget(None)
    with connect(own_server.url) as bus:
        yield bus.queue("jobs")
    note.app.retarget(None)


@contextmanager
def program(*words: str) -> Iterator[subprocess.Popen[str]]:
    """`emq-native worker` as a process; killed at the end if it still lives."""
    process = subprocess.Popen(
        [PROGRAM, "worker", "tests.worker.apps:app", *words], cwd=ROOT, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def lines(path: Path, begin: str) -> list[str]:
    return [line for line in path.read_text().splitlines() if line.startswith(begin)] if path.exists() else []


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_lets_the_job_finish(queue: Queue, tmp_path: Path, number: signal.Signals) -> None:
    file = tmp_path / "notes"
    note.enqueue(str(file), "done", 0.5)
    with program("-c", "1") as process:
        wait_until(lambda: lines(file, "pid"))
        note.enqueue(str(file), "rest")
        process.send_signal(number)
        assert process.wait(20) == 0

    assert lines(file, "done")
    assert not lines(file, "rest")
    counts = queue.counts()
    assert (counts.completed, counts.active, counts.pending + counts.scheduled) == (1, 0, 1)


def test_the_second_signal_leaves_at_once(queue: Queue, tmp_path: Path) -> None:
    file = tmp_path / "notes"
    note.enqueue(str(file), "done", 60)
    with program("-c", "1") as process:
        wait_until(lambda: lines(file, "pid"))
        process.send_signal(signal.SIGTERM)
        # Signals of one kind that come before the first was taken count as one.
        while process.poll() is None:
            process.send_signal(signal.SIGTERM)

    assert queue.counts().active == 1


def test_beyond_the_grace_the_job_goes_back(queue: Queue, tmp_path: Path) -> None:
    file = tmp_path / "notes"
    note.enqueue(str(file), "done", 60)
    with program("-c", "1", "--grace", "0.1") as process:
        wait_until(lambda: lines(file, "pid"))
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0

    assert queue.counts().scheduled == 1


def test_a_process_that_dies_is_started_anew_and_all_end_with_the_supervisor(queue: Queue, tmp_path: Path) -> None:
    file = tmp_path / "notes"
    with program("-c", "1", "-p", "2", "--lease", "1") as process:
        note.enqueue(str(file), "killed", 60)
        wait_until(lambda: lines(file, "pid"))
        victim = int(lines(file, "pid")[0].split()[1])
        os.kill(victim, signal.SIGKILL)
        wait_until(lambda: len(lines(file, "pid")) == 2)
        for _ in range(20):
            note.enqueue(str(file), "done", 0.05)
        wait_until(lambda: len(lines(file, "done")) == 20)
        pids = {int(line.split()[1]) for line in lines(file, "pid")} - {victim}
        process.kill()
        process.wait(20)
        wait_until(lambda: queue.counts().active == 1)
        for pid in pids:
            if alive(pid):
                os.kill(pid, signal.SIGKILL)


def test_processes_end_in_order_when_their_supervisor_is_killed(queue: Queue, tmp_path: Path) -> None:
    file = tmp_path / "notes"
    with program("-c", "1", "-p", "2") as process:
        for _ in range(20):
            note.enqueue(str(file), "done", 0.02)
        wait_until(lambda: len(lines(file, "done")) == 20)
        pids = {int(line.split()[1]) for line in lines(file, "pid")}
        process.kill()
        process.wait(20)
        wait_until(lambda: not any(alive(pid) for pid in pids))

    assert queue.counts().active == 0


def test_a_signal_to_the_supervisor_ends_all(queue: Queue, tmp_path: Path) -> None:
    file = tmp_path / "notes"
    with program("-c", "2", "-p", "2") as process:
        for _ in range(4):
            note.enqueue(str(file), "done", 0.3)
        wait_until(lambda: len(lines(file, "pid")) == 4)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0

    assert queue.counts().completed == 4


def test_a_node_of_another_executor_is_hopeless(queue: Queue, own_server: Server, tmp_path: Path) -> None:
    own_server.client().set("{emq}:version", "echomq:9.0.0")
    with program("-p", "2") as process:
        assert process.wait(20) == 1


def test_a_worker_with_a_handler_runs_in_processes(queue: Queue, tmp_path: Path) -> None:
    file = tmp_path / "pids"
    queue.enqueue_many([str(file).encode()] * 50)
    script = (
        "from emq_native import Worker, connect; from tests.worker.apps import slow; import os, sys\n"
        "if __name__ == '__main__':\n"
        "    queue = connect(os.environ['EMQ_URL']).queue('jobs')\n"
        "    Worker(queue, slow, burst=True).run(processes=2)\n"
    )
    program = tmp_path / "program.py"
    program.write_text(script)

    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, str(program)], check=True, timeout=60, env=environment)

    assert queue.counts().completed == 50
    assert str(os.getpid()) not in file.read_text().split()


def test_a_process_that_cannot_be_started_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    start = SpawnProcess.start
    refused: list[str] = []

    def limited(process: SpawnProcess) -> None:
        if not refused:
            refused.append(process.name)
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        start(process)

    monkeypatch.setattr(SpawnProcess, "start", limited)
    run_processes(os.getpid, 2)
    assert refused == ["emq-worker-0"]
