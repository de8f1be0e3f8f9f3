"""What an id says: the vectors of the contract, the order, and every way in which a text is no id."""

from __future__ import annotations

import datetime as dt
import json
import pickle
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from emq_native import _core, ids
from emq_native.errors import InvalidArgument, InvalidId, InvalidJobId
from emq_native.ids import BrandedId, JobId

VECTORS: dict[str, list[dict[str, Any]]] = json.loads(
    (Path(__file__).parents[2] / "module/tests/vectors.json").read_text("utf-8")
)
DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
LAST = (1 << 63) - 1

namespaces = st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ", min_size=3, max_size=3)
numbers = st.integers(0, LAST)


def oracle(raw: bytes) -> int | None:
    """Written from the contract alone: the number behind an id, None when the bytes are no id."""
    if not re.fullmatch(rb"[A-Z]{3}[0-9A-Za-z]{11}", raw):
        return None
    value = 0
    for digit in raw[3:].decode():
        value = value * 62 + DIGITS.index(digit)
    return value if value <= LAST else None


@pytest.mark.parametrize("vector", VECTORS["numbers"], ids=lambda v: v["digits"])
def test_numbers_read_and_write_as_the_contract_lists_them(vector: dict[str, Any]) -> None:
    """C016, section 4.5."""
    job = JobId("JOB" + vector["digits"])

    assert job.value == vector["value"]
    assert (job.ms, job.node, job.sequence) == (vector["ms"], vector["node"], vector["sequence"])
    assert job.hash32 == vector["hash32"]
    assert BrandedId.of("JOB", vector["value"]) == job


@pytest.mark.parametrize("vector", VECTORS["ids"], ids=lambda v: v["text"] or "empty")
def test_every_listed_text_gets_its_verdict(vector: dict[str, Any]) -> None:
    """C016, section 4.5: as an id, and as a job id in the words of the server."""
    text = vector["text"]
    if vector["status"] == "ok":
        found = BrandedId(text)
        assert (found.namespace, found.value) == (vector["namespace"], vector["value"])
    else:
        with pytest.raises(InvalidId) as refused:
            BrandedId(text)
        assert refused.value.reason == vector["status"]

    if not vector["refusal"]:
        assert JobId(text) == text
    else:
        with pytest.raises(InvalidJobId) as gate:
            JobId(text)
        assert gate.value.refusal == vector["refusal"]
        assert gate.value.code == "EMQKIND"


@given(namespaces, numbers)
@example("JOB", 0)
@example("AZZ", LAST)
def test_an_id_that_is_written_reads_back_the_same(namespace: str, value: int) -> None:
    text = BrandedId.of(namespace, value)

    assert (text.namespace, text.value) == (namespace, value)
    assert oracle(text.encode()) == value
    assert BrandedId(text.encode()) == text


@given(namespaces, numbers, numbers)
def test_ids_of_one_namespace_sort_by_number_and_so_by_time(namespace: str, one: int, other: int) -> None:
    a, b = BrandedId.of(namespace, one), BrandedId.of(namespace, other)

    assert (a < b) == (a.encode() < b.encode()) == (one < other)
    assert (a < b) == ((a.ms, a.node, a.sequence) < (b.ms, b.node, b.sequence))


near_ids = st.one_of(
    st.binary(max_size=20),
    st.text(max_size=16).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.text(DIGITS + "!?-_ ", min_size=10, max_size=12).map(lambda digits: b"JOB" + digits.encode()),
    st.tuples(namespaces, numbers, st.integers(0, 13), st.binary(min_size=1, max_size=1)).map(
        lambda t: (raw := BrandedId.of(t[0], t[1]).encode())[: t[2]] + t[3] + raw[t[2] + 1 :]
    ),
)


@given(near_ids)
@example(b"JOBAzL8n0Y58m7")
@example(b"JOBAzL8n0Y58m8")
def test_case_102_the_validator_accepts_exactly_what_the_decoder_reads(raw: bytes) -> None:
    """case 102"""
    value = oracle(raw)

    assert ids.is_id(raw) == (value is not None)
    assert ids.is_job_id(raw) == (value is not None and raw.startswith(b"JOB"))
    if value is None:
        with pytest.raises(InvalidId):
            BrandedId(raw)
    else:
        assert BrandedId(raw).value == value


WRONG = {
    "13 bytes": "JOB0EEMl9I7Qw",
    "15 bytes": "JOB0EEMl9I7Qw44",
    "question marks": "JOB???????????",
    "minus": "JOB0EEMl9I7Qw-",
    "underscore": "JOB_EEMl9I7Qw4",
    "space": "JOB0EEM 9I7Qw4",
    "line feed": "JOB0EEMl9I7Qw\n",
    "line feed behind": "JOB0EEMl9I7Qw4\n",
    "NUL": "JOB0EEMl\x00I7Qw4",
    "NUL behind": "JOB0EEMl9I7Qw4\x00",
    "full-width digits": "JOB0EEMl9I7Q\uff10\uff11",
    "14 characters, more bytes": "JOB0EEMl9I7Qw\uff14",
    "lone surrogate": "JOB0EEMl9I7Qw\udc80",
    "small letters": "job0EEMl9I7Qw4",
    "mixed letters": "Job0EEMl9I7Qw4",
    "another brand": "JOC0EEMl9I7Qw4",
    "empty": "",
    "1 MiB": "JOB" + "0" * (1 << 20),
}


