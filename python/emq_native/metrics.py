"""A node and its queues as Prometheus families, asked when they are scraped. Needs the extra `[metrics]`.

    registry = CollectorRegistry()
    registry.register(Exporter("redis://127.0.0.1"))
    start_http_server(9121, registry=registry)

FAMILIES is the whole list; docs/operations.md explains it, docs/grafana-dashboard.json draws it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, Literal, NamedTuple

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from emq_native.canary import QUEUE as CANARY
from emq_native.canary import Canary
from emq_native.errors import EmqError, PermissionDenied
from emq_native.overview import PLACES
from emq_native.readings import About, Fleet, Names, Node, Reading, over_a_living_connection

__all__ = ["FAMILIES", "Exporter", "Family", "WakeProbe"]

Kind = Literal["gauge", "counter", "histogram"]


class Family(NamedTuple):
    """kind, what it says, the names of its labels."""

    kind: Kind
    help: str
    labels: tuple[str, ...] = ()


_NODE: Final = ("node",)
_QUEUE: Final = ("queue",)
_LANE: Final = ("queue", "group")

FAMILIES: Final[Mapping[str, Family]] = {
    "emq_up": Family("gauge", "1 when the node answers and serves this user, else 0.", _NODE),
    "emq_node_info": Family(
        "gauge", "Always 1; what the node is.", (*_NODE, "server", "server_version", "role", "module_version")
    ),
    "emq_fence": Family(
        "gauge",
        "1 for the state of the fence: wire4, wire6, missing, foreign or unknown; queue is empty outside cluster mode.",
        (*_NODE, "queue", "state"),
    ),
    "emq_calls_total": Family("counter", "Calls of the module's verbs since the server started.", (*_NODE, "verb")),
    "emq_refusals_total": Family(
        "counter", "Calls that the module refused, by class; stale: the lease was lost.", (*_NODE, "class")
    ),
    "emq_waiters": Family("gauge", "Clients that wait in EMQ.NEXT.", _NODE),
    "emq_waiters_limit": Family("gauge", "How many may wait, emq.max-waiters.", _NODE),
    "emq_wakes_total": Family("counter", "Times that a waiting client was woken.", _NODE),
    "emq_batons_total": Family("counter", "Woken clients that were gone, so that the next one was woken.", _NODE),
    "emq_warning": Family(
        "gauge", "1 for a setting that endangers jobs, by the module's name for it.", (*_NODE, "warning")
    ),
    "emq_queues_unread": Family("gauge", "Queues that could not be read in this scrape.", _NODE),
    "emq_queues_left_out": Family("gauge", "Queues that are not listed because there are too many.", _NODE),
    "emq_jobs": Family("gauge", "Jobs by state.", (*_QUEUE, "state")),
    "emq_jobs_completed_total": Family("counter", "Jobs that completed since the queue began.", _QUEUE),
    "emq_jobs_failed_total": Family("counter", "Jobs that moved to dead since the queue began.", _QUEUE),
    "emq_oldest_pending_age_seconds": Family(
        "gauge", "Since the oldest waiting job was admitted, by the time in its id; 0 when none waits.", _QUEUE
    ),
    "emq_schedule_lateness_seconds": Family(
        "gauge", "Since the earliest scheduled job became due; 0 when none is due.", _QUEUE
    ),
    "emq_leases_expired": Family("gauge", "Leases that ended and were not reaped yet.", _QUEUE),
    "emq_queue_paused": Family("gauge", "1 when claims of the queue are stopped.", _QUEUE),
    "emq_lanes": Family("gauge", "Groups with a backlog.", _QUEUE),
    "emq_lanes_left_out": Family("gauge", "Groups with a backlog that are not listed by group.", _QUEUE),
    "emq_lane_pending": Family("gauge", "Jobs that wait in the lane.", _LANE),
    "emq_lane_active": Family("gauge", "Jobs of the group under a lease: the slots in use.", _LANE),
    "emq_lane_limit": Family("gauge", "Most active jobs of the group at a time; 0 for no limit.", _LANE),
    "emq_lane_paused": Family("gauge", "1 when claims of the group are stopped.", _LANE),
    "emq_wake_latency_seconds": Family(
        "histogram", "From EMQ.ENQUEUE until a waiting client has the job, measured with a queue of the exporter's own."
    ),
    "emq_wake_probe_failures_total": Family("counter", "Measurements of the wake latency that failed."),
    "emq_scrape_duration_seconds": Family("gauge", "How long this scrape took."),
}
"""Every family by its exported name."""

QUEUES: Final = 1000
"""Most queues of a node that a scrape asks."""

BUCKETS: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0)
_FENCES: Final = ("wire4", "wire6", "missing", "foreign", "unknown")


class Page:
    """The samples of one scrape, by family. A family without a sample is left out."""

    def __init__(self) -> None:
        self._samples: dict[str, list[tuple[tuple[str, ...], float]]] = {}

    def put(self, name: str, value: float | None, *labels: str) -> None:
        """Add a sample; None is none."""
        if value is not None:
            self._samples.setdefault(name, []).append((labels, value))

    def add(self, other: Page) -> None:
        """Add all samples of another page."""
        for name, samples in other._samples.items():
            self._samples.setdefault(name, []).extend(samples)

    def __iter__(self) -> Iterator[Metric]:
        for name in FAMILIES:
            if name in self._samples:
                family = _family(name)
                for labels, value in self._samples[name]:
                    family.add_metric(labels, value)
                yield family


class Exporter(Collector):
    """Asks at every scrape. It never raises for a node: one that does not answer has emq_up 0.

    target: as for `probe`. queues: only these, by default those that a walk over the keys finds; rescan: seconds
    between walks. lanes: most groups to list of a queue. report: is told, in one line each, when a node is lost, when
    it is back, and what may not be asked. Raises InvalidArgument and TypeError for a target that is none.
    """

    def __init__(
        self,
        target: object,
        *,
        queues: Sequence[str] = (),
        lanes: int = 100,
        rescan: float = 300.0,
        report: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._fleet = Fleet(target)
        self.answered = False
        """Whether a node answered at the last scrape."""
        self._queues = tuple(queues)
        self._lanes = lanes
        self._rescan = rescan
        self._report = report
        self._names: dict[str, Names] = {}
        self._troubles: dict[str, str] = {}
        self._lock = threading.Lock()

    def describe(self) -> Iterable[Metric]:
        """Nothing is asked for this."""
        return [_family(name) for name, family in FAMILIES.items() if "wake_" not in name]

    def collect(self) -> Iterator[Metric]:
        """One look at everything. Scrapes at the same time are made one after the other."""
        page = Page()
        with self._lock:
            began = time.perf_counter()
            self._look(page)
            page.put("emq_scrape_duration_seconds", time.perf_counter() - began)
        return iter(page)

    @property
    def address(self) -> str:
        """The node that was named."""
        return self._fleet.address

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            self._fleet.close()

    def _look(self, page: Page) -> None:
        self.answered = False
        try:
            nodes = self._fleet.nodes()
        except EmqError as error:
            self._lost(page, self._fleet.address, error)
            return
        for node in nodes:
            try:
                own = over_a_living_connection(node.session, partial(self._page_of, node))
            except EmqError as error:
                self._lost(page, node.address, error)
            else:
                self._trouble(node.address, None)
                page.put("emq_up", 1, node.address)
                page.add(own)
                self.answered = True

    def _page_of(self, node: Node) -> Page:
        page = Page()
        _node(page, node.address, node.about())
        self._queues_of(page, node)
        return page

    def _lost(self, page: Page, address: str, error: EmqError) -> None:
        page.put("emq_up", 0, address)
        self._trouble(address, f"{type(error).__name__}: {error}")

    def _trouble(self, about: str, text: str | None) -> None:
        if self._troubles.get(about) != text:
            self._report(f"{about}: {text or 'answers again'}")
        if text is None:
            self._troubles.pop(about, None)
        else:
            self._troubles[about] = text

    def _queues_of(self, page: Page, node: Node) -> None:
        names: Sequence[str] = ()
        unread, walk = 0, f"the walk over {node.address}"
        try:
            names = self._names_of(node)
            self._trouble(walk, None)
        except PermissionDenied as error:
            unread += 1
            self._trouble(walk, f"{error}; name the queues by --queue")
        for name, found in node.queues(names[:QUEUES], self._lanes):
            if isinstance(found, Reading):
                self._trouble(f"queue {name}", None)
                _queue(page, node.address, found)
            else:
                unread += 1
                self._trouble(f"queue {name}", f"{type(found).__name__}: {found}")
        page.put("emq_queues_unread", unread, node.address)
        page.put("emq_queues_left_out", max(0, len(names) - QUEUES), node.address)

    def _names_of(self, node: Node) -> list[str]:
        if self._queues:
            return [name for name in self._queues if node.owns(name)]
        names = self._names.setdefault(node.address, Names(self._rescan))
        return [name for name in names.look(node.session) if name != CANARY]


class WakeProbe(Collector):
    """Measures the wake latency in a thread of its own, every `interval` seconds, until `stop`.

    Needs the module; what fails is counted, and reported as the Exporter reports.
    """

    def __init__(
        self,
        target: object,
        registry: CollectorRegistry,
        *,
        interval: float,
        report: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._canary = Canary(target)
        self._interval = interval
        self._report = report
        self._stopped = threading.Event()
        self._failures = 0
        self._last: str | None = None
        self._histogram = Histogram(
            "emq_wake_latency_seconds", FAMILIES["emq_wake_latency_seconds"].help, buckets=BUCKETS, registry=registry
        )
        registry.register(self)
        self._thread = threading.Thread(target=self._run, name="emq-native wake probe", daemon=True)

    def collect(self) -> Iterator[Metric]:
        """How many measurements failed."""
        page = Page()
        page.put("emq_wake_probe_failures_total", self._failures)
        return iter(page)

    def measure(self) -> None:
        """Measure once."""
        try:
            self._histogram.observe(self._canary.measure())
            self._last = None
        except EmqError as error:
            self._failures += 1
            text = f"wake probe: {type(error).__name__}: {error}"
            if text != self._last:
                self._report(text)
            self._last = text

    def start(self) -> None:
        """Begin to measure."""
        self._thread.start()

    def stop(self) -> None:
        """Stop and delete the queue of the measurements."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()
        with self._canary:
            pass

    def _run(self) -> None:
        while not self._stopped.is_set():
            self.measure()
            self._stopped.wait(self._interval)


