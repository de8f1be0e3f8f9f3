"""What the image promises: the module from its configuration, no root, durable jobs, an honest health check."""

from __future__ import annotations

import docker
import pytest
import redis
from tests.containers.node import Node

MODULE = "/usr/lib/valkey/modules/emq.so"
JOB = "JOB0EEMl9I7Qw4"


def test_the_server_is_of_the_version_that_the_base_names(node: Node) -> None:
    with node.client() as client:
        assert client.info("server")["valkey_version"].startswith(node.version + ".")


def test_the_module_comes_from_the_configuration_file_and_from_nowhere_else(node: Node) -> None:
    assert node.run("grep ^loadmodule /etc/valkey/valkey.conf") == (0, f"loadmodule {MODULE}")
    with node.client() as client:
        assert "emq" in [module["name"] for module in client.module_list()]  # 9.1 lists its script engine too
        with pytest.raises(redis.ResponseError, match="MODULE command not allowed"):
            client.execute_command("MODULE", "LOAD", MODULE)


def test_nothing_runs_as_root_and_the_module_cannot_be_replaced(node: Node) -> None:
    assert node.run("id -un") == (0, "valkey")
    assert node.run(f"test -x {MODULE} && ! test -w {MODULE}") == (0, "")


def test_nothing_is_evicted_and_every_job_goes_to_disk(node: Node) -> None:
    with node.client() as client:
        assert client.config_get("maxmemory-policy", "appendonly", "appendfsync") == {
            "maxmemory-policy": "noeviction",
            "appendonly": "yes",
            "appendfsync": "everysec",
        }


def test_a_server_without_the_module_is_not_healthy(engine: docker.DockerClient, node: Node) -> None:
    kind, check = engine.images.get(node.image).attrs["Config"]["Healthcheck"]["Test"]
    assert kind == "CMD-SHELL"
    assert node.run(check)[0] == 0

    bare = check.replace("valkey-cli", "valkey-cli -p 6380")
    assert node.run("valkey-server --port 6380 --daemonize yes --save ''")[0] == 0
    try:
        assert node.run("until valkey-cli -p 6380 PING | grep -q PONG; do sleep 0.1; done") == (0, "")
        assert node.run(bare)[0] == 1
    finally:
        node.run("valkey-cli -p 6380 SHUTDOWN NOSAVE")


def test_jobs_outlive_a_restart(node: Node) -> None:
    with node.client() as client:
        client.set("{emq}:version", "echomq:6.0.0")
        assert client.execute_command("EMQ.ENQUEUE", "emq:{durable}", JOB, "kept") == 1
    node.restart()
    with node.client() as client:
        assert client.execute_command("EMQ.CLAIM", "emq:{durable}", 1000) == [JOB, "kept", 1]
        assert client.execute_command("EMQ.COMPLETE", "emq:{durable}", JOB, 1) == 1
