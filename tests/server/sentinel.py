"""A Sentinel that watches one server under the name `main`."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import redis

from emq_native.server import Server, _free_port

if TYPE_CHECKING:
    from typing_extensions import Self


class Sentinel:
    """A process of its own for as long as the block runs, at `port` of 127.0.0.1."""

    def __init__(self, master: Server, folder: Path) -> None:
        self.port = _free_port()
        self._binary = master.binary
        self._config = folder / "sentinel.conf"
        self._config.write_text(
            f"port {self.port}\nbind 127.0.0.1\ndir {folder}\nsentinel monitor main 127.0.0.1 {master.port} 1\n"
        )

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [self._binary, str(self._config), "--sentinel"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 20
        with redis.Redis(port=self.port) as client:
            while True:
                try:
                    client.ping()
                    return self
                except redis.ConnectionError:
                    if time.monotonic() > deadline:
                        self._process.kill()
                        raise
                    time.sleep(0.05)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
