"""Each transition without a server: the words that go out, and the value of each reply."""

from __future__ import annotations

import inspect
import pickle
from datetime import datetime, timedelta, timezone

import pytest

from emq_native import Admitted, Counts, GroupCounts, Job, Queue, Version, aio
from emq_native import transitions as t
from emq_native.errors import InvalidArgument, InvalidJobId
from emq_native.ids import is_job_id
from emq_native.queue import Verb
from emq_native.transitions import Transition
from emq_native.verbs import VERBS

KEY = b"emq:{q}"
A = "JOB0EEMl9I7Qw4"
B = "JOB0EEMl9I7Qw5"
JOB = Job(A, b"p", 3, "q")
WHEN = datetime(2025, 6, 15, 15, 6, 40, tzinfo=timezone.utc)
AT = b"1750000000000"

WORDS: list[tuple[Transition[object], str, list[bytes]]] = [
    (t.Enqueue(b"p", id=A), "emq.enqueue", [A.encode(), b"p"]),
    (t.Enqueue(b"p", id=A, group="g"), "emq.genqueue", [b"g", A.encode(), b"p"]),
    (t.EnqueueIn(b"p", 1.5, id=A), "emq.schedule", [A.encode(), b"p", b"IN", b"1500"]),
    (t.EnqueueAt(b"p", WHEN, id=A), "emq.schedule", [A.encode(), b"p", b"AT", AT]),
    (t.Claim(30), "emq.claim", [b"30000"]),
    (t.Complete(JOB), "emq.complete", [A.encode(), b"3"]),
    (t.Complete(A, token=9, result=b"r"), "emq.complete", [A.encode(), b"9", b"RESULT", b"r"]),
    (t.Complete(JOB, result=b""), "emq.complete", [A.encode(), b"3", b"RESULT", b""]),
    (t.Retry(JOB, max_attempts=5, error="é", delay=2), "emq.retry", [A.encode(), b"3", b"2000", b"5", "é".encode()]),
    (t.Retry(JOB, max_attempts=1), "emq.retry", [A.encode(), b"3", b"0", b"1", b""]),
    (t.Delay(JOB, 5), "emq.delay", [A.encode(), b"3", b"IN", b"5000"]),
    (t.Delay(JOB, timedelta(minutes=1)), "emq.delay", [A.encode(), b"3", b"IN", b"60000"]),
    (t.Delay(A, WHEN, token=2), "emq.delay", [A.encode(), b"2", b"AT", AT]),
    (t.Extend(JOB, 60), "emq.extend", [A.encode(), b"3", b"60000"]),
    (t.Promote(), "emq.promote", []),
    (t.Promote(7), "emq.promote", [b"LIMIT", b"7"]),
    (t.Reap(), "emq.reap", []),
    (t.Reap(7, max_attempts=3), "emq.reap", [b"LIMIT", b"7", b"MAX", b"3"]),
    (t.Where(JOB), "emq.state", [A.encode()]),
    (t.Count(), "emq.counts", []),
    (t.Peek(A), "emq.peek", [A.encode()]),
    (t.About(), "emq.version", []),
    (t.EnqueueMany([(A, b"x"), (B, b"y")]), "emq.menqueue", [A.encode(), b"x", B.encode(), b"y"]),
    (t.ClaimMany(1, 10), "emq.mclaim", [b"1000", b"10"]),
    (t.CompleteMany([JOB, (B, 1)]), "emq.mcomplete", [A.encode(), b"3", B.encode(), b"1"]),
    (t.ExtendMany([JOB, (B, 1)], 2), "emq.mextend", [b"2000", A.encode(), b"3", B.encode(), b"1"]),
    (t.ClaimFair(1), "emq.gclaim", [b"1000"]),
    (t.ClaimWeighted(1), "emq.gwclaim", [b"1000"]),
    (t.ClaimGroup(1, 3), "emq.gmclaim", [b"1000", b"3"]),
    (t.PauseGroup("g"), "emq.gpause", [b"g"]),
    (t.ResumeGroup("g"), "emq.gresume", [b"g"]),
    (t.LimitGroup("g", 0), "emq.glimit", [b"g", b"0"]),
    (t.WeighGroup("g", 3), "emq.gweight", [b"g", b"3"]),
    (t.Reassign(JOB, "h"), "emq.greassign", [A.encode(), b"h"]),
    (t.DrainGroup("g", 2), "emq.gdrain", [b"g", b"LIMIT", b"2"]),
    (t.ReapGroup("g", 2, max_attempts=4), "emq.greap", [b"g", b"LIMIT", b"2", b"MAX", b"4"]),
    (t.CountGroups(), "emq.gcounts", []),
    (t.CountGroups("h", "g"), "emq.gcounts", [b"h", b"g"]),
    (t.Pause(), "emq.pause", []),
    (t.Resume(), "emq.resume", []),
    (t.Drain(), "emq.drain", []),
    (t.Drain(5, scheduled=True), "emq.drain", [b"SCHEDULED", b"LIMIT", b"5"]),
    (t.Obliterate(), "emq.obliterate", []),
    (t.Obliterate(5, force=True), "emq.obliterate", [b"FORCE", b"LIMIT", b"5"]),
    (t.Remove(A), "emq.remove", [A.encode()]),
    (t.Remove(JOB, force=True), "emq.remove", [A.encode(), b"FORCE"]),
    (t.Reprocess(A), "emq.reprocess", [A.encode()]),
    (t.Update(A, b"new"), "emq.update", [A.encode(), b"new"]),
    (t.Progress(A, "50 %"), "emq.progress", [A.encode(), b"50 %"]),
    (t.Log(A, "line"), "emq.log", [A.encode(), b"line"]),
    (t.Log(A, b"line", keep=2), "emq.log", [A.encode(), b"line", b"KEEP", b"2"]),
    (t.Repeat("nightly", 60, b"p"), "emq.repeat", [b"nightly", b"EVERY", b"60000", b"p"]),
    (t.Repeat("n", 60, b"p", first=WHEN), "emq.repeat", [b"n", b"EVERY", b"60000", b"p", b"AT", AT]),
    (t.Unrepeat("n"), "emq.unrepeat", [b"n"]),
    (t.Fire("n", WHEN, id=A), "emq.fire", [b"n", AT, A.encode()]),
]


