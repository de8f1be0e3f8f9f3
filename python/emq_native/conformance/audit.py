# SPDX-License-Identifier: BSD-3-Clause
"""The auditor: reads a whole queue by plain commands and says which rule of its data does not hold.

`snapshot` reads, `examine` judges; neither uses a verb, so both can be trusted to judge the verbs. The rules:

    A1  every id is in exactly one place, and its row names that place
    A2  every number of COUNTS equals the members that are there; no count is negative
    A3  every active job has a row with a spent attempt, and a deadline
    A4  per group: gactive is the number of its active jobs, within its ceiling; lanes lists exactly the groups with a
        backlog; ring lists exactly the serviceable lanes, each once; wake holds at most 64 tokens
    A5  the open children of a held parent: what it was held with less those noted in processed and unsuccessful
    A6  no id without a row, no row without a place, no subkey without its row
    A8  no key has a TTL
    L15 no key that the contract does not know
    kind every key has the type that the contract gives it
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from .wire import Error, Map, Reply, Wire, Word

Value = bytes | dict[bytes, bytes] | list[bytes] | frozenset[bytes] | dict[bytes, float]

FIXED: Final[Mapping[str, str]] = {
    "pending": "zset",
    "active": "zset",
    "schedule": "zset",
    "dead": "zset",
    "held": "zset",
    "lanes": "set",
    "ring": "list",
    "wake": "list",
    "paused": "set",
    "glimit": "hash",
    "gweight": "hash",
    "gactive": "hash",
    "meta": "hash",
    "metrics:completed": "hash",
    "metrics:failed": "hash",
    "repeat": "zset",
    "flow:outbox": "list",
    "flow:poison": "list",
    "version": "string",
}
"""Type of every key of a queue whose name is known in advance."""

SUBKEYS: Final[Mapping[str, str]] = {
    "logs": "list",
    "lock": "string",
    "dependencies": "string",
    "processed": "hash",
    "failed": "hash",
    "unsuccessful": "hash",
}
"""Type of every key that belongs to one job beside its row."""

PLACES: Final = ("pending", "active", "schedule", "dead", "held")
STATES: Final[Mapping[str, str]] = {
    "pending": "pending",
    "active": "active",
    "scheduled": "schedule",
    "dead": "dead",
    "awaiting_children": "held",
}
WAKE: Final = 64

_LANE = re.compile(rb"g:([A-Za-z0-9._-]{1,64}):pending")
_ROW = re.compile(rb"job:([^:]+)")
_SUBKEY = re.compile(rb"job:([^:]+):([a-z]+)")
_REPEAT = re.compile(rb"repeat:([A-Za-z0-9._-]{1,128})")
_RESERVED = re.compile(rb"de:.*|stream:.*|limiter|metrics:(completed|failed):data", re.DOTALL)
_DECIMAL = re.compile(rb"0|-?[1-9][0-9]*")


@dataclass(frozen=True)
class Finding:
    """One rule that does not hold, and where."""

    rule: str
    key: str
    text: str

    def __str__(self) -> str:
        return f"{self.rule} {self.key}: {self.text}"


@dataclass(frozen=True)
class Key:
    """One key: type name of the server, content, and the instant of its expiry in ms (None: no TTL)."""

    type: str
    value: Value
    expires: int | None


Snapshot = Mapping[bytes, Key]
"""Every key of a queue by its name without the queue's prefix."""


def snapshot(wire: Wire, queue_key: bytes) -> dict[bytes, Key]:
    """Read every key of a queue over a RESP2 connection. Nothing else may write meanwhile."""
    prefix = queue_key + b":"
    names = sorted(keys(wire, prefix + b"*"))
    return {name[len(prefix) :]: key for name, key in zip(names, read_keys(wire, names), strict=True)}


def keys(wire: Wire, pattern: bytes) -> set[bytes]:
    """The names of all keys that match a glob pattern."""
    found: set[bytes] = set()
    cursor = b"0"
    while True:
        reply = wire.call("SCAN", cursor, "MATCH", pattern, "COUNT", 1000)
        if not isinstance(reply, list):
            raise AssertionError(f"SCAN answered {reply!r}")
        head, names = reply
        assert isinstance(head, bytes)
        assert isinstance(names, list)
        found.update(name for name in names if isinstance(name, bytes))
        if head == b"0":
            return found
        cursor = head


def read_key(wire: Wire, name: bytes) -> Key:
    """Read one key of any plain type."""
    return read_keys(wire, [name])[0]


