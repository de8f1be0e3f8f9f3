"""What the exporter makes of a node and its queues, on both executors, as Prometheus reads it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path

import pytest
import redis
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

import emq_native
from emq_native import mint, provision, readings
from emq_native.conformance.host import OwnServer
from emq_native.doctor import examine
from emq_native.executors import Executor
from emq_native.ids import JobId
from emq_native.metrics import FAMILIES, Exporter, Page, WakeProbe, _node
from emq_native.queue import Queue
from emq_native.readings import About
from emq_native.server import Server, form_cluster
from emq_native.values import Job

HOUR = 3_600
DASHBOARD = Path(__file__).parents[2] / "docs" / "grafana-dashboard.json"
MANUAL = Path(__file__).parents[2] / "docs" / "operations.md"


def rights_of_the_manual() -> str:
    (found,) = re.findall(r"^ACL SETUSER metrics on >secret (.+?)^```", MANUAL.read_text(), re.MULTILINE | re.DOTALL)
    return " ".join(str(found).split())


class Scrape:
    """One page as Prometheus reads it: `scrape("emq_jobs", queue="q", state="dead")`, None for no sample."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.text = generate_latest(registry).decode()
        self.families = list(text_string_to_metric_families(self.text))
        self.samples = [sample for family in self.families for sample in family.samples]

    def __call__(self, name: str, **labels: str) -> float | None:
        found = [
            sample.value
            for sample in self.samples
            if sample.name == name and all(sample.labels.get(label) == value for label, value in labels.items())
        ]
        assert len(found) <= 1, found
        return found[0] if found else None

    def labels(self, name: str, label: str) -> list[str]:
        return [sample.labels[label] for sample in self.samples if sample.name == name]


def scrape(target: object, **options: object) -> Scrape:
    exporter = Exporter(target, **options)  # type: ignore[arg-type]
    try:
        return page_of(exporter)
    finally:
        exporter.close()


def page_of(exporter: Exporter) -> Scrape:
    registry = CollectorRegistry()
    registry.register(exporter)
    return Scrape(registry)


