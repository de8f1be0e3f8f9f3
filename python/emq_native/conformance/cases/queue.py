# SPDX-License-Identifier: BSD-3-Clause
"""Queue and job operations: what operators do, and what workers tell."""

from __future__ import annotations

from ..case import case, expect, expect_that
from ..lab import LEASE, Lab
from ..wire import Reply, Wire
from .lanes import ring


@case("C100", "a pause stops claims and nothing else", verbs="pause resume promote reap complete enqueue claim")
def pause(lab: Lab) -> None:
    for _ in range(2):
        expect(lab.send("pause"), 1, "PAUSE")
    expect(lab.record("meta"), {"paused": b"1"}, "meta")
    lab.seed(lab.a, "schedule", score=1)
    lab.seed(lab.b, "active", score=1)
    lab.seed(lab.c, "active")
    expect(lab.send("promote"), 1, "PROMOTE while paused")
    expect(lab.send("reap"), 1, "REAP while paused")
    expect(lab.send("complete", lab.c, "1"), 1, "COMPLETE while paused")
    expect(lab.send("enqueue", lab.d, "p"), 1, "ENQUEUE while paused")
    expect(lab.send("claim", LEASE), [], "CLAIM while paused")
    for _ in range(2):
        expect(lab.send("resume"), 1, "RESUME")
    expect(lab.exists("meta"), False, "meta is there")
    expect(lab.send("claim", LEASE), [lab.a.encode(), b"payload", 1], "CLAIM after RESUME")
    lab.plain("HSET", lab.key("meta"), "paused", "")
    expect(lab.send("claim", LEASE), [], "CLAIM when the field exists and is empty")


@case("C101", "DRAIN deletes waiting jobs, with SCHEDULED those that wait for a time too", verbs="drain")
def drain(lab: Lab) -> None:
    pending = [lab.seed(job) for job in lab.ids(3)]
    active = lab.seed(lab.a, "active")
    lane = lab.seed(lab.b, group="g")
    scheduled = [lab.seed(job, "schedule", group=group) for job, group in zip(lab.ids(2), (None, "g"), strict=True)]
    lab.plain("RPUSH", lab.row(pending[0], "logs"), "line")
    expect(lab.send("drain", "LIMIT", 2), 2, "DRAIN LIMIT 2")
    expect(list(lab.scores("pending")), pending[2:], "pending")
    expect(lab.send("drain"), 1, "DRAIN")
    expect(lab.send("drain", "SCHEDULED"), 2, "DRAIN SCHEDULED")
    expect([lab.settled_keys(job) for job in (*pending, *scheduled)], [[]] * 5, "keys of the deleted jobs")
    expect((lab.where(active), lab.where(lane)), (["active"], ["g:g:pending"]), "places of the others")
    for place in ("pending", "pending", "schedule", "schedule"):
        lab.seed(lab.ids(1)[0], place)
    expect(lab.send("drain", "LIMIT", 3, "SCHEDULED"), 3, "DRAIN of both places with a LIMIT")
    expect(len(lab.scores("schedule")), 1, "what is left of schedule")


@case("C102", "REMOVE takes a job out of any place", verbs="remove")
def remove(lab: Lab) -> None:
    lane = lab.ids(1)[0]
    lab.seed(lab.a, "pending")
    lab.seed(lab.b, "schedule")
    lab.seed(lab.c, "dead")
    lab.seed(lab.d, "held")
    lab.seed(lane, group="g")
    for job in (lab.a, lab.b, lab.c, lab.d, lane):
        lab.plain("RPUSH", lab.row(job, "logs"), "line")
        expect(lab.send("remove", job), 1, f"REMOVE of {job}")
        expect((lab.where(job), lab.settled_keys(job)), ([], []), "places and keys of the removed job")
    expect((ring(lab), lab.members("lanes")), ([], frozenset()), "ring and lanes")


@case("C103", "an active job is removed only by force, and its holder then finds nothing", verbs="remove complete")
def remove_active(lab: Lab) -> None:
    lab.seed(lab.a, "active")
    lab.refused("EMQLOCK job is active", "remove", lab.a)
    expect(lab.send("remove", lab.a, "FORCE"), 1, "REMOVE FORCE")
    expect(lab.send("complete", lab.a, "1"), 0, "COMPLETE of the holder")


@case("C104", "a foreign lock marker protects a job, except from force", verbs="remove")
def locked(lab: Lab) -> None:
    lab.seed(lab.a)
    lab.plain("SET", lab.row(lab.a, "lock"), "somebody")
    lab.refused("EMQLOCK job is locked", "remove", lab.a)
    expect(lab.send("remove", lab.a, "FORCE"), 1, "REMOVE FORCE")
    expect(lab.settled_keys(lab.a), [], "keys of the job")


