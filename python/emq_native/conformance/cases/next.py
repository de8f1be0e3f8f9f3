# SPDX-License-Identifier: BSD-3-Clause
"""NEXT: settling, sweeping, taking and waiting in one call."""

from __future__ import annotations

from ..case import NATIVE, OWN_SERVER, case, expect, expect_between, expect_that
from ..lab import LEASE, Lab, milliseconds
from ..scenes import fill
from ..wire import NULL_ARRAY, Error, Reply, Word

WRONGTYPE = b"WRONGTYPE Operation against a key holding the wrong kind of value"
DAMAGED = "EMQSTATE job row is damaged"
SYNTAX = "ERR syntax error"
NOTHING: list[Reply] = [[], [], None]
NATIVE_AND_OWN = (NATIVE, OWN_SERVER)


def job(name: str, token: int = 1, group: str | None = None, payload: str = "payload") -> list[Reply]:
    """A job as NEXT answers it."""
    return [name.encode(), payload.encode(), token, None if group is None else group.encode()]


def jobs(*taken: list[Reply], settled: tuple[str, ...] = (), fault: str | None = None) -> list[Reply]:
    """A reply of NEXT."""
    return [[word.encode() for word in settled], [*taken], None if fault is None else fault.encode()]


class Waiter:
    """A connection whose NEXT waits."""

    def __init__(self, lab: Lab, *words: Word, url: str | None = None, protocol: int | None = None) -> None:
        self.lab = lab
        self.wire = lab.connect(protocol, url)
        self.id = self.wire.call("CLIENT", "ID")
        self.control = lab.control if url is None else lab.connect(2, url)
        self.wait(*words)

    def wait(self, *words: Word) -> None:
        """Ask, and see that the server lets it wait."""
        self.ask(*words)
        self.lab.until(self.waits, "the client is blocked")

    def ask(self, *words: Word) -> None:
        """Ask, and look at nothing. While it waits the server keeps the call and runs it right behind the answer."""
        self.wire.send(*self.lab.command("next", LEASE, *words))

    def waits(self) -> bool:
        line = self.control.call("CLIENT", "LIST", "ID", str(self.id))
        return isinstance(line, bytes) and b" flags=b" in line

    def answer(self, timeout: float = 10.0) -> Reply:
        return self.wire.read(timeout)


@case("C133", "NEXT takes from every source in turn, the first named first", verbs="next", needs=NATIVE)
def sources(lab: Lab) -> None:
    def both() -> tuple[list[Reply], list[Reply]]:
        return job(lab.seed(lab.a)), job(lab.seed(lab.b, group="g"), group="g")

    flat, lane = both()
    expect(lab.send("next", LEASE, "COUNT", 3), jobs(flat, lane), "reply")
    lab.anew()
    flat, lane = both()
    expect(lab.send("next", LEASE, "COUNT", 3, "FROM", "LANES", "FLAT"), jobs(lane, flat), "reply FROM LANES FLAT")
    lab.anew()
    flat, lane = both()
    expect(lab.send("next", LEASE, "count", 3, "from", "flat"), jobs(flat), "reply FROM FLAT")
    expect(lab.send("next", LEASE, "COUNT", 3, "FROM", "LANES"), jobs(lane), "reply FROM LANES")
    before, after = lab.now(), lab.scores("active")
    expect_between(after[lab.a], before, before + LEASE, "deadline")
    lab.anew()
    flats = [lab.seed(name) for name in lab.ids(3)]
    lanes = [lab.seed(name, group=group) for name, group in zip(lab.ids(3), "ghg", strict=True)]
    order = [job(flats[0]), job(lanes[0], group="g"), job(flats[1]), job(lanes[1], group="h"), job(flats[2])]
    expect(lab.send("next", LEASE, "COUNT", 5), jobs(*order), "five of six, sources and lanes in turn")
    expect(lab.send("next", LEASE, "COUNT", 5), jobs(job(lanes[2], group="g")), "what is left")
    expect(lab.send("next", LEASE), NOTHING, "reply when nothing is left")


