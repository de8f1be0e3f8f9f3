"""Measures one library: how fast it sends and works, what that costs, and how soon a job begins."""

from __future__ import annotations

import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import redis

from bench.common import AOF
from bench.memory import SETTING, shipped
from bench.peers.libraries import LIBRARIES, OWN, PAYLOAD, BullMqNode
from emq_native.server import Server

HERE = Path(__file__).resolve().parent
HOME = Path(os.environ.get("PEERS_HOME", HERE.parents[1] / "build" / "peers"))
LISTS_JOBS = 2_000
WORK_S = 40  # of one setup; a worker that has not done all by then is judged by what it did
BEGIN_S = 30
LATE_JOBS = 100
MS, US = 1e6, 1e3  # nanoseconds


class Failed(Exception):
    """A library did not do what was asked of it; the message says what."""


def home_of(name: str) -> Path:
    """The virtual environment of a library, or the folder of the modules of Node.js."""
    library = LIBRARIES[name]
    if issubclass(library, BullMqNode):
        return HOME / "node"
    return Path(sys.prefix) if library.venv == OWN else HOME / (library.venv or name)


def is_installed(name: str) -> bool:
    home = home_of(name)
    return (home / "node_modules" / "bullmq").is_dir() or (home / "bin" / "python").exists()


def install(name: str) -> None:
    """Raises CalledProcessError, or OSError where there is no npm."""
    library, home = LIBRARIES[name], home_of(name)
    if library.venv == OWN:
        return
    home.mkdir(parents=True, exist_ok=True)
    if issubclass(library, BullMqNode):
        command = ["npm", "install", "--silent", "--no-fund", "--no-audit", "--prefix", str(home), *library.packages]
    else:
        if not is_installed(name):
            subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        command = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", *library.packages]
    subprocess.run(command, check=True)


