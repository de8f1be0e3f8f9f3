"""What one NEXT writes, which may settle, reap, promote and take the same job, is what replicas and files hold."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.server.waiting import HOUR, LEASE, Waiter, assert_followed, assert_reloads, job, jobs, own_lab

from emq_native.conformance.host import CONFIG
from emq_native.conformance.lab import Lab
from emq_native.conformance.play import Play
from emq_native.conformance.wire import Wire, Word
from emq_native.server import Server

VERBS = ("enqueue", "genqueue", "schedule", "greassign", "glimit", "gpause", "gresume", "remove", "reprocess", "extend")


@pytest.fixture
def lab() -> Iterator[Lab]:
    with own_lab() as laboratory:
        yield laboratory


@pytest.fixture
def follower(lab: Lab) -> Iterator[Server]:
    """A replica without the module."""
    assert lab.own_server is not None
    with Server(module=False, config=CONFIG, replica_of=lab.own_server.server) as server:
        yield server


def family(lab: Lab, play: Play) -> None:
    """A parent that waits for two jobs of the pool, when both are running."""
    running = [name for name in play.jobs if lab.where(name) == ["active"] and "parent" not in lab.fields_of(name)]
    parent = play.job()
    if len(running) < 2 or lab.exists(f"job:{parent}"):
        return
    lab.seed(parent, "held", children=2)
    for child, policy in zip(running[:2], ("fp", "id"), strict=True):
        lab.plain("HSET", lab.row(child), "parent", parent, "parent_policy", policy)


@pytest.mark.parametrize("seed", range(3))
def test_a_replica_holds_the_same_after_every_round(lab: Lab, follower: Server, seed: int) -> None:
    play = Play(lab, seed, jobs=8)
    play.verbs = ["next"] * len(VERBS) + list(VERBS)
    with Wire(follower.url) as replica:
        for number in range(250):
            if number % 10 == 0:
                family(lab, play)
                lab.held_with.clear()
            call = play.step()
            assert_followed(lab, replica, call)
            assert [str(finding) for finding in lab.audit()] == [], call
    assert_reloads(lab)


def test_one_call_settles_sweeps_and_takes_the_same_jobs(lab: Lab, follower: Server) -> None:
    """Each job is ended, planned for now, promoted, and taken again; its lane is left, offered and left again."""
    lab.limit("g", 1)
    flat, grouped, lapsed = lab.ids(3)
    lab.seed(flat, "active")
    lab.seed(grouped, "active", group="g")
    lab.seed(lapsed, "active", score=1)
    entries: tuple[Word, ...] = ("RETRY", flat, 1, 0, 3, "e", "DELAY", grouped, 1, "IN", 0)
    reply = lab.send("next", LEASE, "COUNT", 9, "SETTLE", 2, *entries)
    taken = [job(flat, 2), job(grouped, 2, "g"), job(lapsed, 2)]
    assert reply == jobs(*taken, settled=("scheduled", "delayed"))
    with Wire(follower.url) as replica:
        assert_followed(lab, replica, "one call")
    assert_reloads(lab)


def test_the_end_of_a_child_and_the_start_of_its_parent_are_one_call(lab: Lab, follower: Server) -> None:
    parent = lab.seed(lab.a, "held", children=1, group=None)
    lab.held_with.clear()
    lab.plain("HSET", lab.row(parent), "group", "g")
    lab.seed(lab.b, "active", fields={"parent": parent, "parent_policy": "fp"})
    reply = lab.send("next", LEASE, "SETTLE", 1, "RESULT", lab.b, 1, "result")
    assert reply == jobs(job(parent, group="g"), settled=("completed",))
    again = lab.send("next", LEASE, "SETTLE", 1, "COMPLETE", parent, 1)
    assert again == jobs(settled=("completed",))
    with Wire(follower.url) as replica:
        assert_followed(lab, replica, "parent")
    assert_reloads(lab)


def test_a_round_travels_as_one_unit_and_a_wake_as_another(lab: Lab, follower: Server) -> None:
    lab.seed(lab.a, "active")
    with Wire(follower.url) as monitor:
        monitor.call("MONITOR")
        waiter = Waiter(lab, "BLOCK", HOUR, "SETTLE", 1, "COMPLETE", lab.a, 1)
        lab.send("enqueue", lab.b, "payload")
        assert waiter.answer() == jobs(job(lab.b), settled=("completed",))
        lab.plain("PUBLISH", "the-end", "x")
        seen: list[str] = []
        while "publish" not in seen:
            line = str(getattr(monitor.read(), "text", ""))
            seen.append(line.partition("] ")[2].split(" ", 1)[0].strip('"').lower())
    units = " ".join(word for word in seen if word not in ("ping", "select", "replconf", "info")).split("multi")
    found = [sorted(unit.replace("exec", "").split()) for unit in units[1:]]
    found[-1].remove("publish")
    assert found == [["del", "hset", "zrem"], ["hset", "zadd"], ["hset", "zadd", "zrem"]]
