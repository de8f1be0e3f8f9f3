"""The ten lines of the quickstart are ten, and they work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docs.pages import Block, named
from tests.docs.reader import Reader, free_port, until_it_serves

from emq_native.server import Server

BLOCKS = named("docs/quickstart.md", {"task": "def hello", "shell": "pip install", "other clients": "EMQ.CLAIM"})


def code(block: Block) -> list[str]:
    return [line for line in block.text.splitlines() if line.strip()]


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    one = Reader(Server(port=free_port()), tmp_path)  # not started: the page starts its own
    yield one
    one.close()


def test_they_are_ten() -> None:
    assert len(code(BLOCKS["task"])) == len(code(BLOCKS["shell"])) == 5


def test_they_work(reader: Reader) -> None:
    reader.write("hello.py", BLOCKS["task"])
    install, serve, send, look, work = code(BLOCKS["shell"])
    assert install.startswith("pip install '.[server]' ")  # tests/packaging installs it

    reader.shell(serve)
    until_it_serves(reader.server)
    reader.shell(send)
    assert "default" in reader.shell(look)
    assert "hello world" in reader.shell(work)

    assert reader.shell(BLOCKS["other clients"].text).split() == ["1", "JOB0EEMl9I7Qw4", "to:", "ada", "1", "1"]
