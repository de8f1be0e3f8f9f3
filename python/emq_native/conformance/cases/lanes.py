# SPDX-License-Identifier: BSD-3-Clause
"""Lanes: groups that are served in turn, with ceilings, weights and pauses."""

from __future__ import annotations

from ..case import case, expect, expect_that
from ..lab import LEASE, WRONGTYPE, Lab
from ..play import Play
from ..wire import Reply


def quadruple(job: str, group: str, token: int = 1, payload: bytes = b"payload") -> list[Reply]:
    return [job.encode(), payload, token, group.encode()]


def fill(lab: Lab, group: str, count: int) -> list[str]:
    """Enqueue jobs into a group; returns their ids, oldest first."""
    jobs = lab.ids(count)
    for job in jobs:
        expect(lab.send("genqueue", group, job, "payload"), 1, "GENQUEUE")
    return jobs


def ring(lab: Lab) -> list[str]:
    return [group.decode() for group in lab.items("ring")]


@case("C085", "lanes are served in turn", verbs="genqueue gclaim")
def rotation(lab: Lab) -> None:
    g = fill(lab, "g", 2)
    h = fill(lab, "h", 2)
    for job, group in ((g[0], "g"), (h[0], "h"), (g[1], "g"), (h[1], "h")):
        expect(lab.send("gclaim", LEASE), quadruple(job, group), "GCLAIM")
    expect(lab.send("gclaim", LEASE), [], "GCLAIM of empty lanes")
    expect(lab.record("gactive"), {"g": b"2", "h": b"2"}, "gactive")
    expect((ring(lab), lab.members("lanes")), ([], frozenset()), "ring and lanes")


@case("C086", "a lane that enters the ring leaves one wake token, and wake keeps at most 64", verbs="genqueue gdrain")
def wake(lab: Lab) -> None:
    fill(lab, "g", 2)
    expect(ring(lab), ["g"], "ring")
    expect(lab.items("wake"), [b"1"], "wake")
    row = {"state": b"pending", "attempts": b"0", "payload": b"payload", "group": b"g"}
    job = lab.ids(1)[0]
    lab.send("genqueue", "g", job, "payload")
    expect(lab.fields_of(job), row, "the row")
    for number in range(100):
        fill(lab, f"lane{number}", 1)
    expect(lab.items("wake"), [b"1"] * 64, "wake")


@case(
    "C087", "a parked group collects jobs and serves none until it is resumed", verbs="genqueue gclaim gpause gresume"
)
def parked(lab: Lab) -> None:
    expect(lab.send("gpause", "g"), 1, "GPAUSE")
    [job] = fill(lab, "g", 1)
    expect(ring(lab), [], "ring while parked")
    with lab.unchanged("GCLAIM of a parked lane"):
        expect(lab.send("gclaim", LEASE), [], "GCLAIM while parked")
    expect(lab.send("gresume", "g"), 1, "GRESUME")
    expect(ring(lab), ["g"], "ring after GRESUME")
    expect(lab.exists("paused"), False, "paused is there")
    expect(lab.send("gclaim", LEASE), quadruple(job, "g"), "GCLAIM after GRESUME")


@case("C088", "a group at its ceiling is not served until a job of it ends", verbs="genqueue gclaim glimit complete")
def ceiling(lab: Lab) -> None:
    expect(lab.send("glimit", "g", 1), 1, "GLIMIT")
    first, second = fill(lab, "g", 2)
    expect(lab.send("gclaim", LEASE), quadruple(first, "g"), "first GCLAIM")
    expect(ring(lab), [], "ring at the ceiling")
    with lab.unchanged("GCLAIM at the ceiling"):
        expect(lab.send("gclaim", LEASE), [], "second GCLAIM")
    expect(lab.send("complete", first, "1"), 1, "COMPLETE")
    expect(ring(lab), ["g"], "ring after COMPLETE")
    expect(lab.send("gclaim", LEASE), quadruple(second, "g"), "GCLAIM after COMPLETE")


@case(
    "C089",
    "a ceiling below the running jobs stops claims only, and its end offers the lane at once",
    verbs="glimit complete",
)
def lowered(lab: Lab) -> None:
    running = [lab.seed(job, "active", group="g") for job in lab.ids(3)]
    lab.seed(lab.d, group="g")
    lab.lowered.add("g")
    expect(lab.send("glimit", "g", 2), 1, "GLIMIT 2")
    for job, offered in zip(running, ([], ["g"]), strict=False):
        expect(ring(lab), [], f"ring with {lab.record('gactive')}")
        expect(lab.send("complete", job, "1"), 1, "COMPLETE")
        expect(ring(lab), offered, f"ring with {lab.record('gactive')}")
    expect(lab.send("glimit", "g", 1), 1, "GLIMIT 1")
    expect(ring(lab), [], "ring at the ceiling")
    expect(lab.send("glimit", "g", 0), 1, "GLIMIT 0")
    expect(ring(lab), ["g"], "ring without a ceiling")
    expect(lab.exists("glimit"), False, "glimit is there")


