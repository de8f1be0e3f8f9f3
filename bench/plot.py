"""One figure of what a run found: a panel for each question whose tables are there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from bench.common import Report
from bench.load import PIPELINE, WAYS

OURS, SCRIPTED, FLOOR, EDGE = "#1f6fb4", "#e08a1e", "#8a8f98", "#555b66"
BY = {"native": OURS, "scripted": SCRIPTED, "core": FLOOR, "multi": "#c9ccd1", "ping": "#ffffff"}
ACROSS = 2

Panel = Callable[[Axes, list[Any]], None]
PLAIN = FuncFormatter(lambda value, _: f"{value:,.3g}" if value < 1_000 else f"{value:,.0f}")


def draw(report: Report, path: Path) -> None:
    """Write a PNG. Of tables without a panel there is none."""
    rows = {table.name: list(table.rows) for table in report.tables}
    panels: list[tuple[Panel, list[Any]]] = []
    if "transitions" in rows:
        panels += [(lives, [row for row in rows["transitions"] if row.aof == aof]) for aof in ("no", "yes")]
    panels += [(panel, rows[name]) for name, panel in PANELS.items() if name in rows]
    if not panels:
        return
    across = min(ACROSS, len(panels))
    down = -(-len(panels) // across)
    figure = Figure(figsize=(7.5 * across, 4.8 * down), layout="constrained")
    for (panel, some), axes in zip(panels, figure.subplots(down, across, squeeze=False).flat, strict=False):
        panel(axes, some)
        axes.spines[["top", "right"]].set_visible(False)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_minor_formatter(NullFormatter())
    for axes in figure.axes[len(panels) :]:
        axes.set_visible(False)
    load = f"load average {report.load[0]} before and {report.load[-1]} after"
    figure.suptitle(f"emq-native on Valkey {report.versions['valkey']}, {report.at[:10]}, {report.size} size, {load}")
    figure.savefig(path, dpi=100)


def lives(axes: Axes, rows: list[Any]) -> None:
    width = 0.84 / len(BY)
    for at, (name, color) in enumerate(BY.items()):
        some = [row for row in rows if row.by == name and row.payload == 100]
        places = [number + (at - (len(BY) - 1) / 2) * width for number in range(len(some))]
        costs = [row.life_us for row in some]
        axes.bar(places, costs, width * 0.92, color=color, edgecolor=EDGE, linewidth=0.5, label=name)
        for place, cost in zip(places, costs, strict=True):
            axes.text(place, cost, f"{cost:.3g}", ha="center", va="bottom", fontsize=7)
    axes.set_yscale("log")
    axes.set_ylim(1)
    axes.yaxis.set_major_formatter(PLAIN)
    axes.set_xticks(range(len(WAYS)), [way.name for way in WAYS])
    axes.legend(frameon=False, fontsize=8)
    told = "no persistence" if rows[0].aof == "no" else "append-only file, everysec"
    axes.set_title(f"Server CPU of a job's life, us: {told}\n(enqueue, claim and complete; 100 bytes)", fontsize=10)


def flat(axes: Axes, rows: list[Any]) -> None:
    for what, mark in (("backlog", "o"), ("in flight", "s")):
        levels = [row for row in rows if row.what == what and row.way == PIPELINE.name]
        numbers = [level.number for level in levels]
        axes.plot(numbers, [level.native_us for level in levels], mark + "-", color=OURS, label=f"native, {what}")
        axes.plot(numbers, [level.core_us for level in levels], mark + "--", color=FLOOR, label=f"core, {what}")
    axes.set_xscale("log")
    axes.set_ylim(0)
    axes.xaxis.set_major_formatter(PLAIN)
    axes.legend(frameon=False, fontsize=8)
    axes.set_title("Server CPU of a life, us, with so many jobs\nwaiting or in flight (pipelined)", fontsize=10)


def waiters(axes: Axes, rows: list[Any]) -> None:
    for name, color, style in (("EMQ.NEXT", OURS, "o-"), ("BLPOP", SCRIPTED, "o-"), ("PING", FLOOR, "o--")):
        some = [row for row in rows if row.waits_by == name]
        axes.plot([row.waiters for row in some], [row.us for row in some], style, color=color, label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(PLAIN)
    axes.yaxis.set_major_formatter(PLAIN)
    axes.legend(frameon=False, fontsize=8)
    axes.set_title("Server CPU of a wake, us, with so many waiters\n(PING: a connection that was silent)", fontsize=10)


def lateness(axes: Axes, rows: list[Any]) -> None:
    names = [f"{row.waiter}, {row.executor}\n{row.what}" for row in rows]
    colors = [{"native": OURS, "scripted": SCRIPTED}.get(row.executor, FLOOR) for row in rows]
    axes.barh(names, [row.p99_ms for row in rows], 0.7, color=colors, alpha=0.35)
    axes.barh(names, [row.p50_ms for row in rows], 0.4, color=colors)
    for number, row in enumerate(rows):
        axes.text(row.p99_ms, number, f" {row.p50_ms:.3g} / {row.p99_ms:.3g}", va="center", fontsize=7)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlim(0.02, max(row.p99_ms for row in rows) * 20)
    axes.xaxis.set_major_formatter(PLAIN)
    axes.tick_params(axis="y", labelsize=7)
    axes.set_title("How late an idle worker has its job, ms\n(p50 in p99)", fontsize=10)


def memory(axes: Axes, rows: list[Any]) -> None:
    limits = sorted({row.limit for row in rows})
    payloads = sorted({row.payload for row in rows})
    width = 0.8 / len(limits)
    for at, limit in enumerate(limits):
        some = [row for row in rows if row.limit == limit]
        places = [payloads.index(row.payload) + (at - (len(limits) - 1) / 2) * width for row in some]
        shade = 0.25 + 0.75 * at / max(1, len(limits) - 1)
        label = f"{limit:,}" + (" (shipped)" if some[0].shipped else "")
        axes.bar(places, [row.over for row in some], width * 0.92, color=OURS, alpha=shade, label=label)
    axes.axhline(220, color=EDGE, linewidth=0.8, linestyle=":")
    axes.set_xticks(range(len(payloads)), [f"{payload:,} bytes" for payload in payloads])
    axes.set_ylim(0, max(row.over for row in rows) * 1.3)
    axes.legend(frameon=False, fontsize=8, title="hash-max-listpack-value", title_fontsize=8, loc="upper left", ncols=3)
    axes.set_title("Memory of a waiting job beyond its payload, bytes\n(dotted: the target)", fontsize=10)


def workers(axes: Axes, rows: list[Any]) -> None:
    names = [f"{row.worker}, {row.executor}\n{'one by one' if row.batch == 1 else 'by the hundred'}" for row in rows]
    colors = [{"native": OURS, "scripted": SCRIPTED}.get(row.executor, FLOOR) for row in rows]
    axes.barh(names, [row.whole for row in rows], 0.7, color=colors)
    for number, row in enumerate(rows):
        axes.text(row.whole, number, f" {row.whole:,.0f} ({row.ratio:.2f})", va="center", fontsize=7)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlim(right=max(row.whole for row in rows) * 8)
    axes.xaxis.set_major_formatter(PLAIN)
    axes.tick_params(axis="y", labelsize=7)
    axes.set_title("One Python process end to end, jobs per second\n(ratio to the list loop one by one)", fontsize=10)


def fleets(axes: Axes, rows: list[Any]) -> None:
    names = [
        f"{row.processes} process{'es' * (row.processes > 1)}\n{'one by one' if row.batch == 1 else 'by the hundred'}"
        for row in rows
    ]
    axes.barh(names, [row.worked for row in rows], 0.7, color=OURS)
    for number, row in enumerate(rows):
        axes.text(row.worked, number, f" {row.worked:,.0f}", va="center", fontsize=7)
    axes.invert_yaxis()
    axes.set_xlim(0, max(row.worked for row in rows) * 1.15)
    axes.xaxis.set_major_formatter(PLAIN)
    axes.tick_params(axis="y", labelsize=7)
    axes.set_title("Worker processes, jobs per second worked off", fontsize=10)


PANELS: dict[str, Panel] = {
    "flat": flat,
    "waiters": waiters,
    "lateness": lateness,
    "memory": memory,
    "workers": workers,
    "fleets": fleets,
}
