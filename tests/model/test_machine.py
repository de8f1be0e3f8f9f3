"""Both executors and the model take the same random walks and agree after every step."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.model.machine import Machine, Side
from tests.model.walk import walk

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
