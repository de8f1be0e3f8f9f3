"""`serve`: a server for as long as the command runs."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis

from emq_native import connect, probe, provision
from emq_native.server import Server

SHIPPED = Path(__file__).parents[2] / "docker" / "valkey.conf"


@contextmanager
def serving(program: str, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A running `serve` and the URL that it printed."""
    with subprocess.Popen(
        [program, "serve", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def end(process: subprocess.Popen[str], number: signal.Signals) -> tuple[int, str]:
    """Exit status and what was said on standard error."""
    process.send_signal(number)
    _, said = process.communicate()
    return process.returncode, said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_it_serves_jobs_until_a_signal_ends_it_cleanly(program: str, number: signal.Signals) -> None:
    with serving(program) as (process, url):
        with connect(url) as bus:
            queue = bus.queue("q")
            queue.enqueue(b"payload")
            job = queue.claim(10)
            assert job is not None
            assert queue.complete(job)
            pid = bus.client.info("server")["process_id"]
        assert end(process, number) == (0, "")
    assert not os.path.exists(f"/proc/{pid}")
    assert not probe(url).reachable


def test_a_fresh_node_is_claimed_for_the_module(program: str) -> None:
    with serving(program) as (_, url):
        assert provision.show(url).wire == 6


def test_a_fresh_node_can_be_claimed_for_the_scripts(program: str) -> None:
    with serving(program, "--wire", "4") as (_, url):
        assert provision.show(url).wire == 4


def test_data_in_a_directory_outlive_it(program: str, tmp_path: Path) -> None:
    with serving(program, "--dir", str(tmp_path)) as (process, url):
        redis.from_url(url).set("key", "value")
        assert end(process, signal.SIGTERM)[0] == 0
    with serving(program, "--dir", str(tmp_path)) as (process, url):
        assert redis.from_url(url).get("key") == b"value"
        assert provision.show(url).wire == 6
        assert end(process, signal.SIGTERM) == (0, "")


def test_a_node_with_data_and_no_claim_is_left_alone_with_a_warning(program: str, tmp_path: Path) -> None:
    with Server(module=False, directory=tmp_path, config={"appendonly": "yes"}) as server:
        server.client().set("key", "value")
    with serving(program, "--dir", str(tmp_path)) as (process, url):
        assert provision.show(url).value is None
        status, said = end(process, signal.SIGTERM)
    assert status == 0
    assert "unclaimed" in said


def test_the_port_is_the_one_that_was_asked_for(program: str) -> None:
    with Server(module=False) as server:
        port = server.port
    with serving(program, "--port", str(port)) as (_, url):
        assert url == f"redis://127.0.0.1:{port}/0"


def test_a_port_that_is_taken_is_an_error(program: str) -> None:
    with Server(module=False) as server:
        answer = subprocess.run(
            [program, "serve", "--port", str(server.port)], capture_output=True, text=True, check=False
        )
    assert answer.returncode == 1
    assert answer.stderr == f"emq-native: port {server.port} is taken\n"


def test_directives_reach_the_server(program: str) -> None:
    with serving(program, "--config", "maxmemory-policy=noeviction", "--config", "maxmemory=100mb") as (_, url):
        assert probe(url).maxmemory == 100 * 1024 * 1024


def test_rows_are_as_compact_as_in_the_image(program: str) -> None:
    name = "hash-max-listpack-value"
    shipped = dict(line.split(" ", 1) for line in SHIPPED.read_text().splitlines() if line.startswith(name))

    with serving(program) as (_, url):
        assert redis.from_url(url, decode_responses=True).config_get(name) == shipped
    with serving(program, "--config", f"{name}=77") as (_, url):
        assert redis.from_url(url, decode_responses=True).config_get(name) == {name: "77"}


def test_a_server_that_ends_by_itself_ends_the_command(program: str) -> None:
    with serving(program) as (process, url):
        redis.from_url(url).shutdown(nosave=True)
        _, said = process.communicate()
        assert process.returncode == 1
        assert "ended by itself" in said


def test_a_directive_without_a_value_is_a_wrong_command_line(program: str) -> None:
    answer = subprocess.run([program, "serve", "--config", "maxmemory"], capture_output=True, text=True, check=False)
    assert answer.returncode == 2
    assert "NAME=VALUE" in answer.stderr
