"""Who is served: the one who has waited longest, one for each job, at a cost that does not grow with those who wait."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence

import pytest
from bench.waiters import many_files
from tests.server.waiting import HOUR, LEASE, NOTHING, Waiter, answers, counter, job, jobs, own_lab, waiters

from emq_native.conformance.lab import Lab
from emq_native.conformance.wire import Error, Word, encode


@pytest.fixture(scope="module")
def room() -> Iterator[Lab]:
    with many_files(), own_lab() as lab:
        yield lab


@pytest.fixture
def lab(room: Lab) -> Iterator[Lab]:
    yield room
    for line in clients(room):
        if " flags=b" in line:
            room.plain("CLIENT", "KILL", "ID", line.split()[0].removeprefix("id="))
    room.until(lambda: counter(room, "waiters") == 0, "nobody waits")
    room.anew()


def clients(lab: Lab) -> list[str]:
    reply = lab.plain("CLIENT", "LIST")
    assert isinstance(reply, bytes)
    return reply.decode().splitlines()


def test_waiters_are_served_in_the_order_in_which_they_came(lab: Lab) -> None:
    crowd = waiters(lab, 20)
    names = lab.ids(20)
    for number, name in enumerate(names):
        lab.send(*(("enqueue", name) if number % 2 else ("genqueue", "g", name)), "payload")
    for number, name in enumerate(names):
        assert crowd[number].answer() == jobs(job(name, group=None if number % 2 else "g"))


def test_one_waiter_is_woken_for_one_job(lab: Lab) -> None:
    crowd = waiters(lab, 50)
    before = counter(lab, "wakes")
    lab.send("enqueue", lab.a, "payload")
    assert crowd[0].answer() == jobs(job(lab.a))
    assert counter(lab, "wakes") == before + 1
    assert counter(lab, "waiters") == 49


def test_many_jobs_at_once_wake_as_many_waiters(lab: Lab) -> None:
    crowd = waiters(lab, 12)
    before, names = counter(lab, "wakes"), lab.ids(10)
    words: list[Word] = []
    for name in names:
        words += [name, "payload"]
    lab.send("menqueue", *words)
    assert answers(crowd[:10]) == [jobs(job(name)) for name in names]
    assert counter(lab, "wakes") == before + 10
    assert counter(lab, "waiters") == 2


def test_jobs_of_one_transaction_wake_one_waiter_each(lab: Lab) -> None:
    crowd = waiters(lab, 3)
    names = lab.ids(3)
    lab.wire.call("MULTI")
    lab.send("enqueue", names[0], "payload")
    lab.send("genqueue", "g", names[1], "payload")
    lab.send("enqueue", names[2], "payload")
    assert lab.wire.call("EXEC") == [1, 1, 1]
    found = [waiter.answer() for waiter in crowd]
    assert sorted(str(reply) for reply in found) == sorted(
        str(jobs(job(name, group=group))) for name, group in zip(names, (None, "g", None), strict=True)
    )


def test_a_waiter_takes_as_many_as_it_asked_for_and_leaves_the_rest_to_the_next(lab: Lab) -> None:
    greedy = Waiter(lab, "BLOCK", HOUR, "COUNT", 5)
    modest = Waiter(lab, "BLOCK", HOUR, "COUNT", 5)
    names = lab.ids(7)
    words: list[Word] = []
    for name in names:
        words += [name, "payload"]
    lab.send("menqueue", *words)
    assert greedy.answer() == jobs(*map(job, names[:5]))
    assert modest.answer() == jobs(*map(job, names[5:]))


def test_only_those_who_take_from_a_source_are_woken_for_it(lab: Lab) -> None:
    lanes = Waiter(lab, "BLOCK", HOUR, "FROM", "LANES")
    flat = Waiter(lab, "BLOCK", HOUR, "FROM", "FLAT")
    before = counter(lab, "wakes")
    lab.send("enqueue", lab.a, "payload")
    assert flat.answer() == jobs(job(lab.a))
    lab.send("genqueue", "g", lab.b, "payload")
    assert lanes.answer() == jobs(job(lab.b, group="g"))
    assert counter(lab, "wakes") == before + 2


def test_a_call_that_takes_what_it_made_ready_wakes_nobody(lab: Lab) -> None:
    lab.limit("g", 1)
    lab.seed(lab.a, "active", group="g")
    lab.seed(lab.b, group="g")
    waiter = Waiter(lab, "BLOCK", HOUR)
    before = counter(lab, "wakes")
    reply = lab.send("next", LEASE, "SETTLE", 1, "COMPLETE", lab.a, 1)
    assert reply == jobs(job(lab.b, group="g"), settled=("completed",))
    assert counter(lab, "wakes") == before
    assert waiter.waits()


def test_what_a_call_leaves_wakes_the_next(lab: Lab) -> None:
    lab.limit("g", 2)
    lab.seed(lab.a, "active", group="g")
    lab.seed(lab.b, "active", group="g")
    for name in lab.ids(2):
        lab.seed(name, group="g")
    waiter = Waiter(lab, "BLOCK", HOUR)
    entries = ("COMPLETE", lab.a, 1, "COMPLETE", lab.b, 1)
    lab.send("next", LEASE, "SETTLE", 2, *entries)
    reply = waiter.answer()
    assert isinstance(reply, list)
    assert len(list(reply[1])) == 1  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("leaving", "told"),
    [
        (("CLIENT", "KILL", "ID"), None),
        (("CLIENT", "UNBLOCK"), NOTHING),
        (("CLIENT", "UNBLOCK", "ERROR"), Error("UNBLOCKED client unblocked via CLIENT UNBLOCK")),
    ],
    ids=["killed", "timed out", "unblocked"],
)
def test_a_waiter_who_leaves_when_it_is_its_turn_hands_it_on(lab: Lab, leaving: Sequence[str], told: object) -> None:
    first, second = waiters(lab, 2)
    before = counter(lab, "batons")
    command = [*leaving[:2], str(first.id), *leaving[2:]]
    if leaving[1] == "KILL":
        command = [*leaving, str(first.id)]
    replies = lab.control.pipeline([["MULTI"], lab.command("enqueue", lab.a, "payload"), command, ["EXEC"]])
    assert replies[-1] == [1, 1]
    assert second.answer() == jobs(job(lab.a))
    assert counter(lab, "batons") == before + 1
    if told is not None:
        assert first.answer() == told


def test_a_turn_is_handed_on_until_somebody_is_there(lab: Lab) -> None:
    crowd = waiters(lab, 5)
    kills = [["CLIENT", "KILL", "ID", str(waiter.id)] for waiter in crowd[:4]]
    lab.control.pipeline([["MULTI"], lab.command("genqueue", "g", lab.a, "payload"), *kills, ["EXEC"]])
    assert crowd[4].answer() == jobs(job(lab.a, group="g"))


def crowd_of(lab: Lab, count: int) -> list[socket.socket]:
    """Plain sockets whose NEXT waits."""
    command = encode(lab.command("next", LEASE, "BLOCK", HOUR))
    port = int(lab.url.rpartition(":")[2].partition("/")[0])
    sockets = []
    for _ in range(count):
        connection = socket.create_connection(("127.0.0.1", port))
        connection.sendall(command)
        sockets.append(connection)
    lab.until(lambda: counter(lab, "waiters") == count, f"{count} clients wait", timeout=60)
    return sockets


def test_a_thousand_killed_sockets_leave_no_waiter_behind(lab: Lab) -> None:
    sockets = crowd_of(lab, 1000)
    for connection in sockets:
        connection.close()
    lab.until(lambda: counter(lab, "waiters") == 0, "nobody waits", timeout=60)
    assert lab.info("clients")["blocked_clients"] == "0"
    lab.send("enqueue", lab.a, "payload")
    assert lab.send("next", LEASE) == jobs(job(lab.a))


def test_one_of_four_thousand_is_woken_for_a_job(lab: Lab) -> None:
    sockets = crowd_of(lab, 4000)
    try:
        before = counter(lab, "wakes")
        names = lab.ids(100)
        for name in names:
            lab.send("enqueue", name, "payload")
        for number, name in enumerate(names):
            assert name.encode() in sockets[number].recv(4096)
        assert counter(lab, "wakes") == before + 100
        assert counter(lab, "waiters") == 3900
        lab.send("schedule", lab.a, "payload", "IN", 60_000)
        assert counter(lab, "wakes") == before + 101
    finally:
        for connection in sockets:
            connection.close()
