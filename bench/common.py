"""What the benchmarks share: servers, what their main thread used of a processor, and how findings are told and kept.

A question measures and answers tables. A `Report` is what one run found: its tables with the machine, the versions and
the load beside them. It is printed, and written as JSON and as Markdown by the same definition of the columns.
"""

from __future__ import annotations

import io
import json
import os
import platform
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from rich import box
from rich.console import Console
from rich.table import Table as Drawn

import emq_native
from emq_native import provision
from emq_native.executors import Executor
from emq_native.server import ConfigValue, Server

HERE = Path(__file__).parent
RESULTS = HERE / "results"

Size = Literal["full", "quick", "smoke"]
"""full: what is recorded. quick: two minutes. smoke: seconds, to see that all of it runs; its figures mean nothing."""

US = 1_000  # nanoseconds
MS = 1_000_000  # nanoseconds
SETTLE_S = 0.001
REHASHED_S = 20.0
PROCESSORS = sorted(os.sched_getaffinity(0))

AOF: Mapping[str, ConfigValue] = {
    "appendonly": "yes",
    "appendfsync": "everysec",
    "auto-aof-rewrite-percentage": 0,  # a fork would be measured too
}


# Servers


@contextmanager
def served(
    executor: Executor | None, config: Mapping[str, ConfigValue] | None = None, *, pinned: bool = True
) -> Iterator[Server]:
    """A server for the module, the scripts, or (None) plain commands.

    pinned: its main thread stays on the first processor; the load generator keeps off it by `aside`.
    """
    module = executor is not None and executor.name == "native"
    with Server(module=module, config=config) as server:
        if executor is not None:
            provision.claim(server.url, wire=executor.wire)
        if pinned and len(PROCESSORS) > 1:
            os.sched_setaffinity(server.pid, PROCESSORS[:1])
        yield server


@contextmanager
def aside() -> Iterator[None]:
    """Keep this process off the processor that `served` gives to servers."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, PROCESSORS[1:] or PROCESSORS)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def cpu_ns(server: Server) -> int:
    """What the server's main thread has used of a processor so far, in nanoseconds. Linux only.

    The kernel's count is exact while the thread sleeps, so a moment is left to it to come to rest.
    """
    time.sleep(SETTLE_S)
    return int(Path(f"/proc/{server.pid}/task/{server.pid}/schedstat").read_text().split()[0])


def await_tables(server: Server) -> None:
    """Wait until the server has moved its keys to the larger table, if it is at that; at most REHASHED_S seconds."""
    end = time.monotonic() + REHASHED_S
    with server.client() as client:
        while client.info("memory").get("mem_overhead_db_hashtable_rehashing") and time.monotonic() < end:
            time.sleep(0.05)


# Figures


def median(rounds: Sequence[float]) -> float:
    return statistics.median(rounds)


def spread(rounds: Sequence[float]) -> float:
    """Half of the rounds are within this share of their median: the distance of the quartiles, divided by it."""
    if len(rounds) < 2:
        return 0.0
    low, middle, high = statistics.quantiles(rounds, n=4, method="inclusive")
    return (high - low) / middle


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The median of the ratios within each round, so that what the machine did in a round falls out."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def percentile(samples: Sequence[float], share: float) -> float:
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


# What is told


@dataclass(frozen=True)
class Table:
    """Rows of one kind.

    name     what the rows are called in the JSON
    title    one line
    note     what the columns mean and under which conditions they were measured
    columns  field of a row -> its format, as format() takes it; "" is text and stands left
    rows     dataclass instances; fields that are no column are in the JSON only
    """

    name: str
    title: str
    note: str
    columns: Mapping[str, str]
    rows: Sequence[Any]

    def draw(self) -> str:
        """The rows as a Markdown table."""
        drawn = Drawn(box=box.MARKDOWN)
        for name, form in self.columns.items():
            drawn.add_column(name.replace("_", " "), justify="right" if form else "left", no_wrap=True)
        for row in self.rows:
            values = ((getattr(row, name), form) for name, form in self.columns.items())
            drawn.add_row(*("" if value is None else format(value, form) for value, form in values))
        text = io.StringIO()
        Console(file=text, width=1_000, color_system=None).print(drawn)
        return "\n".join(line.strip() for line in text.getvalue().splitlines() if line.strip())

    def text(self) -> str:
        return f"### {self.title}\n\n{self.note}\n\n{self.draw()}\n"


@dataclass
class Report:
    """What one run found. Begin it before measuring: it notes how busy the machine was."""

    title: str
    size: Size
    note: str = ""
    versions: dict[str, str] = field(default_factory=lambda: versions())
    at: str = field(default_factory=lambda: datetime.now(timezone.utc).isoformat(timespec="seconds"))
    load: list[float] = field(default_factory=lambda: [round(os.getloadavg()[0], 2)])
    seconds: float = 0.0
    tables: list[Table] = field(default_factory=list)

    def table(self, name: str) -> Table | None:
        return next((each for each in self.tables if each.name == name), None)

    def end(self, seconds: float) -> None:
        self.load.append(round(os.getloadavg()[0], 2))
        self.seconds = round(seconds, 1)

    def conditions(self) -> str:
        """One paragraph: when, on what, with what beside it."""
        told = machine()
        parts = [
            f"{self.at}, {self.size} size, {self.seconds:.0f} s",
            f"{told['cpus']} x {told['cpu']}, {told['memory_gb']} GB, {told['platform']}",
            f"load average {self.load[0]} before and {self.load[-1]} after (the run itself is about 1)",
            ", ".join(f"{name} {version}" for name, version in self.versions.items()),
        ]
        return "; ".join(parts) + "." + (f" {self.note}" if self.note else "")

    def text(self) -> str:
        return "\n".join([f"## {self.title}", "", self.conditions(), "", *(each.text() for each in self.tables)])

    def write(self, folder: Path, name: str, extra: str = "") -> None:
        """`name`.json and `name`.md in the folder; `extra` is Markdown that follows the conditions."""
        folder.mkdir(parents=True, exist_ok=True)
        found = {
            "at": self.at,
            "size": self.size,
            "note": self.note,
            "seconds": self.seconds,
            "load": self.load,
            "machine": machine(),
            "versions": self.versions,
            "tables": {each.name: [asdict(row) for row in each.rows] for each in self.tables},
        }
        shorter = json.loads(json.dumps(found), parse_float=lambda text: float(f"{float(text):.4g}"))
        (folder / f"{name}.json").write_text(json.dumps(shorter, indent=1) + "\n")
        head = [f"# {self.title}", "", self.conditions(), "", *([extra, ""] if extra else [])]
        text = "\n".join([*head, *(each.text().replace("### ", "## ", 1) for each in self.tables)])
        (folder / f"{name}.md").write_text(text.rstrip() + "\n")


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    info = Path("/proc/cpuinfo").read_text()
    models = [line.partition(":")[2].strip() for line in info.splitlines() if line.startswith("model name")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "platform": platform.platform(),
        "cpu": models[0] if models else platform.machine(),
        "cpus": os.cpu_count(),
        "memory_gb": round(memory / 2**30),
    }


def versions(*packages: str) -> dict[str, str]:
    """The server's, ours, Python's, those of the clients that every benchmark uses, and of the packages named."""
    found = {
        "valkey": Server(module=False).version,
        "emq_native": emq_native.__version__,
        "python": platform.python_version(),
    }
    return found | {package: metadata.version(package) for package in ("redis", "hiredis", *packages)}
