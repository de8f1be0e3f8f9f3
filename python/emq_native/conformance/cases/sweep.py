# SPDX-License-Identifier: BSD-3-Clause
"""PROMOTE and REAP: what time does to jobs, when somebody asks."""

from __future__ import annotations

from ..case import case, expect
from ..lab import LEASE, Lab
from .settle import claim, claimed, reap


@case("C070", "a job is due when its time is the clock, and not before", verbs="promote state")
def due(lab: Lab) -> None:
    now = lab.now()
    lab.seed(lab.a, "schedule", score=now)
    lab.seed(lab.b, "schedule", score=now + 60_000)
    expect(lab.send("promote"), 1, "reply of PROMOTE")
    expect(lab.send("state", lab.a), b"pending", "STATE of a")
    expect(lab.send("state", lab.b), b"scheduled", "STATE of b")
    expect(lab.fields_of(lab.a), {"state": b"pending", "attempts": b"0", "payload": b"payload"}, "the row")
    expect(lab.scores("pending"), {lab.a: 0.0}, "pending")
    _moves_at_its_instant(lab, "promote", "schedule")


def _moves_at_its_instant(lab: Lab, verb: str, place: str) -> None:
    """The instant cannot be hit from outside; in a transaction the clock stands still."""
    job = lab.seed(lab.ids(1)[0], place, score=lab.now() + 60_000)
    for after, moved in ((1, 0), (0, 1)):
        replies = lab.at_once(lab.stamp(place, job, after), lab.command(verb, inline=True))
        expect(replies, [0, moved], f"{verb} of a score that is the clock + {after} ms")


@case("C071", "PROMOTE LIMIT takes the lowest due times", verbs="promote")
def limit(lab: Lab) -> None:
    jobs = lab.ids(5)
    for job, score in zip(jobs, (50, 10, 40, 20, 30), strict=False):
        lab.seed(job, "schedule", score=score)
    expect(lab.send("promote", "LIMIT", 2), 2, "reply of PROMOTE")
    expect(sorted(lab.scores("pending")), sorted([jobs[1], jobs[3]]), "pending")
    expect(lab.send("promote", "limit", 2), 2, "reply of the second PROMOTE")
    expect(list(lab.scores("schedule")), [jobs[0]], "schedule")


@case("C072", "a scheduled id without a row is removed and not counted", verbs="promote")
def stale(lab: Lab) -> None:
    lab.seed(lab.a, "schedule", score=1)
    lab.forget(lab.a)
    expect(lab.send("promote"), 0, "reply of PROMOTE")
    expect(lab.where(lab.a), [], "places of the id")
    expect(lab.settled_keys(lab.a), [], "keys of the id")


@case(
    "C073", "REAP gives a lapsed job back and remembers the token that is still good", verbs="enqueue claim reap state"
)
def lapsed(lab: Lab) -> None:
    claimed(lab, lab.a, lease=1)
    reap(lab, lab.a)
    expect(lab.send("state", lab.a), b"pending", "STATE")
    row = {"state": b"pending", "attempts": b"1", "payload": b"p", "reaped": b"1"}
    expect(lab.fields_of(lab.a), row, "the row")
    expect(lab.where(lab.a), ["pending"], "places of the job")
    expect(claim(lab, lab.a), "2", "next token")
    _moves_at_its_instant(lab, "reap", "active")


@case("C074", "a reaped job of a group returns to its lane and its slot is free", verbs="reap")
def grouped(lab: Lab) -> None:
    lab.limit("g", 1)
    lab.seed(lab.a, "active", group="g", score=1)
    lab.seed(lab.b, group="g")
    expect(lab.items("ring"), [], "ring at the ceiling")
    expect(lab.send("reap"), 1, "reply of REAP")
    expect(lab.where(lab.a), ["g:g:pending"], "places of the job")
    expect(lab.record("gactive"), {}, "gactive")
    expect(lab.items("ring"), [b"g"], "ring")
    expect(lab.members("lanes"), frozenset({b"g"}), "lanes")


@case("C075", "REAP MAX buries a job whose runs are used up", verbs="reap")
def dead(lab: Lab) -> None:
    lab.seed(lab.a, "active", attempts=2, score=1)
    lab.seed(lab.b, "active", attempts=3, score=2)
    expect(lab.send("reap", "MAX", 3), 2, "reply of REAP")
    expect(lab.where(lab.a), ["pending"], "places of the job with 2 runs")
    expect(lab.where(lab.b), ["dead"], "places of the job with 3 runs")
    row = {"state": b"dead", "attempts": b"3", "payload": b"payload", "last_error": b"lease expired"}
    expect(lab.fields_of(lab.b), row, "the row")
    expect(lab.record("metrics:failed"), {"count": b"1"}, "metrics:failed")


@case("C076", "runs below the floor do not count against MAX", verbs="claim reap")
def floor(lab: Lab) -> None:
    lab.seed(lab.a, attempts=3, fields={"floor": 3})
    expect(lab.send("claim", 1), [lab.a.encode(), b"payload", 4], "CLAIM")
    lab.lapse(lab.a)
    expect(lab.send("reap", "MAX", 3), 1, "reply of REAP")
    expect(lab.where(lab.a), ["pending"], "places of the job")


@case("C077", "REAP LIMIT takes the earliest deadlines", verbs="reap")
def reap_limit(lab: Lab) -> None:
    for job, score in ((lab.a, 30), (lab.b, 10), (lab.c, 20)):
        lab.seed(job, "active", score=score)
    expect(lab.send("reap", "LIMIT", 2), 2, "reply of the first REAP")
    expect(list(lab.scores("active")), [lab.a], "active")
    expect(lab.send("reap", "LIMIT", 2), 1, "reply of the second REAP")


@case("C078", "PROMOTE and REAP without work change and replicate nothing", verbs="promote reap")
def nothing(lab: Lab) -> None:
    for _ in range(2):
        with lab.unchanged("PROMOTE and REAP without work"):
            expect(lab.send("promote"), 0, "reply of PROMOTE")
            expect(lab.send("reap"), 0, "reply of REAP")
            expect(lab.send("reap", "MAX", 1, "LIMIT", 1), 0, "reply of REAP with options")
        lab.seed(lab.a, "schedule", score=lab.now() + LEASE)
        lab.seed(lab.b, "active")