@pytest.mark.parametrize(("transition", "verb", "words"), WORDS, ids=[f"{n}-{v}" for n, (_, v, _) in enumerate(WORDS)])
def test_the_words_of_a_transition(transition: Transition[object], verb: str, words: list[bytes]) -> None:
    assert transition.verb == verb
    assert transition.words(KEY) == [KEY, *words]
    assert not transition.trivial


@pytest.mark.parametrize("transition", [t.EnqueueMany([]), t.CompleteMany([]), t.ExtendMany([], 5)])
def test_no_members_need_no_server(transition: Transition[object]) -> None:
    assert transition.trivial
    assert transition.decode([], "q") == []


FLOWS = {name for name in VERBS if name.startswith("emq.flow")} | {"emq.next", "tra.capabilities"}


def test_every_verb_has_a_transition() -> None:
    assert {verb for _, verb, _ in WORDS} == set(VERBS) - FLOWS


def test_every_transition_is_a_method_of_both_queues() -> None:
    transitions = {
        kind
        for kind in vars(t).values()
        if isinstance(kind, type)
        and issubclass(kind, Transition)
        and kind.__name__[0] != "_"
        and kind is not Transition
    }
    for queue, verb in ((Queue, Verb), (aio.Queue, aio.queue.Verb)):
        methods = [name for name, value in vars(queue).items() if isinstance(value, verb)]
        assert len(methods) == len(transitions)
        assert {getattr(queue, name).__doc__ for name in methods} == {kind.__doc__ for kind in transitions}


def test_both_queues_have_the_same_methods_with_the_same_signatures() -> None:
    for name, value in vars(Queue).items():
        if isinstance(value, Verb):
            mine, other = getattr(Queue, name), getattr(aio.Queue, name)
            assert mine.__name__ == other.__name__ == name
            assert inspect.signature(mine) == inspect.signature(other)
            assert mine.__doc__ == other.__doc__


def test_a_method_shows_the_signature_and_text_of_its_transition() -> None:
    parameters = list(inspect.signature(Queue.retry).parameters)

    assert parameters == ["self", "job", "max_attempts", "error", "delay", "token"]
    assert "Report a failure" in (Queue.retry.__doc__ or "")


