"""A container of the image as a test sees it."""

from __future__ import annotations

import os

# Read by testcontainers at its import: no helper container, and ports are reached on the loopback interface.
os.environ["TESTCONTAINERS_RYUK_DISABLED"] = "true"
os.environ["TESTCONTAINERS_CONNECTION_MODE"] = "docker_host"
os.environ["TESTCONTAINERS_HOST_OVERRIDE"] = "127.0.0.1"

from dataclasses import dataclass, field

import redis
from testcontainers.core.container import DockerContainer
from testcontainers.core.wait_strategies import HealthcheckWaitStrategy
from typing_extensions import Self

PORT = 6379


@dataclass
class Node:
    """One container; it serves once its own health check has passed, and its port is open to this host only."""

    image: str
    version: str
    container: DockerContainer = field(init=False)

    def __post_init__(self) -> None:
        self.container = DockerContainer(self.image)
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

    def _await_health(self) -> None:
        HealthcheckWaitStrategy().with_startup_timeout(60).wait_until_ready(self.container)

    @property
    def port(self) -> int:
        """The port on 127.0.0.1."""
        return self.container.get_exposed_port(PORT)

    def url(self, database: int = 0) -> str:
        return f"redis://127.0.0.1:{self.port}/{database}"

    def client(self, database: int = 0) -> redis.Redis:
        return redis.Redis.from_url(self.url(database), decode_responses=True)

    def run(self, script: str) -> tuple[int | None, str]:
        """Run a shell script in the container: exit status, and output without the final line break."""
        result = self.container.exec(["sh", "-c", script])
        return result.exit_code, result.output.decode().rstrip("\n")