@case("C134", "NEXT settles entry by entry and goes on to the next job", verbs="next", needs=NATIVE)
def settles(lab: Lab) -> None:
    lab.seed(lab.a, "active")
    lab.seed(lab.b, "active")
    next_one = lab.seed(lab.c)
    entries: tuple[Word, ...] = (
        "COMPLETE",
        lab.a,
        1,
        "COMPLETE",
        lab.a,
        1,
        "RETRY",
        lab.b,
        9,
        0,
        3,
        "e",
        "COMPLETE",
        lab.d,
        1,
    )
    words: tuple[str, ...] = ("completed", "gone", "stale", "gone")
    expect(lab.send("next", LEASE, "SETTLE", 4, *entries), jobs(job(next_one), settled=words), "reply")
    expect(lab.where(lab.b), ["active"], "places of the stale one")
    lab.anew()
    a, b, c, d = (lab.seed(name, "active") for name in (lab.a, lab.b, lab.c, lab.d))
    lab.seed(d, "held", children=2)
    lab.plain("ZREM", lab.key("active"), d)
    lab.plain("HSET", lab.row(a), "parent", d, "parent_policy", "fp")
    entries = (
        "RESULT",
        a,
        1,
        b"r\0s",
        "RETRY",
        b,
        1,
        60_000,
        1,
        "e",
        "DELAY",
        c,
        1,
        "IN",
        60_000,
        "DELAY",
        c,
        1,
        "AT",
        0,
    )
    words = ("completed", "dead", "delayed", "inactive")
    expect(lab.send("next", LEASE, "PROMOTE", 0, "SETTLE", 4, *entries), jobs(settled=words), "reply")
    expect(lab.record(f"job:{d}:processed"), {a: b"r\0s"}, "result that the parent has noted")
    expect((lab.where(b), lab.where(c)), (["dead"], ["schedule"]), "places")
    expect(lab.fields_of(c)["floor"], b"1", "floor of the delayed one")
    _settles_what_was_reaped(lab)


def _settles_what_was_reaped(lab: Lab) -> None:
    """The token of a reaped job is good until the job is claimed, and a retried job can come back in the same call."""
    lab.anew()
    lab.seed(lab.a, "active", score=1)
    expect(lab.send("reap"), 1, "REAP")
    expect(lab.send("next", LEASE, "SETTLE", 1, "COMPLETE", lab.a, 1), jobs(settled=("completed",)), "after a reap")
    lab.seed(lab.b, "active")
    again = jobs(job(lab.b, 2), settled=("scheduled", "inactive"))
    entries = ("RETRY", lab.b, 1, 0, 3, "e", "COMPLETE", lab.b, 1)
    expect(lab.send("next", LEASE, "SETTLE", 2, *entries), again, "retried and taken again")


