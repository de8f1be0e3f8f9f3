"""The remedies of the guide to operations help."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis

from emq_native.server import Server

QUEUE = "emq:{orders}"
FIRST, SECOND = "JOB0EEMl9I7Qw4", "JOB0EEMl9I7Qw5"


@pytest.fixture
def client() -> Iterator[redis.Redis]:
    with Server() as server, server.client(decode_responses=True) as client:
        client.set("{emq}:version", "echomq:6.0.0")
        yield client


def test_a_group_that_counts_what_is_not_there_is_served_again(client: redis.Redis) -> None:
    client.execute_command("EMQ.GLIMIT", QUEUE, "ada", 1)
    for job in (FIRST, SECOND):
        client.execute_command("EMQ.GENQUEUE", QUEUE, "ada", job, "x")
    client.execute_command("EMQ.GCLAIM", QUEUE, 60_000)
    client.delete(f"{QUEUE}:job:{FIRST}")
    client.zrem(f"{QUEUE}:active", FIRST)
    assert client.execute_command("EMQ.GCLAIM", QUEUE, 60_000) == []

    client.hdel(f"{QUEUE}:gactive", "ada")
    client.execute_command("EMQ.GRESUME", QUEUE, "ada")

    assert client.execute_command("EMQ.GCLAIM", QUEUE, 60_000) == [SECOND, "x", 1, "ada"]


def test_a_job_that_is_nowhere_can_be_removed_and_enqueued_anew(client: redis.Redis) -> None:
    client.execute_command("EMQ.ENQUEUE", QUEUE, FIRST, "x")
    client.zrem(f"{QUEUE}:pending", FIRST)
    assert client.execute_command("EMQ.STATE", QUEUE, FIRST) == "unknown"

    assert client.execute_command("EMQ.REMOVE", QUEUE, FIRST) == 1
    assert client.execute_command("EMQ.ENQUEUE", QUEUE, FIRST, "x") == 1


def test_a_pattern_for_the_keys_alone_refuses_every_verb(client: redis.Redis) -> None:
    client.execute_command("ACL", "SETUSER", "worker", "on", "nopass", "~emq:{orders}:*", "+@emq")
    client.execute_command("AUTH", "worker", "")
    with pytest.raises(redis.exceptions.NoPermissionError):
        client.execute_command("EMQ.COUNTS", QUEUE)
