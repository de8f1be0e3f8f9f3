"""Ask the questions of this folder, one after the other, and tell what was found.

    python -m bench                            # all, about ten minutes, into bench/results
    python -m bench --quick                    # two minutes, into build/bench
    python -m bench --only flat,memory         # these, into build/bench

Prints the tables and the verdict, and writes bench.json, bench.md and bench.png.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import get_args

from bench.common import HERE, RESULTS, Report, Size
from bench.verdict import judge

QUESTIONS = ("transitions", "flat", "waiters", "lateness", "memory", "workers", "bounded")
SCRATCH = HERE.parent / "build" / "bench"
MOST_S = 3_600  # a waiter waits for ever for what is never sent


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", metavar="NAME,NAME", help=", ".join(QUESTIONS))
    parser.add_argument("--size", choices=get_args(Size), default="full", help="full is what is recorded")
    parser.add_argument("--quick", action="store_const", const="quick", dest="size", help="the same as --size quick")
    parser.add_argument("--out", type=Path, help="where files go; default: bench/results for a full run of all")
    parser.add_argument("--note", default="", help="what the results should say about the machine")
    chosen = parser.parse_args()
    names = [name for name in chosen.only.split(",") if name] or list(QUESTIONS)
    if unknown := sorted({*names} - {*QUESTIONS}):
        parser.error(f"there is no {', '.join(unknown)}: choose from {', '.join(QUESTIONS)}")
    everything = chosen.size == "full" and {*names} == {*QUESTIONS}
    out: Path = chosen.out or (RESULTS if everything else SCRATCH)

    signal.alarm(MOST_S)
    report, began = Report("What emq-native costs", chosen.size, chosen.note), time.monotonic()
    for name in names:
        since = time.monotonic()
        print(f"{name} ...", end=" ", file=sys.stderr, flush=True)
        tables = import_module(f"bench.{name}").measure(chosen.size)
        print(f"{time.monotonic() - since:.0f} s", file=sys.stderr, flush=True)
        report.tables += tables
        for table in tables:
            print(table.text(), flush=True)
    report.end(time.monotonic() - began)
    verdict = judge(report.tables)
    if verdict.rows:
        report.tables.insert(0, verdict)
        print(verdict.text())
    print(report.conditions())
    report.write(out, "bench", "![the figure](bench.png)")
    from bench.plot import draw  # only now: it takes a second

    draw(report, out / "bench.png")
    print(f"written: {out / 'bench'}.json, .md, .png")


if __name__ == "__main__":
    main()
