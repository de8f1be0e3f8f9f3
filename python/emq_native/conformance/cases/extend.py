# SPDX-License-Identifier: BSD-3-Clause
"""EXTEND and MEXTEND: how leases are renewed."""

from __future__ import annotations

from ..case import case, expect, expect_between
from ..lab import LEASE, Lab
from .settle import claimed, reap


@case("C065", "an extended lease is not reaped at its old deadline", verbs="enqueue claim extend reap")
def longer(lab: Lab) -> None:
    token = claimed(lab, lab.a, lease=50)
    old = lab.scores("active")[lab.a]
    expect(lab.send("extend", lab.a, token, LEASE), 1, "reply of EXTEND")
    lab.reach(old + 50)
    with lab.unchanged("REAP of a live lease"):
        expect(lab.send("reap"), 0, "REAP after the old deadline")


@case("C066", "EXTEND sets the deadline, also to an earlier one", verbs="enqueue claim extend")
def shorter(lab: Lab) -> None:
    token = claimed(lab, lab.a)
    before = lab.now()
    expect(lab.send("extend", lab.a, token, 10), 1, "reply of EXTEND")
    expect_between(lab.scores("active")[lab.a], before + 10, lab.now() + 10, "deadline")


@case("C067", "a reaped job cannot be extended", verbs="enqueue claim reap extend")
def reaped(lab: Lab) -> None:
    token = claimed(lab, lab.a, lease=1)
    reap(lab, lab.a)
    lab.refused("EMQSTATE job is not active", "extend", lab.a, token, LEASE)


@case("C068", "EXTEND of a job that is gone answers -1, of a stale token it is refused", verbs="enqueue claim extend")
def gone(lab: Lab) -> None:
    with lab.unchanged("EXTEND without a row"):
        expect(lab.send("extend", lab.a, "1", LEASE), -1, "reply of EXTEND")
    claimed(lab, lab.a)
    lab.refused("EMQSTALE extend token mismatch", "extend", lab.a, "2", LEASE)
    lab.refused("EMQSTALE extend token mismatch", "extend", lab.a, "01", LEASE)


@case("C069", "MEXTEND answers exactly the ids that it did not extend", verbs="mextend reap")
def many(lab: Lab) -> None:
    lab.seed(lab.d, "active", score=1)
    expect(lab.send("reap"), 1, "REAP")
    lab.seed(lab.a, "active", score=5)
    lab.seed(lab.b, "active", score=6)
    before = lab.now()
    reply = lab.send("mextend", LEASE, lab.a, "1", lab.b, "2", lab.c, "1", lab.d, "1")
    expect(reply, [lab.b.encode(), lab.c.encode(), lab.d.encode()], "reply of MEXTEND")
    expect_between(lab.scores("active")[lab.a], before + LEASE, lab.now() + LEASE, "deadline of a")
    expect(lab.scores("active")[lab.b], 6.0, "deadline of b")
