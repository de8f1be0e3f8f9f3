"""A storm over a queue: workers die by SIGKILL all the time, the server dies by kill -9 again and again.

What must hold: no job is lost, and none is completed twice. Each handler notes its run in a file of its process before
it returns; each completion that the server acknowledged is noted from the log of the worker. In the end the queue is
empty, the server has counted as many completions as there were jobs, every job ran, and no job was acknowledged twice.

    python -m tests.storm.storm --executor native --jobs 10000
"""

from __future__ import annotations

import argparse
import gc
import logging
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from emq_native import HeldJob, Worker, connect, mint, provision
from emq_native import transitions as t
from emq_native.server import Server
from emq_native.terms import logger
from emq_native.values import Counts

QUEUE = "storm"
LEASE_S = 1.0
WORK_S = 0.03
"""Mean length of a job, so that workers die with jobs in their hands."""

GROUPS = ("red", "green", "blue")
PAGE = 500


@dataclass
class Report:
    """What a storm did, and what it found."""

    jobs: int
    seconds: float = 0.0
    worker_kills: int = 0
    server_kills: int = 0
    runs: int = 0
    counts: Counts | None = None
    lost: set[str] = field(default_factory=set)
    twice: set[str] = field(default_factory=set)

    @property
    def redeliveries(self) -> int:
        """Runs beyond the first of each job."""
        return self.runs - (self.jobs - len(self.lost))

    @property
    def sound(self) -> bool:
        """Whether nothing was lost and nothing was completed twice."""
        empty = Counts(0, 0, 0, 0, 0, self.jobs, 0)
        return self.counts == empty and not self.lost and not self.twice

    def lines(self) -> list[str]:
        """For people."""
        return [
            f"jobs:             {self.jobs} in {self.seconds:.1f} s",
            f"workers killed:   {self.worker_kills} (SIGKILL)",
            f"server killed:    {self.server_kills} (kill -9, appendfsync always)",
            f"lost:             {len(self.lost)}",
            f"completed twice:  {len(self.twice)}",
            f"redeliveries:     {self.redeliveries}",
            f"at the end:       {self.counts}",
            f"verdict:          {'sound' if self.sound else 'NOT SOUND'}",
        ]


def storm(
    executor: str,
    *,
    jobs: int,
    server_kills: int,
    workers: int = 12,
    kill_every: float = 0.05,
    patience: float = 600.0,
    tell: Callable[[str], None] = lambda line: None,
) -> Report:
    """Let it rage until all jobs are completed, at most `patience` seconds."""
    wire = 6 if executor == "native" else 4
    report = Report(jobs)
    config = {"appendonly": "yes", "appendfsync": "always"}
    with tempfile.TemporaryDirectory(prefix="emq-storm-") as folder, Server(module=wire == 6, config=config) as server:
        provision.claim(server.client(), wire=wire)
        ids = _enqueue(server.url, jobs)
        notes = Path(folder)
        _rage(server, notes, report, server_kills, workers, kill_every, patience, tell)
        with connect(server.url) as bus:
            report.counts = bus.queue(QUEUE).counts()
        runs = Counter(_noted(notes, "run"))
        done = Counter(line.partition(" ")[0] for line in _noted(notes, "done"))
        report.runs = sum(runs.values())
        report.lost = set(ids) - set(runs)
        report.twice = {job_id for job_id, times in done.items() if times > 1}
    return report


def _enqueue(url: str, jobs: int) -> list[str]:
    """Flat jobs, jobs of lanes, and jobs that are due soon, a third each."""
    ids = [mint() for _ in range(jobs)]
    with connect(url) as bus:
        queue = bus.queue(QUEUE)
        for first in range(0, jobs, PAGE):
            steps: list[t.Transition[object]] = []
            for number, job_id in enumerate(ids[first : first + PAGE], first):
                if number % 3 == 0:
                    steps.append(t.Enqueue(b"", id=job_id))
                elif number % 3 == 1:
                    steps.append(t.Enqueue(b"", id=job_id, group=GROUPS[number % len(GROUPS)]))
                else:
                    steps.append(t.EnqueueIn(b"", random.random() * 5, id=job_id))
            assert all(queue.pipeline(steps))
    return ids


def _rage(
    server: Server,
    notes: Path,
    report: Report,
    server_kills: int,
    workers: int,
    kill_every: float,
    patience: float,
    tell: Callable[[str], None],
) -> None:
    begun = next_kill = time.monotonic()
    completed = 0
    alive = [_fork(server.url, notes) for _ in range(workers)]
    client = server.client()
    try:
        while completed < report.jobs and time.monotonic() - begun < patience:
            next_kill += kill_every
            time.sleep(max(0.0, next_kill - time.monotonic()))
            victim = alive.pop(random.randrange(len(alive)))
            os.kill(victim, signal.SIGKILL)
            os.waitpid(victim, 0)
            report.worker_kills += 1
            alive.append(_fork(server.url, notes))
            completed = int(client.hget(f"emq:{{{QUEUE}}}:metrics:completed", "count") or 0)
            share = (report.server_kills + 1) / (server_kills + 1)
            if report.server_kills < server_kills and completed >= report.jobs * share:
                server.kill()
                server.start()
                client.close()
                client = server.client()
                report.server_kills += 1
                tell(f"{completed} completed, server killed {report.server_kills} times")
                next_kill = time.monotonic()
    finally:
        for pid in alive:
            os.kill(pid, signal.SIGTERM)
        for pid in alive:
            os.waitpid(pid, 0)
        client.close()
    report.seconds = time.monotonic() - begun


def _noted(notes: Path, kind: str) -> list[str]:
    """The lines of all processes; the last one of a process that was killed may be cut."""
    found = []
    for file in notes.glob(f"{kind}-*"):
        found += [line for line in file.read_text().split("\n")[:-1] if line]
    return found


# In the worker processes


def _fork(url: str, notes: Path) -> int:
    """A worker process. Forked, because a new interpreter would take longer to start than it has to live."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        random.seed()
        gc.disable()
        _work(url, notes)
        status = 0
    finally:
        os._exit(status)


def _work(url: str, notes: Path) -> None:
    name = f"{os.getpid()}-{time.monotonic_ns()}"
    runs = os.open(notes / f"run-{name}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    done = os.open(notes / f"done-{name}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    class Done(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.msg == "job %s is completed":
                os.write(done, f"{record.job_id} {record.attempt}\n".encode())  # type: ignore[attr-defined]

    def handler(job: HeldJob) -> None:
        time.sleep(random.random() * 2 * WORK_S)
        os.write(runs, f"{job.id}\n".encode())

    logger.handlers[:] = [Done()]
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    while True:
        # A server that is down is waited for by the worker, but not by the first connect.
        try:
            bus = connect(url)
            break
        except Exception:
            time.sleep(0.02)
    Worker(
        bus.queue(QUEUE), handler, concurrency=2, lease=LEASE_S, batch=10, max_attempts=10_000, block=1.0, grace=5.0
    ).run()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--executor", choices=["native", "scripted"], default="native")
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--server-kills", type=int, default=10)
    parser.add_argument("--workers", type=int, default=12)
    chosen = parser.parse_args()
    print(f"storm on the {chosen.executor} executor", flush=True)
    report = storm(
        chosen.executor,
        jobs=chosen.jobs,
        server_kills=chosen.server_kills,
        workers=chosen.workers,
        tell=lambda line: print(f"  {line}", flush=True),
    )
    print("\n".join(f"  {line}" for line in report.lines()), flush=True)
    sys.exit(0 if report.sound else 1)


if __name__ == "__main__":
    main()
