# SPDX-License-Identifier: BSD-3-Clause
"""COMPLETE, MCOMPLETE, RETRY, DELAY: how leases end."""

from __future__ import annotations

from ..case import case, expect, expect_between
from ..lab import LEASE, Lab

NOT_ACTIVE = "EMQSTATE job is not active"


def claimed(lab: Lab, job: str, payload: str = "p", lease: int = LEASE) -> str:
    """Enqueue and claim one job; returns its token."""
    expect(lab.send("enqueue", job, payload), 1, "ENQUEUE")
    return claim(lab, job, payload, lease)


def claim(lab: Lab, job: str, payload: str = "p", lease: int = LEASE) -> str:
    """Claim a job that must be the next one; returns its token."""
    expected = int(lab.fields_of(job)["attempts"]) + 1
    expect(lab.send("claim", lease), [job.encode(), payload.encode(), expected], "CLAIM")
    return str(expected)


def reap(lab: Lab, *jobs: str) -> None:
    """Let leases lapse and reap them."""
    lab.lapse(*jobs)
    expect(lab.send("reap"), len(jobs), "REAP")


@case("C048", "COMPLETE ends the job, counts it, and answers 0 ever after", verbs="enqueue claim complete")
def complete(lab: Lab) -> None:
    token = claimed(lab, lab.a)
    expect(lab.send("complete", lab.a, token), 1, "reply of COMPLETE")
    expect(lab.settled_keys(lab.a), [], "keys of the job")
    expect(lab.where(lab.a), [], "places of the job")
    expect(lab.record("metrics:completed"), {"count": b"1"}, "metrics:completed")
    with lab.unchanged("a second COMPLETE"):
        expect(lab.send("complete", lab.a, token), 0, "reply of a second COMPLETE")


@case("C049", "a token that is not the last one given is refused", verbs="enqueue claim complete")
def wrong_token(lab: Lab) -> None:
    claimed(lab, lab.a)
    for token in ("2", "01", "x", "", "0", "+1", " 1", "1 ", "1.0", "11", "-1"):
        lab.refused("EMQSTALE complete token mismatch", "complete", lab.a, token)


@case("C050", "COMPLETE takes all six subkeys of the job along", verbs="complete")
def subkeys(lab: Lab) -> None:
    lab.seed(lab.a, "active")
    lab.plain("RPUSH", lab.row(lab.a, "logs"), "line")
    lab.plain("SET", lab.row(lab.a, "lock"), "somebody")
    lab.plain("SET", lab.row(lab.a, "dependencies"), "0")
    for subkey in ("processed", "failed", "unsuccessful"):
        lab.plain("HSET", lab.row(lab.a, subkey), lab.b, "x")
    expect(len(lab.settled_keys(lab.a)), 7, "number of keys before")
    expect(lab.send("complete", lab.a, "1"), 1, "reply of COMPLETE")
    expect(lab.settled_keys(lab.a), [], "keys of the job")


@case("C051", "a lapsed lease, and a reaped one, still complete", verbs="enqueue claim reap complete")
def late(lab: Lab) -> None:
    first = claimed(lab, lab.a, lease=1)
    lab.lapse(lab.a)
    expect(lab.send("complete", lab.a, first), 1, "COMPLETE after the deadline")
    second = claimed(lab, lab.b, lease=1)
    reap(lab, lab.b)
    expect(lab.scores("pending"), {lab.b: 0.0}, "pending after REAP")
    expect(lab.send("complete", lab.b, second), 1, "COMPLETE after REAP")
    expect(lab.exists("pending"), False, "pending is there")


@case("C052", "after the next claim the old token is stale", verbs="enqueue claim reap complete")
def overtaken(lab: Lab) -> None:
    old = claimed(lab, lab.a, lease=1)
    reap(lab, lab.a)
    new = claim(lab, lab.a)
    lab.refused("EMQSTALE complete token mismatch", "complete", lab.a, old)
    expect(lab.send("complete", lab.a, new), 1, "COMPLETE with the new token")