@case("C105", "verbs of a job that is not there answer -1", verbs="remove reprocess update progress log")
def gone(lab: Lab) -> None:
    calls: tuple[tuple[str, tuple[str, ...]], ...] = (
        ("remove", ()),
        ("remove", ("FORCE",)),
        ("reprocess", ()),
        ("update", ("p",)),
        ("progress", ("50",)),
        ("log", ("line",)),
        ("log", ("line", "KEEP", "1")),
    )
    for verb, words in calls:
        with lab.unchanged(f"{verb} without a row"):
            expect(lab.send(verb, lab.a, *words), -1, f"reply of {verb}")
    for place in ("pending", "active", "schedule", "dead", "held"):
        lab.plain("ZADD", lab.key(place), 0, lab.a)
    expect(lab.send("remove", lab.a), -1, "REMOVE of an id without a row")
    expect(lab.where(lab.a), [], "places of the id")


@case("C106", "REPROCESS gives a dead job as many runs again, and no token twice", verbs="reprocess claim retry")
def reprocess(lab: Lab) -> None:
    lab.seed(lab.a, "dead", attempts=3, fields={"last_error": "e"})
    expect(lab.send("reprocess", lab.a), 1, "reply of REPROCESS")
    row = {"state": b"pending", "attempts": b"3", "payload": b"payload", "floor": b"3"}
    expect(lab.fields_of(lab.a), row, "the row")
    expect(lab.send("claim", LEASE), [lab.a.encode(), b"payload", 4], "CLAIM")
    expect(lab.send("retry", lab.a, "4", 0, 3, "e"), b"scheduled", "RETRY with max 3")
    lab.seed(lab.b, "dead", attempts=1, group="g")
    expect(lab.send("reprocess", lab.b), 1, "REPROCESS of a grouped job")
    expect((lab.where(lab.b), ring(lab)), (["g:g:pending"], ["g"]), "places of the grouped job, and ring")
    for place in ("pending", "active", "schedule", "held"):
        job = lab.seed(lab.ids(1)[0], place)
        lab.refused("EMQSTATE not dead", "reprocess", job)


@case("C107", "OBLITERATE wants a pause, and force when jobs are active", verbs="obliterate pause")
def guarded(lab: Lab) -> None:
    lab.seed(lab.a)
    lab.refused("EMQSTATE not paused", "obliterate")
    lab.refused("EMQSTATE not paused", "obliterate", "FORCE")
    lab.seed(lab.b, "active")
    lab.send("pause")
    lab.refused("EMQSTATE active jobs present", "obliterate")


@case("C108", "OBLITERATE leaves no key of the queue but the fence", verbs="obliterate pause")
def obliterate(lab: Lab) -> None:
    lab.limit("g", 1)
    lab.plain("HSET", lab.key("gweight"), "g", 2)
    lab.plain("HSET", lab.key("glimit"), "x", 2)
    lab.park("h")
    lab.seed(lab.ids(1)[0], "active", group="g")
    for group in (None, "g", "g", "h"):
        job = lab.seed(lab.ids(1)[0], group=group)
        lab.plain("RPUSH", lab.row(job, "logs"), "line")
        lab.plain("SET", lab.row(job, "lock"), "somebody")
    for place in ("active", "schedule", "dead", "held"):
        for job in lab.ids(2):
            lab.seed(job, place)
    for name in ("nightly", "hourly"):
        lab.plain("HSET", lab.key(f"repeat:{name}"), "every_ms", "1000", "template", "t")
        lab.plain("ZADD", lab.key("repeat"), 1, name)
    for series in ("completed", "failed"):
        lab.plain("HSET", lab.key(f"metrics:{series}"), "count", 5)
        lab.plain("RPUSH", lab.key(f"metrics:{series}:data"), "1")
    lab.plain("SET", lab.key("limiter"), "1")
    lab.plain("RPUSH", lab.key("flow:poison"), "x")
    lab.plain("SET", lab.key("version"), lab.executor.identity)
    lab.send("pause")
    calls = 0
    while (reply := lab.send("obliterate", "FORCE", "LIMIT", 3)) == 1:
        calls += 1
        expect_that(calls < 20, "OBLITERATE comes to an end", calls)
    expect(reply, 0, "last reply of OBLITERATE")
    expect_that(calls >= 4, "LIMIT bounds each call", calls)
    expect(sorted(lab.data()), [b"version"], "keys of the queue")
    expect(lab.send("enqueue", lab.a, "p"), 1, "ENQUEUE into the open queue")
    expect(lab.send("claim", LEASE), [lab.a.encode(), b"p", 1], "CLAIM from the open queue")


