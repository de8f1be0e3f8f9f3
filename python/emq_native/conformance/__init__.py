# SPDX-License-Identifier: BSD-3-Clause
"""The conformance suite: the cases of the contract, run against any node.

    report = run("redis://127.0.0.1:6379/0")
    print(report.ok, report.counts())

Every case works on queues of its own and deletes them. A node of somebody else keeps its fence, its configuration and
all other data; cases that need a server of their own are reported as such there and are not run.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from enum import Enum

from ..executors import NATIVE, SCRIPTED, Executor
from .case import CASES, ONCE, OWN_SERVER, Case, Mismatch, NotServed
from .cases import load
from .host import OwnServer
from .lab import Lab
from .wire import Error, Wire, WireLost

__all__ = ["CASES", "Case", "Outcome", "Report", "Result", "judge", "results", "run"]

load()


class Outcome(Enum):
    """How a case ended."""

    OK = "ok"
    FAIL = "FAIL"
    NOT_SERVED = "not served"
    NEEDS_OWN_SERVER = "needs a server of its own"


@dataclass(frozen=True)
class Result:
    """One case on one protocol version.

    what, expected, found: filled for a failure. seconds: how long it took.
    """

    case: Case
    protocol: int
    outcome: Outcome
    what: str = ""
    expected: str = ""
    found: str = ""
    seconds: float = 0.0


@dataclass
class Report:
    """All results of a run against one node."""

    url: str
    executor: str
    server: str
    results: list[Result] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether something was proved and nothing failed."""
        counts = self.counts()
        return bool(counts[Outcome.OK]) and not counts[Outcome.FAIL]

    def counts(self) -> Counter[Outcome]:
        """How many results there are of each outcome."""
        return Counter(result.outcome for result in self.results)


def run(
    url: str,
    executor: Executor | None = None,
    *,
    only: Collection[str] = (),
    protocols: Collection[int] = (2, 3),
    own_server: OwnServer | None = None,
    each: Callable[[Result], object] | None = None,
) -> Report:
    """Run the cases against the node at `url`.

    executor: NATIVE or SCRIPTED; by default the one whose identity the fence of the node holds. only: numbers of cases
    (default: all). own_server: the node is ours, so that every case may run. each: is told every result as it comes.
    Raises ValueError when the executor cannot be told or the module is not there, WireLost when the node is not.
    """
    with Wire(url) as wire:
        chosen = executor or _executor_of(wire)
        report = Report(url, chosen.name, _server(wire))
    for result in results(url, chosen, only=only, protocols=protocols, own_server=own_server):
        report.results.append(result)
        if each is not None:
            each(result)
    return report


def results(
    url: str,
    executor: Executor,
    *,
    only: Collection[str] = (),
    protocols: Collection[int] = (2, 3),
    own_server: OwnServer | None = None,
) -> Iterator[Result]:
    """As `run`, one result after the other, while the cases run."""
    unknown = set(only) - set(CASES)
    if unknown:
        raise ValueError(f"unknown cases: {', '.join(sorted(unknown))}")
    for case in sorted(CASES.values(), key=lambda case: case.number):
        if executor.name not in case.executors() or (only and case.number not in only):
            continue
        for protocol in sorted(protocols)[: 1 if ONCE in case.needs else None]:
            yield judge(case, url, executor, protocol, own_server)


def judge(case: Case, url: str, executor: Executor, protocol: int, own_server: OwnServer | None = None) -> Result:
    """Run one case and say how it ended; only a lost node raises."""
    started = time.monotonic()

    def result(outcome: Outcome, what: str = "", expected: object = "", found: object = "") -> Result:
        return Result(case, protocol, outcome, what, str(expected), str(found), time.monotonic() - started)

    if case.function is None:
        return result(Outcome.NOT_SERVED, ", ".join(case.verbs))
    if OWN_SERVER in case.needs and own_server is None:
        return result(Outcome.NEEDS_OWN_SERVER)
    with Lab(url, executor, protocol, own_server) as lab:
        missing = [verb for verb in case.verbs if not lab.serves(verb)]
        if missing:
            return result(Outcome.NOT_SERVED, ", ".join(missing))
        try:
            case.function(lab)
            lab.check()
        except NotServed as gap:
            return result(Outcome.NOT_SERVED, gap.verb)
        except Mismatch as mismatch:
            return result(Outcome.FAIL, mismatch.what, repr(mismatch.expected), repr(mismatch.found))
        except WireLost as lost:
            return result(Outcome.FAIL, "the connection holds", "a reply", lost)
        except Exception as error:
            return result(Outcome.FAIL, "the case runs to its end", "no exception", repr(error))
    return result(Outcome.OK)


def _executor_of(wire: Wire) -> Executor:
    fence = wire.call("GET", "{emq}:version")
    for executor in (NATIVE, SCRIPTED):
        if fence == executor.identity.encode():
            return executor
    if b"_mode:cluster" in _info(wire):
        raise ValueError("in cluster mode each queue has its own fence: say which executor is to be tested")
    if fence is None:
        raise ValueError("nobody has claimed this node: claim it, or say which executor is to be tested")
    found = fence.text if isinstance(fence, Error) else repr(fence)
    raise ValueError(f"the fence of this node names no executor (found {found}): say which one is to be tested")


def _info(wire: Wire) -> bytes:
    reply = wire.call("INFO", "server")
    return reply if isinstance(reply, bytes) else b""


def _server(wire: Wire) -> str:
    lines = dict(line.split(":", 1) for line in _info(wire).decode().splitlines() if ":" in line)
    return lines.get("valkey_version") or lines.get("redis_version") or "unknown"
