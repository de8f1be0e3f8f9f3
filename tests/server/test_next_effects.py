"""What one NEXT writes, which may settle, reap, promote and take the same job, is what replicas and files hold."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from tests.server.waiting import HOUR, LEASE, Waiter, counter, job, jobs, own_lab

from emq_native.conformance.host import CONFIG
from emq_native.conformance.lab import Lab
from emq_native.conformance.play import Play
from emq_native.conformance.wire import Reply, Wire, Word
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


def digest(wire: Wire) -> str:
    return str(getattr(wire.call("DEBUG", "DIGEST"), "text", ""))


def caught_up(lab: Lab, replica: Wire) -> bool:
    reply = replica.call("INFO", "replication")
    assert isinstance(reply, bytes)
    return f"slave_repl_offset:{lab.info('replication')['master_repl_offset']}\r".encode() in reply


def assert_followed(lab: Lab, replica: Wire, after: object) -> None:
    lab.until(lambda: caught_up(lab, replica), "the replica has caught up")
    assert digest(replica) == digest(lab.control), after


def assert_reloads(lab: Lab) -> None:
    """The append-only file, loaded without the module, gives the same data."""
    assert lab.own_server is not None
    server, before = lab.own_server.server, digest(lab.control)
    server.kill()
    server.restart(module=False)
    with Wire(server.url) as wire:
        assert digest(wire) == before
    server.restart(module=True)
    lab.reconnect()


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


class Storm:
    """Workers that take, settle and wait until every job is done."""

    def __init__(self, lab: Lab, total: int) -> None:
        self.lab, self.total = lab, total
        self.done: list[tuple[str, int]] = []
        self.lock = threading.Lock()
        self.faults: list[Reply] = []

    def work(self, number: int) -> None:
        settle: list[Word] = []
        sources = ["FLAT", "LANES"]
        with Wire(self.lab.url) as wire:
            while len(self.done) < self.total:
                words: list[Word] = [LEASE, "COUNT", number % 3 + 1, "FROM", *sources, "BLOCK", 200]
                words += ["SETTLE", len(settle) // 3, *settle] if settle else []
                reply = wire.call(*self.lab.command("next", *words))
                sources.reverse()
                if not isinstance(reply, list) or reply[2] is not None:
                    self.faults.append(reply)
                    return
                settled, taken, _ = reply
                assert isinstance(settled, list)
                assert isinstance(taken, list)
                with self.lock:
                    pairs = zip(settle[1::3], settle[2::3], strict=True)
                    self.done += [(str(name), int(token)) for name, token in pairs]
                    self.faults += [word for word in settled if word != b"completed"]
                settle = []
                for name, _, token, _ in taken:  # type: ignore[misc]
                    assert isinstance(name, bytes)
                    settle += ["COMPLETE", name.decode(), int(token)]  # type: ignore[arg-type]

    def feed(self, names: list[str], number: int) -> None:
        with Wire(self.lab.url) as wire:
            for name in names:
                call: tuple[Word, ...] = ("enqueue", name, "payload")
                if number == 1:
                    call = ("genqueue", f"g{name[-1]}", name, "payload")
                elif number == 2:
                    call = ("schedule", name, "payload", "IN", ord(name[-1]) % 40)
                wire.call(*self.lab.command(str(call[0]), *call[1:]))


def test_a_crowd_of_workers_does_every_job_once_and_copies_agree(lab: Lab, follower: Server) -> None:
    names = lab.ids(900)
    storm = Storm(lab, len(names))
    threads = [threading.Thread(target=storm.work, args=(number,)) for number in range(8)]
    threads += [threading.Thread(target=storm.feed, args=(names[number::3], number)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert storm.faults == []
    assert sorted(storm.done) == sorted((name, 1) for name in names)
    assert lab.record("metrics:completed") == {"count": b"900"}
    assert counter(lab, "waiters") == 0
    with Wire(follower.url) as replica:
        assert_followed(lab, replica, "the storm")
    assert_reloads(lab)
