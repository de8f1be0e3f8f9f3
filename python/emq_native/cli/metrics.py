"""The command `metrics`: what a node and its queues say, for Prometheus."""

from __future__ import annotations

from contextlib import ExitStack

import click

from emq_native._core import queue_key
from emq_native.cli import Failure, NoVerdict
from emq_native.cli.console import node_url
from emq_native.running import bell


def _address(context: click.Context, parameter: click.Parameter, value: str) -> tuple[str, int]:
    host, separator, port = value.rpartition(":")
    if not separator or not port.isdigit() or int(port) > 65535:
        raise click.BadParameter(f"{value!r} is no address such as :9121, 127.0.0.1:9121 or [::1]:9121")
    return host.strip("[]") or "0.0.0.0", int(port)


def _queues(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        queue_key(value)
    return tuple(dict.fromkeys(values))


def _say(line: str) -> None:
    click.echo(f"emq-native: {line}", err=True)


@click.command(short_help="Serve metrics of a node and its queues to Prometheus.")
@node_url
@click.option("--listen", metavar="[HOST]:PORT", default=":9121", show_default=True, callback=_address, help="Where.")
@click.option("--queue", "queues", metavar="NAME", multiple=True, callback=_queues, help="Only this one. Repeatable.")
@click.option("--lanes", type=click.IntRange(0, 10000), default=100, show_default=True, help="Most groups of a queue.")
@click.option(
    "--rescan",
    type=click.FloatRange(0),
    default=300,
    show_default=True,
    metavar="SECONDS",
    help="How long to rest between two walks over the keys that look for queues.",
)
@click.option(
    "--probe-wake",
    "wake_interval",
    type=click.FloatRange(1),
    metavar="SECONDS",
    help="Measure so often how soon a waiting worker has a job, with the queue emq-native.canary. Needs the module.",
)
@click.option("--once", is_flag=True, help="Print the text once, for cron and textfile collectors.")
def metrics(
    url: str,
    listen: tuple[str, int],
    queues: tuple[str, ...],
    lanes: int,
    rescan: float,
    wake_interval: float | None,
    once: bool,
) -> None:
    """Serve what a node and its queues say as Prometheus text, asked at every scrape.

    A node that does not answer has emq_up 0; the exporter goes on. In a cluster every primary is asked. Without --queue
    the queues are found by a walk over the keys. Ends with Ctrl-C or SIGTERM.

    Exit codes of --once: 0 some node answered, 3 none did.
    """
    try:
        import prometheus_client as prometheus

        from emq_native.metrics import Exporter, WakeProbe
    except ModuleNotFoundError as error:
        if error.name != "prometheus_client":
            raise
        raise Failure("this needs prometheus_client: pip install 'emq-native[metrics]'") from error
    prometheus.disable_created_metrics()  # type: ignore[no-untyped-call]
    registry = prometheus.CollectorRegistry()
    exporter = Exporter(url, queues=queues, lanes=lanes, rescan=rescan, report=_say)
    registry.register(exporter)
    probe = WakeProbe(url, registry, interval=wake_interval, report=_say) if wake_interval else None
    with ExitStack() as stack:
        stack.callback(exporter.close)
        if probe is not None:
            stack.callback(probe.stop)
        if once:
            if probe is not None:
                probe.measure()
            click.echo(prometheus.generate_latest(registry), nl=False)
            if not exporter.answered:
                raise NoVerdict(f"{exporter.address} does not answer")
            return
        host, port = listen
        try:
            server, serving = prometheus.start_http_server(port, host, registry)
        except OSError as error:
            raise Failure(f"cannot listen at {host}:{port}: {error.strerror}") from error
        stack.callback(serving.join)
        stack.callback(server.server_close)
        stack.callback(server.shutdown)
        shown = f"[{host}]" if ":" in host else host
        _say(f"serving at http://{shown}:{server.server_port}/metrics")
        if probe is not None:
            probe.start()
        _until_told_to_end()


def _until_told_to_end() -> None:
    with bell() as (_, rung):
        while not rung():
            pass
