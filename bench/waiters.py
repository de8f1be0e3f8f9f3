"""What does it cost to wake one of many?

So many connections wait for one queue: by EMQ.NEXT, and in lists by BLPOP. Jobs are enqueued one after the other; each
wakes one waiter, which takes its job and waits again. The server's CPU per job has to stay the same however many wait.

    python bench/waiters.py                                      # half a minute, on the default server
    EMQ_VALKEY_SERVER=/path/to/valkey-server python bench/waiters.py
    python bench/waiters.py --note "idle machine"                # and this is noted in the results

It prints a table and writes bench/results/waiters-<version>.json.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import selectors
import socket
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import redis
from rich.console import Console
from rich.table import Table

from emq_native import mint, provision
from emq_native.server import Server

RESULTS = Path(__file__).parent / "results"
CROWDS = (1, 10, 100, 1_000, 4_000)
WAKES = 300
WAKES_S = 6  # a crowd that is woken slowly is woken less often
US = 1_000  # nanoseconds
PAYLOAD = b"x" * 64

Words = tuple[bytes, ...]


def encode(words: Words) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


@dataclass(frozen=True)
class Row:
    """One crowd. us: the server's main thread per wake, with the enqueuing and the waiting again; p50_us, p99_us: from
    sending the job to having it."""

    waits_by: str
    waiters: int
    wakes: int
    us: float
    p50_us: float
    p99_us: float


@contextmanager
def crowd(server: Server, size: int, wait: bytes, client: redis.Redis) -> Iterator[selectors.BaseSelector]:
    """So many connections that wait."""
    with ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        for _ in range(size):
            each = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            each.sendall(wait)
            selector.register(each, selectors.EVENT_READ)
        while client.info("clients")["blocked_clients"] < size:
            time.sleep(0.01)
        yield selector


def cpu_us(client: redis.Redis) -> float:
    used = client.info("cpu")
    return 1e6 * (used["used_cpu_sys_main_thread"] + used["used_cpu_user_main_thread"])


def measure(server: Server, size: int, name: str, wait: bytes, enqueue: Words) -> Row:
    with server.client() as client, crowd(server, size, wait, client) as selector:
        late: list[int] = []
        looks = 0
        before, end = cpu_us(client), time.monotonic() + WAKES_S
        with socket.create_connection(("127.0.0.1", server.port)) as producer:
            while len(late) < WAKES and time.monotonic() < end:
                words = tuple(mint().encode() if word == b"<id>" else word for word in enqueue)
                began = time.perf_counter_ns()
                producer.sendall(encode(words))
                ((key, _),) = selector.select(30)
                woken = key.fileobj
                assert isinstance(woken, socket.socket)
                answer = woken.recv(4096)
                late.append(time.perf_counter_ns() - began)
                assert PAYLOAD in answer, answer
                assert producer.recv(4096) == b":1\r\n"
                woken.sendall(wait)
                blocked = 0
                while blocked < size:
                    blocked = client.info("clients")["blocked_clients"]
                    looks += 1
        used = cpu_us(client) - before
        quiet = cpu_us(client)
        for _ in range(looks):
            client.info("clients")
        used -= cpu_us(client) - quiet  # what looking cost
        client.delete("emq:{q}:active")
    cuts = statistics.quantiles(late, n=100, method="inclusive")
    return Row(name, size, len(late), used / len(late), cuts[49] / US, cuts[98] / US)


def rows(server: Server) -> Iterator[Row]:
    following = encode((b"EMQ.NEXT", b"emq:{q}", b"60000", b"BLOCK", b"600000"))
    popping = encode((b"BLPOP", b"list", b"600"))
    for size in CROWDS:
        yield measure(server, size, "EMQ.NEXT", following, (b"EMQ.ENQUEUE", b"emq:{q}", b"<id>", PAYLOAD))
        yield measure(server, size, "BLPOP", popping, (b"RPUSH", b"list", PAYLOAD))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--note", default="", help="what else the machine did, for the results")
    note = parser.parse_args().note
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 20_000) if most > 0 else 20_000, most))
    with Server(config={"save": "", "appendonly": "no", "maxclients": 6_000}) as server:
        provision.claim(server.url, wire=6)
        table = Table("waits by", "waiters", "wakes", "server us a wake", "p50 us", "p99 us")
        taken = []
        for row in rows(server):
            taken.append(row)
            numbers = (f"{number:,.0f}" for number in (row.waiters, row.wakes, row.us, row.p50_us, row.p99_us))
            table.add_row(row.waits_by, *numbers)
        Console().print(f"Valkey {server.version}", table)
        result = {"server": server.version, "machine": platform.platform(), "note": note, "rows": [*map(asdict, taken)]}
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"waiters-{result['server']}.json").write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
