# SPDX-License-Identifier: BSD-3-Clause
"""ENQUEUE, SCHEDULE, MENQUEUE: how jobs get in."""

from __future__ import annotations

from ..case import OWN_SERVER, case, expect, expect_between, expect_that
from ..lab import LEASE, Lab, M
from ..scenes import SCENES
from ..wire import Error


@case("C032", "ENQUEUE writes the row and lists the id in pending", verbs="enqueue")
def enqueue(lab: Lab) -> None:
    expect(lab.send("enqueue", lab.a, "p"), 1, "reply of ENQUEUE")
    expect(lab.fields_of(lab.a), {"state": b"pending", "attempts": b"0", "payload": b"p"}, "the row")
    expect(lab.scores("pending"), {lab.a: 0.0}, "pending")
    expect(len(lab.data()), 3 if lab.cluster else 2, "number of keys of the queue")


@case("C033", "an id that exists in any of the six places is a duplicate for every admission", verbs="enqueue schedule")
def duplicate(lab: Lab) -> None:
    lab.seed(lab.a, "pending")
    lab.seed(lab.b, "pending", group="g")
    lab.seed(lab.c, "active")
    lab.seed(lab.d, "schedule")
    dead, held = lab.ids(2)
    lab.seed(dead, "dead")
    lab.seed(held, "held")
    for job in (lab.a, lab.b, lab.c, lab.d, dead, held):
        with lab.unchanged(f"an admission of an id in {lab.where(job)}"):
            expect(lab.send("enqueue", job, "other"), 0, "reply of ENQUEUE")
            expect(lab.send("schedule", job, "other", "IN", 5), 0, "reply of SCHEDULE IN")
            expect(lab.send("schedule", job, "other", "AT", 5), 0, "reply of SCHEDULE AT")
            if lab.serves("genqueue"):
                expect(lab.send("genqueue", "h", job, "other"), 0, "reply of GENQUEUE")


@case("C034", "a payload of any bytes comes back as it went in", verbs="enqueue claim")
def any_bytes(lab: Lab) -> None:
    every_byte = bytes(range(256))
    payloads = [b"", b"a\0b", b"a\r\nb\r\n", every_byte, b"x" * (1 << 20)]
    jobs = lab.ids(len(payloads))
    for job, payload in zip(jobs, payloads, strict=False):
        expect(lab.send("enqueue", job, payload), 1, "reply of ENQUEUE")
    for job, payload in zip(jobs, payloads, strict=False):
        found = lab.send("claim", LEASE)
        expect_that(
            found == [job.encode(), payload, 1], f"a payload of {len(payload)} bytes comes back", str(found)[:200]
        )


@case(
    "C035", "an id is free again after completion, and its new life starts with token 1", verbs="enqueue claim complete"
)
def free_again(lab: Lab) -> None:
    expect(lab.send("enqueue", lab.a, "one"), 1, "first ENQUEUE")
    expect(lab.send("claim", LEASE), [lab.a.encode(), b"one", 1], "first CLAIM")
    expect(lab.send("complete", lab.a, "1"), 1, "COMPLETE")
    expect(lab.send("enqueue", lab.a, "two"), 1, "second ENQUEUE")
    expect(lab.send("claim", LEASE), [lab.a.encode(), b"two", 1], "second CLAIM")


@case("C036", "jobs are claimed in the order of their minting, not of their arrival", verbs="enqueue claim")
def mint_order(lab: Lab) -> None:
    for job in (lab.c, lab.a, lab.b):
        lab.send("enqueue", job, "p")
    for job in (lab.a, lab.b, lab.c):
        expect(lab.send("claim", LEASE), [job.encode(), b"p", 1], "CLAIM")


@case(
    "C037",
    "SCHEDULE IN counts from the clock of the server, and a job that is not due is not claimed",
    verbs="schedule claim",
)
def schedule_in(lab: Lab) -> None:
    before = lab.now()
    expect(lab.send("schedule", lab.a, "p", "IN", 5000), 1, "reply of SCHEDULE")
    after = lab.now()
    expect(sorted(lab.scores("schedule")), [lab.a], "schedule")
    expect_between(lab.scores("schedule")[lab.a], before + 5000, after + 5000, "due time")
    expect(lab.fields_of(lab.a), {"state": b"scheduled", "attempts": b"0", "payload": b"p"}, "the row")
    expect(lab.send("claim", LEASE), [], "CLAIM while the job waits")


@case("C038", "SCHEDULE AT takes any instant up to the largest and keeps it exactly", verbs="schedule promote")
def schedule_at(lab: Lab) -> None:
    expect(lab.send("schedule", lab.a, "p", "AT", 0), 1, "SCHEDULE AT 0")
    expect(lab.send("schedule", lab.b, "p", "AT", M), 1, "SCHEDULE AT the largest instant")
    expect(lab.plain("ZSCORE", lab.key("schedule"), lab.b), b"9007199254740991", "score of b")
    expect(lab.send("promote"), 1, "PROMOTE")
    expect(lab.scores("pending"), {lab.a: 0.0}, "pending")
    expect(lab.plain("ZSCORE", lab.key("schedule"), lab.b), b"9007199254740991", "score of b after PROMOTE")


@case("C039", "MENQUEUE admits in order and answers each member for itself", verbs="menqueue")
def many(lab: Lab) -> None:
    lab.seed(lab.b, payload="old")
    reply = lab.send("menqueue", lab.a, "x", lab.b, "y", lab.c, "z", lab.a, "w")
    expect(reply, [1, 0, 1, 0], "reply of MENQUEUE")
    for job, payload in ((lab.a, b"x"), (lab.b, b"old"), (lab.c, b"z")):
        expect(lab.fields_of(job)["payload"], payload, f"payload of {job}")
    expect(lab.scores("pending"), {lab.a: 0.0, lab.b: 0.0, lab.c: 0.0}, "pending")


@case("C040", "MENQUEUE refuses more members than it can bound", verbs="menqueue")
def too_many(lab: Lab) -> None:
    words = [word for job in lab.ids(10_001) for word in (job, "x")]
    lab.refused("ERR at most 10000 members in one call", "menqueue", *words)
    reply = lab.send("menqueue", *words[:20_000])
    expect(reply, [1] * 10_000, "reply of MENQUEUE with 10000 members")
    expect(len(lab.scores("pending")), 10_000, "length of pending")


@case(
    "C041",
    "with the memory full every growing verb is refused and settling goes on",
    needs=OWN_SERVER,
    verbs="complete",
)
def full(lab: Lab) -> None:
    for scene in SCENES:
        if not scene.row.grows or not lab.serves(scene.verb):
            continue
        words = scene.prepare(lab)
        lab.load(scene.verb)
        with lab.unchanged(f"{scene} with the memory full"), lab.full_memory():
            reply = lab.send(scene.verb, *words)
        expect_that(isinstance(reply, Error) and reply.code == "OOM", f"{scene} answers OOM", reply)
        lab.anew()
    lab.seed(lab.a, "active")
    lab.load("complete")
    with lab.full_memory():
        expect(lab.send("complete", lab.a, "1"), 1, "COMPLETE with the memory full")
