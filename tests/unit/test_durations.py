"""Durations, dates and numbers as arguments: what they become, and what is refused before any traffic."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal, Inexact, localcontext
from fractions import Fraction
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emq_native.arguments import MAX_INTEGER, instant, integer, milliseconds, payload_bytes, text_bytes, token_bytes
from emq_native.errors import InvalidArgument

EXACT = [
    (30, 30_000),
    (0.1, 100),
    (0.3, 300),
    (1.1, 1_100),
    (2.675, 2_675),
    (0.001, 1),
    (1e-3, 1),
    (86_400.0, 86_400_000),
    (timedelta(days=400, milliseconds=7), 34_560_000_007),
    (timedelta(milliseconds=1), 1),
]


@pytest.mark.parametrize(("duration", "expected"), EXACT)
def test_whole_milliseconds_stay_what_they_are(duration: object, expected: int) -> None:
    assert milliseconds("lease", duration) == expected


def test_the_decimal_context_of_the_caller_changes_no_duration() -> None:
    with localcontext() as context:
        context.prec = 2
        context.traps[Inexact] = True
        assert milliseconds("lease", 1_234.567) == 1_234_567
        with pytest.raises(InvalidArgument, match=r"between 0\.001 and 9007199254740\.991 seconds"):
            milliseconds("lease", 1e17)


@pytest.mark.parametrize(
    ("duration", "expected"),
    [
        (0.0001, 1),
        (1e-300, 1),
        (0.0014, 2),
        (1.0000001, 1001),
        (timedelta(microseconds=1), 1),
        (timedelta(0, 0, 1999), 2),
    ],
)
def test_a_fraction_of_a_millisecond_counts_as_a_whole_one(duration: object, expected: int) -> None:
    assert milliseconds("lease", duration) == expected


@given(st.integers(1, MAX_INTEGER))
def test_no_float_of_whole_milliseconds_is_rounded_away(value: int) -> None:
    seconds = value / 1000
    if Decimal(repr(seconds)) * 1000 == value:
        assert milliseconds("lease", seconds) == value


@given(st.timedeltas(timedelta(microseconds=1), timedelta(days=100_000)))
def test_a_timedelta_is_never_shortened_and_never_a_millisecond_longer(duration: timedelta) -> None:
    value = milliseconds("lease", duration)

    assert timedelta() <= timedelta(milliseconds=value) - duration < timedelta(milliseconds=1)


@pytest.mark.parametrize("duration", [True, False, "30", b"30", None, 1j, Decimal(1), Fraction(1), [1]])
def test_another_type_is_no_duration(duration: object) -> None:
    with pytest.raises(InvalidArgument, match="seconds"):
        milliseconds("lease", duration)


@pytest.mark.parametrize("duration", [nan, inf, -inf])
def test_a_duration_is_finite(duration: float) -> None:
    with pytest.raises(InvalidArgument, match="finite"):
        milliseconds("delay", duration)


@pytest.mark.parametrize("duration", [-1, -0.0000001, -1e300, timedelta(microseconds=-1), timedelta(days=-1)])
def test_a_negative_duration_is_refused(duration: object) -> None:
    with pytest.raises(InvalidArgument, match="between 0"):
        milliseconds("delay", duration)


@pytest.mark.parametrize("nothing", [0, 0.0, -0.0, timedelta()])
def test_no_delay_is_a_delay_but_no_lease(nothing: object) -> None:
    assert milliseconds("delay", nothing) == 0
    with pytest.raises(InvalidArgument, match=r"between 0\.001 and"):
        milliseconds("lease", nothing)


@pytest.mark.parametrize("duration", [10**13, 1e300, 9007199254740.992, timedelta.max, 2**70])
def test_beyond_the_largest_number_is_refused(duration: object) -> None:
    with pytest.raises(InvalidArgument, match=r"and 9007199254740\.991 seconds"):
        milliseconds("lease", duration)


def test_the_largest_number_is_accepted() -> None:
    assert milliseconds("lease", timedelta(milliseconds=MAX_INTEGER)) == MAX_INTEGER


UTC = timezone.utc


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        (datetime(1970, 1, 1, tzinfo=UTC), 0),
        (datetime(2025, 6, 15, 15, 6, 40, tzinfo=UTC), 1750000000000),
        (datetime(2025, 6, 15, 17, 6, 40, tzinfo=timezone(timedelta(hours=2))), 1750000000000),
        (datetime(2025, 6, 15, 15, 6, 40, 1, tzinfo=UTC), 1750000000001),
        (datetime(2025, 6, 15, 15, 6, 40, 999_999, tzinfo=UTC), 1750000001000),
        (datetime.max.replace(tzinfo=UTC), 253402300800000),
    ],
)
def test_a_date_is_exact_and_never_early(when: datetime, expected: int) -> None:
    assert instant("when", when) == expected


@pytest.mark.parametrize("when", [datetime(2025, 1, 1), date(2025, 1, 1), 1750000000, "2025-01-01", None, True])
def test_a_date_is_an_aware_datetime(when: object) -> None:
    with pytest.raises(InvalidArgument, match="datetime"):
        instant("when", when)


def test_a_date_before_1970_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="1970"):
        instant("when", datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC))


@pytest.mark.parametrize("value", [True, 1.0, "1", None])
def test_a_number_is_an_int(value: object) -> None:
    with pytest.raises(InvalidArgument, match="int"):
        integer("limit", value)


@pytest.mark.parametrize("value", [0, -1, 10_001, 2**70])
def test_a_limit_has_its_range(value: int) -> None:
    with pytest.raises(InvalidArgument, match="limit must be an integer between 1 and 10000"):
        integer("limit", value)


@pytest.mark.parametrize("value", [True, 1.0, "1", -1, 2**53])
def test_a_token_is_a_number_of_the_contract(value: object) -> None:
    with pytest.raises(InvalidArgument, match="token"):
        token_bytes(value)


@pytest.mark.parametrize(
    "value", [b"", b"a\0\r\n", bytearray(b"abc"), memoryview(b"abc")[1:], memoryview(b"abcd")[::2]]
)
def test_bytes_like_payloads_keep_their_bytes(value: bytes) -> None:
    assert payload_bytes("payload", value) == bytes(value)


def test_a_str_payload_is_refused_with_the_remedy() -> None:
    with pytest.raises(InvalidArgument, match=r"not str: encode it"):
        payload_bytes("payload", "text")


@pytest.mark.parametrize("value", [None, 1, ["a"], object()])
def test_another_payload_is_refused(value: object) -> None:
    with pytest.raises(InvalidArgument, match="payload must be bytes"):
        payload_bytes("payload", value)


def test_a_payload_has_a_largest_size() -> None:
    class Large(bytes):
        def __len__(self) -> int:
            return 512 * 1024 * 1024 + 1

    with pytest.raises(InvalidArgument, match="at most 536870912 bytes"):
        payload_bytes("payload", Large())


def test_texts_may_be_str_also_with_lone_surrogates() -> None:
    assert text_bytes("error", "dépassé") == "dépassé".encode()
    assert text_bytes("error", "\udc80") == b"\xed\xb2\x80"
    assert text_bytes("error", b"\xff") == b"\xff"
