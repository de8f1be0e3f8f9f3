"""One clock, the server's, which stands still within a transaction: what is due at its reading is due at once."""

from __future__ import annotations

import pytest

from emq_native.conformance.lab import LEASE, Lab, M
from emq_native.conformance.wire import Word

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
