"""Commands about queues and the jobs in them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import astuple
from datetime import datetime, timezone
from typing import Any, Final, Literal

import click
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from emq_native import transitions as t
from emq_native.cli import Failure, plain
from emq_native.cli.console import Family, as_json, needed_url, node_option, tell, url_option
from emq_native.connector import Bus, connect
from emq_native.errors import EmqError, JobLocked, WrongState
from emq_native.ids import JobId
from emq_native.overview import PLACES, Listed, jobs_in, queue_names, snapshot
from emq_native.session import Session, is_clustered

PAGE: Final = 500
WIDEST_PAYLOAD: Final = 60

STATES: Final = tuple(PLACES)
NUMBERS: Final = {*STATES, "completed", "failed", "oldest", "runs", "rate"}
RARE: Final = {"awaiting_children"}
"""Columns that are on a terminal only where they have something to say."""

WHOLE: Final = (NUMBERS - RARE) | {"id", "state"}
"""Columns that a narrow terminal does not fold."""

json_option = click.option("--json", "json_wanted", is_flag=True, help="One JSON document.")
yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask.")
queue_argument = click.argument("queue")


@contextmanager
def opened(url: str) -> Iterator[Bus]:
    """A bus to a node, or to the cluster that it is of."""
    with Session(url) as session:
        cluster = is_clustered(session)
    with connect(url, cluster=cluster) as bus:
        yield bus


# Queues


@click.group(
    cls=Family,
    invoke_without_command=True,
    subcommand_metavar="[URL] [COMMAND [ARGS]...]",
    short_help="List, pause, resume, drain, obliterate queues.",
)
@url_option
@json_option
@click.pass_context
def queues(context: click.Context, url: str | None, json_wanted: bool) -> None:
    """List the queues of a node with their numbers; or pause, resume, drain, obliterate one."""
    if context.invoked_subcommand is not None:
        return
    with opened(needed_url(context)) as bus:
        found = [snapshot(bus, name) for name in queue_names(bus)]
    if json_wanted:
        as_json([each.as_dict() for each in found])
        return
    header = ("queue", *STATES, "completed", "failed", "oldest")
    rows = []
    for each in found:
        c = each.counts
        name = f"{each.queue} (paused)" if each.paused else each.queue
        numbers = (*(getattr(c, state) for state in STATES), c.completed, c.failed)
        rows.append((name, *map(str, numbers), age(each.oldest)))
    table("queues", header, rows)


@queues.command()
@queue_argument
@node_option
def pause(url: str, queue: str) -> None:
    """Stop claims. Everything else goes on."""
    with opened(url) as bus:
        at = bus.queue(queue)
        at.pause()
        counts = at.counts()
    # A pause ahead of the first job is lawful, and looks the same as one of a name that was mistyped.
    never = "" if any(astuple(counts)) else "; no job was ever there"
    click.echo(f"{queue} is paused: {counts.pending} jobs wait, {counts.active} run{never}")


@queues.command()
@queue_argument
@node_option
def resume(url: str, queue: str) -> None:
    """Let claims go on."""
    with opened(url) as bus:
        at = bus.queue(queue)
        at.resume()
        counts = at.counts()
    click.echo(f"{queue} goes on: {counts.pending} jobs wait, {counts.active} run")


@queues.command()
@queue_argument
@click.option("--scheduled", is_flag=True, help="The scheduled jobs too.")
@yes_option
@node_option
def drain(url: str, queue: str, scheduled: bool, yes: bool) -> None:
    """Delete the waiting jobs without a group."""
    with opened(url) as bus:
        at = bus.queue(queue)
        counts = at.counts()
        total = counts.pending + (counts.scheduled if scheduled else 0)
        confirm(yes, f"Delete up to {total} jobs of {queue}?")
        deleted = until_zero("drain", total, lambda: at.drain(PAGE, scheduled=scheduled))
    click.echo(f"{deleted} jobs deleted")


@queues.command()
@queue_argument
@click.option("--force", is_flag=True, help="Also with active jobs and undelivered flow entries.")
@yes_option
@node_option
def obliterate(url: str, queue: str, force: bool, yes: bool) -> None:
    """Pause a queue and delete it with all its jobs."""
    with opened(url) as bus:
        at = bus.queue(queue)
        counts = at.counts()
        total = counts.pending + counts.active + counts.scheduled + counts.dead + counts.awaiting_children
        confirm(yes, f"Delete the queue {queue} with {total} jobs?")
        at.pause()
        with progress("obliterate", total) as advance:
            while not at.obliterate(PAGE, force=force):
                advance(PAGE)
    click.echo(f"{queue} is gone")


# Jobs


@click.group(cls=Family)
@url_option
def jobs(url: str | None) -> None:
    """List, add, show, retry and remove jobs."""


@jobs.command("ls")
@queue_argument
@click.option("--state", "states", type=click.Choice(STATES), multiple=True, help="Only these; repeatable.")
@click.option("--limit", type=click.IntRange(1, 100_000), default=50, show_default=True, help="Most of each state.")
@json_option
@node_option
def list_jobs(url: str, queue: str, states: tuple[str, ...], limit: int, json_wanted: bool) -> None:
    """List jobs, state by state."""
    with opened(url) as bus:
        show_list(f"jobs of {queue}", jobs_in(bus, queue, states or STATES, limit), json_wanted)


@jobs.command()
@queue_argument
@click.argument("payload")
@click.option("--in", "delay", type=click.FloatRange(0), metavar="SECONDS", help="Due so much later; without a group.")
@click.option("--group", metavar="NAME", help="The lane to wait in.")
@click.option("--id", "job_id", metavar="JOB_ID", help="An id of one's own, instead of a new one.")
@node_option
def add(url: str, queue: str, payload: str, delay: float | None, group: str | None, job_id: str | None) -> None:
    """Enqueue a job and print its id. PAYLOAD is its text, or - for what standard input has.

    Of a task it is {"task": "shop.resize", "args": ["cat.png"], "kwargs": {"width": 200}}.
    """
    if delay is not None and group is not None:
        raise click.UsageError("a job that is due later cannot have a group")
    body = sys.stdin.buffer.read() if payload == "-" else os.fsencode(payload)
    with opened(url) as bus:
        at = bus.queue(queue)
        job = at.enqueue(body, group=group, id=job_id) if delay is None else at.enqueue_in(body, delay, id=job_id)
    if not job.created:
        raise Failure(f"there is a job {job} in {queue} already")
    click.echo(job)


@jobs.command()
@queue_argument
@click.argument("job_id")
@json_option
@node_option
def show(url: str, queue: str, job_id: str, json_wanted: bool) -> None:
    """Show all that is known about a job."""
    with opened(url) as bus:
        at = bus.queue(queue)
        state, fields = at.pipeline([t.Where(job_id), t.Peek(job_id)])
        for answer in (state, fields):
            if isinstance(answer, EmqError):
                raise answer
        if fields is None:
            raise Failure(f"there is no job {job_id} in {queue}")
        (lines,) = bus.plain(at, (b"LRANGE", at.key + b":job:" + job_id.encode() + b":logs", b"0", b"-1"))
    logs = [line.decode("utf-8", "backslashreplace") for line in lines] if isinstance(lines, list) else []
    shown = {name: value.decode("utf-8", "backslashreplace") for name, value in fields.items()}
    minted = JobId(job_id).datetime.isoformat()
    if json_wanted:
        as_json({"id": job_id, "queue": queue, "place": state, "minted": minted, **shown, "logs": logs})
        return
    for name, value in {"id": job_id, "place": state, "minted": minted, **shown}.items():
        tell(f"{name}: {value}")
    for line in logs:
        tell(f"log: {line}")


@jobs.command()
@queue_argument
@click.argument("job_id")
@node_option
def retry(url: str, queue: str, job_id: str) -> None:
    """Let a dead job wait again, with as many runs as a new one."""
    with opened(url) as bus:
        if not bus.queue(queue).reprocess(job_id):
            raise Failure(f"there is no job {job_id} in {queue}")
    click.echo(job_id)


@jobs.command()
@queue_argument
@click.argument("job_ids", metavar="JOB_ID...", nargs=-1, required=True)
@click.option("--force", is_flag=True, help="Also when it is active or locked.")
@node_option
def remove(url: str, queue: str, job_ids: tuple[str, ...], force: bool) -> None:
    """Delete jobs, wherever they are."""
    with opened(url) as bus:
        at, missing = bus.queue(queue), []
        for job_id in job_ids:
            try:
                if not at.remove(job_id, force=force):
                    missing.append(job_id)
            except JobLocked as error:
                raise Failure(f"{job_id}: {error}; --force deletes it all the same") from error
    if missing:
        raise Failure(f"not in {queue}: {', '.join(missing)}")


# Dead jobs


@click.group(cls=Family)
@url_option
def dead(url: str | None) -> None:
    """List and replay dead jobs."""


@dead.command("ls")
@queue_argument
@click.option("--limit", type=click.IntRange(1, 100_000), default=50, show_default=True)
@json_option
@node_option
def list_dead(url: str, queue: str, limit: int, json_wanted: bool) -> None:
    """List the dead jobs of a queue with their errors."""
    with opened(url) as bus:
        show_list(f"dead jobs of {queue}", jobs_in(bus, queue, ("dead",), limit), json_wanted)


@dead.command(short_help="Let dead jobs wait again.")
@queue_argument
@click.argument("job_ids", metavar="[JOB_ID...]", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All that are dead now.")
@json_option
@node_option
def replay(url: str, queue: str, job_ids: tuple[str, ...], everything: bool, json_wanted: bool) -> None:
    """Let dead jobs wait again, the named ones or all, with as many runs as new ones."""
    if bool(job_ids) is everything:
        raise click.UsageError("name jobs, or say --all")
    with opened(url) as bus:
        at = bus.queue(queue)
        if everything:
            total = at.counts().dead
            (members,) = bus.plain(at, (b"ZRANGE", at.key + b":dead", b"0", b"-1"))
            if isinstance(members, EmqError):
                raise members
            job_ids = tuple(member.decode() for member in members)
        else:
            total = len(job_ids)
        replayed, left = 0, []
        with progress("replay", total) as advance:
            for first in range(0, len(job_ids), PAGE):
                part = job_ids[first : first + PAGE]
                answers = at.pipeline(t.Reprocess(job_id) for job_id in part)
                for job_id, answer in zip(part, answers, strict=True):
                    if isinstance(answer, EmqError) and not isinstance(answer, WrongState):
                        raise answer
                    if answer is not True:
                        left.append(job_id)
                replayed += sum(answer is True for answer in answers)
                advance(len(part))
    if json_wanted:
        as_json({"replayed": replayed, "not_dead": left})
    else:
        click.echo(f"{replayed} jobs wait again")
    if left and not everything:
        raise Failure(f"not dead: {', '.join(left)}")


# What they share


def confirm(yes: bool, question: str) -> None:
    """Ask on a terminal; elsewhere, --yes is required."""
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("say --yes where nobody can be asked")
        click.confirm(question, abort=True)


@contextmanager
def progress(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on standard error, when that is a terminal. Yields what moves it on."""
    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda done: bar.advance(task, done)


