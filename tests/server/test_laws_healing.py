"""Foreign writes can break a queue's data: what movers heal, what they refuse, and how much they do in one call."""

from __future__ import annotations

import pytest

from emq_native.conformance.lab import LEASE, Lab, M
from emq_native.conformance.wire import Word

DROP = ROUND = 1000
SCAN = 10_000


@pytest.fixture
def protocol() -> int:
    """Healing knows nothing of protocol versions."""
    return 2


def zadd(lab: Lab, key: str, members: list[str], score: int = 0) -> None:
    for start in range(0, len(members), 1000):
        words: list[Word] = [word for member in members[start : start + 1000] for word in (score, member)]
        lab.plain("ZADD", key, *words)


def served(lab: Lab, job: str, group: str | None = None) -> list[object]:
    return [job.encode(), b"payload", 1, *([group.encode()] if group else [])]


@pytest.mark.parametrize(("stale", "calls"), [(DROP - 1, 1), (DROP, 2), (2 * DROP - 1, 2), (2 * DROP, 3)])
def test_a_claim_passes_a_bounded_number_of_stale_entries(lab: Lab, stale: int, calls: int) -> None:
    jobs = lab.ids(stale + 1)
    zadd(lab, lab.key("pending"), jobs[:stale])
    lab.seed(jobs[-1])
    for left in range(calls - 1, 0, -1):
        assert lab.send("claim", LEASE) == []
        assert len(lab.scores("pending")) == stale + 1 - (calls - left) * DROP
    assert lab.send("claim", LEASE) == served(lab, jobs[-1])
    assert lab.scores("pending") == {}


def test_a_batch_of_claims_passes_stale_entries_between_jobs(lab: Lab) -> None:
    jobs = lab.ids(9)
    zadd(lab, lab.key("pending"), jobs)
    for job in jobs[1::2]:
        lab.seed(job)
    assert lab.send("mclaim", LEASE, 3) == [served(lab, job) for job in jobs[1:6:2]]
    assert list(lab.scores("pending")) == jobs[6:]
    assert lab.send("mclaim", LEASE, 5) == [served(lab, jobs[7])]
    assert lab.scores("pending") == {}


def test_a_lane_claim_passes_a_bounded_number_of_stale_entries_and_serves_the_next_lane(lab: Lab) -> None:
    jobs = lab.ids(DROP + 1)
    zadd(lab, lab.lane("g"), jobs)
    lab.offer("g")
    lab.seed(lab.a, group="h")
    assert lab.send("gclaim", LEASE) == served(lab, lab.a, "h")
    assert list(lab.scores("g:g:pending")) == jobs[DROP:]
    assert lab.items("ring") == [b"g"]
    assert lab.send("gclaim", LEASE) == []
    assert (lab.items("ring"), lab.members("lanes")) == ([], frozenset())


@pytest.mark.parametrize(("broken", "calls"), [(ROUND - 1, 1), (ROUND, 2)])
def test_a_lane_claim_passes_a_bounded_number_of_lanes_and_repairs_the_ring(lab: Lab, broken: int, calls: int) -> None:
    lab.plain("RPUSH", lab.key("ring"), *(f"empty{number}" for number in range(broken)))
    lab.seed(lab.a, group="g")
    if calls == 2:
        assert lab.send("gclaim", LEASE) == []
        assert lab.items("ring") == [b"g"]
    assert lab.send("gclaim", LEASE) == served(lab, lab.a, "g")
    assert lab.items("ring") == []


def test_greap_looks_at_a_bounded_number_of_leases(lab: Lab) -> None:
    others = lab.ids(SCAN)
    rows: list[list[Word]] = [
        ["HSET", lab.row(job), "state", "active", "attempts", "1", "payload", "p", "group", "h"] for job in others
    ]
    for start in range(0, SCAN, 1000):
        lab.control.pipeline(rows[start : start + 1000])
    zadd(lab, lab.key("active"), others, 1)
    lab.plain("HSET", lab.key("gactive"), "h", SCAN)
    lab.seed(lab.a, "active", group="g", score=2)
    assert lab.send("greap", "g") == 0
    assert lab.send("greap", "h", "LIMIT", 1) == 1
    assert lab.send("greap", "g") == 1
    assert lab.where(lab.a) == ["g:g:pending"]


@pytest.mark.parametrize(("verb", "place"), [("promote", "schedule"), ("reap", "active")])
def test_stale_entries_use_up_the_limit_of_a_sweep_and_are_not_counted(lab: Lab, verb: str, place: str) -> None:
    jobs = lab.ids(5)
    zadd(lab, lab.key(place), jobs[:3], 1)
    for job in jobs[3:]:
        lab.seed(job, place, score=2)
    assert lab.send(verb, "LIMIT", 3) == 0
    assert list(lab.scores(place)) == jobs[3:]
    assert lab.send(verb, "LIMIT", 3) == 2


