"""The command that works."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from importlib import import_module
from typing import Any, Final

import click

from emq_native.aio.worker import Worker as AsyncWorker
from emq_native.cli.console import which_node
from emq_native.errors import InvalidArgument
from emq_native.ledger import Stats
from emq_native.processes import run_processes
from emq_native.running import apatiently, patiently, run
from emq_native.tasks import App
from emq_native.terms import logger, tell_stopping
from emq_native.wiring import URL_VARIABLE
from emq_native.worker import Worker

EXTRA: Final = ("job_id", "queue", "task", "attempt")


@dataclass(frozen=True)
class Work:
    """What one process does: the workers of an app, one for each queue."""

    target: str
    url: str | None
    queues: tuple[str, ...]
    concurrency: int
    options: dict[str, Any]
    asynchronous: bool
    level: str
    as_json: bool

    def __call__(self) -> None:
        """Work until a signal."""
        configure_logging(self.level, self.as_json)
        app = load_app(self.target, self.url)
        queues = self.queues or app.queues
        options = {queue: self.options_of(app, queue) for queue in queues}
        logger.info("pid %d works on %s", os.getpid(), ", ".join(queues))
        patient = not self.options["burst"]
        if self.asynchronous:
            stats = asyncio.run(_run_async(app, options, patient=patient, grace=self.options["grace"]))
        else:
            stats = _run(app, options, patient=patient)
        became = ", ".join(f"{number} {name}" for name, number in asdict(stats).items() if number)
        logger.info("pid %d is done: %s", os.getpid(), became or "no job came")

    def options_of(self, app: App, queue: str) -> dict[str, Any]:
        """The options of the worker for one queue: unless it was told, it fires repeats where the app has some."""
        repeats = self.options["repeats"]
        repeats = app.has_repeats(queue) if repeats is None else repeats
        return {"concurrency": self.concurrency, **self.options, "repeats": repeats}


@click.command(short_help="Work on the tasks of an app.")
@click.argument("target", metavar="MODULE:APP")
@click.option("--url", metavar="URL", help=f"The node, instead of the app's, which is else that of ${URL_VARIABLE}.")
@click.option("--queues", metavar="A,B", help="By default those of the tasks.")
@click.option(
    "--concurrency",
    "-c",
    type=click.IntRange(1, 10_000),
    default=4,
    show_default=True,
    help="Jobs at a time, for each queue.",
)
@click.option(
    "--processes", "-p", type=click.IntRange(1, 1000), default=1, show_default=True, help="Each with that concurrency."
)
@click.option("--asyncio", "asynchronous", is_flag=True, help="Run coroutine functions on one event loop.")
@click.option("--lease", type=click.FloatRange(0.001), default=30.0, show_default=True, help="Seconds.")
@click.option(
    "--batch", type=click.IntRange(1, 10_000), default=100, show_default=True, help="Most short jobs taken ahead."
)
@click.option(
    "--grace", type=click.FloatRange(0), default=30.0, show_default=True, help="Seconds to finish after a signal."
)
@click.option(
    "--repeats/--no-repeats",
    default=None,
    help="Install the app's repeats and fire all of the queue; by default for queues in which the app has some.",
)
@click.option("--burst", is_flag=True, help="End when nothing more can be taken, or the node is not there.")
@click.option(
    "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info", show_default=True
)
@click.option("--json", "json_wanted", is_flag=True, help="Log in JSON, one document on a line.")
def worker(
    target: str,
    url: str | None,
    queues: str | None,
    concurrency: int,
    processes: int,
    asynchronous: bool,
    log_level: str,
    json_wanted: bool,
    **options: Any,
) -> None:
    """Work on the tasks of an app, for example `emq-native worker shop.tasks:app --concurrency 8`.

    The first SIGTERM or Ctrl-C stops taking jobs, lets those that run finish within the grace, and hands back the
    rest; the second leaves at once. A node that does not answer is waited for, at the start too; not by a burst.
    """
    work = Work(
        target=target,
        url=url,
        queues=tuple(queues.split(",")) if queues else (),
        concurrency=concurrency,
        options=options,
        asynchronous=asynchronous,
        level=log_level,
        as_json=json_wanted,
    )
    if processes == 1:
        work()
    else:
        configure_logging(log_level, json_wanted)
        load_app(target, url)
        run_processes(partial(_work, work), processes)


def _work(work: Work) -> None:
    work()


def load_app(target: str, url: str | None) -> App:
    """The app that MODULE:APP names, from the current directory or installed. Raises click.UsageError."""
    module, separator, name = target.partition(":")
    if not separator or not name:
        raise click.UsageError(f"{target!r} is not MODULE:APP")
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not (module == error.name or module.startswith(error.name + ".")):
            raise
        raise click.UsageError(f"there is no module {module}") from error
    app = getattr(found, name, None)
    if not isinstance(app, App):
        apps = sorted(f"{module}:{each}" for each, value in vars(found).items() if isinstance(value, App))
        there = f"; {', '.join(apps)} is one" if apps else ""
        raise click.UsageError(f"{target} is no emq_native.App{there}")
    if url is not None:
        app.retarget(url)
    try:
        app.target  # noqa: B018
    except InvalidArgument as error:
        raise which_node("to the app") from error
    return app


def _run(app: App, options: dict[str, dict[str, Any]], *, patient: bool) -> Stats:
    def made() -> list[Worker]:
        return [app.worker(queue, **chosen) for queue, chosen in options.items()]

    workers = patiently(made) if patient else made()
    run(*workers)
    return sum((each.stats for each in workers), Stats())


async def _run_async(app: App, options: dict[str, dict[str, Any]], *, patient: bool, grace: float) -> Stats:
    async def made() -> list[AsyncWorker]:
        return [await app.aworker(queue, **chosen) for queue, chosen in options.items()]

    workers = await (apatiently(made) if patient else made())
    errors: list[Exception] = []
    signals = 0

    def stop() -> None:
        for each in workers:
            each.stop()

    def signalled() -> None:
        nonlocal signals
        tell_stopping(again=signals > 0, grace=grace)
        signals += 1
        if signals > 1 or not errors:
            stop()

    async def work(worker: AsyncWorker) -> None:
        try:
            await worker.run(signals=False)
        except Exception as error:
            if not (signals or errors):
                stop()
            errors.append(error)

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, signalled)
    try:
        await asyncio.gather(*map(work, workers))
    finally:
        await (await app.abus()).close()
    if errors:
        raise errors[0]
    return sum((each.stats for each in workers), Stats())


def configure_logging(level: str, as_json: bool) -> None:
    """Log to standard error, each line with what it says about a job."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Json() if as_json else _Lines())
    logger.handlers[:] = [handler]
    logger.setLevel(level.upper())
    logger.propagate = False


class _Lines(logging.Formatter):
    """Lines for people."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        said = " ".join(f"{name}={getattr(record, name)}" for name in EXTRA if hasattr(record, name))
        line = super().formatMessage(record)
        return f"{line} [{said}]" if said else line


class _Json(logging.Formatter):
    """Lines for programs."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created).astimezone().isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        line |= {name: getattr(record, name) for name in EXTRA if hasattr(record, name)}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)
