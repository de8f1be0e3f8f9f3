# SPDX-License-Identifier: BSD-3-Clause
"""A server that is ours: what a case may do to it that it must never do to a node of somebody else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from ..server import Server

CONFIG: Mapping[str, str | int] = {
    "appendonly": "yes",
    "appendfsync": "no",
    "auto-aof-rewrite-percentage": 0,
    "enable-debug-command": "yes",
    "repl-ping-replica-period": 3600,
    "repl-diskless-sync-delay": 0,
    "hz": 10,
}
"""What a conformance server runs with: an append-only file, so that the replication offset counts every effect; DEBUG,
for DEBUG DIGEST; and no ping to replicas, which would move the offset."""


@dataclass
class OwnServer:
    """The server under test, started by us with CONFIG, and servers beside it.

    offset_counts is set once it was shown that a growing verb moves the replication offset.
    """

    server: Server
    native: bool
    offset_counts: bool = False

    @contextmanager
    def another(
        self, *, module: bool | None = None, config: Mapping[str, str | int] | None = None, replica: bool = False
    ) -> Iterator[Server]:
        """A further server of the same binary that ends with the block.

        module: whether it loads the module (default: as the server under test). replica: it follows that server.
        """
        with Server(
            binary=self.server.binary,
            module=self.native if module is None else module,
            config={**CONFIG, **(config or {})},
            replica_of=self.server if replica else None,
        ) as other:
            yield other
