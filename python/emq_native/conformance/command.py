# SPDX-License-Identifier: BSD-3-Clause
"""`emq-native conformance`: the cases of the contract against any node, for people and for CI."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import click

from ..cli.console import url_argument, url_of, url_option
from ..executors import NATIVE, SCRIPTED
from . import CASES, Outcome, Report, Result, run
from .host import CONFIG, OwnServer
from .wire import WireLost

EXECUTORS = {"native": NATIVE, "scripted": SCRIPTED}
NO_VERDICT = 3
"""Exit code when no case could be run: the node cannot be reached, lacks the module, or names no executor."""


@click.command(short_help="Run the cases of the contract against a node.")
@url_argument
@url_option
@click.option("--executor", type=click.Choice(sorted(EXECUTORS)), help="Default: the one that the fence names.")
@click.option(
    "--only", multiple=True, metavar="CASE", help="A case or a range of them: C043, 43, C043-C050. Repeatable."
)
@click.option("--list", "list_wanted", is_flag=True, help="Only list the cases, by number and title.")
@click.option("--protocol", "protocols", type=click.Choice(["2", "3"]), multiple=True, help="Default: RESP2 and RESP3.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of lines.")
@click.option("--junit", type=click.Path(dir_okay=False, path_type=Path), help="Write a JUnit report to this file too.")
@click.pass_context
def conformance(
    context: click.Context,
    address: str | None,
    url: str | None,
    executor: str | None,
    only: tuple[str, ...],
    list_wanted: bool,
    protocols: tuple[str, ...],
    as_json: bool,
    junit: Path | None,
) -> None:
    """Run the conformance cases of the contract against a node; without one, against a server of our own.

    The cases use queues of their own and delete them; nothing else on the node is changed. A case that would need to
    restart or fill the server is run only against a server of our own.

    Exit codes: 0 nothing failed, 1 a case failed, 2 wrong command line, 3 no case could be run.
    """
    url = url_of(context, address)
    chosen = [int(protocol) for protocol in protocols] or [2, 3]
    numbers = [number for words in only for number in _numbers(words)]
    if list_wanted:
        for number in numbers or sorted(CASES):
            click.echo(f"{number}  {CASES[number].title}")
        return

    def show(result: Result) -> None:
        if not as_json:
            _line(result)

    try:
        report = (
            _on_own_server(executor or "native", numbers, chosen, show)
            if url is None
            else run(url, EXECUTORS[executor] if executor else None, only=numbers, protocols=chosen, each=show)
        )
    except (ValueError, WireLost, OSError) as error:
        click.echo(f"emq-native: cannot run: {error}", err=True)
        sys.exit(NO_VERDICT)
    if as_json:
        click.echo(json.dumps(document(report), indent=2))
    else:
        click.echo(summary(report))
    if junit is not None:
        junit.write_text(xml(report), encoding="utf-8")
    counts = report.counts()
    if not counts[Outcome.OK] and not counts[Outcome.FAIL]:
        click.echo(f"emq-native: no case could be run{_why_none(report)}", err=True)
        sys.exit(NO_VERDICT)
    sys.exit(0 if report.ok else 1)


def _numbers(words: str) -> list[str]:
    """The cases that C043, C43, 43 or C043-C050 names. Raises click.BadParameter when there is none."""
    ends = [re.fullmatch(r"([CM]?)([0-9]{1,3})", end) for end in words.upper().split("-")]
    full = [f"{end[1] or 'C'}{end[2]:0>3}" for end in ends if end]
    found = [number for number in sorted(CASES) if full[0] <= number <= full[-1]] if full else []
    if not found or len(full) != len(ends) or len(ends) > 2:
        raise click.BadParameter(f"unknown: {words}", param_hint="--only")
    return found


def _why_none(report: Report) -> str:
    if report.counts()[Outcome.NEEDS_OWN_SERVER]:
        return ": a case that restarts, fills or reconfigures its server runs only where no URL is given"
    return f": the {report.executor} executor on this node serves none of them" if report.results else ""


def _on_own_server(executor: str, only: list[str], protocols: list[int], each: Any) -> Report:
    from ..server import Server

    native = executor == "native"
    with Server(module=native, config=CONFIG) as server:
        with server.client() as client:
            client.set("{emq}:version", EXECUTORS[executor].identity)
        host = OwnServer(server, native)
        return run(server.url, EXECUTORS[executor], only=only, protocols=protocols, own_server=host, each=each)


def _line(result: Result) -> None:
    head = f"{result.case.number} {result.outcome.value}"
    tail = f"  resp{result.protocol}  {result.case.title}"
    if result.outcome is Outcome.FAIL:
        click.secho(head + tail, fg="red")
        click.echo(f"     {result.what}\n     expected {result.expected}\n     found    {result.found}")
    elif result.outcome is Outcome.OK:
        click.echo(head + tail)
    else:
        click.secho(f"{head}{f' ({result.what})' if result.what else ''}{tail}", dim=True)


def summary(report: Report) -> str:
    """One line that says how the run ended."""
    counts = report.counts()
    parts = [f"{counts[outcome]} {outcome.value}" for outcome in Outcome if counts[outcome]]
    return f"{report.executor} on Valkey {report.server}: {', '.join(parts) or 'nothing was run'}"


def document(report: Report) -> dict[str, Any]:
    """The report as plain data."""
    return {
        "url": report.url,
        "executor": report.executor,
        "server": report.server,
        "ok": report.ok,
        "counts": {outcome.value: number for outcome, number in report.counts().items()},
        "results": [
            {
                "case": result.case.number,
                "title": result.case.title,
                "protocol": result.protocol,
                "outcome": result.outcome.value,
                "what": result.what,
                "expected": result.expected,
                "found": result.found,
                "seconds": round(result.seconds, 3),
            }
            for result in report.results
        ],
    }


def xml(report: Report) -> str:
    """The report in the form that CI systems read as JUnit's."""
    counts = report.counts()
    skipped = sum(counts.values()) - counts[Outcome.OK] - counts[Outcome.FAIL]
    suite = ET.Element(
        "testsuite",
        name=f"emq-native conformance, {report.executor}",
        tests=str(len(report.results)),
        failures=str(counts[Outcome.FAIL]),
        skipped=str(skipped),
        errors="0",
    )
    for result in report.results:
        test = ET.SubElement(
            suite,
            "testcase",
            classname=f"conformance.{report.executor}.resp{result.protocol}",
            name=f"{result.case.number} {result.case.title}",
            time=f"{result.seconds:.3f}",
        )
        if result.outcome is Outcome.FAIL:
            failure = ET.SubElement(test, "failure", message=_printable(result.what))
            failure.text = _printable(f"expected {result.expected}\nfound    {result.found}")
        elif result.outcome is not Outcome.OK:
            ET.SubElement(test, "skipped", message=_printable(f"{result.outcome.value} {result.what}".strip()))
    return ET.tostring(suite, encoding="unicode", xml_declaration=True)


def _printable(text: str) -> str:
    """XML has no way to write most control characters."""
    return "".join(character if character.isprintable() or character in "\n\t" else "?" for character in text)
