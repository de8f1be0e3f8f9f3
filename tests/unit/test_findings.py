"""What the doctor makes of facts that no server here can be brought to: clocks, memory, versions, lags."""

from __future__ import annotations

from dataclasses import replace

import pytest

from emq_native import findings
from emq_native.findings import Facts, Finding, Rights
from emq_native.probe import Probe
from emq_native.provision import Fence

CLI = "valkey-cli -u redis://h"
HEALTHY = Facts(cli=CLI, url="redis://h", probe=Probe("h:6379", server="valkey", server_version="9.1.2"))
MIB = 1 << 20


def only(check: str, facts: Facts) -> Finding:
    (found,) = findings.CHECKS[check](facts)
    return found


@pytest.mark.parametrize(
    ("offset", "uncertainty", "verdict"),
    [
        (0.0, 0.0, "ok"),
        (0.9, 0.0, "ok"),
        (-1.2, 0.01, "warn"),
        (1.2, 0.01, "warn"),
        (1.2, 0.5, "ok"),  # a slow answer may be the whole of it
        (-61.0, 0.01, "fail"),
        (3600.0, 0.01, "fail"),
    ],
)
def test_a_clock_is_wrong_by_what_the_round_trip_does_not_explain(
    offset: float, uncertainty: float, verdict: str
) -> None:
    found = only("clock", replace(HEALTHY, offset=offset, uncertainty=uncertainty))
    assert found.verdict == verdict
    assert ("ahead of" if offset > 0 else "behind") in found.text
    assert (found.fix is None) == (verdict == "ok")


def test_a_clock_that_may_not_be_asked_is_open() -> None:
    found = only("clock", replace(HEALTHY, open={"clock": "NOPERM no"}))
    assert (found.verdict, found.text) == ("open", "not told: NOPERM no")


@pytest.mark.parametrize(
    ("name", "version", "verdict"),
    [
        ("valkey", "8.0.1", "ok"),
        ("valkey", "9.1.2", "ok"),
        ("valkey", "7.2.5", "warn"),
        ("valkey", "10.0.0", "warn"),
        ("redis", "8.0.0", "warn"),
        (None, None, "open"),
    ],
)
def test_versions_that_are_supported(name: str | None, version: str | None, verdict: str) -> None:
    found = only("server", replace(HEALTHY, probe=Probe("h", server=name, server_version=version)))
    assert found.verdict == verdict


@pytest.mark.parametrize(
    ("info", "config", "verdict", "words"),
    [
        ({"aof_enabled": "1"}, {"appendfsync": "always"}, "ok", "nothing that was answered is lost"),
        ({"aof_enabled": "1"}, {"appendfsync": "everysec"}, "ok", "up to 1 s"),
        ({"aof_enabled": "1"}, {"appendfsync": "no"}, "warn", "30 s"),
        ({"aof_enabled": "1"}, {}, "open", "not told"),
        ({"aof_enabled": "0"}, {"save": "3600 1 300 100"}, "warn", "1 changes in 3600 s, 100 changes in 300 s"),
        ({"aof_enabled": "0"}, {"save": ""}, "warn", "every job is lost"),
        ({}, {"appendonly": "yes", "appendfsync": "always"}, "ok", "nothing that was answered is lost"),
        ({}, {}, "open", "not told"),
    ],
)
def test_the_loss_window_is_told_in_words(
    info: dict[str, str], config: dict[str, str], verdict: str, words: str
) -> None:
    found = only("persistence", replace(HEALTHY, info=info, config=config))
    assert found.verdict == verdict
    assert words in found.text


@pytest.mark.parametrize(
    ("info", "config", "verdicts"),
    [
        ({}, {}, ["ok"]),
        ({"aof_last_write_status": "err"}, {}, ["fail"]),
        ({"aof_last_bgrewrite_status": "err"}, {}, ["warn"]),
        ({"rdb_last_bgsave_status": "err"}, {"stop-writes-on-bgsave-error": "yes", "save": "60 1"}, ["fail"]),
        ({"rdb_last_bgsave_status": "err"}, {"stop-writes-on-bgsave-error": "no", "save": "60 1"}, ["warn"]),
        ({"rdb_last_bgsave_status": "err"}, {"stop-writes-on-bgsave-error": "yes", "save": ""}, ["warn"]),
        ({"rdb_last_bgsave_status": "err", "aof_last_write_status": "err"}, {}, ["fail", "fail"]),
    ],
)
def test_saves_that_failed(info: dict[str, str], config: dict[str, str], verdicts: list[str]) -> None:
    facts = replace(HEALTHY, info={"rdb_last_bgsave_status": "ok"} | info, config=config)
    assert [found.verdict for found in findings.saves(facts)] == verdicts


