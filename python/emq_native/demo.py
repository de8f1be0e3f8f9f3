"""The main job on real input: hash every file of a directory through the queue, and lose workers on the way.

One producer, this process, enqueues one job per file. Worker processes claim a job, hash its file, store the digest
under the file's name and complete the job. In the middle one worker is killed by SIGKILL with jobs in its hands, and
another one keeps a job beyond its lease: the others reap what they left behind, and the token refuses the late one when
it comes back while somebody else works on its job.

Storing a digest twice does no harm, so delivery at least once is enough; what the token protects is the settling. In
the end every digest is compared with that of a sequential run.
"""

from __future__ import annotations

import errno
import hashlib
import multiprocessing
import os
import signal
import stat
import sys
import sysconfig
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any, Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from emq_native import EmqError, InvalidArgument, Job, Queue, StaleToken, WrongState, connect, provision
from emq_native.cli.console import facts
from emq_native.server import Server

__all__ = ["demonstrate"]

QUEUE: Final = "demo"
DIGESTS: Final = b"demo:digests"
LEASE_S: Final = 1.0
IDLE_S: Final = 0.02
HELD: Final = 3
BATCH: Final = 50
STALLED_S: Final = 60.0
CHUNK: Final = 1 << 20

# What stands inside the folder of the standard library and does not belong to it.
INSTALLED: Final = frozenset({b"site-packages", b"dist-packages"})

# What the parent tells a worker.
HOLD, OUTLIVE, TRY, GO, STOP = "hold", "outlive", "try", "go", "stop"


class DemoError(EmqError):
    """The demonstration broke off."""


@dataclass(frozen=True)
class File:
    """One input: its path below the directory, as bytes, and its size in bytes."""

    path: bytes
    size: int


def demonstrate(*, directory: str | None = None, executor: str = "native", workers: int = 4) -> bool:
    """Run it on an embedded server of its own and print what happened. Returns whether every digest is right.

    directory: by default the standard library of this Python. executor: "native" or "scripted". workers: 3 or more.
    Raises InvalidArgument for a directory without files, DemoError when it breaks off.
    """
    root = os.fsencode(os.path.abspath(directory or sysconfig.get_path("stdlib")))
    files = list(_files(root, frozenset() if directory else INSTALLED))
    if not files:
        raise InvalidArgument(f"there is no file below {_shown(root)}")
    wire = 6 if executor == "native" else 4
    with Server(module=wire == 6) as server:
        if wire == 6:
            provision.claim(server.client(), wire=6)
        with _stage(len(files)) as stage:
            stage.tell(f"{len(files)} files below {_shown(root)}, {workers} workers, {executor} executor (wire {wire})")
            run = _Run(server.url, wire, root, files, stage)
            run.play(workers)
            stage.tell("once more, in one process, to compare")
            wrong = _compare(root, files, run.digests)
        facts(
            "what happened", [("server", f"Valkey {server.version}, wire {wire}"), *run.rows(), _verdict(files, wrong)]
        )
    return not wrong


def _files(root: bytes, without: frozenset[bytes]) -> Iterator[File]:
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(set(folders) - without)
        for name in sorted(names):
            path = os.path.join(folder, name)
            try:
                status = os.lstat(path)
            except OSError:
                continue
            if stat.S_ISREG(status.st_mode):
                yield File(os.path.relpath(path, root), status.st_size)


