"""On a machine with Docker only, the steps of docs/install.md lead to jobs that run, and past the loss of a primary."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress

import docker
import pytest
import redis
from docker.errors import NotFound
from docker.models.containers import Container
from docker.models.volumes import Volume
from tests.containers.conftest import absent
from tests.containers.node import until
from tests.newcomer.guide import ROOT, steps

pytestmark = pytest.mark.timeout(900)  # it downloads and builds

SERVER, CLUSTER, FAILOVER = range(3)
PROJECT = "emq-newcomer"
JOBS = 300
COMPOSE = ("docker", "compose", "-f", "docker/compose.yaml")
SEND = f"import shop; [shop.resize.enqueue(str(n), width=n) for n in range({JOBS})]"
COUNTS = ("emq-cli", "EMQ.COUNTS", "emq:{default}")


Shell = Callable[[str], str]


def offset(node: Container, name: str) -> int:
    """How far the stream of changes has come at a node."""
    said = node.exec_run(["emq-cli", "INFO", "replication"]).output.decode()
    return int(said.partition(f"{name}:")[2].split()[0])


@pytest.fixture
def shell(public_names: None, free_port: int) -> Shell:
    """Runs commands in the checkout as they stand there; the port differs, and the name of the compose project."""
    environment = os.environ | {
        "EMQ_PORT": str(free_port),
        "COMPOSE_PROJECT_NAME": PROJECT,
        "DOCKER_BUILDKIT": "0",  # the builder that tests/containers uses too: what it has built is not built again
    }

    def run(commands: str) -> str:
        script = commands.replace("127.0.0.1:6379:", f"127.0.0.1:{free_port}:")
        done = subprocess.run(("bash", "-euxc", script), cwd=ROOT, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done.stdout

    return run


@pytest.fixture
def tidy(engine: docker.DockerClient) -> Iterator[None]:
    """What the steps leave on the machine goes; what was there before them stays."""
    if subprocess.run((*COMPOSE[:2], "version"), capture_output=True).returncode != 0:
        absent("docker has no compose")

    def mine() -> Iterator[Container | Volume]:
        for name, collection in (("emq", engine.containers), ("emq-jobs", engine.volumes)):
            with suppress(NotFound):
                yield collection.get(name)

    for found in mine():
        pytest.fail(f"{found.name} is there already, perhaps of somebody who has followed the steps; remove it first")
    yield
    for left in mine():
        left.remove(force=True)
    subprocess.run((*COMPOSE, "-p", PROJECT, "down", "-v", "-t", "1"), cwd=ROOT, check=True, capture_output=True)


def test_a_server_takes_lends_and_completes_a_job(shell: Shell, tidy: None, free_port: int) -> None:
    shown = shell(steps("With Docker")[SERVER])
    assert shown.splitlines()[-5:] == ["1", "JOB0EEMl9I7Qw4", "one", "1", "1"]
    with redis.Redis(port=free_port, decode_responses=True) as client:  # the port that the step opens
        assert client.execute_command("EMQ.STATE", "emq:{orders}", "JOB0EEMl9I7Qw4") == "absent"


def test_compose_runs_a_worker_which_goes_on_at_the_replica_when_the_primary_is_lost(
    shell: Shell, tidy: None, engine: docker.DockerClient
) -> None:
    blocks = steps("With Docker")
    shell(blocks[CLUSTER])
    until(lambda: "resized cat.png to 200" in shell(f"{' '.join(COMPOSE)} logs worker"), "the worker has done the job")

    [primary, replica, worker] = [
        engine.containers.get(f"{PROJECT}-{service}-1") for service in ("primary", "replica", "worker")
    ]
    assert worker.exec_run(["python", "-c", SEND]).exit_code == 0
    worker.pause()  # in the midst of it: some are done, some lent, some wait
    sent = offset(primary, "master_repl_offset")
    until(lambda: offset(replica, "slave_repl_offset") >= sent, "the replica has it all")
    primary.kill()
    worker.unpause()
    shell(blocks[FAILOVER])

    def completed() -> bool:
        answer = replica.exec_run(list(COUNTS)).output.decode().split()
        counts = dict(zip(answer[::2], map(int, answer[1::2]), strict=True))
        assert counts["dead"] == 0
        return counts["pending"] == counts["active"] == counts["scheduled"] == 0 and counts["completed"] == JOBS + 1

    until(completed, "every job is completed, once")
