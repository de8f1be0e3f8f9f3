"""The suite's own table of verbs: it covers every verb, and the product agrees with it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from emq_native.conformance.case import full_name
from emq_native.conformance.lab import Lab
from emq_native.conformance.scenes import IDLE, LATER, NATIVE_IDLE, NATIVE_SCENES, READS, SCENES, VERBS
from emq_native.executors import SCRIPTED
from emq_native.verbs import VERBS as PRODUCT
from emq_native.verbs import Effect

MakeLab = Callable[..., Lab]
WITHOUT_A_QUEUE = {"tra.capabilities"}


def test_every_verb_of_the_product_is_in_the_table_and_the_other_way_round() -> None:
    later = {full_name(verb) for verb in LATER}
    assert set(PRODUCT) - later - WITHOUT_A_QUEUE == set(VERBS)


@pytest.mark.parametrize("name", sorted(VERBS))
def test_the_product_gives_a_verb_the_effect_of_the_contract(name: str) -> None:
    verb = VERBS[name]
    expected = Effect.GROWS if verb.grows else Effect.WRITES if verb.writes else Effect.READS
    assert PRODUCT[name].effect is expected


def test_every_writing_verb_has_a_scene_and_every_reading_one_is_looked_at() -> None:
    played = {scene.row.name for scene in (*SCENES, *NATIVE_SCENES)}
    assert played == {name for name, verb in VERBS.items() if verb.writes}
    assert {scene.row.name for scene in READS} >= {name for name, verb in VERBS.items() if not verb.writes} - {
        "emq.version"
    }


def test_every_verb_that_can_find_nothing_to_do_is_asked_to() -> None:
    always = {"emq.retry", "emq.delay", "emq.gpause", "emq.gresume", "emq.glimit", "emq.gweight", "emq.pause"}
    always |= {"emq.resume", "emq.obliterate"}
    assert {scene.row.name for scene in (*IDLE, *NATIVE_IDLE)} == {
        name for name, verb in VERBS.items() if verb.writes
    } - always


@pytest.mark.parametrize("name", sorted(VERBS))
def test_the_module_registers_the_flags_of_the_contract(make_lab: MakeLab, name: str) -> None:
    lab = make_lab("native")
    verb = VERBS[name]
    reply = lab.plain("COMMAND", "INFO", name)
    assert isinstance(reply, list)
    [info] = reply
    assert isinstance(info, list)
    flags = {getattr(flag, "text", "") for flag in _array(info[2])}
    expected = {"module", "write" if verb.writes else "readonly"}
    expected |= {"denyoom"} if verb.grows else set()
    expected |= {"fast"} if "F" in verb.flags else set()
    expected |= {"blocking"} if verb.blocks else set()
    expected |= {"no_mandatory_keys"} if name == "emq.version" else set()
    assert flags == expected


@pytest.mark.parametrize("name", sorted(VERBS))
def test_the_module_gives_a_verb_the_categories_of_its_flags(make_lab: MakeLab, name: str) -> None:
    lab = make_lab("native")
    verb = VERBS[name]
    [info] = _array(lab.plain("COMMAND", "INFO", name))
    categories = {getattr(category, "text", "") for category in _array(_array(info)[6])}
    speed = "@fast" if "F" in verb.flags else "@slow"
    expected = {"@emq", "@write" if verb.writes else "@read", speed}
    roles = {category for category in categories if category.startswith("@emq_")}  # see test_roles
    assert categories - roles == (expected | {"@blocking"} if verb.blocks else expected)


@pytest.mark.parametrize("name", sorted(VERBS))
def test_a_verb_declares_the_queue_key_and_nothing_else(make_lab: MakeLab, name: str) -> None:
    lab = make_lab("native")
    verb = VERBS[name]
    command = [name, lab.q, *(["x"] * 8)]
    assert lab.plain("COMMAND", "GETKEYS", *command[: _arity(lab, name)]) == [lab.q.encode()]
    [[key, flags]] = [
        _array(entry) for entry in _array(lab.plain("COMMAND", "GETKEYSANDFLAGS", *command[: _arity(lab, name)]))
    ]
    assert key == lab.q.encode()
    assert ("RW" if verb.writes else "RO") in {getattr(flag, "text", "") for flag in _array(flags)}


def _arity(lab: Lab, name: str) -> int:
    [info] = _array(lab.plain("COMMAND", "INFO", name))
    arity = _array(info)[1]
    assert isinstance(arity, int)
    return max(abs(arity), 2)


def _array(reply: object) -> list[object]:
    assert isinstance(reply, list)
    return reply


@pytest.mark.parametrize("name", sorted({*VERBS, *WITHOUT_A_QUEUE}))
def test_a_verb_is_documented(make_lab: MakeLab, name: str) -> None:
    lab = make_lab("native")
    reply = _array(lab.plain("COMMAND", "DOCS", name))
    document = dict(zip(_array(reply[1])[::2], _array(reply[1])[1::2], strict=True))
    assert document[b"summary"]
    assert document[b"complexity"]
    assert document[b"since"]
    assert document[b"group"] == b"module"
    if VERBS.get(name) and VERBS[name].forms != ("",):
        assert document[b"arguments"]


@pytest.mark.parametrize("name", sorted(VERBS))
def test_a_verb_without_any_argument_is_wrong_arity(make_lab: MakeLab, name: str) -> None:
    if name == "emq.version":
        return
    for executor in ("native", "scripted") if PRODUCT[name].scripted else ("native",):
        lab = make_lab(executor)
        reply = lab.send_raw(name, [])
        assert getattr(reply, "text", reply) == f"ERR wrong number of arguments for '{name}' command", executor


@pytest.mark.parametrize("name", sorted(VERBS))
def test_a_script_carries_the_flags_of_its_verb(name: str) -> None:
    if not PRODUCT[name].scripted:
        return
    verb = VERBS[name]
    flags = "" if verb.grows else " flags=allow-oom" if verb.writes else " flags=no-writes"
    assert SCRIPTED.script(name).source.split(b"\n", 1)[0] == f"#!lua{flags}".encode()
