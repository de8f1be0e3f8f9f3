"""What callers pass, exactly as it travels, or InvalidArgument: durations, dates, numbers, bytes.

Durations are seconds as int or float, or a timedelta; they travel as whole milliseconds. A fraction of a millisecond
counts as a whole one, so nothing is ever shorter than asked. A float means the decimal that Python prints for it: 0.1
is 100 ms exactly. Dates are aware datetimes; a fraction of a millisecond is rounded up, so nothing is ever early.

Payloads and results are bytes-like, at most 512 MiB. Error texts, progress and log lines may also be str, sent as
UTF-8.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from math import isfinite
from typing import Final

from emq_native.errors import InvalidArgument

Duration = int | float | timedelta
"""Seconds, or a timedelta."""

Payload = bytes | bytearray | memoryview

MAX_INTEGER: Final = 9007199254740991
MAX_PAYLOAD: Final = 512 * 1024 * 1024
MAX_MEMBERS: Final = 10_000

_EXACT: Final = Context(prec=28, traps=[])
"""Holds every float and every range; the caller's own context may round to fewer digits."""

_COUNTER: Final = (1, 10_000)
_RANGES: Final = {
    "lease": (1, MAX_INTEGER),
    "delay": (0, MAX_INTEGER),
    "block": (1, 86_400_000),
    "promote": (0, 10_000),
    "reap": (0, 10_000),
    "every": (1, MAX_INTEGER),
    "limit": _COUNTER,
    "keep": _COUNTER,
    "count": _COUNTER,
    "max_attempts": (1, 2147483647),
    "retries": (0, 2147483646),
    "ceiling": (0, 2147483647),
    "weight": (0, 10_000),
}


def milliseconds(name: str, duration: object) -> int:
    """A duration as whole milliseconds within the range of `name`. Raises InvalidArgument.

    Refused: bool, NaN, infinity, negative and, for a lease, nothing; beyond 2**53 - 1 ms; any other type.
    """
    if type(duration) is int:
        value = duration * 1000
    elif isinstance(duration, timedelta):
        value = _whole(duration)
    elif isinstance(duration, float) and isfinite(duration):
        rounding = ROUND_FLOOR if duration < 0 else ROUND_CEILING
        value = int(_EXACT.multiply(Decimal(repr(duration)), 1000).to_integral_value(rounding, _EXACT))
    elif isinstance(duration, float):
        raise InvalidArgument(f"{name} must be a finite number of seconds, not {duration!r}")
    else:
        raise InvalidArgument(f"{name} must be seconds (int or float) or a timedelta, not {type(duration).__name__}")
    low, high = _RANGES[name]
    if not low <= value <= high:
        shortest, longest = (_EXACT.divide(bound, 1000) for bound in (low, high))
        raise InvalidArgument(f"{name} must be between {shortest} and {longest} seconds, not {duration!r}")
    return value


def _whole(duration: timedelta) -> int:
    """Whole milliseconds, a fraction counting as one, away from zero."""
    microseconds = (duration.days * 86_400 + duration.seconds) * 1_000_000 + duration.microseconds
    return microseconds // 1000 if microseconds < 0 else -(-microseconds // 1000)


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)


def instant(name: str, when: object) -> int:
    """An aware datetime as Unix milliseconds, 0 or more. Raises InvalidArgument."""
    if not isinstance(when, datetime):
        raise InvalidArgument(f"{name} must be a datetime, not {type(when).__name__}")
    if when.utcoffset() is None:
        raise InvalidArgument(f"{name} must be an aware datetime: give it a tzinfo")
    value = _whole(when - _EPOCH)
    if value < 0:
        raise InvalidArgument(f"{name} must not be before 1970: {when.isoformat()}")
    return value


def integer(name: str, value: object) -> int:
    """A whole number within the range of `name`. Raises InvalidArgument, also for a bool."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidArgument(f"{name} must be an int, not {type(value).__name__}")
    low, high = _RANGES[name]
    if not low <= value <= high:
        raise InvalidArgument(f"{name} must be an integer between {low} and {high}")
    return value


def payload_bytes(name: str, value: object) -> bytes:
    """Bytes-like as bytes, at most 512 MiB. Raises InvalidArgument."""
    if type(value) is bytes and len(value) <= MAX_PAYLOAD:
        return value
    if not isinstance(value, (bytes, bytearray, memoryview)):
        hint = ": encode it, for example with .encode()" if isinstance(value, str) else ""
        raise InvalidArgument(f"{name} must be bytes, not {type(value).__name__}{hint}")
    size = value.nbytes if isinstance(value, memoryview) else len(value)
    if size > MAX_PAYLOAD:
        raise InvalidArgument(f"{name} must be at most {MAX_PAYLOAD} bytes, not {size}")
    return bytes(value)


def text_bytes(name: str, value: object) -> bytes:
    """Text as UTF-8, or bytes-like as they are, at most 512 MiB. Raises InvalidArgument."""
    return payload_bytes(name, value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value)


def token_bytes(token: object) -> bytes:
    """The fencing token of a lease, 0 or more. Raises InvalidArgument."""
    if type(token) is not int and (not isinstance(token, int) or isinstance(token, bool)):
        raise InvalidArgument(f"a token must be an int, not {type(token).__name__}")
    if not 0 <= token <= MAX_INTEGER:
        raise InvalidArgument(f"a token must be between 0 and {MAX_INTEGER}")
    return b"%d" % token
