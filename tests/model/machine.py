"""Two servers and the model, taken through the same steps and held against each other after every one.

A step is a list of commands; a command is its words. A verb goes to both executors and to the model, anything else is a
plain command by somebody else. Steps are plain data, so whatever made them, they can be played again, whole or in part.

Clocks. The model's clock is made up: it begins in 2017 and leaps between commands. A score that a server took from its
own clock is checked against the time before and after the step, then set to the model's value by a plain ZADD. So both
servers and the model hold equal data, literally, and a run is the same run every time. For all clocks to agree on what
is due, a duration is either below LEAP (over at the next command) or at least FAR (not over before 2047).
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.model.data import Hash, List, Members, Value, Zset
from tests.model.model import Fields, Model, Refusal, num
from tests.model.words import VERBS

from emq_native.conformance import audit
from emq_native.conformance.wire import Error, Map, Reply, Wire, WireLost, Word, encode
from emq_native.executors import NATIVE, SCRIPTED, Executor
from emq_native.server import Server

Command = tuple[bytes, ...]
Step = list[Command]

BEGIN = 1_500_000_000_000
LEAP = 1_000_000
FAR = 1_000_000_000_000
SLACK = 2  # milliseconds by which the time that a server keeps for a command may lag behind

FENCE = b"{emq}:version"
QUEUES = (b"emq:{orders}", b"emq:{orders.eu}")
KINDS: Mapping[str, type] = {"zset": Zset, "hash": Hash, "list": List, "set": Members, "string": bytes}
MAPS = ("emq.peek", "emq.counts")

# One text for all data: JSON is read much faster than as many replies. Its characters stand for bytes.
DUMP = """#!lua flags=no-writes
local read = {
    string = function(key) return {redis.call('GET', key)} end,
    hash = function(key) return redis.call('HGETALL', key) end,
    list = function(key) return redis.call('LRANGE', key, 0, -1) end,
    set = function(key) return redis.call('SMEMBERS', key) end,
    zset = function(key) return redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') end,
}
local keys = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
    local kind = redis.call('TYPE', key).ok
    table.insert(keys, {key, kind, redis.call('PTTL', key), read[kind](key)})
