"""The entrypoint: words for the server, the claim of a fresh node, and signals."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.containers.node import Node, until

FENCE = "{emq}:version"
OURS = "echomq:6.0.0"
CLAIM = {"EMQ_CLAIM_WIRE": "6"}
CLAIMED = "this node belongs to wire 6, echomq:6.0.0"


@pytest.fixture
def claiming(image: str, version: str) -> Iterator[Node]:
    """A fresh node that shall be claimed and is healthy."""
    with Node(image, version, environment=CLAIM) as running:
        yield running


def test_without_being_asked_nothing_is_claimed_and_the_server_is_process_1(image: str, version: str) -> None:
    with Node(image, version) as node, node.client() as client:
        assert client.get(FENCE) is None
        assert node.run("tr '\\0' ' ' </proc/1/cmdline")[1].startswith("valkey-server ")
        assert "emq-entrypoint" not in node.log()


def test_a_fresh_node_is_claimed_once_it_serves_and_is_healthy_only_then(claiming: Node) -> None:
    with claiming.client() as client:
        assert client.get(FENCE) == OURS
        assert client.execute_command("EMQ.ENQUEUE", "emq:{fresh}", "JOB0EEMl9I7Qw4", "one") == 1
        assert claiming.run("emq-health") == (0, "")
        client.delete(FENCE)
        assert claiming.run("emq-health") == (1, "{emq}:version holds nothing, not echomq:6.0.0")


def test_a_node_that_is_ours_stays_ours_when_it_starts_again(claiming: Node) -> None:
    with claiming.client() as client:
        client.set(FENCE, OURS, ex=10_000)
    claiming.restart()
    until(lambda: claiming.log().count(CLAIMED) == 2, "the second claim has ended")
    with claiming.client() as client:
        assert client.get(FENCE) == OURS
        assert client.ttl(FENCE) > 0  # not written again


@pytest.mark.parametrize("other", ["echomq:4.0.0", "somebody's"])
def test_a_node_of_another_wire_is_left_alone_and_says_so(claiming: Node, other: str) -> None:
    with claiming.client() as client:
        client.set(FENCE, other)
    claiming.patient = False
    claiming.restart()
    until(lambda: "not claimed: " in claiming.log(), "the claim is refused")
    refusal = claiming.log().rpartition("not claimed: ")[2].splitlines()[0]
    assert other in refusal
    assert claiming.run("emq-health") == (1, f"{{emq}}:version holds {other}, not {OURS}")
    with claiming.client() as client:
        assert client.get(FENCE) == other


def test_a_replica_claims_nothing_and_gets_the_fence_of_its_primary(image: str, version: str, claiming: Node) -> None:
    with Node(image, version, ["--replicaof", claiming.address, "6379"], CLAIM) as replica, replica.client() as client:
        replica.says("not claimed: a replica has the fence of its primary")
        until(lambda: client.get(FENCE) == OURS, "the fence has come over")


def test_in_cluster_mode_the_fence_is_explained_and_not_claimed(image: str, version: str) -> None:
    with Node(image, version, ["--cluster-enabled", "yes"], CLAIM) as node:
        node.says("not claimed: in cluster mode each queue has its own fence")
        assert node.run("emq-cli CLUSTER ADDSLOTSRANGE 0 16383") == (0, "OK")
        until(lambda: "cluster_state:ok" in node.run("emq-cli CLUSTER INFO")[1], "the cluster serves")
        assert node.run("emq-cli DBSIZE") == (0, "0")


def test_a_wire_that_cannot_be_claimed_here_ends_the_container(image: str, version: str) -> None:
    with Node(image, version, environment={"EMQ_CLAIM_WIRE": "4"}, patient=False) as node:
        assert node.container.wait() == 2
        assert "EMQ_CLAIM_WIRE is 6 or not set, not '4'" in node.log()


def test_what_waiting_does_not_change_ends_the_claim(image: str, version: str) -> None:
    with Node(image, version, ["--requirepass", "secret"], CLAIM, patient=False) as node:
        node.says("not claimed: NOAUTH")
        assert node.run("REDISCLI_AUTH=secret emq-cli GET {emq}:version") == (0, "")


def test_a_server_that_is_not_where_the_claim_looks_is_said_to_be_so(image: str, version: str) -> None:
    with Node(image, version, ["--port", "7000"], CLAIM, patient=False) as node:
        node.says("not claimed yet, the server is asked on (EMQ_CLI says how): Could not connect")
        assert node.run("EMQ_CLI='-p 7000' emq-cli EXISTS {emq}:version") == (0, "0")


def test_further_words_go_to_the_server_and_win(image: str, version: str) -> None:
    words = ["--maxmemory", "100mb", "--appendfsync", "always"]
    with Node(image, version, words, CLAIM) as node, node.client() as client:
        assert client.config_get("maxmemory", "appendfsync") == {"maxmemory": "104857600", "appendfsync": "always"}


@pytest.mark.parametrize("environment", [{}, CLAIM], ids=["server alone", "claiming"])
def test_sigterm_ends_the_server_in_order(image: str, version: str, environment: dict[str, str]) -> None:
    with Node(image, version, environment=environment) as node:
        assert node.stop() == 0
        assert "Calling fsync() on the AOF file" in node.log()
        assert "ready to exit, bye bye" in node.log()


def test_the_container_ends_as_the_server_does(image: str, version: str) -> None:
    with Node(image, version, ["--no-such-option", "1"], CLAIM, patient=False) as node:
        assert node.container.wait() == 1
