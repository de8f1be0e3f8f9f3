"""Field cases of leases, tokens and tries: reports from people who run such systems, as tests."""

from __future__ import annotations

import threading

import pytest

from emq_native.conformance.lab import LEASE, Lab
from emq_native.conformance.wire import Error, Reply
from emq_native.executors import Executor


@pytest.fixture
def protocol() -> int:
    """Leases know nothing of protocol versions."""
    return 2


def claim(lab: Lab, job: str, lease: int = LEASE) -> str:
    """Claim the job that must be next; returns its token."""
    reply = lab.send("claim", lease)
    assert isinstance(reply, list)
    assert reply[0] == job.encode()
    return str(reply[2])


def lose_the_lease(lab: Lab, job: str) -> tuple[str, str]:
    """Claim, let it lapse, reap, claim again; returns the lost token and the good one."""
    lab.send("enqueue", job, "payload")
    lost = claim(lab, job, 1)
    lab.lapse(job)
    assert lab.send("reap") == 1
    return lost, claim(lab, job)


def test_a_worker_that_lost_its_lease_does_not_finish_the_job(lab: Lab) -> None:
    """case 01"""
    lost, good = lose_the_lease(lab, lab.a)
    assert int(good) > int(lost)
    lab.refused("EMQSTALE complete token mismatch", "complete", lab.a, lost)
    assert lab.send("complete", lab.a, good) == 1


def test_the_report_of_a_stale_worker_does_not_touch_the_live_run(lab: Lab) -> None:
    """case 02"""
    lost, good = lose_the_lease(lab, lab.a)
    lab.refused("EMQSTALE retry token mismatch", "retry", lab.a, lost, 1000, 5, "boom")
    lab.refused("EMQSTALE delay token mismatch", "delay", lab.a, lost, "IN", 0)
    lab.refused("EMQSTALE extend token mismatch", "extend", lab.a, lost, 9999)
    assert lab.where(lab.a) == ["active"]
    assert lab.fields_of(lab.a)["attempts"] == good.encode()


@pytest.mark.parametrize("reaped", [False, True], ids=["not reaped", "reaped"])
@pytest.mark.parametrize("verb", ["complete", "retry", "delay", "extend"])
def test_a_lease_that_is_over_settles_by_one_rule_whichever_cleaner_ran_first(
    lab: Lab, verb: str, reaped: bool
) -> None:
    """case 05"""
    lab.send("enqueue", lab.a, "payload")
    token = claim(lab, lab.a, 1)
    lab.lapse(lab.a)
    if reaped:
        assert lab.send("reap") == 1
    words: dict[str, list[str | int]] = {
        "complete": [token],
        "retry": [token, 60_000, 3, "e"],
        "delay": [token, "IN", 60_000],
        "extend": [token, LEASE],
    }
    accepted: dict[str, Reply] = {"complete": 1, "retry": b"scheduled", "delay": 1, "extend": 1}
    if reaped and verb == "extend":
        lab.refused("EMQSTATE job is not active", verb, lab.a, *words[verb])
    else:
        assert lab.send(verb, lab.a, *words[verb]) == accepted[verb]
    assert lab.send("reap") == 0
    left = {"complete": [], "retry": ["schedule"], "delay": ["schedule"], "extend": ["pending" if reaped else "active"]}
    assert lab.where(lab.a) == left[verb]


def test_a_fresh_claim_is_never_swept(lab: Lab) -> None:
    """case 06"""
    over = threading.Event()
    swept: list[Reply] = []
    sweeper = lab.connect()

    def sweep() -> None:
        while not over.is_set():
            swept.append(lab.send("reap", wire=sweeper))

    thread = threading.Thread(target=sweep)
    lab.send("reap")
    thread.start()
    seen = []
    while len(seen) < 2_000 or len(swept) <= 100:
        [job] = lab.ids(1)
        lab.send("enqueue", job, "payload")
        seen.append(claim(lab, job))
    over.set()
    thread.join()
    assert set(seen) == {"1"}
    assert set(swept) == {0}


@pytest.mark.parametrize("ending", ["complete", "retry", "dead", "delay"])
def test_a_finished_job_is_never_declared_abandoned(lab: Lab, ending: str) -> None:
    """case 08"""
    lab.send("enqueue", lab.a, "payload")
    token = claim(lab, lab.a, 1)
    deadline = lab.scores("active")[lab.a]
    if ending == "complete":
        lab.send("complete", lab.a, token)
    elif ending == "delay":
        lab.send("delay", lab.a, token, "IN", 60_000)
    else:
        lab.send("retry", lab.a, token, 60_000, 1 if ending == "dead" else 3, "e")
    lab.reach(deadline)
    with lab.unchanged():
        assert [lab.send("reap"), lab.send("reap", "MAX", 1)] == [0, 0]
    assert lab.scores("active") == {}