class Records:
    """What the handlers noted: pairs of a job's number and the monotonic nanoseconds at which it began."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    def __len__(self) -> int:
        return self.path.stat().st_size // 16

    def __iter__(self) -> Iterator[tuple[int, int]]:
        data = self.path.read_bytes()
        return struct.iter_unpack("<qq", data[: len(data) // 16 * 16])

    def clear(self) -> None:
        os.truncate(self.path, 0)


def await_that(condition: Callable[[], bool], seconds: float, pause: float = 0.003) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True


class Child:
    """A producer or a worker, with whatever processes it starts."""

    def __init__(self, bench: Bench, name: str, role: str, *words: str) -> None:
        home, answers = home_of(name), subprocess.PIPE if role == "produce" else bench.log
        if issubclass(LIBRARIES[name], BullMqNode):
            setup = LIBRARIES[name].setups[int(words[0])] if words else None
            command = ["node", str(HERE / "bullmq.cjs"), role, *([str(setup.concurrency)] if setup else [])]
        else:
            command = [str(home / "bin" / "python"), str(HERE / "child.py"), role, name, *words]
        environment = {
            **os.environ,
            "PEERS_PORT": str(bench.server.port),
            "PEERS_RECORD": str(bench.records.path),
            "PEERS_PAYLOAD": PAYLOAD,
            "PYTHONPATH": str(HERE),
            "NODE_PATH": str(home / "node_modules"),
            "C_FORCE_ROOT": "1",  # else celery warns
        }
        self._popen = subprocess.Popen(
            command, env=environment, text=True, bufsize=1, stdin=subprocess.PIPE, stdout=answers, stderr=bench.log
        )
        self._process = psutil.Process(self._popen.pid)
        self.versions: dict[str, str] = self._answer()["versions"] if role == "produce" else {}

    def _answer(self) -> dict[str, Any]:
        assert self._popen.stdout is not None
        if line := self._popen.stdout.readline():
            answer: dict[str, Any] = json.loads(line)
            return answer
        raise Failed("the producer ended; the log says why")

    def ask(self, *words: object) -> dict[str, Any]:
        assert self._popen.stdin is not None
        self._popen.stdin.write(" ".join(map(str, words)) + "\n")
        self._popen.stdin.flush()
        return self._answer()

    def _family(self) -> list[psutil.Process]:
        with suppress(psutil.NoSuchProcess):
            return [self._process, *self._process.children(recursive=True)]
        return []

    def cpu(self) -> float:
        """Seconds, with those of processes that it started, ended ones too."""
        total = 0.0
        for process in self._family():
            with suppress(psutil.NoSuchProcess):
                total += sum(process.cpu_times()[:4])
        return total

    def kill(self) -> None:
        family = self._family()
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(family, timeout=5)
        self._popen.wait()
        for stream in (self._popen.stdin, self._popen.stdout):
            if stream is not None:
                with suppress(OSError):  # what was not yet written is for nobody
                    stream.close()


@dataclass(frozen=True)
class Cost:
    """Of one job. server_us: the server's main thread; calls: also those that scripts make; reads: of sockets, about
    one a round trip; client_us: the CPU of the producer or of the worker."""

    rate: float
    server_us: float
    calls: float
    reads: float
    client_us: float


@dataclass(frozen=True)
class Work(Cost):
    """rate: of n jobs, n - 1 over the time from the first beginning to the last. twice: that began more than once."""

    setup: str
    jobs_per_ack: int
    jobs: int
    twice: int
    complete: bool


@dataclass(frozen=True)
class Wait:
    """Milliseconds from the sending of a job, or from when it is due, until its handler begins."""

    setup: str
    jobs: int
    p50: float
    p99: float
    least: float


@dataclass
class Result:
    """lists_*: the rates of plain lists on the same server right before, which ratios are to."""

    library: str
    versions: dict[str, str] = field(default_factory=dict)
    lists_send: float = 0.0
    lists_work: float = 0.0
    send: Cost | None = None
    many: Cost | None = None
    bytes_waiting: float | None = None
    work: list[Work] = field(default_factory=list)
    prompt: Wait | None = None
    late: Wait | None = None
    failed: str = ""


@dataclass(frozen=True)
class Snapshot:
    cpu: float
    calls: int
    reads: int
    memory: int


def wait_of(setup: str, nanoseconds: list[int]) -> Wait:
    ordered = [each / MS for each in sorted(nanoseconds)]
    p50, p99 = (ordered[min(len(ordered) - 1, int(share * len(ordered)))] for share in (0.5, 0.99))
    return Wait(setup, len(ordered), p50, p99, ordered[0])


class Bench:
    """One library on a server of its own."""

    def __init__(self, name: str, server: Server, records: Records, log: Any, client: redis.Redis) -> None:
        self.name, self.library = name, LIBRARIES[name]
        self.server, self.records, self.log, self.client = server, records, log, client

    def snapshot(self) -> Snapshot:
        info: dict[str, Any] = self.client.info("everything")
        calls = {name[8:]: row["calls"] for name, row in info.items() if name.startswith("cmdstat_")}
        return Snapshot(
            cpu=info["used_cpu_user_main_thread"] + info["used_cpu_sys_main_thread"],
            calls=sum(calls.values()) - calls.get("info", 0) - calls.get("flushall", 0),
            reads=info["total_reads_processed"],
            memory=info["used_memory"],
        )

    @contextmanager
    def child(self, role: str, *words: str, name: str = "") -> Iterator[Child]:
        child = Child(self, name or self.name, role, *words)
        try:
            yield child
        finally:
            child.kill()

    def clear(self) -> None:
        self.client.flushall()
        self.records.clear()

    def sending(self, command: str, jobs: int, name: str = "") -> tuple[Cost, dict[str, str]]:
        with self.child("produce", name=name) as producer:
            before = self.snapshot()
            answer = producer.ask(command, jobs)
            after = self.snapshot()
        rate = jobs * 1e9 / (answer["ended"] - answer["began"])
        return Cost(rate, *self._costs(before, after, jobs), 1e6 * answer["cpu"] / jobs), producer.versions

    @staticmethod
    def _costs(before: Snapshot, after: Snapshot, jobs: int) -> tuple[float, float, float]:
        spent = 1e6 * (after.cpu - before.cpu), after.calls - before.calls, after.reads - before.reads
        server_us, calls, reads = (each / jobs for each in spent)
        return server_us, calls, reads

    def working(self, number: int, jobs: int, name: str = "") -> Work:
        """Works off what is there. What the server did is taken over all of it, start of the worker included."""
        setup = LIBRARIES[name or self.name].setups[number]
        goal = min(jobs, setup.most)
        self.records.clear()
        before = self.snapshot()
        with self.child("work", str(number), name=name) as worker:
            if not await_that(lambda: len(self.records) > 0, BEGIN_S):
                raise Failed(f"the worker '{setup.label}' began no job within {BEGIN_S} s")
            used, seen = worker.cpu(), len(self.records)
            complete = await_that(lambda: len(self.records) >= goal, WORK_S)
            used, seen = worker.cpu() - used, len(self.records) - seen
            if complete and goal == jobs:
                self._settle()
            after = self.snapshot()
        begun = list(self.records)
        instants = sorted(instant for _, instant in begun)
        rate = (len(instants) - 1) * 1e9 / max(1, instants[-1] - instants[0])
        return Work(
            rate,
            *self._costs(before, after, len(begun)),
            1e6 * used / max(1, seen),
            setup.label,
            setup.jobs_per_ack,
            len(begun),
            len(begun) - len({job for job, _ in begun}),
            complete,
        )

    def _settle(self) -> None:
        """Acknowledgements may come later than the beginning of the last job: until the server has grown quiet."""
        calls = -1

        def is_quiet() -> bool:
            nonlocal calls
            previous, calls = calls, self.snapshot().calls
            return calls - previous < 10

        await_that(is_quiet, 3, pause=0.05)

    def prompt(self) -> tuple[Wait, Wait | None]:
        """How soon an idle worker begins a job, then how late one that was delayed."""
        library, setup = self.library, self.library.setups[self.library.prompt]
        chance = random.Random(3)
        with self.child("work", str(library.prompt), "scheduler"), self.child("produce") as producer:
            for number in range(5):
                producer.ask("one", number)
            if not await_that(lambda: len(self.records) >= 5, BEGIN_S):
                raise Failed("the idle worker does not begin")
            time.sleep(0.5)  # it is idle again
            waits = []
            for number in range(library.prompt_jobs):
                seen = len(self.records)
                answer = producer.ask("one", number)
                if not await_that(lambda seen=seen: len(self.records) > seen, 10, 0.0005):  # type: ignore[misc]
                    raise Failed(f"job {number} did not begin within 10 s")
                waits.append(list(self.records)[seen][1] - answer["began"])
                time.sleep(chance.uniform(*library.prompt_gap))
            if not library.delays:
                return wait_of(setup.label, waits), None

            self.records.clear()
            due = {}
            for number in range(LATE_JOBS):
                seconds = round(0.5 + chance.uniform(0, 0.5), 3)
                due[number] = producer.ask("later", number, seconds)["began"] + int(seconds * 1e9)
            await_that(lambda: len(self.records) >= LATE_JOBS, 20)
        late = [instant - due[number] for number, instant in self.records if number in due]
        if not late:
            raise Failed("no delayed job began")
        return wait_of(setup.label, waits), wait_of(setup.label, late)

    def run(self, result: Result, most: int, waits: bool) -> None:
        library, jobs = self.library, min(most, self.library.jobs)
        lists, _ = self.sending("send", min(most, LISTS_JOBS), name="lists")
        result.lists_send, result.lists_work = lists.rate, self.working(0, min(most, LISTS_JOBS), name="lists").rate
        self.clear()
        memory = self.snapshot().memory
        result.send, result.versions = self.sending("send", jobs)
        await_that(lambda: self.client.info("clients")["connected_clients"] == 1, 5)
        result.bytes_waiting = (self.snapshot().memory - memory) / jobs
        for number in range(len(library.setups)):
            if number:
                self.clear()
                sent, _ = self.sending("many" if library.bulk_by else "send", jobs)
                result.many = result.many or (sent if library.bulk_by else None)
            result.work.append(self.working(number, jobs))
        if waits:
            self.clear()
            result.prompt, result.late = self.prompt()


def measure(name: str, *, most: int, aof: bool, waits: bool) -> Result:
    """One library, at most so many jobs, on a fresh server. A failure stands in the result, with what came before."""
    library = LIBRARIES[name]
    result = Result(name)
    config = {SETTING: shipped()[SETTING], **(AOF if aof else {})}  # it helps whoever keeps jobs in hashes
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="emq-peers-")))
        server = stack.enter_context(Server(module=library.module, config=config))
        client = stack.enter_context(server.client())
        HOME.mkdir(parents=True, exist_ok=True)
        log = stack.enter_context((HOME / "errors.log").open("a"))
        try:
            Bench(name, server, Records(directory / "records"), log, client).run(result, most, waits)
        except (Failed, OSError, redis.RedisError, psutil.Error) as failure:
            result.failed = f"{type(failure).__name__}: {failure}"
    return result
