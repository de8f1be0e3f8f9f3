"""The decision tables of the fence (PROTOCOL.md 6.2), row by row, without a server."""

from __future__ import annotations

import pytest

from emq_native import errors
from emq_native.dispatch import Answer, Words
from emq_native.errors import from_line
from emq_native.fence import Wire, fence_key, parse_wire, verify

KEY = b"{emq}:version"
SCRIPTED = b"echomq:4.0.0"
NATIVE = b"echomq:6.0.0"
WRONGTYPE = from_line("WRONGTYPE Operation against a key holding the wrong kind of value")

GET = (b"GET", KEY)
CLAIM = (b"SET", KEY, SCRIPTED, b"NX")


class Node:
    """A server that answers what it is told, and remembers what it was asked."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self.asked: list[Words] = []

    def verify(self, wire: Wire) -> int:
        steps = verify(wire, KEY)
        try:
            (command,) = next(steps)
            while True:
                self.asked.append(command)
                (command,) = steps.send([self._answers.pop(0)])
        except StopIteration as end:
            assert not self._answers
            verdict: int = end.value
            return verdict


@pytest.mark.parametrize(("wire", "identity"), [(4, SCRIPTED), (6, NATIVE)])
def test_the_own_identity_passes_and_nothing_is_written(wire: int, identity: bytes) -> None:
    node = Node(identity)

    assert node.verify(wire) == wire
    assert node.asked == [GET]


@pytest.mark.parametrize(("identity", "wire"), [(SCRIPTED, 4), (NATIVE, 6)])
def test_auto_takes_the_wire_of_the_node(identity: bytes, wire: int) -> None:
    node = Node(identity)

    assert node.verify(None) == wire
    assert node.asked == [GET]


def test_wire_4_claims_a_node_that_nobody_owns_and_looks_again() -> None:
    node = Node(None, b"OK", SCRIPTED)

    assert node.verify(4) == 4
    assert node.asked == [GET, CLAIM, GET]


def test_a_lost_race_for_the_claim_is_a_mismatch() -> None:
    node = Node(None, None, NATIVE)

    with pytest.raises(errors.WireMismatch) as refused:
        node.verify(4)

    assert (refused.value.expected, refused.value.found) == ("echomq:4.0.0", "echomq:6.0.0")


def test_a_claim_that_vanished_is_unclaimed() -> None:
    node = Node(None, b"OK", None)

    with pytest.raises(errors.WireUnclaimed):
        node.verify(4)


@pytest.mark.parametrize(("wire", "expected"), [(6, "echomq:6.0.0"), (None, "echomq:4.0.0 or echomq:6.0.0")])
def test_only_wire_4_claims(wire: Wire, expected: str) -> None:
    node = Node(None)

    with pytest.raises(errors.WireUnclaimed) as refused:
        node.verify(wire)

    assert refused.value.expected == expected
    assert refused.value.found is None
    assert node.asked == [GET]


FOREIGN = [
    b"",
    b"abc",
    b" echomq:6.0.0",
    b"echomq:6.0.0 ",
    b"ECHOMQ:6.0.0",
    b"echomq:7.0.0",
    b"1.0",
    b"\xff\x00",
    b"9" * 30,
]


@pytest.mark.parametrize("wire", [4, 6, None])
@pytest.mark.parametrize("found", FOREIGN)
def test_any_other_string_is_a_mismatch(wire: Wire, found: bytes) -> None:
    node = Node(found)

    with pytest.raises(errors.WireMismatch):
        node.verify(wire)

    assert node.asked == [GET]


@pytest.mark.parametrize(("wire", "found"), [(4, NATIVE), (6, SCRIPTED)])
def test_the_identity_of_the_other_executor_is_a_mismatch(wire: int, found: bytes) -> None:
    with pytest.raises(errors.WireMismatch) as refused:
        Node(found).verify(wire)

    assert refused.value.found == found.decode()


@pytest.mark.parametrize("wire", [4, 6, None])
def test_a_key_that_is_no_string_is_a_mismatch(wire: Wire) -> None:
    with pytest.raises(errors.WireMismatch) as refused:
        Node(WRONGTYPE).verify(wire)

    assert refused.value.found == "(not a string)"


NO_VERDICT = [
    "LOADING Valkey is loading the dataset in memory",
    "MASTERDOWN Link with MASTER is down",
    "CLUSTERDOWN The cluster is down",
    "TRYAGAIN Multiple keys request during rehashing of slot",
    "BUSY Valkey is busy running a script.",
    "NOPERM No permissions to access a key",
    "NOAUTH Authentication required.",
    "MOVED 9051 127.0.0.1:7001",
    "ASK 9051 127.0.0.1:7001",
    "ERR something else",
]


@pytest.mark.parametrize("wire", [4, 6, None])
@pytest.mark.parametrize("line", NO_VERDICT, ids=lambda line: line.split(" ")[0])
def test_every_other_error_is_no_verdict_but_that_error(wire: Wire, line: str) -> None:
    error = from_line(line)

    with pytest.raises(type(error)) as raised:
        Node(error).verify(wire)

    assert raised.value is error
    assert not isinstance(error, errors.WireRefused)


CLAIM_FAILS = [
    "READONLY You can't write against a read only replica.",
    "OOM command not allowed when used memory > 'maxmemory'.",
    "MISCONF Valkey is configured to save RDB snapshots",
    "NOREPLICAS Not enough good replicas to write.",
    "NOPERM User has no permissions to run the 'set' command",
]


@pytest.mark.parametrize("line", CLAIM_FAILS, ids=lambda line: line.split(" ")[0])
def test_a_claim_that_fails_is_no_verdict(line: str) -> None:
    error = from_line(line)
    node = Node(None, error)

    with pytest.raises(type(error)):
        node.verify(4)

    assert node.asked == [GET, CLAIM]


def test_in_cluster_mode_each_queue_has_its_fence() -> None:
    assert fence_key(None) == b"{emq}:version"
    assert fence_key(b"emq:{orders}") == b"emq:{orders}:version"


def test_the_wire_is_4_6_or_auto() -> None:
    assert [parse_wire(wire) for wire in (4, 6, "auto")] == [4, 6, None]


@pytest.mark.parametrize("wire", [5, 0, True, "4", "AUTO", None, 6.0])
def test_another_wire_is_refused(wire: object) -> None:
    with pytest.raises(errors.InvalidArgument, match='4, 6 or "auto"'):
        parse_wire(wire)