@case("C135", "a wrong entry refuses NEXT before the first one is settled", verbs="next", needs=NATIVE)
def refuses(lab: Lab) -> None:
    lab.seed(lab.a, "active")
    lab.seed(lab.b, "active", score=1)
    lab.seed(lab.c)
    sound = ("COMPLETE", lab.a, 1)
    numbers: dict[str, tuple[Word, ...]] = {
        "delay": ("RETRY", lab.b, 1, "x", 3, "e"),
        "max": ("RETRY", lab.b, 1, 0, 0, "e"),
        "in": ("DELAY", lab.b, 1, "IN", "-1"),
        "at": ("DELAY", lab.b, 1, "AT", 2**53),
    }
    bounds = {"delay": (0, 2**53 - 1), "max": (1, 2**31 - 1), "in": (0, 2**53 - 1), "at": (0, 2**53 - 1)}
    for name, entry in numbers.items():
        low, high = bounds[name]
        text = f"ERR {name} must be an integer between {low} and {high}"
        lab.refused(text, "next", LEASE, "SETTLE", 2, *sound, *entry)
    for entry in (("COMPLETE", "x", 1), ("RESULT", "ORD0EEMl9I7Qw4", 1, "r"), ("RETRY", "", 1, 0, 3, "e")):
        lab.refused("EMQKIND job id must be JOB-namespaced", "next", LEASE, "SETTLE", 2, *sound, *entry)
    malformed: tuple[tuple[Word, ...], ...] = (
        ("SETTLE",),
        ("SETTLE", 1),
        ("SETTLE", 1, "COMPLETE", lab.a),
        ("SETTLE", 2, *sound),
        ("SETTLE", 1, *sound, *sound),
        ("SETTLE", 1, *sound, "COUNT", 1),
        ("SETTLE", 1, "FINISH", lab.a, 1),
        ("SETTLE", 1, "RESULT", lab.a, 1),
        ("SETTLE", 1, "RETRY", lab.a, 1, 0, 3),
        ("SETTLE", 1, "DELAY", lab.a, 1, "ON", 5),
        ("SETTLE", 1, "DELAY", lab.a, 1, "IN"),
        ("SETTLE", "x", "COMPLETE", lab.a),
        ("FROM",),
        ("FROM", "RING"),
        ("FROM", "FLAT", "FLAT"),
        ("FROM", "FLAT", "LANES", "FLAT"),
    )
    for words in malformed:
        lab.refused(SYNTAX, "next", LEASE, *words)
    for number in (0, "x", "01", 10_001, ""):
        lab.refused("ERR settle must be an integer between 1 and 10000", "next", LEASE, "SETTLE", number, *sound)
    for number in (0, "x", 86_400_001, -1):
        lab.refused("ERR block must be an integer between 1 and 86400000", "next", LEASE, "BLOCK", number)
    _settling_sees_kinds_first(lab)
    expect(lab.send("next", LEASE, "SETTLE", 1, *sound), jobs(job(lab.b, 2), settled=("completed",)), "sound at last")


def _settling_sees_kinds_first(lab: Lab) -> None:
    """Keys of the transitions in the list, and rows, refuse the whole call; what only the steps touch does not."""
    fixed = {
        "COMPLETE id token": ("active", "pending", "metrics:completed"),
        "RESULT id token result": ("active", "pending", "metrics:completed"),
        "RETRY id token delay max error": ("active", "pending", "schedule", "dead", "metrics:failed"),
        "DELAY id token IN in": ("active", "pending", "schedule"),
    }
    for form, keys in fixed.items():
        words = ("SETTLE", 1, *fill(form, lab, id=lab.d))
        for key in (*keys, f"job:{lab.d}"):
            with lab.wrong_kind(key):
                lab.refused(Error(WRONGTYPE.decode()), "next", LEASE, *words)
    lab.plain("HSET", lab.row(lab.d), "state", "active", "attempts", "x", "payload", "p")
    lab.refused(DAMAGED, "next", LEASE, "SETTLE", 2, "COMPLETE", lab.a, 1, "COMPLETE", lab.d, "x")
    lab.plain("DEL", lab.row(lab.d))


@case("C136", "NEXT serves what has lapsed and what came due", verbs="next", needs=NATIVE)
def sweeps(lab: Lab) -> None:
    lapsed, due = lab.seed(lab.b, "active", score=1), lab.seed(lab.a, "schedule", score=1)
    expect(lab.send("next", LEASE, "COUNT", 2), jobs(job(due), job(lapsed, 2)), "reply")
    lab.anew()
    lapsed, due = lab.seed(lab.b, "active", score=1), lab.seed(lab.a, "schedule", score=1)
    expect(lab.send("next", LEASE, "PROMOTE", 0, "REAP", 0), NOTHING, "reply without sweeping")
    expect(lab.send("next", LEASE, "PROMOTE", 0, "MAX", 1), NOTHING, "reply when the lapsed one has used up its runs")
    expect((lab.where(lapsed), lab.where(due)), (["dead"], ["schedule"]), "places")
    expect(lab.record("metrics:failed"), {"count": b"1"}, "metrics:failed")
    lab.anew()
    three = [lab.seed(name, "schedule", score=1) for name in lab.ids(3)]
    expect(lab.send("next", LEASE, "COUNT", 9, "PROMOTE", 2), jobs(*map(job, three[:2])), "reply with PROMOTE 2")
    expect(sorted(lab.scores("schedule")), three[2:], "schedule")