def test_what_is_wrong_with_an_id_is_told_in_words() -> None:
    def told(kind: type[BrandedId], text: str) -> str:
        with pytest.raises(InvalidId) as refused:
            kind(text)
        return str(refused.value)

    assert told(JobId, "junk").endswith(", and 'junk' does not begin with JOB")
    assert told(JobId, "JOBjunk").endswith(": 'JOBjunk' is no id: its length is not 14")
    assert told(BrandedId, "job0EEMl9I7Qw4").endswith(" the first three characters, is not three capital letters")
    assert told(BrandedId, "JOB0EEMl9I7Q-4").endswith(" last eleven characters are not all letters and digits")
    assert told(BrandedId, "JOBzzzzzzzzzzz").endswith(" number is beyond what an id can hold")


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
def test_case_102_wrong_characters_length_or_brand_are_refused_with_one_code(text: str) -> None:
    """case 102"""
    for form in (text, text.encode("utf-8", "surrogatepass")):
        with pytest.raises(InvalidJobId) as refused:
            JobId(form)
        assert refused.value.code == "EMQKIND"
        assert isinstance(refused.value, ValueError)
        assert len(str(refused.value)) < 300
        assert not ids.is_job_id(form)


@pytest.mark.parametrize("thing", [None, 7, 1.5, True, bytearray(b"JOB0EEMl9I7Qw4"), ["JOB0EEMl9I7Qw4"], object()])
def test_what_is_no_text_is_refused_by_its_type(thing: Any) -> None:
    for judge in (JobId, BrandedId, ids.is_id, ids.is_job_id):
        with pytest.raises(InvalidArgument, match=type(thing).__name__):
            judge(thing)


@pytest.mark.parametrize(
    ("namespace", "value", "reason"),
    [
        ("JOB", -1, "range"),
        ("JOB", LAST + 1, "range"),
        ("JO", 1, "namespace"),
        ("JOBS", 1, "namespace"),
        ("job", 1, "namespace"),
        ("ÄBC", 1, "namespace"),
    ],
)
def test_only_63_bits_in_three_capitals_make_an_id(namespace: str, value: int, reason: str) -> None:
    with pytest.raises(InvalidId) as refused:
        BrandedId.of(namespace, value)
    assert refused.value.reason == reason


@pytest.mark.parametrize("value", [True, 1.0, "1", None])
def test_the_number_of_an_id_is_an_int(value: Any) -> None:
    with pytest.raises(InvalidArgument):
        BrandedId.of("JOB", value)


def test_a_job_id_is_its_text() -> None:
    job = JobId("JOB0EEMl9I7Qw4")

    assert job == "JOB0EEMl9I7Qw4"
    assert hash(job) == hash("JOB0EEMl9I7Qw4")
    assert json.dumps(job) == '"JOB0EEMl9I7Qw4"'
    assert pickle.loads(pickle.dumps(job)) == job
    assert type(pickle.loads(pickle.dumps(job))) is JobId


def test_the_time_of_a_mint_is_exact_and_aware() -> None:
    assert JobId("JOB0EEMl9I7Qw4").datetime == dt.datetime(2025, 6, 15, 15, 6, 40, tzinfo=dt.timezone.utc)
    assert JobId("JOBAzL8n0Y58m7").datetime.isoformat() == "2093-09-06T15:47:35.551000+00:00"
    assert JobId("JOB00000000000").datetime.isoformat() == "2024-01-01T00:00:00+00:00"


@given(st.integers(ids.EPOCH_MS, ids.LAST_MS))
def test_the_first_id_of_an_instant_is_the_lower_end_of_its_ids(ms: int) -> None:
    first = JobId.first_at(ms)

    assert (first.ms, first.node, first.sequence) == (ms, 0, 0)
    assert JobId.first_at(first.datetime) == first
    assert ms == ids.EPOCH_MS or BrandedId.of("JOB", first.value - 1).ms == ms - 1


@pytest.mark.parametrize("moment", [ids.EPOCH_MS - 1, ids.LAST_MS + 1, True, dt.datetime(2025, 1, 1), "2025"])
def test_an_instant_without_an_id_is_refused(moment: Any) -> None:
    with pytest.raises(InvalidArgument):
        JobId.first_at(moment)


@pytest.mark.parametrize("value", [-1, 1 << 64, True, 1.0])
def test_only_64_bits_are_hashed(value: Any) -> None:
    with pytest.raises(InvalidArgument):
        _core.id_hash32(value)
