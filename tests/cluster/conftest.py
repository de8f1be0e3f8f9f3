"""Three nodes in cluster mode for each executor, and what tests of them need."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator

import pytest
from tests.cluster.nodes import Cluster

from emq_native.conformance.lab import Lab
from emq_native.executors import Executor

_used = pytest.StashKey[list[Cluster]]()


@pytest.fixture
def protocol() -> int:
    """Nodes know nothing of protocol versions."""
    return 2


@pytest.fixture(scope="session")
def clusters() -> Iterator[dict[str, Cluster]]:
    """The cluster of an executor by its name; started when it is first used, and anew when a node of it is gone."""
    running: dict[str, Cluster] = {}
    yield running
    for each in running.values():
        each.stop()


@pytest.fixture
def cluster(request: pytest.FixtureRequest, executor: Executor, clusters: dict[str, Cluster]) -> Iterator[Cluster]:
    """A cluster of three primaries, empty. What a test leaves behind is a failure of that test."""
    found = clusters.get(executor.name)
    if found is None or not found.running:
        if found is not None:
            found.stop()
        found = clusters[executor.name] = Cluster.start(executor)
    request.node.stash.setdefault(_used, []).append(found)
    found.flush()
    yield found
    assert found.keys() == set(), "every queue of a test is wiped"


@pytest.fixture
def labs(cluster: Cluster) -> Iterator[list[Lab]]:
    """A queue on each node, its fence claimed; audited and wiped at the end."""
    made = [Lab(node.url, cluster.executor, 2, prefix="test") for node in cluster.nodes]
    try:
        yield made
        for lab in made:
            lab.check()
    finally:
        for lab in made:
            lab.close()


@pytest.fixture
def fresh(executor: Executor, request: pytest.FixtureRequest) -> Iterator[Callable[..., Cluster]]:
    """Clusters of the test's own, for those that change their nodes: `fresh(replicas=1)`."""
    made: list[Cluster] = request.node.stash.setdefault(_used, [])

    def start(*, primaries: int = 3, replicas: int = 0) -> Cluster:
        made.append(Cluster.start(executor, primaries=primaries, replicas=replicas))
        return made[-1]

    yield start
    for each in made:
        each.stop()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        for each in item.stash.get(_used, []):
            report.sections.extend(each.logs())
    return report