def digest_of(path: bytes, beat: Callable[[], None] = lambda: None) -> bytes:
    """SHA-256 of a file in hexadecimal, or why it cannot be read. `beat` is called after every MiB."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while chunk := file.read(CHUNK):
                digest.update(chunk)
                beat()
    except OSError as error:
        return f"unreadable: {errno.errorcode.get(error.errno or 0, 'EIO')}".encode()
    return digest.hexdigest().encode()


def _compare(root: bytes, files: list[File], digests: dict[bytes, bytes]) -> list[bytes]:
    return [file.path for file in files if digests.get(file.path) != digest_of(os.path.join(root, file.path))]


def _verdict(files: list[File], wrong: list[bytes]) -> tuple[str, str]:
    if not wrong:
        return "verdict", f"all {len(files)} digests equal those of the sequential run"
    shown = ", ".join(_shown(path) for path in wrong[:5])
    return "verdict", f"{len(wrong)} of {len(files)} digests DIFFER: {shown}"


def _shown(path: bytes) -> str:
    return path.decode("utf-8", "backslashreplace")


# The worker


class _Worker:
    """A worker process: claim, hash, store, complete; reap for the others; play a part when told to."""

    def __init__(self, queue: Queue, store: Any, root: bytes, link: Connection[Any, Any]) -> None:
        self.queue = queue
        self.store = store
        self.root = root
        self.link = link
        self.orders: deque[str] = deque()
        self.reap_at = 0.0

    def run(self) -> None:
        """Until told to stop."""
        self.link.send(("ready",))
        idle = False
        while (order := self.next_order(IDLE_S if idle else 0)) != STOP:
            if order == HOLD:
                self.hold()
            elif order == OUTLIVE:
                self.outlive()
            self.reap()
            job = self.claim()
            idle = job is None
            if job is not None:
                self.work(job)

    def next_order(self, seconds: float | None) -> str | None:
        """The next order, waiting for it at most so long; None without one. A parent that is gone says STOP."""
        if self.orders:
            return self.orders.popleft()
        try:
            return self.link.recv() if self.link.poll(seconds) else None
        except (EOFError, OSError):
            return STOP

    def await_order(self, wanted: str) -> bool:
        """Wait for one order and keep the others for later. False when it is time to stop."""
        kept: list[str] = []
        while (order := self.next_order(None)) not in (wanted, STOP):
            if order is not None:
                kept.append(order)
        self.orders.extend([STOP] if order == STOP else kept)
        return order == wanted

    def claim(self) -> Job | None:
        """A job under a lease. One that was somebody else's before is reported, and kept until the parent agrees."""
        job = self.queue.claim(LEASE_S)
        if job is not None and job.attempts > 1:
            self.link.send(("again", job.id, job.attempts))
            self.await_order(GO)
        return job

    def work(self, job: Job) -> None:
        """Hash, store, complete. A big file gets its lease extended on the way."""
        extend_at = time.monotonic() + LEASE_S / 3
        assert job.payload is not None

        def beat() -> None:
            nonlocal extend_at
            if time.monotonic() >= extend_at:
                self.queue.extend(job, LEASE_S)
                extend_at = time.monotonic() + LEASE_S / 3

        try:
            digest = digest_of(os.path.join(self.root, job.payload), beat)
            self.store.hset(DIGESTS, job.payload, digest)
            self.queue.complete(job)
        except (StaleToken, WrongState) as refusal:
            self.link.send(("refused", job.id, job.attempts, str(refusal)))

    def reap(self) -> None:
        """Bring back what others left behind, a few times per lease."""
        if time.monotonic() >= self.reap_at:
            self.queue.reap()
            self.reap_at = time.monotonic() + LEASE_S / 5

    def take(self, count: int) -> list[Job]:
        """At least one job and at most `count`, as soon as there are some; none when it is time to stop."""
        self.link.send(("armed",))
        jobs: list[Job] = []
        while len(jobs) < count:
            job = self.claim()
            if job is not None:
                jobs.append(job)
            elif jobs or self.stopped():
                break
        return jobs

    def stopped(self) -> bool:
        """Whether STOP has come; any other order is kept."""
        order = self.next_order(0.001)
        if order is not None:
            self.orders.appendleft(order)
        return order == STOP

    def hold(self) -> None:
        """Take jobs and do nothing with them, until SIGKILL comes."""
        if jobs := self.take(HELD):
            self.link.send(("holding", [job.id for job in jobs]))
            self.await_order(STOP)

    def outlive(self) -> None:
        """Take a job, be late, and complete it although somebody else has it by then."""
        for job in self.take(1):
            self.link.send(("late", job.id))
            if self.await_order(TRY):
                try:
                    text = "accepted" if self.queue.complete(job) else "the job was gone"
                    self.link.send(("tried", job.id, job.attempts, False, text))
                except StaleToken as refusal:
                    self.link.send(("tried", job.id, job.attempts, True, str(refusal)))


