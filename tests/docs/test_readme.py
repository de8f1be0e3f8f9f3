"""What the README shows works as shown."""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from tests.docs.pages import ROOT, URL, blocks, named
from tests.docs.reader import Reader, free_port, until_it_serves

import emq_native
from emq_native.server import Server

README = (ROOT / "README.md").read_text()
BLOCKS = named(
    "README.md",
    {
        "task": "def hello",
        "shell": "pip install",
        "on your server": "loadmodule",
        "in use": "StaleToken",
        "in CI": "emq-native conformance",
    },
)
EXAMPLE = BLOCKS["in use"].text


@pytest.fixture
def url() -> Iterator[str]:
    with Server() as server, server.client() as client:
        client.set("{emq}:version", "echomq:6.0.0")
        yield server.url


def test_the_python_side_runs(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert URL in EXAMPLE
    names: dict[str, object] = {}
    exec(compile(EXAMPLE.replace(URL, url), "README.md", "exec"), names)
    printed = capsys.readouterr().out
    assert "EMQSTALE complete token mismatch" in printed
    assert "completed=1" in printed
    bus = names["bus"]
    assert isinstance(bus, emq_native.Bus)
    bus.close()


def test_the_other_side_does_the_same(url: str) -> None:
    said = re.findall(r"# ((?:EMQ\.).*)$", EXAMPLE, re.MULTILINE)
    assert len(said) == 11
    refusals = []
    with redis.Redis.from_url(url, decode_responses=True) as client:
        for line in said:
            try:
                client.execute_command(*shlex.split(line))
            except redis.ResponseError as refusal:
                refusals.append(str(refusal))
        assert refusals == ["EMQSTALE complete token mismatch"]
        assert client.execute_command("EMQ.STATE", "emq:{orders}", "JOB0EEMl9I7Qw4") == "absent"
        assert client.execute_command("EMQ.STATE", "emq:{orders}", "JOB0EEMl9I7Qw5") == "scheduled"


def test_its_ten_lines_are_those_of_the_quickstart() -> None:
    for name in ("task", "shell"):
        assert BLOCKS[name].text in [block.text for block in blocks("docs/quickstart.md")]


def test_a_server_of_ones_own_gets_the_module_and_is_checked(tmp_path: Path) -> None:
    reader = Reader(Server(port=free_port()), tmp_path)
    (tmp_path / "module").symlink_to(ROOT / "module")
    (tmp_path / "valkey.conf").write_text(f'bind 127.0.0.1\nport {reader.server.port}\nsave ""\n')
    (tmp_path / "bin" / "valkey-server").write_text(f'#!/bin/sh\nexec {shlex.quote(reader.server.binary)} "$@"\n')
    (tmp_path / "bin" / "valkey-server").chmod(0o755)
    make, load, start, claim = BLOCKS["on your server"].text.splitlines()
    try:
        for line in (make, load, start):
            reader.shell(line)
        until_it_serves(reader.server)
        reader.shell(claim)

        reader.shell(
            BLOCKS["in CI"].text.replace("conformance --url", "conformance --only C010 --only C030-C033 --url")
        )

        assert "<testsuite" in (tmp_path / "conformance.xml").read_text()
    finally:
        with reader.server.client() as client, contextlib.suppress(redis.ConnectionError):
            client.shutdown(nosave=True)
        reader.close()


def test_every_make_target_that_is_shown_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    shown = set(re.findall(r"^make ([a-z]+)", README + (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE))
    assert shown
    assert shown <= targets
