"""What `INFO emq` shows an operator: calls, refusals, the fence, waiters, warnings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis
from tests.server.waiting import LEASE, lab_on, own_lab, waiters

from emq_native.conformance.host import CONFIG
from emq_native.conformance.lab import Lab
from emq_native.conformance.wire import Error
from emq_native.server import Server

MakeLab = Callable[..., Lab]
CLASSES = {"fence", "kind", "stale", "state", "lock", "wrongtype", "other"}
WRONGTYPE = "WRONGTYPE Operation against a key holding the wrong kind of value"
IMAGE = Path(__file__).parents[2] / "docker" / "valkey.conf"
GOOD = {**CONFIG, "hash-max-listpack-value": 256}


@pytest.fixture
def lab(make_lab: MakeLab) -> Lab:
    return make_lab("native", 3)


def numbers(lab: Lab, prefix: str) -> dict[str, int]:
    """The fields of INFO emq that begin so, by the rest of their names."""
    return {name[len(prefix) :]: int(value) for name, value in lab.info("emq").items() if name.startswith(prefix)}


def served(lab: Lab) -> list[str]:
    entries = lab.plain("TRA.CAPABILITIES")
    assert isinstance(entries, list)
    return [entry.decode().partition("/")[0] for entry in entries if isinstance(entry, bytes)]


@contextmanager
def refuses(lab: Lab, **expected: int) -> Iterator[None]:
    """Demand that inside so many refusals are counted, and no others."""
    before = numbers(lab, "emq_refused_")
    yield
    after = numbers(lab, "emq_refused_")
    assert {name: after[name] - before[name] for name in after if after[name] != before[name]} == expected


def arity(lab: Lab, verb: str) -> int:
    reply = lab.plain("COMMAND", "INFO", verb)
    assert isinstance(reply, list)
    [info] = reply
    assert isinstance(info, list)
    assert isinstance(info[1], int)
    return abs(info[1])


def test_every_command_has_a_count_of_its_own_that_one_call_raises_by_one(lab: Lab) -> None:
    before, verbs = numbers(lab, "emq_calls_"), served(lab)
    for verb in verbs:
        lab.control.call(verb, *([lab.q] * (arity(lab, verb) - 1)))

    after = numbers(lab, "emq_calls_")

    assert {verb.partition(".")[2] for verb in verbs} == set(after)
    expected = {name: 2 if name == "capabilities" else 1 for name in after}  # one to learn the verbs
    assert {name: after[name] - before[name] for name in after} == expected


def test_all_calls_are_the_sum_of_those_of_each_command(lab: Lab) -> None:
    info = lab.info("emq")
    assert int(info["emq_calls"]) == sum(numbers(lab, "emq_calls_").values()) > 0


def test_a_call_that_the_server_refuses_is_not_counted(lab: Lab) -> None:
    before = numbers(lab, "emq_calls_"), numbers(lab, "emq_refused_")
    assert isinstance(lab.control.call("EMQ.CLAIM", lab.q), Error)
    assert (numbers(lab, "emq_calls_"), numbers(lab, "emq_refused_")) == before


def test_refusals_are_counted_by_the_classes_of_the_contract(lab: Lab) -> None:
    assert set(numbers(lab, "emq_refused_")) == CLASSES


def test_a_refusal_for_the_fence_is_counted(lab: Lab) -> None:
    with lab.fence_as(None), refuses(lab, fence=1):
        assert isinstance(lab.send("pause"), Error)


REFUSED: dict[str, tuple[str, list[str | int]]] = {
    "lease": ("other", ["claim", 0]),
    "word": ("other", ["drain", "ALL"]),
    "tail": ("other", ["menqueue", "JOB00000000000", "x", "JOB00000000001"]),
    "kind": ("kind", ["peek", "USR00000000000"]),
    "shape": ("kind", ["peek", "JOB"]),
    "gone": ("stale", ["delay", "JOB00000000000", 1, "IN", 1]),
    "paused": ("state", ["obliterate"]),
}


@pytest.mark.parametrize("case", sorted(REFUSED))
def test_a_refusal_is_counted_once_and_in_its_class(lab: Lab, case: str) -> None:
    kind, (verb, *words) = REFUSED[case]
    with refuses(lab, **{kind: 1}):
        assert isinstance(lab.send(str(verb), *words), Error)


def test_a_key_of_another_kind_is_counted_as_wrongtype(lab: Lab) -> None:
    with lab.wrong_kind("pending"), refuses(lab, wrongtype=1):
        assert isinstance(lab.send("claim", LEASE), Error)


def test_a_job_that_may_not_be_removed_is_counted_as_locked(lab: Lab) -> None:
    lab.seed(lab.a, "active")
    with refuses(lab, lock=1):
        assert isinstance(lab.send("remove", lab.a), Error)


def test_a_refusal_in_a_transaction_and_in_a_script_is_counted_too(lab: Lab) -> None:
    with refuses(lab, other=2):
        assert isinstance(lab.in_multi("claim", 0), Error)
        assert isinstance(lab.in_lua("claim", 0), Error)


def test_what_is_carried_out_is_no_refusal(lab: Lab) -> None:
    with refuses(lab):
        assert lab.send("enqueue", lab.a, "payload") == 1
        assert lab.send("enqueue", lab.a, "payload") == 0
        assert lab.send("complete", lab.b, 1) == 0
        assert lab.send("extend", lab.b, 1, LEASE) == -1
        assert lab.send("next", LEASE, "COUNT", 1, "SETTLE", 1, "COMPLETE", lab.b, 1) != []


def crowd(lab: Lab) -> None:
    """a runs, b was taken by another meanwhile, c waits after a retry, d is gone."""
    lab.seed(lab.a, "active")
    lab.seed(lab.b, "active", attempts=2)
    lab.seed(lab.c, "schedule", attempts=1, score=9_000_000_000_000)


def test_each_ending_of_next_counts_as_its_own_command_would(lab: Lab) -> None:
    crowd(lab)
    endings: list[str | int] = ["COMPLETE", lab.a, 1, "COMPLETE", lab.b, 1, "RETRY", lab.c, 1, 0, 5, "late"]
    endings += ["COMPLETE", lab.d, 1, "DELAY", lab.d, 1, "IN", 5]
    with refuses(lab, stale=2, state=1):
        assert lab.send("next", LEASE, "SETTLE", 5, *endings) == [
            [b"completed", b"stale", b"inactive", b"gone", b"gone"],
            [],
            None,
        ]


def test_each_member_of_mcomplete_counts_as_its_own_command_would(lab: Lab) -> None:
    crowd(lab)
    with refuses(lab, stale=1, state=1):
        assert lab.send("mcomplete", lab.a, 1, lab.b, 1, lab.c, 1, lab.d, 1) == [1, -1, -1, 0]


def test_each_member_of_mextend_counts_as_its_own_command_would(lab: Lab) -> None:
    crowd(lab)
    with refuses(lab, stale=1, state=1):
        assert lab.send("mextend", LEASE, lab.a, 1, lab.b, 1, lab.c, 1, lab.d, 1) == [
            job.encode() for job in (lab.b, lab.c, lab.d)
        ]


def test_a_list_that_is_refused_as_a_whole_is_one_refusal(lab: Lab) -> None:
    crowd(lab)
    lab.seed(lab.d, "active", attempts="x")
    heads: dict[str, list[int]] = {"mcomplete": [], "mextend": [LEASE]}
    for verb, head in heads.items():
        with refuses(lab, state=1):
            assert isinstance(lab.send(verb, *head, lab.b, 1, lab.c, 1, lab.d, 1), Error), verb
    lab.send("remove", lab.d, "FORCE")


def test_the_fault_of_next_is_one_refusal_however_many_steps_fail(lab: Lab) -> None:
    with lab.wrong_kind("schedule"), lab.wrong_kind("ring"), refuses(lab, wrongtype=1):
        reply = lab.send("next", LEASE)
        assert isinstance(reply, list)
        assert reply == [[], [], WRONGTYPE.encode()]


def test_resetstat_clears_the_servers_counts_of_our_commands_and_leaves_ours(lab: Lab) -> None:
    lab.refused(Error("EMQSTATE not paused"), "obliterate")
    before = lab.info("emq")
    assert {"cmdstat_emq.obliterate", "errorstat_EMQSTATE"} <= {*lab.info("commandstats"), *lab.info("errorstats")}
    lab.plain("CONFIG", "RESETSTAT")
    assert "cmdstat_emq.obliterate" not in lab.info("commandstats")
    assert "errorstat_EMQSTATE" not in lab.info("errorstats")
    assert lab.info("emq") == before


def test_one_section_can_be_asked_for_alone(lab: Lab) -> None:
    assert set(lab.info("emq_refusals")) == {f"emq_refused_{name}" for name in CLASSES}
    assert set(lab.info("emq_warnings")) == {
        "emq_warnings",
        "emq_warning_eviction",
        "emq_warning_fence",
        "emq_warning_listpack",
    }


def test_info_looks_at_no_key(lab: Lab) -> None:
    before = lab.info("stats")
    lab.info("emq")
    after = lab.info("stats")
    for name in ("keyspace_hits", "keyspace_misses"):
        assert after[name] == before[name]


def fence(lab: Lab) -> tuple[str, str]:
    info = lab.info("emq")
    return info["emq_fence"], info["emq_warning_fence"]


def test_the_fence_is_shown_as_the_last_command_found_it() -> None:
    with Server(config=GOOD) as server, lab_on(server) as lab:
        assert fence(lab) == ("unknown", "0")
        lab.send("state", lab.a)
        assert fence(lab) == ("unknown", "0")
        lab.send("pause")
        assert fence(lab) == ("ok", "0")
        for value, expected in ((None, ("missing", "1")), ("echomq:4.0.0", ("foreign", "1"))):
            with lab.fence_as(value):
                assert fence(lab) == ("ok", "0")
                lab.send("resume")
                assert fence(lab) == expected
            lab.send("resume")
        lab.plain("DEL", lab.fence)
        lab.plain("RPUSH", lab.fence, "echomq:6.0.0")
        lab.send("version")
        assert fence(lab) == ("foreign", "1")
        assert lab.info("emq")["emq_warnings"] == "1"
        lab.plain("DEL", lab.fence)
        lab.send("version")
        assert fence(lab) == ("missing", "1")


def test_in_a_cluster_the_fence_is_shown_that_was_looked_at_last() -> None:
    with Server(config={**GOOD, "cluster-enabled": "yes"}) as server:
        server.own_slots()
        with lab_on(server) as lab:
            other = f"emq:{{{lab.new_queue()}}}"
            lab.plain("DEL", lab.fence)
            lab.send("pause")
            assert fence(lab) == ("missing", "1")
            lab.control.call("EMQ.VERSION")
            assert fence(lab) == ("missing", "1")
            lab.send("pause", queue=other)
            assert fence(lab) == ("ok", "0")


def test_who_waits_and_how_many_may_is_shown() -> None:
    with own_lab() as lab:
        assert lab.info("emq")["emq_max_waiters"] == "10000"
        lab.plain("CONFIG", "SET", "emq.max-waiters", 7)
        crowd = waiters(lab, 2)
        assert [lab.info("emq")[name] for name in ("emq_waiters", "emq_max_waiters")] == ["2", "7"]
        for waiter in crowd:
            waiter.wire.close()
        lab.until(lambda: lab.info("emq")["emq_waiters"] == "0", "they are gone")


def test_a_fence_that_is_lost_meanwhile_is_one_refusal_for_the_waiter_who_is_woken() -> None:
    with own_lab() as lab:
        [waiter] = waiters(lab, 1)
        with refuses(lab, fence=1), lab.fence_as(None):
            lab.seed(lab.a, "pending")
            assert isinstance(waiter.answer(), list)
        assert numbers(lab, "emq_calls_")["next"] == 1


def warned(lab: Lab) -> dict[str, int]:
    return {name: value for name, value in numbers(lab, "emq_warning_").items() if value}


@pytest.mark.parametrize(
    ("setting", "value", "expected"),
    [
        ("maxmemory-policy", "allkeys-lru", {"eviction": 1}),
        ("maxmemory-policy", "allkeys-random", {"eviction": 1}),
        ("maxmemory-policy", "volatile-ttl", {}),
        ("hash-max-listpack-value", "127", {"listpack": 1}),
        ("hash-max-listpack-value", "128", {}),
        ("hash-max-ziplist-value", "64", {"listpack": 1}),
    ],
)
def test_a_setting_that_endangers_jobs_or_wastes_memory_is_warned_of(
    setting: str, value: str, expected: dict[str, int]
) -> None:
    with Server(config={**GOOD, setting: value}) as server, lab_on(server) as lab:
        assert warned(lab) == expected
        assert lab.info("emq")["emq_warnings"] == str(len(expected))
        assert (f"<emq> {setting.replace('ziplist', 'listpack')} {value} " in server.log()) == bool(expected)
        lab.plain("CONFIG", "SET", "maxmemory-policy", "noeviction", "hash-max-listpack-value", 256)
        assert warned(lab) == {}
        lab.plain("CONFIG", "SET", setting, value)
        assert warned(lab) == expected


def test_the_configuration_of_the_image_is_not_warned_of() -> None:
    lines = re.findall(r"^(maxmemory-policy|hash-max-listpack-value) (\S+)$", IMAGE.read_text(), re.MULTILINE)
    assert len(lines) == 2
    with Server(config={**CONFIG, **dict(lines)}) as server, lab_on(server) as lab:
        assert warned(lab) == {}


def test_a_setting_that_the_server_refuses_changes_no_warning() -> None:
    with Server(config=GOOD) as server, lab_on(server) as lab:
        reply = lab.control.call("CONFIG", "SET", "maxmemory-policy", "allkeys-lru", "hash-max-listpack-value", "no")
        assert isinstance(reply, Error)
        assert warned(lab) == {}


def test_a_server_whose_config_command_is_renamed_is_served_without_warnings_of_its_settings() -> None:
    config = {**CONFIG, "maxmemory-policy": "allkeys-lru", "rename-command": 'CONFIG ""'}
    with Server(config=config) as server, lab_on(server) as lab:
        assert warned(lab) == {}
        assert lab.send("enqueue", lab.a, "payload") == 1


def test_a_crash_report_has_all_of_it() -> None:
    config = {**CONFIG, "crash-memcheck-enabled": "no"}  # a sanitizer would take it for a fault
    with Server(config=config) as server, server.client() as client:
        client.execute_command("EMQ.VERSION")
        with pytest.raises(redis.ConnectionError):
            client.execute_command("DEBUG", "PANIC")
        server.stop()
        report = server.log().partition("BUG REPORT START")[2]
    for line in ("emq_fence:missing", "emq_calls_version:1", "emq_refused_other:0", "emq_warning_fence:1"):
        assert f"\n{line}" in report
