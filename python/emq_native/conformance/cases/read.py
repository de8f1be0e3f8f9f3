# SPDX-License-Identifier: BSD-3-Clause
"""STATE, COUNTS, PEEK, VERSION, TRA.CAPABILITIES: what can be looked at."""

from __future__ import annotations

import re

from ..case import NATIVE, case, expect, expect_that
from ..lab import Lab
from ..scenes import VERBS
from ..wire import Reply


@case("C079", "STATE names the place of a job", verbs="state")
def state(lab: Lab) -> None:
    lane, held = lab.ids(2)
    lab.seed(lab.a, "pending")
    lab.seed(lane, "pending", group="g")
    lab.seed(lab.b, "active")
    lab.seed(lab.c, "schedule")
    lab.seed(lab.d, "dead")
    lab.seed(held, "held")
    states = {
        lab.a: b"pending",
        lane: b"pending",
        lab.b: b"active",
        lab.c: b"scheduled",
        lab.d: b"dead",
        held: b"awaiting_children",
        lab.ids(1)[0]: b"absent",
    }
    for job, expected in states.items():
        with lab.unchanged("STATE"):
            expect(lab.send("state", job), expected, f"STATE of {job}")


@case("C080", "a row that no place lists has the state unknown", verbs="state")
def unknown(lab: Lab) -> None:
    for place in ("pending", "active", "schedule", "dead"):
        lab.seed(lab.a, place)
        lab.plain("ZREM", lab.key(place), lab.a)
        expect(lab.send("state", lab.a), b"unknown", f"STATE of a job lost from {place}")
    lab.seed(lab.a, group="g")
    lab.plain("ZREM", lab.lane("g"), lab.a)
    expect(lab.send("state", lab.a), b"unknown", "STATE of a job lost from its lane")
    lab.forget(lab.a)
    lab.offer("g")


@case("C081", "COUNTS answers the true numbers in a fixed order, parked lanes included", verbs="counts")
def counts(lab: Lab) -> None:
    numbers = (("pending", 2), ("active", 3), ("schedule", 4), ("dead", 5), ("held", 6))
    for place, number in numbers:
        for job in lab.ids(number):
            lab.seed(job, place)
    for group in ("g", "h", "h"):
        lab.seed(lab.ids(1)[0], group=group)
    lab.park("h")
    lab.plain("HSET", lab.key("metrics:completed"), "count", 7)
    lab.plain("HSET", lab.key("metrics:failed"), "count", 8)
    expected: dict[bytes, Reply] = {
        b"pending": 5,
        b"active": 3,
        b"scheduled": 4,
        b"dead": 5,
        b"awaiting_children": 6,
        b"completed": 7,
        b"failed": 8,
    }
    with lab.unchanged("COUNTS"):
        reply = lab.send("counts")
    found = lab.fields(reply)
    expect(found, expected, "reply of COUNTS")
    expect(list(found), list(expected), "order of COUNTS")
    lab.anew()
    zeros: dict[bytes, Reply] = dict.fromkeys(expected, 0)
    expect(lab.fields(lab.send("counts")), zeros, "COUNTS of an empty queue")


@case("C082", "PEEK answers null, or exactly the fields of the row", verbs="peek")
def peek(lab: Lab) -> None:
    expect(lab.send("peek", lab.a), None, "PEEK without a row")
    lab.seed(
        lab.a, "active", group="g", payload=b"\0\r\n", fields={"last_error": "e", "progress": "5", "foreign": "kept"}
    )
    with lab.unchanged("PEEK"):
        reply = lab.send("peek", lab.a)
    row: dict[bytes, Reply] = {name.encode(): value for name, value in lab.fields_of(lab.a).items()}
    expect(lab.fields(reply), row, "reply of PEEK")


@case("C083", "VERSION says what the node is", verbs="version", needs=NATIVE)
def version(lab: Lab) -> None:
    reply = lab.fields(lab.send("version"))
    names = [b"module", b"module_version", b"wire", b"identity", b"node", b"server", b"api"]
    expect(list(reply), names, "entries of VERSION")
    expect(reply[b"module"], b"emq", "module")
    expect_that(
        re.fullmatch(rb"\d+\.\d+\.\d+", _bulk(reply[b"module_version"])) is not None, "a semantic version", reply
    )
    expect(reply[b"wire"], 6, "wire")
    expect(reply[b"identity"], b"echomq:6.0.0", "identity")
    expect(reply[b"node"], b"echomq:6.0.0", "node")
    server = lab.info("server")
    expect(reply[b"server"], (server.get("valkey_version") or server["redis_version"]).encode(), "server")
    expect(reply[b"api"], 1, "api")
    bare = lab.fields(lab.wire.call("EMQ.VERSION"))
    if lab.cluster:
        reply[b"node"] = None
    expect(bare, reply, "VERSION without a queue key")


@case("C084", "TRA.CAPABILITIES lists every verb that is served, sorted, with its revision", needs=NATIVE)
def capabilities(lab: Lab) -> None:
    reply = lab.send("tra.capabilities")
    expect_that(isinstance(reply, list), "an array", reply)
    assert isinstance(reply, list)
    entries = [_bulk(entry) for entry in reply]
    expect(entries, sorted(entries), "order of the entries")
    expect_that(all(re.fullmatch(rb"(emq|tra)\.[a-z]+/[1-9]\d*", entry) for entry in entries), "name/revision", entries)
    names = {entry.partition(b"/")[0].decode() for entry in entries}
    commands = lab.plain("COMMAND", "LIST", "FILTERBY", "MODULE", "emq")
    assert isinstance(commands, list)
    expect(names, {_bulk(name).decode().lower() for name in commands}, "one entry per registered command")
    expect_that(names >= {"tra.capabilities", "emq.version", "emq.enqueue", "emq.claim"}, "the core verbs", names)
    expect(names - set(VERBS) - {"tra.capabilities"}, set(), "verbs of no contract")
    asked = ["emq.claim/1", "emq.claim", "no.such/1", "no.such", "emq.claim/99", "EMQ.CLAIM", "emq.claim/", ""]
    expect(lab.send("tra.capabilities", *asked), [1, 1, 0, 0, 0, 0, 0, 0], "reply with names")


def _bulk(reply: Reply) -> bytes:
    expect_that(isinstance(reply, bytes), "a bulk string", reply)
    assert isinstance(reply, bytes)
    return reply
