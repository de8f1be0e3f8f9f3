"""Both executors and the model take the same random walks and agree after every step."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.model.machine import QUEUES, Machine, Side, Step
from tests.model.walk import walk
from tests.model.words import VERBS

from emq_native import verbs
from emq_native.executors import NATIVE, SCRIPTED

SEEDS = range(32)


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    machine = Machine(Side(NATIVE), Side(SCRIPTED))
    yield machine
    machine.stop()


@pytest.mark.parametrize("seed", SEEDS)
def test_executors_and_model_agree_after_every_step(machine: Machine, seed: int) -> None:
    walk(machine, seed)


def test_the_model_knows_every_verb_that_both_executors_have() -> None:
    """But those that make and carry flows; what flows do to jobs is in the walks."""
    shared = {verb.name for verb in verbs.VERBS.values() if verb.scripted}
    assert set(VERBS) == {name for name in shared if not name.startswith("emq.flow")}


def test_all_three_stop_at_the_same_bounds(machine: Machine) -> None:
    """What walks are too short for: 1000 stale entries in a serving step, 1000 lanes in a round."""
    queue, job, lease = QUEUES[0], b"JOB0KHTOWnGLuC", b"60000000000000"
    ghosts = [word for number in range(1500) for word in (b"0", b"JOB%011d" % number)]
    machine.reset(3)
    machine.damaged = True
    machine.step([(b"ZADD", queue + b":pending", *ghosts), (b"emq.enqueue", queue, job, b"p")])
    for _ in range(3):
        machine.step([(b"emq.mclaim", queue, lease, b"5")])

    other = b"JOB0KHTOWnGLuD"
    machine.step([(b"emq.genqueue", queue, b"g", other, b"p"), (b"ZADD", queue + b":g:g:pending", *ghosts)])
    for _ in range(3):
        machine.step([(b"emq.gmclaim", queue, lease, b"5")])

    lanes: Step = []
    for number in range(1100):
        lost = b"JOB1%010d" % number
        lanes += [(b"emq.genqueue", queue, b"%d" % number, lost, b"p"), (b"DEL", queue + b":job:" + lost)]
    machine.step(lanes)
    for _ in range(2):
        machine.step([(b"emq.gclaim", queue, lease)])
    assert not machine.model.keys.get(queue + b":ring")
