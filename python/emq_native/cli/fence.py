"""The commands of the fence: who may write to a node, or, in cluster mode, to a queue."""

from __future__ import annotations

from dataclasses import asdict

import click

from emq_native import provision
from emq_native.cli import Failure
from emq_native.cli.console import as_json, node_url, queue_option, tell, warn

WIRE = click.Choice(["4", "6"])


@click.group(short_help="Show, claim or move the fence of a node.")
def fence() -> None:
    """Show, claim or move the fence: wire 4 is the scripts' (echomq:4.0.0), wire 6 the module's (echomq:6.0.0).

    --queue NAME is required in cluster mode, where each queue has its own fence, and refused otherwise.
    """


@fence.command()
@node_url
@queue_option
@click.option("--json", "json_wanted", is_flag=True, help="One JSON document.")
def show(url: str, queue: str | None, json_wanted: bool) -> None:
    """Print the fence's value, `unclaimed`, or `not a string`."""
    found = provision.show(url, queue=queue)
    if json_wanted:
        as_json({**asdict(found), "wire": found.wire})
    else:
        tell(str(found))
    _warn_of_ttl(found)


@fence.command()
@node_url
@queue_option
@click.option("--wire", type=WIRE, required=True, help="4 for the scripts, 6 for the module.")
def claim(url: str, queue: str | None, wire: str) -> None:
    """Claim a node that nobody has claimed yet.

    Exit codes: 0 the fence now holds that identity, 1 it holds something else, which stays.
    """
    found = provision.claim(url, wire=int(wire), queue=queue)
    _warn_of_ttl(found)
    if found.wire != int(wire):
        raise Failure(f"not claimed: {found.key} holds {found}")
    tell(str(found))


@fence.command()
@node_url
@queue_option
@click.option("--from", "source", type=WIRE, required=True, help="The wire that must own the node now.")
@click.option("--to", type=WIRE, required=True, help="The wire that shall own it.")
def move(url: str, queue: str | None, source: str, to: str) -> None:
    """Hand a node from one wire to the other. Stop the clients of the old wire first; start the new ones afterwards.

    Exit codes: 0 moved, 1 the fence is not --from's or changed meanwhile: nothing was written.
    """
    moved, found = provision.move(url, source=int(source), to=int(to), queue=queue)
    if not moved:
        raise Failure(f"not moved: {found.key} holds {found}")
    tell(str(found))


def _warn_of_ttl(found: provision.Fence) -> None:
    if found.ttl_ms is not None:
        warn(f"{found.key} expires in {found.ttl_ms} ms, and writers will be refused then: SET it without a TTL")
