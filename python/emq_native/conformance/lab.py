# SPDX-License-Identifier: BSD-3-Clause
"""The laboratory in which one conformance case runs.

A Lab has a queue of its own on one node, the executor under test on one protocol version, a second connection for plain
commands, and the means to prepare and to judge the data: `seed` writes jobs in any place by plain commands, `unchanged`
compares everything before and after, `audit` checks the rules of `audit.py`.

Nothing sleeps for a fixed time: what takes time is waited for, and leases lapse by the clock of the server.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..executors import Executor
from ..ids import mint
from ..verbs import VERBS
from . import audit as auditor
from .audit import Finding, Snapshot
from .case import Mismatch, NotServed, expect, expect_that, full_name
from .host import OwnServer
from .wire import Error, Map, Reply, Simple, Wire, Word, word

if TYPE_CHECKING:
    from typing_extensions import Self

LEASE = 60_000
M = 9_007_199_254_740_991

_STAMP = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
return redis.call('ZADD', KEYS[1], string.format('%.0f', now + ARGV[1]), ARGV[2])
"""

WRONGTYPE = Error("WRONGTYPE Operation against a key holding the wrong kind of value")


@dataclass
class Lab:
    """One queue, one executor, one protocol version.

    own_server: the server is ours to restart and to inspect as a whole; None on a node of somebody else.
    """

    url: str
    executor: Executor
    protocol: int = 2
    own_server: OwnServer | None = None
    prefix: str = "conformance"
    name: str = field(init=False)
    held_with: dict[str, int] = field(init=False)
    lowered: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self.wire = Wire(self.url, self.protocol)
        self.control = Wire(self.url, 2)
        try:
            self.cluster = self._in_cluster_mode()
            self._served = self._capabilities()
        except BaseException:
            self.wire.close()
            self.control.close()
            raise
        self._queues: list[str] = []
        self._wires: list[Wire] = []
        self._begin()

    def _begin(self) -> None:
        self.name = self.new_queue()
        self.a, self.b, self.c, self.d = self.ids(4)
        self.held_with = {}
        self.lowered = set()

    def anew(self, *, check: bool = True) -> None:
        """Go on with an empty queue and fresh ids; the old queue is checked (unless it was damaged) and deleted."""
        if check:
            self.check()
        self.wipe(self.name)
        self._begin()

    # -- names ---------------------------------------------------------------------------------------------------------

    @property
    def q(self) -> str:
        """The queue key."""
        return f"emq:{{{self.name}}}"

    def new_queue(self) -> str:
        """A queue name that nobody uses, in a slot of the connected node; its fence is set where it has its own."""
        while True:
            name = f"{self.prefix}-{random.getrandbits(48):012x}"
            reply = self.control.call("EXISTS", f"emq:{{{name}}}:pending")
            if not isinstance(reply, Error):
                break
            if reply.code != "MOVED":
                raise AssertionError(f"EXISTS answered {reply.text}")
        self._queues.append(name)
        if self.cluster:
            self.plain("SET", f"emq:{{{name}}}:version", self.executor.identity)
        return name

    @property
    def fence(self) -> str:
        """The key of the fence that guards this queue."""
        return self.key("version") if self.cluster else "{emq}:version"

    def key(self, suffix: str, queue: str | None = None) -> str:
        """A key of the queue: `key("pending")`."""
        return f"emq:{{{queue or self.name}}}:{suffix}"

    def row(self, job: str, subkey: str = "") -> str:
        """The key of a row, or of one of its subkeys."""
        return self.key(f"job:{job}:{subkey}" if subkey else f"job:{job}")

    def lane(self, group: str) -> str:
        """The key of a lane."""
        return self.key(f"g:{group}:pending")

    def ids(self, count: int) -> list[str]:
        """Fresh job ids in the order of their minting."""
        return [mint() for _ in range(count)]

    # -- sending -------------------------------------------------------------------------------------------------------

    def serves(self, verb: str) -> bool:
        """Whether the executor under test has a verb."""
        return self._served(full_name(verb))

    def words(self, verb: str, *words: Word, queue: str | None = None) -> list[bytes]:
        """The words of a call after the verb: the queue key, then the given ones."""
        name = full_name(verb)
        if not self.serves(name):
            raise NotServed(name)
        head = [] if name == "tra.capabilities" else [word(self.q if queue is None else queue)]
        return head + [word(item) for item in words]

    def command(self, verb: str, *words: Word, queue: str | None = None, inline: bool = False) -> list[bytes]:
        """The command line of a call as it goes over the wire."""
        frame = self.executor.frame(full_name(verb), self.words(verb, *words, queue=queue), inline=inline)
        return list(frame.argv)

    def send(self, verb: str, *words: Word, queue: str | None = None, wire: Wire | None = None) -> Reply:
        """Run one verb and return its reply as it came; a script that the server lost is loaded again."""
        return self.send_raw(verb, self.words(verb, *words, queue=queue), wire=wire)

    def send_raw(self, verb: str, words: Sequence[Word], *, wire: Wire | None = None) -> Reply:
        """As `send`, with every word given, the queue key too; the words may be malformed."""
        name = full_name(verb)
        if not self.serves(name):
            raise NotServed(name)
        connection = wire or self.wire
        frame = self.executor.frame(name, [word(item) for item in words])
        reply = connection.call(*frame.argv)
        if isinstance(reply, Error) and reply.code == "NOSCRIPT" and frame.script is not None:
            expect(
                connection.call("SCRIPT", "LOAD", frame.script.source),
                frame.script.sha.encode(),
                "answer of SCRIPT LOAD",
            )
            reply = connection.call(*frame.argv)
        return reply

    def load(self, verb: str) -> None:
        """Make sure that the script of a verb is known to the server, so that its SHA can be sent in a pipeline."""
        frame = self.executor.frame(full_name(verb), [word(self.q)])
        if frame.script is not None:
            self.control.call("SCRIPT", "LOAD", frame.script.source)

    def fields(self, reply: Reply) -> dict[bytes, Reply]:
        """A map reply as a dict, after a check of its form.

        A map is a map only where the module answers on RESP3; everywhere else it is a flat array.
        """
        if self.executor.name == "native" and self.protocol == 3:
            if not isinstance(reply, Map):
                raise Mismatch("form of a map reply", "a map", reply)
            pairs = list(reply.pairs)
        else:
            if not isinstance(reply, list) or len(reply) % 2:
                raise Mismatch("form of a map reply", "a flat array of pairs", reply)
            pairs = list(zip(reply[::2], reply[1::2], strict=False))
        names = [name for name, _ in pairs if isinstance(name, bytes)]
        expect_that(len(names) == len(pairs) == len(set(names)), "names of a map are distinct bulk strings", reply)
        return {name: value for name, value in pairs if isinstance(name, bytes)}

    def plain(self, *words: Word) -> Reply:
        """Run one plain command on the second connection, always on RESP2. An error reply fails the case."""
        reply = self.control.call(*words)
        if isinstance(reply, Error):
            raise AssertionError(f"{b' '.join(word(item) for item in words[:3])!r} answered {reply.text}")
        return reply

    def connect(self, protocol: int | None = None, url: str | None = None) -> Wire:
        """A further connection that ends with the lab."""
        wire = Wire(url or self.url, protocol or self.protocol)
        self._wires.append(wire)
        return wire

    def reconnect(self) -> None:
        """Open the lab's connections again after the server was restarted."""
        self.wire.close()
        self.control.close()
        self.wire, self.control = Wire(self.url, self.protocol), Wire(self.url, 2)

    def connections(self) -> frozenset[str]:
        """The ids of the lab's own connections, as CLIENT LIST names them."""
        return frozenset(str(wire.call("CLIENT", "ID")) for wire in (self.wire, self.control))

    # -- verbs in their contexts ---------------------------------------------------------------------------------------

    def in_pipeline(self, verb: str, *words: Word) -> Reply:
        """The reply of a call that travels between two others in one write."""
        self.load(verb)
        replies = self.wire.pipeline([["ECHO", "before"], self.command(verb, *words), ["ECHO", "after"]])
        expect(replies[0], b"before", "reply before the verb")
        expect(replies[2], b"after", "reply after the verb")
        return replies[1]

    def at_once(self, *commands: Sequence[Word]) -> list[Reply]:
        """The replies of one MULTI ... EXEC, in which the clock of the server stands still."""
        expect(self.wire.call("MULTI"), Simple("OK"), "reply of MULTI")
        for command in commands:
            expect(self.wire.call(*command), Simple("QUEUED"), f"{word(command[0]).decode()} inside MULTI")
        replies = self.wire.call("EXEC")
        if not isinstance(replies, list) or len(replies) != len(commands):
            raise Mismatch("reply of EXEC", f"an array of {len(commands)}", replies)
        return replies

    def in_multi(self, verb: str, *words: Word) -> Reply:
        """The reply of a call inside MULTI ... EXEC; scripts are sent with their source."""
        return self.at_once(self.command(verb, *words, inline=True))[0]

    def stamp(self, place: str, member: str, after: int = 0) -> list[Word]:
        """The command that lists a member with the clock of the server as its score, or so many milliseconds later."""
        return ["EVAL", _STAMP, 1, self.key(place), after, member]

    def in_lua(self, verb: str, *words: Word) -> Reply:
        """The reply of a native command called from a script, passed on by the script."""
        command = self.command(verb, *words)
        return self.wire.call("EVAL", "return redis.pcall(unpack(ARGV))", 1, self.q, *command)

    # -- time ----------------------------------------------------------------------------------------------------------

    def now(self) -> int:
        """The clock of the server in ms."""
        return milliseconds(self.control.call("TIME"))

    def until(self, condition: Callable[[], object], what: str, timeout: float = 10.0) -> None:
        """Wait until a condition holds; Mismatch when it does not in time (seconds)."""
        deadline = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > deadline:
                raise Mismatch(what, f"within {timeout} s", "not yet")
            time.sleep(0.002)

    def reach(self, instant: float) -> None:
        """Wait until the clock of the server has passed an instant, in ms."""
        self.until(lambda: self.now() > instant, f"the clock passes {instant}", timeout=30)

    def lapse(self, *jobs: str) -> None:
        """Wait until the leases of active jobs are over."""
        self.reach(max(self.scores("active")[job] for job in jobs))

    # -- looking -------------------------------------------------------------------------------------------------------

    def data(self, queue: str | None = None) -> dict[bytes, auditor.Key]:
        """Every key of the queue by its suffix."""
        return auditor.snapshot(self.control, self.key("", queue)[:-1].encode())

    def scores(self, place: str) -> dict[str, float]:
        """Members and scores of a sorted set of the queue, lowest first."""
        value = auditor.read_key(self.control, self.key(place).encode()).value
        return {m.decode(): score for m, score in value.items()} if isinstance(value, dict) else {}  # type: ignore[misc]

    def record(self, suffix: str) -> dict[str, bytes]:
        """Fields of a hash of the queue."""
        value = auditor.read_key(self.control, self.key(suffix).encode()).value
        return {name.decode(): item for name, item in value.items()} if isinstance(value, dict) else {}  # type: ignore[misc]

    def items(self, suffix: str) -> list[bytes]:
        """Items of a list of the queue."""
        value = auditor.read_key(self.control, self.key(suffix).encode()).value
        return value if isinstance(value, list) else []

    def members(self, suffix: str) -> frozenset[bytes]:
        """Members of a set of the queue."""
        value = auditor.read_key(self.control, self.key(suffix).encode()).value
        return value if isinstance(value, frozenset) else frozenset()

    def fields_of(self, job: str) -> dict[str, bytes]:
        """The row of a job, empty when there is none."""
        return self.record(f"job:{job}")

    def where(self, job: str) -> list[str]:
        """The places that list a job, by the names of their keys."""
        places = [*auditor.PLACES, *(f"g:{group.decode()}:pending" for group in self._groups())]
        return [place for place in places if self.plain("ZSCORE", self.key(place), job) is not None]

    def _groups(self) -> list[bytes]:
        prefix = self.key("g:").encode()
        return [name[len(prefix) : -8] for name in sorted(auditor.keys(self.control, prefix + b"*:pending"))]

    def exists(self, suffix: str) -> bool:
        """Whether a key of the queue is there."""
        return self.plain("EXISTS", self.key(suffix)) == 1

    def settled_keys(self, job: str) -> list[str]:
        """The names of all keys that belong to one job."""
        return sorted(name.decode() for name in auditor.keys(self.control, self.row(job).encode() + b"*"))

    # -- judging -------------------------------------------------------------------------------------------------------

    def audit(self, queue: str | None = None) -> list[Finding]:
        """Every rule of the queue that does not hold now."""
        name = queue or self.name
        counts = None
        if self.serves("counts"):
            reply = self.send("counts", queue=f"emq:{{{name}}}")
            if not isinstance(reply, Error):
                counts = auditor.counts_of(reply)
        found = self.data(name)
        held = {job: total for job, total in self.held_with.items() if f"job:{job}".encode() in found}
        return auditor.examine(found, counts=counts, held_with=held, lowered=self.lowered)

    def check(self) -> None:
        """Demand that every rule holds on every queue of the lab."""
        findings = [str(finding) for queue in self._queues for finding in self.audit(queue)]
        if findings:
            raise Mismatch("audit of the queue", [], findings)

    @contextmanager
    def unchanged(self, what: str = "the call") -> Iterator[None]:
        """Demand that nothing changes inside: no key of the lab's queues; on an own server no key of the whole server,
        and no byte to replicas and the append-only file."""
        before = self._queues_data()
        digest, offset = self._digest(), self.offset()
        yield
        moved = (self._digest(), self.offset()) != (digest, offset)
        if moved or self.own_server is None:
            after = self._queues_data()
            lines = [line for queue, old in before.items() for line in auditor.differences(old, after[queue])]
            if lines:
                raise Mismatch(f"{what} must leave everything unchanged", [], lines)
        expect(self._digest(), digest, f"DEBUG DIGEST after {what}")
        expect(self.offset(), offset, f"replication offset after {what}")

    @contextmanager
    def silent(self, what: str = "the call") -> Iterator[None]:
        """Demand that nothing is replicated inside; checked on an own server only."""
        before = self.offset()
        yield
        expect(self.offset(), before, f"replication offset after {what}")

    def refused(self, text: str | Error, verb: str, *words: Word, queue: str | None = None) -> None:
        """Demand that a call is refused with exactly this error and changes nothing."""
        line = f"{verb} {b' '.join(word(item)[:40] for item in words).decode('utf-8', 'replace')}"
        expected = text if isinstance(text, Error) else Error(text)
        with self.unchanged(line):
            expect(self.send(verb, *words, queue=queue), expected, f"reply of {line}")

    def offset(self) -> int | None:
        """The replication offset of an own server, after proof that it counts; None elsewhere."""
        if self.own_server is None:
            return None
        if not self.own_server.offset_counts:
            self._prove_offset()
            self.own_server.offset_counts = True
        return self._offset()

    def _offset(self) -> int:
        return int(self.info("replication")["master_repl_offset"])

    def _prove_offset(self) -> None:
        with self.fence_as(self.executor.identity):
            scratch = self.new_queue()
            before = self._offset()
            expect(self.send("enqueue", mint(), "x", queue=f"emq:{{{scratch}}}"), 1, "ENQUEUE into an empty queue")
            expect_that(
                self._offset() > before, "a growing verb moves the replication offset; is appendonly on?", before
            )
            self.wipe(scratch)

    @contextmanager
    def fence_as(self, value: Word | None) -> Iterator[None]:
        """The fence with another value (None: absent) as long as the block runs. For servers of our own."""
        old = auditor.read_key(self.control, self.fence.encode())
        self.plain("DEL", self.fence)
        if value is not None:
            self.plain("SET", self.fence, value)
        try:
            yield
        finally:
            self.plain("DEL", self.fence)
            if isinstance(old.value, bytes) and old.type == "string":
                self.plain("SET", self.fence, old.value)

    @contextmanager
    def full_memory(self) -> Iterator[None]:
        """The server has no memory left as long as the block runs. For servers of our own."""
        self.plain("CONFIG", "SET", "maxmemory", 1)
        try:
            yield
        finally:
            self.plain("CONFIG", "SET", "maxmemory", 0)

    def info(self, section: str) -> dict[str, str]:
        """One section of INFO as a dict."""
        text = self.plain("INFO", section)
        assert isinstance(text, bytes)
        return dict(line.split(":", 1) for line in text.decode().splitlines() if ":" in line)

    def _queues_data(self) -> dict[str, Snapshot]:
        return {queue: self.data(queue) for queue in self._queues}

    def _digest(self) -> str | None:
        """DEBUG DIGEST of an own server, all its databases; None elsewhere."""
        if self.own_server is None:
            return None
        return str(getattr(self.plain("DEBUG", "DIGEST"), "text", ""))

    # -- preparing -----------------------------------------------------------------------------------------------------

    def seed(
        self,
        job: str,
        place: str = "pending",
        *,
        attempts: int | str | None = None,
        payload: Word = "payload",
        group: str | None = None,
        score: int | None = None,
        children: int = 1,
        fields: Mapping[str, Word] | None = None,
        queue: str | None = None,
    ) -> str:
        """Write one job into a place, with everything that the contract keeps beside it, by plain commands.

        place: `pending`, `active`, `schedule`, `dead` or `held`; a pending job with a group goes into its lane.
        score: deadline of an active job (default: a lease from now), due time of a scheduled one (default: now).
        children: what a held parent waits for. Returns the id.
        """

        def key(suffix: str) -> str:
            return self.key(suffix, queue)

        states = {home: state for state, home in auditor.STATES.items()}
        spent = (1 if place == "active" else 0) if attempts is None else attempts
        row: list[Word] = ["state", states[place], "attempts", spent, "payload", payload]
        if group is not None:
            row += ["group", group]
        for name, value in (fields or {}).items():
            row += [name, value]
        self.plain("HSET", key(f"job:{job}"), *row)
        if place == "active":
            self.plain("ZADD", key("active"), self.now() + LEASE if score is None else score, job)
        elif place == "schedule":
            self.plain("ZADD", key("schedule"), self.now() if score is None else score, job)
        elif place == "pending" and group is not None:
            self.plain("ZADD", key(f"g:{group}:pending"), 0, job)
        else:
            self.plain("ZADD", key(place), 0, job)
        if place == "held":
            self.plain("SET", key(f"job:{job}:dependencies"), children)
            self.held_with[job] = children
        if group is not None:
            if place == "active":
                self.plain("HINCRBY", key("gactive"), group, 1)
            self.offer(group, queue)
        return job

    def offer(self, group: str, queue: str | None = None) -> None:
        """Bring `lanes` and `ring` in step with the lane of a group, after plain writes to it."""

        def key(suffix: str) -> str:
            return self.key(suffix, queue)

        backlog = self.plain("ZCARD", key(f"g:{group}:pending"))
        self.plain("SADD" if backlog else "SREM", key("lanes"), group)
        ceiling, running = (
            auditor.number(_bulk(self.plain("HGET", key(name), group))) for name in ("glimit", "gactive")
        )
        parked = self.plain("SISMEMBER", key("paused"), group)
        serviceable = backlog and not parked and (not ceiling or running < ceiling)
        if not serviceable:
            self.plain("LREM", key("ring"), 0, group)
        elif self.plain("LPOS", key("ring"), group) is None:
            self.plain("RPUSH", key("ring"), group)
            self.plain("LPUSH", key("wake"), "1")
            self.plain("LTRIM", key("wake"), 0, auditor.WAKE - 1)

    def park(self, group: str) -> None:
        """Park a group by plain commands."""
        self.plain("SADD", self.key("paused"), group)
        self.offer(group)

    def limit(self, group: str, ceiling: int) -> None:
        """Give a group a ceiling by plain commands."""
        self.plain("HSET", self.key("glimit"), group, ceiling)
        self.offer(group)

    def pause(self) -> None:
        """Pause the queue by a plain command."""
        self.plain("HSET", self.key("meta"), "paused", "1")

    def resume(self) -> None:
        """End a pause by a plain command."""
        self.plain("HDEL", self.key("meta"), "paused")

    def forget(self, job: str) -> None:
        """Delete the row of a job as a foreign client might, so that its place keeps a stale entry."""
        self.plain("DEL", self.row(job))

    @contextmanager
    def wrong_kind(self, suffix: str) -> Iterator[None]:
        """Put a key of another kind in the place of a key of the queue, and the old one back afterwards."""
        name = self.key(suffix)
        aside = self.key("aside")
        was_there = self.exists(suffix)
        listed = auditor._expected_type(suffix.encode()) == "string"
        if was_there:
            self.plain("RENAME", name, aside)
        self.plain(*(("RPUSH", name, "foreign") if listed else ("SET", name, "foreign")))
        try:
            yield
        finally:
            self.plain("DEL", name)
            if was_there:
                self.plain("RENAME", aside, name)

    # -- ending --------------------------------------------------------------------------------------------------------

    def wipe(self, queue: str | None = None) -> None:
        """Delete every key of a queue (all queues of the lab when none is named)."""
        for name in [queue] if queue else list(self._queues):
            found = sorted(auditor.keys(self.control, self.key("*", name).encode()))
            for start in range(0, len(found), 500):
                self.plain("DEL", *found[start : start + 500])
            if queue:
                self._queues.remove(name)

    def close(self) -> None:
        """Delete what the lab wrote and end its connections."""
        try:
            self.wipe()
        finally:
            for wire in (self.wire, self.control, *self._wires):
                wire.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- the node ------------------------------------------------------------------------------------------------------

    def _in_cluster_mode(self) -> bool:
        return self.info("cluster").get("cluster_enabled") == "1"

    def _capabilities(self) -> Callable[[str], bool]:
        if self.executor.name != "native":
            return lambda verb: verb in VERBS and VERBS[verb].scripted and self.executor.serves(verb)
        reply = self.control.call("TRA.CAPABILITIES")
        if not isinstance(reply, list):
            found = reply.text if isinstance(reply, Error) else repr(reply)
            raise ValueError(f"the module is not loaded on this node, or hidden from this user: {found}")
        return frozenset(entry.decode().partition("/")[0] for entry in reply if isinstance(entry, bytes)).__contains__


def milliseconds(reply: Reply) -> int:
    """A reply of TIME in ms."""
    assert isinstance(reply, list)
    seconds, microseconds = (int(_bulk(part) or 0) for part in reply)
    return seconds * 1000 + microseconds // 1000


def _bulk(reply: Reply) -> bytes | None:
    return reply if isinstance(reply, bytes) else None
