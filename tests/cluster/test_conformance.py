"""The conformance suite against a node of a cluster that is not its own."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from tests.cluster.nodes import Cluster

from emq_native.conformance import CASES, Outcome
from emq_native.conformance.case import OWN_SERVER
from emq_native.conformance.command import NO_VERDICT, conformance
from emq_native.executors import Executor

pytestmark = pytest.mark.cluster


def test_an_executor_conforms_in_a_cluster_and_nothing_is_left_behind(cluster: Cluster, executor: Executor) -> None:
    with cluster.client() as client:
        client.set("{emq}:version", "of somebody else")
        client.set("foreign", "kept")
    words = ["--url", cluster.nodes[1].url, "--executor", executor.name, "--json"]
    answer = CliRunner().invoke(conformance, words)
    document = json.loads(answer.stdout)
    assert [result for result in document["results"] if result["outcome"] == Outcome.FAIL.value] == []
    assert answer.exit_code == 0
    proved = {result["case"] for result in document["results"] if result["outcome"] == Outcome.OK.value}
    ours = {number for number, case in CASES.items() if case.function and executor.name in case.executors()}
    assert proved == {number for number in ours if OWN_SERVER not in CASES[number].needs}
    assert cluster.keys() == {b"{emq}:version", b"foreign"}
    with cluster.client() as client:
        assert client.get("{emq}:version") == b"of somebody else"
    cluster.flush()


def test_without_an_executor_there_is_no_verdict_because_no_fence_speaks_for_the_node(cluster: Cluster) -> None:
    for node in cluster.nodes:
        answer = CliRunner().invoke(conformance, ["--url", node.url])
        assert answer.exit_code == NO_VERDICT
        assert "in cluster mode each queue has its own fence: say which executor is to be tested" in answer.output
