"""The command `metrics`: once, and as a server that Prometheus asks."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.cli.conftest import Run

import emq_native
from emq_native import provision
from emq_native.server import Server


@contextmanager
def served(program: str, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The running command and the URL that it says it serves at."""
    with subprocess.Popen(
        [program, "metrics", "--listen", "127.0.0.1:0", *words], stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            found = re.search(r"http://\S+", line)
            assert found, line
            yield process, found[0]
        finally:
            process.kill()


def fetched(url: str) -> str:
    with urllib.request.urlopen(url, timeout=60) as reply:
        assert reply.headers["Content-Type"].startswith("text/plain")
        return str(reply.read(), "utf-8")


def test_once_prints_the_text_for_a_collector_of_files(run: Run, native_node: Server) -> None:
    provision.claim(native_node.url, wire=6)
    with emq_native.connect(native_node.url) as bus:
        bus.queue("orders").enqueue(b"x")
    shown = run("metrics", native_node.url, "--once", "--probe-wake", "1")
    assert shown.exit_code == 0
    assert 'emq_jobs{queue="orders",state="pending"} 1.0' in shown.stdout
    assert "emq_wake_latency_seconds_count 1.0" in shown.stdout
    assert shown.stderr == ""


def test_once_of_a_node_that_does_not_answer_says_so_and_that_it_is_down(run: Run, nowhere: str) -> None:
    shown = run("metrics", nowhere, "--once")
    assert shown.exit_code == 3
    assert re.search(r'^emq_up\{node="127.0.0.1:\d+"\} 0.0$', shown.stdout, re.MULTILINE)
    assert "refused" in shown.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_exporter_serves_until_it_is_told_to_end_and_leaves_nothing(
    program: str, native_node: Server, number: int
) -> None:
    provision.claim(native_node.url, wire=6)
    with served(program, native_node.url, "--probe-wake", "1") as (process, url):
        while "emq_wake_latency_seconds_count 0.0" in (text := fetched(url)):
            pass
        assert "emq_up{" in text
        process.send_signal(number)
        assert process.wait(60) == 0
    with native_node.client() as client:
        assert client.keys("emq:*") == []


def test_the_exporter_outlives_its_node(program: str) -> None:
    with Server(module=False) as server, served(program, server.url) as (process, url):
        assert " 1.0" in next(line for line in fetched(url).splitlines() if line.startswith("emq_up{"))
        server.kill()
        assert " 0.0" in next(line for line in fetched(url).splitlines() if line.startswith("emq_up{"))
        server.restart()
        assert " 1.0" in next(line for line in fetched(url).splitlines() if line.startswith("emq_up{"))
        assert process.poll() is None


def test_a_port_that_is_taken_is_told_in_one_line(run: Run, node: Server) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        shown = run("metrics", node.url, "--listen", f"127.0.0.1:{taken.getsockname()[1]}")
    assert shown.exit_code == 1
    assert "cannot listen" in shown.stderr
    assert shown.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [["--listen", "9121"], ["--listen", ":x"], ["--listen", ":70000"], ["--queue", "no name"], ["--lanes", "-1"]],
)
def test_a_wrong_command_line(run: Run, node: Server, words: list[str]) -> None:
    assert run("metrics", node.url, *words).exit_code == 2


def test_a_url_that_is_none_is_a_wrong_command_line(run: Run) -> None:
    assert run("metrics", "http://127.0.0.1", "--once").exit_code == 2


def test_without_the_library_it_says_what_to_install(node: Server) -> None:
    code = "import sys; sys.modules['prometheus_client'] = None; from emq_native.cli import main; main(sys.argv[1:])"
    shown = subprocess.run(
        [sys.executable, "-c", code, "metrics", node.url, "--once"], capture_output=True, text=True, check=False
    )
    assert shown.returncode == 1
    assert shown.stderr == "emq-native: this needs prometheus_client: pip install 'emq-native[metrics]'\n"
