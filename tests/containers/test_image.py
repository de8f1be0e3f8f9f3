"""What the image promises: the module from its configuration, no root, durable jobs, an honest health check."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import docker
import pytest
import redis
from docker.types import Mount
from tests.containers.node import Node, until

MODULE = "/usr/lib/valkey/emq.so"
ROOT = Path(__file__).parents[2]
JOB = "JOB0EEMl9I7Qw4"


def test_the_server_is_of_the_version_that_the_base_names(node: Node) -> None:
    with node.client() as client:
        assert client.info("server")["valkey_version"].startswith(node.version.removesuffix("-alpine") + ".")


def test_the_module_comes_from_the_configuration_file_and_from_nowhere_else(node: Node) -> None:
    assert node.run("grep ^loadmodule /etc/valkey/valkey.conf") == (0, f"loadmodule {MODULE}")
    with node.client() as client:
        assert "emq" in [module["name"] for module in client.module_list()]  # 9.1 lists its script engine too
        with pytest.raises(redis.ResponseError, match="MODULE command not allowed"):
            client.execute_command("MODULE", "LOAD", MODULE)


def test_nothing_runs_as_root_and_the_module_cannot_be_replaced(engine: docker.DockerClient, node: Node) -> None:
    assert node.run("id -un; id -u") == (0, "valkey\n999")
    assert engine.images.get(node.image).attrs["Config"]["User"] == "999"  # a number, which orchestrators can judge
    assert node.run(f"test -x {MODULE} && ! test -w {MODULE}") == (0, "")


def test_the_module_meets_the_libc_of_its_base(node: Node) -> None:
    archive, _ = node.container.get_wrapped_container().get_archive(MODULE)
    needs_glibc = b"GLIBC_" in b"".join(archive)
    assert needs_glibc is not node.version.endswith("-alpine")


def test_nothing_is_evicted_and_every_job_goes_to_disk(node: Node) -> None:
    with node.client() as client:
        assert client.config_get("maxmemory-policy", "appendonly", "appendfsync") == {
            "maxmemory-policy": "noeviction",
            "appendonly": "yes",
            "appendfsync": "everysec",
        }


def test_a_server_without_the_module_is_not_healthy(engine: docker.DockerClient, node: Node) -> None:
    assert engine.images.get(node.image).attrs["Config"]["Healthcheck"]["Test"] == ["CMD", "emq-health"]
    assert node.run("emq-health")[0] == 0

    assert node.run("valkey-server --port 6380 --daemonize yes --save ''")[0] == 0
    try:
        assert node.run("until valkey-cli -p 6380 PING | grep -q PONG; do sleep 0.1; done") == (0, "")
        status, said = node.run("EMQ_CLI='-p 6380' emq-health")
        assert status == 1
        assert "unknown command" in said
    finally:
        node.run("valkey-cli -p 6380 SHUTDOWN NOSAVE")


def test_the_health_check_and_the_claim_follow_the_server_to_its_password_port_and_certificate(
    image: str, version: str, tmp_path: Path
) -> None:
    subject = ("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1")
    made = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", "key", "-out", "crt")
    subprocess.run([*made, *subject], cwd=tmp_path, check=True, capture_output=True)
    tmp_path.chmod(0o755)
    (tmp_path / "key").chmod(0o644)  # the server in the container is another user
    words = ["--port", "0", "--tls-port", "7000", "--requirepass", "secret", "--tls-auth-clients", "no"]
    files = ["--tls-cert-file", "/tls/crt", "--tls-key-file", "/tls/key", "--tls-ca-cert-file", "/tls/crt"]
    environment = {"REDISCLI_AUTH": "secret", "EMQ_CLI": "-p 7000 --tls --cacert /tls/crt", "EMQ_CLAIM_WIRE": "6"}
    mounted = {"mounts": [Mount("/tls", str(tmp_path), type="bind", read_only=True)]}
    with Node(image, version, [*words, *files], environment, mounted) as node:  # it is healthy, or this fails
        assert node.run("emq-cli GET {emq}:version") == (0, "echomq:6.0.0")
        assert node.run("unset REDISCLI_AUTH; emq-health")[0] == 1


def test_it_needs_no_root_no_capability_and_no_file_system_but_its_data(image: str, version: str) -> None:
    bare = {
        "read_only": True,
        "user": "4321:4321",
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "mounts": [Mount("/data", None, type="tmpfs", tmpfs_mode=0o1777)],
    }
    with Node(image, version, environment={"EMQ_CLAIM_WIRE": "6"}, options=bare) as node, node.client() as client:
        assert node.run("id -u; ! touch /usr/lib/valkey/x 2>&1")[1].startswith("4321\n")
        assert client.execute_command("EMQ.ENQUEUE", "emq:{bare}", JOB, "kept") == 1
        assert client.bgrewriteaof()
        until(lambda: client.info("persistence")["aof_rewrites"] == 1, "the rewrite has begun")
        until(lambda: not client.info("persistence")["aof_rewrite_in_progress"], "the rewrite has ended")
        assert client.info("persistence")["aof_last_bgrewrite_status"] == "ok"


def test_the_labels_say_what_it_is(engine: docker.DockerClient, image: str) -> None:
    labels = engine.images.get(image).labels
    declared = re.search(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert declared
    assert labels["org.opencontainers.image.version"] == declared[1]
    assert labels["org.opencontainers.image.title"] == "emq-native"
    assert labels["org.opencontainers.image.licenses"] == "BSD-3-Clause"
