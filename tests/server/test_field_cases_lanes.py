"""Field cases of pauses, groups and bounded work."""

from __future__ import annotations

import threading
import time
from collections import Counter

import pytest

from emq_native.conformance.host import CONFIG
from emq_native.conformance.lab import LEASE, Lab
from emq_native.conformance.wire import Reply, Wire, Word
from emq_native.executors import Executor
from emq_native.server import Server


@pytest.fixture
def protocol() -> int:
    """Lanes know nothing of protocol versions."""
    return 2


def crowd(lab: Lab, place: str, count: int, *, group: str | None = None, score: int = 1) -> list[str]:
    """Many jobs in one place, written in one go."""
    jobs = lab.ids(count)
    states = {"pending": "pending", "schedule": "scheduled", "active": "active"}
    row: list[Word] = ["state", states[place], "attempts", int(place == "active"), "payload", "p"]
    row += ["group", group] if group else []
    key = lab.lane(group) if group and place == "pending" else lab.key(place)
    commands: list[list[Word]] = []
    for job in jobs:
        commands.append(["HSET", lab.row(job), *row])
        commands.append(["ZADD", key, 0 if place == "pending" else score, job])
    for start in range(0, len(commands), 2000):
        lab.control.pipeline(commands[start : start + 2000])
    if group and place == "active":
        lab.plain("HINCRBY", lab.key("gactive"), group, count)
    if group:
        lab.offer(group)
    return jobs


def test_promote_sees_the_job_that_is_due_behind_many_that_are_not(lab: Lab) -> None:
    """case 21"""
    crowd(lab, "schedule", 300, score=lab.now() + 7 * 86_400_000)
    lab.seed(lab.d, "schedule", score=1)
    assert lab.send("promote", "LIMIT", 100) == 1
    assert lab.where(lab.d) == ["pending"]


@pytest.mark.parametrize("verb", ["promote", "reap", "drain", "gdrain", "obliterate", "greap"])
def test_work_is_bounded_in_every_call_and_the_reply_says_when_there_is_more(lab: Lab, verb: str) -> None:
    """case 22"""
    place = {"promote": "schedule", "reap": "active", "greap": "active"}.get(verb, "pending")
    crowd(lab, place, 2500, group="g" if verb in ("gdrain", "greap") else None)
    words: list[Word] = ["g"] if verb in ("gdrain", "greap") else []
    if verb == "obliterate":
        lab.pause()
        for more, left in ((1, 1500), (1, 500), (0, 0)):
            assert lab.send(verb) == more
            assert len(lab.scores("pending")) == left
        return
    assert [lab.send(verb, *words) for _ in range(4)] == [1000, 1000, 500, 0]
    crowd(lab, place, 30, group="g" if words else None)
    assert [lab.send(verb, *words, "LIMIT", 20) for _ in range(3)] == [20, 10, 0]


def test_nothing_is_lost_or_doubled_when_the_server_is_killed_while_many_are_due(executor: Executor) -> None:
    """case 22"""
    with Server(module=executor.name == "native", config=CONFIG) as server:
        with Wire(server.url) as wire:
            wire.call("SET", "{emq}:version", executor.identity)
        lab = Lab(server.url, executor)
        jobs = {*crowd(lab, "schedule", 6_000), *crowd(lab, "active", 4_000)}
        calls = 0

        def sweep() -> None:
            nonlocal calls
            try:
                while lab.send("promote", "LIMIT", 50) or lab.send("reap", "LIMIT", 50):
                    calls += 1
            except OSError:
                return

        sweeper = threading.Thread(target=sweep)
        sweeper.start()
        while calls < 20 and sweeper.is_alive():
            time.sleep(0.001)
        server.kill()
        sweeper.join()
        assert calls >= 20
        server.restart()
        lab.reconnect()
        assert lab.audit() == []
        found = Counter(job for place in ("pending", "schedule", "active") for job in lab.scores(place))
        assert found == Counter(jobs)
        while lab.send("promote") or lab.send("reap"):
            pass
        assert set(lab.scores("pending")) == jobs
        lab.close()


def test_a_paused_queue_hands_out_nothing_and_settles_everything(lab: Lab) -> None:
    """case 28"""
    first, second, third = (lab.seed(job, "active") for job in (lab.a, lab.b, lab.c))
    assert lab.send("pause") == 1
    lab.send("schedule", lab.d, "p", "IN", 1)
    lab.reach(lab.scores("schedule")[lab.d])
    assert lab.send("promote") == 1
    assert lab.send("claim", LEASE) == []
    assert lab.send("extend", first, "1", LEASE) == 1
    assert lab.send("complete", first, "1") == 1
    assert lab.send("retry", second, "1", 0, 3, "e") == b"scheduled"
    assert lab.send("delay", third, "1", "IN", 0) == 1
    assert lab.send("claim", LEASE) == []


