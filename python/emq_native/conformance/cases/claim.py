# SPDX-License-Identifier: BSD-3-Clause
"""CLAIM and MCLAIM: how jobs are lent."""

from __future__ import annotations

from ..case import case, expect, expect_between
from ..lab import LEASE, WRONGTYPE, Lab

CLAIMS = ("claim", "mclaim", "gclaim", "gwclaim", "gmclaim")


@case("C042", "an empty queue answers a claim with an empty array", verbs="claim")
def empty(lab: Lab) -> None:
    with lab.unchanged("CLAIM of an empty queue"):
        expect(lab.send("claim", LEASE), [], "reply of CLAIM")


@case("C043", "CLAIM hands out the oldest job under a lease", verbs="enqueue claim")
def lease(lab: Lab) -> None:
    lab.send("enqueue", lab.a, "p")
    before = lab.now()
    expect(lab.send("claim", LEASE), [lab.a.encode(), b"p", 1], "reply of CLAIM")
    after = lab.now()
    expect(list(lab.scores("active")), [lab.a], "active")
    expect_between(lab.scores("active")[lab.a], before + LEASE, after + LEASE, "deadline")
    expect(lab.fields_of(lab.a), {"state": b"active", "attempts": b"1", "payload": b"p"}, "the row")
    expect(lab.exists("pending"), False, "pending is there")


@case("C044", "a paused queue hands out nothing until it is resumed", verbs="claim")
def paused(lab: Lab) -> None:
    served = [verb for verb in CLAIMS if lab.serves(verb)]
    for verb in served:
        count = ["5"] if verb in ("mclaim", "gmclaim") else []
        lab.seed(lab.a, group="g" if verb.startswith("g") else None)
        if lab.serves("pause"):
            expect(lab.send("pause"), 1, "PAUSE")
        else:
            lab.pause()
        with lab.unchanged(f"{verb} of a paused queue"):
            expect(lab.send(verb, LEASE, *count), [], f"reply of {verb} while paused")
        if lab.serves("resume"):
            expect(lab.send("resume"), 1, "RESUME")
        else:
            lab.resume()
        reply = lab.send(verb, LEASE, *count)
        job = [lab.a.encode(), b"payload", 1, *([b"g"] if verb.startswith("g") else [])]
        expect(reply, job if verb in ("claim", "gclaim") else [job], f"reply of {verb} after the pause")
        lab.anew()


@case("C045", "CLAIM passes an id without a row, removes it, and serves the next", verbs="claim state")
def passed(lab: Lab) -> None:
    lab.seed(lab.a)
    lab.seed(lab.b)
    lab.forget(lab.a)
    expect(lab.send("claim", LEASE), [lab.b.encode(), b"payload", 1], "reply of CLAIM")
    expect(lab.where(lab.a), [], "places of a")
    expect(lab.send("state", lab.a), b"absent", "STATE of a")


@case("C046", "a row of another kind stops CLAIM until it is deleted", verbs="claim")
def poisoned(lab: Lab) -> None:
    lab.seed(lab.a)
    lab.seed(lab.b)
    with lab.wrong_kind(f"job:{lab.a}"):
        lab.refused(WRONGTYPE, "claim", LEASE)
    lab.forget(lab.a)
    expect(lab.send("claim", LEASE), [lab.b.encode(), b"payload", 1], "reply of CLAIM after the row is deleted")


@case("C047", "MCLAIM takes the oldest jobs, as many as there are, under one deadline", verbs="mclaim")
def many(lab: Lab) -> None:
    jobs = sorted(lab.seed(job) for job in lab.ids(5))
    expect(lab.send("mclaim", LEASE, 3), [[job.encode(), b"payload", 1] for job in jobs[:3]], "MCLAIM 3")
    expect(len(set(lab.scores("active").values())), 1, "number of deadlines")
    expect(lab.send("mclaim", LEASE, 5), [[job.encode(), b"payload", 1] for job in jobs[3:]], "MCLAIM 5 of 2")
    expect(lab.send("mclaim", LEASE, 5), [], "MCLAIM of an empty queue")
