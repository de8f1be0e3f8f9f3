"""Servers that form a cluster, and the steps by which an operator changes one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

import redis

from emq_native.conformance.host import CONFIG
from emq_native.conformance.wire import Error, Reply, Simple, Wire, Word
from emq_native.executors import NATIVE, Executor
from emq_native.keys import slot
from emq_native.server import Server, form_cluster

LOG_LINES = 40
SETTINGS = {**CONFIG, "cluster-enabled": "yes", "cluster-node-timeout": 5000}


@dataclass
class Cluster:
    """Primaries that share the slots, and replicas of the first of them. Wires are plain connections to one node."""

    executor: Executor
    nodes: list[Server]
    replicas: list[Server] = field(default_factory=list)
    _stack: ExitStack = field(default_factory=ExitStack)

    @classmethod
    def start(cls, executor: Executor, *, primaries: int = 3, replicas: int = 0) -> Cluster:
        with ExitStack() as stack:
            servers = [
                stack.enter_context(Server(module=executor is NATIVE, config=SETTINGS))
                for _ in range(primaries + replicas)
            ]
            form_cluster(servers[:primaries])
            made = cls(executor, servers[:primaries], servers[primaries:], stack.pop_all())
        for replica in made.replicas:
            made._follow(replica)
        return made

    def _follow(self, replica: Server) -> None:
        leader, name = self.nodes[0], self.id_of(replica)
        with self.wire(replica) as wire:
            done(wire.call("CLUSTER", "MEET", "127.0.0.1", leader.port, leader._bus_port))
            until(lambda: self.id_of(leader) in _known(wire), "the replica knows its primary")
            done(wire.call("CLUSTER", "REPLICATE", self.id_of(leader)))
            until(lambda: info(wire, "replication").get("master_link_status") == "up", "the replica follows")
        # Who does not know yet whose replica it is has no vote for it.
        wanted = b"slave " + self.id_of(leader)
        for node in self.nodes:
            until(lambda node=node: wanted in self._entry(node, name), "the primaries know the replica")  # type: ignore[misc]

    def _entry(self, node: Server, name: bytes) -> bytes:
        """What a node knows of another."""
        with self.wire(node) as wire:
            return next((line for line in _known(wire).splitlines() if line.startswith(name)), b"")

    @property
    def url(self) -> str:
        """The URL of the first node."""
        return self.nodes[0].url

    @property
    def running(self) -> bool:
        return all(node.running for node in (*self.nodes, *self.replicas))

    def stop(self) -> None:
        self._stack.close()

    def logs(self) -> Iterator[tuple[str, str]]:
        """The last lines of the log of every node."""
        for node in (*self.nodes, *self.replicas):
            yield f"log of {node!r}", "\n".join(node.log().splitlines()[-LOG_LINES:])

    def wire(self, node: Server, protocol: int = 2) -> Wire:
        return Wire(node.url, protocol)

    def client(self, node: Server | None = None) -> redis.RedisCluster:
        """A cluster client that knows of one node to begin with, the first unless another is given."""
        return redis.RedisCluster(host="127.0.0.1", port=(node or self.nodes[0]).port)

    def keys(self) -> set[bytes]:
        """The names of all keys on all primaries."""
        found: set[bytes] = set()
        for node in self.nodes:
            with self.wire(node) as wire:
                names = wire.call("KEYS", "*")
                assert isinstance(names, list)
                found |= {name for name in names if isinstance(name, bytes)}
        return found

    def flush(self) -> None:
        for node in self.nodes:
            with self.wire(node) as wire:
                done(wire.call("FLUSHALL"))

    def id_of(self, node: Server) -> bytes:
        """The name of a node in its cluster."""
        with self.wire(node) as wire:
            reply = wire.call("CLUSTER", "MYID")
            assert isinstance(reply, bytes)
            return reply

    def name_on(self, node: Server, prefix: str = "queue") -> str:
        """The name of a queue whose slot a node serves."""
        with self.wire(node) as wire:
            return next(
                name
                for name in map(f"{prefix}-{{}}".format, range(1000))
                if not isinstance(wire.call("EXISTS", queue_key(name)), Error)
            )

    def claim(self, name: str, node: Server | None = None) -> None:
        """Set the fence of a queue to the identity of the executor, as its operator does."""
        with self.client(node) as client:
            client.set(f"{queue_key(name)}:version", self.executor.identity)

    def assign(self, number: int, node: Server) -> None:
        """Tell all primaries that a slot is served by a node from now on, the node itself first."""
        for each in sorted(self.nodes, key=lambda other: other is not node):
            with self.wire(each) as wire:
                done(wire.call("CLUSTER", "SETSLOT", number, "NODE", self.id_of(node)))

    def open_move(self, number: int, source: Server, target: Server) -> None:
        """Begin to move a slot key by key."""
        with self.wire(target) as wire:
            done(wire.call("CLUSTER", "SETSLOT", number, "IMPORTING", self.id_of(source)))
        with self.wire(source) as wire:
            done(wire.call("CLUSTER", "SETSLOT", number, "MIGRATING", self.id_of(target)))

    def move_keys(self, number: int, source: Server, target: Server, *, at_once: int = 100) -> Iterator[int]:
        """Move the keys of a slot, a few at a time; after each time, how many are left at the source."""
        with self.wire(source) as wire:
            while names := wire.call("CLUSTER", "GETKEYSINSLOT", number, at_once):
                assert isinstance(names, list)
                keys: list[Word] = [name for name in names if isinstance(name, bytes)]
                done(wire.call("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys))
                left = wire.call("CLUSTER", "COUNTKEYSINSLOT", number)
                assert isinstance(left, int)
                yield left


def queue_key(name: str) -> str:
    return f"emq:{{{name}}}"


def slot_of(name: str) -> int:
    """The slot of a queue."""
    return slot(queue_key(name))


def done(reply: Reply) -> None:
    """Demand that a command of an operator was carried out."""
    assert isinstance(reply, Simple), reply


def _known(wire: Wire) -> bytes:
    reply = wire.call("CLUSTER", "NODES")
    assert isinstance(reply, bytes)
    return reply


def info(wire: Wire, section: str) -> dict[str, str]:
    """One section of INFO."""
    text = wire.call("INFO", section)
    assert isinstance(text, bytes)
    return dict(line.split(":", 1) for line in text.decode().splitlines() if ":" in line)


def until(condition: Callable[[], object], what: str, seconds: float = 30.0) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(0.01)
