"""Commands about the lanes of a queue: the groups whose jobs are served in turn."""

from __future__ import annotations

import click

from emq_native.cli.console import Family, as_json, node_option, url_option
from emq_native.cli.jobs import PAGE, confirm, json_option, opened, queue_argument, table, until_zero, yes_option
from emq_native.overview import lanes_in

lane_argument = click.argument("lane")


@click.group(cls=Family, short_help="List, limit, weigh, pause, resume, drain lanes.")
@url_option
def lanes(url: str | None) -> None:
    """List the lanes of a queue; limit, weigh, pause, resume or drain one."""


@lanes.command("ls")
@queue_argument
@json_option
@node_option
def list_lanes(url: str, queue: str, json_wanted: bool) -> None:
    """List the lanes that hold jobs or have a setting."""
    with opened(url) as bus:
        found = lanes_in(bus, queue)
    if json_wanted:
        as_json([each._asdict() for each in found])
        return
    rows = []
    for each in found:
        name = f"{each.group} (paused)" if each.paused else each.group
        rows.append((name, str(each.pending), str(each.active), str(each.limit or "-"), str(each.weight)))
    table(f"lanes of {queue}", ("lane", "pending", "active", "limit", "weight"), rows)


@lanes.command()
@queue_argument
@lane_argument
@click.argument("most", type=int)
@node_option
def limit(url: str, queue: str, lane: str, most: int) -> None:
    """Let at most so many jobs of a lane run at a time; 0: as many as there are. Running jobs go on."""
    with opened(url) as bus:
        bus.queue(queue).limit_group(lane, most)
    click.echo(f"{lane} of {queue}: " + (f"at most {most} jobs run at a time" if most else "no limit"))


@lanes.command()
@queue_argument
@lane_argument
@click.argument("jobs", type=int)
@node_option
def weight(url: str, queue: str, lane: str, jobs: int) -> None:
    """Let a weighted claim take so many jobs of a lane in its turn; 0: one, as without a weight."""
    with opened(url) as bus:
        bus.queue(queue).weigh_group(lane, jobs)
    click.echo(f"{lane} of {queue}: {jobs or 1} a turn")


@lanes.command()
@queue_argument
@lane_argument
@node_option
def pause(url: str, queue: str, lane: str) -> None:
    """Stop claims from a lane. Everything else goes on."""
    with opened(url) as bus:
        bus.queue(queue).pause_group(lane)
    click.echo(f"{lane} of {queue} is paused")


@lanes.command()
@queue_argument
@lane_argument
@node_option
def resume(url: str, queue: str, lane: str) -> None:
    """Let claims from a lane go on."""
    with opened(url) as bus:
        bus.queue(queue).resume_group(lane)
    click.echo(f"{lane} of {queue} goes on")


@lanes.command()
@queue_argument
@lane_argument
@yes_option
@node_option
def drain(url: str, queue: str, lane: str, yes: bool) -> None:
    """Delete the waiting jobs of a lane."""
    with opened(url) as bus:
        at = bus.queue(queue)
        ((_, total, _),) = at.group_counts(lane)
        confirm(yes, f"Delete up to {total} jobs of the lane {lane} of {queue}?")
        deleted = until_zero("drain", total, lambda: at.drain_group(lane, PAGE))
    click.echo(f"{deleted} jobs deleted")