end
return {redis.call('TIME'), cjson.encode(keys)}
"""


class Divergence(AssertionError):
    """Two of the three, or the auditor, do not agree, or a server is gone. It begins with who is to blame."""

    @property
    def blamed(self) -> str:
        return str(self).partition(":")[0]


def verb_of(command: Command) -> str | None:
    """The verb that a command calls, None for a plain one."""
    verb = command[0].decode("latin-1").lower()
    return verb if verb in VERBS else None


def show(command: Command) -> str:
    """A command as one would type it."""
    return " ".join(word.decode() if word and word.isalnum() else repr(word)[1:] for word in command)


@dataclass
class Seen:
    """What one side showed in a step: the time before, the replies, the time after, all data, what was published."""

    before: int
    replies: list[Reply]
    after: int
    keys: dict[bytes, Value]
    published: list[tuple[bytes, bytes]]


class _Line(Wire):
    """A connection that takes many commands at once."""

    def send_all(self, commands: Sequence[Sequence[Word]]) -> None:
        self._write(b"".join(map(encode, commands)))


class Side:
    """A server under one executor.

    module: the module of the native side, as for Server. scripts: sources to run in place of the shipped ones, by verb.
    """

    def __init__(
        self, executor: Executor, *, module: bool | str = True, scripts: Mapping[str, bytes] | None = None
    ) -> None:
        self.executor = executor
        self.server = Server(module=module if executor is NATIVE else False)
        self._scripts = scripts or {}
        self._shas: dict[str, bytes] = {}
        self._dump = b""
        self._wire: _Line | None = None
        self._pins: list[Command] = []

    @property
    def wire(self) -> _Line:
        assert self._wire is not None
        return self._wire

    def reset(self, protocol: int) -> None:
        """An empty server with its fence, and a new connection. A server that went down comes up again."""
        self.close()
        if not self.server.running:
            self.server.start()
        self._wire = _Line(self.server.url, protocol)
        self._insist("FLUSHALL")
        self._insist("SET", FENCE, self.executor.identity)
        self._dump = self._insist("SCRIPT", "LOAD", DUMP)
        if self.executor is SCRIPTED:
            for script in SCRIPTED.manifest():
                source = self._scripts.get(script.verb, script.source)
                self._shas[script.verb] = self._insist("SCRIPT", "LOAD", source)
        if protocol == 3:
            self.wire.send("SUBSCRIBE", *(queue + b":events" for queue in QUEUES))

    def close(self) -> None:
        if self._wire is not None:
            self._wire.close()
        self._pins = []

    def stop(self) -> None:
        self.close()
        self.server.stop()

    def send(self, step: Step) -> None:
        """Send a step, after what the step before left to set right, and ask for the time before it and all data."""
        self.wire.send_all([*self._pins, (b"TIME",), *map(self._frame, step), (b"EVALSHA_RO", self._dump, 0)])

    def receive(self, step: Step) -> Seen:
        """What the step that was sent has come to."""
        try:
            return self._receive(step)
        except WireLost as lost:
            log = "\n".join(self.server.log().splitlines()[-40:])
            raise Divergence(f"{self.executor.name}: {lost}\n{log}") from lost

    def pin(self, key: bytes, member: bytes, score: int) -> None:
        """Set a score before the next step."""
        self._pins.append((b"ZADD", key, b"%d" % score, member))

    def _insist(self, *words: Word) -> bytes:
        reply = self.wire.call(*words)
        if isinstance(reply, Error):
            raise Divergence(f"{self.executor.name}: {reply.text}")
        return reply if isinstance(reply, bytes) else b""

    def _frame(self, command: Command) -> Sequence[Word]:
        verb = verb_of(command)
        if verb is None:
            return command
        call, *rest = self.executor.frame(verb, command[1:]).argv
        return (call, self._shas[verb], *rest[1:]) if self.executor is SCRIPTED else (call, *rest)

    def _receive(self, step: Step) -> Seen:
        self.wire.pushes.clear()
        for _ in self._pins:
            self.wire.read()
        self._pins = []
        before = _milliseconds(self.wire.read())
        replies = [self.wire.read() for _ in step]
        dump = self.wire.read()
        if not isinstance(dump, list):
            raise Divergence(f"{self.executor.name}: the data cannot be read: {dump}")
        keys = {}
        for name, kind, ttl, value in json.loads(dump[1].decode("latin-1")):
            if ttl != -1:
                raise Divergence(f"{self.executor.name}: {name!r} has a TTL")
            keys[name.encode("latin-1")] = _value(KINDS[kind], [item.encode("latin-1") for item in value])
        if keys.pop(FENCE, None) != self.executor.identity.encode():
            raise Divergence(f"{self.executor.name}: the fence was changed")
        published = [(push[1], push[2]) for push in self.wire.pushes if push[0] == b"message"]
        return Seen(before, replies, _milliseconds(dump[0]), keys, published)


def _milliseconds(moment: Reply) -> int:
    seconds, microseconds = moment
    return int(seconds) * 1000 + int(microseconds) // 1000


def _value(kind: type, items: list[bytes]) -> Value:
    if kind is bytes:
        return items[0]
    if kind is Hash:
        return Hash(zip(items[::2], items[1::2], strict=True))
    if kind is Zset:
        return Zset((member, _score(score)) for member, score in zip(items[::2], items[1::2], strict=True))
    return kind(items)


def _score(text: bytes) -> int | float:
    return int(text) if text.isdigit() else float(text)


class Machine:
    """The two sides and the model under one roof."""

    def __init__(self, native: Side, scripted: Side, model: type[Model] = Model) -> None:
        self.sides = (native, scripted)
        self._make_model = model
        self.reset(3)

    def reset(self, protocol: int) -> None:
        """Begin anew with nothing in any of the three."""
        self.protocol = protocol
        for side in self.sides:
            side.reset(protocol)
        self.model = self._make_model()
        self.now = BEGIN
        self.damaged = False
        self._lowered: dict[bytes, set[bytes]] = {queue: set() for queue in QUEUES}

    def stop(self) -> None:
        for side in self.sides:
            side.stop()

    def step(self, step: Step) -> None:
        """Take all three through a step. Divergence when they are not equal after it."""
        for side in self.sides:
            side.send(step)
        expected: list[object] = []
        clocked: dict[tuple[bytes, bytes], int] = {}
        published: list[tuple[bytes, bytes]] = []
        for command in step:
            self.now += LEAP
            verb = verb_of(command)
            if verb is None:
                self.model.plain(command[0].decode(), *command[1:])
                expected.append(None)
            else:
                expected.append(self.model.call(verb, command[1:], self.now))
                published += self.model.published
                clocked |= dict.fromkeys(self.model.clocked, self.now)
        for side in self.sides:
            seen = side.receive(step)
            self._compare_replies(side, step, seen.replies, expected)
            self._settle_clocks(side, seen, clocked)
            self._compare_data(side, seen.keys)
            if self.protocol == 3 and seen.published != published:
                raise Divergence(f"{side.executor.name}: published {seen.published}, expected {published}")
        self._audit(step)

    def _compare_replies(self, side: Side, step: Step, replies: list[Reply], expected: list[object]) -> None:
        for command, reply, wanted in zip(step, replies, expected, strict=True):
            verb = verb_of(command)
            if verb is None:
                continue
            if (
                self.protocol == 3
                and verb in MAPS
                and side.executor is NATIVE
                and not isinstance(reply, Map | Error | None)
            ):
                raise Divergence(f"{side.executor.name}: {show(command)} answered {reply!r} and no map")
            found: object = Refusal(reply.text) if isinstance(reply, Error) else reply
            if isinstance(found, Map):
                found = [part for pair in found.pairs for part in pair]
            if isinstance(wanted, Fields) and isinstance(found, list):
                found = Fields(zip(found[::2], found[1::2], strict=True))
            if found != wanted or type(found) is not type(wanted):
                raise Divergence(f"{side.executor.name}: {show(command)}\n  answered {found!r}\n  expected {wanted!r}")

    def _settle_clocks(self, side: Side, seen: Seen, clocked: Mapping[tuple[bytes, bytes], int]) -> None:
        """Whatever score comes from the clock must lie between the times before and after; then it is the model's."""
        for (key, member), now in clocked.items():
            wanted, found = self.model.keys.get(key, {}), seen.keys.get(key, {})
            if isinstance(wanted, Zset) and isinstance(found, Zset) and member in wanted and member in found:
                start = found[member] - (wanted[member] - now)
                if seen.before - SLACK <= start <= seen.after:
                    found[member] = wanted[member]
                    side.pin(key, member, wanted[member])

    def _compare_data(self, side: Side, found: Mapping[bytes, Value]) -> None:
        wanted = self.model.keys
        different = [
            f"  {key!r}\n    found    {found.get(key)!r}\n    expected {wanted.get(key)!r}"
            for key in sorted({*found, *wanted})
            if found.get(key) != wanted.get(key) or type(found.get(key)) is not type(wanted.get(key))
        ]
        if different:
            raise Divergence("\n".join([f"{side.executor.name}: other data than expected", *different]))

    def _audit(self, step: Step) -> None:
        """The laws hold for all that verbs alone have made. One who damages the data says so in `damaged`."""
        if self.damaged:
            return
        for queue in QUEUES:
            prefix = queue + b":"
            keys = {key[len(prefix) :]: value for key, value in self.model.keys.items() if key.startswith(prefix)}
            self._lowered[queue] = {
                group
                for group, running in keys.get(b"gactive", {}).items()
                if num(running) > num(keys.get(b"glimit", {}).get(group)) > 0
                and (group in self._lowered[queue] or _lowers(step, queue, group))
            }
            names = {kind: name for name, kind in KINDS.items()}
            snapshot = {key: audit.Key(names[type(value)], _plainly(value), None) for key, value in keys.items()}
            lowered = {group.decode() for group in self._lowered[queue]}
            if findings := audit.examine(snapshot, lowered=lowered):
                raise Divergence("\n".join(["audit: the laws are broken", *(f"  {finding}" for finding in findings)]))


