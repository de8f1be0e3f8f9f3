"""The command line as its users call it: in this process by click's runner, or as a process of its own."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from emq_native.cli import main
from emq_native.server import Server

Run = Callable[..., Result]

PROGRAM = str(Path(sys.executable).with_name("emq-native"))


@pytest.fixture(autouse=True)
def no_url(monkeypatch: pytest.MonkeyPatch) -> None:
    """No node but the one that a test names."""
    monkeypatch.delenv("EMQ_URL", raising=False)


@pytest.fixture
def run() -> Run:
    """`run("fence", "show", url)`: the command in this process."""

    def invoke(*words: str, **options: object) -> Result:
        return CliRunner().invoke(main, words, catch_exceptions=False, **options)  # type: ignore[arg-type]

    return invoke


@pytest.fixture
def program() -> str:
    """Path of the installed command."""
    assert os.access(PROGRAM, os.X_OK), f"{PROGRAM} is not installed"
    return PROGRAM


@pytest.fixture(scope="session")
def plain_server() -> Iterator[Server]:
    with Server(module=False) as server:
        yield server


@pytest.fixture(scope="session")
def module_server() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture
def node(plain_server: Server) -> Server:
    """An empty server without the module."""
    return _fresh(plain_server)


@pytest.fixture
def native_node(module_server: Server) -> Server:
    """An empty server with the module; nobody has claimed it."""
    return _fresh(module_server)


def _fresh(server: Server) -> Server:
    client = server.client()
    client.flushall()
    client.config_set("maxmemory-policy", "noeviction")
    return server


@pytest.fixture
def nowhere() -> str:
    """A URL where nobody listens."""
    with Server(module=False) as server:
        return server.url
