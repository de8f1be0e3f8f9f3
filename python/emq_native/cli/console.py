"""What the commands share: the node's URL, and output for people on a terminal and for programs elsewhere."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

import click
from click.core import ParameterSource
from rich.console import Console
from rich.table import Table

URL_VARIABLE: Final = "EMQ_URL"

Command = TypeVar("Command", bound=Callable[..., Any])


def node_url(command: Command) -> Command:
    """Give a command the parameter `url`, from its argument, --url, or $EMQ_URL, in this order."""

    @click.argument("address", metavar="[URL]", required=False)
    @click.option("--url", metavar="URL", envvar=URL_VARIABLE, help=f"The node, also by ${URL_VARIABLE}.")
    @click.pass_context
    @functools.wraps(command)
    def with_url(context: click.Context, /, address: str | None, url: str | None, **values: Any) -> Any:
        given_twice = context.get_parameter_source("url") is ParameterSource.COMMANDLINE and address not in (None, url)
        if given_twice:
            raise click.UsageError("two URLs: as argument and by --url")
        chosen = address or url
        if not chosen:
            raise click.UsageError(f"which node? Give its URL as argument, by --url, or in ${URL_VARIABLE}")
        return command(url=chosen, **values)

    return with_url  # type: ignore[return-value]


def queue_option(command: Command) -> Command:
    """The option --queue: in cluster mode every queue has a fence of its own."""
    return click.option("--queue", metavar="NAME", help="The queue whose fence is meant; only in cluster mode.")(
        command
    )


def facts(title: str, rows: Iterable[tuple[str, str]]) -> None:
    """Names and values: a table on a terminal, `name: value` lines elsewhere."""
    if not sys.stdout.isatty():
        for name, value in rows:
            click.echo(f"{name}: {value}")
        return
    table = Table(title=title, title_justify="left", show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, value)
    Console(highlight=False, markup=False).print(table)


def as_json(value: Any) -> None:
    """One JSON document on standard output."""
    click.echo(json.dumps(value, indent=2))


def warn(text: str) -> None:
    """A warning on standard error; it changes no exit code."""
    click.echo(click.style(f"warning: {text}", fg="yellow"), err=True)
