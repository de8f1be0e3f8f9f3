"""A container of the image as a test sees it."""

from __future__ import annotations

import os

# Read by testcontainers at its import: no helper container, and ports are reached on the loopback interface.
os.environ["TESTCONTAINERS_RYUK_DISABLED"] = "true"
os.environ["TESTCONTAINERS_CONNECTION_MODE"] = "docker_host"
os.environ["TESTCONTAINERS_HOST_OVERRIDE"] = "127.0.0.1"

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import redis
from testcontainers.core.container import DockerContainer
from testcontainers.core.wait_strategies import HealthcheckWaitStrategy
from typing_extensions import Self

PORT = 6379
PATIENCE = 60.0
"""Seconds that a container may take for something that takes one."""


def until(condition: Callable[[], object], what: str, timeout: float = PATIENCE) -> None:
    """Wait until a condition holds; fail when it does not in time (seconds)."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {timeout} s"
        time.sleep(0.05)


@dataclass
class Node:
    """One container; it serves once its own health check has passed, and its port is open to this host only.

    words: what follows the image on the command line. options: what docker-py's `containers.create` takes.
    patient: wait for health at every start; otherwise a test waits for what it wants to see.
    """

    image: str
    version: str
    words: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    patient: bool = True
    container: DockerContainer = field(init=False)

    def __post_init__(self) -> None:
        # The image's own check, asked more often than an operator would want it.
        options = {"healthcheck": {"interval": 300_000_000}, **self.options}
        self.container = DockerContainer(self.image, command=list(self.words), env=dict(self.environment), **options)
        self.container.ports[f"{PORT}/tcp"] = ("127.0.0.1", None)  # type: ignore[assignment]

    def __enter__(self) -> Self:
        try:
            self.container.start()
            self._await_health()
        except BaseException:
            self.container.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.container.stop()

    def restart(self) -> None:
        """Stop the server in order and start it in the same container. The port may change."""
        self.container.get_wrapped_container().restart()
        self._await_health()

    def kill(self) -> None:
        """SIGKILL for everything in the container."""
        self.container.get_wrapped_container().kill()

    def start_again(self) -> None:
        self.container.get_wrapped_container().start()
        self._await_health()

    def stop(self) -> int:
        """Ask the container to stop, by SIGTERM; its exit status."""
        self.container.get_wrapped_container().stop(timeout=int(PATIENCE))
        return self.container.wait()

    def _await_health(self) -> None:
        if self.patient:
            patience = HealthcheckWaitStrategy().with_startup_timeout(int(PATIENCE)).with_poll_interval(0.1)
            patience.wait_until_ready(self.container)

    @property
    def port(self) -> int:
        """The port on 127.0.0.1."""
        return self.container.get_exposed_port(PORT)

    @property
    def address(self) -> str:
        """The address that other containers reach it at."""
        container = self.container.get_wrapped_container()
        container.reload()
        return str(container.attrs["NetworkSettings"]["IPAddress"])

    def url(self, database: int = 0) -> str:
        return f"redis://127.0.0.1:{self.port}/{database}"

    def client(self, database: int = 0) -> redis.Redis:
        return redis.Redis.from_url(self.url(database), decode_responses=True)

    def run(self, script: str) -> tuple[int | None, str]:
        """Run a shell script in the container: exit status, and output without the final line break."""
        result = self.container.exec(["sh", "-c", script])
        return result.exit_code, result.output.decode().rstrip("\n")

    def log(self) -> str:
        """What the container has printed, both streams."""
        out, errors = self.container.get_logs()
        return (out + errors).decode()

    def says(self, text: str) -> None:
        """Wait until the log has a text."""
        until(lambda: text in self.log(), f"the log has {text!r}")
