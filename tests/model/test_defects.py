"""The walks are worth something: each of many small defects is found, and found on the side that has it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.model.defects import IN_C, IN_LUA, IN_MODEL, Builder, Defect, scripts
from tests.model.machine import Divergence, Machine, Side
from tests.model.model import Model
from tests.model.test_machine import SEEDS
from tests.model.walk import walk

from emq_native.executors import NATIVE, SCRIPTED


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Builder:
    return Builder(tmp_path_factory.mktemp("defects"))


@pytest.fixture(scope="module")
def native() -> Iterator[Side]:
    side = Side(NATIVE)
    yield side
    side.stop()


@pytest.fixture(scope="module")
def scripted() -> Iterator[Side]:
    side = Side(SCRIPTED)
    yield side
    side.stop()


def found(native: Side, scripted: Side, model: type[Model] = Model) -> str:
    """What the walks of the fixed seeds say first."""
    machine = Machine(native, scripted, model)
    for seed in SEEDS:
        try:
            walk(machine, seed, seconds=0)
        except Divergence as divergence:
            return str(divergence)
    return "nothing"


@pytest.mark.parametrize("defect", IN_C, ids=str)
def test_a_defect_of_the_module_is_found(builder: Builder, scripted: Side, defect: Defect) -> None:
    broken = Side(NATIVE, module=str(builder.module(defect)))
    try:
        assert ": native: " in found(broken, scripted)
    finally:
        broken.stop()


@pytest.mark.parametrize("defect", IN_LUA, ids=str)
def test_a_defect_of_the_scripts_is_found(native: Side, defect: Defect) -> None:
    broken = Side(SCRIPTED, scripts=scripts(defect))
    try:
        assert ": scripted: " in found(native, broken)
    finally:
        broken.stop()


@pytest.mark.parametrize("model", IN_MODEL.values(), ids=IN_MODEL.keys())
def test_a_defect_of_the_model_is_found(native: Side, scripted: Side, model: type[Model]) -> None:
    assert ": native: " in found(native, scripted, model)
