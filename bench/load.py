"""A load generator that costs next to nothing while it is measured: all requests are encoded before, all answers known.

Jobs are enqueued, claimed in the order of their ids and completed with token 1, so every answer can be written down to
the byte beforehand. A `Client` sends the one and compares with the other.

Who carries out the transitions:

    native    the verbs of the module
    scripted  the same by the scripts
    core      the plain commands that these transitions have as effects (as they stand in the append-only file), by a
              client that knows all ids and checks nothing: the floor
    multi     the same in MULTI and EXEC, since each transition is atomic
    ping      PING in place of each call: what a command costs that does nothing
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from emq_native import mint
from emq_native.executors import NATIVE, SCRIPTED, Executor
from emq_native.server import Server

if TYPE_CHECKING:
    from typing_extensions import Self

LEASE_MS = b"3600000"
DEADLINE = b"4000000000000"
PLACES = (b"pending", b"active", b"metrics:completed")


@dataclass(frozen=True)
class Exchange:
    """What is sent, and what must come back."""

    request: bytes
    reply: bytes


def encode(*words: bytes) -> bytes:
    """A command as it is sent."""
    return b"*%d\r\n" % len(words) + b"".join([b"$%d\r\n%s\r\n" % (len(word), word) for word in words])


def joined(exchanges: Iterable[Exchange]) -> Exchange:
    """One pipeline of several."""
    parts = list(exchanges)
    return Exchange(b"".join([each.request for each in parts]), b"".join([each.reply for each in parts]))


def queue_of(name: str) -> bytes:
    """Each contestant has a queue of its own; the names are equally long."""
    return b"emq:{%s}" % name[:1].encode()


def ids(count: int) -> list[bytes]:
    return [mint().encode() for _ in range(count)]


class Client:
    """One connection, without a protocol parser."""

    def __init__(self, server: Server) -> None:
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._space = memoryview(bytearray(1 << 22))

    def run(self, exchanges: Iterable[Exchange]) -> None:
        """One round trip for each. ConnectionError when an answer differs."""
        connection, space = self.socket, self._space
        for each in exchanges:
            connection.sendall(each.request)
            wanted, got = len(each.reply), 0
            while got < wanted:
                came = connection.recv_into(space[got:])
                if not came:
                    raise ConnectionError("the server closed the connection")
                got += came
                if space[0] == 0x2D:  # an error may be shorter than the answer that it replaces
                    break
            if space[:got] != each.reply:
                raise ConnectionError(f"the server answered {bytes(space[:200])!r}, not {each.reply[:200]!r}")

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Contestant(Protocol):
    """Who carries out the transitions. Each method is one call for so many jobs."""

    name: str
    queue: bytes

    def prepare(self, client: Client) -> None: ...
    def enqueue(self, jobs: Sequence[bytes]) -> Exchange: ...
    def claim(self, jobs: Sequence[bytes]) -> Exchange: ...
    def complete(self, jobs: Sequence[bytes]) -> Exchange: ...


class Verbs:
    """native, scripted: one verb a call, of several jobs the M verb."""

    def __init__(self, executor: Executor, payload: bytes) -> None:
        self.name, self.queue = executor.name, queue_of(executor.name)
        self._executor, self._payload = executor, payload
        self._bulk = b"$%d\r\n%s\r\n" % (len(payload), payload)

    def prepare(self, client: Client) -> None:
        """Tell the server the scripts."""
        if self._executor is SCRIPTED:
            for script in SCRIPTED.manifest():
                answer = b"$40\r\n%s\r\n" % script.sha.encode()
                client.run([Exchange(encode(b"SCRIPT", b"LOAD", script.source), answer)])

    def _call(self, verb: str, *words: bytes) -> bytes:
        return encode(*self._executor.frame(verb, (self.queue, *words)).argv)

    def enqueue(self, jobs: Sequence[bytes]) -> Exchange:
        if len(jobs) == 1:
            return Exchange(self._call("emq.enqueue", jobs[0], self._payload), b":1\r\n")
        members = [word for job in jobs for word in (job, self._payload)]
        return Exchange(self._call("emq.menqueue", *members), b"*%d\r\n" % len(jobs) + b":1\r\n" * len(jobs))

    def claim(self, jobs: Sequence[bytes]) -> Exchange:
        triples = [b"*3\r\n$14\r\n%s\r\n%s:1\r\n" % (job, self._bulk) for job in jobs]
        if len(jobs) == 1:
            return Exchange(self._call("emq.claim", LEASE_MS), triples[0])
        request = self._call("emq.mclaim", LEASE_MS, b"%d" % len(jobs))
        return Exchange(request, b"*%d\r\n" % len(jobs) + b"".join(triples))

    def complete(self, jobs: Sequence[bytes]) -> Exchange:
        if len(jobs) == 1:
            return Exchange(self._call("emq.complete", jobs[0], b"1"), b":1\r\n")
        members = [word for job in jobs for word in (job, b"1")]
        return Exchange(self._call("emq.mcomplete", *members), b"*%d\r\n" % len(jobs) + b":1\r\n" * len(jobs))


class Core:
    """core, multi: the effects of the verbs, in the order and number in which the module replicates them."""

    def __init__(self, payload: bytes, *, multi: bool = False) -> None:
        self.name = "multi" if multi else "core"
        self.queue = queue_of(self.name)
        self._pending, self._active, self._done = (self.queue + b":" + part for part in PLACES)
        self._payload, self._multi = payload, multi

    def prepare(self, client: Client) -> None:
        """The counter of completed jobs is there from now on, so each answer about it is the same."""
        client.run([Exchange(encode(b"HSET", self._done, b"count", b"0"), b":1\r\n")])

    def _row(self, job: bytes) -> bytes:
        return self.queue + b":job:" + job

    def _together(self, commands: Sequence[tuple[bytes, bytes]]) -> Exchange:
        sent = b"".join([command for command, _ in commands])
        answers = b"".join([answer for _, answer in commands])
        if not self._multi:
            return Exchange(sent, answers)
        head = b"+OK\r\n" + b"+QUEUED\r\n" * len(commands) + b"*%d\r\n" % len(commands)
        return Exchange(encode(b"MULTI") + sent + encode(b"EXEC"), head + answers)

    def enqueue(self, jobs: Sequence[bytes]) -> Exchange:
        scores = [word for job in jobs for word in (b"0", job)]
        fields = (b"payload", self._payload, b"state", b"pending", b"attempts", b"0")
        rows = [(encode(b"HSET", self._row(job), *fields), b":3\r\n") for job in jobs]
        return self._together([(encode(b"ZADD", self._pending, *scores), b":%d\r\n" % len(jobs)), *rows])

    def claim(self, jobs: Sequence[bytes]) -> Exchange:
        count = b":%d\r\n" % len(jobs)
        scores = [word for job in jobs for word in (DEADLINE, job)]
        rows = [(encode(b"HSET", self._row(job), b"attempts", b"1", b"state", b"active"), b":0\r\n") for job in jobs]
        places = [(encode(b"ZREM", self._pending, *jobs), count), (encode(b"ZADD", self._active, *scores), count)]
        return self._together([*places, *rows])

    def complete(self, jobs: Sequence[bytes]) -> Exchange:
        count = b":%d\r\n" % len(jobs)
        return self._together(
            [
                (encode(b"ZREM", self._active, *jobs), count),
                (encode(b"HSET", self._done, b"count", b"1"), b":0\r\n"),
                (encode(b"DEL", *map(self._row, jobs)), count),
            ]
        )


class Ping:
    """ping: one for each call."""

    name = "ping"
    queue = b""

    def prepare(self, client: Client) -> None:
        """Nothing."""

    def enqueue(self, jobs: Sequence[bytes]) -> Exchange:
        return Exchange(encode(b"PING"), b"+PONG\r\n")

    claim = complete = enqueue


def contestants(payload: bytes) -> dict[str, Contestant]:
    found: list[Contestant] = [
        Verbs(NATIVE, payload),
        Verbs(SCRIPTED, payload),
        Core(payload),
        Core(payload, multi=True),
        Ping(),
    ]
    return {each.name: each for each in found}


@dataclass(frozen=True)
class Way:
    """jobs: of one call. calls: of one round trip."""

    name: str
    jobs: int
    calls: int

    def exchanges(self, call: Callable[[Sequence[bytes]], Exchange], jobs: Sequence[bytes]) -> list[Exchange]:
        made = [call(jobs[at : at + self.jobs]) for at in range(0, len(jobs), self.jobs)]
        return [joined(made[at : at + self.calls]) for at in range(0, len(made), self.calls)]


ALONE = Way("one a trip", 1, 1)
PIPELINE = Way("pipelined", 1, 100)
BATCHES = (Way("batch of 10", 10, 1), Way("batch of 100", 100, 1))
WAYS = (ALONE, PIPELINE, *BATCHES)
FILLING = Way("filling", 200, 1)
