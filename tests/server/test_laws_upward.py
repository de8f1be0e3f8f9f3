"""Ends of children travel upward in the same step: rows of flows, written by plain commands, under verbs of jobs."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from emq_native.conformance.lab import LEASE, WRONGTYPE, Lab
from emq_native.conformance.wire import Word

UP = 8


@pytest.fixture
def protocol() -> int:
    """Flows know nothing of protocol versions."""
    return 2


def parent(lab: Lab, children: int = 2, *, group: str | None = None, of: str | None = None, policy: str = "fp") -> str:
    """A held parent, itself perhaps a child."""
    fields: dict[str, Word] = {} if of is None else {"parent": of, "parent_policy": policy}
    job = lab.seed(lab.ids(1)[0], "held", children=children, fields=fields)
    if group is not None:
        lab.plain("HSET", lab.row(job), "group", group)
    return job


def child(lab: Lab, of: str, policy: str | None = "fp", place: str = "active", **more: Word) -> str:
    fields: dict[str, Word] = {"parent": of, **more}
    if policy is not None:
        fields["parent_policy"] = policy
    return lab.seed(lab.ids(1)[0], place, score=1, fields=fields)


def noted(lab: Lab, job: str) -> dict[str, dict[str, bytes]]:
    """What a parent holds of its children, by kind."""
    kinds = {kind: lab.record(f"job:{job}:{kind}") for kind in ("processed", "failed", "unsuccessful")}
    return {kind: content for kind, content in kinds.items() if content}


def open_children(lab: Lab, job: str) -> bytes | None:
    reply = lab.plain("GET", lab.row(job, "dependencies"))
    assert reply is None or isinstance(reply, bytes)
    return reply


def complete(lab: Lab, job: str, *words: Word) -> None:
    assert lab.send("complete", job, "1", *words) == 1


def test_a_completion_is_noted_and_the_last_one_releases_the_parent(lab: Lab) -> None:
    up = parent(lab)
    one, two = child(lab, up), child(lab, up)
    complete(lab, one)
    assert (noted(lab, up), open_children(lab, up), lab.where(up)) == (
        {"processed": {one: one.encode()}},
        b"1",
        ["held"],
    )
    complete(lab, two, "RESULT", b"\0result")
    assert noted(lab, up) == {"processed": {one: one.encode(), two: b"\0result"}}
    assert (open_children(lab, up), lab.where(up)) == (b"0", ["pending"])
    row = {"state": b"pending", "attempts": b"0", "payload": b"payload"}
    assert lab.fields_of(up) == row
    assert lab.send("claim", LEASE) == [up.encode(), b"payload", 1]
    assert lab.settled_keys(one) == []


def test_an_empty_result_is_a_result(lab: Lab) -> None:
    up = parent(lab, 1)
    one = child(lab, up)
    complete(lab, one, "RESULT", "")
    assert noted(lab, up) == {"processed": {one: b""}}


def test_a_released_parent_of_a_group_enters_its_lane(lab: Lab) -> None:
    up = parent(lab, 1, group="g")
    complete(lab, child(lab, up))
    assert lab.where(up) == ["g:g:pending"]
    assert lab.items("ring") == [b"g"]
    assert lab.items("wake") == [b"1"]
    assert lab.send("gclaim", LEASE) == [up.encode(), b"payload", 1, b"g"]


def test_a_reaped_child_completes_for_its_parent(lab: Lab) -> None:
    up = parent(lab, 1)
    one = child(lab, up)
    assert lab.send("reap") == 1
    assert (lab.where(one), open_children(lab, up)) == (["pending"], b"1")
    complete(lab, one)
    assert (open_children(lab, up), lab.where(up)) == (b"0", ["pending"])


def test_what_is_no_end_tells_the_parent_nothing(lab: Lab) -> None:
    up = parent(lab, 3)
    jobs = [child(lab, up) for _ in range(3)]
    lab.send("retry", jobs[0], "1", 0, 3, "e")
    lab.send("delay", jobs[1], "1", "IN", 0)
    lab.send("reap", "MAX", 3)
    assert (noted(lab, up), open_children(lab, up), lab.where(up)) == ({}, b"3", ["held"])


End = Callable[[Lab, str], object]

DEATHS: dict[str, tuple[End, bytes]] = {
    "retry": (lambda lab, job: lab.send("retry", job, "1", 0, 1, "boom"), b"boom"),
    "reap": (lambda lab, _: lab.send("reap", "MAX", 1), b"lease expired"),
}
REMOVALS: dict[str, tuple[str, End]] = {
    "remove": ("dead", lambda lab, job: lab.send("remove", job)),
    "remove by force": ("active", lambda lab, job: lab.send("remove", job, "FORCE")),
    "drain": ("pending", lambda lab, _: lab.send("drain")),
    "drain of scheduled": ("schedule", lambda lab, _: lab.send("drain", "SCHEDULED")),
}


@pytest.mark.parametrize("policy", ["fp", None, "other"])
@pytest.mark.parametrize("death", DEATHS)
def test_the_death_of_a_child_buries_its_parent(lab: Lab, death: str, policy: str | None) -> None:
    """case 39"""
    up = parent(lab)
    one, two = child(lab, up, policy), child(lab, up, place="pending")
    end, error = DEATHS[death]
    assert end(lab, one) in (b"dead", 1)
    assert lab.where(one) == lab.where(up) == ["dead"]
    assert noted(lab, up) == {"failed": {one: error}}
    assert lab.fields_of(one)["last_error"] == error
    assert lab.fields_of(up)["last_error"] == f"child failed: {one}".encode()
    assert lab.fields_of(up)["state"] == b"dead"
    assert lab.record("metrics:failed") == {"count": b"2"}
    assert open_children(lab, up) == b"2"
    assert lab.send("claim", LEASE) == [two.encode(), b"payload", 1]
    complete(lab, two)
    assert (lab.where(up), open_children(lab, up)) == (["dead"], b"1")
    lab.held_with.pop(up)


@pytest.mark.parametrize("death", DEATHS)
def test_an_ignored_death_counts_and_releases(lab: Lab, death: str) -> None:
    """case 39"""
    up = parent(lab, 1)
    one = child(lab, up, "id")
    end, error = DEATHS[death]
    end(lab, one)
    assert (lab.where(one), lab.where(up)) == (["dead"], ["pending"])
    assert (noted(lab, up), open_children(lab, up)) == ({"unsuccessful": {one: error}}, b"0")
    assert lab.record("metrics:failed") == {"count": b"1"}


@pytest.mark.parametrize("policy", ["fp", "id"])
@pytest.mark.parametrize("removal", REMOVALS)
def test_a_removed_child_counts_as_a_failure(lab: Lab, removal: str, policy: str) -> None:
    """case 39"""
    place, end = REMOVALS[removal]
    up = parent(lab, 1)
    one = child(lab, up, policy, place)
    assert end(lab, one) == 1
    assert lab.settled_keys(one) == []
    assert lab.where(up) == (["dead"] if policy == "fp" else ["pending"])
    assert noted(lab, up) == {"failed" if policy == "fp" else "unsuccessful": {one: b"removed"}}
    if policy == "fp":
        lab.held_with.pop(up)


def test_a_drained_or_obliterated_lane_tells_parents(lab: Lab) -> None:
    """case 39"""
    up = parent(lab, 1)
    one = lab.seed(lab.a, group="g", fields={"parent": up, "parent_policy": "id"})
    assert lab.send("gdrain", "g") == 1
    assert (lab.where(up), noted(lab, up)) == (["pending"], {"unsuccessful": {one: b"removed"}})
    lab.send("claim", LEASE)
    complete(lab, up)
    up = parent(lab, 2)
    child(lab, up, "id", "pending")
    child(lab, up, "fp", "dead")
    lab.pause()
    while lab.send("obliterate", "LIMIT", 1):
        pass
    assert sorted(lab.data()) == ([b"version"] if lab.cluster else [])


def test_a_child_counts_once_whatever_happens_to_it_later(lab: Lab) -> None:
    up = parent(lab, 2)
    one, two = child(lab, up, "id"), child(lab, up)
    lab.send("retry", one, "1", 0, 1, "boom")
    assert lab.send("reprocess", one) == 1
    assert lab.send("claim", LEASE) == [one.encode(), b"payload", 2]
    assert lab.send("complete", one, "2") == 1
    assert (noted(lab, up), open_children(lab, up)) == ({"unsuccessful": {one: b"boom"}}, b"1")
    complete(lab, two)
    assert lab.where(up) == ["pending"]


def test_a_child_whose_parent_is_gone_ends_alone(lab: Lab) -> None:
    up = lab.ids(1)[0]
    one, two = child(lab, up), child(lab, up)
    complete(lab, one)
    assert lab.send("retry", two, "1", 0, 1, "boom") == b"dead"
    assert (lab.settled_keys(up), lab.where(up)) == ([], [])


@pytest.mark.parametrize("place", ["pending", "active", "dead", "schedule"])
def test_a_parent_that_is_not_held_is_told_and_not_moved(lab: Lab, place: str) -> None:
    up = lab.seed(lab.d, place, score=lab.now() + LEASE)
    lab.plain("SET", lab.row(up, "dependencies"), 1)
    one, two, three = child(lab, up), child(lab, up, "id"), child(lab, up)
    complete(lab, one)
    lab.send("retry", two, "1", 0, 1, "e")
    lab.send("retry", three, "1", 0, 1, "f")
    assert lab.where(up) == [place]
    kinds = {"processed": {one: one.encode()}, "unsuccessful": {two: b"e"}, "failed": {three: b"f"}}
    assert (noted(lab, up), open_children(lab, up)) == (kinds, b"0")


@pytest.mark.parametrize("death", DEATHS)
def test_a_death_climbs_a_chain_in_one_call(lab: Lab, death: str) -> None:
    top = parent(lab, 1)
    middle = parent(lab, 1, of=top)
    low = parent(lab, 1, of=middle)
    leaf = child(lab, low)
    DEATHS[death][0](lab, leaf)
    chain = [leaf, low, middle, top]
    assert [lab.where(job) for job in chain] == [["dead"]] * 4
    assert lab.record("metrics:failed") == {"count": b"4"}
    for below, above in itertools.pairwise(chain):
        assert lab.fields_of(above)["last_error"] == f"child failed: {below}".encode()
    assert noted(lab, top) == {"failed": {middle: f"child failed: {low}".encode()}}
    lab.held_with.clear()


def test_a_chain_with_an_ignored_failure_stops_climbing_there(lab: Lab) -> None:
    top = parent(lab, 1)
    middle = parent(lab, 1, of=top, policy="id")
    leaf = child(lab, middle)
    lab.send("retry", leaf, "1", 0, 1, "e")
    assert (lab.where(middle), lab.where(top)) == (["dead"], ["pending"])
    assert noted(lab, top) == {"unsuccessful": {middle: f"child failed: {leaf}".encode()}}
    lab.held_with.pop(middle)


@pytest.mark.parametrize("death", ["retry", "reap", "remove", "drain"])
def test_a_death_climbs_at_most_eight_levels_and_goes_on_through_the_outbox(lab: Lab, death: str) -> None:
    chain = [parent(lab, 1)]
    for _ in range(11):
        chain.append(parent(lab, 1, of=chain[-1]))
    place = {"remove": "dead", "drain": "pending"}.get(death, "active")
    leaf = child(lab, chain[-1], place=place)
    ends: dict[str, End] = {
        **{name: end for name, (end, _) in DEATHS.items()},
        **{n: e for n, (_, e) in REMOVALS.items()},
    }
    ends[death](lab, leaf)
    upward = list(reversed(chain))
    assert [lab.where(job) for job in upward] == [["dead"]] * UP + [["held"]] * (12 - UP)
    entry = [b"", b"fail", lab.name, upward[UP], upward[UP - 1], b"fp", f"child failed: {upward[UP - 2]}"]
    assert lab.items("flow:outbox") == [
        b"\0".join(part if isinstance(part, bytes) else part.encode() for part in entry)
    ]
    assert noted(lab, upward[UP]) == {}
    for job in upward[:UP]:
        lab.held_with.pop(job)


def entry(*parts: str | bytes) -> bytes:
    return b"\0".join(part if isinstance(part, bytes) else part.encode() for part in parts)


def test_ends_for_a_parent_in_another_queue_go_to_the_outbox(lab: Lab) -> None:
    up = lab.d
    jobs = [child(lab, up, policy, parent_queue="other.q") for policy in ("fp", "fp", "id", None)]
    jobs.append(child(lab, up, "id", "pending", parent_queue="other.q"))
    complete(lab, jobs[0])
    complete(lab, jobs[1], "RESULT", b"a\0b")
    lab.send("retry", jobs[2], "1", 0, 1, b"c\0d")
    lab.send("reap", "MAX", 1)
    lab.send("remove", jobs[4])
    assert lab.items("flow:outbox") == [
        entry("other.q", up, jobs[0], jobs[0]),
        entry("other.q", up, jobs[1], b"a\0b"),
        entry("", "fail", "other.q", up, jobs[2], "id", b"c\0d"),
        entry("", "fail", "other.q", up, jobs[3], "fp", "lease expired"),
        entry("", "fail", "other.q", up, jobs[4], "id", "removed"),
    ]
    assert lab.settled_keys(up) == []


def test_many_ends_of_one_batch_are_all_counted(lab: Lab) -> None:
    up = parent(lab, 4)
    jobs = [child(lab, up) for _ in range(4)]
    words = [word for job in jobs for word in (job, "1")]
    assert lab.send("mcomplete", *words) == [1] * 4
    assert (open_children(lab, up), lab.where(up), len(noted(lab, up)["processed"])) == (b"0", ["pending"], 4)


def test_a_batch_may_end_a_child_and_its_released_parent_is_not_in_it(lab: Lab) -> None:
    up = parent(lab, 1)
    one = child(lab, up)
    assert lab.send("mcomplete", one, "1", up, "0") == [1, -1]
    assert lab.where(up) == ["pending"]


def test_a_sweep_that_buries_two_children_of_one_parent_buries_it_once(lab: Lab) -> None:
    up = parent(lab, 2)
    one, two = child(lab, up), child(lab, up)
    assert lab.send("reap", "MAX", 1) == 2
    assert lab.where(up) == ["dead"]
    assert noted(lab, up) == {"failed": {one: b"lease expired", two: b"lease expired"}}
    assert lab.record("metrics:failed") == {"count": b"3"}
    lab.held_with.pop(up)


def test_a_drain_that_deletes_a_child_and_releases_its_parent_does_not_take_the_parent(lab: Lab) -> None:
    up = parent(lab, 1)
    child(lab, up, "id", "pending")
    assert lab.send("drain") == 1
    assert lab.where(up) == ["pending"]
    assert lab.send("drain") == 1


@pytest.mark.parametrize("count", ["x", "", "-5", "99999999999999999"])
def test_an_unsound_number_of_open_children_counts_as_none(lab: Lab, count: str) -> None:
    up = parent(lab, 1)
    lab.plain("SET", lab.row(up, "dependencies"), count)
    complete(lab, child(lab, up))
    assert (open_children(lab, up), lab.where(up)) == (b"0", ["pending"])


def test_a_parent_that_is_its_own_grandparent_ends_the_climb(lab: Lab) -> None:
    """case 40"""
    one = lab.seed(lab.a, "held", fields={"parent": lab.b})
    two = lab.seed(lab.b, "held", fields={"parent": one})
    leaf = child(lab, one)
    assert lab.send("retry", leaf, "1", 0, 1, "e") == b"dead"
    assert lab.where(one) == lab.where(two) == ["dead"]
    lab.held_with.clear()


def test_a_row_of_another_kind_up_the_chain_refuses_the_end(lab: Lab) -> None:
    top, low = lab.ids(2)
    lab.seed(low, "held", fields={"parent": top, "parent_policy": "fp"})
    leaf = child(lab, low)
    with lab.wrong_kind(f"job:{top}"):
        lab.refused(WRONGTYPE, "retry", leaf, "1", 0, 1, "e")
        assert lab.send("retry", leaf, "1", 0, 3, "e") == b"scheduled"
        ignored = child(lab, low, "id")
        assert lab.send("retry", ignored, "1", 0, 1, "e") == b"dead"
    assert (lab.where(low), noted(lab, low)) == (["pending"], {"unsuccessful": {ignored: b"e"}})