def _lowers(step: Step, queue: bytes, group: bytes) -> bool:
    return any(verb_of(command) == "emq.glimit" and command[1:3] == (queue, group) for command in step)


def _plainly(value: Value) -> audit.Value:
    if isinstance(value, Zset):
        return {member: float(score) for member, score in value.items()}
    return frozenset(value) if isinstance(value, Members) else value


def play(machine: Machine, steps: Sequence[Step], protocol: int, *, damaged: bool) -> tuple[int, Divergence] | None:
    """Play steps from the beginning: how many led to a failure, and to which, or None."""
    machine.reset(protocol)
    machine.damaged = damaged
    for number, step in enumerate(steps, 1):
        try:
            machine.step(step)
        except Divergence as divergence:
            return number, divergence
    return None


def shrink(
    machine: Machine, steps: list[Step], protocol: int, found: Divergence, *, seconds: float
) -> tuple[list[Step], Divergence]:
    """Fewer steps that lead to a failure of the same kind, by leaving out ever smaller parts while there is time.

    Without the steps before them, later ones may do damage, which is of no interest unless the audit is.
    """
    deadline = time.monotonic() + seconds
    part = max(1, len(steps) // 2)
    while part and time.monotonic() < deadline:
        at = 0
        while at < len(steps) and time.monotonic() < deadline:
            fewer = steps[:at] + steps[at + part :]
            failed = play(machine, fewer, protocol, damaged=found.blamed != "audit")
            if failed and failed[1].blamed == found.blamed:
                steps, found = fewer[: failed[0]], failed[1]
            else:
                at += part
        part //= 2
    return steps, found
