# SPDX-License-Identifier: BSD-3-Clause
"""Ids, syntax, numbers, and the order in which a call is refused."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Iterator
from dataclasses import replace

from ... import ids, nodes
from ...errors import InvalidId
from ..case import ONCE, Mismatch, case, expect, expect_that
from ..lab import LEASE, WRONGTYPE, Lab
from ..scenes import LANE_KEYS, NATIVE_SCENES, NUMBERS, PLACE_KEYS, READS, SCENES, VERBS, Scene, Verb, fill
from ..wire import Error, Word

NAMESPACE = "EMQKIND job id must be JOB-namespaced"
SHAPE = "EMQKIND job id must be 14 bytes: JOB and 11 base62 digits"
QUEUE_KEY = "ERR queue key must be emq:{name}, name of 1 to 128 of A-Z a-z 0-9 . _ -"
GROUP = "ERR group must be 1 to 64 of A-Z a-z 0-9 . _ -"
NAME = "ERR name must be 1 to 128 of A-Z a-z 0-9 . _ -"
SYNTAX = "ERR syntax error"
DAMAGED = "EMQSTATE job row is damaged"

VALUES = (
    (0, "00000000000", 1704067200000, 0, 0, 0),
    (1, "00000000001", 1704067200000, 0, 1, 2466077478),
    (61, "0000000000z", 1704067200000, 0, 61, 3864657888),
    (62, "00000000010", 1704067200000, 0, 62, 274485891),
    (3843, "000000000zz", 1704067200000, 0, 3843, 2833379920),
    (3844, "00000000100", 1704067200000, 0, 3844, 3688629527),
    (4095, "00000000143", 1704067200000, 0, 4095, 1721934925),
    (4096, "00000000144", 1704067200000, 1, 0, 1437757290),
    (4194303, "0000000Hb83", 1704067200000, 1023, 4095, 1052680694),
    (4194304, "0000000Hb84", 1704067200001, 0, 0, 1237166769),
    (274557032793636864, "0KHTOWnGLuC", 1769526697641, 0, 0, 234878118),
    (320636799581945856, "0NgWEfAEJfs", 1780512970164, 0, 0, 3694611501),
    (209715201620567, "000xY9Wvvcd", 1704117200000, 395, 2647, 2510208562),
    (132633958809604096, "09nSpDrNxgm", 1735689600000, 1, 0, 3351300897),
    (192656126771228672, "0EEMl9I7Qw4", 1750000000000, 7, 0, 964520913),
    (192656126771228673, "0EEMl9I7Qw5", 1750000000000, 7, 1, 745596688),
    (192656126771232767, "0EEMl9I7S07", 1750000000000, 7, 4095, 511585757),
    (192656126775422976, "0EEMl9IP248", 1750000000001, 7, 0, 1933295246),
    (264905529757794303, "0JZGkP9AMvv", 1767225600000, 1023, 4095, 3097701999),
    (319436884017152000, "0Nb1VTbfnu4", 1780226888000, 0, 0, 2995352421),
    (9223372036854775807, "AzL8n0Y58m7", 3903090455551, 1023, 4095, 2186628710),
)

UNSOUND = {
    "range": ("USRAzL8n0Y58m8", "JOBB0000000000", "USRzzzzzzzzzzz"),
    "charset": ("JOBAzL8n0Y58m!", "USR0KHTOWnGL!C"),
    "namespace": ("usr0KHTOWnGLuC", "U1R0KHTOWnGLuC", "12345678901234"),
    "length": ("USR0KHTOWnGLu", "USR0KHTOWnGLuCx", "JOB0EEMl9I7Qw", ""),
}

FOREIGN_IDS = (
    "ORD0EEMl9I7Qw4",
    "ORD",
    "",
    "job0EEMl9I7Qw4",
    "Job0EEMl9I7Qw4",
    "JO",
    "JOC0EEMl9I7Qw4",
    "\0OB0EEMl9I7Qw4",
)
BAD_IDS = (
    "JOB0EEMl9I7Qw",
    "JOB0EEMl9I7Qw44",
    "JOBB0000000000",
    "JOB0EEMl9!7Qw4",
    "JOBAzL8n0Y58m!",
    "JOBAzL8n0Y58m8",
    "JOB",
    "JOB???????????",
    "JOB0EEMl9I7Qw\n",
    "JOB0EEMl9I7Qw4\n",
    "JOB0EEMl9-7Qw4",
    "JOB0EEMl9_7Qw4",
    "JOB0EEMl9 7Qw4",
    "JOB0EEMl\0I7Qw4",
    "JOB0EEMl9I7\uff17",
)

BAD_QUEUE_KEYS = (
    "q",
    "emq:{}",
    "emq:{emq}",
    "emq:{a b}",
    "emq:{q}x",
    "emq:{" + "x" * 129 + "}",
    "",
    "emq:{q",
    "emq:q",
    " emq:{q}",
    "emq:{q}\n",
    "EMQ:{q}",
    "emq:{{q}}",
    "emq:{q\0}",
    "emq:{q:r}",
    "{q}",
)


@case("C016", "the vectors decode and encode as listed", needs=ONCE)
def vectors(_: Lab) -> None:
    for value, digits, ms, node, sequence, hash32 in VALUES:
        for space in ("JOB", "USR"):
            decoded = ids.BrandedId(space + digits)
            expect((decoded.namespace, decoded.value), (space, value), f"decode {space}{digits}")
            expect((decoded.ms, decoded.node, decoded.sequence), (ms, node, sequence), f"parts of {digits}")
            expect(decoded.hash32, hash32, f"hash32 of {digits}")
            expect(str(ids.BrandedId.of(space, value)), space + digits, f"encode {value}")
    for reason, texts in UNSOUND.items():
        for text in texts:
            try:
                ids.BrandedId(text)
            except InvalidId as error:
                expect(error.reason, reason, f"why {text!r} is refused")
            else:
                raise Mismatch(f"decode {text!r}", reason, "no error")


@case("C017", "a fixed clock and node mint the ids of the vector", needs=ONCE)
def mint_vector(_: Lab) -> None:
    mint = ids.Mint(clock=lambda: 1750000000000, acquire=lambda _: nodes.configured(7))
    minted = [mint() for _ in range(4096)]
    found = (minted[0], minted[4094], minted[4095])
    expect(found, ("JOB0EEMl9I7Qw5", "JOB0EEMl9I7S07", "JOB0EEMl9IP248"), "ids 1, 4095 and 4096")


@case("C018", "ids of all threads keep increasing when the clock steps back", needs=ONCE)
def clock_steps_back(_: Lab) -> None:
    now = [1750000000000]
    mint = ids.Mint(clock=lambda: now[0], acquire=lambda _: nodes.configured(7))
    minted: list[list[str]] = [[] for _ in range(8)]

    def work(mine: list[str]) -> None:
        for number in range(10_000):
            if number == 5_000:
                now[0] = 1750000000000 - 10_000
            mine.append(mint())

    threads = [threading.Thread(target=work, args=(mine,)) for mine in minted]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for mine in minted:
        expect_that(all(one < other for one, other in itertools.pairwise(mine)), "ids of one thread increase")
    expect(len({job for mine in minted for job in mine}), 80_000, "number of different ids")


@case("C019", "parent and child of a fork mint different, increasing ids", needs=ONCE)
def fork(_: Lab) -> None:
    first = ids.mint()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            with os.fdopen(writer, "w") as out:
                out.write(" ".join(ids.mint() for _ in range(10_000)))
        finally:
            os._exit(0)
    os.close(writer)
    own = [ids.mint() for _ in range(10_000)]
    with os.fdopen(reader) as source:
        other = source.read().split(" ")
    os.waitpid(child, 0)
    expect(len(other), 10_000, "number of ids of the child")
    expect(len({first, *own, *other}), 20_001, "number of different ids")
    for sequence in (own, other):
        pairs = zip([first, *sequence], sequence, strict=False)
        expect_that(all(one < next_one for one, next_one in pairs), "each sequence increases")


def served(lab: Lab) -> Iterator[Verb]:
    return (verb for verb in VERBS.values() if lab.serves(verb.name) and verb.name != "emq.version")


@case("C020", "every verb refuses an id of another namespace")
def namespace(lab: Lab) -> None:
    for verb in served(lab):
        for form in verb.slots("id"):
            for text in FOREIGN_IDS:
                lab.refused(NAMESPACE, verb.name, *fill(form, lab, id=text))


@case("C021", "every verb refuses an id of another shape")
def shape(lab: Lab) -> None:
    for verb in served(lab):
        for form in verb.slots("id"):
            for text in BAD_IDS:
                lab.refused(SHAPE, verb.name, *fill(form, lab, id=text))


@case("C022", "one bad id among many refuses the whole call", verbs="menqueue")
def one_bad_id(lab: Lab) -> None:
    lab.refused(NAMESPACE, "menqueue", lab.a, "x", "ORD0EEMl9I7Qw4", "y")
    expect(lab.exists(f"job:{lab.a}"), False, "the row of a exists")
    if lab.serves("mcomplete"):
        lab.seed(lab.a, "active")
        lab.refused(SHAPE, "mcomplete", lab.a, "1", "JOBx", "1")
        lab.refused(NAMESPACE, "mextend", LEASE, lab.a, "1", "x", "1")


@case("C023", "every verb refuses a queue key that is none")
def queue_key(lab: Lab) -> None:
    for verb in served(lab):
        for key in BAD_QUEUE_KEYS:
            with lab.unchanged(f"{verb.name} of {key!r}"):
                reply = lab.send(verb.name, *fill(verb.forms[0], lab), queue=key)
            if lab.cluster and isinstance(reply, Error) and reply.code == "MOVED":
                continue
            expect(reply, Error(QUEUE_KEY), f"reply of {verb.name} of {key!r}")
    if not lab.cluster and lab.serves("counts"):
        reply = lab.send("counts", queue="emq:{" + "x" * 128 + "}")
        expect_that(not isinstance(reply, Error), "a name of 128 bytes is accepted", reply)


OPTIONS: dict[str, tuple[str, tuple[tuple[str, ...], ...]]] = {
    "complete": ("id token", (("RESULT", "r"),)),
    "promote": ("", (("LIMIT", "5"),)),
    "reap": ("", (("LIMIT", "5"), ("MAX", "5"))),
    "gdrain": ("group", (("LIMIT", "5"),)),
    "greap": ("group", (("LIMIT", "5"), ("MAX", "5"))),
    "drain": ("", (("SCHEDULED",), ("LIMIT", "5"))),
    "obliterate": ("", (("FORCE",), ("LIMIT", "5"))),
    "remove": ("id", (("FORCE",),)),
    "log": ("id line", (("KEEP", "5"),)),
    "repeat": ("name EVERY every template", (("AT", "5"),)),
    "next": (
        "lease",
        (("COUNT", "5"), ("FROM", "FLAT"), ("BLOCK", "5"), ("PROMOTE", "5"), ("REAP", "5"), ("MAX", "5")),
    ),
}
"""Verbs with options: the call without them, and each option with its value."""


@case("C024", "an unknown option, one given twice, or one without its value is a syntax error")
def syntax(lab: Lab) -> None:
    for verb, (form, options) in OPTIONS.items():
        if not lab.serves(verb):
            continue
        base = fill(form, lab)
        lab.refused(SYNTAX, verb, *base, "BOGUS")
        lab.refused(SYNTAX, verb, *base, "BOGUS", "5")
        lab.refused(SYNTAX, verb, *base, "")
        for option in options:
            lab.refused(SYNTAX, verb, *base, *option, *option)
            lab.refused(SYNTAX, verb, *base, *option, option[0].lower(), *option[1:])
            lab.refused(SYNTAX, verb, *base, *option, "5")
            if len(option) == 2:
                lab.refused(SYNTAX, verb, *base, option[0])
    lab.refused(SYNTAX, "schedule", lab.a, "p", "ON", "5")
    lab.refused(SYNTAX, "schedule", lab.a, "p", "5", "IN")
    lab.refused(SYNTAX, "delay", lab.a, "1", "ON", "5")
    if lab.serves("repeat"):
        lab.refused(SYNTAX, "repeat", "n", "EACH", "5", "t")


@case("C025", "option words are taken in any letter case", verbs="schedule promote reap")
def letter_case(lab: Lab) -> None:
    expect(lab.send("schedule", lab.a, "p", "in", "5"), 1, "SCHEDULE in")
    expect(lab.send("schedule", lab.b, "p", "At", "5"), 1, "SCHEDULE At")
    expect_that(isinstance(lab.send("promote", "limit", "5"), int), "PROMOTE limit")
    expect(lab.send("reap", "Limit", "5", "mAX", "5"), 0, "REAP Limit mAX")


BAD_NUMBERS = ("-1", "01", "+5", "5.0", " 5", "5 ", "1e3", "0x10", "9" * 20, "", "-0", "nan", "inf", "x", "5\0", "--5")


@case("C026", "a lease is a plain number within its bounds, also with the clock added", verbs="claim")
def lease(lab: Lab) -> None:
    lab.seed(lab.a)
    for text in ("0", *BAD_NUMBERS, "9007199254740991", "9007199254740992", "18446744073709551617"):
        lab.refused("ERR lease must be an integer between 1 and 9007199254740991", "claim", text)


@case("C027", "a LIMIT is at least 1 and at most 10000", verbs="promote reap")
def limits(lab: Lab) -> None:
    for verb, form in (
        ("promote", ""),
        ("reap", ""),
        ("drain", ""),
        ("obliterate", ""),
        ("gdrain", "g"),
        ("greap", "g"),
    ):
        if not lab.serves(verb):
            continue
        for text in ("0", "10001", *BAD_NUMBERS):
            lab.refused("ERR limit must be an integer between 1 and 10000", verb, *form.split(), "LIMIT", text)
    expect(lab.send("promote", "LIMIT", "1"), 0, "PROMOTE LIMIT 1")
    expect(lab.send("promote", "LIMIT", "10000"), 0, "PROMOTE LIMIT 10000")


@case("C028", "a call that is wrong in every way is refused in the order of the contract")
def order(lab: Lab) -> None:
    for verb in served(lab):
        for form in verb.forms:
            for text, queue, words in _corrections(lab, verb, form):
                with lab.unchanged(f"{verb.name} {form}"):
                    reply = lab.send(verb.name, *words, queue=queue)
                if lab.cluster and queue == "q" and isinstance(reply, Error) and reply.code == "MOVED":
                    continue
                expect(reply, Error(text), f"{verb.name} {form} with {words!r}")
            _kind_comes_last(lab, verb, form)


def _corrections(lab: Lab, verb: Verb, form: str) -> Iterator[tuple[str, str, list[Word]]]:
    """The refusals of one form, each with the call that must give it, which is then put right in that one thing."""
    slots = form.split()
    sound = fill(form, lab)
    words: list[Word] = list(sound)
    steps: list[tuple[int, str]] = []
    for kinds, bad in ((("group", "name"), "a b"), (tuple(NUMBERS), "x"), (("id",), "ORD0EEMl9I7Qw4")):
        for position, slot in enumerate(slots):
            if slot in kinds:
                words[position] = bad
                steps.append((position, _text(slot)))
    short = verb.name.partition(".")[2]
    if short in OPTIONS:
        yield SYNTAX, "q", [*words, "BOGUS"]
    elif slots and short != "gcounts":
        yield f"ERR wrong number of arguments for '{verb.name}' command", "q", words[:-1]
    yield QUEUE_KEY, "q", words
    for position, text in steps:
        yield text, lab.q, list(words)
        words[position] = sound[position]


def _text(slot: str) -> str:
    if slot in NUMBERS:
        return NUMBERS[slot].text(slot)
    return {"group": GROUP, "name": NAME, "id": NAMESPACE}[slot]


def _kind_comes_last(lab: Lab, verb: Verb, form: str) -> None:
    """A bad id is reported before a key of another kind."""
    suffix = next((key for key in verb.keys if key not in ("row", "rows", "logs")), None)
    if suffix is not None and "id" in form.split():
        with lab.wrong_kind(suffix):
            lab.refused(NAMESPACE, verb.name, *fill(form, lab, id="ORD0EEMl9I7Qw4"))
            lab.refused(WRONGTYPE, verb.name, *fill(form, lab))


@case("C029", "a group is 1 to 64 of the allowed bytes", verbs="genqueue")
def group(lab: Lab) -> None:
    for verb in served(lab):
        for form in verb.slots("group"):
            for text in ("a b", "", "x" * 65, "a:b", "a{b", "a\n", "a\0", "\u00e4", "*"):
                lab.refused(GROUP, verb.name, *fill(form, lab, group=text))
    for text in ("x" * 64, "A-z_0.9", lab.b, "-", "."):
        lab.anew()
        expect(lab.send("genqueue", text, lab.a, "p"), 1, f"GENQUEUE into {text}")
        expect(lab.scores(f"g:{text}:pending"), {lab.a: 0.0}, f"lane of {text}")


@case("C030", "a key of another kind refuses every verb that touches it, whatever the state")
def kinds(lab: Lab) -> None:
    for scene in (*SCENES, *NATIVE_SCENES, *READS):
        if not lab.serves(scene.verb):
            continue
        words = scene.prepare(lab)
        for suffix in _key_suffixes(lab, scene):
            _refuses_kind(lab, scene, words, suffix)
        lab.anew()
        _kinds_without_job(lab, scene)
        if scene.lane:
            _kinds_of_lane(lab, scene)
        if scene.up:
            _kinds_upward(lab, scene)


def _refuses_kind(lab: Lab, scene: Scene, words: list[Word], suffix: str) -> None:
    with lab.wrong_kind(suffix), lab.unchanged(f"{scene} with {suffix} of another kind"):
        expect(lab.send(scene.verb, *words), WRONGTYPE, f"{scene} with {suffix} of another kind")


def _key_suffixes(lab: Lab, scene: Scene) -> Iterator[str]:
    """The keys of step 7 that this call must look at: a lane only when it is named or has a backlog."""
    for key in scene.row.keys:
        if key in ("row", "rows"):
            if scene.place is not None or key == "row":
                yield f"job:{lab.a}"
        elif key == "logs":
            yield f"job:{lab.a}:logs"
        elif key != LANE_KEYS[0] or "group" in scene.form.split() or scene.group == "g":
            yield key


def _kinds_without_job(lab: Lab, scene: Scene) -> None:
    """The fixed keys are tested also when the queue is empty, paused, or the job is gone."""
    bare = replace(scene, place=None, group=None)
    for paused in (False, True):
        words = fill(scene.form, lab, **scene.values)
        if paused:
            lab.pause()
        for suffix in _key_suffixes(lab, bare):
            if suffix != f"job:{lab.a}" and not (suffix == "meta" and paused):
                _refuses_kind(lab, scene, words, suffix)
        lab.resume()
    lab.anew()


def _kinds_of_lane(lab: Lab, scene: Scene) -> None:
    words = scene.prepare(lab, group="g")
    for suffix in LANE_KEYS:
        _refuses_kind(lab, scene, words, suffix)
    lab.anew(check=False)


def _kinds_upward(lab: Lab, scene: Scene) -> None:
    subkeys = ("", ":dependencies", ":processed", ":failed", ":unsuccessful")
    for parent_group in (None, "p"):
        parent = lab.seed(lab.d, "held", group=None)
        if parent_group:
            lab.plain("HSET", lab.row(parent), "group", parent_group)
        words = scene.prepare(lab, fields={"parent": parent, "parent_policy": "fp"})
        suffixes = [f"job:{parent}{subkey}" for subkey in subkeys] + [*PLACE_KEYS, "metrics:failed"]
        if parent_group:
            suffixes += [key.replace("g:g:", "g:p:") for key in LANE_KEYS]
        for suffix in suffixes:
            _refuses_kind(lab, scene, words, suffix)
        lab.anew()
    words = scene.prepare(lab, fields={"parent": lab.d, "parent_policy": "id", "parent_queue": "other"})
    _refuses_kind(lab, scene, words, "flow:outbox")
    lab.anew()


@case(
    "C031", "a row with unsound attempts refuses every verb that needs them, and can be removed", verbs="claim complete"
)
def damaged(lab: Lab) -> None:
    for attempts in ("x", "", "01", "-1", "1.0", " 1", "9007199254740991", "9" * 20, "1e3"):
        lab.seed(lab.a, "pending", attempts=attempts)
        lab.refused(DAMAGED, "claim", LEASE)
        for verb, words in (
            ("complete", [attempts]),
            ("retry", [attempts, 0, 3, "e"]),
            ("delay", [attempts, "IN", 0]),
            ("extend", [attempts, LEASE]),
        ):
            if lab.serves(verb):
                lab.refused(DAMAGED, verb, lab.a, *words)
        lab.seed(lab.b, "schedule", attempts=attempts, score=1)
        lab.seed(lab.c, "active", attempts=attempts, score=1)
        lab.refused(DAMAGED, "promote")
        lab.refused(DAMAGED, "reap")
        for job in (lab.a, lab.b, lab.c):
            if lab.serves("remove"):
                expect(lab.send("remove", job, "FORCE"), 1, "REMOVE of a damaged job")
                expect(lab.where(job), [], "places of the removed job")
        lab.anew(check=lab.serves("remove"))