@pytest.mark.parametrize(
    ("used", "limit", "machine", "verdict"),
    [
        (10, 100, 1000, "ok"),
        (80, 100, 1000, "warn"),
        (100, 100, 1000, "fail"),
        (10, 0, 1000, "ok"),
        (900, 0, 1000, "warn"),
        (10, None, 1000, "open"),
    ],
)
def test_how_much_memory_is_left(used: int, limit: int | None, machine: int, verdict: str) -> None:
    info = {"used_memory": str(used * MIB), "total_system_memory": str(machine * MIB)}
    probe = Probe("h", maxmemory=None if limit is None else limit * MIB)
    found = only("memory", replace(HEALTHY, probe=probe, info=info))
    assert found.verdict == verdict
    assert ("CONFIG SET maxmemory" in (found.fix or "")) == (verdict in ("warn", "fail"))


REPLICA = "ip=10.0.0.2,port=6379,state={},offset=1,lag={}"


@pytest.mark.parametrize(
    ("replicas", "needed", "verdict", "words"),
    [
        ([], "0", "ok", "no replica"),
        ([], "1", "fail", "NOREPLICAS"),
        ([("online", 0)], "0", "ok", "WAIT 1"),
        ([("online", 0)], "1", "ok", "1 needed"),
        ([("online", 60)], "1", "fail", "NOREPLICAS"),
        ([("online", 0), ("online", 60)], "0", "warn", "not more than 10 s behind"),
        ([("online", 0), ("wait_bgsave", 0)], "0", "warn", "1 of 2 replicas online"),
    ],
)
def test_replicas_and_what_writes_need(replicas: list[tuple[str, int]], needed: str, verdict: str, words: str) -> None:
    info = {"role": "master", "slave_expires": "1"}
    info |= {f"slave{number}": REPLICA.format(*each) for number, each in enumerate(replicas)}
    config = {"min-replicas-to-write": needed, "min-replicas-max-lag": "10"}
    found = only("replication", replace(HEALTHY, info=info, config=config))
    assert found.verdict == verdict
    assert words in found.text


@pytest.mark.parametrize(
    ("info", "verdict"),
    [
        ({"emq_waiters": "3", "emq_max_waiters": "100"}, ["ok"]),
        ({"emq_waiters": "80", "emq_max_waiters": "100"}, ["warn"]),
        ({"emq_waiters": "0", "emq_max_waiters": "0"}, ["warn"]),
        ({"emq_waiters": "3"}, []),
    ],
)
def test_room_for_workers_that_wait(info: dict[str, str], verdict: list[str]) -> None:
    assert [found.verdict for found in findings.waiters(replace(HEALTHY, info=info))] == verdict


@pytest.mark.parametrize(
    ("info", "config", "verdicts"),
    [
        ({}, {"timeout": "0", "tcp-keepalive": "300"}, ["ok"]),
        ({}, {"timeout": "60", "tcp-keepalive": "0"}, ["warn", "warn"]),
        ({"connected_clients": "90"}, {"timeout": "0", "tcp-keepalive": "300", "maxclients": "100"}, ["warn"]),
        ({}, {}, ["open"]),
    ],
)
def test_settings_that_cost_workers_their_connection(
    info: dict[str, str], config: dict[str, str], verdicts: list[str]
) -> None:
    facts = replace(HEALTHY, info=info, config=config)
    assert [found.verdict for found in findings.clients(facts)] == verdicts


def test_who_can_take_jobs_and_not_end_them_is_warned_of() -> None:
    half = Rights("w", "q", allowed=("emq.claim", "emq.complete"), denied=("emq.retry", "emq.extend"))
    found = only("rights", replace(HEALTHY, rights=half))
    assert found.verdict == "warn"
    assert found.fix == f"{CLI} ACL SETUSER w +emq.retry +emq.extend"
    producer = Rights("p", "q", allowed=("emq.enqueue",), denied=("emq.claim", "emq.retry"))
    assert only("rights", replace(HEALTHY, rights=producer)).verdict == "ok"
    assert only("rights", replace(HEALTHY, rights=Rights("n", "q", denied=("emq.claim",)))).verdict == "fail"


def test_a_user_who_may_not_read_the_fence_cannot_connect() -> None:
    blind = Rights("w", "q", allowed=("emq.claim", "emq.complete", "emq.retry", "emq.extend"), fence=False)
    assert [found.verdict for found in findings.rights(replace(HEALTHY, rights=blind))] == ["fail", "ok"]


def test_a_module_that_speaks_another_wire_fails() -> None:
    probe = Probe("h", module="loaded", module_version="9.0.0", module_wire=8)
    facts = replace(HEALTHY, probe=probe, fence=Fence("{emq}:version", "echomq:6.0.0"))
    assert only("wire", facts).verdict == "fail"
    assert only("module", facts).verdict == "warn"


def test_every_check_has_something_to_say_of_a_node_that_told_nothing() -> None:
    silent = Facts(cli=CLI, url="redis://h", probe=Probe("h"), open={"queues": "NOPERM", "keys": "NOPERM"})
    found = list(findings.judge(silent))
    assert {each.verdict for each in found} == {"open"}
    assert {each.check for each in found} == set(findings.CHECKS) - {"wire", "waiters"}
