"""What the commands share: the node's URL, and output for people on a terminal and for programs elsewhere."""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

import click
from click.core import ParameterSource
from rich.console import Console
from rich.table import Table

from emq_native.cli import plain
from emq_native.wiring import URL_VARIABLE

ADDRESS: Final = "emq_native.address"

Command = TypeVar("Command", bound=Callable[..., Any])


url_option = click.option("--url", metavar="URL", help=f"The node, also by ${URL_VARIABLE}.")
url_argument = click.argument("address", metavar="[URL]", required=False)


def which_node(*ways: str) -> click.UsageError:
    """The complaint that no node was named, with the ways to name one."""
    return click.UsageError(f"which node? Give its URL {', '.join((*ways, 'by --url'))}, or in ${URL_VARIABLE}")


def url_of(context: click.Context, address: str | None = None) -> str | None:
    """The node that a command line names, as argument or by --url, here or before the subcommand; else $EMQ_URL.

    Raises click.UsageError for two that differ.
    """
    named = set(filter(None, (address, context.meta.get(ADDRESS))))
    for each in filter(None, (context, context.parent)):
        if each.get_parameter_source("url") is ParameterSource.COMMANDLINE:
            named.add(each.params["url"])
    if len(named) > 1:
        raise click.UsageError("two URLs: name one node")
    return next(iter(named), None) or os.environ.get(URL_VARIABLE)


class Family(click.Group):
    """Commands about one thing. The node may be named by an argument before the name of the command, too."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        before = ""
        for place, word in enumerate(args):
            if not word.startswith("-") and before != "--url":
                if "://" in word:
                    ctx.meta[ADDRESS] = word
                    args = [*args[:place], *args[place + 1 :]]
                break
            before = word
        return super().parse_args(ctx, args)


def needed_url(context: click.Context, address: str | None = None) -> str:
    """As `url_of`; raises click.UsageError for none, too."""
    url = url_of(context, address)
    if not url:
        raise which_node(*(["as argument"] if "address" in context.params else []))
    return url


def node_url(command: Command) -> Command:
    """Give a command the parameter `url`, from its argument, --url, or $EMQ_URL."""

    @url_argument
    @url_option
    @click.pass_context
    @functools.wraps(command)
    def with_url(context: click.Context, /, address: str | None, url: str | None, **values: Any) -> Any:
        return command(url=needed_url(context, address), **values)

    return with_url  # type: ignore[return-value]


def node_option(command: Command) -> Command:
    """Give a command with other arguments the parameter `url`, from --url, here or before its name, or $EMQ_URL."""

    @url_option
    @click.pass_context
    @functools.wraps(command)
    def with_url(context: click.Context, /, url: str | None, **values: Any) -> Any:
        return command(url=needed_url(context), **values)

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
            tell(f"{name}: {value}")
        return
    table = Table(title=title, title_justify="left", show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, plain(value))
    Console(highlight=False, markup=False).print(table)


def tell(text: str) -> None:
    """A text on standard output that others may have written."""
    click.echo(plain(text))


def as_json(value: Any) -> None:
    """One JSON document on standard output."""
    click.echo(json.dumps(value, indent=2))


def warn(text: str) -> None:
    """A warning on standard error; it changes no exit code."""
    click.echo(click.style(f"warning: {plain(text)}", fg="yellow"), err=True)