@case("C053", "a job that was never claimed cannot be completed with token 0", verbs="enqueue complete")
def never_claimed(lab: Lab) -> None:
    lab.send("enqueue", lab.a, "p")
    lab.refused(NOT_ACTIVE, "complete", lab.a, "0")


@case(
    "C054",
    "a retried job cannot be completed, neither scheduled nor promoted",
    verbs="enqueue claim retry promote complete",
)
def retried(lab: Lab) -> None:
    token = claimed(lab, lab.a)
    expect(lab.send("retry", lab.a, token, 0, 3, "e"), b"scheduled", "RETRY")
    lab.refused(NOT_ACTIVE, "complete", lab.a, token)
    expect(lab.send("promote"), 1, "PROMOTE")
    lab.refused(NOT_ACTIVE, "complete", lab.a, token)


@case("C055", "a dead job is not settled again", verbs="enqueue claim retry complete delay")
def dead(lab: Lab) -> None:
    token = claimed(lab, lab.a)
    expect(lab.send("retry", lab.a, token, 0, 1, "e"), b"dead", "RETRY at the cap")
    lab.refused(NOT_ACTIVE, "complete", lab.a, token)
    lab.refused(NOT_ACTIVE, "retry", lab.a, token, 0, 1, "f")
    lab.refused(NOT_ACTIVE, "delay", lab.a, token, "IN", 0)


@case("C056", "MCOMPLETE answers each member for itself", verbs="mcomplete")
def many(lab: Lab) -> None:
    lab.seed(lab.a, "active")
    lab.seed(lab.b, "active")
    reply = lab.send("mcomplete", lab.a, "1", lab.b, "9", lab.c, "1", lab.a, "1")
    expect(reply, [1, -1, 0, 0], "reply of MCOMPLETE")
    expect(lab.settled_keys(lab.a), [], "keys of a")
    expect(lab.where(lab.b), ["active"], "places of b")
    expect(lab.record("metrics:completed"), {"count": b"1"}, "metrics:completed")


@case("C057", "RETRY below the cap puts the job off and keeps why", verbs="enqueue claim retry promote")
def retry(lab: Lab) -> None:
    token = claimed(lab, lab.a)
    before = lab.now()
    expect(lab.send("retry", lab.a, token, 100_000, 3, "e"), b"scheduled", "reply of RETRY")
    after = lab.now()
    expect_between(lab.scores("schedule")[lab.a], before + 100_000, after + 100_000, "due time")
    row = {"state": b"scheduled", "attempts": b"1", "payload": b"p", "last_error": b"e"}
    expect(lab.fields_of(lab.a), row, "the row")
    expect(lab.where(lab.a), ["schedule"], "places of the job")
    expect(lab.exists("metrics:failed"), False, "metrics:failed is there")
    token = claimed(lab, lab.b)
    expect(lab.send("retry", lab.b, token, 0, 3, "now"), b"scheduled", "reply of RETRY with delay 0")
    expect(lab.send("promote"), 1, "the next PROMOTE")
    expect(lab.where(lab.b), ["pending"], "places of the job with delay 0")


@case("C058", "a cap of 3 means exactly three runs", verbs="enqueue claim retry promote")
def cap(lab: Lab) -> None:
    lab.send("enqueue", lab.a, "p")
    words = []
    for run in range(3):
        token = claim(lab, lab.a)
        words.append(lab.send("retry", lab.a, token, 0, 3, f"error {run}"))
        lab.send("promote")
    expect(words, [b"scheduled", b"scheduled", b"dead"], "replies of RETRY")
    expect(lab.send("claim", LEASE), [], "CLAIM after the death")
    expect(lab.record("metrics:failed"), {"count": b"1"}, "metrics:failed")
    row = {"state": b"dead", "attempts": b"3", "payload": b"p", "last_error": b"error 2"}
    expect(lab.fields_of(lab.a), row, "the row")
    expect(lab.scores("dead"), {lab.a: 0.0}, "dead")


