"""Both executors and the model take the same random walks and agree after every step."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.model.machine import Machine, Side
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