@pytest.mark.parametrize("tries", [1, 3])
def test_a_job_that_crashes_its_workers_dies_after_its_tries_and_not_before(lab: Lab, tries: int) -> None:
    """case 10"""
    lab.send("enqueue", lab.a, "payload")
    tokens = []
    for run in range(1, tries + 1):
        tokens.append(claim(lab, lab.a, 1))
        lab.lapse(lab.a)
        assert lab.send("reap", "MAX", tries) == 1
        assert lab.where(lab.a) == (["dead"] if run == tries else ["pending"])
    assert tokens == [str(run) for run in range(1, tries + 1)]
    assert lab.fields_of(lab.a)["last_error"] == b"lease expired"
    assert lab.send("claim", LEASE) == []


@pytest.mark.parametrize("mixed", [False, True], ids=["failures", "failures and lapses"])
@pytest.mark.parametrize("tries", [1, 2, 3, 25])
def test_a_cap_of_n_is_exactly_n_claims(lab: Lab, tries: int, mixed: bool) -> None:
    """case 11"""
    lab.send("enqueue", lab.a, "payload")
    claims = 0
    while True:
        reply = lab.send("claim", 1)
        if reply == []:
            break
        claims += 1
        if mixed and claims % 2:
            lab.lapse(lab.a)
            lab.send("reap", "MAX", tries)
        else:
            last = lab.send("retry", lab.a, str(claims), 0, tries, "e")
            assert last == (b"dead" if claims == tries else b"scheduled")
            lab.send("promote")
    assert claims == tries
    assert lab.where(lab.a) == ["dead"]
    for verb, words in (("retry", ["1", 0, 0, "e"]), ("reap", ["MAX", 0])):
        head = [lab.a] if verb == "retry" else []
        lab.refused("ERR max must be an integer between 1 and 2147483647", verb, *head, *words)


def test_extending_sets_the_deadline_and_revives_nothing(lab: Lab) -> None:
    """case 12"""
    lab.send("enqueue", lab.a, "payload")
    token = claim(lab, lab.a)
    assert lab.send("extend", lab.a, token, 100) == 1
    assert lab.scores("active")[lab.a] < lab.now() + 1000
    assert lab.send("complete", lab.a, token) == 1
    with lab.unchanged():
        assert lab.send("extend", lab.a, token, LEASE) == -1


def test_a_batch_of_extensions_answers_exactly_what_was_not_extended(lab: Lab) -> None:
    """case 12"""
    good, wrong, unknown, done = lab.ids(4)
    lab.seed(good, "active", score=1)
    lab.seed(wrong, "active", score=1)
    lab.seed(done, "active")
    lab.send("complete", done, "1")
    reply = lab.send("mextend", LEASE, good, "1", wrong, "2", unknown, "1", done, "1")
    assert reply == [wrong.encode(), unknown.encode(), done.encode()]
    assert lab.scores("active")[good] > lab.now()
    assert lab.scores("active")[wrong] == 1


STATES = ("pending", "lane", "schedule", "active", "held", "dead")


@pytest.mark.parametrize("state", [*STATES, "completed", "removed"])
@pytest.mark.parametrize("verb", ["enqueue", "schedule", "menqueue", "genqueue"])
def test_an_id_that_exists_is_a_duplicate_and_one_that_is_gone_is_free(lab: Lab, verb: str, state: str) -> None:
    """case 45"""
    words: dict[str, list[str | int]] = {
        "enqueue": [lab.a, "other"],
        "schedule": [lab.a, "other", "IN", 0],
        "menqueue": [lab.a, "other"],
        "genqueue": ["h", lab.a, "other"],
    }
    if state in STATES:
        lab.seed(lab.a, "pending" if state == "lane" else state, group="g" if state == "lane" else None)
        with lab.unchanged():
            assert lab.send(verb, *words[verb]) in (0, [0])
    else:
        lab.seed(lab.a, "active" if state == "completed" else "pending")
        ends = {"completed": ("complete", lab.a, "1"), "removed": ("remove", lab.a)}
        assert lab.send(*ends[state]) == 1
        assert lab.send(verb, *words[verb]) in (1, [1])
        assert lab.fields_of(lab.a)["payload"] == b"other"


def test_a_duplicate_within_one_call_counts_once(lab: Lab, executor: Executor) -> None:
    """case 45"""
    assert lab.send("menqueue", lab.a, "x", lab.a, "y") == [1, 0], executor.name
    assert not isinstance(lab.send("peek", lab.a), Error)
    assert lab.fields_of(lab.a)["payload"] == b"x"
