"""One clock, the server's, which stands still within a transaction: what is due at its reading is due at once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from emq_native.conformance.lab import LEASE, Lab, M
from emq_native.conformance.wire import Error, Word

WAYS: dict[str, tuple[str, list[Word]]] = {
    "promote": ("schedule", []),
    "reap": ("active", []),
    "greap": ("active", ["g"]),
}


@pytest.fixture
def protocol() -> int:
    """The clock knows nothing of protocol versions."""
    return 2


@pytest.mark.parametrize(("after", "moved"), [(0, 1), (1, 0)], ids=["now", "later"])
@pytest.mark.parametrize("verb", WAYS)
def test_a_score_of_now_has_come_and_one_of_a_millisecond_later_has_not(
    lab: Lab, verb: str, after: int, moved: int
) -> None:
    place, words = WAYS[verb]
    lab.seed(lab.a, place, group="g")
    command = lab.command(verb, *words, inline=True)
    assert lab.at_once(lab.stamp(place, lab.a, after), command) == [0, moved]


@pytest.mark.parametrize(("after", "fired"), [(0, 1), (1, 0)], ids=["now", "later"])
def test_a_repeat_fires_at_its_instant_and_not_before(lab: Lab, after: int, fired: int) -> None:
    lab.send("repeat", "nightly", "EVERY", 1, "template")
    command = lab.command("fire", "nightly", M, lab.a, inline=True)
    assert lab.at_once(lab.stamp("repeat", "nightly", after), command) == [0, fired]


TIMES: dict[str, tuple[str | None, str | None, list[Word], str]] = {
    "schedule": (None, None, ["a", "p", "IN", LEASE], "schedule"),
    "retry": ("active", None, ["a", "1", LEASE, 3, "e"], "schedule"),
    "delay": ("active", None, ["a", "1", "IN", LEASE], "schedule"),
    "claim": ("pending", None, [LEASE], "active"),
    "mclaim": ("pending", None, [LEASE, 2], "active"),
    "gclaim": ("pending", "g", [LEASE], "active"),
    "gwclaim": ("pending", "g", [LEASE], "active"),
    "gmclaim": ("pending", "g", [LEASE, 2], "active"),
    "extend": ("active", None, ["a", "1", LEASE], "active"),
    "mextend": ("active", None, [LEASE, "a", "1"], "active"),
    "repeat": (None, None, ["nightly", "EVERY", LEASE, "template"], "repeat"),
    "next": ("pending", None, [LEASE], "active"),
}


@pytest.mark.parametrize("verb", TIMES)
def test_a_time_that_is_stored_is_the_clock_and_what_was_asked_to_the_millisecond(lab: Lab, verb: str) -> None:
    if not lab.serves(verb):
        return
    before, group, words, place = TIMES[verb]
    if before:
        lab.seed(lab.a, before, group=group)
    command = lab.command(verb, *(lab.a if item == "a" else item for item in words), inline=True)
    instant, reply = lab.at_once(["TIME"], command)
    assert not isinstance(reply, Error)
    assert isinstance(instant, list)
    seconds, microseconds = (int(part) for part in instant if isinstance(part, bytes))
    assert list(lab.scores(place).values()) == [seconds * 1000 + microseconds // 1000 + LEASE]


def test_what_is_planned_for_now_is_due_in_the_same_transaction(lab: Lab) -> None:
    for job in (lab.b, lab.c):
        lab.seed(job, "active")
    calls: list[tuple[str, list[Word]]] = [
        ("schedule", [lab.a, "p", "IN", 0]),
        ("retry", [lab.b, "1", 0, 3, "e"]),
        ("delay", [lab.c, "1", "IN", 0]),
        ("promote", []),
        ("schedule", [lab.d, "p", "IN", 1]),
        ("promote", []),
    ]
    replies = lab.at_once(*(lab.command(verb, *words, inline=True) for verb, words in calls))
    assert replies == [1, b"scheduled", 1, 3, 1, 0]


def test_a_lease_of_a_millisecond_outlives_the_transaction_that_gave_it(lab: Lab) -> None:
    lab.seed(lab.a)
    calls: list[tuple[str, list[Word]]] = [("claim", [1]), ("reap", []), ("extend", [lab.a, "1", LEASE])]
    replies = lab.at_once(*(lab.command(verb, *words, inline=True) for verb, words in calls))
    assert replies == [[lab.a.encode(), b"payload", 1], 0, 1]


EDGE = """
local time = redis.call('TIME')
local left = 9007199254740991 - time[1] * 1000 - math.floor(time[2] / 1000)
local function plan(job, delay)
    return redis.pcall('EMQ.SCHEDULE', KEYS[1], job, 'p', 'IN', string.format('%.0f', delay))
end
return { plan(ARGV[1], left), plan(ARGV[2], left + 1) }
"""


def test_a_time_may_be_the_largest_number_and_no_more(make_lab: Callable[[str], Lab]) -> None:
    lab = make_lab("native")
    reply = lab.plain("EVAL", EDGE, 1, lab.q, lab.a, lab.b)
    assert reply == [1, Error(f"ERR in must be an integer between 0 and {M}")]
    assert lab.scores("schedule") == {lab.a: float(M)}
