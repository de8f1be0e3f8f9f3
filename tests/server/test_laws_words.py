"""A call has exactly the words of its grammar; everything else is refused before anything is looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from emq_native.conformance.cases.ids import OPTIONS, SYNTAX
from emq_native.conformance.lab import LEASE, Lab
from emq_native.conformance.scenes import VERBS, fill
from emq_native.conformance.wire import Error

LISTS = {"menqueue": 2, "mcomplete": 2, "mextend": 2}
"""Verbs that take a list of members, and the words of one member."""
OPEN = {"version", "gcounts", "next"}
"""Verbs whose number of words is open, or has rules of its own."""


@pytest.fixture
def protocol() -> int:
    """Words know nothing of protocol versions."""
    return 2


def arity(verb: str) -> str:
    return f"ERR wrong number of arguments for 'emq.{verb}' command"


def fixed() -> Iterator[tuple[str, str]]:
    """The verbs that take exactly the words of a form, with each of their forms."""
    for name, verb in VERBS.items():
        short = name.partition(".")[2]
        if short not in OPTIONS and short not in OPEN:
            for form in verb.forms:
                yield short, form


@pytest.mark.parametrize(("verb", "form"), list(fixed()), ids=lambda value: value.replace(" ", "_"))
def test_a_word_too_many_or_too_few_is_wrong_arity(lab: Lab, verb: str, form: str) -> None:
    words = fill(form, lab)
    lab.refused(arity(verb), verb, *words, "x")
    for missing in range(1, len(words) + 1):
        lab.refused(arity(verb), verb, *words[:-missing])


def test_version_takes_one_queue_key_at_most(make_lab: Callable[[str], Lab]) -> None:
    lab = make_lab("native")
    lab.refused(arity("version"), "version", lab.q)
    assert lab.send_raw("version", ["q", "x"]) == Error(arity("version"))


@pytest.mark.parametrize("verb", sorted(OPTIONS))
def test_what_comes_before_the_options_must_be_complete(lab: Lab, verb: str) -> None:
    if not lab.serves(verb):
        return
    words = fill(OPTIONS[verb][0], lab)
    for missing in range(1, len(words) + 1):
        lab.refused(arity(verb), verb, *words[:-missing])


@pytest.mark.parametrize("verb", LISTS)
@pytest.mark.parametrize("members", [1, 2, 100])
def test_a_member_without_its_second_word_is_wrong_arity(lab: Lab, verb: str, members: int) -> None:
    head = [LEASE] if verb == "mextend" else []
    words = [word for job in lab.ids(members) for word in (job, "1")]
    lab.refused(arity(verb), verb, *head, *words[:-1])


@pytest.mark.parametrize("verb", ["mcomplete", "mextend"])
def test_a_list_has_at_most_ten_thousand_members(lab: Lab, verb: str) -> None:
    head = [LEASE] if verb == "mextend" else []
    words = [word for job in lab.ids(10_001) for word in (job, "1")]
    lab.refused("ERR at most 10000 members in one call", verb, *head, *words)
    reply = lab.send(verb, *head, *words[:-2])
    assert isinstance(reply, list)
    assert len(reply) == 10_000


def test_options_come_in_any_order_and_any_letter_case(lab: Lab) -> None:
    for words in (["MAX", 5, "LIMIT", 5], ["limit", 5, "max", 5], ["Limit", 5, "mAx", 5]):
        assert lab.send("reap", *words) == 0
        assert lab.send("greap", "g", *words) == 0
    assert lab.send("drain", "limit", 5, "scheduled") == 0
    lab.pause()
    assert lab.send("obliterate", "limit", 5, "force") == 0


def test_a_value_may_look_like_an_option(lab: Lab) -> None:
    lab.seed(lab.a, "active")
    lab.seed(lab.b, "active")
    assert lab.send("log", lab.a, "KEEP", "KEEP", 5) == 1
    assert lab.items(f"job:{lab.a}:logs") == [b"KEEP"]
    assert lab.send("complete", lab.a, "1", "RESULT", "RESULT") == 1
    assert lab.send("retry", lab.b, "1", 0, 5, "FORCE") == b"scheduled"
    assert lab.send("enqueue", lab.c, "LIMIT") == 1
    assert lab.send("repeat", "AT", "EVERY", 5, "EVERY", "AT", 5) == 1
    assert lab.send("genqueue", "SCHEDULED", lab.d, "FORCE") == 1
    assert lab.send("gdrain", "SCHEDULED", "LIMIT", 5) == 1


def test_the_first_number_that_is_wrong_is_named(lab: Lab) -> None:
    lab.refused("ERR max must be an integer between 1 and 2147483647", "reap", "MAX", 0, "LIMIT", 0)
    lab.refused("ERR limit must be an integer between 1 and 10000", "reap", "LIMIT", 0, "MAX", 0)
    lab.refused("ERR delay must be an integer between 0 and 9007199254740991", "retry", lab.a, "1", "x", 0, "e")
    lab.refused(SYNTAX, "reap", "LIMIT", 0, "BOGUS", 1)
