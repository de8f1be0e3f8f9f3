"""The auditor and `unchanged` notice what they promise to notice: each rule is broken by plain writes and named."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from emq_native.conformance.audit import counts_of, examine
from emq_native.conformance.case import Mismatch
from emq_native.conformance.host import OwnServer
from emq_native.conformance.lab import Lab
from emq_native.conformance.wire import Map
from emq_native.executors import SCRIPTED
from emq_native.server import Server

MakeLab = Callable[..., Lab]


@pytest.fixture
def lab(make_lab: MakeLab) -> Iterator[Lab]:
    """A queue with a sound job in every place; what a test breaks is deleted with it."""
    lab = make_lab("scripted")
    lab.seed(lab.a, "pending")
    lab.seed(lab.b, "active", group="g")
    lab.seed(lab.c, "schedule")
    lab.seed(lab.d, "held", children=2)
    lab.seed(lab.ids(1)[0], "dead")
    lab.seed(lab.ids(1)[0], group="g")
    lab.seed(lab.ids(1)[0], group="h")
    lab.limit("g", 5)
    lab.plain("HSET", lab.row(lab.d, "processed"), lab.a, "result")
    lab.plain("SET", lab.row(lab.d, "dependencies"), 1)
    assert lab.audit() == []
    yield lab
    lab.wipe(lab.name)


def rules(lab: Lab) -> set[str]:
    return {finding.rule for finding in lab.audit()}


Break = Callable[[Lab], object]

BROKEN: dict[str, tuple[str, Break]] = {
    "an id listed in two places": ("A1", lambda lab: lab.plain("ZADD", lab.key("dead"), 0, lab.a)),
    "an id listed in its lane and in pending": ("A1", lambda lab: _list_twice(lab)),
    "a row that names another place": ("A1", lambda lab: lab.plain("HSET", lab.row(lab.a), "state", "dead")),
    "a row with a group in the flat place": ("A1", lambda lab: lab.plain("HSET", lab.row(lab.a), "group", "g")),
    "a state that is none": ("A1", lambda lab: lab.plain("HSET", lab.row(lab.a), "state", "lost")),
    "a lane that COUNTS does not see": ("A2", lambda lab: lab.plain("SREM", lab.key("lanes"), "h")),
    "a negative count": ("A2", lambda lab: lab.plain("HSET", lab.key("metrics:failed"), "count", -1)),
    "a count that is no number": ("A2", lambda lab: lab.plain("HSET", lab.key("metrics:completed"), "count", "x")),
    "an active job without a row": ("A3", lambda lab: lab.forget(lab.b)),
    "an active job without a deadline": ("A3", lambda lab: lab.plain("ZADD", lab.key("active"), 0, lab.b)),
    "an infinite deadline": ("A3", lambda lab: lab.plain("ZADD", lab.key("active"), "inf", lab.b)),
    "an active job that no claim counted": ("A3", lambda lab: lab.plain("HSET", lab.row(lab.b), "attempts", 0)),
    "a slot that nobody holds": ("A4", lambda lab: lab.plain("HINCRBY", lab.key("gactive"), "g", 1)),
    "a slot count of zero": ("A4", lambda lab: lab.plain("HSET", lab.key("gactive"), "h", 0)),
    "a lost slot": ("A4", lambda lab: lab.plain("DEL", lab.key("gactive"))),
    "more active jobs than the ceiling": ("A4", lambda lab: _over_the_ceiling(lab)),
    "a lane that is not in the ring": ("A4", lambda lab: lab.plain("LREM", lab.key("ring"), 0, "h")),
    "a lane that is twice in the ring": ("A4", lambda lab: lab.plain("RPUSH", lab.key("ring"), "h")),
    "an empty lane in the ring": ("A4", lambda lab: lab.plain("RPUSH", lab.key("ring"), "empty")),
    "a parked lane in the ring": ("A4", lambda lab: lab.plain("SADD", lab.key("paused"), "h")),
    "a backlog that lanes does not list": ("A4", lambda lab: lab.plain("SREM", lab.key("lanes"), "h")),
    "an empty lane that lanes lists": ("A4", lambda lab: lab.plain("SADD", lab.key("lanes"), "empty")),
    "too many wake tokens": ("A4", lambda lab: lab.plain("RPUSH", lab.key("wake"), *["1"] * 64)),
    "a foreign wake token": ("A4", lambda lab: lab.plain("RPUSH", lab.key("wake"), "2")),
    "a wrong number of open children": ("A5", lambda lab: lab.plain("SET", lab.row(lab.d, "dependencies"), 2)),
    "a child that was noted and not counted": ("A5", lambda lab: _note(lab, "unsuccessful")),
    "a negative number of open children": ("A5", lambda lab: lab.plain("SET", lab.row(lab.d, "dependencies"), -1)),
    "a held parent without children": ("A5", lambda lab: lab.plain("DEL", lab.row(lab.d, "dependencies"))),
    "an id without a row": ("A6", lambda lab: lab.forget(lab.a)),
    "a row without a place": ("A6", lambda lab: lab.plain("ZREM", lab.key("pending"), lab.a)),
    "a subkey without its row": ("A6", lambda lab: lab.plain("RPUSH", lab.row(lab.ids(1)[0], "logs"), "line")),
    "a key with a TTL": ("A8", lambda lab: lab.plain("EXPIRE", lab.row(lab.a), 1000)),
    "a key that the contract does not know": ("L15", lambda lab: lab.plain("SET", lab.key("metrics"), "1")),
    "a key of another kind": ("kind", lambda lab: lab.plain("SET", lab.key("repeat"), "1")),
}


def _list_twice(lab: Lab) -> None:
    lab.plain("ZADD", lab.lane("h"), 0, lab.a)


def _over_the_ceiling(lab: Lab) -> None:
    lab.plain("HSET", lab.key("glimit"), "g", 1)
    lab.seed(lab.ids(1)[0], "active", group="g")


def _note(lab: Lab, kind: str) -> None:
    lab.plain("HSET", lab.row(lab.d, kind), lab.b, "e")


@pytest.mark.parametrize("what", BROKEN)
def test_audit_names_the_rule_that_was_broken(lab: Lab, what: str) -> None:
    rule, breaking = BROKEN[what]
    breaking(lab)
    assert rule in rules(lab), [str(finding) for finding in lab.audit()]


def test_a_ceiling_that_was_lowered_under_running_jobs_is_no_finding(lab: Lab) -> None:
    _over_the_ceiling(lab)
    lab.lowered.add("g")
    assert lab.audit() == []


def test_counts_that_are_wrong_are_named_one_by_one(lab: Lab) -> None:
    counts = {
        "pending": 9,
        "active": 1,
        "scheduled": 1,
        "dead": 1,
        "awaiting_children": 1,
        "completed": 0,
        "failed": -1,
    }
    keys = [finding.key for finding in examine(lab.data(), counts=counts) if finding.rule == "A2"]
    assert keys == ["pending", "failed", "failed"]


def test_counts_are_read_from_a_map_and_from_a_flat_array() -> None:
    assert counts_of([b"pending", 1, b"active", 2]) == {"pending": 1, "active": 2}
    assert counts_of(Map(((b"pending", 1), (b"active", 2)))) == {"pending": 1, "active": 2}


def test_reserved_keys_are_left_alone(lab: Lab) -> None:
    for key in ("de:anything", "limiter", "stream:x", "metrics:completed:data", "version"):
        lab.plain("SET", lab.key(key), "1") if key != "metrics:completed:data" else lab.plain(
            "RPUSH", lab.key(key), "1"
        )
    assert lab.audit() == []


CHANGES: dict[str, Break] = {
    "a new key": lambda lab: lab.plain("SET", lab.key("limiter"), "1"),
    "a key that is gone": lambda lab: lab.plain("DEL", lab.key("glimit")),
    "a field": lambda lab: lab.plain("HSET", lab.row(lab.a), "payload", "other"),
    "a member": lambda lab: lab.plain("ZADD", lab.key("pending"), 0, lab.ids(1)[0]),
    "a score": lambda lab: lab.plain("ZADD", lab.key("pending"), 1, lab.a),
    "the order of a list": lambda lab: lab.plain("LMOVE", lab.key("ring"), lab.key("ring"), "LEFT", "RIGHT"),
    "a TTL": lambda lab: lab.plain("EXPIRE", lab.row(lab.a), 1000),
    "a kind": lambda lab: (lab.plain("DEL", lab.key("glimit")), lab.plain("SADD", lab.key("glimit"), "g")),
    "the fence": lambda lab: lab.plain("SET", lab.fence, "other"),
    "a key of nobody": lambda lab: lab.plain("SET", "nobody", "1"),
    "a key in another database": lambda lab: _elsewhere(lab),
    "an effect that was undone": lambda lab: (lab.plain("SET", "nobody", "1"), lab.plain("DEL", "nobody")),
}


def _elsewhere(lab: Lab) -> None:
    with lab.connect(2) as wire:
        wire.call("SELECT", 5)
        wire.call("SET", "nobody", "1")


@pytest.fixture
def clean(lab: Lab) -> Iterator[None]:
    fence = lab.plain("GET", lab.fence)
    yield
    assert isinstance(fence, bytes)
    lab.plain("SET", lab.fence, fence)
    lab.plain("DEL", "nobody")
    with lab.connect(2) as wire:
        wire.call("SELECT", 5)
        wire.call("DEL", "nobody")


@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize("what", CHANGES)
def test_unchanged_notices(lab: Lab, what: str) -> None:
    with pytest.raises(Mismatch), lab.unchanged():
        CHANGES[what](lab)


def test_unchanged_passes_when_things_are_only_looked_at(lab: Lab) -> None:
    with lab.unchanged():
        lab.send("counts")
        lab.plain("HGETALL", lab.row(lab.a))
        lab.plain("GET", lab.fence)


def test_unchanged_first_shows_that_the_offset_counts() -> None:
    with Server(module=False, config={"enable-debug-command": "yes"}) as server:
        host = OwnServer(server, native=False)
        with Lab(server.url, SCRIPTED, 2, host) as lab:
            with pytest.raises(Mismatch, match="is appendonly on"), lab.unchanged():
                pass
            lab.plain("CONFIG", "SET", "appendonly", "yes")
            lab.until(lambda: lab.info("persistence")["aof_rewrite_in_progress"] == "0", "the first file is written")
            with lab.unchanged():
                pass
            assert host.offset_counts
