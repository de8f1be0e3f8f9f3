"""EMQ.NEXT as a transition, and the same step made of single scripts: without a server."""

from __future__ import annotations

from typing import Any

import pytest

from emq_native import InvalidArgument, Job, JobGone, StaleToken, Unavailable, WrongState, WrongType
from emq_native import transitions as t
from emq_native.compositions import Next, Settling, Step, settled_word
from emq_native.executors import NATIVE, SCRIPTED
from emq_native.rounds import Batch, Rounds, settle

KEY = b"emq:{q}"
A = "JOB0EEMl9I7Qw4"
B = "JOB0EEMl9I7Qw5"
JOB = Job(A, b"p", 3, "q")


def test_the_words_of_a_full_step() -> None:
    step = Next(
        30,
        5,
        sources=("lanes", "flat"),
        block=2.5,
        promote=10,
        reap=0,
        max_attempts=7,
        settle=[
            t.Complete(JOB),
            t.Complete(JOB, result=b"r"),
            t.Retry(JOB, max_attempts=3, error="e", delay=1),
            t.Delay(JOB, 0),
        ],
    )

    assert step.verb == "emq.next"
    assert b" ".join(step.words(KEY)[1:]).decode() == (
        f"30000 COUNT 5 FROM LANES FLAT BLOCK 2500 PROMOTE 10 REAP 0 MAX 7 SETTLE 4 COMPLETE {A} 3 RESULT {A} 3 r"
        f" RETRY {A} 3 1000 3 e DELAY {A} 3 IN 0"
    )
    assert Next(1).words(KEY) == [KEY, b"1000", b"COUNT", b"1", b"FROM", b"FLAT", b"LANES"]