def _family(name: str) -> CounterMetricFamily | GaugeMetricFamily:
    family = FAMILIES[name]
    kind = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
    return kind(name, family.help, labels=family.labels)


def _fence(page: Page, node: str, queue: str, found: str) -> None:
    for state in _FENCES:
        page.put("emq_fence", int(state == found), node, queue, state)


def _node(page: Page, at: str, about: About) -> None:
    info = about.info
    role = {"master": "primary", "slave": "replica"}.get(info.get("role", ""), "")
    page.put("emq_node_info", 1, at, *about.server, role, info.get("emq_version", ""))
    if about.fence is not None:
        _fence(page, at, "", about.fence)
    for field, name in (
        ("emq_waiters", "emq_waiters"),
        ("emq_max_waiters", "emq_waiters_limit"),
        ("emq_wakes", "emq_wakes_total"),
        ("emq_batons", "emq_batons_total"),
    ):
        page.put(name, _number(info.get(field)), at)
    calls = _named(info, "emq_calls_") or {"": info.get("emq_calls", "")}
    for name, numbers in (
        ("emq_calls_total", calls),
        ("emq_refusals_total", _named(info, "emq_refused_")),
        ("emq_warning", _named(info, "emq_warning_")),
    ):
        for label, text in numbers.items():
            page.put(name, _number(text), at, label)


def _queue(page: Page, node: str, found: Reading) -> None:
    name, counts = found.queue, found.counts
    if found.fence is not None:
        _fence(page, node, name, found.fence)
    for state in PLACES:
        page.put("emq_jobs", getattr(counts, state), name, state)
    for family, value in (
        ("emq_jobs_completed_total", counts.completed),
        ("emq_jobs_failed_total", counts.failed),
        ("emq_oldest_pending_age_seconds", found.oldest),
        ("emq_schedule_lateness_seconds", found.late),
        ("emq_leases_expired", found.lapsed),
        ("emq_queue_paused", found.paused),
        ("emq_lanes", found.lanes_known),
        ("emq_lanes_left_out", found.left_out),
    ):
        page.put(family, value, name)
    for lane in found.lanes:
        page.put("emq_lane_pending", lane.pending, name, lane.group)
        page.put("emq_lane_active", lane.active, name, lane.group)
        page.put("emq_lane_limit", lane.limit, name, lane.group)
        page.put("emq_lane_paused", lane.paused, name, lane.group)


def _named(info: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {name.removeprefix(prefix): value for name, value in info.items() if name.startswith(prefix)}


def _number(text: str | None) -> float | None:
    return float(text) if text is not None and text.isdigit() else None