def until(condition: Callable[[], object], what: str, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


@pytest.fixture
def server(host: OwnServer) -> Iterator[Server]:
    """The server of each executor in turn, empty."""
    yield host.server
    with host.server.client() as client:
        for key in client.scan_iter("emq:*"):
            client.delete(key)


@pytest.fixture
def queue(server: Server, executor: Executor) -> Iterator[Queue]:
    with emq_native.connect(server.url, wire=executor.wire) as bus:
        yield bus.queue("orders")


@pytest.fixture
def client(server: Server) -> Iterator[redis.Redis]:
    with server.client() as client:
        yield client


def claimed(queue: Queue) -> Job:
    job = queue.claim(HOUR)
    assert job is not None
    return job


def id_of(seconds_ago: float) -> str:
    return JobId.first_at(round((time.time() - seconds_ago) * 1000))


def test_jobs_are_told_by_state(server: Server, queue: Queue) -> None:
    queue.enqueue_many([b"a", b"b", b"c"])
    queue.enqueue_in(b"later", HOUR)
    job = claimed(queue)
    other = claimed(queue)
    assert queue.retry(other, max_attempts=1, error="no", delay=0) == "dead"
    found = scrape(server.url)
    assert {state: found("emq_jobs", queue="orders", state=state) for state in found.labels("emq_jobs", "state")} == {
        "pending": 1,
        "active": 1,
        "scheduled": 1,
        "dead": 1,
        "awaiting_children": 0,
    }
    assert queue.complete(job)


def test_completions_and_failures_are_counters(server: Server, queue: Queue) -> None:
    queue.enqueue_many([b"a", b"b", b"c"])
    for _ in range(2):
        job = claimed(queue)
        queue.complete(job)
    job = claimed(queue)
    queue.retry(job, max_attempts=1, error="no", delay=0)
    found = scrape(server.url)
    assert found("emq_jobs_completed_total", queue="orders") == 2
    assert found("emq_jobs_failed_total", queue="orders") == 1


def test_the_age_of_the_oldest_job_is_that_of_its_id(server: Server, queue: Queue) -> None:
    assert scrape(server.url, queues=["orders"])("emq_oldest_pending_age_seconds", queue="orders") == 0
    queue.enqueue(b"new")
    queue.enqueue(b"old", id=id_of(HOUR))
    age = scrape(server.url)("emq_oldest_pending_age_seconds", queue="orders")
    assert age is not None
    assert HOUR <= age < 2 * HOUR


def test_the_oldest_job_may_wait_in_a_lane(server: Server, queue: Queue) -> None:
    queue.enqueue(b"new")
    queue.enqueue(b"old", id=id_of(HOUR), group="g")
    age = scrape(server.url)("emq_oldest_pending_age_seconds", queue="orders")
    assert age is not None
    assert age >= HOUR


def test_a_job_that_is_due_and_not_promoted_is_late(server: Server, queue: Queue) -> None:
    queue.enqueue_in(b"later", HOUR)
    assert scrape(server.url)("emq_schedule_lateness_seconds", queue="orders") == 0
    queue.enqueue_at(b"long ago", datetime.fromtimestamp(time.time() - HOUR, timezone.utc))
    late = scrape(server.url)("emq_schedule_lateness_seconds", queue="orders")
    assert late is not None
    assert late >= HOUR - 1


def test_leases_that_ended_count_until_they_are_reaped(server: Server, queue: Queue, client: redis.Redis) -> None:
    queue.enqueue_many([b"a", b"b"])
    first = claimed(queue)
    assert queue.claim(HOUR)
    assert scrape(server.url)("emq_leases_expired", queue="orders") == 0
    client.zadd("emq:{orders}:active", {first.id: 1})
    assert scrape(server.url)("emq_leases_expired", queue="orders") == 1
    assert queue.reap() == 1
    assert scrape(server.url)("emq_leases_expired", queue="orders") == 0


def test_lanes_tell_their_backlog_slots_ceiling_and_pause(server: Server, queue: Queue) -> None:
    for group in ("busy", "busy", "parked"):
        queue.enqueue(b"x", group=group)
    queue.limit_group("busy", 3)
    queue.pause_group("parked")
    assert queue.claim_fair(HOUR)
    found = scrape(server.url)
    for group, numbers in {"busy": (1, 1, 3, 0), "parked": (1, 0, 0, 1)}.items():
        names = ("emq_lane_pending", "emq_lane_active", "emq_lane_limit", "emq_lane_paused")
        assert tuple(found(name, queue="orders", group=group) for name in names) == numbers
    assert found("emq_lanes", queue="orders") == 2
    assert found("emq_lanes_left_out", queue="orders") == 0


@pytest.mark.parametrize("groups", [5, 700])
def test_lanes_over_the_limit_are_left_out_and_counted(server: Server, queue: Queue, groups: int) -> None:
    for first in range(0, groups, 100):
        numbers = range(first, min(groups, first + 100))
        queue.pipeline(emq_native.transitions.Enqueue(b"x", group=f"g{number}") for number in numbers)
    found = scrape(server.url, lanes=3)
    listed = found.labels("emq_lane_pending", "group")
    assert len(listed) == 3
    assert found("emq_lanes", queue="orders") == groups
    assert found("emq_lanes_left_out", queue="orders") == groups - 3
    assert found("emq_jobs", queue="orders", state="pending") == groups


def test_a_paused_queue_is_told(server: Server, queue: Queue) -> None:
    queue.enqueue(b"x")
    assert scrape(server.url)("emq_queue_paused", queue="orders") == 0
    queue.pause()
    assert scrape(server.url)("emq_queue_paused", queue="orders") == 1


def test_only_the_queues_that_are_named(server: Server, queue: Queue) -> None:
    for name in ("orders", "fills"):
        queue.bus.queue(name).enqueue(b"x")
    assert set(scrape(server.url).labels("emq_jobs", "queue")) == {"orders", "fills"}
    assert set(scrape(server.url, queues=["fills", "none"]).labels("emq_jobs", "queue")) == {"fills", "none"}


def test_a_key_of_another_kind_costs_its_own_queue_only(server: Server, queue: Queue, client: redis.Redis) -> None:
    queue.enqueue(b"x")
    client.set("emq:{broken}:pending", "no set")
    told: list[str] = []
    found = scrape(server.url, report=told.append)
    assert set(found.labels("emq_jobs", "queue")) == {"orders"}
    assert found("emq_queues_unread") == 1
    assert [line for line in told if line.startswith("queue broken: WrongType")] == told


def test_what_foreign_clients_listed_in_a_place_spoils_nothing(
    server: Server, queue: Queue, client: redis.Redis
) -> None:
    queue.enqueue(b"x", group="g")
    client.sadd("emq:{orders}:lanes", "no group!", b"\xff")
    client.zadd("emq:{orders}:pending", {b"\xff": 0})
    assert scrape(server.url).labels("emq_lane_pending", "group") == ["g"]


@pytest.mark.parametrize("ceiling", ["9" * 5000, "9" * 400, "9" * 16, "007", "-1", "two"])
def test_a_ceiling_that_is_no_number_to_the_executors_is_none(
    server: Server, queue: Queue, client: redis.Redis, ceiling: str
) -> None:
    queue.enqueue(b"x", group="g")
    client.hset("emq:{orders}:glimit", "g", ceiling)
    assert scrape(server.url)("emq_lane_limit", queue="orders", group="g") == 0
    assert queue.claim_fair(HOUR) is not None


@pytest.mark.parametrize("score", ["-inf", "-1e300"])
def test_a_due_time_before_all_times_is_told_by_exporter_and_doctor(
    server: Server, queue: Queue, client: redis.Redis, score: str
) -> None:
    client.zadd("emq:{orders}:schedule", {queue.enqueue_in(b"x", HOUR): score})
    late = scrape(server.url)("emq_schedule_lateness_seconds", queue="orders")
    assert late is not None
    assert time.time() - HOUR < late <= time.time()
    assert [each.verdict for each in examine(server.url).findings if each.check == "due"] == ["warn"]


def test_a_walk_for_names_goes_on_where_the_last_one_stopped(
    server: Server, queue: Queue, client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readings, "WALK_CALLS", 1)
    monkeypatch.setattr(readings, "WALK_COUNT", 10)
    client.mset({f"emq:{{q{number}}}:other": "x" for number in range(300)})
    exporter = Exporter(server.url, lanes=0)
    found = [len(page_of(exporter).labels("emq_queue_paused", "queue"))]
    assert found[0] < 300
    while found[-1] < 300:
        found.append(len(page_of(exporter).labels("emq_queue_paused", "queue")))
        assert len(found) < 1000
    assert found == sorted(found)
    exporter.close()


def test_a_queue_that_is_gone_is_forgotten_with_the_next_walk(server: Server, queue: Queue) -> None:
    queue.enqueue(b"x")
    kept, fresh = Exporter(server.url, rescan=HOUR), Exporter(server.url, rescan=0)
    for exporter in (kept, fresh):
        assert page_of(exporter).labels("emq_queue_paused", "queue") == ["orders"]
    queue.pause()
    assert queue.obliterate()
    assert page_of(kept)("emq_jobs", queue="orders", state="pending") == 0
    assert page_of(fresh).labels("emq_queue_paused", "queue") == []
    for exporter in (kept, fresh):
        exporter.close()


@pytest.mark.parametrize(
    ("value", "state"),
    [("echomq:4.0.0", "wire4"), ("echomq:6.0.0", "wire6"), (None, "missing"), ("x", "foreign"), (["list"], "foreign")],
)
def test_the_fence_is_told_and_numbers_too_whatever_it_says(
    server: Server, executor: Executor, value: object, state: str
) -> None:
    with server.client() as client, emq_native.connect(server.url, wire=executor.wire) as bus:
        bus.queue("orders").enqueue(b"x")
        client.delete("{emq}:version")
        if isinstance(value, list):
            client.rpush("{emq}:version", *value)
        elif value is not None:
            client.set("{emq}:version", str(value))
        found = scrape(server.url)
        client.delete("{emq}:version")
        client.set("{emq}:version", executor.identity)
    assert [label for label in found.labels("emq_fence", "state") if found("emq_fence", state=label) == 1] == [state]
    assert found("emq_jobs", queue="orders", state="pending") == 1


def test_a_node_that_goes_is_down_and_comes_back(executor: Executor) -> None:
    told: list[str] = []
    with Server(module=executor.name == "native") as server:
        exporter = Exporter(server.url, report=told.append)
        assert page_of(exporter)("emq_up") == 1
        server.kill()
        down = page_of(exporter)
        assert down("emq_up", node=f"127.0.0.1:{server.port}") == 0
        assert [sample.name for sample in down.samples] == ["emq_up", "emq_scrape_duration_seconds"]
        assert page_of(exporter)("emq_up") == 0
        for _ in range(2):
            server.restart()
            assert page_of(exporter)("emq_up") == 1
        exporter.close()
    assert len(told) == 2
    assert "Unavailable" in told[0]
    assert told[1].endswith("answers again")


def test_a_node_may_start_after_the_exporter() -> None:
    server = Server(module=False)
    with server:
        url = server.url
    exporter = Exporter(url)
    assert page_of(exporter)("emq_up") == 0
    with Server(module=False, port=server.port):
        assert page_of(exporter)("emq_up") == 1
    exporter.close()


def test_a_replica_is_read_like_its_primary(host: OwnServer, executor: Executor) -> None:
    with Server(module=executor.name == "native") as primary:
        provision.claim(primary.url, wire=executor.wire)
        with emq_native.connect(primary.url) as bus:
            bus.queue("orders").enqueue(b"x", group="g")
        with Server(module=executor.name == "native", replica_of=primary) as replica:
            with primary.client() as client:
                assert client.execute_command("WAIT", 1, 60_000) == 1
            found = scrape(replica.url)
    assert found("emq_jobs", queue="orders", state="pending") == 1
    assert found("emq_lane_pending", queue="orders", group="g") == 1
    assert found("emq_node_info", role="replica") == 1


def test_a_user_with_the_rights_of_the_manual_sees_everything() -> None:
    with Server(config={"user": f"metrics on >secret {rights_of_the_manual()}"}) as server:
        provision.claim(server.url, wire=6)
        with emq_native.connect(server.url) as bus:
            queue = bus.queue("orders")
            queue.enqueue(b"x", group="g")
            queue.enqueue(b"x")
            queue.enqueue_in(b"x", HOUR)
            assert queue.claim(HOUR)
        found, full = (scrape(f"redis://{login}127.0.0.1:{server.port}") for login in ("metrics:secret@", ""))
        with server.client() as client:
            assert client.acl_log() == []
    assert [family.name for family in found.families] == [family.name for family in full.families]
    assert len(found.samples) == len(full.samples)


@pytest.mark.parametrize(
    ("wire", "more"),
    [
        (4, "+eval_ro +zcard +type +smembers +hget"),
        (
            6,
            "~emq:{emq-native.canary}:* ~emq:{emq-native.canary} +emq.next +emq.enqueue +emq.complete +emq.pause"
            " +emq.obliterate",
        ),
    ],
)
def test_the_further_rights_of_the_manual_are_those_for_wire_4_and_for_the_wake_probe(wire: int, more: str) -> None:
    assert f"`{more}`" in " ".join(MANUAL.read_text().split())
    verbs = {4: "", 6: "+emq.counts +emq.gcounts +emq.version "}[wire]
    rights = rights_of_the_manual().replace("+emq.counts +emq.gcounts +emq.version ", verbs)
    with Server(module=wire == 6, config={"user": f"metrics on >secret {rights} {more}"}) as server:
        provision.claim(server.url, wire=wire)
        with emq_native.connect(server.url) as bus:
            bus.queue("orders").enqueue(b"x", group="g")
        url = f"redis://metrics:secret@127.0.0.1:{server.port}"
        found = scrape(url)
        if wire == 6:
            probe = WakeProbe(url, CollectorRegistry(), interval=1)
            probe.measure()
            probe.stop()
        with server.client() as client:
            assert client.acl_log() == []
            assert client.keys("emq:{emq-native.canary}*") == []
    assert found("emq_lane_pending", queue="orders", group="g") == 1


def test_a_user_who_may_not_walk_is_told_to_name_queues() -> None:
    told: list[str] = []
    rights = f"{rights_of_the_manual()} -scan -zrange -get -info"
    with Server(config={"user": f"metrics on >secret {rights}"}) as server:
        provision.claim(server.url, wire=6)
        with emq_native.connect(server.url) as bus:
            bus.queue("orders").enqueue(b"x")
        url = f"redis://metrics:secret@127.0.0.1:{server.port}"
        blind = scrape(url, report=told.append)
        named = scrape(url, queues=["orders"])
    assert blind("emq_up") == 1
    assert blind("emq_queues_unread") == 1
    assert len(told) == 1
    assert "--queue" in told[0]
    assert named("emq_jobs", queue="orders", state="pending") == 1
    assert named("emq_oldest_pending_age_seconds") is None
    assert named("emq_fence", state="unknown") == 1


def test_looking_changes_nothing(server: Server, queue: Queue, client: redis.Redis) -> None:
    queue.enqueue(b"x", group="g")
    before = client.execute_command("DEBUG", "DIGEST"), client.info("replication")["master_repl_offset"]
    assert before[1] > 0
    scrape(server.url)
    assert (client.execute_command("DEBUG", "DIGEST"), client.info("replication")["master_repl_offset"]) == before


def test_the_module_tells_its_calls_and_who_waits(native_server: OwnServer) -> None:
    before = scrape(native_server.server.url)
    with emq_native.connect(native_server.server.url) as bus:
        bus.queue("orders").counts()
    after = scrape(native_server.server.url)
    calls = [sum(each.value for each in found.samples if each.name == "emq_calls_total") for found in (before, after)]
    assert calls[1] > calls[0]
    assert after("emq_waiters") == 0
    assert after("emq_wakes_total") is not None
    assert after("emq_node_info", module_version=emq_native.__version__) == 1


def test_numbers_of_the_module_are_exported_by_verb_class_and_name() -> None:
    page = Page()
    info = {"emq_calls": "9", "emq_calls_claim": "7", "emq_refused_stale": "2", "emq_warning_eviction": "1"}
    _node(page, "n", About(info, "wire6"))
    families = {family.name: family for family in page}
    assert {
        name: [(sample.labels, sample.value) for sample in families[name].samples]
        for name in ("emq_calls", "emq_refusals", "emq_warning")
    } == {
        "emq_calls": [({"node": "n", "verb": "claim"}, 7)],
        "emq_refusals": [({"node": "n", "class": "stale"}, 2)],
        "emq_warning": [({"node": "n", "warning": "eviction"}, 1)],
    }


def test_families_have_names_that_prometheus_expects() -> None:
    for name, family in FAMILIES.items():
        assert re.fullmatch(r"emq(_[a-z]+)+", name)
        assert name.endswith("_total") == (family.kind == "counter")
        assert not name.endswith(("_count", "_sum", "_bucket"))
        assert not re.search(r"_(ms|milliseconds|minutes|percent)(_|$)", name)
        assert family.help.endswith(".")
        assert "le" not in family.labels


def test_a_page_has_each_family_once_with_its_type_and_help(native_server: OwnServer) -> None:
    found = scrape(native_server.server.url, queues=["orders"])
    typed = re.findall(r"^# TYPE (\S+) (\S+)$", found.text, re.MULTILINE)
    assert typed
    assert len({name for name, _ in typed}) == len(typed)
    for name, kind in typed:
        assert FAMILIES[name].kind == kind
        assert f"# HELP {name} {FAMILIES[name].help}\n" in found.text
    assert all(set(sample.labels) == set(FAMILIES[sample.name].labels) for sample in found.samples)


def test_the_wake_of_a_waiting_client_is_measured_and_nothing_is_left(native_server: OwnServer) -> None:
    registry = CollectorRegistry()
    probe = WakeProbe(native_server.server.url, registry, interval=0.01)
    probe.start()
    until(lambda: (Scrape(registry)("emq_wake_latency_seconds_count") or 0) >= 3, "three measurements")
    assert scrape(native_server.server.url).labels("emq_jobs", "queue") == []
    probe.stop()
    with native_server.server.client() as client:
        assert client.keys("emq:{emq-native.canary}*") == []


def test_a_job_left_by_a_watcher_that_died_does_not_spoil_what_is_measured(native_server: OwnServer) -> None:
    with native_server.server.client() as client:
        client.execute_command("EMQ.ENQUEUE", "emq:{emq-native.canary}", mint(), "left")
        client.execute_command("EMQ.PAUSE", "emq:{emq-native.canary}")
    registry = CollectorRegistry()
    probe = WakeProbe(native_server.server.url, registry, interval=1)
    probe.measure()
    assert Scrape(registry)("emq_wake_latency_seconds_count") == 1
    probe.stop()


def test_a_wake_that_cannot_be_measured_is_a_failure(scripted_server: OwnServer) -> None:
    registry = CollectorRegistry()
    told: list[str] = []
    probe = WakeProbe(scripted_server.server.url, registry, interval=1, report=told.append)
    probe.measure()
    probe.measure()
    probe.stop()
    assert Scrape(registry)("emq_wake_probe_failures_total") == 2
    assert Scrape(registry)("emq_wake_latency_seconds_count") == 0
    assert len(told) == 1
    assert "unknown command" in told[0]


@pytest.mark.cluster
def test_every_primary_of_a_cluster_is_asked_for_its_queues() -> None:
    servers = [Server(config={"cluster-enabled": "yes"}).start() for _ in range(3)]
    try:
        form_cluster(servers)
        names = ["orders", "fills", "quotes", "emails"]
        for name in names[:3]:
            provision.claim(servers[0].url, wire=6, queue=name)
        with emq_native.connect(servers[0].url, cluster=True) as bus:
            for name in names[:3]:
                bus.queue(name).enqueue(b"x")
        exporter = Exporter(servers[0].url)
        found = page_of(exporter)
        assert set(found.labels("emq_up", "node")) == {f"127.0.0.1:{server.port}" for server in servers}
        assert {name: found("emq_jobs", queue=name, state="pending") for name in names} == {
            **dict.fromkeys(names[:3], 1),
            "emails": None,
        }
        assert found("emq_fence", queue="orders", state="wire6") == 1
        named = scrape(servers[1].url, queues=names)
        assert named("emq_fence", queue="emails", state="missing") == 1
        assert sorted(set(named.labels("emq_jobs", "queue"))) == sorted(names)

        servers[0].kill()
        down = page_of(exporter)
        assert down("emq_up", node=f"127.0.0.1:{servers[0].port}") == 0
        assert down("emq_up", node=f"127.0.0.1:{servers[1].port}") == 1
        exporter.close()
    finally:
        for server in servers:
            server.stop()


def metric_names(expression: str) -> set[str]:
    return set(re.findall(r"\bemq_\w+", expression))


def exported(name: str) -> bool:
    return name in FAMILIES or any(
        FAMILIES[base].kind == "histogram"
        for base in (name.removesuffix(suffix) for suffix in ("_bucket", "_sum", "_count"))
        if base in FAMILIES
    )


def test_the_dashboard_draws_what_the_exporter_exports_and_all_of_it() -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    drawn = set()
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            assert target["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
            drawn |= metric_names(target["expr"])
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            drawn |= metric_names(variable["query"]["query"])
    assert {name for name in drawn if not exported(name)} == set()
    base = {re.sub(r"_(bucket|sum|count)$", "", name) for name in drawn}
    assert set(FAMILIES) - base == set()


def test_the_dashboard_has_its_variables_and_panels_that_do_not_overlap() -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    assert dashboard["schemaVersion"] >= 39
    assert {variable["name"] for variable in dashboard["templating"]["list"]} >= {"datasource", "queue"}
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert max(x for x, _ in cells) < 24
        assert not cells & taken
        taken |= cells