@pytest.mark.parametrize(
    "options",
    [
        {"count": 0},
        {"count": 10_001},
        {"block": 0},
        {"block": 86_401},
        {"promote": -1},
        {"reap": 10_001},
        {"max_attempts": 0},
        {"sources": ()},
        {"sources": ("flat", "flat")},
        {"sources": ("somewhere",)},
        {"sources": "flat"},
    ],
)
def test_a_step_that_a_server_would_refuse_is_refused_here(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        Next(30, **options)


def test_the_reply_is_a_step() -> None:
    reply = [[b"completed", b"stale"], [[A.encode(), b"p", 1, None], [B.encode(), None, 2, b"g"]], b"WRONGTYPE x"]
    assert Next(30).decode(reply, "q") == Step(
        ["completed", "stale"], [Job(A, b"p", 1, "q"), Job(B, None, 2, "q", "g")], "WRONGTYPE x"
    )


@pytest.mark.parametrize(
    ("settling", "answer", "word"),
    [
        (t.Complete(JOB), True, "completed"),
        (t.Complete(JOB), False, "gone"),
        (t.Complete(JOB), StaleToken("EMQSTALE complete token mismatch"), "stale"),
        (t.Retry(JOB, max_attempts=1), "dead", "dead"),
        (t.Retry(JOB, max_attempts=1), "scheduled", "scheduled"),
        (t.Retry(JOB, max_attempts=1), JobGone("EMQSTALE job gone"), "gone"),
        (t.Delay(JOB, 0), True, "delayed"),
        (t.Delay(JOB, 0), WrongState("EMQSTATE job is not active"), "inactive"),
        (t.Delay(JOB, 0), WrongState("EMQSTATE job row is damaged"), "refused"),
        (t.Delay(JOB, 0), WrongType("WRONGTYPE x"), "refused"),
    ],
)
def test_a_settling_by_itself_has_the_same_words(settling: Settling, answer: Any, word: str) -> None:
    assert settled_word(settling, answer) == word


def test_an_answer_that_is_no_verdict_is_raised() -> None:
    with pytest.raises(Unavailable):
        settled_word(t.Complete(JOB), Unavailable("LOADING x"))


def play(steps: Any, *answers: list[Any]) -> tuple[list[Batch], Step]:
    """Drive a round with these answers. Returns what it sent, and its end."""
    sent = [next(steps)]
    for answer in answers:
        try:
            sent.append(steps.send(answer))
        except StopIteration as end:
            return sent, end.value
    raise AssertionError("the round goes on")


@pytest.fixture
def rounds() -> Rounds:
    return Rounds(KEY, lease=30, block=5, max_attempts=4)


def test_every_native_round_begins_with_the_other_source(rounds: Rounds) -> None:
    firsts = []
    for _ in range(3):
        ((step,),), _ = play(rounds.round(NATIVE, 1, [], wait=True), [Step([], [])])
        firsts.append(step.sources[0])  # type: ignore[union-attr]
    assert firsts in (["lanes", "flat", "lanes"], ["flat", "lanes", "flat"])


def test_a_refused_list_is_settled_one_by_one(rounds: Rounds) -> None:
    settlings: list[Settling] = [t.Complete(JOB), t.Delay(JOB, 0)]
    sent, step = play(
        rounds.round(NATIVE, 1, settlings, wait=True), [WrongType("WRONGTYPE x")], [True, WrongType("W x")]
    )
    assert list(sent[1]) == settlings
    assert step == Step(["completed", "refused"], [], "WRONGTYPE x")


def test_a_scripted_round_settles_sweeps_and_claims_in_one_round_trip(rounds: Rounds) -> None:
    rounds.sources = ("lanes", "flat")
    settlings: list[Settling] = [t.Complete(JOB), t.Delay(JOB, 0)]
    sent, step = play(rounds.round(SCRIPTED, 2, settlings, wait=False), [True, True, 0, 0, [JOB, JOB]])
    assert [type(each).__name__ for each in sent[0]] == ["Complete", "Delay", "Reap", "Promote", "ClaimMany"]
    assert step == Step(["completed", "delayed"], [JOB, JOB])


def test_a_scripted_round_asks_the_other_source_for_the_rest(rounds: Rounds) -> None:
    rounds.sources = ("lanes", "flat")
    sent, step = play(rounds.round(SCRIPTED, 3, [], wait=False), [0, 0, [JOB]], [JOB], [None])
    assert [type(each).__name__ for each in sent[1]] == ["ClaimFair"]
    assert [type(each).__name__ for each in sent[2]] == ["ClaimFair"]
    assert len(step.jobs) == 2


NOW = [b"1000", b"0"]
EMPTY = [None, [], [], [], [], NOW]
"""What a look answers: a pop of `wake`; the first of `schedule`, `active`, `pending` and `ring`; the clock."""


def look(rounds: Rounds, answers: list[Any], *further: list[Any]) -> tuple[float, list[Batch], Step]:
    """A round that begins with a look. Returns its pause in seconds, what it sent then, and the step."""
    (pop, *_), *sent = (played := play(rounds.round(SCRIPTED, 1, [], wait=True), answers, *further))[0]
    assert pop[:2] == (b"BLPOP", KEY + b":wake")
    return float(pop[2]), sent, played[1]


@pytest.fixture
def idle(rounds: Rounds) -> Rounds:
    """Rounds that have found nothing."""
    play(rounds.round(SCRIPTED, 1, [], wait=True), [0, 0, []], [None], EMPTY)
    return rounds


def test_a_scripted_worker_that_found_nothing_looks_with_growing_pauses_and_without_scripts(idle: Rounds) -> None:
    looks = [look(idle, EMPTY) for _ in range(8)]

    pauses = [pause for pause, _, _ in looks]
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (0.01, 0.05)
    assert all((sent, step) == ([], Step([], [])) for _, sent, step in looks)


@pytest.mark.parametrize("place", range(5))
def test_a_look_that_finds_something_is_followed_by_the_scripts(idle: Rounds, place: int) -> None:
    found = [*EMPTY]
    found[place] = ([b"wake", b"1"], [b"id", b"1000000"], [b"id", b"999999"], [b"id"], [b"g"])[place]

    _, sent, step = look(idle, found, [0, 0, JOB], [])

    assert [type(each).__name__ for each in sent[0]][:2] == ["Reap", "Promote"]
    assert step.jobs == [JOB]


@pytest.mark.parametrize("scored", [[b"id", b"1000004"], [[b"id", 1000004.0]]])
def test_a_pause_ends_when_a_job_is_due(idle: Rounds, scored: list[Any]) -> None:
    look(idle, [None, scored, [], [], [], NOW])
    assert look(idle, EMPTY)[0] == 0.004


def test_looks_that_find_what_cannot_be_taken_have_longer_pauses(rounds: Rounds) -> None:
    pauses = []
    for _ in range(12):
        sent, _ = play(rounds.round(SCRIPTED, 1, [], wait=True), [0, 0, []], [None], [None, [], [], [b"id"], [], NOW])
        pauses.append(float(sent[-1][0][2]))  # type: ignore[index]
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (0.005, 0.5)


def test_what_a_look_may_not_read_is_left_to_the_scripts(idle: Rounds) -> None:
    _, sent, step = look(idle, [None, [], [], WrongType("WRONGTYPE x"), [], NOW], [0, 0, WrongType("WRONGTYPE x")], [])
    assert sent
    assert step.fault == "WRONGTYPE x"


def test_the_scripts_sweep_each_second_whatever_looks_find(idle: Rounds) -> None:
    waited = 0.005
    while True:
        batch = next(idle.round(SCRIPTED, 1, [], wait=True))
        if not isinstance(batch[0], tuple):
            break
        waited += look(idle, EMPTY)[0]
    assert 0.95 < waited < 1.06


def test_plain_completions_travel_as_one(rounds: Rounds) -> None:
    settlings: list[Settling] = [
        t.Complete(JOB),
        t.Delay(JOB, 0),
        t.Complete(Job(B, b"", 1, "q")),
        t.Complete(JOB, result=b"r"),
    ]
    sent, step = play(settle(settlings), [["completed", "stale"], True, False])
    assert [type(each).__name__ for each in sent[0]] == ["CompleteMany", "Delay", "Complete"]
    assert step.settled == ["completed", "delayed", "stale", "gone"]

    sent, step = play(settle(settlings), [WrongType("WRONGTYPE x"), True, True], [True, WrongType("WRONGTYPE x")])
    assert step.settled == ["completed", "delayed", "refused", "completed"]


def test_jobs_that_were_taken_are_kept_when_the_rest_breaks(rounds: Rounds) -> None:
    rounds.sources = ("lanes", "flat")
    lost = Unavailable("gone", outcome_unknown=True)
    _, step = play(rounds.round(SCRIPTED, 3, [], wait=True), [0, 0, [JOB]], [lost])
    assert step == Step([], [JOB], "gone")
