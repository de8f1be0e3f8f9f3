"""Names of queues and keys: the vectors of the contract, the grammar, one slot for all keys of a queue."""

from __future__ import annotations

import binascii
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emq_native import _core, keys
from emq_native.errors import InvalidArgument, InvalidJobId
from emq_native.keys import Keys

VECTORS: dict[str, list[dict[str, Any]]] = json.loads(
    (Path(__file__).parents[2] / "module/tests/vectors.json").read_text("utf-8")
)
JOB = "JOB0EEMl9I7Qw4"
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

names = st.text(ALPHABET, min_size=1, max_size=128).filter(lambda name: name != "emq")
groups = st.text(ALPHABET, min_size=1, max_size=64)


def oracle_slot(key: bytes) -> int:
    """Written from the contract alone, over the standard library's CRC."""
    tag = re.match(rb"[^{]*\{([^}]+)\}", key, re.DOTALL)
    return binascii.crc_hqx(tag[1] if tag else key, 0) % 16384


@pytest.mark.parametrize("vector", VECTORS["slots"], ids=lambda v: v["key"])
def test_slots_are_as_listed(vector: dict[str, Any]) -> None:
    """Section 3.2."""
    assert keys.slot(vector["key"]) == vector["slot"] == oracle_slot(vector["key"].encode())
    assert keys.slot(vector["tag"]) == vector["slot"]


@given(st.one_of(st.binary(max_size=300), st.text("{}ab", max_size=12).map(str.encode)))
def test_any_bytes_have_the_slot_of_their_tag(key: bytes) -> None:
    assert keys.slot(key) == oracle_slot(key)


@pytest.mark.parametrize("vector", VECTORS["names"], ids=lambda v: v["text"][:20] or "empty")
@pytest.mark.parametrize("kind", ["queue", "group", "repeat"])
def test_names_are_judged_as_listed(vector: dict[str, Any], kind: str) -> None:
    """Section 3.1."""
    judge = {"queue": _core.queue_name, "group": _core.group_name, "repeat": _core.repeat_name}[kind]
    if vector[kind]:
        assert judge(vector["text"]) == vector["text"].encode()
    else:
        with pytest.raises(InvalidArgument):
            judge(vector["text"])


@given(st.one_of(st.text(max_size=12), st.text(ALPHABET + " :{}", max_size=140)))
def test_a_queue_name_is_1_to_128_of_the_alphabet(name: str) -> None:
    allowed = re.fullmatch(r"[A-Za-z0-9._-]{1,128}", name) is not None and name != "emq"
    try:
        found = Keys(name).name
    except InvalidArgument:
        found = None

    assert found == (name if allowed else None)


@pytest.mark.parametrize("vector", VECTORS["queue_keys"], ids=lambda v: v["key"][:20] or "empty")
def test_queue_keys_name_their_queue(vector: dict[str, Any]) -> None:
    if vector["name"]:
        assert Keys.of(vector["key"]).name == vector["name"]
        assert Keys.of(vector["key"].encode()).queue == vector["key"].encode()
    else:
        with pytest.raises(InvalidArgument):
            Keys.of(vector["key"])


def listed(vector: dict[str, Any]) -> str:
    return str(vector["key"])


@pytest.mark.parametrize("vector", VECTORS["keys"], ids=listed)
def test_keys_are_built_as_listed(vector: dict[str, Any]) -> None:
    """Section 3.3."""
    queue = b"emq:{%b}" % vector["queue"].encode()
    of, suffix = vector["of"], vector.get("suffix", "").encode()
    built = {
        "fixed": lambda: _core.key_fixed(queue, of.encode()),
        "job": lambda: _core.key_job(queue, of, suffix),
        "lane": lambda: _core.key_lane(queue, of),
        "repeat": lambda: _core.key_repeat(queue, of),
    }[vector["kind"]]()

    assert built == vector["key"].encode()


def test_a_queue_has_every_listed_key_and_no_other() -> None:
    queue = Keys("orders")
    fixed = {v["key"].encode() for v in VECTORS["keys"] if v["kind"] == "fixed"}
    attributes = {getattr(queue, name) for name in vars(Keys) if isinstance(vars(Keys)[name], keys._Fixed)}

    assert attributes == fixed
    assert set(queue.job(JOB)) == {v["key"].encode() for v in VECTORS["keys"] if v["kind"] == "job"}


@given(names, groups, names)
def test_all_keys_of_a_queue_lie_in_its_slot(name: str, group: str, repeat: str) -> None:
    queue = Keys(name)
    everything = [queue.queue, queue.pending, queue.version, *queue.job(JOB), queue.lane(group), queue.repeat(repeat)]

    assert {keys.slot(key) for key in everything} == {queue.slot}
    assert all(key.startswith(b"emq:{%b}" % name.encode()) for key in everything)
    assert len(set(everything)) == len(everything)


def test_the_fence_is_one_key_per_database_or_one_per_queue_of_a_cluster() -> None:
    assert Keys("orders").fence(cluster=False) == b"{emq}:version"
    assert Keys("orders").fence(cluster=True) == b"emq:{orders}:version"


@pytest.mark.parametrize("thing", [None, 7, True, bytearray(b"orders"), ["orders"]])
def test_what_is_no_text_is_refused_by_its_type(thing: Any) -> None:
    queue = Keys("orders")
    for call in (Keys, Keys.of, queue.lane, queue.repeat, queue.row, keys.slot):
        with pytest.raises(InvalidArgument, match=type(thing).__name__):
            call(thing)


def test_no_key_is_built_from_a_bad_part() -> None:
    queue = Keys("orders")
    for bad in ("", "a:b", "x" * 129, "}"):
        with pytest.raises(InvalidArgument):
            queue.lane(bad)
        with pytest.raises(InvalidArgument):
            queue.repeat(bad)
        with pytest.raises(InvalidJobId):
            queue.row(bad)


def test_queues_are_equal_by_name() -> None:
    assert Keys("a") == Keys(b"a") == Keys.of("emq:{a}")
    assert len({Keys("a"), Keys("a"), Keys("b")}) == 2
    assert repr(Keys("a")) == "Keys('a')"