def test_an_admission_mints_an_id_before_it_is_sent() -> None:
    first, second = t.Enqueue(b"p"), t.Enqueue(b"p")

    ids = [transition.words(KEY)[1].decode() for transition in (first, second)]

    assert all(is_job_id(each) for each in ids)
    assert ids[0] < ids[1]
    assert first.words(KEY) == first.words(KEY)
    assert first.decode(1, "q") == ids[0]


def test_an_admission_tells_a_new_job_from_an_old_one() -> None:
    transition = t.Enqueue(b"p", id=A)

    assert transition.decode(1, "q") == A
    assert transition.decode(1, "q").created
    assert not transition.decode(0, "q").created


def test_many_admissions_answer_in_order() -> None:
    transition = t.EnqueueMany([b"x", (A, b"y"), b"z"])

    admitted = transition.decode([1, 0, 1], "q")

    assert [each.created for each in admitted] == [True, False, True]
    assert admitted[1] == A
    assert [each.encode() for each in admitted] == transition.words(KEY)[1::2]


def test_an_admitted_id_is_a_str_that_survives_pickling() -> None:
    admitted = pickle.loads(pickle.dumps(Admitted(A, False)))

    assert admitted == A
    assert not admitted.created
    assert isinstance(admitted, str)


def test_a_claim_answers_a_job_or_none() -> None:
    assert t.Claim(1).decode([A.encode(), b"p", 1], "orders") == Job(A, b"p", 1, "orders")
    assert t.Claim(1).decode([], "orders") is None
    assert t.ClaimFair(1).decode([A.encode(), b"p", 2, b"g"], "q") == Job(A, b"p", 2, "q", "g")
    assert t.ClaimFair(1).decode([], "q") is None


def test_a_damaged_row_has_no_payload() -> None:
    assert t.Claim(1).decode([A.encode(), None, 1], "q") == Job(A, None, 1, "q")


def test_many_claims_answer_a_list() -> None:
    assert t.ClaimMany(1, 5).decode([], "q") == []
    assert t.ClaimMany(1, 5).decode([[A.encode(), b"x", 1], [B.encode(), b"y", 4]], "q") == [
        Job(A, b"x", 1, "q"),
        Job(B, b"y", 4, "q"),
    ]
    assert t.ClaimWeighted(1).decode([[A.encode(), b"x", 1, b"g"]], "q") == [Job(A, b"x", 1, "q", "g")]
    assert t.ClaimGroup(1, 2).decode([[A.encode(), b"x", 1, b"g"]], "q") == [Job(A, b"x", 1, "q", "g")]


def test_the_token_of_a_job_is_the_attempt_that_claimed_it() -> None:
    assert JOB.token == JOB.attempts == 3


COUNTS = [
    b"pending",
    1,
    b"active",
    2,
    b"scheduled",
    3,
    b"dead",
    4,
    b"awaiting_children",
    5,
    b"completed",
    6,
    b"failed",
    7,
]


def test_maps_of_both_protocols_are_one() -> None:
    as_map = dict(zip(COUNTS[::2], COUNTS[1::2], strict=True))

    assert t.Count().decode(COUNTS, "q") == t.Count().decode(as_map, "q") == Counts(1, 2, 3, 4, 5, 6, 7)
    assert (
        t.Peek(A).decode([b"state", b"dead"], "q") == t.Peek(A).decode({b"state": b"dead"}, "q") == {"state": b"dead"}
    )
    assert t.Peek(A).decode(None, "q") is None


def test_keys_of_a_map_that_are_not_known_are_ignored() -> None:
    assert t.Count().decode([*COUNTS, b"future", 8], "q") == Counts(1, 2, 3, 4, 5, 6, 7)


def test_the_version_is_read_field_by_field() -> None:
    reply = {
        b"module": b"emq",
        b"module_version": b"0.1.0",
        b"wire": 6,
        b"identity": b"echomq:6.0.0",
        b"node": None,
        b"server": b"9.1.2",
        b"api": 1,
        b"future": b"x",
    }
    assert t.About().decode(reply, "q") == Version("emq", "0.1.0", 6, "echomq:6.0.0", None, "9.1.2", 1)


