"""Does a job cost the same however many wait, and however many are in flight?

One server for each number, all of them filled before; then a whole life is measured on each in turn, round after round,
while the number stays what it is. The plain commands do the same beside it: what grows there is the server's own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

from bench.common import US, Size, Table, aside, cpu_ns, median, ratio, served, spread
from bench.load import FILLING, PIPELINE, Client, Contestant, Core, Verbs, ids
from emq_native.executors import NATIVE
from emq_native.server import Server

PAYLOAD = b"x" * 100


@dataclass(frozen=True)
class Sizes:
    rounds: int
    jobs: int
    backlog: tuple[int, ...]
    in_flight: tuple[int, ...]


SIZES: dict[Size, Sizes] = {
    "full": Sizes(15, 2_000, (1_000, 10_000, 100_000, 1_000_000), (10, 100, 1_000, 10_000, 100_000)),
    "quick": Sizes(7, 1_000, (1_000, 10_000, 100_000), (10, 1_000, 100_000)),
    "smoke": Sizes(2, 100, (100, 1_000), (10, 100)),
}

NOTE = """\
Microseconds of the server's main thread for a whole life, medians of {rounds} rounds of {jobs:,} jobs of 100 bytes,
pipelined; no persistence. `backlog`: so many jobs wait, the oldest is claimed. `in flight`: so many are under a
lease. `growth` is the ratio to the least number within each round; `core` the same by the plain commands of the
effects."""

COLUMNS = {
    "what": "", "number": ",", "native_us": ".2f", "native_spread": ".0%", "native_growth": ".2f",
    "core_us": ".2f", "core_spread": ".0%", "core_growth": ".2f",
}  # fmt: skip


@dataclass
class Level:
    """One number of jobs that wait or are in flight. *_rounds: microseconds for a whole life."""

    what: str
    number: int
    native_us: float
    native_spread: float
    native_growth: float
    native_rounds: list[float]
    core_us: float
    core_spread: float
    core_growth: float
    core_rounds: list[float]


class Site:
    """A server that holds so many jobs, and one contestant at work on it."""

    def __init__(self, server: Server, client: Client, contestant: Contestant) -> None:
        self.server, self.client, self.contestant = server, client, contestant
        self.waiting: deque[bytes] = deque()
        self.rounds: list[float] = []

    def fill(self, what: str, number: int) -> None:
        self.contestant.prepare(self.client)
        jobs = ids(number)
        self.client.run(FILLING.exchanges(self.contestant.enqueue, jobs))
        if what == "in flight":
            self.client.run(FILLING.exchanges(self.contestant.claim, jobs))
        else:
            self.waiting.extend(jobs)

    def round(self, count: int) -> None:
        """Enqueue so many, claim the oldest so many, complete them."""
        fresh = ids(count)
        self.waiting.extend(fresh)
        old = [self.waiting.popleft() for _ in range(count)]
        who = self.contestant
        steps = [PIPELINE.exchanges(*step) for step in ((who.enqueue, fresh), (who.claim, old), (who.complete, old))]
        before = cpu_ns(self.server)
        for step in steps:
            self.client.run(step)
        self.rounds.append((cpu_ns(self.server) - before) / count / US)


def measure(size: Size) -> list[Table]:
    """One table, `flat`."""
    sizes = SIZES[size]
    rows = [
        *levels("backlog", sizes.backlog, sizes),
        *levels("in flight", sizes.in_flight, sizes),
    ]
    note = NOTE.format(rounds=sizes.rounds, jobs=sizes.jobs)
    return [Table("flat", "Does it stay the same with many jobs?", note, COLUMNS, rows)]


def levels(what: str, numbers: tuple[int, ...], sizes: Sizes) -> Iterator[Level]:
    native = rounds_of(Verbs(NATIVE, PAYLOAD), what, numbers, sizes)
    core = rounds_of(Core(PAYLOAD), what, numbers, sizes)
    for number in numbers:
        yield Level(
            what=what, number=number,
            native_us=median(native[number]), native_spread=spread(native[number]),
            native_growth=ratio(native[number], native[numbers[0]]), native_rounds=native[number],
            core_us=median(core[number]), core_spread=spread(core[number]),
            core_growth=ratio(core[number], core[numbers[0]]), core_rounds=core[number],
        )  # fmt: skip


def rounds_of(contestant: Contestant, what: str, numbers: tuple[int, ...], sizes: Sizes) -> dict[int, list[float]]:
    executor = NATIVE if contestant.name == "native" else None
    with ExitStack() as stack:
        stack.enter_context(aside())
        sites: dict[int, Site] = {}
        for number in numbers:
            server = stack.enter_context(served(executor))
            sites[number] = Site(server, stack.enter_context(Client(server)), contestant)
            sites[number].fill(what, number)
        for _ in range(sizes.rounds + 1):
            for site in sites.values():
                site.round(sizes.jobs)
        return {number: site.rounds[1:] for number, site in sites.items()}  # the first warms up
