"""Walks with fresh seeds for as long as asked: `python -m tests.model.soak [--seconds 600] [--seed N] [--length 300]`.

Ends with status 1 at the first walk that fails, having printed its seed and the fewest steps found that lead to the
failure. --seed takes that one walk again.
"""

from __future__ import annotations

import argparse
import secrets
import sys
import time

from tests.model.machine import Divergence, Machine, Side
from tests.model.walk import LENGTH, walk

from emq_native.executors import NATIVE, SCRIPTED


def soak(machine: Machine, first: int, seconds: float, length: int) -> int:
    """Walk from one seed on to the next until the time is over. Answers how many walks were taken."""
    deadline = time.monotonic() + seconds
    taken = 0
    while taken == 0 or time.monotonic() < deadline:
        walk(machine, first + taken, length)
        taken += 1
    return taken


def main() -> int:
    parser = argparse.ArgumentParser(prog="soak", description="Random walks of both executors beside the model.")
    parser.add_argument("--seconds", type=float, default=600, help="how long (600)")
    parser.add_argument("--seed", type=int, help="take the walk of this seed, and only this one")
    parser.add_argument("--length", type=int, default=LENGTH, help=f"steps of a walk ({LENGTH})")
    chosen = parser.parse_args()
    first = secrets.randbelow(2**40) if chosen.seed is None else chosen.seed
    machine = Machine(Side(NATIVE), Side(SCRIPTED))
    try:
        taken = soak(machine, first, chosen.seconds if chosen.seed is None else 0, chosen.length)
    except Divergence as divergence:
        print(divergence)
        return 1
    finally:
        machine.stop()
    print(f"{taken} walks of {chosen.length} steps agree, seeds {first} to {first + taken - 1}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
