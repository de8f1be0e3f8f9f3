"""Slow log, latency and command statistics name each transition, as they name a command of the server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.server.waiting import HOUR, LEASE, job, jobs, own_lab, waiters

from emq_native.conformance.lab import Lab
from emq_native.conformance.scenes import NATIVE_SCENES, SCENES, VERBS, Scene
from emq_native.conformance.wire import Reply


@pytest.fixture(scope="module")
def laboratory() -> Iterator[Lab]:
    with own_lab(slowlog_log_slower_than=0, slowlog_max_len=1000) as lab:
        yield lab


@pytest.fixture
def lab(laboratory: Lab) -> Iterator[Lab]:
    """A lab whose server logs everything as slow, and has not logged anything."""
    laboratory.plain("CONFIG", "RESETSTAT")
    laboratory.plain("SLOWLOG", "RESET")
    yield laboratory
    laboratory.anew()


def logged(lab: Lab) -> list[list[bytes]]:
    """The commands of the module in the slow log, oldest first; SADD and its like, which they call, stand there too."""
    found = [_items(entry)[3] for entry in reversed(_items(lab.plain("SLOWLOG", "GET", "-1")))]
    words = [[word for word in _items(command) if isinstance(word, bytes)] for command in found]
    return [command for command in words if command[0].lower().startswith((b"emq.", b"tra."))]


def _items(reply: Reply) -> list[Reply]:
    assert isinstance(reply, list)
    return reply


def stats(lab: Lab, verb: str) -> dict[str, str]:
    """The line of INFO commandstats of a verb."""
    line = lab.info("commandstats")[f"cmdstat_{verb}"]
    return dict(field.split("=") for field in line.split(","))


def calls_in_histogram(lab: Lab, verb: str) -> int:
    [name, histogram] = _items(lab.plain("LATENCY", "HISTOGRAM", verb))
    assert name == verb.encode()
    calls = _items(histogram)[1]
    assert isinstance(calls, int)
    return calls


@pytest.mark.parametrize("scene", [*SCENES, *NATIVE_SCENES], ids=str)
def test_a_transition_is_one_entry_under_its_own_name(lab: Lab, scene: Scene) -> None:
    words = scene.prepare(lab)
    lab.plain("CONFIG", "RESETSTAT")
    lab.plain("SLOWLOG", "RESET")

    lab.send(scene.verb, *words)

    sent = [scene.row.name.encode(), lab.q.encode(), *(str(word).encode() for word in words)]
    assert [[command[0].lower(), *command[1:]] for command in logged(lab)] == [sent]
    assert stats(lab, scene.row.name)["calls"] == "1"
    assert calls_in_histogram(lab, scene.row.name) == 1


def test_what_is_refused_is_counted_as_failed_and_what_is_cut_short_as_rejected(lab: Lab) -> None:
    lab.control.call("EMQ.CLAIM", lab.q, "0")
    lab.control.call("EMQ.CLAIM", lab.q)
    found = stats(lab, "emq.claim")
    assert (found["calls"], found["failed_calls"], found["rejected_calls"]) == ("1", "1", "1")


def test_a_wait_that_ends_is_logged_under_its_own_name(lab: Lab) -> None:
    [waiter] = waiters(lab, 1)
    lab.send("enqueue", lab.a, "payload")
    assert waiter.answer() == jobs(job(lab.a))
    entries = [command for command in logged(lab) if command[0].lower() == b"emq.next"]
    assert entries
    assert all(entry == lab.command("next", LEASE, "BLOCK", HOUR) for entry in entries)  # servers count it twice
    assert calls_in_histogram(lab, "emq.next") > 0
    assert int(stats(lab, "emq.next")["calls"]) > 0


def test_a_wait_is_one_call_of_the_module(lab: Lab) -> None:
    before = int(lab.info("emq")["emq_calls_next"])
    [waiter] = waiters(lab, 1)
    lab.send("enqueue", lab.a, "payload")
    assert waiter.answer() == jobs(job(lab.a))
    assert int(lab.info("emq")["emq_calls_next"]) == before + 1


def test_the_readers_are_named_too(lab: Lab) -> None:
    readers = sorted(name for name, verb in VERBS.items() if not verb.writes)
    for name in readers:
        lab.send(name, *([lab.a] if name in ("emq.peek", "emq.state") else []))
    lab.plain("TRA.CAPABILITIES")
    names = [command[0].decode().lower() for command in logged(lab)]
    assert names == [*readers, "tra.capabilities"]
