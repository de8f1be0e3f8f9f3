"""The conformance cases against the container, as against any node of somebody else.

On database 0 the module from the configuration file; on database 1, whose fence is theirs, the scripts. Cases that
restart, fill or reconfigure their server are for tests/contract.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.containers.node import Node

from emq_native.conformance import CASES, Case, Outcome, judge
from emq_native.conformance.case import ONCE, OWN_SERVER
from emq_native.executors import NATIVE, SCRIPTED, Executor

DATABASES = {"native": 0, "scripted": 1}


def runs() -> Iterator[object]:
    for number, case in sorted(CASES.items()):
        if case.function is None or OWN_SERVER in case.needs:
            continue
        for executor in (NATIVE, SCRIPTED):
            if executor.name in case.executors():
                for protocol in (2,) if ONCE in case.needs else (2, 3):
                    yield pytest.param(case, executor, protocol, id=f"{number}-{executor.name}-resp{protocol}")


@pytest.fixture(scope="session")
def claimed(node: Node) -> Node:
    """The node with the fence of each of the two databases set for its executor."""
    for executor in (NATIVE, SCRIPTED):
        with node.client(DATABASES[executor.name]) as client:
            client.set("{emq}:version", executor.identity)
    return node


@pytest.mark.parametrize(("case", "executor", "protocol"), list(runs()))
def test_the_container_conforms(case: Case, executor: Executor, protocol: int, claimed: Node) -> None:
    result = judge(case, claimed.url(DATABASES[executor.name]), executor, protocol)
    if result.outcome is not Outcome.OK:
        pytest.fail(
            f"{case.number} {case.title}\n{result.outcome.value}: {result.what}\n"
            f"expected {result.expected}\nfound    {result.found}",
            pytrace=False,
        )