@case("C137", "a fault of one step stops neither settling nor the other steps", verbs="next", needs=NATIVE)
def faults(lab: Lab) -> None:
    lab.seed(lab.a, "active")
    lab.plain("SET", lab.row(lab.b), "foreign")
    lab.plain("ZADD", lab.key("schedule"), 1, lab.b)
    waiting = lab.seed(lab.c)
    settle = ("BLOCK", 60_000, "SETTLE", 1, "COMPLETE", lab.a, 1)
    reply = lab.send("next", LEASE, *settle)
    expect(reply, [[b"completed"], [job(waiting)], WRONGTYPE], "reply with a job")
    expect(lab.send("next", LEASE, *settle), [[b"gone"], [], WRONGTYPE], "reply without one, at once")
    lab.plain("DEL", lab.row(lab.b))
    lane = lab.seed(lab.d, group="g")
    lab.plain("ZADD", lab.key("pending"), 0, lab.b)
    lab.plain("SET", lab.row(lab.b), "foreign")
    reply = lab.send("next", LEASE, "COUNT", 2, "BLOCK", 60_000)
    expect(reply, [[], [job(lane, group="g")], WRONGTYPE], "reply when the flat queue is poisoned")
    lab.plain("DEL", lab.row(lab.b))
    expect(lab.send("next", LEASE), NOTHING, "reply when the poison is gone")
    for suffix in ("meta", "active"):
        lab.anew()
        lab.seed(lab.a)
        with lab.wrong_kind(suffix), lab.unchanged(f"NEXT with {suffix} of another kind"):
            expect(lab.send("next", LEASE), [[], [], WRONGTYPE], f"reply with {suffix} of another kind")


@case("C138", "a waiter is served when a job comes, of two waiters the first", verbs="next", needs=NATIVE)
def served(lab: Lab) -> None:
    first, second = Waiter(lab, "BLOCK", 60_000), Waiter(lab, "BLOCK", 60_000)
    expect(lab.send("enqueue", lab.a, "payload"), 1, "ENQUEUE")
    expect(first.answer(), jobs(job(lab.a)), "answer of the first")
    expect(second.wire.quiet(0.05), True, "the second goes on waiting")
    expect(lab.send("genqueue", "g", lab.b, "payload"), 1, "GENQUEUE")
    expect(second.answer(), jobs(job(lab.b, group="g")), "answer of the second")
    for wake in (_resumed, _released):
        lab.anew()
        wake(lab)


def _resumed(lab: Lab) -> None:
    lab.pause()
    lab.seed(lab.a)
    waiter = Waiter(lab, "BLOCK", 60_000)
    expect(lab.send("resume"), 1, "RESUME")
    expect(waiter.answer(), jobs(job(lab.a)), "answer after RESUME")


def _released(lab: Lab) -> None:
    parent = lab.seed(lab.a, "held")
    lab.seed(lab.b, "active", fields={"parent": parent, "parent_policy": "fp"})
    waiter = Waiter(lab, "BLOCK", 60_000)
    expect(lab.send("complete", lab.b, "1"), 1, "COMPLETE of the child")
    expect(waiter.answer(), jobs(job(parent)), "answer when the parent is released")


