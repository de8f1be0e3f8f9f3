"""What was aimed at, and what this run found.

Every measured value is computed from the rows of the run. Ratios are medians of the ratios within each round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from bench.common import Table, ratio
from bench.load import ALONE, BATCHES, PIPELINE

NOTE = """\
`floor` is what the plain commands of the effects reach by themselves in the same run, without checks and look-ups; for
the wake of many, what a PING does. `met` and `missed` say nothing about a run of smoke size."""

COLUMNS = {"target": "", "what": "", "aim": "", "measured": ".3g", "floor": ".3g", "verdict": ""}

Rows = Mapping[str, list[Any]]


@dataclass
class Judgement:
    """target: its number in the list of targets. floor: None where there is none."""

    target: str
    what: str
    aim: str
    measured: float
    floor: float | None
    verdict: str


def at_most(aim: float, target: str, what: str, measured: float, floor: float | None = None) -> Judgement:
    return Judgement(target, what, f"<= {aim:g}", measured, floor, "met" if measured <= aim else "missed")


def at_least(aim: float, target: str, what: str, measured: float, floor: float | None = None) -> Judgement:
    return Judgement(target, what, f">= {aim:g}", measured, floor, "met" if measured >= aim else "missed")


def judge(tables: list[Table]) -> Table:
    """One table, `verdict`, on the targets for which there are rows."""
    rows: Rows = {table.name: list(table.rows) for table in tables}
    found = [judgement for name, judges in JUDGES.items() if rows.get(name) for judgement in judges(rows[name])]
    return Table("verdict", "What was aimed at", NOTE, COLUMNS, found)


def pick(rows: list[Any], **fields: object) -> Any:
    """The one row with these fields."""
    (row,) = [row for row in rows if all(getattr(row, name) == value for name, value in fields.items())]
    return row


def transitions(rows: list[Any]) -> Iterator[Judgement]:
    for way in (PIPELINE, ALONE):
        for aof, aim, told in (("no", 0.40, "no persistence"), ("yes", 0.55, "append-only file")):
            native, scripted, core = (
                pick(rows, payload=100, aof=aof, way=way.name, by=name) for name in ("native", "scripted", "core")
            )
            what = f"server CPU of a life, native to scripted, {way.name}, {told}"
            yield at_most(aim, "1", what, native.to_scripted, ratio(core.rounds, scripted.rounds))
    for way in (ALONE, PIPELINE):
        pairs = {
            name: [pick(rows, payload=100, aof="no", way=each.name, by=name).rounds for each in (BATCHES[-1], way)]
            for name in ("native", "core")
        }
        what = f"server CPU of a life, batch of 100 to {way.name}"
        yield at_most(0.6, "3", what, ratio(*pairs["native"]), ratio(*pairs["core"]))


def workers(rows: list[Any]) -> Iterator[Judgement]:
    for batch, speed, cpu, reads in ((1, 1.2, 150, 2), (100, 15, 25, 0.05)):
        row = pick(rows, executor="native", worker="Worker", batch=batch)
        told = "one by one" if batch == 1 else f"batches of {batch}"
        yield at_least(speed, "4", f"Worker to the list loop one by one, {told}", row.ratio)
        yield at_most(cpu, "4", f"Worker, CPU us a job, {told}", row.worker_us)
        yield at_most(reads, "4", f"Worker, socket reads a job, {told}", row.reads)


def lateness(rows: list[Any]) -> Iterator[Judgement]:
    for told, ours, theirs in (
        ("sockets", "socket, EMQ.NEXT", "socket, BLPOP"),
        ("Worker to redis-py", "Worker", "redis-py, BLPOP"),
    ):
        native = pick(rows, executor="native", what="enqueued", waiter=ours)
        blpop = pick(rows, executor="(list)", what="enqueued", waiter=theirs)
        yield at_most(1.3, "5", f"idle wake p50 to BLPOP's, {told}", native.p50_ms / blpop.p50_ms)
    for waiter in ("socket, EMQ.NEXT", "Worker"):
        row = pick(rows, executor="native", what="due", waiter=waiter)
        yield at_most(5, "5", f"lateness of due jobs p99 ms, {waiter}", row.p99_ms)


def flat(rows: list[Any]) -> Iterator[Judgement]:
    for what, way in product(("backlog", "in flight"), (PIPELINE, ALONE)):
        levels = [row for row in rows if row.what == what and row.way == way.name]
        told = f"server CPU of a life, {way.name}, {what} {levels[0].number:,} to {levels[-1].number:,}"
        yield at_most(1.2, "6", told, levels[-1].native_growth, levels[-1].core_growth)


def waiters(rows: list[Any]) -> Iterator[Judgement]:
    ours, silent = ([row for row in rows if row.waits_by == name] for name in ("EMQ.NEXT", "PING"))
    told = f"server CPU of a wake, waiters {ours[0].waiters:,} to {ours[-1].waiters:,}"
    yield at_most(1.2, "6", told, ours[-1].growth, silent[-1].growth)


def memory(rows: list[Any]) -> Iterator[Judgement]:
    for row in rows:
        if row.shipped and row.payload in (100, 10_000):
            yield at_most(220, "7", f"bytes of a waiting job beyond its {row.payload:,} bytes", row.over)


JUDGES: Mapping[str, Callable[[list[Any]], Iterator[Judgement]]] = {
    "transitions": transitions,
    "workers": workers,
    "lateness": lateness,
    "flat": flat,
    "waiters": waiters,
    "memory": memory,
}
