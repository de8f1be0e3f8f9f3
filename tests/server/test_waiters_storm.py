"""Crowds of workers, left alone and while they are killed: no job is lost and none is done twice."""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Iterator

import pytest
from tests.server.waiting import HOUR, Waiter, assert_followed, assert_reloads, counter, job, jobs, own_lab

from emq_native.conformance.host import CONFIG
from emq_native.conformance.lab import Lab
from emq_native.conformance.wire import Error, Reply, Wire, WireLost, Word
from emq_native.server import Server


@pytest.fixture
def lab() -> Iterator[Lab]:
    with own_lab() as laboratory:
        yield laboratory


class Storm:
    """Workers until every job is done. `done` has each job that a worker saw completed, with its token."""

    def __init__(self, lab: Lab, total: int, lease: int) -> None:
        self.lab, self.total, self.lease = lab, total, lease
        self.done: dict[str, list[int]] = {}
        self.lock = threading.Lock()
        self.faults: list[Reply] = []
        self.over = False

    def work(self, number: int) -> None:
        """A worker that connects again when its connection is lost, with nothing to settle."""
        while not self.over:
            with contextlib.suppress(WireLost, OSError), Wire(self.lab.url) as wire:
                self._serve(wire, number)

    def _serve(self, wire: Wire, number: int) -> None:
        settle: list[Word] = []
        sources = ["FLAT", "LANES"]
        while not self.over:
            words: list[Word] = [self.lease, "COUNT", number % 3 + 1, "FROM", *sources, "BLOCK", 200]
            words += ["SETTLE", len(settle) // 3, *settle] if settle else []
            reply = wire.call(*self.lab.command("next", *words))
            sources.reverse()
            if isinstance(reply, Error) and reply.code == "UNBLOCKED":
                return
            if not isinstance(reply, list) or reply[2] is not None:
                self.faults.append(reply)
                return
            settled, taken, _ = reply
            assert isinstance(settled, list)
            assert isinstance(taken, list)
            self._note(settle, settled)
            settle = []
            for name, _, token, _ in taken:  # type: ignore[misc]
                assert isinstance(name, bytes)
                settle += ["COMPLETE", name.decode(), int(token)]  # type: ignore[arg-type]

    def _note(self, settle: list[Word], settled: list[Reply]) -> None:
        with self.lock:
            for name, token, word in zip(settle[1::3], settle[2::3], settled, strict=True):
                if word == b"completed":
                    self.done.setdefault(str(name), []).append(int(token))

    def feed(self, names: list[str], number: int) -> None:
        with Wire(self.lab.url) as wire:
            for name in names:
                call: tuple[Word, ...] = ("enqueue", name, "payload")
                if number == 1:
                    call = ("genqueue", f"g{name[-1]}", name, "payload")
                elif number == 2:
                    call = ("schedule", name, "payload", "IN", ord(name[-1]) % 40)
                wire.call(*self.lab.command(str(call[0]), *call[1:]))

    def kill(self, seed: int) -> None:
        """Ends waits and connections of workers at random."""
        draw = random.Random(seed)
        with Wire(self.lab.url) as wire:
            while not self.over:
                listed = wire.call("CLIENT", "LIST")
                assert isinstance(listed, bytes)
                waiting = [line.split()[0][3:] for line in listed.decode().splitlines() if " flags=b" in line]
                if waiting:
                    victim = draw.choice(waiting)
                    way = draw.choice([("KILL", "ID", victim), ("UNBLOCK", victim), ("UNBLOCK", victim, "ERROR")])
                    wire.call("CLIENT", *way)

    def run(self, names: list[str], workers: int, *others: threading.Thread) -> None:
        threads = [threading.Thread(target=self.work, args=(number,)) for number in range(workers)]
        threads += [threading.Thread(target=self.feed, args=(names[number::3], number)) for number in range(3)]
        threads += others
        for thread in threads:
            thread.start()
        try:
            self.lab.until(lambda: self.faults or self.completed() >= self.total, "all jobs are done", timeout=120)
        finally:
            self.over = True
            for thread in threads:
                thread.join(30)

    def completed(self) -> int:
        return int(self.lab.record("metrics:completed").get("count", b"0"))


def test_a_crowd_of_workers_does_every_job_once_and_copies_agree(lab: Lab) -> None:
    assert lab.own_server is not None
    with (
        Server(module=False, config=CONFIG, replica_of=lab.own_server.server) as follower,
        Wire(follower.url) as replica,
    ):
        names = lab.ids(900)
        storm = Storm(lab, len(names), lease=60_000)
        storm.run(names, 8)
        assert storm.faults == []
        assert storm.done == {name: [1] for name in names}
        assert storm.completed() == 900
        assert counter(lab, "waiters") == 0
        assert_followed(lab, replica, "the storm")
    assert_reloads(lab)


@pytest.mark.parametrize("seed", range(2))
def test_workers_whose_waits_are_broken_off_lose_no_job(lab: Lab, seed: int) -> None:
    """A job that was given to one who is gone comes back when its lease has run out, with the next token."""
    names = lab.ids(600)
    storm = Storm(lab, len(names), lease=300)
    killer = threading.Thread(target=storm.kill, args=(seed,))
    storm.run(names, 6, killer)
    assert storm.faults == []
    assert storm.completed() == 600
    assert all(len(tokens) == 1 for tokens in storm.done.values())
    assert not any(lab.exists(place) for place in ("pending", "active", "schedule", "dead", "ring", "lanes"))
    waiter = Waiter(lab, "BLOCK", HOUR)
    lab.send("enqueue", lab.a, "payload")
    assert waiter.answer() == jobs(job(lab.a))
    assert counter(lab, "waiters") == 0