@pytest.mark.parametrize(("verb", "words", "place"), [("drain", [], "pending"), ("gdrain", ["g"], "g:g:pending")])
def test_stale_entries_are_drained_and_not_counted(lab: Lab, verb: str, words: list[Word], place: str) -> None:
    jobs = lab.ids(3)
    zadd(lab, lab.key(place), jobs[:2])
    lab.seed(jobs[2], group="g" if words else None)
    assert lab.send(verb, *words) == 1
    assert lab.scores(place) == {}
    assert lab.items("ring") == []


def test_a_second_listing_of_a_job_is_stale(lab: Lab) -> None:
    lab.seed(lab.a, "active")
    lab.seed(lab.b, "pending")
    lab.seed(lab.c, "schedule")
    zadd(lab, lab.key("pending"), [lab.a, lab.c])
    zadd(lab, lab.key("schedule"), [lab.b], 1)
    assert lab.send("promote") == 1
    assert lab.where(lab.b) == ["pending"]
    assert lab.send("claim", LEASE) == served(lab, lab.b)
    assert lab.where(lab.a) == ["active"]
    assert lab.send("claim", LEASE) == served(lab, lab.c)


@pytest.mark.parametrize("state", ["scheduled", "dead", "awaiting_children", "active", "nonsense", ""])
def test_a_row_that_names_a_place_that_does_not_list_it_is_where_it_is_listed(lab: Lab, state: str) -> None:
    lab.seed(lab.a)
    lab.plain("HSET", lab.row(lab.a), "state", state)
    assert lab.send("state", lab.a) == b"pending"
    assert lab.send("claim", LEASE) == served(lab, lab.a)
    lab.plain("HSET", lab.row(lab.a), "state", state)
    assert lab.send("state", lab.a) == b"active"
    assert lab.send("complete", lab.a, "1") == 1


@pytest.mark.parametrize("verb", ["complete", "retry", "delay", "extend"])
def test_a_lease_whose_entry_is_lost_settles_nothing(lab: Lab, verb: str) -> None:
    lab.seed(lab.a, "active")
    lab.plain("ZREM", lab.key("active"), lab.a)
    words: dict[str, list[Word]] = {"complete": [], "retry": [0, 1, "e"], "delay": ["IN", 0], "extend": [LEASE]}
    lab.refused("EMQSTATE job is not active", verb, lab.a, "1", *words[verb])
    assert lab.send("remove", lab.a) == 1


def test_an_orphan_of_active_is_removed_and_keeps_the_slot(lab: Lab) -> None:
    lab.seed(lab.a, "active", group="g", score=1)
    lab.forget(lab.a)
    assert lab.send("reap") == 0
    assert lab.scores("active") == {}
    assert lab.record("gactive") == {"g": b"1"}
    lab.plain("DEL", lab.key("gactive"))


def test_a_row_without_payload_and_attempts_is_served_with_null_and_token_one(lab: Lab) -> None:
    lab.seed(lab.a)
    lab.plain("HDEL", lab.row(lab.a), "payload", "attempts")
    assert lab.send("claim", LEASE) == [lab.a.encode(), None, 1]
    lab.seed(lab.b, group="g")
    lab.plain("HDEL", lab.row(lab.b), "payload")
    assert lab.send("gclaim", LEASE) == [lab.b.encode(), None, 1, b"g"]


UNSOUND = ("x", "", "1.5", " 1", "01", "+1", "1e3", str(M + 1), "99999999999999999")


@pytest.mark.parametrize("text", UNSOUND)
def test_stored_numbers_that_are_unsound_count_as_absent(lab: Lab, text: str) -> None:
    for job in (lab.a, lab.b):
        lab.seed(job, group="g")
    lab.plain("HSET", lab.key("glimit"), "g", text)
    lab.plain("HSET", lab.key("metrics:completed"), "count", text)
    lab.plain("HSET", lab.key("metrics:failed"), "count", text)
    assert lab.send("gclaim", LEASE) == served(lab, lab.a, "g")
    assert lab.send("gclaim", LEASE) == served(lab, lab.b, "g")
    assert lab.send("complete", lab.a, "1") == 1
    lab.plain("HSET", lab.row(lab.b), "floor", text)
    assert lab.send("retry", lab.b, "1", 0, 1, "e") == b"dead"
    assert (lab.record("metrics:completed"), lab.record("metrics:failed")) == ({"count": b"1"}, {"count": b"1"})
    lab.plain("DEL", lab.key("glimit"))


@pytest.mark.parametrize("text", UNSOUND)
def test_a_slot_count_that_is_unsound_begins_anew(lab: Lab, text: str) -> None:
    lab.seed(lab.a, group="g")
    lab.plain("HSET", lab.key("gactive"), "g", text)
    assert lab.send("gclaim", LEASE) == served(lab, lab.a, "g")
    assert lab.record("gactive") == {"g": b"1"}


def test_the_last_token_is_given_and_then_the_row_counts_as_damaged(lab: Lab) -> None:
    lab.seed(lab.a, attempts=M - 1)
    assert lab.send("claim", LEASE) == [lab.a.encode(), b"payload", M]
    lab.refused("EMQSTATE job row is damaged", "complete", lab.a, str(M))
    assert lab.send("remove", lab.a, "FORCE") == 1