def _work(url: str, wire: int, root: bytes, link: Connection[Any, Any]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, whose end closes the link
    try:
        with connect(url, wire=wire) as bus:
            _Worker(bus.queue(QUEUE), bus.client, root, link).run()
    except EmqError as error:
        link.send(("failed", f"{type(error).__name__}: {error}"))


# The parent


@dataclass
class _Hand:
    """A worker as its parent sees it."""

    number: int
    process: Any
    link: Connection[Any, Any]
    ready: bool = False
    armed: bool = False


@dataclass
class _Run:
    """One run: the producer, and the director of the two workers that play a part."""

    url: str
    wire: int
    root: bytes
    files: list[File]
    stage: _Stage
    hands: list[_Hand] = field(default_factory=list)
    digests: dict[bytes, bytes] = field(default_factory=dict)
    seconds: float = 0.0
    killed: str = "none: no job was left to hold"
    late: tuple[str, _Hand] | None = None
    rescuer: _Hand | None = None
    redelivered: int = 0
    refusals: list[str] = field(default_factory=list)

    def play(self, workers: int) -> None:
        """Everything, from the first job to the last digest."""
        with connect(self.url, wire=self.wire) as bus:
            queue = bus.queue(QUEUE)
            try:
                self._hire(workers)
                started = time.monotonic()
                middle = len(self.files) // 2
                self._produce(queue, self.files[:middle])
                victim, idler = self.hands[:2]
                victim.link.send(HOLD)
                idler.link.send(OUTLIVE)
                self._listen_until(lambda: victim.armed and idler.armed, queue)
                self._produce(queue, self.files[middle:])
                self._listen_until(lambda: queue.counts().completed >= len(self.files), queue)
                self.seconds = time.monotonic() - started
                self._let_the_late_one_try(queue)
                self.digests = bus.client.hgetall(DIGESTS)
            finally:
                self._dismiss()

    def rows(self) -> list[tuple[str, str]]:
        """What happened, for the table."""
        size = sum(file.size for file in self.files)
        return [
            ("files", str(len(self.files))),
            ("bytes", str(size)),
            ("seconds", f"{self.seconds:.2f}"),
            ("jobs per second", f"{len(self.files) / self.seconds:.0f}"),
            ("killed", self.killed),
            ("redelivered", str(self.redelivered)),
            ("refused as stale", "; ".join([str(len(self.refusals)), *sorted(set(self.refusals))])),
        ]

    def _hire(self, workers: int) -> None:
        context = multiprocessing.get_context("spawn")
        for number in range(1, workers + 1):
            ours, theirs = context.Pipe()
            process = context.Process(target=_work, args=(self.url, self.wire, self.root, theirs), daemon=True)
            process.start()
            theirs.close()
            self.hands.append(_Hand(number, process, ours))
        self._listen_until(lambda: all(hand.ready for hand in self.hands), None)

    def _produce(self, queue: Queue, files: list[File]) -> None:
        for start in range(0, len(files), BATCH):
            for file in files[start : start + BATCH]:
                queue.enqueue(file.path)
            self._listen(0)
            self.stage.done(queue.counts().completed)

    def _listen_until(self, over: Callable[[], bool], queue: Queue | None) -> None:
        done, stalled_at = -1, time.monotonic() + STALLED_S
        while not over():
            self._listen(0.05)
            completed = queue.counts().completed if queue is not None else 0
            self.stage.done(completed)
            if completed > done:
                done, stalled_at = completed, time.monotonic() + STALLED_S
            elif time.monotonic() > stalled_at:
                raise DemoError(f"nothing moved for {STALLED_S:.0f} s, {completed} of {len(self.files)} done")

    def _let_the_late_one_try(self, queue: Queue) -> None:
        if self.late is not None:
            self.late[1].link.send(TRY)
            self._listen_until(lambda: self.late is None, queue)

    def _listen(self, seconds: float) -> None:
        by_link = {hand.link: hand for hand in self.hands}
        for link in wait(list(by_link), seconds):
            assert isinstance(link, Connection)
            hand = by_link[link]
            try:
                self._hear(hand, *link.recv())
            except (EOFError, ConnectionError):
                self._lost(hand)

    def _lost(self, hand: _Hand) -> None:
        hand.process.join()
        hand.link.close()
        self.hands.remove(hand)
        if hand.process.exitcode != -signal.SIGKILL:
            raise DemoError(f"worker {hand.number} ended by itself, exit status {hand.process.exitcode}")

    def _hear(self, hand: _Hand, what: str, *details: Any) -> None:
        if what == "ready":
            hand.ready = True
        elif what == "armed":
            hand.armed = True
        elif what == "holding":
            hand.process.kill()
            held = "1 job" if len(details[0]) == 1 else f"{len(details[0])} jobs"
            self.killed = f"worker {hand.number} (pid {hand.process.pid}) with {held} in its hands"
            self.stage.tell(f"SIGKILL to {self.killed}")
        elif what == "late":
            self.late = (details[0], hand)
            self.stage.tell(f"worker {hand.number} sits on {details[0]} with token 1 and outlives its lease")
        elif what == "again":
            self._again(hand, *details)
        elif what == "tried":
            self._tried(*details)
        elif what == "refused":
            self.refusals.append(details[2])
            self.stage.tell(f"worker {hand.number} was late with {details[0]}: {details[2]}")
        else:
            raise DemoError(f"worker {hand.number}: {details[0]}")

    def _again(self, hand: _Hand, job: str, attempts: int) -> None:
        self.redelivered += 1
        self.stage.tell(f"{job} came back: worker {hand.number} has it with token {attempts}")
        if self.late is not None and self.late[0] == job and self.rescuer is None:
            self.rescuer = hand
            self.late[1].link.send(TRY)
        else:
            hand.link.send(GO)

    def _tried(self, job: str, token: int, refused: bool, text: str) -> None:
        self.stage.tell(f"its first worker completes {job} with token {token}: {text}")
        if refused:
            self.refusals.append(text)
        elif text == "accepted":
            raise DemoError(f"a stale completion of {job} was accepted")
        self.late = None
        if self.rescuer is not None:
            self.rescuer.link.send(GO)

    def _dismiss(self) -> None:
        for hand in self.hands:
            try:
                hand.link.send(STOP)
            except OSError:
                continue
        for hand in self.hands:
            hand.process.join(2)
            hand.process.kill()
            hand.process.join()
            hand.link.close()


# What people see


class _Stage:
    """Progress: a bar on a terminal, a line per quarter elsewhere; `tell` writes a line above it."""

    def __init__(self, total: int, bar: Progress | None) -> None:
        self.total = total
        self.bar = bar
        self.task = bar.add_task("jobs", total=total) if bar is not None else None
        self.quarter = 0

    def tell(self, text: str) -> None:
        """One line."""
        if self.bar is not None:
            self.bar.console.print(text, highlight=False, markup=False)
        else:
            print(text, flush=True)

    def done(self, completed: int) -> None:
        """So many jobs are completed."""
        if self.bar is not None and self.task is not None:
            self.bar.update(self.task, completed=completed)
        elif completed * 4 // self.total > self.quarter:
            self.quarter = completed * 4 // self.total
            self.tell(f"{completed} of {self.total} jobs done")


@contextmanager
def _stage(total: int) -> Iterator[_Stage]:
    if not sys.stdout.isatty():
        yield _Stage(total, None)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console()) as bar:
        yield _Stage(total, bar)