@case("C139", "a waiter looks again when a job comes due, and never early", verbs="next", needs=NATIVE)
def due(lab: Lab) -> None:
    waiter = Waiter(lab, "BLOCK", 60_000)
    waiter.ask("BLOCK", 60_000)
    waiter.wire.send("TIME")
    expect(lab.send("schedule", lab.a, "payload", "IN", 300), 1, "SCHEDULE")
    instant = int(lab.scores("schedule")[lab.a])
    # No limit says how late is too late on a busy machine; another does, whom the server lets wait a little longer.
    longer = lab.connect(2)
    longer.send("BLPOP", lab.key("nothing"), "0.4")
    longer.send("TIME")
    expect(waiter.answer(), NOTHING, "answer at once")
    expect(waiter.answer(), NOTHING, "answer when the job is due, to a call that found it not due yet")
    told = milliseconds(waiter.answer())
    expect(longer.read(), NULL_ARRAY, "answer of a wait of 400 ms that began after the job was scheduled")
    expect_between(told, instant, milliseconds(longer.read()), "instant of the second answer")
    expect(lab.send("next", LEASE, "BLOCK", 60_000, wire=waiter.wire), jobs(job(lab.a)), "third answer")


@case("C140", "in MULTI and in Lua NEXT does not wait", verbs="next", needs=NATIVE)
def never_waits(lab: Lab) -> None:
    for way in (lab.in_multi, lab.in_lua):
        expect(way("next", LEASE, "BLOCK", 60_000), NOTHING, f"reply by {way.__name__}")
        lab.seed(lab.a)
        expect(way("next", LEASE, "BLOCK", 60_000), jobs(job(lab.a)), f"reply by {way.__name__} with a job")
        lab.anew()


@case("C141", "a wait that is broken off takes nothing", verbs="next", needs=NATIVE_AND_OWN)
def broken_off(lab: Lab) -> None:
    waiter = Waiter(lab, "BLOCK", 60_000)
    expect(lab.plain("CLIENT", "UNBLOCK", str(waiter.id), "TIMEOUT"), 1, "CLIENT UNBLOCK TIMEOUT")
    expect(waiter.answer(), NOTHING, "answer")
    lab.seed(lab.a, "active")
    waiter.wait("BLOCK", 60_000, "SETTLE", 1, "COMPLETE", lab.a, 1)
    expect(lab.plain("CLIENT", "UNBLOCK", str(waiter.id)), 1, "CLIENT UNBLOCK")
    expect(waiter.answer(), jobs(settled=("completed",)), "answer that keeps what was settled")
    waiter.wait("BLOCK", 60_000)
    expect(lab.plain("CLIENT", "UNBLOCK", str(waiter.id), "ERROR"), 1, "CLIENT UNBLOCK ERROR")
    expect(waiter.answer(), Error("UNBLOCKED client unblocked via CLIENT UNBLOCK"), "answer")
    waiter.wait("BLOCK", 60_000)
    waiter.wire.close()
    survivor = Waiter(lab, "BLOCK", 60_000)
    expect(lab.send("enqueue", lab.b, "payload"), 1, "ENQUEUE")
    expect(survivor.answer(), jobs(job(lab.b)), "answer of the one that is still there")
    _fence_lost(lab)
    _demoted(lab)


def _fence_lost(lab: Lab) -> None:
    waiter = Waiter(lab, "BLOCK", 60_000)
    with lab.fence_as("echomq:4.0.0"):
        lab.seed(lab.c)
        fault = f"EMQFENCE wants echomq:6.0.0 at {lab.fence}, found echomq:4.0.0"
        expect(waiter.answer(), jobs(fault=fault), "answer")
    expect(lab.where(lab.c), ["pending"], "places of the job")


def _demoted(lab: Lab) -> None:
    assert lab.own_server is not None
    with lab.own_server.another() as server:
        control = lab.connect(2, server.url)
        control.call("SET", lab.fence, lab.executor.identity)
        waiter = Waiter(lab, "BLOCK", 60_000, url=server.url)
        control.call("REPLICAOF", "127.0.0.1", lab.own_server.server.port)
        reply = waiter.answer()
        expect_that(isinstance(reply, Error) and reply.code == "UNBLOCKED", "the wait ends as UNBLOCKED", reply)