@case("C090", "a lane of stale entries is cleaned and the next one served in the same call", verbs="gclaim")
def stale(lab: Lab) -> None:
    for job in (lab.a, lab.b):
        lab.seed(job, group="g")
        lab.forget(job)
    lab.seed(lab.c, group="h")
    expect(lab.send("gclaim", LEASE), quadruple(lab.c, "h"), "GCLAIM")
    expect(lab.scores("g:g:pending"), {}, "the cleaned lane")
    expect((ring(lab), lab.members("lanes")), ([], frozenset()), "ring and lanes")


@case("C091", "GWCLAIM takes as many as weight, ceiling and backlog allow", verbs="genqueue gwclaim gweight glimit")
def weight(lab: Lab) -> None:
    g = fill(lab, "g", 3)
    expect(lab.send("gweight", "g", 3), 1, "GWEIGHT")
    expect(lab.send("glimit", "g", 2), 1, "GLIMIT")
    expect(lab.send("gwclaim", LEASE), [quadruple(job, "g") for job in g[:2]], "GWCLAIM, weight 3, ceiling 2")
    h = fill(lab, "h", 2)
    lab.send("gweight", "h", 3)
    expect(lab.send("gwclaim", LEASE), [quadruple(job, "h") for job in h], "GWCLAIM, weight 3, backlog 2")
    i = fill(lab, "i", 2)
    expect(lab.send("gwclaim", LEASE), [quadruple(i[0], "i")], "GWCLAIM without a weight")
    expect(lab.send("gweight", "h", 0), 1, "GWEIGHT 0")
    expect(lab.record("gweight"), {"g": b"3"}, "gweight")
    for text in (b"x", b"0", b"-3", b"1.5", b"9" * 20):
        lab.plain("HSET", lab.key("gweight"), "i", text)
        [job] = fill(lab, "i", 1)
        reply = lab.send("gwclaim", LEASE)
        expect_that(
            isinstance(reply, list) and len(reply) == 1, f"an unsound weight {text!r} counts as none", (job, reply)
        )


@case("C092", "GMCLAIM takes the oldest jobs of one lane under one deadline", verbs="genqueue gmclaim glimit")
def many(lab: Lab) -> None:
    lab.send("glimit", "g", 3)
    jobs = fill(lab, "g", 8)
    expect(lab.send("gmclaim", LEASE, 10), [quadruple(job, "g") for job in jobs[:3]], "GMCLAIM")
    expect(len(set(lab.scores("active").values())), 1, "number of deadlines")
    expect(lab.record("gactive"), {"g": b"3"}, "gactive")


@case("C093", "every way out of a lease gives the slot back and offers the lane", verbs="complete retry reap")
def ways_out(lab: Lab) -> None:
    ways: dict[str, tuple[list[str | int], Reply]] = {
        "complete": (["1"], 1),
        "retry": (["1", 0, 1, "e"], b"dead"),
        "delay": (["1", "IN", 60_000], 1),
        "remove": (["FORCE"], 1),
    }
    for verb, (words, reply) in ways.items():
        if lab.serves(verb):
            _occupied(lab)
            expect(lab.send(verb, lab.a, *words), reply, f"reply of {verb}")
            _offered(lab, verb)
    for verb, more in (("reap", ["MAX", "1"]), ("reap", []), ("greap", ["MAX", "1"]), ("greap", [])):
        if lab.serves(verb):
            _occupied(lab)
            expect(lab.send(verb, *(["g"] if verb == "greap" else []), *more), 1, f"reply of {verb}")
            _offered(lab, f"{verb} {more}")


def _occupied(lab: Lab) -> None:
    lab.limit("g", 1)
    lab.seed(lab.a, "active", group="g", score=1)
    lab.seed(lab.b, group="g")
    expect((ring(lab), lab.record("gactive")), ([], {"g": b"1"}), "ring and gactive at the ceiling")


def _offered(lab: Lab, what: str) -> None:
    expect((ring(lab), lab.record("gactive")), (["g"], {}), f"ring and gactive after {what}")
    lab.anew()


