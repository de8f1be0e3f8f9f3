"""Whatever brings a job wakes one who waits for it: verbs, plain commands of anybody, time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pytest
from tests.server.waiting import HOUR, LEASE, NOTHING, Waiter, counter, job, jobs, own_lab

from emq_native.conformance.lab import Lab
from emq_native.conformance.wire import Word

Wake = Callable[[Lab], object]
SCRIPTED_ZADD = "redis.call('ZADD', KEYS[1], 0, ARGV[1])"
SCRIPTED_ENQUEUE = "redis.call('EMQ.ENQUEUE', KEYS[1], ARGV[1], 'payload')"
SCORED_FROM_NOW = """
local time = redis.call('TIME')
local instant = time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[2]
redis.call('ZADD', KEYS[1], string.format('%d', instant), ARGV[1])
return instant
"""
"""Gives a member a score so many milliseconds from now, and answers it: what follows in the same write is in time."""


@pytest.fixture(scope="module")
def room() -> Iterator[Lab]:
    with own_lab() as lab:
        yield lab


@pytest.fixture
def lab(room: Lab) -> Iterator[Lab]:
    yield room
    room.anew()
    assert counter(room, "waiters") == 0


def row(lab: Lab, name: str, state: str = "pending", **fields: Word) -> str:
    """The row of a job that no place lists yet, written by a plain command."""
    words: list[Word] = []
    for field, value in {"state": state, "attempts": 0, "payload": "payload", **fields}.items():
        words += [field, value]
    lab.plain("HSET", lab.row(name), *words)
    return name


def lane(lab: Lab) -> None:
    """A job in the lane g, which the ring does not list yet."""
    row(lab, lab.a, group="g")
    lab.plain("ZADD", lab.lane("g"), 0, lab.a)
    lab.plain("SADD", lab.key("lanes"), "g")


def aside(lab: Lab) -> str:
    """Another key of the same slot that lists the job a."""
    lab.plain("ZADD", lab.key("aside"), 0, row(lab, lab.a))
    return lab.key("aside")


def ring_aside(lab: Lab) -> str:
    lane(lab)
    lab.plain("RPUSH", lab.key("aside"), "g")
    return lab.key("aside")


def sent(*calls: tuple[str, ...]) -> Wake:
    """Verbs of the contract; `a`, `b` are the ids of the lab."""

    def wake(lab: Lab) -> None:
        names = {"a": lab.a, "b": lab.b}
        for verb, *words in calls:
            reply = lab.send(verb, *(names.get(word, word) for word in words))
            assert reply in (1, [1], b"scheduled"), (verb, reply)

    return wake


FLAT: Mapping[str, tuple[Wake | None, Wake]] = {
    "enqueue": (None, sent(("enqueue", "a", "payload"))),
    "menqueue": (None, sent(("menqueue", "a", "payload"))),
    "fire": (
        lambda lab: (
            lab.plain("ZADD", lab.key("repeat"), 1, "n")
            and lab.plain("HSET", lab.key("repeat:n"), "every_ms", 1, "template", "payload")
        ),
        lambda lab: sent(("fire", "n", str(2**53 - 1), "a"))(lab),
    ),
    "reprocess": (lambda lab: lab.seed(lab.a, "dead"), sent(("reprocess", "a"))),
    "promote": (lambda lab: lab.seed(lab.a, "schedule", score=1), sent(("promote",))),
    "reap": (lambda lab: lab.seed(lab.a, "active", attempts=0, score=1), sent(("reap",))),
    "resume": (lambda lab: paused(lab), sent(("resume",))),
    "release of a parent": (
        lambda lab: lab.seed(lab.b, "active", fields={"parent": lab.seed(lab.a, "held"), "parent_policy": "fp"}),
        sent(("complete", "b", "1")),
    ),
    "failure that is ignored": (
        lambda lab: lab.seed(lab.b, "active", fields={"parent": lab.seed(lab.a, "held"), "parent_policy": "id"}),
        sent(("remove", "b", "FORCE")),
    ),
    "zadd": (None, lambda lab: lab.plain("ZADD", lab.key("pending"), 0, row(lab, lab.a))),
    "zincrby": (None, lambda lab: lab.plain("ZINCRBY", lab.key("pending"), 0, row(lab, lab.a))),
    "zunionstore": (None, lambda lab: lab.plain("ZUNIONSTORE", lab.key("pending"), 1, aside(lab))),
    "zrangestore": (None, lambda lab: lab.plain("ZRANGESTORE", lab.key("pending"), aside(lab), 0, -1)),
    "zadd in a transaction": (
        None,
        lambda lab: [
            lab.plain(*words) for words in (("MULTI",), ("ZADD", lab.key("pending"), 0, row_in_multi(lab)), ("EXEC",))
        ],
    ),
    "zadd in a script": (
        None,
        lambda lab: lab.plain(
            "EVAL", "redis.call('ZADD', KEYS[1], 0, ARGV[1])", 1, lab.key("pending"), row(lab, lab.a)
        ),
    ),
    "enqueue in a script": (None, lambda lab: lab.plain("EVAL", SCRIPTED_ENQUEUE, 1, lab.q, lab.a)),
    "rename": (None, lambda lab: lab.plain("RENAME", aside(lab), lab.key("pending"))),
    "copy": (None, lambda lab: lab.plain("COPY", aside(lab), lab.key("pending"))),
    "restore": (None, lambda lab: lab.plain("RESTORE", lab.key("pending"), 0, dumped(lab, aside(lab)))),
    "move": (None, lambda lab: moved(lab)),
}


def row_in_multi(lab: Lab) -> str:
    """A row, written before the transaction by another connection."""
    words = ("HSET", lab.row(lab.a), "state", "pending", "attempts", 0, "payload", "payload")
    assert lab.wire.call(*words) == 3
    return lab.a


def dumped(lab: Lab, name: str) -> bytes:
    dump = lab.plain("DUMP", name)
    assert isinstance(dump, bytes)
    return dump


def moved(lab: Lab) -> None:
    """MOVE from database 1; the client that moves stays where it was."""
    row(lab, lab.a)
    other = lab.connect(2)
    other.call("SELECT", 1)
    other.call("ZADD", lab.key("pending"), 0, lab.a)
    assert other.call("MOVE", lab.key("pending"), 0) == 1
    info = other.call("CLIENT", "INFO")
    assert isinstance(info, bytes)
    assert b" db=1 " in info


LANES: Mapping[str, tuple[Wake | None, Wake]] = {
    "genqueue": (None, sent(("genqueue", "g", "a", "payload"))),
    "gresume": (lambda lab: parked(lab, "g"), sent(("gresume", "g"))),
    "ceiling raised": (lambda lab: full(lab), sent(("glimit", "g", "2"))),
    "ceiling removed": (lambda lab: full(lab), sent(("glimit", "g", "0"))),
    "slot freed by complete": (lambda lab: full(lab), sent(("complete", "b", "1"))),
    "slot freed by retry": (lambda lab: full(lab), sent(("retry", "b", "1", "100000", "3", "e"))),
    "slot freed by delay": (lambda lab: full(lab), sent(("delay", "b", "1", "IN", "100000"))),
    "slot freed by remove": (lambda lab: full(lab), sent(("remove", "b", "FORCE"))),
    "greassign": (
        lambda lab: parked(lab, "h"),
        sent(("greassign", "a", "g")),
    ),
    "reprocess": (lambda lab: lab.seed(lab.a, "dead", group="g"), sent(("reprocess", "a"))),
    "promote": (lambda lab: lab.seed(lab.a, "schedule", group="g", score=1), sent(("promote",))),
    "resume": (lambda lab: paused(lab, "g"), sent(("resume",))),
    "rpush": (lane, lambda lab: lab.plain("RPUSH", lab.key("ring"), "g")),
    "lpush": (lane, lambda lab: lab.plain("LPUSH", lab.key("ring"), "g")),
    "lmove": (None, lambda lab: lab.plain("LMOVE", ring_aside(lab), lab.key("ring"), "LEFT", "RIGHT")),
    "sort": (
        None,
        lambda lab: lab.plain("SORT", ring_aside(lab), "BY", "nosort", "STORE", lab.key("ring")),
    ),
    "rename": (None, lambda lab: lab.plain("RENAME", ring_aside(lab), lab.key("ring"))),
}


def forget_aside(lab: Lab) -> None:
    lab.plain("DEL", lab.key("aside"))


def paused(lab: Lab, group: str | None = None) -> None:
    """A job in a paused queue."""
    lab.pause()
    lab.seed(lab.a, group=group)


def parked(lab: Lab, group: str) -> None:
    """A job of a parked group."""
    lab.park(group)
    lab.seed(lab.a, group=group)


def full(lab: Lab) -> None:
    """A job in the lane g, whose only slot the job b has."""
    lab.limit("g", 1)
    lab.seed(lab.b, "active", group="g")
    lab.seed(lab.a, group="g")


@pytest.mark.parametrize("how", FLAT)
def test_a_flat_job_wakes_a_waiter(lab: Lab, how: str) -> None:
    prepare, wake = FLAT[how]
    if prepare:
        prepare(lab)
    waiter = Waiter(lab, "BLOCK", HOUR, "PROMOTE", 0, "REAP", 0)
    wake(lab)
    assert waiter.answer() == jobs(job(lab.a))
    forget_aside(lab)


@pytest.mark.parametrize("how", LANES)
def test_a_job_of_a_lane_wakes_a_waiter(lab: Lab, how: str) -> None:
    prepare, wake = LANES[how]
    if prepare:
        prepare(lab)
    waiter = Waiter(lab, "BLOCK", HOUR, "PROMOTE", 0, "REAP", 0)
    wake(lab)
    assert waiter.answer() == jobs(job(lab.a, group="g"))
    forget_aside(lab)


def test_a_job_added_to_an_existing_place_wakes_a_waiter(lab: Lab) -> None:
    """The server itself signals only keys that come into being."""
    lab.pause()
    lab.seed(lab.b)
    waiter = Waiter(lab, "BLOCK", HOUR)
    added = lab.connect(2)
    replies = added.pipeline(
        [
            ["MULTI"],
            ["HDEL", lab.key("meta"), "paused"],
            ["HSET", lab.row(lab.a), "state", "pending", "attempts", 0, "payload", "payload"],
            ["ZADD", lab.key("pending"), 0, lab.a],
            ["EXEC"],
        ]
    )
    assert replies[-1] == [1, 3, 1]
    assert waiter.answer() == jobs(job(lab.a))


def test_what_no_event_tells_is_found_by_the_next_look(lab: Lab) -> None:
    lab.pause()
    lab.seed(lab.a)
    waiter = Waiter(lab, "BLOCK", HOUR)
    lab.resume()
    assert waiter.answer() == jobs(job(lab.a))


def test_a_stale_entry_wakes_and_the_waiter_goes_on_waiting(lab: Lab) -> None:
    waiter = Waiter(lab, "BLOCK", HOUR)
    before = counter(lab, "wakes")
    lab.plain("ZADD", lab.key("pending"), 0, lab.a)
    lab.until(lambda: counter(lab, "wakes") > before, "the waiter has looked")
    assert not lab.exists("pending")
    assert waiter.waits()
    lab.send("enqueue", lab.b, "payload")
    assert waiter.answer() == jobs(job(lab.b))


def test_more_stale_entries_than_one_step_passes_do_not_hide_a_job(lab: Lab) -> None:
    lab.pause()
    waiter = Waiter(lab, "BLOCK", HOUR)
    stale = lab.ids(2500)
    words: list[Word] = []
    for name in stale:
        words += [0, name]
    lab.plain("ZADD", lab.key("pending"), *words)
    last = lab.seed(lab.ids(1)[0])
    lab.send("resume")
    assert waiter.answer() == jobs(job(last))
    assert not lab.exists("pending")


def test_a_poisoned_head_is_answered_as_a_fault(lab: Lab) -> None:
    waiter = Waiter(lab, "BLOCK", HOUR)
    lab.plain("SET", lab.row(lab.a), "foreign")
    lab.plain("ZADD", lab.key("pending"), 0, lab.a)
    assert waiter.answer() == jobs(fault="WRONGTYPE Operation against a key holding the wrong kind of value")
    lab.plain("DEL", lab.row(lab.a), lab.key("pending"))


@pytest.mark.parametrize("place", ["pending", "ring", "schedule", "active", "meta"])
@pytest.mark.parametrize("kind", ["SET", "SADD"])
def test_a_place_of_another_kind_is_a_fault_while_another_waits(lab: Lab, place: str, kind: str) -> None:
    waiter = Waiter(lab, "BLOCK", HOUR, "FROM", "FLAT", "PROMOTE", 1)
    lab.plain(kind, lab.key(place), "x")
    fault = jobs(fault="WRONGTYPE Operation against a key holding the wrong kind of value")
    assert lab.send("NEXT", LEASE, "BLOCK", HOUR) == fault
    lab.plain("DEL", lab.key(place))
    lab.send("ENQUEUE", lab.a, "payload")
    assert waiter.answer() in (jobs(job(lab.a)), fault)


def test_a_waiter_is_told_that_a_job_will_be_due_and_comes_back_for_it(lab: Lab) -> None:
    waiter = Waiter(lab, "BLOCK", HOUR)
    waiter.ask("BLOCK", HOUR)
    lab.send("schedule", lab.a, "payload", "IN", 300)
    due = lab.scores("schedule")[lab.a]
    assert waiter.answer() == NOTHING
    assert waiter.answer() == NOTHING
    assert lab.now() >= due
    assert lab.send("next", LEASE, wire=waiter.wire) == jobs(job(lab.a))


@pytest.mark.parametrize("plain", [False, True], ids=["verb", "zadd"])
def test_those_who_waited_before_are_served_when_nobody_comes_back(lab: Lab, plain: bool) -> None:
    """The one who was told does not ask again; the others do not know when the jobs come due."""
    told, first, second = (Waiter(lab, "BLOCK", HOUR) for _ in range(3))
    plans: list[list[Word]] = []
    for name, wait in ((lab.a, 200), (lab.b, 400)):
        if plain:
            plans.append(["EVAL", SCORED_FROM_NOW, 1, lab.key("schedule"), row(lab, name, "scheduled"), wait])
        else:
            plans.append([*lab.command("schedule", name, "payload", "IN", wait)])
    scores: list[Word] = ["ZMSCORE", lab.key("schedule"), lab.a, lab.b]
    *_, [_, _, due] = lab.control.pipeline([["MULTI"], *plans, scores, ["EXEC"]])  # type: ignore[misc]
    assert told.answer() == NOTHING
    for waiter, name, instant in zip((first, second), (lab.a, lab.b), due, strict=True):  # type: ignore[arg-type]
        assert waiter.answer() == jobs(job(name))
        assert lab.now() >= int(instant)


def test_a_waiter_who_does_not_promote_is_not_told_of_scheduled_jobs(lab: Lab) -> None:
    waiter = Waiter(lab, "BLOCK", HOUR, "PROMOTE", 0)
    before = counter(lab, "wakes")
    lab.send("schedule", lab.a, "payload", "AT", 0)
    assert counter(lab, "wakes") == before
    assert waiter.waits()
    lab.send("promote")
    assert waiter.answer() == jobs(job(lab.a))


def test_a_lease_that_runs_out_ends_the_wait(lab: Lab) -> None:
    lease: list[Word] = ["EVAL", SCORED_FROM_NOW, 1, lab.key("active"), lab.seed(lab.a, "active"), 300]
    deadline, reply = lab.wire.pipeline([lease, lab.command("next", LEASE, "BLOCK", HOUR)])
    assert reply == NOTHING
    assert lab.now() >= deadline  # type: ignore[operator]
    assert lab.send("next", LEASE) == jobs(job(lab.a, 2))


def test_a_wait_ends_when_its_time_is_over_and_not_before(lab: Lab) -> None:
    for block in (1, 2, 50, 250):
        start = lab.now()
        assert lab.send("next", LEASE, "BLOCK", block) == NOTHING
        assert lab.now() - start >= block


def test_a_swapped_database_brings_its_jobs() -> None:
    with own_lab() as lab:
        waiter = Waiter(lab, "BLOCK", HOUR)
        other = lab.connect(2)
        other.call("SELECT", 1)
        other.call("SET", lab.fence, lab.executor.identity)
        other.call("HSET", lab.row(lab.a), "state", "pending", "attempts", 0, "payload", "payload")
        other.call("ZADD", lab.key("pending"), 0, lab.a)
        lab.plain("SWAPDB", 0, 1)
        assert waiter.answer() == jobs(job(lab.a))
        lab.plain("SWAPDB", 0, 1)


def test_a_client_that_copies_to_another_database_stays_in_its_own(lab: Lab) -> None:
    Waiter(lab, "BLOCK", 1).answer()
    lab.plain("SET", lab.key("aside"), "x")
    lab.plain("COPY", lab.key("aside"), lab.key("aside"), "DB", 3)
    lab.plain("MOVE", lab.key("aside"), 4)
    info = lab.plain("CLIENT", "INFO")
    assert isinstance(info, bytes)
    assert b" db=0 " in info
    for database in (3, 4):
        other = lab.connect(2)
        other.call("SELECT", database)
        assert other.call("DEL", lab.key("aside")) == 1
