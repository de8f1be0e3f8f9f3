"""Servers of our own for the tests, one of each executor for a whole run, and what a failure has to show.

EMQ_VALKEY_SERVER chooses the valkey-server binary. EMQ_NO_SKIP=1 makes every skip a failure.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack

import pytest

from emq_native.conformance.host import CONFIG, OwnServer
from emq_native.conformance.lab import Lab
from emq_native.executors import NATIVE, SCRIPTED, Executor
from emq_native.server import Server

EXECUTORS = {"native": NATIVE, "scripted": SCRIPTED}
LOG_LINES = 60


class Servers:
    """The servers under test by the name of their executor, started when they are first asked for.

    One that a test brought down is started anew, so that a crash fails one test and not all that follow.
    """

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._hosts: dict[str, OwnServer] = {}
        self.used: set[str] = set()

    def __call__(self, executor: str) -> OwnServer:
        host = self._hosts.get(executor)
        if host is None or not host.server.running:
            native = executor == "native"
            host = OwnServer(self._stack.enter_context(Server(module=native, config=CONFIG)), native)
            with host.server.client() as client:
                client.set("{emq}:version", EXECUTORS[executor].identity)
            self._hosts[executor] = host
        self.used.add(executor)
        return host

    def logs(self) -> list[tuple[str, str]]:
        """The last lines of the log of every server that the current test used."""
        tails = []
        for name in sorted(self.used & set(self._hosts)):
            lines = self._hosts[name].server.log().splitlines()
            tails.append((f"log of the {name} server", "\n".join(lines[-LOG_LINES:])))
        return tails

    def close(self) -> None:
        self._stack.close()


_servers = pytest.StashKey[Servers]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_servers] = Servers()


def pytest_unconfigure(config: pytest.Config) -> None:
    config.stash[_servers].close()


@pytest.fixture
def servers(request: pytest.FixtureRequest) -> Servers:
    """The server of an executor by its name: `servers("native")`."""
    return request.config.stash[_servers]


@pytest.fixture
def native_server(servers: Servers) -> OwnServer:
    """A server with the module, its fence claimed for the native executor."""
    return servers("native")


@pytest.fixture
def scripted_server(servers: Servers) -> OwnServer:
    """A server without the module, its fence claimed for the scripted executor."""
    return servers("scripted")


@pytest.fixture(params=sorted(EXECUTORS))
def executor(request: pytest.FixtureRequest) -> Executor:
    """Each executor in turn."""
    return EXECUTORS[request.param]


@pytest.fixture(params=[2, 3], ids=["resp2", "resp3"])
def protocol(request: pytest.FixtureRequest) -> int:
    """Each protocol version in turn. Tests for which it makes no difference override it with one value."""
    version = request.param
    assert isinstance(version, int)
    return version


@pytest.fixture
def host(servers: Servers, executor: Executor) -> OwnServer:
    """The server of the executor under test."""
    return servers(executor.name)


@pytest.fixture
def lab(host: OwnServer, executor: Executor, protocol: int) -> Iterator[Lab]:
    """A queue of its own for each executor and protocol version; audited at the end."""
    with Lab(host.server.url, executor, protocol, host, prefix="test") as laboratory:
        yield laboratory
        laboratory.check()


@pytest.fixture
def make_lab(servers: Servers) -> Iterator[Callable[..., Lab]]:
    """Labs by hand: `make_lab("native", 3)`; all are audited at the end."""
    with ExitStack() as stack:
        made: list[Lab] = []

        def make(executor: str, protocol: int = 2, url: str | None = None) -> Lab:
            host = servers(executor)
            lab = Lab(
                url or host.server.url, EXECUTORS[executor], protocol, host if url is None else None, prefix="test"
            )
            made.append(stack.enter_context(lab))
            return lab

        yield make
        for lab in made:
            lab.check()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    used = item.config.stash[_servers]
    if report.failed:
        report.sections.extend(used.logs())
    elif report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if os.environ.get("EMQ_NO_SKIP") == "1" or reason.strip() in (
            "Skipped",
            "Skipped: ",
            "Skipped: unconditional skip",
        ):
            report.outcome = "failed"
            report.longrepr = (
                f"{item.nodeid} was skipped ({reason}), and nothing may be skipped without a reason or here"
            )
    if call.when == "teardown":
        used.used.clear()
    return report