@case("C109", "LOG appends lines, and KEEP keeps the last", verbs="log")
def log(lab: Lab) -> None:
    lab.seed(lab.a, "active")
    for number in range(1, 4):
        expect(lab.send("log", lab.a, f"line {number}"), number, "reply of LOG")
    expect(lab.send("log", lab.a, "line 4", "KEEP", 2), 2, "reply of LOG KEEP")
    expect(lab.items(f"job:{lab.a}:logs"), [b"line 3", b"line 4"], "the log")
    expect(lab.send("log", lab.a, b"\0\r\n", "KEEP", 10_000), 3, "reply of LOG with a wide KEEP")
    expect(lab.items(f"job:{lab.a}:logs")[-1], b"\0\r\n", "a line of any bytes")


@case("C110", "PROGRESS publishes exactly the JSON of the contract", verbs="progress")
def progress(lab: Lab) -> None:
    subscriber = lab.connect(lab.protocol)
    _subscribe(subscriber, lab.key("events"))
    lab.seed(lab.a, "active")
    text = b'50 "half" \\ / \n \0 \x01 \x1f \x7f \t \xc3\xa4 \xff'
    expect(lab.send("progress", lab.a, text), 1, "reply of PROGRESS")
    escaped = rb"50 \"half\" \\ / \u000a \u0000 \u0001 \u001f " + b"\x7f" + rb" \u0009 " + b"\xc3\xa4 \xff"
    json = b'{"event":"progress","job":"' + lab.a.encode() + b'","progress":"' + escaped + b'"}'
    expect(_message(lab, subscriber), [b"message", lab.key("events").encode(), json], "the message")
    expect(lab.fields_of(lab.a)["progress"], text, "field progress")


def _subscribe(wire: Wire, channel: str) -> None:
    """Subscribe; the confirmation is a reply on RESP2 and a push on RESP3."""
    if wire.protocol == 2:
        wire.call("SUBSCRIBE", channel)
    else:
        wire.send("SUBSCRIBE", channel)
        wire.call("PING")
        wire.pushes.clear()


def _message(lab: Lab, subscriber: Wire) -> Reply:
    """The next message of a channel, once it has come."""
    if subscriber.protocol == 2:
        return subscriber.read()
    lab.until(lambda: subscriber.call("PING") and subscriber.pushes, "a message comes")
    return subscriber.pushes[0]


@case("C111", "UPDATE changes the payload and leaves the lease alone", verbs="update")
def update(lab: Lab) -> None:
    lab.seed(lab.a, "active", score=lab.now() + LEASE)
    deadline = lab.scores("active")
    expect(lab.send("update", lab.a, "y"), 1, "reply of UPDATE")
    expect(lab.fields_of(lab.a), {"state": b"active", "attempts": b"1", "payload": b"y"}, "the row")
    expect(lab.scores("active"), deadline, "deadline")


@case("C150", "a queue whose jobs are gone keeps only what the contract allows", verbs="enqueue complete remove drain")
def nothing_left(lab: Lab) -> None:
    completed, removed, drained, scheduled, lane, active = lab.ids(6)
    for job in (completed, removed, drained):
        lab.send("enqueue", job, "p")
    lab.send("schedule", scheduled, "p", "IN", 60_000)
    lab.send("genqueue", "g", lane, "p")
    lab.send("genqueue", "h", active, "p")
    expect(lab.send("claim", LEASE), [completed.encode(), b"p", 1], "CLAIM")
    lab.send("log", completed, "line")
    expect(lab.send("complete", completed, "1"), 1, "COMPLETE")
    expect(lab.send("remove", removed), 1, "REMOVE")
    expect(lab.send("drain", "SCHEDULED"), 2, "DRAIN")
    expect(lab.send("gdrain", "g"), 1, "GDRAIN")
    expect(lab.send("gclaim", LEASE), [active.encode(), b"p", 1, b"h"], "GCLAIM")
    expect(lab.send("retry", active, "1", 0, 1, "e"), b"dead", "RETRY")
    expect(lab.send("remove", active), 1, "REMOVE of a dead job")
    allowed = {b"metrics:completed", b"metrics:failed", b"wake"} | ({b"version"} if lab.cluster else set())
    expect(set(lab.data()), allowed, "keys of the queue")
