"""The same jobs through other queues, each as its own documentation has it, in one run.

    python -m bench.peers --install               # fetches what is measured into build/peers, from PyPI and npm
    python -m bench.peers                         # 3 rounds without persistence, one with the append-only file
    python -m bench.peers --only rq,arq --rounds 1

A job is a call with a number and 100 bytes; its handler notes when it began and returns. Right before each library,
plain lists are measured on the same server; ratios (x) are to those, taken within a round, and the table has their
medians.
It prints the tables and writes bench/results/peers.json and peers.md; of all libraries, also the table in README.md.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.common import HERE, RESULTS, Report, Table, median
from bench.peers import measure
from bench.peers.libraries import LIBRARIES
from bench.peers.measure import Result

README = HERE.parent / "README.md"

Rounds = dict[str, list[Result]]
"""Of each library what every round found."""


@dataclass(frozen=True)
class Overview:
    """One library: sending, and of its workers the one that runs one job at a time and the fastest."""

    library: str
    send: float | None
    send_x: float | None
    bulk: float | None
    bytes: float | None
    one: float | None
    one_x: float | None
    fastest: str
    best: float | None
    best_x: float | None
    wake_p50: float | None
    wake_p99: float | None
    late_p50: float | None
    late_p99: float | None
    rounds: int
    versions: dict[str, str]
    failures: tuple[str, ...]


@dataclass(frozen=True)
class Line:
    """One library as the README shows it: of its workers the fastest, and what a job costs there."""

    library: str
    sent: float | None
    sent_x: float | None
    one_by_one: float | None
    one_by_one_x: float | None
    fastest: str
    acks_per_call: str
    worked: float | None
    worked_x: float | None
    server_us: float | None
    worker_us: float | None
    bytes: float | None
    wake_ms: float | None
    late_ms: float | None


@dataclass(frozen=True)
class Working:
    """One setup of one library's worker."""

    library: str
    setup: str
    jobs_per_ack: str
    rate: float | None
    x: float | None
    server_us: float | None
    calls: float | None
    reads: float | None
    worker_us: float | None
    jobs: list[int]
    twice: list[int]


@dataclass(frozen=True)
class Sending:
    """What one job costs to send, one by one."""

    library: str
    server_us: float | None
    calls: float | None
    reads: float | None
    sender_us: float | None
    many_by: str
    many: float | None
    many_server_us: float | None
    many_sender_us: float | None


def value(result: Result, *path: str | int) -> float | None:
    """What stands at the end of a path of fields and places; None where it was not measured."""
    found: Any = result
    for step in path:
        if isinstance(step, int) and step >= len(found):
            return None
        found = found[step] if isinstance(step, int) else getattr(found, step, None)
    return None if found is None else float(found)


def middle(rounds: Sequence[Result], *path: str | int, to: str = "") -> float | None:
    """The median over the rounds in which it was measured; `to`: of its ratios to that field of the same round."""
    pairs = [(value(each, *path), value(each, to) if to else 1.0) for each in rounds]
    found = [ours / theirs for ours, theirs in pairs if ours is not None and theirs]
    return median(found) if found else None


def overview(name: str, rounds: Sequence[Result]) -> Overview:
    library = LIBRARIES[name]
    rates = [middle(rounds, "work", number, "rate") or 0.0 for number in range(len(library.setups))]
    best = rates.index(max(rates))
    single = next((number for number, setup in enumerate(library.setups) if setup.concurrency == 1), len(rates))
    return Overview(
        library=name,
        send=middle(rounds, "send", "rate"),
        send_x=middle(rounds, "send", "rate", to="lists_send"),
        bulk=middle(rounds, "many", "rate"),
        bytes=middle(rounds, "bytes_waiting"),
        one=middle(rounds, "work", single, "rate"),
        one_x=middle(rounds, "work", single, "rate", to="lists_work"),
        fastest=library.setups[best].label,
        best=middle(rounds, "work", best, "rate"),
        best_x=middle(rounds, "work", best, "rate", to="lists_work"),
        wake_p50=middle(rounds, "prompt", "p50"),
        wake_p99=middle(rounds, "prompt", "p99"),
        late_p50=middle(rounds, "late", "p50"),
        late_p99=middle(rounds, "late", "p99"),
        rounds=len(rounds),
        versions=next((each.versions for each in rounds if each.versions), {}),
        failures=tuple(each.failed for each in rounds if each.failed),
    )


def working(name: str, rounds: Sequence[Result]) -> Iterator[Working]:
    for number, setup in enumerate(LIBRARIES[name].setups):
        done = [each.work[number] for each in rounds if number < len(each.work)]
        yield Working(
            library=name,
            setup=setup.label,
            jobs_per_ack=str(setup.jobs_per_ack or "none"),
            rate=middle(rounds, "work", number, "rate"),
            x=middle(rounds, "work", number, "rate", to="lists_work"),
            server_us=middle(rounds, "work", number, "server_us"),
            calls=middle(rounds, "work", number, "calls"),
            reads=middle(rounds, "work", number, "reads"),
            worker_us=middle(rounds, "work", number, "client_us"),
            jobs=[work.jobs for work in done],
            twice=[work.twice for work in done],
        )


