"""What memory does a job take, waiting and under a lease, and up to which length is a compact row worth it?

The settings are those of docker/valkey.conf. `hash-max-listpack-value` is tried at other values too, and for each the
server's CPU for a whole life stands beside the bytes.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

from bench.common import HERE, US, Size, Table, aside, await_tables, cpu_ns, median, served, spread
from bench.load import FILLING, PIPELINE, Client, Verbs, ids
from emq_native.executors import NATIVE
from emq_native.server import ConfigValue, Server

SETTING = "hash-max-listpack-value"
SHIPPED = HERE.parent / "docker" / "valkey.conf"
PLACE = {"loadmodule", "bind", "protected-mode", "port", "dir"}  # where a server runs, not how


@dataclass(frozen=True)
class Sizes:
    """fill: payload -> jobs, just before and just after the server's tables double: the least and the most per job."""

    fill: dict[int, tuple[int, int]]
    limits: tuple[int, ...]
    rounds: int
    jobs: int


SIZES: dict[Size, Sizes] = {
    "full": Sizes(
        {100: (57_000, 58_000), 300: (28_000, 29_000), 1_000: (28_000, 29_000), 10_000: (3_550, 3_650)},
        limits=(64, 256, 1_024, 4_096, 16_384), rounds=7, jobs=1_000,
    ),
    "quick": Sizes({100: (28_000, 29_000), 10_000: (3_550, 3_650)}, limits=(64, 1_024), rounds=3, jobs=500),
    "smoke": Sizes({100: (100, 200)}, limits=(64, 1_024), rounds=1, jobs=100),
}  # fmt: skip

NOTE = """\
Bytes of the server's memory (`used_memory`, so with what the allocator, here {allocator}, rounds up) per job, with
the settings of docker/valkey.conf but for the limit named; there it is {shipped:,}. `over` is what is left after
the payload. A job takes least just before the server's tables double (`least over`) and most just after it (`most
over`); `waiting` is the mean of the two, `active` is measured after it. `life us`: the server's CPU for a whole
life, pipelined, append-only file included, median of {rounds} rounds of {jobs:,} jobs."""

COLUMNS = {
    "payload": ",", "limit": ",", "shipped": "", "jobs": ",", "waiting": ",.0f", "over": ",.0f", "least_over": ",.0f",
    "most_over": ",.0f", "active": ",.0f", "active_over": ",.0f", "life_us": ".2f", "spread": ".0%",
}  # fmt: skip


@dataclass
class Bytes:
    """Of one job. limit: hash-max-listpack-value; rounds: `life_us` of each."""

    payload: int
    limit: int
    shipped: str
    jobs: int
    waiting: float
    over: float
    least_over: float
    most_over: float
    active: float
    active_over: float
    life_us: float
    spread: float
    rounds: list[float]


def shipped() -> dict[str, ConfigValue]:
    """The directives of docker/valkey.conf that say how a server works."""
    lines = (shlex.split(line, comments=True) for line in SHIPPED.read_text().splitlines())
    return {name: " ".join(words) or '""' for name, *words in filter(None, lines) if name not in PLACE}


def measure(size: Size) -> list[Table]:
    """One table, `memory`."""
    sizes = SIZES[size]
    config = shipped()
    given = int(str(config[SETTING]))
    with ExitStack() as stack:
        stack.enter_context(aside())
        server = stack.enter_context(served(NATIVE, config | {"auto-aof-rewrite-percentage": 0}))
        rows = [row for payload in sizes.fill for row in rows_of(server, sizes, payload, given)]
        with server.client() as client:
            allocator = client.info("memory")["mem_allocator"]
    note = NOTE.format(allocator=allocator, shipped=given, rounds=sizes.rounds, jobs=sizes.jobs)
    return [Table("memory", "What memory does a job take?", note, COLUMNS, rows)]


def rows_of(server: Server, sizes: Sizes, payload: int, given: int) -> Iterator[Bytes]:
    verbs = Verbs(NATIVE, b"x" * payload)
    limits = sorted({*sizes.limits, given})
    rounds: dict[int, list[float]] = {limit: [] for limit in limits}
    with server.client() as client:
        for _ in range(sizes.rounds):
            for limit in limits:
                client.config_set(SETTING, limit)
                rounds[limit].append(life(server, verbs, sizes.jobs))
        for limit in limits:
            client.config_set(SETTING, limit)
            client.delete(f"{verbs.queue.decode()}:metrics:completed")
            (_, least), (many, most), (_, active) = filled(server, verbs, *sizes.fill[payload])
            fence = client.get("{emq}:version")
            client.execute_command("FLUSHALL", "SYNC")
            client.set("{emq}:version", fence)
            yield Bytes(
                payload=payload, limit=limit, shipped="yes" if limit == given else "", jobs=many,
                waiting=(least + most) / 2, over=(least + most) / 2 - payload,
                least_over=least - payload, most_over=most - payload, active=active, active_over=active - payload,
                life_us=median(rounds[limit]), spread=spread(rounds[limit]), rounds=rounds[limit],
            )  # fmt: skip


def filled(server: Server, verbs: Verbs, few: int, many: int) -> Iterator[tuple[int, float]]:
    """Jobs and bytes per job: with few that wait, with many that wait, and when the many are under a lease."""
    jobs = ids(many)
    before = used_memory(server)
    for call, some in ((verbs.enqueue, jobs[:few]), (verbs.enqueue, jobs[few:]), (verbs.claim, jobs)):
        with Client(server) as client:
            client.run(FILLING.exchanges(call, some))
        count = few if some == jobs[:few] else many
        yield count, (used_memory(server) - before) / count


def life(server: Server, verbs: Verbs, count: int) -> float:
    """Microseconds of the server's CPU per job."""
    jobs = ids(count)
    steps = [PIPELINE.exchanges(call, jobs) for call in (verbs.enqueue, verbs.claim, verbs.complete)]
    with Client(server) as client:
        before = cpu_ns(server)
        for step in steps:
            client.run(step)
        return (cpu_ns(server) - before) / count / US


def used_memory(server: Server) -> int:
    """Bytes."""
    await_tables(server)
    with server.client() as client:
        return int(client.info("memory")["used_memory"])
