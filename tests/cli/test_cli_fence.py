"""The commands of the fence, as the contract has them: what they print, what they write, how they exit."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator

import pytest
from tests.cli.conftest import Run

from emq_native import WireMismatch, connect, provision
from emq_native.server import Server
from emq_native.session import Session

KEY = "{emq}:version"
OWN = {"4": "echomq:4.0.0", "6": "echomq:6.0.0"}


@pytest.fixture
def clustered() -> Iterator[Server]:
    with Server(module=False, config={"cluster-enabled": "yes"}) as server:
        server.own_slots()
        yield server


def stands(server: Server, key: str = KEY) -> tuple[bytes | None, int]:
    """What the fence holds, and its time to live."""
    client = server.client()
    kind = client.type(key)
    return client.get(key) if kind in (b"string", b"none") else kind, client.ttl(key)


@pytest.mark.parametrize(
    ("prepare", "shown"),
    [
        (lambda client: None, "unclaimed"),
        (lambda client: client.set(KEY, "echomq:4.0.0"), "echomq:4.0.0"),
        (lambda client: client.set(KEY, "something else"), "something else"),
        (lambda client: client.set(KEY, ""), "an empty string"),
        (lambda client: client.rpush(KEY, "echomq:6.0.0"), "not a string"),
    ],
    ids=["nothing", "an identity", "another string", "an empty string", "a list"],
)
def test_show_prints_what_is_there(run: Run, node: Server, prepare: Callable[[object], object], shown: str) -> None:
    prepare(node.client())
    answer = run("fence", "show", node.url)
    assert (answer.exit_code, answer.stdout, answer.stderr) == (0, shown + "\n", "")


def test_show_warns_of_a_time_to_live(run: Run, node: Server) -> None:
    node.client().set(KEY, "echomq:6.0.0", ex=1000)
    answer = run("fence", "show", node.url)
    assert (answer.exit_code, answer.stdout) == (0, "echomq:6.0.0\n")
    assert answer.stderr.startswith(f"warning: {KEY} expires in ")


def test_show_has_json(run: Run, node: Server) -> None:
    node.client().set(KEY, "echomq:6.0.0")
    assert json.loads(run("fence", "show", node.url, "--json").stdout) == {
        "key": KEY,
        "value": "echomq:6.0.0",
        "is_string": True,
        "ttl_ms": None,
        "wire": 6,
    }


@pytest.mark.parametrize("wire", ["4", "6"])
def test_claim_takes_a_fresh_node_and_may_be_repeated(run: Run, node: Server, wire: str) -> None:
    for _ in range(2):
        answer = run("fence", "claim", node.url, "--wire", wire)
        assert (answer.exit_code, answer.stdout) == (0, OWN[wire] + "\n")
        assert stands(node) == (OWN[wire].encode(), -1)


@pytest.mark.parametrize("found", ["echomq:4.0.0", "echomq:7.0.0", ""])
def test_claim_leaves_what_is_there(run: Run, node: Server, found: str) -> None:
    node.client().set(KEY, found)
    answer = run("fence", "claim", node.url, "--wire", "6")
    assert answer.exit_code == 1
    assert (found or "an empty string") in answer.stderr
    assert stands(node) == (found.encode(), -1)


def test_claim_leaves_a_key_of_another_kind(run: Run, node: Server) -> None:
    node.client().rpush(KEY, "x")
    answer = run("fence", "claim", node.url, "--wire", "6")
    assert answer.exit_code == 1
    assert "not a string" in answer.stderr
    assert stands(node) == (b"list", -1)


def test_claim_needs_a_wire_that_there_is(run: Run, node: Server) -> None:
    assert run("fence", "claim", node.url).exit_code == 2
    assert run("fence", "claim", node.url, "--wire", "5").exit_code == 2
    assert stands(node) == (None, -2)


def test_claim_on_a_replica_gives_no_verdict(run: Run, node: Server) -> None:
    with Server(module=False, replica_of=node) as replica:
        answer = run("fence", "claim", replica.url, "--wire", "6")
    assert answer.exit_code == 3
    assert "READONLY" in answer.stderr


def test_move_hands_the_node_over_and_back(run: Run, node: Server) -> None:
    node.client().set(KEY, "echomq:4.0.0", ex=1000)
    for source, to in (("4", "6"), ("6", "4")):
        answer = run("fence", "move", node.url, "--from", source, "--to", to)
        assert (answer.exit_code, answer.stdout) == (0, OWN[to] + "\n")
        assert stands(node) == (OWN[to].encode(), -1)


def test_c015_move_from_a_wire_that_does_not_own_the_node_changes_nothing(run: Run, node: Server) -> None:
    node.client().set(KEY, "echomq:6.0.0", ex=1000)
    ends = node.client().pexpiretime(KEY)
    before = node.client().info("persistence")["rdb_changes_since_last_save"]
    answer = run("fence", "move", node.url, "--from", "4", "--to", "6")
    assert answer.exit_code == 1
    assert "not moved: {emq}:version holds echomq:6.0.0" in answer.stderr
    assert (node.client().get(KEY), node.client().pexpiretime(KEY)) == (b"echomq:6.0.0", ends)
    assert node.client().info("persistence")["rdb_changes_since_last_save"] == before


def test_move_of_an_unclaimed_node_changes_nothing(run: Run, node: Server) -> None:
    answer = run("fence", "move", node.url, "--from", "4", "--to", "6")
    assert answer.exit_code == 1
    assert "unclaimed" in answer.stderr
    assert stands(node) == (None, -2)


def test_move_to_the_same_wire_is_a_wrong_command_line(run: Run, node: Server) -> None:
    assert run("fence", "move", node.url, "--from", "6", "--to", "6").exit_code == 2


def test_of_many_moves_at_once_exactly_one_moves(run: Run, node: Server) -> None:
    node.client().set(KEY, "echomq:4.0.0")
    moved: list[bool] = []

    def move() -> None:
        moved.append(provision.move(node.url, source=4, to=6)[0])

    movers = [threading.Thread(target=move) for _ in range(8)]
    for mover in movers:
        mover.start()
    for mover in movers:
        mover.join()
    assert sorted(moved) == [False] * 7 + [True]


def test_move_does_not_overwrite_what_changed_between_its_look_and_its_write(node: Server) -> None:
    client = node.client()
    client.set(KEY, "echomq:4.0.0")
    with Session(node.url) as session:
        session.send("WATCH", KEY)
        client.set(KEY, "echomq:7.0.0")
        session.send("MULTI")
        session.send("SET", KEY, "echomq:6.0.0")
        assert session.send("EXEC") is None
    assert stands(node) == (b"echomq:7.0.0", -1)


def test_clients_of_the_old_wire_are_refused_after_a_move(run: Run, node: Server) -> None:
    with connect(node.url, wire=4) as bus:
        bus.queue("q").enqueue(b"x")
    assert run("fence", "move", node.url, "--from", "4", "--to", "6").exit_code == 0
    with pytest.raises(WireMismatch):
        connect(node.url, wire=4)


def test_a_queue_is_refused_outside_cluster_mode(run: Run, node: Server) -> None:
    for words in (("show",), ("claim", "--wire", "6"), ("move", "--from", "4", "--to", "6")):
        answer = run("fence", *words, node.url, "--queue", "orders")
        assert answer.exit_code == 2
        assert "name no queue" in answer.stderr
    assert node.client().dbsize() == 0


def test_a_queue_is_required_in_cluster_mode(run: Run, clustered: Server) -> None:
    for words in (("show",), ("claim", "--wire", "6"), ("move", "--from", "4", "--to", "6")):
        answer = run("fence", *words, clustered.url)
        assert answer.exit_code == 2
        assert "name the queue" in answer.stderr
    assert clustered.client().dbsize() == 0


def test_in_cluster_mode_each_queue_is_claimed_and_moved_by_itself(run: Run, clustered: Server) -> None:
    key = "emq:{orders}:version"
    assert run("fence", "claim", clustered.url, "--queue", "orders", "--wire", "4").stdout == "echomq:4.0.0\n"
    assert stands(clustered, key) == (b"echomq:4.0.0", -1)
    assert run("fence", "show", clustered.url, "--queue", "fills").stdout == "unclaimed\n"
    moved = run("fence", "move", clustered.url, "--queue", "orders", "--from", "4", "--to", "6")
    assert (moved.exit_code, stands(clustered, key)) == (0, (b"echomq:6.0.0", -1))
    assert clustered.client().dbsize() == 1


def test_a_queue_name_that_is_none_is_a_wrong_command_line(run: Run, clustered: Server) -> None:
    answer = run("fence", "claim", clustered.url, "--queue", "no name", "--wire", "6")
    assert answer.exit_code == 2
    assert clustered.client().dbsize() == 0


def test_c009_a_claim_and_a_connector_that_race_leave_one_owner(node: Server) -> None:
    for _ in range(20):
        node.client().flushall()
        outcomes: dict[str, bool] = {}

        def claim(outcomes: dict[str, bool] = outcomes) -> None:
            outcomes["6"] = provision.claim(node.url, wire=6).wire == 6

        claimer = threading.Thread(target=claim)
        claimer.start()
        try:
            connect(node.url, wire=4).close()
            outcomes["4"] = True
        except WireMismatch:
            outcomes["4"] = False
        claimer.join()
        owner = stands(node)[0]
        assert outcomes == {"4": owner == b"echomq:4.0.0", "6": owner == b"echomq:6.0.0"}
        assert True in outcomes.values()