WAYS: dict[str, tuple[str, list[Word]]] = {
    "reap": ("reap", []),
    "reap to dead": ("reap", ["MAX", 1]),
    "reap of the group": ("greap", ["g"]),
    "retry": ("retry", ["ID", "1", 0, 3, "e"]),
    "retry to dead": ("retry", ["ID", "1", 0, 1, "e"]),
    "delay": ("delay", ["ID", "1", "IN", 60_000]),
    "complete": ("complete", ["ID", "1"]),
    "removal": ("remove", ["ID", "FORCE"]),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_job_that_is_dropped_frees_its_slot_whichever_way_it_is_recovered(lab: Lab, way: str) -> None:
    """case 29"""
    assert lab.send("glimit", "g", 1) == 1
    for job in (lab.a, lab.b):
        lab.send("genqueue", "g", job, "p")
    assert lab.send("gclaim", 1) == [lab.a.encode(), b"p", 1, b"g"]
    assert lab.send("gclaim", LEASE) == []
    lab.lapse(lab.a)
    verb, words = WAYS[way]
    lab.send(verb, *(lab.a if item == "ID" else item for item in words))
    reply = lab.send("gclaim", LEASE)
    assert isinstance(reply, list)
    assert reply[0] == (lab.a if way in ("reap", "reap of the group") else lab.b).encode()


@pytest.mark.parametrize("count", [1, 5])
def test_a_ceiling_of_one_never_runs_two(lab: Lab, count: int) -> None:
    """case 31"""
    lab.send("glimit", "g", 1)
    jobs = crowd(lab, "pending", 200, group="g")
    running: list[str] = []
    order: list[str] = []
    overlaps: list[list[str]] = []
    lock = threading.Lock()

    def work(wire: Wire) -> None:
        while len(order) < len(jobs):
            with lock:
                already = list(running)
            reply = lab.send("gclaim", LEASE, wire=wire) if count == 1 else lab.send("gmclaim", LEASE, count, wire=wire)
            assert isinstance(reply, list)
            batch = [reply] if count == 1 and reply else reply
            for job in (_id(each) for each in batch):
                with lock:
                    if running:
                        overlaps.append([*running, job, *already])
                    running.append(job)
                    order.append(job)
                time.sleep(0.0005)
                with lock:
                    running.remove(job)
                lab.send("complete", job, "1", wire=wire)

    threads = [threading.Thread(target=work, args=(lab.connect(),)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert overlaps == []
    assert order == jobs


def _id(reply: Reply) -> str:
    assert isinstance(reply, list)
    assert isinstance(reply[0], bytes)
    return reply[0].decode()


def test_a_ceiling_changes_under_running_jobs(lab: Lab) -> None:
    """case 32"""
    lab.send("glimit", "g", 5)
    jobs = crowd(lab, "pending", 20, group="g")
    assert [lab.send("gclaim", LEASE) != [] for _ in range(6)] == [True] * 5 + [False]
    lab.lowered.add("g")
    lab.send("glimit", "g", 2)
    for done, job in enumerate(jobs[:4], 1):
        assert lab.send("gclaim", LEASE) == []
        assert lab.send("complete", job, "1") == 1
        assert lab.record("gactive") == {"g": str(5 - done).encode()}
    assert _id(lab.send("gclaim", LEASE)) == jobs[5]
    assert lab.send("gclaim", LEASE) == []
    lab.send("glimit", "g", 10)
    assert [_id(lab.send("gclaim", LEASE)) for _ in range(8)] == jobs[6:14]
    assert lab.send("gclaim", LEASE) == []
    lab.send("glimit", "g", 0)
    assert lab.record("glimit") == {}
    assert [_id(lab.send("gclaim", LEASE)) for _ in range(6)] == jobs[14:20]
    lab.refused("ERR ceiling must be an integer between 0 and 2147483647", "glimit", "g", "-1")


def test_a_busy_group_does_not_starve_the_others(lab: Lab) -> None:
    """case 33"""
    crowd(lab, "pending", 20_000, group="busy")
    for number in range(2, 11):
        crowd(lab, "pending", 10, group=f"g{number}")
    crowd(lab, "pending", 10)
    turns: list[str] = []
    for _ in range(150):
        reply = lab.send("gclaim", LEASE)
        assert isinstance(reply, list)
        assert isinstance(reply[3], bytes)
        turns.append(reply[3].decode())
    for round_start in range(0, 100, 10):
        assert len(set(turns[round_start : round_start + 10])) == 10
    assert set(turns[100:]) == {"busy"}
    assert [lab.send("claim", LEASE) != [] for _ in range(11)] == [True] * 10 + [False]


def test_jobs_that_come_back_neither_jump_the_ring_nor_block_it(lab: Lab) -> None:
    """case 33"""
    for group in ("g", "h", "i"):
        crowd(lab, "pending", 3, group=group)
    first = _id(lab.send("gclaim", 1))
    lab.lapse(first)
    before = lab.items("ring")
    assert lab.send("reap") == 1
    assert lab.items("ring") == before == [b"h", b"i", b"g"]
    assert [reply[3] for reply in (lab.send("gclaim", LEASE) for _ in range(3)) if isinstance(reply, list)] == before


def test_an_orphaned_slot_can_be_repaired_by_hand(lab: Lab) -> None:
    """case 29"""
    lab.limit("g", 1)
    lab.seed(lab.a, "active", group="g", score=1)
    lab.seed(lab.b, group="g")
    lab.forget(lab.a)
    assert lab.send("reap") == 0
    assert lab.send("gclaim", LEASE) == []
    lab.plain("HDEL", lab.key("gactive"), "g")
    lab.send("glimit", "g", 1)
    assert _id(lab.send("gclaim", LEASE)) == lab.b
