"""The contract as a program: two queues or more, held in dictionaries, answering every verb.

Written from the contract alone and importing nothing of the product, so that what it answers is a second opinion. It
reads like the pseudo-code of section 8 and takes no short cut: a helper here has the name and the steps that it has
there. Time is an argument. What is answered:

    integer   int        text    bytes        array   list        null   None
    map       list of its names and values in turn, Fields when their order is not promised
    refusal   Refusal

All verbs that touch data are here, but those that make and carry flows and NEXT. Parents are told of the ends of their
children.

A refusal is raised before the first write, or the model itself is wrong (AssertionError).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from inspect import signature

from tests.model.data import Hash, List, Members, Plain, Value, Zset
from tests.model.words import VERBS, M, Refused, Words, id_error, read

DROP, ROUND, SCAN, UP, WAKE, LANES = 1_000, 1_000, 10_000, 8, 64, 10_000

WRONGTYPE = "WRONGTYPE Operation against a key holding the wrong kind of value"
NOT_ACTIVE = "EMQSTATE job is not active"

PLACES = (b"pending", b"active", b"schedule", b"dead", b"held")
SUBKEYS = (b":logs", b":lock", b":dependencies", b":processed", b":failed", b":unsuccessful")
HOMES = {
    b"pending": b"pending",
    b"active": b"active",
    b"scheduled": b"schedule",
    b"dead": b"dead",
    b"awaiting_children": b"held",
}
KINDS: dict[bytes, type] = {
    **dict.fromkeys((*PLACES, b"repeat"), Zset),
    **dict.fromkeys((b"ring", b"wake", b"flow:outbox", b"flow:poison"), List),
    **dict.fromkeys((b"lanes", b"paused"), Members),
    **dict.fromkeys((b"glimit", b"gweight", b"gactive", b"meta", b"metrics:completed", b"metrics:failed"), Hash),
}
_DECIMAL = re.compile(rb"0|[1-9][0-9]*")


class Fields(dict):
    """A map whose order is not promised."""


@dataclass(frozen=True)
class Refusal:
    """An error reply, word by word."""

    text: str


def num(text: bytes | None) -> int:
    """A number that the contract stored itself; 0 when it is absent or unsound, beyond M too."""
    sound = text is not None and len(text) <= 16 and _DECIMAL.fullmatch(text) and int(text) <= M
    return int(text) if sound else 0


def decimal(number: int) -> bytes:
    """What counts stops at M."""
    return b"%d" % min(number, M)


def lane(group: bytes) -> bytes:
    return b"g:" + group + b":pending"


def group_of(place: bytes) -> bytes | None:
    """The group whose lane a place is."""
    return place[2 : -len(b":pending")] if place.startswith(b"g:") else None


def row(job: bytes) -> bytes:
    return b"job:" + job


class Model:
    """A database. `keys` is all of its data, `published` what went out in the last call, `clocked` the members whose
    score the last call took from the clock."""

    calls: type[Call]  # what carries out a call

    def __init__(self) -> None:
        self.keys: dict[bytes, Value] = {}
        self.published: list[tuple[bytes, bytes]] = []
        self.clocked: set[tuple[bytes, bytes]] = set()

    def call(self, verb: str, words: Sequence[bytes], now: int) -> object:
        """The answer to a verb whose first word is the queue key. `now`: the server's clock in milliseconds."""
        self.published.clear()
        self.clocked.clear()
        try:
            return self.calls(self, read(verb, words, now), now).answer(verb)
        except Refused as refused:
            return Refusal(str(refused))

    def copy(self) -> Model:
        """Another one with the same data."""
        other = type(self)()
        other.keys = {key: type(value)(value) for key, value in self.keys.items()}
        return other

    def plain(self, command: str, key: bytes, *words: bytes) -> None:
        """A plain command by somebody else, as far as tests need it. One that the server would refuse does nothing."""
        self.published.clear()
        self.clocked.clear()
        Plain(self.keys).run(command, key, *words)


Row = Hash | None


