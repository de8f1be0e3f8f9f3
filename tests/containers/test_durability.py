"""Jobs, leases and the fence outlive the container's server, in order and out of order, and the module itself."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest
import redis
from tests.containers.node import Node, until

QUEUE = "emq:{durable}"
WAITING, LENT, LATER = "JOB0EEMl9I7Qw4", "JOB0EEMl9I7Qw5", "JOB0EEMl9I7S07"


@pytest.fixture
def durable(image: str, version: str) -> Iterator[Node]:
    """A claimed node that answers when a change is on the disk, with one job lent, one waiting and one for tomorrow."""
    words = ["--appendfsync", "always", "--enable-debug-command", "local"]
    with Node(image, version, words, {"EMQ_CLAIM_WIRE": "6"}) as node:
        with node.client() as client:
            assert client.execute_command("EMQ.ENQUEUE", QUEUE, LENT, "lent") == 1
            assert client.execute_command("EMQ.CLAIM", QUEUE, 600_000) == [LENT, "lent", 1]
            assert client.execute_command("EMQ.ENQUEUE", QUEUE, WAITING, "kept") == 1
            assert client.execute_command("EMQ.SCHEDULE", QUEUE, LATER, "later", "IN", 86_400_000) == 1
        yield node


def test_a_restart_and_a_kill_lose_nothing(durable: Node) -> None:
    with durable.client() as client:
        deadline = client.zscore(f"{QUEUE}:active", LENT)
    durable.restart()
    durable.kill()
    durable.start_again()
    with durable.client() as client:
        assert client.get("{emq}:version") == "echomq:6.0.0"
        assert client.zscore(f"{QUEUE}:active", LENT) == deadline
        assert client.execute_command("EMQ.STATE", QUEUE, LATER) == "scheduled"
        assert client.execute_command("EMQ.CLAIM", QUEUE, 1000) == [WAITING, "kept", 1]
        with pytest.raises(redis.ResponseError, match="EMQSTALE"):
            client.execute_command("EMQ.COMPLETE", QUEUE, LENT, 2)
        assert client.execute_command("EMQ.COMPLETE", QUEUE, LENT, 1) == 1


def test_the_data_load_in_a_server_without_the_module(durable: Node, base: str, version: str) -> None:
    digest = durable.run("emq-cli DEBUG DIGEST")
    assert digest[0] == 0
    durable.kill()
    archive, _ = durable.container.get_wrapped_container().get_archive("/data")
    plain = ["valkey-server", "--appendonly", "yes", "--enable-debug-command", "local", "--dir", "/data"]
    with Node(base, version, ["sleep", "infinity"], patient=False) as bare:
        bare.container.get_wrapped_container().put_archive("/", io.BytesIO(b"".join(archive)))
        assert bare.run(f"{' '.join(plain)} --daemonize yes")[0] == 0
        until(lambda: bare.run("valkey-cli PING") == (0, "PONG"), "the server has loaded the data")
        assert bare.run("valkey-cli MODULE LIST | grep -c emq")[1] == "0"
        assert bare.run("valkey-cli DEBUG DIGEST") == digest
        assert bare.run(f"valkey-cli HGET '{QUEUE[:-1]}}}:job:{WAITING}' payload") == (0, "kept")
