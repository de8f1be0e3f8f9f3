"""Commands that run a server of their own."""

from __future__ import annotations

import select

import click

from emq_native import provision
from emq_native.cli import Failure
from emq_native.cli.console import warn
from emq_native.demo import demonstrate
from emq_native.findings import LISTPACK
from emq_native.running import bell
from emq_native.server import ConfigValue, Server
from emq_native.session import Session, is_clustered


@click.command(short_help="Run a Valkey server with the module on this machine.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="TCP port on 127.0.0.1; 0 takes a free one.")
@click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False),
    help="Keep the data here, in an append-only file; else they are gone at the end.",
)
@click.option(
    "--wire", type=click.Choice(["4", "6"]), default="6", help="Who gets a fresh node: 6 the module (default)."
)
@click.option("--config", "directives", metavar="NAME=VALUE", multiple=True, help="A directive of valkey.conf.")
def serve(port: int, directory: str | None, wire: str, directives: tuple[str, ...]) -> None:
    """Run a Valkey server with the module on 127.0.0.1 until Ctrl-C or SIGTERM. Prints its URL.

    A fresh node is claimed; one that has data is left as it is. Rows are as compact as in the image.
    """
    config: dict[str, ConfigValue] = {"hash-max-listpack-value": LISTPACK}
    if directory:
        config["appendonly"] = "yes"
    for directive in directives:
        name, separator, value = directive.partition("=")
        if not separator or not name:
            raise click.BadParameter(f"{directive!r} is not NAME=VALUE", param_hint="--config")
        config[name] = value

    with bell() as (reader, rung), Server(config=config, directory=directory, port=port) as server:
        _claim_when_fresh(server, int(wire))
        click.echo(server.url)
        while not (select.select([reader], [], [], 0.2)[0] and rung()):
            if not server.running:
                raise Failure(f"the server ended by itself, status {server.returncode}\n{server.log()[-2000:]}")


def _claim_when_fresh(server: Server, wire: int) -> None:
    with Session(server.client()) as session:
        if is_clustered(session):
            server.own_slots()
            warn("in cluster mode each queue is claimed by itself: emq-native fence claim --queue NAME --wire 6")
            return
        fresh = session.send("DBSIZE") == 0
    found = provision.claim(server.client(), wire=wire) if fresh else provision.show(server.client())
    if found.wire != wire:
        warn(f"the node has data and its fence is {found}, not that of wire {wire}: see emq-native fence")


@click.command(short_help="Hash a directory through a queue while workers fail.")
@click.option(
    "--directory",
    type=click.Path(exists=True, file_okay=False, readable=True),
    help="The files to hash; else the standard library of this Python.",
)
@click.option("--executor", type=click.Choice(["native", "scripted"]), default="native", show_default=True)
@click.option("--workers", type=click.IntRange(3, 64), default=4, show_default=True, help="Worker processes.")
def demo(directory: str | None, executor: str, workers: int) -> None:
    """Hash every file of a directory through a queue, while one worker is killed and one outlives its lease.

    Exit codes: 0 every digest equals that of a sequential run, 1 one differs.
    """
    if not demonstrate(directory=directory, executor=executor, workers=workers):
        raise Failure("the digests are not those of the sequential run")
