"""A live view of the queues of a node."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator

import click
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table

from emq_native.cli.console import node_url
from emq_native.cli.jobs import age, opened, rich_table
from emq_native.connector import Bus
from emq_native.overview import Snapshot, queue_names, snapshot

HEADER = ("queue", "pending", "active", "scheduled", "dead", "oldest", "rate")
LANES_SHOWN = 20
NAMES_EVERY = 10
"""The walk over the key space is repeated at every so many looks."""


@click.command(short_help="Watch the queues, live.")
@node_url
@click.option("--queues", "chosen", metavar="A,B", help="Only these.")
@click.option("--interval", type=click.FloatRange(0.1, 3600), default=1.0, show_default=True, help="Seconds.")
@click.option("--count", type=click.IntRange(1), help="End after so many looks.")
@click.option("--json", "json_wanted", is_flag=True, help="A line of JSON per look; so too without a terminal.")
def top(url: str, chosen: str | None, interval: float, count: int | None, json_wanted: bool) -> None:
    """Watch the queues: jobs pending, active, scheduled and dead, the oldest one, jobs per second, lanes.

    The rate counts jobs that ended, completed or dead. Ends with Ctrl-C.
    """
    names = chosen.split(",") if chosen else None
    with opened(url) as bus:
        looks = _looks(bus, names, interval, count)
        try:
            if json_wanted or not sys.stdout.isatty():
                for look in looks:
                    click.echo(json.dumps([{**each.as_dict(), "rate": rate} for each, rate in look]))
            else:
                with Live(console=Console(highlight=False, markup=False), screen=count is None) as live:
                    for look in looks:
                        live.update(_picture(look), refresh=True)
        except KeyboardInterrupt:
            pass


def _looks(
    bus: Bus, names: list[str] | None, interval: float, count: int | None
) -> Iterator[list[tuple[Snapshot, float | None]]]:
    """The queues, each with its rate since the look before."""
    known: list[str] = []
    before: dict[str, tuple[float, int]] = {}
    number = 0
    while True:
        if number % NAMES_EVERY == 0:
            known = names or queue_names(bus)
        look = []
        for name in known:
            now, found = time.monotonic(), snapshot(bus, name)
            ended = found.counts.completed + found.counts.failed
            then = before.get(name)
            look.append((found, None if then is None else max(0, ended - then[1]) / (now - then[0])))
            before[name] = (now, ended)
        yield look
        number += 1
        if number == count:
            return
        time.sleep(interval)


def _picture(look: list[tuple[Snapshot, float | None]]) -> Group:
    rows, lanes = [], []
    for each, rate in look:
        c = each.counts
        name = f"{each.queue} (paused)" if each.paused else each.queue
        numbers = (str(number) for number in (c.pending, c.active, c.scheduled, c.dead))
        rows.append((name, *numbers, age(each.oldest), "-" if rate is None else f"{rate:.1f}/s"))
        lanes += [(each.queue, *group) for group in each.groups]
    lanes.sort(key=lambda lane: -lane[2])
    shown: list[Table] = [rich_table("queues", HEADER, rows)]
    if lanes:
        texts = [(queue, group, str(pending), str(active)) for queue, group, pending, active in lanes[:LANES_SHOWN]]
        shown.append(rich_table("fullest lanes", ("queue", "lane", "pending", "active"), texts))
    return Group(*shown)
