"""The command `doctor`: what is wrong with a node, and how to mend it."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Final

import click

from emq_native.cli import Failure, NoVerdict, plain
from emq_native.cli.console import as_json, node_url, tell
from emq_native.doctor import Examination, examine

COLOURS: Final = {"ok": "green", "warn": "yellow", "fail": "red", "open": "blue"}


@click.command(short_help="Say what is wrong with a node, and what mends it.")
@node_url
@click.option("--queue", "queues", metavar="NAME", multiple=True, help="Look at this queue only. Repeatable.")
@click.option("--user", metavar="NAME", help="Try the rights of this user instead of one's own.")
@click.option("--strict", is_flag=True, help="Exit 1 for a warning too.")
@click.option("--json", "json_wanted", is_flag=True, help="One JSON document.")
def doctor(url: str, queues: tuple[str, ...], user: str | None, strict: bool, json_wanted: bool) -> None:
    """Examine a node, or every primary of a cluster: ok, warn or fail, with the command that mends it. Changes nothing.

    `open` is a question that this user may not ask.

    Exit codes: 0 nothing failed, 1 something did, or with --strict gave a warning, 2 wrong command line, 3 the node
    does not answer, is loading, or does not know the user.
    """
    found = examine(url, queues=queues, user=user)
    bad = found.verdict == "fail" or (strict and found.verdict == "warn")
    if json_wanted:
        as_json({**asdict(found), "verdict": None if found.error else found.verdict})
    elif not found.error:
        _show(found)
    if found.error:
        raise NoVerdict(f"{found.address}: {found.error}: {found.detail}")
    if bad:
        raise Failure(f"{found.address}: {_counted(found)}")


def _show(found: Examination) -> None:
    width = max(len(finding.check) for finding in found.findings)
    node = None
    for finding in found.findings:
        if finding.node != node:
            node = finding.node
            click.echo(click.style(f"{node}", bold=True))
        verdict = click.style(f"{finding.verdict:<5}", fg=COLOURS[finding.verdict])
        click.echo(f"{verdict} {finding.check:<{width}}  {plain(finding.text)}")
        if finding.fix:
            tell(f"      {'':<{width}}  > {finding.fix}")
    if any(finding.fix and "CONFIG SET" in finding.fix for finding in found.findings):
        click.echo("CONFIG SET lasts until a restart; CONFIG REWRITE keeps it.")


def _counted(found: Examination) -> str:
    numbers = Counter(finding.verdict for finding in found.findings)
    return ", ".join(f"{number} {verdict}" for verdict, number in sorted(numbers.items()))