class Call:
    """One call of one verb on one queue: the checks, reads and writes of 8.0, and the verbs of 8.2 to 8.6."""

    def __init__(self, model: Model, words: Words, now: int) -> None:
        self.model = model
        self.keys = model.keys
        self.effects = Plain(model.keys)
        self.name = words.name
        self.base = b"emq:{" + words.name + b"}:"
        self.value = words.values
        self.number = words.numbers
        self.members = words.members
        self.now = now
        self.wrote = False

    def answer(self, verb: str) -> object:
        for key in VERBS[verb][1].split():
            if key == "LANE":
                self.see_lane(self.value["group"])
            elif key == "REPEAT":
                self.see(b"repeat:" + self.value["name"], Hash)
            else:
                self.see(key.encode())
        method = getattr(self, verb.replace(".", "_"))
        return method(*(self.value[item] for item in _takes(type(self), method.__name__)))

    # Data

    def get(self, key: bytes, kind: type) -> object:
        """The value of a key for reading, an empty one when it is absent."""
        value = self.keys.get(self.base + key)
        assert value is None or type(value) is kind, f"{key!r} is read as {kind.__name__} unseen"
        return kind() if value is None else value

    def zset(self, key: bytes) -> Zset:
        return self.get(key, Zset)  # type: ignore[return-value]

    def fields(self, key: bytes) -> Hash:
        return self.get(key, Hash)  # type: ignore[return-value]

    def items(self, key: bytes) -> List:
        return self.get(key, List)  # type: ignore[return-value]

    def names(self, key: bytes) -> Members:
        return self.get(key, Members)  # type: ignore[return-value]

    def exists(self, key: bytes) -> bool:
        return self.base + key in self.keys

    def order(self, key: bytes) -> list[bytes]:
        """The members of a sorted set by score, then by bytes."""
        return [member for _, member in sorted((score, member) for member, score in self.zset(key).items())]

    def due(self, key: bytes) -> list[bytes]:
        return [member for member in self.order(key) if self.zset(key)[member] <= self.now]

    def write(self, command: str, key: bytes, *words: bytes) -> None:
        self.wrote = True
        self.effects.run(command, self.base + key, *words)

    def at(self, key: bytes, member: bytes, after: int) -> None:
        """ZADD with a score that the clock decides."""
        self.write("ZADD", key, decimal(self.now + after), member)
        self.model.clocked.add((self.base + key, member))

    # Checks and reads

    def refuse(self, text: str) -> None:
        assert not self.wrote, f"refused after a write: {text}"
        raise Refused(text)

    def see(self, key: bytes, kind: type | None = None) -> None:
        value = self.keys.get(self.base + key)
        if value is not None and type(value) is not (kind or KINDS[key]):
            self.refuse(WRONGTYPE)

    def see_lane(self, group: bytes | None) -> None:
        if group is not None:
            self.see(lane(group), Zset)
            for key in (b"ring", b"wake", b"lanes", b"paused", b"glimit", b"gactive"):
                self.see(key)

    def peek(self, job: bytes) -> Row:
        if id_error(job):  # listed by others: no job, whatever the key of that name is
            return None
        self.see(row(job), Hash)
        return Hash(self.fields(row(job))) if self.exists(row(job)) else None

    def load(self, job: bytes) -> Row:
        r = self.peek(job)
        if r is not None and b"attempts" in r:
            attempts = r[b"attempts"]
            if not _DECIMAL.fullmatch(attempts) or int(attempts) >= M:
                self.refuse("EMQSTATE job row is damaged")
        return r

    def fresh(self, job: bytes) -> bool:
        self.see(row(job), Hash)
        return not self.exists(row(job))

    def lists(self, place: bytes, job: bytes) -> bool:
        self.see(place, Zset)
        return job in self.zset(place)

    def home(self, r: Hash) -> bytes | None:
        if r.get(b"state") == b"pending" and b"group" in r:
            return lane(r[b"group"])
        return HOMES.get(r.get(b"state", b""))

    def place(self, job: bytes, r: Hash) -> bytes | None:
        home = self.home(r)
        if home and self.lists(home, job):
            return home
        places = (lane(r[b"group"]), *PLACES) if b"group" in r else PLACES
        return next((place for place in places if self.lists(place, job)), None)

    def waits(self, p: bytes | None, r: Hash) -> bool:
        return p == b"pending" or (b"group" in r and p == lane(r[b"group"]))

    def own(self, p: bytes | None, r: Hash) -> bool:
        return p == b"active" or (self.waits(p, r) and b"reaped" in r and r[b"reaped"] == r.get(b"attempts"))

    def stale(self, job: bytes, r: Row, p: bytes) -> bool:
        return r is None or self.place(job, r) != p

    def last(self, r: Hash, most: int | None) -> bool:
        return most is not None and num(r.get(b"attempts")) - num(r.get(b"floor")) >= most

    def see_up(self, r: Hash, failed: bool, level: int = 1) -> None:
        if b"parent_queue" in r and b"parent" in r:
            self.see(b"flow:outbox")
        elif b"parent" in r:
            self.see_parent(r, failed, level)

    def see_parent(self, r: Hash, failed: bool, level: int) -> None:
        parent = r[b"parent"]
        rp = self.peek(parent)
        if rp is None:
            return
        self.see(row(parent) + b":dependencies", bytes)
        for sub in (b":processed", b":failed", b":unsuccessful"):
            self.see(row(parent) + sub, Hash)
        for key in (*PLACES, b"metrics:failed"):
            self.see(key)
        self.see_lane(rp.get(b"group"))
        if failed and r.get(b"parent_policy") != b"id":
            if level == UP:
                self.see(b"flow:outbox")
            else:
                self.see_up(rp, True, level + 1)

    def heads(self, p: bytes, n: int) -> tuple[list[tuple[bytes, Hash]], list[bytes]]:
        live: list[tuple[bytes, Hash]] = []
        bad: list[bytes] = []
        for job in self.order(p):
            if len(live) == n or len(bad) == DROP:
                break
            r = self.load(job)
            if r is None or self.stale(job, r, p):
                bad.append(job)
            else:
                live.append((job, r))
        return live, bad

    def paused(self) -> bool:
        return b"paused" in self.fields(b"meta")

    # Writes

    def serviceable(self, group: bytes) -> bool:
        ceiling = num(self.fields(b"glimit").get(group))
        running = num(self.fields(b"gactive").get(group))
        return self.exists(lane(group)) and group not in self.names(b"paused") and (ceiling == 0 or running < ceiling)

    def tune(self, group: bytes) -> None:
        self.write("SADD" if self.exists(lane(group)) else "SREM", b"lanes", group)
        if not self.serviceable(group):
            self.write("LREM", b"ring", b"0", group)
        elif group not in self.items(b"ring"):
            self.write("RPUSH", b"ring", group)
            self.write("LPUSH", b"wake", b"1")
            self.write("LTRIM", b"wake", b"0", decimal(WAKE - 1))

    def count(self, group: bytes, change: int) -> None:
        n = num(self.fields(b"gactive").get(group)) + change
        if n > 0:
            self.write("HSET", b"gactive", group, decimal(n))
        else:
            self.write("HDEL", b"gactive", group)

    def leave(self, job: bytes, r: Hash, p: bytes | None) -> None:
        if p is None:
            return
        self.write("ZREM", p, job)
        if b"group" in r and p == b"active":
            self.count(r[b"group"], -1)
        if b"group" in r and p in (b"active", lane(r[b"group"])):
            self.tune(r[b"group"])

    def join(self, job: bytes, r: Hash) -> None:
        self.write("HSET", row(job), b"state", b"pending")
        if b"group" in r:
            self.write("ZADD", lane(r[b"group"]), b"0", job)
            self.tune(r[b"group"])
        else:
            self.write("ZADD", b"pending", b"0", job)

    def start(self, job: bytes, r: Hash, p: bytes, lease: int) -> int:
        self.leave(job, r, p)
        a = num(r.get(b"attempts")) + 1
        self.write("HSET", row(job), b"state", b"active", b"attempts", decimal(a))
        self.at(b"active", job, lease)
        if b"group" in r:
            self.count(r[b"group"], +1)
            self.tune(r[b"group"])
        return a

    def plan(self, job: bytes) -> None:
        """Into the schedule: after `in` or `delay`, or at `at`."""
        self.write("HSET", row(job), b"state", b"scheduled")
        if "at" in self.number:
            self.write("ZADD", b"schedule", decimal(self.number["at"]), job)
        else:
            self.at(b"schedule", job, self.number["in"] if "in" in self.number else self.number["delay"])

    def give_back(self, job: bytes, r: Hash, p: bytes | None) -> None:
        self.leave(job, r, p)
        self.write("HDEL", row(job), b"reaped")

    def drop(self, job: bytes, p: bytes) -> None:
        self.write("ZREM", p, job)
        group = group_of(p)
        if group is not None:
            self.tune(group)

    def erase(self, job: bytes) -> None:
        self.write("DEL", row(job))
        for sub in SUBKEYS:
            self.write("DEL", row(job) + sub)

    def bump(self, key: bytes) -> None:
        self.write("HSET", key, b"count", decimal(num(self.fields(key).get(b"count")) + 1))

    def die(self, job: bytes, r: Hash, error: bytes, level: int = 0) -> None:
        self.write("HSET", row(job), b"state", b"dead", b"last_error", error)
        self.write("ZADD", b"dead", b"0", job)
        self.bump(b"metrics:failed")
        self.fail_up(job, r, error, level)

    # Upward

    def done_up(self, job: bytes, r: Hash, result: bytes) -> None:
        if b"parent" not in r:
            return
        if b"parent_queue" in r:
            self.write("RPUSH", b"flow:outbox", b"\0".join((r[b"parent_queue"], r[b"parent"], job, result)))
        else:
            self.settle_done(r[b"parent"], job, result)

    def fail_up(self, job: bytes, r: Hash, error: bytes, level: int) -> None:
        if b"parent" not in r:
            return
        policy = b"id" if r.get(b"parent_policy") == b"id" else b"fp"
        if b"parent_queue" in r or level == UP:
            fields = (b"", b"fail", r.get(b"parent_queue", self.name), r[b"parent"], job, policy, error)
            self.write("RPUSH", b"flow:outbox", b"\0".join(fields))
        else:
            self.settle_failed(r[b"parent"], job, policy, error, level + 1)

    def noted(self, parent: bytes, child: bytes) -> bool:
        subs = (b":processed", b":failed", b":unsuccessful")
        return any(child in self.fields(row(parent) + sub) for sub in subs)

    def settle_done(self, parent: bytes, child: bytes, result: bytes) -> None:
        rp = self.peek(parent)
        if rp is not None and not self.noted(parent, child):
            self.write("HSET", row(parent) + b":processed", child, result)
            self.countdown(parent, rp)

    def settle_failed(self, parent: bytes, child: bytes, policy: bytes, error: bytes, level: int) -> None:
        rp = self.peek(parent)
        if rp is None or self.noted(parent, child):
            return
        if policy == b"id":
            self.write("HSET", row(parent) + b":unsuccessful", child, error)
            self.countdown(parent, rp)
            return
        self.write("HSET", row(parent) + b":failed", child, error)
        if self.place(parent, rp) == b"held":
            self.write("ZREM", b"held", parent)
            self.die(parent, rp, b"child failed: " + child, level)

    def countdown(self, parent: bytes, rp: Hash) -> None:
        key = row(parent) + b":dependencies"
        n = max(0, num(self.get(key, bytes)) - 1)  # type: ignore[arg-type]
        self.write("SET", key, decimal(n))
        if n == 0 and self.place(parent, rp) == b"held":
            self.write("ZREM", b"held", parent)
            self.join(parent, rp)

    # 8.2 Core

    def admit(self, job: bytes, payload: bytes, *more: bytes) -> None:
        self.write("HSET", row(job), b"state", b"pending", b"attempts", b"0", b"payload", payload, *more)

    def emq_enqueue(self, job: bytes, payload: bytes) -> int:
        if not self.fresh(job):
            return 0
        self.admit(job, payload)
        self.write("ZADD", b"pending", b"0", job)
        return 1

    def emq_schedule(self, job: bytes, payload: bytes) -> int:
        if not self.fresh(job):
            return 0
        self.admit(job, payload)
        self.plan(job)
        return 1

    def emq_claim(self) -> list[object]:
        return next(iter(self.serve_flat(1)), [])

    def serve_flat(self, n: int) -> list[list[object]]:
        if self.paused():
            return []
        live, bad = self.heads(b"pending", n)
        for _, r in live:
            self.see_lane(r.get(b"group"))
        for job in bad:
            self.drop(job, b"pending")
        lease = self.number["lease"]
        return [[job, r.get(b"payload"), self.start(job, r, b"pending", lease)] for job, r in live]

    def owner(self, job: bytes, token: bytes, word: str) -> tuple[Row, bytes | None]:
        r = self.load(job)
        if r is None:
            return None, None
        if r.get(b"attempts") != token:
            self.refuse(f"EMQSTALE {word} token mismatch")
        p = self.place(job, r)
        if not self.own(p, r):
            self.refuse(NOT_ACTIVE)
        return r, p

    def emq_complete(self, job: bytes, token: bytes) -> int:
        r, p = self.owner(job, token, "complete")
        if r is None:
            return 0
        self.see_lane(r.get(b"group"))
        self.see_up(r, False)
        self.finish(job, r, p, self.value.get("result", job))
        return 1

    def finish(self, job: bytes, r: Hash, p: bytes | None, result: bytes) -> None:
        self.leave(job, r, p)
        self.erase(job)
        self.bump(b"metrics:completed")
        self.done_up(job, r, result)

    def emq_retry(self, job: bytes, token: bytes, error: bytes) -> bytes:
        r, p = self.owner(job, token, "retry")
        if r is None:
            self.refuse("EMQSTALE job gone")
        assert r is not None
        dies = self.last(r, self.number["max"])
        self.see_lane(r.get(b"group"))
        if dies:
            self.see_up(r, True)
        self.give_back(job, r, p)
        if dies:
            self.die(job, r, error)
            return b"dead"
        self.write("HSET", row(job), b"last_error", error)
        self.plan(job)
        return b"scheduled"

    def emq_delay(self, job: bytes, token: bytes) -> int:
        r, p = self.owner(job, token, "delay")
        if r is None:
            self.refuse("EMQSTALE job gone")
        assert r is not None
        self.see_lane(r.get(b"group"))
        self.give_back(job, r, p)
        self.write("HSET", row(job), b"floor", decimal(num(r.get(b"floor")) + 1))
        self.plan(job)
        return 1

    def emq_extend(self, job: bytes, token: bytes) -> int:
        r = self.load(job)
        if r is None:
            return -1
        if r.get(b"attempts") != token:
            self.refuse("EMQSTALE extend token mismatch")
        if self.place(job, r) != b"active":
            self.refuse(NOT_ACTIVE)
        self.at(b"active", job, self.number["lease"])
        return 1

    def emq_promote(self) -> int:
        due = [(job, self.load(job)) for job in self.due(b"schedule")[: self.number.get("limit", 1000)]]
        live = [(job, r) for job, r in due if r is not None and not self.stale(job, r, b"schedule")]
        for _, r in live:
            self.see_lane(r.get(b"group"))
        for job, _ in due:
            self.write("ZREM", b"schedule", job)
            for known, r in live:
                if known == job:
                    self.join(job, r)
        return len(live)

    def emq_reap(self) -> int:
        return self.reap_jobs([(job, self.load(job)) for job in self.due(b"active")[: self.number.get("limit", 1000)]])

    def reap_jobs(self, late: list[tuple[bytes, Row]]) -> int:
        most = self.number.get("max")
        live = {job: r for job, r in late if r is not None and not self.stale(job, r, b"active")}
        for r in live.values():
            self.see_lane(r.get(b"group"))
            if self.last(r, most):
                self.see_up(r, True)
        for job, _ in late:
            if job not in live:
                self.write("ZREM", b"active", job)
                continue
            r = live[job]
            self.leave(job, r, b"active")
            if self.last(r, most):
                self.die(job, r, b"lease expired")
            else:
                if b"attempts" in r:
                    self.write("HSET", row(job), b"reaped", r[b"attempts"])
                self.join(job, r)
        return len(live)

    def emq_state(self, job: bytes) -> bytes:
        r = self.peek(job)
        if r is None:
            return b"absent"
        p = self.place(job, r)
        if self.waits(p, r):
            return b"pending"
        return next((word for word, home in HOMES.items() if home == p), b"unknown")

    def emq_counts(self) -> list[object]:
        lanes = [lane(group) for group in self.names(b"lanes")]
        for key in lanes:
            self.see(key, Zset)
        waiting = len(self.zset(b"pending")) + sum(len(self.zset(key)) for key in lanes)
        answer: list[object] = [b"pending", waiting]
        for word, key in (
            (b"active", b"active"),
            (b"scheduled", b"schedule"),
            (b"dead", b"dead"),
            (b"awaiting_children", b"held"),
        ):
            answer += [word, len(self.zset(key))]
        for word in (b"completed", b"failed"):
            answer += [word, num(self.fields(b"metrics:" + word).get(b"count"))]
        return answer

    def emq_peek(self, job: bytes) -> Fields | None:
        r = self.peek(job)
        return None if r is None else Fields(r)

    # 8.3 Many

    def emq_menqueue(self) -> list[int]:
        for job, _ in self.members:
            self.fresh(job)
        return [self.emq_enqueue(job, payload) for job, payload in self.members]

    def emq_mclaim(self) -> list[list[object]]:
        return self.serve_flat(self.number["count"])

    def emq_mcomplete(self) -> list[int]:
        known: dict[bytes, Hash] = {}
        for job, _ in self.members:
            r = self.load(job)
            if r is not None:
                self.place(job, r)
                known[job] = r
        for r in known.values():  # step 11 of 7.4, after step 7 of all members
            self.see_lane(r.get(b"group"))
            self.see_up(r, False)
        answer = []
        for job, token in self.members:
            r = self.load(job)
            if r is None:
                answer.append(0)
                continue
            p = self.place(job, r)
            if r.get(b"attempts") != token or not self.own(p, r):
                answer.append(-1)
                continue
            self.finish(job, r, p, job)
            answer.append(1)
        return answer

    def emq_mextend(self) -> list[bytes]:
        def holds(job: bytes, token: bytes) -> bool:
            r = self.load(job)
            return r is not None and r.get(b"attempts") == token and self.place(job, r) == b"active"

        held = [(job, holds(job, token)) for job, token in self.members]
        for job, good in held:
            if good:
                self.at(b"active", job, self.number["lease"])
        return [job for job, good in held if not good]

    # 8.4 Lanes

    def emq_genqueue(self, group: bytes, job: bytes, payload: bytes) -> int:
        if not self.fresh(job):
            return 0
        self.admit(job, payload, b"group", group)
        self.join(job, Hash({b"group": group}))
        return 1

    def serve_lane(self, want: Callable[[bytes], int]) -> list[list[object]]:
        if self.paused():
            return []
        passed: list[tuple[bytes, list[bytes]]] = []
        live: list[tuple[bytes, Hash]] = []
        g = b""
        for g in self.items(b"ring")[:ROUND]:
            self.see_lane(g)
            if not self.serviceable(g):
                passed.append((g, []))
                continue
            k = want(g)
            ceiling = num(self.fields(b"glimit").get(g))
            if ceiling > 0:
                k = min(k, ceiling - num(self.fields(b"gactive").get(g)))
            live, bad = self.heads(lane(g), k)
            passed.append((g, bad))
            if live:
                break
        if live:
            self.write("LREM", b"ring", b"0", g)
            self.write("RPUSH", b"ring", g)
        for group, bad in passed:
            for job in bad:
                self.drop(job, lane(group))
            self.tune(group)
        lease = self.number["lease"]
        return [[job, r.get(b"payload"), self.start(job, r, lane(g), lease), g] for job, r in live]

    def emq_gclaim(self) -> list[object]:
        return next(iter(self.serve_lane(lambda _: 1)), [])

    def emq_gwclaim(self) -> list[list[object]]:
        return self.serve_lane(lambda group: max(1, min(10_000, num(self.fields(b"gweight").get(group)))))

    def emq_gmclaim(self) -> list[list[object]]:
        return self.serve_lane(lambda _: self.number["count"])

    def emq_gpause(self, group: bytes) -> int:
        self.write("SADD", b"paused", group)
        self.tune(group)
        return 1

    def emq_gresume(self, group: bytes) -> int:
        self.write("SREM", b"paused", group)
        self.tune(group)
        return 1

    def setting(self, key: bytes, group: bytes, value: int) -> None:
        if value:
            self.write("HSET", key, group, decimal(value))
        else:
            self.write("HDEL", key, group)

    def emq_glimit(self, group: bytes) -> int:
        self.setting(b"glimit", group, self.number["ceiling"])
        self.tune(group)
        return 1

    def emq_gweight(self, group: bytes) -> int:
        self.setting(b"gweight", group, self.number["weight"])
        return 1

    def emq_greassign(self, job: bytes, group: bytes) -> int:
        r = self.peek(job)
        if r is None or b"group" not in r:
            return -1
        if r[b"group"] == group:
            return 0
        self.see_lane(r[b"group"])
        if self.place(job, r) != lane(r[b"group"]):
            return -2
        self.leave(job, r, lane(r[b"group"]))
        self.write("HSET", row(job), b"group", group)
        self.join(job, Hash(r | {b"group": group}))
        return 1

    def emq_gdrain(self, group: bytes) -> int:
        return self.purge(self.seen_to_go((lane(group), job) for job in self.first(lane(group))))

    def emq_greap(self, group: bytes) -> int:
        late: list[tuple[bytes, Row]] = []
        for job in self.due(b"active")[:SCAN]:
            if len(late) == self.number.get("limit", 1000):
                break
            r = self.load(job)
            if r is not None and r.get(b"group") == group:
                late.append((job, r))
        return self.reap_jobs(late)

    def emq_gcounts(self) -> list[list[object]]:
        groups = [group for (group,) in self.members]
        if not groups:
            groups = sorted(self.names(b"lanes") | set(self.fields(b"gactive")))[:LANES]
        for group in groups:
            self.see(lane(group), Zset)
        return [[group, len(self.zset(lane(group))), num(self.fields(b"gactive").get(group))] for group in groups]

    # 8.5 Queue operations

    def emq_pause(self) -> int:
        if not self.paused():
            self.write("HSET", b"meta", b"paused", b"1")
        return 1

    def emq_resume(self) -> int:
        self.write("HDEL", b"meta", b"paused")
        return 1

    def first(self, p: bytes, taken: int = 0) -> list[bytes]:
        """The first members of a place, as many as LIMIT leaves after those already taken."""
        return self.order(p)[: self.number.get("limit", 1000) - taken]

    def seen_to_go(self, planned: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes, bool]]:
        """The check half of purge: place, job, and whether the entry is stale."""
        checked = []
        for p, job in planned:
            r = self.peek(job)
            stale = r is None or self.stale(job, r, p)
            self.see_lane(group_of(p))
            if r is not None and not stale:
                self.see_lane(r.get(b"group"))
                self.see_up(r, True)
            checked.append((p, job, stale))
        return checked

    def purge(self, checked: list[tuple[bytes, bytes, bool]]) -> int:
        for p, job, stale in checked:
            r = self.peek(job)
            if stale or r is None:
                self.drop(job, p)
            else:
                self.leave(job, r, self.place(job, r))
                self.erase(job)
                self.fail_up(job, r, b"removed", 0)
        return sum(not stale for _, _, stale in checked)

    def emq_drain(self) -> int:
        planned = [(b"pending", job) for job in self.first(b"pending")]
        if "SCHEDULED" in self.value:
            planned += [(b"schedule", job) for job in self.first(b"schedule", len(planned))]
        return self.purge(self.seen_to_go(planned))

    def emq_remove(self, job: bytes) -> int:
        r = self.peek(job)
        if r is None:
            for p in PLACES:
                self.write("ZREM", p, job)
            return -1
        p = self.place(job, r)
        if "FORCE" not in self.value:
            if p == b"active":
                self.refuse("EMQLOCK job is active")
            if self.exists(row(job) + b":lock"):
                self.refuse("EMQLOCK job is locked")
        self.see_lane(r.get(b"group"))
        self.see_up(r, True)
        self.leave(job, r, p)
        self.erase(job)
        self.fail_up(job, r, b"removed", 0)
        return 1

    def emq_reprocess(self, job: bytes) -> int:
        r = self.load(job)
        if r is None:
            return -1
        if self.place(job, r) != b"dead":
            self.refuse("EMQSTATE not dead")
        self.see_lane(r.get(b"group"))
        self.write("ZREM", b"dead", job)
        self.write("HSET", row(job), b"floor", r.get(b"attempts", b"0"))
        self.write("HDEL", row(job), b"last_error")
        self.join(job, r)
        return 1

    def emq_update(self, job: bytes, payload: bytes) -> int:
        if self.peek(job) is None:
            return -1
        self.write("HSET", row(job), b"payload", payload)
        return 1

    def emq_progress(self, job: bytes, text: bytes) -> int:
        if self.peek(job) is None:
            return -1
        self.write("HSET", row(job), b"progress", text)
        escaped = b"".join(_escape(byte) for byte in text)
        json = b'{"event":"progress","job":"' + job + b'","progress":"' + escaped + b'"}'
        self.model.published.append((self.base + b"events", json))
        return 1

    def emq_log(self, job: bytes, line: bytes) -> int:
        logs = row(job) + b":logs"
        self.see(logs, List)
        if self.peek(job) is None:
            return -1
        self.write("RPUSH", logs, line)
        if "keep" in self.number:
            self.write("LTRIM", logs, decimal(-self.number["keep"]), b"-1")
        return len(self.items(logs))

    def emq_obliterate(self) -> int:
        force = "FORCE" in self.value
        if not self.paused():
            self.refuse("EMQSTATE not paused")
        if self.exists(b"active") and not force:
            self.refuse("EMQSTATE active jobs present")
        limit = self.number.get("limit", 1000)
        planned: list[tuple[bytes, bytes]] = []
        reached: list[bytes] = []  # a lane that is not reached is not looked at
        for p in (b"active", b"pending", *map(lane, sorted(self.names(b"lanes"))), b"schedule", b"dead", b"held"):
            group = group_of(p)
            if len(planned) < limit and group is not None:
                self.see_lane(group)
                reached.append(group)
            planned += [(p, job) for job in self.first(p, len(planned))]
        names = self.order(b"repeat")[: limit - len(planned)]
        checked = self.seen_to_go(planned)
        if not planned and not names and self.exists(b"flow:outbox") and not force:
            self.refuse("EMQSTATE flow outbox is not empty")
        self.purge(checked)
        for group in reached:
            self.tune(group)  # also one that was listed without a backlog
        for name in names:
            self.write("ZREM", b"repeat", name)
            self.write("DEL", b"repeat:" + name)
        left = any(self.exists(key) for key in (*PLACES, b"lanes", b"repeat"))
        if left or (self.exists(b"flow:outbox") and not force):
            return 1
        for key in _OBLITERATED:
            self.write("DEL", key)
        return 0

    # 8.6 Repeat

    def emq_repeat(self, name: bytes, every: bytes, template: bytes) -> int:
        if self.exists(b"repeat:" + name):
            return 0
        self.write("HSET", b"repeat:" + name, b"every_ms", every, b"template", template)
        if "at" in self.number:
            self.write("ZADD", b"repeat", decimal(self.number["at"]), name)
        else:
            self.at(b"repeat", name, self.number["every"])
        return 1

    def emq_unrepeat(self, name: bytes) -> int:
        there = name in self.zset(b"repeat") or self.exists(b"repeat:" + name)
        self.write("ZREM", b"repeat", name)
        self.write("DEL", b"repeat:" + name)
        return int(there)

    def emq_fire(self, name: bytes, job: bytes) -> int:
        fresh = self.fresh(job)
        t = self.zset(b"repeat").get(name)
        if t is None:
            return 0
        if not self.exists(b"repeat:" + name):
            self.write("ZREM", b"repeat", name)
            return 0
        if t > self.now or self.number["next"] <= t or not fresh:
            return 0
        self.write("ZADD", b"repeat", decimal(self.number["next"]), name)
        self.admit(job, self.fields(b"repeat:" + name).get(b"template", b""))
        self.write("ZADD", b"pending", b"0", job)
        return 1


_OBLITERATED = (
    *(b"metrics:completed", b"metrics:failed", b"metrics:completed:data", b"metrics:failed:data"),
    *(b"gactive", b"glimit", b"gweight", b"ring", b"lanes", b"wake", b"paused", b"limiter"),
    *(b"repeat", b"flow:outbox", b"flow:poison", b"meta"),
)


def _escape(byte: int) -> bytes:
    if byte in b'"\\':
        return b"\\" + bytes([byte])
    return b"\\u00%02x" % byte if byte < 0x20 else bytes([byte])


@cache
def _takes(calls: type[Call], method: str) -> list[str]:
    """The words that a verb takes by their names."""
    return list(signature(getattr(calls, method)).parameters)[1:]


Model.calls = Call