def read_keys(wire: Wire, names: Sequence[bytes]) -> list[Key]:
    """Read keys of any plain type."""
    found: list[Key] = []
    for start in range(0, len(names), 500):
        some = names[start : start + 500]
        about = wire.pipeline([(command, name) for name in some for command in ("TYPE", "PEXPIRETIME")])
        types = [getattr(reply, "text", "none") for reply in about[::2]]
        values = wire.pipeline([_reading(kind, name) for kind, name in zip(types, some, strict=True)])
        for kind, expiry, value in zip(types, about[1::2], values, strict=True):
            assert isinstance(expiry, int)
            found.append(Key(kind, _value(kind, value), None if expiry < 0 else expiry))
    return found


_READ: Final[Mapping[str, tuple[str, ...]]] = {
    "string": ("GET",),
    "hash": ("HGETALL",),
    "list": ("LRANGE", "0", "-1"),
    "set": ("SMEMBERS",),
    "zset": ("ZRANGE", "0", "-1", "WITHSCORES"),
}


def _reading(kind: str, name: bytes) -> list[Word]:
    """The command that reads a whole key."""
    command, *rest = _READ.get(kind, ("DUMP",))
    return [command, name, *rest]


def _value(kind: str, reply: Reply) -> Value:
    if kind == "hash":
        return _pairs(reply)
    if kind == "list":
        return _items(reply)
    if kind == "set":
        return frozenset(_items(reply))
    if kind == "zset":
        return {member: float(score) for member, score in _pairs(reply).items()}
    return _bytes(reply)


def _bytes(reply: Reply) -> bytes:
    return reply if isinstance(reply, bytes) else b""


def _items(reply: Reply) -> list[bytes]:
    if not isinstance(reply, list):
        raise AssertionError(f"an array was expected, found {reply!r}")
    return [item for item in reply if isinstance(item, bytes)]


def _pairs(reply: Reply) -> dict[bytes, bytes]:
    flat = _items(reply)
    return dict(zip(flat[::2], flat[1::2], strict=False))


def differences(before: Snapshot, after: Snapshot) -> list[str]:
    """What changed between two snapshots, one line a key."""
    lines = []
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if old != new:
            lines.append(f"{name.decode('utf-8', 'replace')}: {_show(old)} -> {_show(new)}")
    return lines


def _show(key: Key | None) -> str:
    if key is None:
        return "absent"
    text = repr(key.value)
    lasting = "" if key.expires is None else f" expiring at {key.expires}"
    return (text if len(text) <= 200 else text[:200] + "...") + lasting


def number(value: bytes | None) -> int:
    """A number that the contract stored itself, read leniently: 0 when it is absent or unsound."""
    if value is None or not _DECIMAL.fullmatch(value) or len(value) > 16:
        return 0
    return int(value)


def examine(
    queue: Snapshot,
    *,
    counts: Mapping[str, int] | None = None,
    held_with: Mapping[str, int] | None = None,
    lowered: Collection[str] = (),
) -> list[Finding]:
    """Judge a snapshot by every rule.

    counts: the reply of COUNTS for the same data (A2). held_with: parent id -> number of children that it was held with
    (A5). lowered: groups whose ceiling was lowered below their running jobs (A4).
    """
    report = _Report()
    known = _kinds(queue, report)
    _ttls(queue, report)
    places = _places(known)
    rows = {name[4:].decode("latin-1"): _hash(known, name) for name in known if _ROW.fullmatch(name)}
    _one_place(places, rows, report)
    _active(places, rows, report)
    _numbers(known, places, counts, report)
    _lanes(known, places, rows, lowered, report)
    _parents(known, places, rows, held_with or {}, report)
    _subkeys(known, rows, report)
    return report.findings


@dataclass
class _Report:
    findings: list[Finding] = field(default_factory=list)

    def add(self, rule: str, key: str, text: str) -> None:
        self.findings.append(Finding(rule, key, text))


Places = Mapping[str, Mapping[str, float]]
Rows = Mapping[str, Mapping[bytes, bytes]]


def _expected_type(name: bytes) -> str | None:
    fixed = FIXED.get(name.decode("latin-1"))
    if fixed is not None:
        return fixed
    if _LANE.fullmatch(name):
        return "zset"
    if _REPEAT.fullmatch(name) or _ROW.fullmatch(name):
        return "hash"
    sub = _SUBKEY.fullmatch(name)
    return SUBKEYS.get(sub[2].decode()) if sub else None