@case("C059", "a second RETRY with the same token is refused and counts nothing", verbs="enqueue claim retry")
def twice(lab: Lab) -> None:
    token = claimed(lab, lab.a)
    expect(lab.send("retry", lab.a, token, 1000, 3, "e"), b"scheduled", "first RETRY")
    lab.refused(NOT_ACTIVE, "retry", lab.a, token, 5000, 3, "f")


@case("C060", "RETRY and DELAY of a job that is gone are refused", verbs="retry delay")
def gone(lab: Lab) -> None:
    lab.refused("EMQSTALE job gone", "retry", lab.a, "1", 0, 3, "e")
    lab.refused("EMQSTALE job gone", "delay", lab.a, "1", "IN", 0)
    lab.refused("EMQSTALE job gone", "delay", lab.a, "1", "AT", 0)


@case("C061", "RETRY and DELAY name themselves when the token is wrong", verbs="enqueue claim retry delay")
def mismatch(lab: Lab) -> None:
    claimed(lab, lab.a)
    lab.refused("EMQSTALE retry token mismatch", "retry", lab.a, "2", 0, 3, "e")
    lab.refused("EMQSTALE delay token mismatch", "delay", lab.a, "2", "IN", 0)


@case("C062", "a reaped job that nobody claimed again can be retried once", verbs="enqueue claim reap retry promote")
def retry_after_reap(lab: Lab) -> None:
    token = claimed(lab, lab.a, lease=1)
    reap(lab, lab.a)
    expect(lab.send("retry", lab.a, token, 0, 3, "e"), b"scheduled", "RETRY after REAP")
    expect(lab.where(lab.a), ["schedule"], "places of the job")
    expect("reaped" in lab.fields_of(lab.a), False, "field reaped is there")
    expect(lab.send("promote"), 1, "PROMOTE")
    lab.refused(NOT_ACTIVE, "retry", lab.a, token, 0, 3, "e")


@case("C063", "DELAY is no failure: it uses up no run of the cap", verbs="enqueue claim delay promote retry")
def delay(lab: Lab) -> None:
    for cap_, word in ((1, b"dead"), (2, b"scheduled")):
        token = claimed(lab, lab.a)
        before = lab.now()
        expect(lab.send("delay", lab.a, token, "IN", 1), 1, "reply of DELAY")
        after = lab.now()
        row = {"state": b"scheduled", "attempts": b"1", "payload": b"p", "floor": b"1"}
        expect(lab.fields_of(lab.a), row, "the row after DELAY")
        expect_between(lab.scores("schedule")[lab.a], before + 1, after + 1, "due time")
        lab.reach(lab.scores("schedule")[lab.a])
        expect(lab.send("promote"), 1, "PROMOTE")
        expect(claim(lab, lab.a), "2", "token after DELAY")
        expect(lab.send("retry", lab.a, "2", 0, cap_, "e"), word, f"RETRY with max {cap_}")
        lab.anew()


@case("C064", "DELAY of a grouped job gives its slot back", verbs="delay gclaim")
def delay_grouped(lab: Lab) -> None:
    lab.limit("g", 1)
    lab.seed(lab.a, group="g")
    lab.seed(lab.b, group="g")
    expect(lab.send("gclaim", LEASE), [lab.a.encode(), b"payload", 1, b"g"], "GCLAIM")
    expect(lab.send("gclaim", LEASE), [], "GCLAIM at the ceiling")
    expect(lab.send("delay", lab.a, "1", "IN", 60_000), 1, "DELAY")
    expect(lab.record("gactive"), {}, "gactive")
    expect(lab.send("gclaim", LEASE), [lab.b.encode(), b"payload", 1, b"g"], "GCLAIM after DELAY")
