"""What does a transition cost the server: by the module, by the scripts, and by its effects as plain commands?

So many jobs are enqueued, then claimed, then completed; then the queue is empty again and the next contestant has its
turn. All of them do so in every round, in changing order, so that a ratio is made of figures that lie moments apart.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

from bench.common import AOF, US, Size, Table, aside, cpu_ns, median, ratio, served, spread
from bench.load import WAYS, Client, Contestant, Way, contestants, ids
from emq_native.executors import NATIVE
from emq_native.server import Server

PHASES = ("enqueue", "claim", "complete")


@dataclass(frozen=True)
class Sizes:
    """rounds, and jobs in each by the size of their payload."""

    rounds: int
    jobs: dict[int, int]


SIZES: dict[Size, Sizes] = {
    "full": Sizes(9, {100: 2_000, 10_000: 400}),
    "quick": Sizes(3, {100: 1_000, 10_000: 200}),
    "smoke": Sizes(2, {100: 100}),
}

NOTE = """\
Microseconds of the server's main thread per job and jobs per second by one connection, medians of {rounds} rounds
of {jobs} jobs; `life` is enqueue, claim and complete, `spread` the distance of its quartiles by its median. `aof`
is the append-only file with `appendfsync everysec`. *one a trip*: each job is a command of its own and each command
a round trip, so system calls are most of it; *pipelined*: commands of one job, 100 in a round trip; *batch*:
MENQUEUE, MCLAIM and MCOMPLETE, one in a round trip. `core` sends the effects that the module replicates for the
same call (ZADD, HSET; ZREM, ZADD, HSET; ZREM, HSET, DEL) without any check or look-up, the ids being known: the
floor. `multi` puts those of each call into MULTI and EXEC, as the verbs are atomic. `ping` is one PING for each
call: what is left when a command does nothing. `to scripted` and `to core` are ratios of `life` within each round."""

COLUMNS = {
    "payload": ",", "aof": "", "way": "", "by": "",
    "enqueue_us": ".2f", "claim_us": ".2f", "complete_us": ".2f", "life_us": ".2f", "spread": ".0%",
    "to_scripted": ".2f", "to_core": ".2f",
    "enqueue_s": ",.0f", "claim_s": ",.0f", "complete_s": ",.0f", "life_s": ",.0f",
}  # fmt: skip


@dataclass
class Cost:
    """rounds: of `life_us`."""

    payload: int
    aof: str
    way: str
    by: str
    enqueue_us: float
    claim_us: float
    complete_us: float
    life_us: float
    spread: float
    enqueue_s: float
    claim_s: float
    complete_s: float
    life_s: float
    rounds: list[float]
    to_scripted: float = 0.0
    to_core: float = 0.0


@dataclass
class Lives:
    """What one contestant needed in each round, by phase: nanoseconds of the server's CPU and of the clock per job."""

    cpu: dict[str, list[float]] = field(default_factory=lambda: {phase: [] for phase in PHASES})
    clock: dict[str, list[float]] = field(default_factory=lambda: {phase: [] for phase in PHASES})

    def live(self, server: Server, client: Client, contestant: Contestant, way: Way, count: int) -> None:
        """One round."""
        jobs = ids(count)
        calls = (contestant.enqueue, contestant.claim, contestant.complete)
        encoded = {phase: way.exchanges(call, jobs) for phase, call in zip(PHASES, calls, strict=True)}
        for phase in PHASES:
            before, began = cpu_ns(server), time.perf_counter_ns()
            client.run(encoded[phase])
            took = time.perf_counter_ns() - began
            self.cpu[phase].append((cpu_ns(server) - before) / count)
            self.clock[phase].append(took / count)

    @property
    def rounds(self) -> list[float]:
        """Microseconds of the server's CPU for a whole life."""
        return [sum(each) / US for each in zip(*self.cpu.values(), strict=True)]

    @property
    def clocks(self) -> list[float]:
        """Nanoseconds of the clock for a whole life."""
        return [sum(each) for each in zip(*self.clock.values(), strict=True)]


def measure(size: Size) -> list[Table]:
    """One table, `transitions`."""
    sizes = SIZES[size]
    rows = [row for aof in (False, True) for payload in sizes.jobs for row in costs(sizes, payload, aof)]
    jobs = " or ".join(f"{count:,} ({payload:,} bytes)" for payload, count in sizes.jobs.items())
    note = NOTE.format(rounds=sizes.rounds, jobs=jobs)
    return [Table("transitions", "What a transition costs the server", note, COLUMNS, rows)]


def costs(sizes: Sizes, payload: int, aof: bool) -> Iterator[Cost]:
    """All ways and contestants: the module on a server of its own, the rest on one that does not have it."""
    count, config = sizes.jobs[payload], AOF if aof else None
    with ExitStack() as stack:
        stack.enter_context(aside())
        with_module, plain = (stack.enter_context(served(executor, config)) for executor in (NATIVE, None))
        taking_part = []
        for contestant in contestants(b"x" * payload).values():
            server = with_module if contestant.name == "native" else plain
            client = stack.enter_context(Client(server))
            contestant.prepare(client)
            taking_part.append((server, client, contestant))
        found = {(way.name, each.name): Lives() for way in WAYS for _, _, each in taking_part}
        for way in WAYS:
            for server, client, contestant in taking_part:
                Lives().live(server, client, contestant, way, min(count, 200))  # the first time is not like the others
        for number in range(sizes.rounds):
            for way in WAYS:
                for at in range(len(taking_part)):
                    server, client, contestant = taking_part[(at + number) % len(taking_part)]
                    found[way.name, contestant.name].live(server, client, contestant, way, count)
    for (way_name, name), lives in found.items():
        cost = {f"{phase}_us": median(lives.cpu[phase]) / US for phase in PHASES}
        rate = {f"{phase}_s": 1e9 / median(lives.clock[phase]) for phase in PHASES}
        rounds = lives.rounds
        yield Cost(
            payload=payload, aof="yes" if aof else "no", way=way_name, by=name,
            life_us=median(rounds), spread=spread(rounds), life_s=1e9 / median(lives.clocks), rounds=rounds,
            to_scripted=ratio(rounds, found[way_name, "scripted"].rounds),
            to_core=ratio(rounds, found[way_name, "core"].rounds),
            **cost, **rate,
        )  # fmt: skip