def _kinds(queue: Snapshot, report: _Report) -> dict[bytes, Key]:
    sound = {}
    for name, key in queue.items():
        expected = _expected_type(name)
        text = name.decode("utf-8", "replace")
        if expected is None:
            if not _RESERVED.fullmatch(name):
                report.add("L15", text, "is no key of the contract")
        elif key.type != expected:
            report.add("kind", text, f"is a {key.type}, must be a {expected}")
        else:
            sound[name] = key
    return sound


def _ttls(queue: Snapshot, report: _Report) -> None:
    for name, key in queue.items():
        if key.expires is not None:
            report.add("A8", name.decode("utf-8", "replace"), f"expires at {key.expires}")


def _hash(known: Snapshot, name: bytes) -> dict[bytes, bytes]:
    key = known.get(name)
    return key.value if key and key.type == "hash" else {}  # type: ignore[return-value]


def _list(known: Snapshot, name: bytes) -> list[bytes]:
    key = known.get(name)
    return key.value if key and key.type == "list" else []  # type: ignore[return-value]


def _set(known: Snapshot, name: bytes) -> frozenset[bytes]:
    key = known.get(name)
    return key.value if key and key.type == "set" else frozenset()  # type: ignore[return-value]


def _places(known: Snapshot) -> dict[str, dict[str, float]]:
    places: dict[str, dict[str, float]] = {}
    for name, key in known.items():
        if name.decode("latin-1") in PLACES or _LANE.fullmatch(name):
            assert isinstance(key.value, dict)
            places[name.decode("latin-1")] = {m.decode("latin-1"): float(s) for m, s in key.value.items()}
    return places


def _home(row: Mapping[bytes, bytes]) -> str | None:
    place = STATES.get(row.get(b"state", b"").decode("latin-1"))
    if place == "pending" and b"group" in row:
        return f"g:{row[b'group'].decode('latin-1')}:pending"
    return place


def _one_place(places: Places, rows: Rows, report: _Report) -> None:
    listed: dict[str, list[str]] = {}
    for place, members in places.items():
        for job in members:
            listed.setdefault(job, []).append(place)
    for job, where in sorted(listed.items()):
        if len(where) > 1:
            report.add("A1", job, f"is listed in {' and '.join(sorted(where))}")
        if job not in rows:
            report.add("A6", job, f"is listed in {' and '.join(sorted(where))} and has no row")
        elif _home(rows[job]) not in where:
            state = rows[job].get(b"state", b"(none)").decode("latin-1")
            report.add("A1", job, f"is listed in {' and '.join(sorted(where))}, its row says {state}")
    for job in sorted(set(rows) - set(listed)):
        report.add("A6", job, "has a row and no place")


def _active(places: Places, rows: Rows, report: _Report) -> None:
    for job, deadline in places.get("active", {}).items():
        if not (deadline > 0 and deadline.is_integer() and deadline < 2**53):
            report.add("A3", job, f"is active without a deadline: score {deadline}")
        row = rows.get(job)
        if row is None:
            report.add("A3", job, "is active without a row")
        elif number(row.get(b"attempts")) < 1:
            report.add("A3", job, f"is active with attempts {row.get(b'attempts')!r}")


def _numbers(known: Snapshot, places: Places, counts: Mapping[str, int] | None, report: _Report) -> None:
    completed = _hash(known, b"metrics:completed").get(b"count")
    failed = _hash(known, b"metrics:failed").get(b"count")
    for name, value in (("metrics:completed", completed), ("metrics:failed", failed)):
        if value is not None and (not _DECIMAL.fullmatch(value) or int(value) < 0):
            report.add("A2", name, f"count is {value!r}")
    if counts is None:
        return
    lanes = sum(len(members) for place, members in places.items() if place not in PLACES)
    real = {
        "pending": len(places.get("pending", {})) + lanes,
        "active": len(places.get("active", {})),
        "scheduled": len(places.get("schedule", {})),
        "dead": len(places.get("dead", {})),
        "awaiting_children": len(places.get("held", {})),
        "completed": number(completed),
        "failed": number(failed),
    }
    for name, there in real.items():
        if counts.get(name) != there:
            report.add("A2", name, f"COUNTS says {counts.get(name)}, there are {there}")
    for name, said in counts.items():
        if said < 0:
            report.add("A2", name, f"COUNTS says {said}")


