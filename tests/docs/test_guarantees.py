"""What the page says of a failover is so: two servers that went apart show what an undone command leads to."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import redis

from emq_native import provision
from emq_native.server import Server

QUEUE = "emq:{orders}"
JOB = "JOB0EEMl9I7Qw4"


@pytest.fixture
def apart() -> Iterator[tuple[redis.Redis, redis.Redis]]:
    """A primary with a job that waits, and its replica, which took over before anything else reached it."""
    with Server() as old, Server(replica_of=old) as new, old.client() as before, new.client() as after:
        provision.claim(old.url, wire=6)
        assert before.execute_command("EMQ.ENQUEUE", QUEUE, JOB, "x") == 1
        assert before.wait(1, 60_000) == 1
        after.execute_command("REPLICAOF", "NO", "ONE")
        yield before, after


def test_a_claim_that_was_undone_gives_its_token_again(apart: tuple[redis.Redis, redis.Redis]) -> None:
    before, after = apart
    assert before.execute_command("EMQ.CLAIM", QUEUE, 60_000) == [JOB.encode(), b"x", 1]

    assert after.execute_command("EMQ.CLAIM", QUEUE, 60_000) == [JOB.encode(), b"x", 1]
    assert after.execute_command("EMQ.COMPLETE", QUEUE, JOB, 1) == 1


def test_a_completion_that_was_undone_lets_the_job_run_again(apart: tuple[redis.Redis, redis.Redis]) -> None:
    before, after = apart
    for node in apart:
        node.execute_command("EMQ.CLAIM", QUEUE, 1)
    assert before.execute_command("EMQ.COMPLETE", QUEUE, JOB, 1) == 1

    end = time.monotonic() + 60
    while not after.execute_command("EMQ.REAP", QUEUE):
        assert time.monotonic() < end
        time.sleep(0.01)
    assert after.execute_command("EMQ.CLAIM", QUEUE, 60_000) == [JOB.encode(), b"x", 2]


def test_an_admission_that_was_undone_is_gone(apart: tuple[redis.Redis, redis.Redis]) -> None:
    before, after = apart
    before.execute_command("EMQ.ENQUEUE", QUEUE, "JOB0EEMl9I7Qw5", "y")

    assert after.execute_command("EMQ.STATE", QUEUE, "JOB0EEMl9I7Qw5") == b"absent"


def test_without_a_replica_that_keeps_up_nothing_is_written() -> None:
    with (
        Server(config={"min-replicas-to-write": "1", "min-replicas-max-lag": "5"}) as server,
        server.client() as client,
        pytest.raises(redis.ResponseError, match=r"^NOREPLICAS"),
    ):
        client.execute_command("EMQ.ENQUEUE", QUEUE, JOB, "x")