@pytest.mark.parametrize(
    ("transition", "reply", "value"),
    [
        (t.Complete(JOB), 1, True),
        (t.Complete(JOB), 0, False),
        (t.Extend(JOB, 1), -1, False),
        (t.Retry(JOB, max_attempts=1), b"dead", "dead"),
        (t.Retry(JOB, max_attempts=1), b"scheduled", "scheduled"),
        (t.Where(A), b"awaiting_children", "awaiting_children"),
        (t.Reap(), 4, 4),
        (t.CompleteMany([JOB] * 4), [1, -1, 0, 0], ["completed", "stale", "gone", "gone"]),
        (t.ExtendMany([JOB], 1), [A.encode()], [A]),
        (t.Reassign(A, "g"), 1, "moved"),
        (t.Reassign(A, "g"), 0, "same"),
        (t.Reassign(A, "g"), -1, "ungrouped"),
        (t.Reassign(A, "g"), -2, "not waiting"),
        (t.CountGroups(), [[b"g", 1, 2]], [GroupCounts("g", 1, 2)]),
        (t.Obliterate(), 0, True),
        (t.Obliterate(), 1, False),
        (t.Remove(A), -1, False),
        (t.Log(A, "x"), 3, 3),
        (t.Log(A, "x"), -1, None),
        (t.Repeat("n", 1, b""), 0, False),
        (t.Fire("n", WHEN, id=A), 1, A),
        (t.Fire("n", WHEN, id=A), 0, None),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Transition) else str(value),
)
def test_the_value_of_a_reply(transition: Transition[object], reply: object, value: object) -> None:
    assert transition.decode(reply, "q") == value


BAD_IDS = [
    "",
    "JOB",
    "ORD0EEMl9I7Qw4",
    "JOB0EEMl9I7Qw",
    "JOB0EEMl9I7Qw44",
    "JOBB0000000000",
    "JOB0EEMl9I7Qw!",
    "job0EEMl9I7Qw4",
]


@pytest.mark.parametrize("job_id", BAD_IDS)
def test_a_bad_id_is_refused_before_any_traffic(job_id: str) -> None:
    for make in (
        lambda: t.Enqueue(b"", id=job_id),
        lambda: t.Complete(job_id, token=1),
        lambda: t.CompleteMany([(job_id, 1)]),
        lambda: t.EnqueueMany([(job_id, b"")]),
        lambda: t.Where(job_id),
        lambda: t.Remove(job_id),
        lambda: t.Fire("n", WHEN, id=job_id),
    ):
        with pytest.raises(InvalidJobId):
            make()


@pytest.mark.parametrize("group", ["", "a b", "g" * 65, "{g}", "é"])
def test_a_bad_group_is_refused(group: str) -> None:
    for make in (
        lambda: t.Enqueue(b"", group=group),
        lambda: t.PauseGroup(group),
        lambda: t.CountGroups(group),
        lambda: t.Reassign(A, group),
    ):
        with pytest.raises(InvalidArgument, match="group"):
            make()


def test_an_id_alone_proves_no_lease() -> None:
    for make in (lambda: t.Complete(A), lambda: t.Retry(A, max_attempts=1), lambda: t.Extend(A, 1)):
        with pytest.raises(InvalidArgument, match="token="):
            make()


@pytest.mark.parametrize("jobs", [[A], [(A,)], [(A, 1, 2)], [None]])
def test_many_leases_are_jobs_or_pairs(jobs: list[object]) -> None:
    with pytest.raises(InvalidArgument, match="pairs"):
        t.CompleteMany(jobs)  # type: ignore[arg-type]


@pytest.mark.parametrize("payload", [(), (A,), (A, b"x", b"y")])
def test_many_payloads_are_bytes_or_pairs(payload: object) -> None:
    with pytest.raises(InvalidArgument, match="pairs"):
        t.EnqueueMany([b"", payload])  # type: ignore[list-item]


def test_at_most_so_many_members() -> None:
    assert len(t.CompleteMany([(A, 1)] * 10_000).words(KEY)) == 20_001
    with pytest.raises(InvalidArgument, match="at most 10000 members"):
        t.CompleteMany([(A, 1)] * 10_001)
    with pytest.raises(InvalidArgument, match="at most 10000 members"):
        t.EnqueueMany([b""] * 10_001)


@pytest.mark.parametrize("name", ["", "emq", "a b", "q" * 129, "{q}", "é"])
def test_a_bad_queue_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgument, match="queue name"):
        Queue(None, name)  # type: ignore[arg-type]