def until_zero(title: str, total: int, step: Callable[[], int]) -> int:
    """Repeat a step with a bar until it does nothing more. Returns how much it did."""
    done = 0
    with progress(title, total) as advance:
        while count := step():
            done += count
            advance(count)
    return done


def show_list(title: str, found: Iterable[Listed], json_wanted: bool) -> None:
    """Jobs as a table, as lines, or as JSON."""
    if json_wanted:
        as_json([each.as_dict() for each in found])
        return
    rows = []
    for each in found:
        payload = each.fields.get("payload", b"").decode("utf-8", "backslashreplace")
        payload = payload if len(payload) <= WIDEST_PAYLOAD else payload[: WIDEST_PAYLOAD - 3] + "..."
        attempts = each.fields.get("attempts", b"").decode()
        group = each.fields.get("group", b"").decode("utf-8", "backslashreplace")
        rows.append((str(each.id), each.place, when(each), attempts, group, payload, each.error))
    table(title, ("id", "state", "minted, due or leased until", "runs", "group", "payload", "error"), rows)


def when(job: Listed) -> str:
    """The time that matters about a listed job."""
    moment = job.id.datetime if job.score is None else datetime.fromtimestamp(job.score / 1000, timezone.utc)
    return moment.isoformat(sep=" ", timespec="seconds")


def age(seconds: float | None) -> str:
    """Seconds as people say them."""
    if seconds is None:
        return "-"
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"


def table(title: str, header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    """A table on a terminal, lines with tabs elsewhere."""
    if not sys.stdout.isatty():
        for row in (header, *rows):
            tell("\t".join(cell.replace("\t", " ").replace("\n", " ") for cell in row))
        return
    Console(highlight=False, markup=False).print(rich_table(title, header, rows))


def rich_table(title: str, header: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> Table:
    """The table of a terminal: numbers to the right, and 80 columns leave room for the name of a queue."""
    made = Table(
        title=title, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 0)
    )
    cells = [[plain(cell) for cell in row] for row in rows]
    shown = [at for at, name in enumerate(header) if name not in RARE or any(row[at] != "0" for row in cells)]
    for name in (header[at] for at in shown):
        justify: Literal["left", "right"] = "right" if name in NUMBERS else "left"
        made.add_column(name, justify=justify, overflow="fold", no_wrap=name in WHOLE)
    for row in cells:
        made.add_row(*(row[at] for at in shown))
    return made
