"""No call does more than its bound: its LIMIT, COUNT or list, and the constants of the contract.

Case 22. What a call leaves for the next one is exactly what lay beyond the bound, and nothing is skipped.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.server.test_field_cases_lanes import crowd

from emq_native.conformance.lab import LEASE, Lab
from emq_native.conformance.wire import Error, Reply, Word

MEMBERS = SCAN = 10_000
DROP = ROUND = LIMIT = 1000


@pytest.fixture
def protocol() -> int:
    """Bounds know nothing of protocol versions."""
    return 2


def write(lab: Lab, commands: Sequence[Sequence[Word]]) -> None:
    """Many plain commands in a few round trips."""
    for start in range(0, len(commands), 2000):
        assert not any(isinstance(reply, Error) for reply in lab.control.pipeline(commands[start : start + 2000]))


def list_without_rows(lab: Lab, place: str, count: int, *, score: int = 0) -> list[str]:
    """Ids in a place whose rows a foreign client has deleted."""
    ids = lab.ids(count)
    write(lab, [["ZADD", lab.key(place), score, job] for job in ids])
    return ids


def length(lab: Lab, place: str) -> int:
    reply = lab.plain("ZCARD", lab.key(place))
    assert isinstance(reply, int)
    return reply


def jobs_of(reply: Reply) -> list[Reply]:
    """The ids in the reply of any claim."""
    assert isinstance(reply, list)
    if reply and isinstance(reply[0], bytes):
        reply = [reply]
    return [each[0] for each in reply if isinstance(each, list)]


# LIMIT

MOVERS: dict[str, tuple[str, list[Word], str | None]] = {
    "promote": ("schedule", [], None),
    "reap": ("active", [], None),
    "greap": ("active", ["g"], "g"),
    "drain": ("pending", [], None),
    "drain scheduled": ("schedule", ["SCHEDULED"], None),
    "gdrain": ("g:g:pending", ["g"], "g"),
    "obliterate": ("dead", [], None),
    "obliterate lanes": ("g:g:pending", [], "g"),
}
"""Verb: where it takes its jobs from, its words, and the group of the jobs."""


@pytest.mark.parametrize("mover", MOVERS)
@pytest.mark.parametrize("limit", [None, 7])
def test_a_mover_takes_no_more_than_its_limit(lab: Lab, mover: str, limit: int | None) -> None:
    place, words, group = MOVERS[mover]
    bound = limit or LIMIT
    if place == "dead":
        write(lab, [command for job in lab.ids(bound + 3) for command in _dead(lab, job)])
    else:
        crowd(lab, "pending" if place.endswith("pending") else place, bound + 3, group=group)
    verb = mover.split()[0]
    if verb == "obliterate":
        lab.pause()
    chosen: list[Word] = ["LIMIT", limit] if limit else []
    reply = lab.send(verb, *words, *chosen)
    assert reply == (1 if verb == "obliterate" else bound)
    assert length(lab, place) == 3
    assert lab.send(verb, *words) == (0 if verb == "obliterate" else 3)
    assert length(lab, place) == 0


def _dead(lab: Lab, job: str) -> list[list[Word]]:
    return [
        ["HSET", lab.row(job), "state", "dead", "attempts", 1, "payload", "p"],
        ["ZADD", lab.key("dead"), 0, job],
    ]


@pytest.mark.parametrize("mover", [mover for mover in MOVERS if mover != "greap"])
def test_entries_without_a_row_use_up_the_limit_too_and_are_removed(lab: Lab, mover: str) -> None:
    place, words, group = MOVERS[mover]
    verb = mover.split()[0]
    stale = list_without_rows(lab, place, 10)
    if group:
        lab.offer(group)
    if verb == "obliterate":
        lab.pause()
    assert lab.send(verb, *words, "LIMIT", 6) == int(verb == "obliterate")
    assert sorted(lab.scores(place)) == stale[6:]
    assert lab.send(verb, *words, "LIMIT", 6) == 0
    assert length(lab, place) == 0


def test_the_largest_limit_is_kept_too(lab: Lab) -> None:
    crowd(lab, "active", 10_003)
    assert lab.send("reap", "LIMIT", 10_000) == 10_000
    assert length(lab, "active") == 3


def test_drain_shares_its_limit_between_what_waits_and_what_is_scheduled(lab: Lab) -> None:
    crowd(lab, "pending", 4)
    crowd(lab, "schedule", 4)
    assert lab.send("drain", "SCHEDULED", "LIMIT", 6) == 6
    assert (length(lab, "pending"), length(lab, "schedule")) == (0, 2)


def test_obliterate_shares_its_limit_between_all_places_and_repeats(lab: Lab) -> None:
    for number, place in enumerate(("active", "pending", "schedule", "dead", "held")):
        for _ in range(number + 1):
            lab.seed(lab.ids(1)[0], place)
    for group in ("g", "h"):
        crowd(lab, "pending", 3, group=group)
    for name in "abc":
        assert lab.send("repeat", name, "EVERY", 1000, "t") == 1
    lab.pause()

    def things() -> int:
        places = ("active", "pending", "schedule", "dead", "held", "g:g:pending", "g:h:pending", "repeat")
        return sum(length(lab, place) for place in places)

    left = things()
    assert left == 24
    while left > 5:
        assert lab.send("obliterate", "FORCE", "LIMIT", 5) == 1
        assert things() == left - 5
        left -= 5
    assert lab.send("obliterate", "FORCE", "LIMIT", 5) == 0
    assert lab.data() == {}


@pytest.mark.parametrize("limit", [3, 30])
def test_obliterate_takes_lanes_out_of_the_ring_and_keeps_the_order_of_the_others(lab: Lab, limit: int) -> None:
    groups = [f"g{number * 7 % 40:02d}" for number in range(40)]
    for group, job in zip(groups, lab.ids(40), strict=True):
        assert lab.send("genqueue", group, job, "p") == 1
    lab.pause()
    assert lab.send("obliterate", "LIMIT", limit) == 1
    left = sorted(groups)[limit:]
    assert lab.plain("LRANGE", lab.key("ring"), 0, -1) == [group.encode() for group in groups if group in left]
    assert lab.send("obliterate") == 0
    assert lab.data() == {}


def test_obliterate_does_not_search_the_ring_for_each_of_many_lanes(lab: Lab) -> None:
    for group, job in zip(range(40), lab.ids(40), strict=True):
        assert lab.send("genqueue", f"g{group}", job, "p") == 1
    lab.pause()
    lab.plain("CONFIG", "RESETSTAT")
    assert lab.send("obliterate", "LIMIT", 30) == 1
    statistics = lab.plain("INFO", "commandstats")
    assert isinstance(statistics, bytes)
    assert b"cmdstat_lrem" not in statistics


# DROP: entries without a row that one serving step passes

FLAT: dict[str, list[Word]] = {"claim": [LEASE], "mclaim": [LEASE, 10], "next": [LEASE]}
LANES: dict[str, list[Word]] = {"gclaim": [LEASE], "gmclaim": [LEASE, 10], "gwclaim": [LEASE]}


def claim(lab: Lab, verb: str, words: Sequence[Word]) -> list[Reply]:
    reply = lab.send(verb, *words)
    return jobs_of(reply[1] if verb == "next" and isinstance(reply, list) else reply)


@pytest.mark.parametrize("verb", [*FLAT, *LANES])
def test_a_claim_passes_so_many_entries_without_a_row_and_no_more(lab: Lab, verb: str) -> None:
    if not lab.serves(verb):
        return
    flat = verb in FLAT
    words = (FLAT if flat else LANES)[verb]
    place = "pending" if flat else "g:g:pending"

    def lay(stale: int) -> str:
        list_without_rows(lab, place, stale)
        return lab.seed(lab.ids(1)[0], group=None if flat else "g")

    job = lay(DROP - 1)
    assert claim(lab, verb, words) == [job.encode()]
    assert length(lab, place) == 0
    job = lay(DROP + 5)
    assert claim(lab, verb, words) == []
    assert length(lab, place) == 6
    assert claim(lab, verb, words) == [job.encode()]
    assert length(lab, place) == 0


@pytest.mark.parametrize("verb", ["mclaim", "gmclaim"])
def test_a_claim_of_many_answers_what_it_met_before_the_bound(lab: Lab, verb: str) -> None:
    group, place = (None, "pending") if verb == "mclaim" else ("g", "g:g:pending")
    first = crowd(lab, "pending", 3, group=group)
    list_without_rows(lab, place, DROP)
    last = crowd(lab, "pending", 3, group=group)
    assert claim(lab, verb, [LEASE, 10]) == [job.encode() for job in first]
    assert claim(lab, verb, [LEASE, 10]) == [job.encode() for job in last]


# ROUND: lanes that one claim passes


@pytest.mark.parametrize("verb", [*LANES, "next"])
@pytest.mark.parametrize("obstacle", ["stale", "parked"])
def test_a_claim_passes_so_many_lanes_and_no_more(lab: Lab, verb: str, obstacle: str) -> None:
    """`parked`: lanes that a foreign writer put into the ring."""
    if not lab.serves(verb):
        return
    groups = [f"p{number:04}" for number in range(ROUND)]
    ids = lab.ids(ROUND)
    for group, job in zip(groups, ids, strict=True):
        commands: list[list[Word]] = [
            ["ZADD", lab.lane(group), 0, job],
            ["SADD", lab.key("lanes"), group],
            ["RPUSH", lab.key("ring"), group],
        ]
        if obstacle == "parked":
            commands.append(["HSET", lab.row(job), "state", "pending", "attempts", 0, "payload", "p", "group", group])
            commands.append(["SADD", lab.key("paused"), group])
        write(lab, commands)
    lab.seed(lab.d, group="good")
    words = LANES.get(verb, [LEASE, "FROM", "LANES"])
    assert claim(lab, verb, words) == []
    assert lab.items("ring") == [b"good"]
    assert claim(lab, verb, words) == [lab.d.encode()]


# SCAN: leases that one GREAP looks at


def test_greap_looks_at_so_many_leases_and_no_more(lab: Lab) -> None:
    others = crowd(lab, "active", SCAN, group="other", score=1)
    lab.seed(lab.d, "active", group="g", score=2)
    assert lab.send("greap", "g") == 0
    assert lab.send("complete", others[0], "1") == 1
    assert lab.send("greap", "g") == 1
    assert lab.where(lab.d) == ["g:g:pending"]


# Lists, counts, replies


@pytest.mark.parametrize(("verb", "head"), [("menqueue", []), ("mcomplete", []), ("mextend", [LEASE])])
def test_a_list_has_no_more_members_than_the_bound(lab: Lab, verb: str, head: list[Word]) -> None:
    members: list[Word] = [word for job in lab.ids(MEMBERS) for word in (job, "1")]
    reply = lab.send(verb, *head, *members)
    assert isinstance(reply, list)
    assert len(reply) == MEMBERS
    lab.wipe(lab.name)
    lab._begin()
    lab.refused("ERR at most 10000 members in one call", verb, *head, *members, lab.a, "1")


def test_a_weight_that_a_foreign_writer_set_is_bounded_too(lab: Lab) -> None:
    crowd(lab, "pending", MEMBERS + 5, group="g")
    lab.plain("HSET", lab.key("gweight"), "g", 20_000)
    assert len(claim(lab, "gwclaim", [LEASE])) == MEMBERS
    assert length(lab, "g:g:pending") == 5


def test_gcounts_tells_of_so_many_groups_and_no_more(lab: Lab) -> None:
    groups = [f"g{number:05}" for number in range(MEMBERS + 5)]
    for group in reversed(groups):
        lab.control.send("HSET", lab.key("gactive"), group, 1)
    assert [lab.control.read() for _ in groups] == [1] * len(groups)
    reply = lab.send("gcounts")
    assert reply == [[group.encode(), 0, 1] for group in groups[:MEMBERS]]
    lab.plain("DEL", lab.key("gactive"))


def test_next_promotes_and_reaps_so_many_and_no_more(lab: Lab) -> None:
    if not lab.serves("next"):
        return
    crowd(lab, "schedule", 250)
    crowd(lab, "active", 250)
    assert len(claim(lab, "next", [LEASE])) == 1
    assert (length(lab, "schedule"), length(lab, "active")) == (150, 151)
    assert len(claim(lab, "next", [LEASE, "COUNT", 20, "PROMOTE", 7, "REAP", 0])) == 20
    assert (length(lab, "schedule"), length(lab, "active")) == (143, 171)


@pytest.mark.parametrize("text", [b"", b"a", b'"', b"\\", b"\n", b"\0", b"\x7f", b"\xff", b'a"\\\n\x1f\x20'])
@pytest.mark.parametrize("times", [1, 1000, 100_001])
def test_the_event_of_a_progress_has_room_for_every_escape(lab: Lab, text: bytes, times: int) -> None:
    listener = lab.connect(2)
    listener.call("SUBSCRIBE", lab.key("events"))
    job = lab.seed(lab.a)
    assert lab.send("progress", job, text * times) == 1

    shown = b"".join(
        b"\\" + byte if byte in (b'"', b"\\") else b"\\u%04x" % ord(byte) if byte < b" " else byte
        for byte in (text[at : at + 1] for at in range(len(text)))
    )
    event = b'{"event":"progress","job":"%s","progress":"%s"}' % (job.encode(), shown * times)
    assert listener.read() == [b"message", lab.key("events").encode(), event]