def test_what_counts_stops_at_the_largest_number(lab: Lab) -> None:
    """A count beyond it would be absent at its next reading."""
    largest = str(M).encode()
    for job in (lab.a, lab.b):
        lab.seed(job, group="g")
    lab.plain("HSET", lab.key("gactive"), "g", M)
    assert lab.send("gmclaim", LEASE, 2) == [served(lab, job, "g") for job in (lab.a, lab.b)]
    assert lab.record("gactive") == {"g": largest}
    lab.plain("HSET", lab.key("metrics:completed"), "count", M)
    assert lab.send("mcomplete", lab.a, "1", lab.b, "1") == [1, 1]
    assert lab.record("metrics:completed") == {"count": largest}
    lab.plain("DEL", lab.key("gactive"))
    lab.seed(lab.c, "active", fields={"floor": str(M)})
    assert lab.send("delay", lab.c, "1", "IN", 60_000) == 1
    assert lab.fields_of(lab.c)["floor"] == largest


@pytest.mark.parametrize("reaped", ["0", "2", "x", "", "01"])
def test_only_the_token_that_reaped_names_is_good_after_a_reap(lab: Lab, reaped: str) -> None:
    lab.seed(lab.a, attempts=1, fields={"reaped": reaped})
    lab.refused("EMQSTATE job is not active", "complete", lab.a, "1")
    lab.plain("HSET", lab.row(lab.a), "reaped", "1")
    assert lab.send("complete", lab.a, "1") == 1


FOREIGN = ["x", "JOB", "\0", "job:x", "}{", "x" * 5_000, "\u00e4" * 70_000]


@pytest.mark.parametrize("name", FOREIGN, ids=lambda name: f"{len(name)}-bytes")
def test_members_of_any_shape_are_stale_and_removed(lab: Lab, name: str) -> None:
    for place in ("pending", "schedule", "active"):
        zadd(lab, lab.key(place), [name], 1)
    zadd(lab, lab.lane("g"), [name])
    lab.offer("g")
    lab.seed(lab.a)
    assert lab.send("promote") == 0
    assert lab.send("reap") == 0
    assert lab.send("mclaim", LEASE, 10) == [served(lab, lab.a)]
    assert lab.send("gclaim", LEASE) == []


@pytest.mark.parametrize("field", ["group", "parent", "parent_queue", "parent_policy", "last_error", "unknown"])
@pytest.mark.parametrize("value", FOREIGN, ids=lambda value: f"{len(value)}-bytes")
def test_row_fields_of_any_shape_stop_no_job(lab: Lab, field: str, value: str) -> None:
    lab.seed(lab.a, "active", score=1)
    lab.plain("HSET", lab.row(lab.a), field, value)
    if field == "group":
        lab.plain("HSET", lab.key("gactive"), value, 1)
    assert lab.send("state", lab.a) == b"active"
    assert lab.send("complete", lab.a, "1") == 1
    assert sorted(lab.data()) == [b"metrics:completed"]


def test_a_ring_of_foreign_names_is_cleaned(lab: Lab) -> None:
    lab.plain("RPUSH", lab.key("ring"), *FOREIGN)
    lab.seed(lab.a, group="g")
    assert lab.send("gclaim", LEASE) == served(lab, lab.a, "g")
    assert lab.items("ring") == []


def test_a_lane_that_is_missing_from_the_ring_is_brought_back_by_an_operator(lab: Lab) -> None:
    lab.seed(lab.a, group="g")
    for verb, words in (("gresume", ["g"]), ("glimit", ["g", "0"])):
        lab.plain("DEL", lab.key("ring"))
        assert lab.send(verb, *words) == 1
        assert lab.items("ring") == [b"g"]


def test_a_lane_that_has_no_business_in_the_ring_is_taken_out_by_an_operator(lab: Lab) -> None:
    lab.plain("RPUSH", lab.key("ring"), "g", "h", "g")
    for verb, words in (("gresume", ["g"]), ("glimit", ["h", "0"])):
        assert lab.send(verb, *words) == 1
    assert lab.items("ring") == []


def test_a_ring_that_lists_a_lane_twice_does_not_survive_obliterate(lab: Lab) -> None:
    lab.seed(lab.a, group="g")
    lab.plain("RPUSH", lab.key("ring"), "g")
    assert lab.send("pause") == 1
    assert lab.send("obliterate", "FORCE") == 0
    assert lab.data() == {}


def test_a_group_that_is_listed_without_a_backlog_does_not_hold_up_obliterate(lab: Lab) -> None:
    lab.seed(lab.a, group="g")
    lab.plain("SADD", lab.key("lanes"), "foreign")
    assert lab.send("pause") == 1
    assert lab.send("obliterate") == 0
    assert lab.data() == {}


def test_unknown_fields_and_keys_are_left_where_they_are(lab: Lab) -> None:
    lab.seed(lab.a, "active", score=1, fields={"foreign": "kept"})
    lab.plain("SET", lab.key("stream:x"), "kept")
    lab.send("reap")
    lab.send("claim", LEASE)
    lab.send("retry", lab.a, "2", 0, 5, "e")
    assert lab.fields_of(lab.a)["foreign"] == b"kept"
    assert lab.plain("GET", lab.key("stream:x")) == b"kept"
