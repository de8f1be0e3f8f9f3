"""What a worker decides, without a server and without a clock."""

from __future__ import annotations

import pytest

from emq_native import Job, mint
from emq_native import transitions as t
from emq_native.ledger import AHEAD_S, PATIENCE_S, HeldJob, Ledger
from emq_native.outcome import Policy


def jobs(count: int) -> list[Job]:
    return [Job(mint(), b"", 1, "q") for _ in range(count)]


def begun(ledger: Ledger, now: float) -> HeldJob:
    job = ledger.begin(now)
    assert job is not None
    return job


def run(ledger: Ledger, start: float, took: float) -> None:
    """One job from its taking to its verdict."""
    ledger.take(jobs(1), start, start)
    job = begun(ledger, start)
    ledger.finish(job, t.Complete(job), start + took)


@pytest.fixture
def ledger() -> Ledger:
    return Ledger(concurrency=2, batch=100, lease=30)


def test_nothing_is_taken_ahead_before_a_run_was_timed(ledger: Ledger) -> None:
    assert ledger.room() == 2
    ledger.asked = 2
    assert ledger.room() == 0


def test_short_jobs_are_taken_ahead_and_long_ones_are_not(ledger: Ledger) -> None:
    run(ledger, 0.0, 0.001)
    assert ledger.room() == 2 + int(AHEAD_S * 2 / 0.001)
    for number in range(100):
        run(ledger, float(number), 60.0)
    assert ledger.room() == 2


def test_a_batch_bounds_what_is_taken_ahead(ledger: Ledger) -> None:
    run(ledger, 0.0, 0.0)
    assert ledger.room() == 102


def test_verdicts_wait_for_company_only_a_moment(ledger: Ledger) -> None:
    run(ledger, 0.0, 1.0)
    assert not ledger.due(1.0)
    assert ledger.due(1.0 + AHEAD_S)


def test_leases_are_renewed_three_times_within_their_length(ledger: Ledger) -> None:
    ledger.beaten = 100.0
    ledger.take(jobs(2), 100.0, 100.0)
    begun(ledger, 100.0)
    assert ledger.beat(109.0) == []
    held = ledger.beat(110.0)
    assert len(held) == 2
    assert ledger.renewed(held, [], 110.0) == []
    assert ledger.beat(115.0) == []
    assert len(ledger.beat(120.0)) == 2


def test_what_is_not_renewed_is_lost_once(ledger: Ledger) -> None:
    ledger.take(jobs(2), 0.0, 0.0)
    first = begun(ledger, 0.0)
    held = ledger.beat(10.0)
    assert ledger.renewed(held, [first.id], 10.0) == [first]
    assert first.lost
    assert [job.id for job in ledger.beat(20.0)] == [held[1].id]


def test_a_lost_job_that_has_not_begun_is_dropped(ledger: Ledger) -> None:
    (job,) = jobs(1)
    ledger.take([job], 0.0, 0.0)
    ledger.renewed(ledger.beat(10.0), [job.id], 10.0)
    assert ledger.begin(11.0) is None
    assert ledger.stats.lost == 1
    assert ledger.idle


def test_a_newer_token_in_the_same_hands_ends_the_older_run(ledger: Ledger) -> None:
    (job,) = jobs(1)
    ledger.take([job], 0.0, 0.0)
    older = begun(ledger, 0.0)
    assert ledger.take([Job(job.id, b"", 2, "q")], 1.0, 1.0) == [older]
    newer = begun(ledger, 1.0)
    assert older.lost
    assert not newer.lost


def test_an_unanswered_verdict_travels_again_before_the_others(ledger: Ledger) -> None:
    run(ledger, 0.0, 1.0)
    first = ledger.collect()
    run(ledger, 1.0, 1.0)
    ledger.unanswered(first, unsure=True)
    again = ledger.collect()
    assert again[0] is first[0]
    ledger.settled(again, ["gone", "gone"])
    assert (ledger.stats.unsure, ledger.stats.lost) == (1, 1)
    assert ledger.idle


def test_jobs_ahead_go_back_when_they_cannot_begin(ledger: Ledger) -> None:
    run(ledger, 0.0, 0.0)
    ledger.settled(ledger.collect(), ["completed"])
    ledger.take(jobs(10), 1.0, 1.0)
    begun(ledger, 1.0)
    ledger.reconsider(1.0 + PATIENCE_S)
    verdicts = ledger.collect()
    assert [type(verdict.settling) for verdict in verdicts] == [t.Delay] * 9
    assert ledger.room() == 1


def test_a_run_over_its_time_is_overdue_and_its_end_does_not_count(ledger: Ledger) -> None:
    ledger.take(jobs(1), 0.0, 0.0)
    job = begun(ledger, 0.0)
    job._policy = Policy(timeout=5.0)
    assert ledger.overdue(4.9) == []
    assert ledger.overdue(5.0) == [job]
    ledger.give_up(job, t.Retry(job, max_attempts=1), 5.0)
    assert ledger.overdue(6.0) == []
    assert not ledger.finish(job, t.Complete(job), 7.0)
    assert len(ledger.verdicts) == 1
