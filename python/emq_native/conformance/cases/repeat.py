# SPDX-License-Identifier: BSD-3-Clause
"""REPEAT, UNREPEAT, FIRE: jobs that come again."""

from __future__ import annotations

from ..case import case, expect, expect_between
from ..lab import Lab


@case("C112", "a repeat is registered once and unregistered once", verbs="repeat unrepeat fire")
def register(lab: Lab) -> None:
    before = lab.now()
    expect(lab.send("repeat", "nightly", "EVERY", 10, "t"), 1, "reply of REPEAT")
    after = lab.now()
    expect_between(lab.scores("repeat")["nightly"], before + 10, after + 10, "next run")
    expect(lab.record("repeat:nightly"), {"every_ms": b"10", "template": b"t"}, "the repeat")
    with lab.unchanged("a second REPEAT"):
        expect(lab.send("repeat", "nightly", "EVERY", 99, "other", "AT", 5), 0, "reply of a second REPEAT")
    expect(lab.send("unrepeat", "nightly"), 1, "reply of UNREPEAT")
    expect((lab.exists("repeat"), lab.exists("repeat:nightly")), (False, False), "keys of the repeat are there")
    with lab.unchanged("a second UNREPEAT"):
        expect(lab.send("unrepeat", "nightly"), 0, "reply of a second UNREPEAT")
        expect(lab.send("fire", "nightly", 10, lab.a), 0, "FIRE of no repeat")
    expect(lab.send("repeat", "nightly", "every", 10, b"\0", "at", 12345), 1, "REPEAT AT")
    expect(lab.scores("repeat"), {"nightly": 12345.0}, "next run of REPEAT AT")
    for lost in ("repeat", "repeat:nightly"):
        lab.plain("DEL", lab.key(lost))
        expect(lab.send("unrepeat", "nightly"), 1, f"UNREPEAT without {lost}")
        lab.send("repeat", "nightly", "EVERY", 10, "t")


@case("C113", "FIRE of what is not due, or not moved on, does nothing", verbs="fire repeat")
def not_due(lab: Lab) -> None:
    due = lab.now() + 600_000
    lab.send("repeat", "nightly", "EVERY", 10, "t", "AT", due)
    with lab.unchanged("FIRE before the due time"):
        expect(lab.send("fire", "nightly", due + 10, lab.a), 0, "FIRE before the due time")
    lab.plain("ZADD", lab.key("repeat"), 1000, "nightly")
    with lab.unchanged("FIRE with next not after the due time"):
        expect(lab.send("fire", "nightly", 1000, lab.a), 0, "FIRE with next = t")
        expect(lab.send("fire", "nightly", 0, lab.a), 0, "FIRE with next < t")
    lab.plain("DEL", lab.key("repeat:nightly"))
    expect(lab.send("fire", "nightly", 2000, lab.a), 0, "FIRE of a name without its repeat")
    expect(lab.exists("repeat"), False, "the name is still there")


@case("C114", "of two pumps that saw the same due time one fires", verbs="fire repeat")
def one_fires(lab: Lab) -> None:
    lab.send("repeat", "nightly", "EVERY", 10, "t", "AT", 1000)
    expect(lab.send("fire", "nightly", 1010, lab.a), 1, "FIRE of the first pump")
    with lab.unchanged("the second FIRE"):
        expect(lab.send("fire", "nightly", 1010, lab.b), 0, "FIRE of the second pump")
        expect(lab.send("fire", "nightly", 1010, lab.a), 0, "FIRE of the first pump again")
        expect(lab.send("fire", "nightly", 1020, lab.a), 0, "FIRE with an id that is taken")
    expect(lab.scores("pending"), {lab.a: 0.0}, "pending")
    expect(lab.fields_of(lab.a), {"state": b"pending", "attempts": b"0", "payload": b"t"}, "the row")
    expect(lab.scores("repeat"), {"nightly": 1010.0}, "next run")
    expect(lab.send("fire", "nightly", 1020, lab.b), 1, "the next FIRE")
