"""Commands about one node: what it is, and the module that it loads."""

from __future__ import annotations

import re

import click

from emq_native import paths
from emq_native.cli import Failure, NoVerdict, WrongCall
from emq_native.cli.console import as_json, facts, node_url, queue_option, warn
from emq_native.errors import AlreadyLoaded
from emq_native.load import load as load_module
from emq_native.probe import Probe
from emq_native.probe import probe as ask


@click.command("module-path", short_help="Print the path of emq.so.")
def module_path() -> None:
    """Print the absolute path of emq.so, for `loadmodule` in valkey.conf."""
    click.echo(paths.module_path())


def _capability(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        if not re.fullmatch(r"[a-z]+\.[a-z]+(/[1-9][0-9]*)?", value):
            raise click.BadParameter(f"{value!r} is no capability such as emq.claim/1, or emq.claim for any revision")
    return values


@click.command(short_help="Tell what a node is and what it serves.")
@node_url
@queue_option
@click.option(
    "--require",
    "required",
    metavar="VERB/REVISION",
    multiple=True,
    callback=_capability,
    help="Exit 1 unless this is served, on every primary of a cluster; for example emq.claim/1. Repeatable.",
)
@click.option("--require-wire", type=click.Choice(["4", "6"]), help="Exit 1 unless jobs can run on this wire now.")
@click.option("--verbose", "-v", is_flag=True, help="Name every verb that is served.")
@click.option("--json", "json_wanted", is_flag=True, help="One JSON document, with every verb.")
def probe(
    url: str,
    queue: str | None,
    required: tuple[str, ...],
    require_wire: str | None,
    verbose: bool,
    json_wanted: bool,
) -> None:
    """Tell what a node is, whether the module is loaded, who may write, and what endangers jobs.

    Exit codes: 0 the node serves and meets the requirements, 1 it does not meet them, 2 wrong command line, 3 it does
    not answer, is loading, or does not know the user.
    """
    found = ask(url, queue=queue)
    if found.error == "InvalidArgument":
        raise WrongCall(found.detail or "")
    missing = found.lacks(required, wire=int(require_wire) if require_wire else None) if found.reachable else ()
    if json_wanted:
        as_json({**found.as_dict(), "missing": list(missing)})
    elif found.reachable:
        _show(found, verbose)
    if not found.reachable:
        raise NoVerdict(f"{found.address}: {found.error}: {found.detail}")
    if missing:
        raise Failure("; ".join(missing))


def _show(found: Probe, verbose: bool) -> None:
    unknown = dict(found.open)

    def or_reason(value: object, name: str) -> str:
        return str(value) if value is not None else f"not told ({unknown.get(name, 'no reason given')})"

    verbs = found.capabilities or ()
    served = " ".join(verbs) if verbose else f"{len(verbs)} verbs served"
    module = found.module if found.module_version is None else f"{found.module}, version {found.module_version}"
    rows = [
        ("node", found.address),
        ("server", or_reason(found.server and f"{found.server} {found.server_version}", "server")),
        ("role", f"{found.role or 'not told'}{', cluster' if found.cluster else ''}"),
        ("module", module),
        ("fence", or_reason(found.fence, "fence")),
        ("wire", str(found.wire or "none")),
        ("eviction", or_reason(found.eviction, "eviction")),
        ("capabilities", or_reason(served if verbs else None, "capabilities")),
    ]
    for primary in found.primaries:
        state = f"module {primary.module}" if primary.reachable else f"{primary.error}: {primary.detail}"
        rows.append((f"primary {primary.address}", state))
    facts("probe", rows)
    for warning in found.warnings:
        warn(warning)


@click.command()
@node_url
@click.option("--path", metavar="FILE", help="emq.so on the server's file system, absolute; else this package's own.")
def load(url: str, path: str | None) -> None:
    """Load the module into a running server by MODULE LOAD.

    Exit codes: 0 it is loaded (now, or the same version was already), 1 the server refused or holds another version, 2
    wrong command line, 3 the node does not answer.
    """
    try:
        click.echo(f"loaded, version {load_module(url, path)}")
    except AlreadyLoaded as found:
        if not found.same:
            raise
        click.echo(str(found))
