"""Field cases of numbers, dates and ids at the edges of what they can hold."""

from __future__ import annotations

import pytest

from emq_native.conformance.cases.ids import BAD_IDS, FOREIGN_IDS, NAMESPACE, SHAPE
from emq_native.conformance.lab import Lab, M
from emq_native.conformance.scenes import NUMBERS, VERBS, fill
from emq_native.conformance.wire import Error

EDGES = (
    "-9223372036854775808",
    "-9007199254740991",
    "-2147483648",
    "-1",
    "-0",
    "0",
    "1",
    "2147483647",
    "2147483648",
    "4294967296",
    "9007199254740991",
    "9007199254740992",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "9" * 400,
    "",
    " ",
    " 1",
    "1 ",
    "+1",
    "01",
    "00",
    "1.0",
    "1.",
    "1e3",
    "nan",
    "inf",
    "-inf",
    "0x10",
    "1_000",
    "1,000",
    "\u0661",
    "1\n",
    "1\0",
    "one",
)


@pytest.fixture
def protocol() -> int:
    """Numbers know nothing of protocol versions."""
    return 2


def arguments() -> list[tuple[str, str, str]]:
    return [
        (name, form, slot)
        for name, verb in VERBS.items()
        for form in verb.forms
        for slot in form.split()
        if slot in NUMBERS
    ]


def plain(text: str) -> int | None:
    """The value of a plain decimal, None for every other text."""
    digits = text[1:] if text.startswith("-") else text
    if not digits or not all(character in "0123456789" for character in digits):
        return None
    return None if digits != str(int(digits)) or text == "-0" else int(text)


@pytest.mark.parametrize(("name", "form", "slot"), arguments(), ids=lambda value: value.replace(" ", "_"))
def test_every_integer_argument_is_exact_or_refused(lab: Lab, name: str, form: str, slot: str) -> None:
    """case 13"""
    if not lab.serves(name):
        return
    bounds = NUMBERS[slot]
    values = [*EDGES, *(str(bounds.low + by) for by in (-1, 0, 1)), *(str(bounds.high + by) for by in (-1, 0, 1))]
    if bounds.sum:
        values += [str(M - lab.now() + by) for by in (-3_600_000, 3_600_000)]
    for text in values:
        value = plain(text)
        sound = value is not None and bounds.low <= value <= bounds.high
        if sound and bounds.sum:
            assert value is not None
            sound = value + lab.now() <= M
        words = fill(form, lab, id=lab.ids(1)[0], **{slot: text})
        if not sound:
            lab.refused(bounds.text(slot), name, *words)
        else:
            reply = lab.send(name, *words)
            assert not (isinstance(reply, Error) and reply.code == "ERR"), (text, reply)
    assert lab.plain("ECHO", "alive") == b"alive"
    lab.wipe(lab.name)


def test_a_sum_may_reach_the_largest_number_and_not_pass_it(lab: Lab) -> None:
    """case 13"""
    assert lab.send("schedule", lab.a, "p", "IN", M - lab.now() - 60_000) == 1
    lab.refused(NUMBERS["in"].text("in"), "schedule", lab.b, "p", "IN", M - lab.now() + 60_000)
    assert M - 61_000 < lab.scores("schedule")[lab.a] <= M


@pytest.mark.parametrize("ahead", [86_400_000 * 24, 86_400_000 * 25, 86_400_000 * 3650, 2**31, 2**32])
def test_a_date_in_the_far_future_is_kept_exactly_and_not_due(lab: Lab, ahead: int) -> None:
    """case 17"""
    due = lab.now() + ahead
    assert lab.send("schedule", lab.a, "p", "AT", due) == 1
    assert lab.send("schedule", lab.b, "p", "AT", due + 1) == 1
    with lab.unchanged():
        assert lab.send("promote") == 0
    assert lab.plain("ZSCORE", lab.key("schedule"), lab.a) == str(due).encode()
    assert lab.plain("ZSCORE", lab.key("schedule"), lab.b) == str(due + 1).encode()


def test_a_date_that_a_score_cannot_hold_is_refused(lab: Lab) -> None:
    """case 17"""
    assert lab.send("schedule", lab.a, "p", "AT", 8_640_000_000_000_000) == 1
    assert lab.plain("ZSCORE", lab.key("schedule"), lab.a) == b"8640000000000000"
    lab.refused(NUMBERS["at"].text("at"), "schedule", lab.b, "p", "AT", 2**53)
    lab.refused(NUMBERS["at"].text("at"), "schedule", lab.b, "p", "AT", 2**53 + 1)


def test_a_date_in_the_past_is_due_once_and_a_negative_one_refused(lab: Lab) -> None:
    """case 18"""
    assert lab.send("schedule", lab.a, "p", "AT", 0) == 1
    for words in (("AT", "-1"), ("IN", "-1"), ("IN", "-9223372036854775808"), ("AT", "-9223372036854775808")):
        lab.refused(NUMBERS[words[0].lower()].text(words[0].lower()), "schedule", lab.b, "p", *words)
    assert lab.send("promote") == 1
    with lab.unchanged():
        assert [lab.send("promote") for _ in range(10)] == [0] * 10


def test_no_job_runs_early_by_the_clock_of_the_server(lab: Lab) -> None:
    """case 19"""
    start = lab.now()
    due = {job: start + 301 + 5 * number for number, job in enumerate(lab.ids(200))}
    for job, instant in due.items():
        lab.send("schedule", job, "p", "AT", instant)
    assert lab.scores("schedule") == {job: float(instant) for job, instant in due.items()}
    left = set(due)
    while left:
        lab.send("promote")
        reply = lab.send("claim", 60_000)
        if isinstance(reply, list) and reply:
            assert isinstance(reply[0], bytes)
            job = reply[0].decode()
            assert lab.now() >= due[job]
            left.remove(job)
    assert lab.now() >= start + 301 + 5 * 199


@pytest.mark.parametrize("name", sorted(name for name, verb in VERBS.items() if verb.takes_ids))
def test_a_bad_id_is_refused_everywhere_with_the_same_code(lab: Lab, name: str) -> None:
    """case 102"""
    if not lab.serves(name):
        return
    texts = [(text, NAMESPACE) for text in (*FOREIGN_IDS, "x" * (1 << 20))]
    texts += [(text, SHAPE) for text in (*BAD_IDS, "JOB" + "0" * (1 << 20), "JOB\uff10\uff11\uff12")]
    for text, refusal in texts:
        for form in VERBS[name].slots("id"):
            lab.refused(refusal, name, *fill(form, lab, id=text))