def sending(name: str, rounds: Sequence[Result]) -> Sending:
    return Sending(
        library=name,
        server_us=middle(rounds, "send", "server_us"),
        calls=middle(rounds, "send", "calls"),
        reads=middle(rounds, "send", "reads"),
        sender_us=middle(rounds, "send", "client_us"),
        many_by=LIBRARIES[name].bulk_by,
        many=middle(rounds, "many", "rate"),
        many_server_us=middle(rounds, "many", "server_us"),
        many_sender_us=middle(rounds, "many", "client_us"),
    )


def line(name: str, rounds: Sequence[Result]) -> Line:
    whole = overview(name, rounds)
    best = next(row for row in working(name, rounds) if row.setup == whole.fastest)
    return Line(
        library=name,
        sent=whole.send,
        sent_x=whole.send_x,
        one_by_one=whole.one,
        one_by_one_x=whole.one_x,
        fastest=whole.fastest,
        acks_per_call=f"1 for {best.jobs_per_ack}" if best.jobs_per_ack not in ("1", "none") else best.jobs_per_ack,
        worked=best.rate,
        worked_x=best.x,
        server_us=best.server_us,
        worker_us=best.worker_us,
        bytes=whole.bytes,
        wake_ms=whole.wake_p50,
        late_ms=whole.late_p50,
    )


WHOLE = {
    "library": "",
    "send": ",.0f",
    "send_x": ".2f",
    "bulk": ",.0f",
    "bytes": ",.0f",
    "one": ",.0f",
    "one_x": ".2f",
    "fastest": "",
    "best": ",.0f",
    "best_x": ".2f",
    "wake_p50": ".1f",
    "wake_p99": ".1f",
    "late_p50": ",.1f",
    "late_p99": ",.1f",
}
FAST = {
    name: WHOLE[name] for name in ("library", "send", "send_x", "bulk", "one", "one_x", "fastest", "best", "best_x")
}
WORK = {
    "library": "",
    "setup": "",
    "jobs_per_ack": "",
    "rate": ",.0f",
    "x": ".2f",
    "server_us": ",.1f",
    "calls": ".2f",
    "reads": ".2f",
    "worker_us": ",.0f",
}
SEND = {
    "library": "",
    "server_us": ",.1f",
    "calls": ".2f",
    "reads": ".2f",
    "sender_us": ",.0f",
    "many_by": "",
    "many": ",.0f",
    "many_server_us": ",.1f",
    "many_sender_us": ",.0f",
}
LINE = {
    "library": "",
    "sent": ",.0f",
    "sent_x": ".2f",
    "one_by_one": ",.0f",
    "one_by_one_x": ".2f",
    "fastest": "",
    "acks_per_call": "",
    "worked": ",.0f",
    "worked_x": ".1f",
    "server_us": ",.0f",
    "worker_us": ",.0f",
    "bytes": ",.0f",
    "wake_ms": ",.1f",
    "late_ms": ",.1f",
}
LINE_NOTE = """
Jobs a second, of one process that sends one by one, and of one that works: one by one, and by the `fastest` of its
setups, with microseconds of CPU per job there and jobs per acknowledgement; none: who takes a job and dies loses it.
x: ratio to plain lists (LPUSH; BLMOVE and LREM) on the same server right before. Bytes of the server for a job that
waits; milliseconds (medians) until an idle worker begins a job, and after a delayed one was due. 100 bytes, handlers
that do nothing, defaults, no persistence.
""".strip()
NOTE = """
Jobs a second, of one process that sends and one that works: `send` one by one, `bulk` as many at once as there is a way
for, `one` worked off one at a time, `best` by the `fastest` setup; x is the ratio to plain lists (LPUSH; BLMOVE and
LREM). `bytes`: of the server's memory, for a job that waits. `wake`: milliseconds until an idle worker begins a job
that was just sent; `late`: until it begins one that has become due. Libraries by their defaults, a server without
persistence, with the hash settings of docker/valkey.conf.
""".strip()
AOF_NOTE = "As in the first table, with `appendonly yes` and `appendfsync everysec`."
WORK_NOTE = """
Microseconds of CPU per job, of the server's main thread and of the worker's processes; calls of the server (those that
scripts make as well) and reads of sockets per job. `jobs per ack`: how many one call acknowledges; none: a job that was
taken is gone when its worker dies.
""".strip()
SEND_NOTE = "The same for the sender, one job by one; then many at once."


