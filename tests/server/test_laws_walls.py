"""A verb stays in its queue, and a queue stays still by itself; what waits is served in one order."""

from __future__ import annotations

import random

import pytest

from emq_native.conformance.lab import LEASE, Lab
from emq_native.conformance.scenes import SCENES, Scene


@pytest.fixture
def protocol() -> int:
    """Walls and order know nothing of protocol versions."""
    return 2


def populate(lab: Lab, queue: str) -> None:
    """The ids of the lab once more, in another queue, with everything that a verb might reach for."""
    for job, place in ((lab.a, "pending"), (lab.b, "active"), (lab.c, "schedule"), (lab.d, "dead")):
        lab.seed(job, place, score=1, queue=queue)
    lab.seed(lab.ids(1)[0], group="g", queue=queue)
    lab.seed(lab.ids(1)[0], "held", queue=queue)
    lab.plain("HSET", lab.key("gweight", queue), "g", 2)
    lab.plain("HSET", lab.key("meta", queue), "paused", "1")
    lab.plain("HSET", lab.key("repeat:nightly", queue), "every_ms", 1, "template", "t")
    lab.plain("ZADD", lab.key("repeat", queue), 1, "nightly")
    lab.plain("RPUSH", lab.key("flow:outbox", queue), "entry")


@pytest.mark.parametrize("scene", SCENES, ids=str)
def test_a_verb_touches_its_own_queue_only(lab: Lab, scene: Scene) -> None:
    other = lab.new_queue()
    populate(lab, other)
    before = lab.data(other)
    words = scene.prepare(lab)
    lab.send(scene.verb, *words)
    assert lab.data(other) == before


def test_nothing_changes_without_a_command(lab: Lab) -> None:
    populate(lab, lab.name)
    with lab.unchanged("waiting"):
        lab.reach(lab.now() + 1500)


def shuffled(lab: Lab, count: int) -> list[str]:
    jobs = lab.ids(count)
    random.Random(1).shuffle(jobs)
    return jobs


def test_waiting_jobs_are_served_in_the_order_of_their_minting(lab: Lab) -> None:
    for job in shuffled(lab, 40):
        lab.seed(job)
    order = []
    while reply := lab.send("claim", LEASE):
        assert isinstance(reply, list)
        order.append(reply[0])
    assert order == sorted(order, key=bytes)
    assert len(order) == 40


@pytest.mark.parametrize(("verb", "place"), [("promote", "schedule"), ("reap", "active")])
def test_what_is_due_is_worked_off_by_score_and_then_by_id(lab: Lab, verb: str, place: str) -> None:
    scores = {job: 1 + number % 3 for number, job in enumerate(shuffled(lab, 30))}
    for job, score in scores.items():
        lab.seed(job, place, score=score)
    order = sorted(scores, key=lambda job: (scores[job], job))
    for taken in range(5, 31, 5):
        assert lab.send(verb, "LIMIT", 5) == 5
        assert sorted(lab.scores("pending")) == sorted(order[:taken])


def test_a_retried_job_comes_before_all_younger_ones(lab: Lab) -> None:
    for job in (lab.a, lab.b):
        lab.seed(job)
    lab.send("claim", LEASE)
    assert lab.send("retry", lab.a, "1", 0, 3, "e") == b"scheduled"
    assert lab.send("promote") == 1
    assert lab.send("claim", LEASE) == [lab.a.encode(), b"payload", 2]


def test_wake_tokens_are_left_when_a_lane_enters_the_ring_and_not_when_it_moves(lab: Lab) -> None:
    for job in lab.ids(3):
        lab.send("genqueue", "g", job, "p")
    assert lab.items("wake") == [b"1"]
    lab.send("gclaim", LEASE)
    assert lab.items("wake") == [b"1"]
    lab.send("gpause", "g")
    lab.send("gresume", "g")
    assert lab.items("wake") == [b"1", b"1"]
    lab.send("glimit", "g", 1)
    lab.send("glimit", "g", 2)
    assert lab.items("wake") == [b"1", b"1", b"1"]