def _lanes(known: Snapshot, places: Places, rows: Rows, lowered: Collection[str], report: _Report) -> None:
    backlog = {place[2:-8]: len(members) for place, members in places.items() if place not in PLACES}
    running = Counter(
        rows[job][b"group"].decode("latin-1") for job in places.get("active", {}) if b"group" in rows.get(job, {})
    )
    gactive = {group.decode("latin-1"): value for group, value in _hash(known, b"gactive").items()}
    ceilings = {group.decode("latin-1"): number(value) for group, value in _hash(known, b"glimit").items()}
    parked = _texts(_set(known, b"paused"))
    for group in sorted({*gactive, *running}):
        if gactive.get(group) != (str(running[group]).encode() if running[group] else None):
            report.add("A4", "gactive", f"{group} is {gactive.get(group)!r}, active jobs {running[group]}")
        ceiling = ceilings.get(group, 0)
        if ceiling and running[group] > ceiling and group not in lowered:
            report.add("A4", "gactive", f"{group} has {running[group]} active jobs, its ceiling is {ceiling}")
    for group, ceiling in ceilings.items():
        if ceiling < 1:
            report.add("A4", "glimit", f"{group} has the ceiling {ceiling}")
    lanes = _texts(_set(known, b"lanes"))
    for group in sorted(lanes ^ set(backlog)):
        report.add(
            "A4", "lanes", f"{group} is {'listed' if group in lanes else 'not listed'}, backlog {backlog.get(group, 0)}"
        )
    ring = Counter(_texts_list(_list(known, b"ring")))
    serviceable = {
        group
        for group in backlog
        if group not in parked and (not ceilings.get(group) or number(gactive.get(group)) < ceilings[group])
    }
    for group in sorted({*ring, *serviceable}):
        if ring[group] != (group in serviceable):
            state = "serviceable" if group in serviceable else "not serviceable"
            report.add("A4", "ring", f"{group} is {state} and listed {ring[group]} times")
    wake = _list(known, b"wake")
    if len(wake) > WAKE or any(token != b"1" for token in wake):
        report.add("A4", "wake", f"{len(wake)} tokens, {sorted(set(wake))!r}")


def _texts(members: Iterable[bytes]) -> set[str]:
    return {member.decode("latin-1") for member in members}


def _texts_list(members: Iterable[bytes]) -> list[str]:
    return [member.decode("latin-1") for member in members]


def _parents(known: Snapshot, places: Places, rows: Rows, held_with: Mapping[str, int], report: _Report) -> None:
    for name, key in known.items():
        sub = _SUBKEY.fullmatch(name)
        if sub and sub[2] == b"dependencies" and not re.fullmatch(rb"0|[1-9][0-9]*", _value_bytes(key)):
            report.add("A5", sub[1].decode("latin-1"), f"dependencies is {key.value!r}")
    for parent in sorted(places.get("held", {})):
        if parent not in rows:
            continue
        base = b"job:" + parent.encode("latin-1")
        open_children = known.get(base + b":dependencies")
        if open_children is None:
            report.add("A5", parent, "is held and has no dependencies")
        elif number(_value_bytes(open_children)) < 1:
            report.add("A5", parent, f"is held with dependencies {open_children.value!r}")
    for parent, total in held_with.items():
        if parent not in rows:
            continue
        base = b"job:" + parent.encode("latin-1")
        noted = len(_hash(known, base + b":processed")) + len(_hash(known, base + b":unsuccessful"))
        dependencies = known.get(base + b":dependencies")
        found = None if dependencies is None else number(_value_bytes(dependencies))
        if found != max(0, total - noted):
            report.add("A5", parent, f"dependencies is {found}, held with {total}, noted {noted}")


def _value_bytes(key: Key) -> bytes:
    return key.value if isinstance(key.value, bytes) else b""


def _subkeys(known: Snapshot, rows: Rows, report: _Report) -> None:
    for name in known:
        sub = _SUBKEY.fullmatch(name)
        if sub and sub[1].decode("latin-1") not in rows:
            report.add("A6", name.decode("latin-1"), "is left and its job has no row")


def counts_of(reply: Reply) -> dict[str, int]:
    """The reply of COUNTS, map or flat array, as a dict."""
    if isinstance(reply, Error):
        raise AssertionError(f"COUNTS answered {reply.text}")
    pairs = reply.pairs if isinstance(reply, Map) else ()
    if isinstance(reply, list):
        pairs = tuple(zip(reply[::2], reply[1::2], strict=False))
    return {name.decode(): value for name, value in pairs if isinstance(name, bytes) and isinstance(value, int)}