def tables(results: Rounds, aof: Rounds) -> list[Table]:
    whole = [overview(name, rounds) for name, rounds in results.items()]
    with_aof = [overview(name, rounds) for name, rounds in aof.items()]
    work = [row for name, rounds in results.items() for row in working(name, rounds)]
    send = [sending(name, rounds) for name, rounds in results.items()]
    return [
        Table("peers", "All in one", NOTE, WHOLE, whole),
        *([Table("peers_aof", "With the append-only file", AOF_NOTE, FAST, with_aof)] if aof else []),
        Table("working", "What a job costs to work off", WORK_NOTE, WORK, work),
        Table("sending", "What a job costs to send", SEND_NOTE, SEND, send),
    ]


def into_readme(results: Rounds, report: Report) -> None:
    """The lines between the two marks of README.md become those of this run."""
    table = Table("readme", "", LINE_NOTE, LINE, [line(name, rounds) for name, rounds in results.items()])
    before, begin, rest = README.read_text().partition("<!-- begin: make bench-peers -->\n")
    _, end, after = rest.partition("<!-- end: make bench-peers -->\n")
    if not begin or not end:
        raise SystemExit(f"{README} has no place for the table")
    text = f"{table.draw()}\n\n{LINE_NOTE} {report.conditions()}\n"
    README.write_text(f"{before}{begin}\n{text}\n{end}{after}")


def remarks(results: Rounds) -> str:
    """What is to be known of each library, and what went wrong."""
    lines = ["| library | version | |", "|---|---|---|"]
    wrong = []
    for name, rounds in results.items():
        versions = next((each.versions for each in rounds if each.versions), {})
        shown = ", ".join(f"{package} {version}" for package, version in versions.items())
        lines.append(f"| {name} | {shown} | {LIBRARIES[name].note} |")
        wrong += [f"- {name}: {each.failed}" for each in rounds if each.failed]
        for work in (work for each in rounds for work in each.work):
            if not work.complete:
                wrong.append(f"- {name}, {work.setup}: only {work.jobs} jobs began within {measure.WORK_S} s")
            if work.twice:
                wrong.append(f"- {name}, {work.setup}: {work.twice} of {work.jobs} began twice")
    return "\n".join([*lines, "", *(["What went wrong:", "", *wrong] if wrong else [])])


def installed(names: Sequence[str]) -> list[str]:
    there = [name for name in names if measure.is_installed(name)]
    if missing := [name for name in names if name not in there]:
        print("not installed, left out:", ", ".join(missing), file=sys.stderr)
    return there


def series(names: Sequence[str], rounds: int, **options: Any) -> Rounds:
    """Each round begins with another library, so that none always has the machine when it is fresh."""
    found: Rounds = {name: [] for name in names}
    for number in range(rounds):
        first = number * len(names) // max(rounds, 1)
        for name in [*names[first:], *names[:first]]:
            began = time.monotonic()
            result = measure.measure(name, **options)
            found[name].append(result)
            rates = ", ".join(f"{work.rate:,.0f}" for work in result.work)
            told = result.failed or f"{result.send.rate if result.send else 0:,.0f} sent, {rates} worked off a second"
            print(
                f"{number + 1}/{rounds} {name}: {told} ({time.monotonic() - began:.0f} s)", file=sys.stderr, flush=True
            )
    return found


def fetch(names: Sequence[str]) -> None:
    for name in names:
        try:
            measure.install(name)
            print(f"{name}: installed", file=sys.stderr)
        except (subprocess.CalledProcessError, OSError) as failure:
            print(f"{name}: not installed: {failure}", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.peers", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--install", action="store_true", help="fetch what is measured, and end")
    parser.add_argument("--only", default="", help="names by commas; each stands for all that begin with it")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=10_000, help="at most so many at a time")
    parser.add_argument("--no-waits", action="store_true", help="do not ask how soon a job begins")
    parser.add_argument("--no-aof", action="store_true", help="leave out the round with the append-only file")
    parser.add_argument("--note", default="", help="about the machine, for the results")
    parser.add_argument("--output", default=str(RESULTS), help="a folder")
    chosen = parser.parse_args()
    wanted = tuple(filter(None, chosen.only.split(",")))
    names = [name for name in LIBRARIES if not wanted or name.startswith(wanted)]
    if chosen.install:
        fetch(names)
        return
    names = installed(names)
    report, began = Report("The same jobs through other queues", "full", chosen.note), time.monotonic()
    results = series(names, chosen.rounds, most=chosen.jobs, aof=False, waits=not chosen.no_waits)
    aof = {} if chosen.no_aof else series(names, 1, most=chosen.jobs, aof=True, waits=False)
    report.tables = tables(results, aof)
    report.end(time.monotonic() - began)
    print(report.text())
    report.write(Path(chosen.output), "peers", remarks(results))
    if names == list(LIBRARIES) and Path(chosen.output) == RESULTS:
        into_readme(results, report)


if __name__ == "__main__":
    main()
