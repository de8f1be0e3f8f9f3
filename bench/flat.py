"""Does a job cost the same however many wait, and however many are in flight?

One server for each number, all of them filled before; then a whole life is measured on each in turn, round after round,
while the number stays what it is. The plain commands do the same beside it: what grows there is the server's own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

from bench.common import US, Size, Table, aside, await_tables, cpu_ns, median, ratio, served, spread
from bench.load import ALONE, FILLING, PIPELINE, Client, Contestant, Core, Verbs, Way, ids
from emq_native.executors import NATIVE
from emq_native.server import Server

PAYLOAD = b"x" * 100


@dataclass(frozen=True)
class Sizes:
    """jobs: of a round, by the way in which they are sent."""

    rounds: int
    jobs: dict[Way, int]
    backlog: tuple[int, ...]
    in_flight: tuple[int, ...]


SIZES: dict[Size, Sizes] = {
    "full": Sizes(
        11,
        {PIPELINE: 2_000, ALONE: 400},
        backlog=(1_000, 10_000, 100_000, 1_000_000),
        in_flight=(10, 100, 1_000, 10_000, 100_000),
    ),
    "quick": Sizes(7, {PIPELINE: 1_000, ALONE: 200}, (1_000, 10_000, 100_000), (10, 1_000, 100_000)),
    "smoke": Sizes(2, {PIPELINE: 100, ALONE: 20}, (100, 1_000), (10, 100)),
}

NOTE = """\
Microseconds of the server's main thread for a whole life, medians of {rounds} rounds ({jobs}) of 100 bytes; no
persistence. `backlog`: so many jobs wait, the oldest is claimed. `in flight`: so many are under a lease. `growth`
is the ratio to the least number within each round; `core` the same by the plain commands of the effects. The
instructions hardly grow: what does is the time that rows and tables take to come from memory."""

COLUMNS = {
    "what": "", "way": "", "number": ",", "native_us": ".2f", "native_spread": ".0%", "native_growth": ".2f",
    "core_us": ".2f", "core_spread": ".0%", "core_growth": ".2f",
}  # fmt: skip


@dataclass
class Level:
    """One number of jobs that wait or are in flight. *_rounds: microseconds for a whole life."""

    what: str
    way: str
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
        self.rounds: dict[Way, list[float]] = {PIPELINE: [], ALONE: []}

    def fill(self, what: str, number: int) -> None:
        self.contestant.prepare(self.client)
        jobs = ids(number)
        self.client.run(FILLING.exchanges(self.contestant.enqueue, jobs))
        if what == "in flight":
            self.client.run(FILLING.exchanges(self.contestant.claim, jobs))
        else:
            self.waiting.extend(jobs)
        await_tables(self.server)

    def round(self, way: Way, count: int) -> None:
        """Enqueue so many, claim the oldest so many, complete them."""
        fresh = ids(count)
        self.waiting.extend(fresh)
        old = [self.waiting.popleft() for _ in range(count)]
        who = self.contestant
        steps = [way.exchanges(*step) for step in ((who.enqueue, fresh), (who.claim, old), (who.complete, old))]
        before = cpu_ns(self.server)
        for step in steps:
            self.client.run(step)
        self.rounds[way].append((cpu_ns(self.server) - before) / count / US)


def measure(size: Size) -> list[Table]:
    """One table, `flat`."""
    sizes = SIZES[size]
    rows = [
        *levels("backlog", sizes.backlog, sizes),
        *levels("in flight", sizes.in_flight, sizes),
    ]
    jobs = ", ".join(f"{count:,} jobs {way.name}" for way, count in sizes.jobs.items())
    note = NOTE.format(rounds=sizes.rounds, jobs=jobs)
    return [Table("flat", "Does it stay the same with many jobs?", note, COLUMNS, rows)]


def levels(what: str, numbers: tuple[int, ...], sizes: Sizes) -> Iterator[Level]:
    natives = rounds_of(Verbs(NATIVE, PAYLOAD), what, numbers, sizes)
    cores = rounds_of(Core(PAYLOAD), what, numbers, sizes)
    for way in sizes.jobs:
        for number in numbers:
            native, core = natives[number][way], cores[number][way]
            yield Level(
                what=what, way=way.name, number=number,
                native_us=median(native), native_spread=spread(native),
                native_growth=ratio(native, natives[numbers[0]][way]), native_rounds=native,
                core_us=median(core), core_spread=spread(core),
                core_growth=ratio(core, cores[numbers[0]][way]), core_rounds=core,
            )  # fmt: skip


def rounds_of(
    contestant: Contestant, what: str, numbers: tuple[int, ...], sizes: Sizes
) -> dict[int, dict[Way, list[float]]]:
    """By number of jobs and by way: microseconds for a life, of each round."""
    executor = NATIVE if contestant.name == "native" else None
    with ExitStack() as stack:
        stack.enter_context(aside())
        sites: dict[int, Site] = {}
        for number in numbers:
            server = stack.enter_context(served(executor))
            sites[number] = Site(server, stack.enter_context(Client(server)), contestant)
            sites[number].fill(what, number)
        for _ in range(sizes.rounds + 1):
            for way, count in sizes.jobs.items():
                for site in sites.values():
                    site.round(way, count)
        # The first round warms up.
        return {number: {way: rounds[1:] for way, rounds in site.rounds.items()} for number, site in sites.items()}