@case("C094", "GREASSIGN moves a waiting job and keeps its place in the order", verbs="greassign")
def reassign(lab: Lab) -> None:
    flat, active = lab.ids(2)
    lab.seed(lab.a, group="h")
    lab.seed(lab.b, group="g")
    lab.seed(lab.c, group="h")
    lab.seed(flat)
    lab.seed(active, "active", group="g")
    expect(lab.send("greassign", lab.b, "h"), 1, "reply of GREASSIGN")
    expect(lab.fields_of(lab.b)["group"], b"h", "group of the job")
    expect(list(lab.scores("g:h:pending")), [lab.a, lab.b, lab.c], "the lane of h")
    expect(lab.members("lanes"), frozenset({b"h"}), "lanes")
    expect(ring(lab), ["h"], "ring")
    for job, group, reply in ((lab.b, "h", 0), (flat, "h", -1), (active, "h", -2), (active, "g", 0), (lab.d, "g", -1)):
        with lab.unchanged(f"GREASSIGN that answers {reply}"):
            expect(lab.send("greassign", job, group), reply, "reply of GREASSIGN")
    for place in ("schedule", "dead"):
        job = lab.seed(lab.ids(1)[0], place, group="g")
        with lab.unchanged(f"GREASSIGN of a job in {place}"):
            expect(lab.send("greassign", job, "h"), -2, f"GREASSIGN of a job in {place}")
    with lab.wrong_kind("g:k:pending"):
        lab.refused(WRONGTYPE, "greassign", lab.b, "k")
    lab.seed(lab.d, group="i")
    with lab.wrong_kind("g:i:pending"):
        lab.refused(WRONGTYPE, "greassign", lab.d, "h")


@case("C095", "a reaped job that was moved is still settled by its token", verbs="reap greassign complete")
def reassigned(lab: Lab) -> None:
    lab.seed(lab.a, "active", group="g", score=1)
    expect(lab.send("reap"), 1, "REAP")
    expect(lab.send("greassign", lab.a, "h"), 1, "GREASSIGN")
    expect(lab.send("complete", lab.a, "1"), 1, "COMPLETE")
    expect((ring(lab), lab.members("lanes")), ([], frozenset()), "ring and lanes")


@case("C096", "GDRAIN deletes the waiting jobs of one group only", verbs="gdrain")
def drain(lab: Lab) -> None:
    waiting = [lab.seed(job, group="g") for job in lab.ids(3)]
    lab.plain("RPUSH", lab.row(waiting[0], "logs"), "line")
    active = lab.seed(lab.a, "active", group="g")
    other = lab.seed(lab.b, group="h")
    for deleted in (2, 1, 0):
        expect(lab.send("gdrain", "g", "LIMIT", 2), deleted, "reply of GDRAIN")
    expect([lab.settled_keys(job) for job in waiting], [[], [], []], "keys of the deleted jobs")
    expect((lab.where(active), lab.where(other)), (["active"], ["g:h:pending"]), "places of the others")
    expect((ring(lab), lab.members("lanes")), (["h"], frozenset({b"h"})), "ring and lanes")


@case("C097", "GREAP reaps the leases of one group only", verbs="greap")
def reap(lab: Lab) -> None:
    lab.seed(lab.a, "active", group="g", score=3)
    lab.seed(lab.b, "active", group="h", score=1)
    lab.seed(lab.c, "active", score=2)
    live = lab.seed(lab.d, "active", group="g")
    expect(lab.send("greap", "g"), 1, "reply of GREAP")
    expect(lab.where(lab.a), ["g:g:pending"], "places of the lapsed job of g")
    expect(lab.fields_of(lab.a)["reaped"], b"1", "field reaped")
    expect(sorted(lab.scores("active")), sorted([lab.b, lab.c, live]), "active")
    expect(lab.send("greap", "h", "MAX", 1), 1, "reply of GREAP MAX")
    expect(lab.where(lab.b), ["dead"], "places of the job of h")
    expect(lab.fields_of(lab.b)["last_error"], b"lease expired", "last_error")


@case("C098", "GCOUNTS answers all groups by bytes, or those named in their order", verbs="gcounts")
def counts(lab: Lab) -> None:
    for group, waiting, active in (("h", 2, 0), ("B", 0, 1), ("a", 1, 2), ("parked", 1, 0)):
        for job in lab.ids(waiting):
            lab.seed(job, group=group)
        for job in lab.ids(active):
            lab.seed(job, "active", group=group)
    lab.park("parked")
    with lab.unchanged("GCOUNTS"):
        expect(lab.send("gcounts"), [[b"B", 0, 1], [b"a", 1, 2], [b"h", 2, 0], [b"parked", 1, 0]], "GCOUNTS")
        expect(
            lab.send("gcounts", "h", "x", "a", "h"), [[b"h", 2, 0], [b"x", 0, 0], [b"a", 1, 2], [b"h", 2, 0]], "named"
        )
    lab.anew()
    expect(lab.send("gcounts"), [], "GCOUNTS of an empty queue")


@case("C099", "after every command ring, lanes and gactive are exactly what the data say", verbs="genqueue gclaim")
def random_play(lab: Lab) -> None:
    play = Play(lab, seed=99)
    for number in range(300):
        verb, words, reply = play.step()
        findings = [str(finding) for finding in lab.audit()]
        expect(findings, [], f"audit after call {number}: {verb} {words!r} -> {reply!r}")
