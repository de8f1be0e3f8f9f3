"""A worker with threads: it takes jobs from a queue, runs a handler on them, and settles them.

Each runner, a thread, runs jobs as long as some are ready. When none is, the first one waits in the server for all of
them; the others make a round trip only to settle, and take what is there in passing. So a single runner settles and
takes with one command, and many of them have one socket that waits.

A further thread, the keeper, renews the leases by one command for all jobs in hand, ends handlers whose time is up, and
carries the worker through its end: no more jobs are taken; those that have not begun go back at once; those that run
may finish within the grace, and go back after it.

Troubles of the server are waited out, for as long as they last, with growing pauses. Verdicts are kept and sent again.
"""

from __future__ import annotations

import ctypes
import logging
import pickle
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from emq_native import transitions as t
from emq_native.backoff import Backoff, exponential
from emq_native.compositions import Source, Step
from emq_native.context import _CURRENT
from emq_native.dispatch import Answer
from emq_native.errors import EmqError, Redirected, Refused, Unavailable, refuses_job
from emq_native.executors import Executor
from emq_native.ledger import HeldJob, Ledger, Stats, Verdict
from emq_native.outcome import Policy, TimedOut, result_of, settling_of
from emq_native.pump import Pump
from emq_native.rounds import Batch, Round, Rounds, settle, unrenewed
from emq_native.serializers import Json, Serializer
from emq_native.terms import (
    Prepare,
    Terms,
    is_unsure,
    logger,
    simple,
    tell_ended,
    tell_paused,
    tell_settled,
    told,
    whether_paused,
)
from emq_native.wiring import Call, backoff

if TYPE_CHECKING:
    from emq_native.connector import Bus
    from emq_native.line import Line
    from emq_native.queue import Queue

__all__ = ["Worker"]

TICK_S: Final = 0.1
END_TICK_S: Final = 0.02

_USUAL: Final = Policy()
WORKING, STOPPING, LEAVING = "working", "stopping", "leaving"


@dataclass(slots=True)
class _Trip:
    """One round trip of a runner. count: 0 to settle only; wait: in the server, for all runners."""

    verdicts: list[Verdict]
    count: int
    wait: bool


class Worker:
    """Takes jobs from one queue and runs a handler on them in threads.

    handler: called with a HeldJob, which is a Job that also knows whether its lease was `lost`. What it returns
    completes the job, bytes as the result for a parent; what it raises fails it, also SystemExit; Retry, Snooze and
    Reject say more.
    concurrency: handlers at a time. lease: seconds that a job is ours without a sign of life; leases are renewed three
    times within it. batch: most jobs taken ahead when handlers are short. max_attempts, backoff, timeout: runs in all,
    seconds between them by the number of the failed run, and seconds that one run may take. sources: "flat" for
    jobs without a group, "lanes" for the others. block: seconds of one wait in the server. grace: seconds that handlers
    may go on after a stop. repeats: also fire the repeats of the queue. burst: end when nothing more can be taken, and
    by an error when the node is not there at the start, or lacks the module.

    A handler that is over its time is settled as failed at once, and TimedOut is raised in its thread as soon as that
    executes Python code.
    """

    def __init__(
        self,
        queue: Queue,
        handler: Callable[[HeldJob], Any],
        *,
        concurrency: int = 1,
        lease: float = 30.0,
        batch: int = 100,
        max_attempts: int = 4,
        backoff: Backoff | None = None,
        timeout: float | None = None,
        sources: Sequence[Source] = ("flat", "lanes"),
        block: float = 5.0,
        grace: float = 30.0,
        repeats: bool = False,
        burst: bool = False,
        prepare: Prepare | None = None,
        serializer: Serializer | None = None,
    ) -> None:
        policy = Policy(max_attempts, backoff or exponential(), timeout)
        self.queue = queue
        self._pickled = {name: value for name, value in locals().items() if name not in ("self", "policy", "queue")}
        self.terms = Terms(
            prepare=prepare or simple(handler, policy),
            concurrency=concurrency,
            lease=lease,
            batch=batch,
            max_attempts=max_attempts,
            sources=tuple(sources),
            block=block,
            grace=grace,
            repeats=repeats,
            burst=burst,
            serializer=serializer or Json(),
        )
        self._ledger = Ledger(concurrency, batch, lease)
        self._calls: Bus
        self._waits: Bus
        self._pump: Pump | None = None
        self._rounds: Rounds
        self._executor: Executor | None = None
        # Reentrant, because a signal may call `stop` where the same thread is about to.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._keeping = threading.Condition(self._lock)
        self._phase = WORKING
        self._ends_at = 0.0
        self._waiting = False
        self._dry = False
        self._reached = False
        self._told_paused = False
        self._runners = 0
        self._troubles = 0
        self._rests_until = 0.0
        self._numbers: dict[Line, int | None] = {}
        self._blocked: int | None = None
        self._error: BaseException | None = None
        self._keeper: threading.Thread | None = None
        self._ended = threading.Event()
        self._at_end: list[Callable[[], object]] = []

    @property
    def stats(self) -> Stats:
        """What became of the jobs so far."""
        return self._ledger.stats

    # Its life

    def start(self) -> None:
        """Start the threads and return. A worker starts once; where a thread cannot be started, it has ended."""
        if self._keeper is not None:
            raise RuntimeError("a worker starts once")
        bus, terms = self.queue.bus, self.terms
        self._calls = bus.sibling()
        self._waits = bus.sibling(socket_timeout=terms.socket_timeout)
        self._rounds = Rounds(
            key=self.queue.key,
            lease=terms.lease,
            block=terms.block,
            max_attempts=terms.max_attempts,
            sources=tuple(terms.sources),
        )
        if terms.repeats:
            self._pump = Pump(self.queue, promote=False, reap=False, serializer=terms.serializer)
        name = f"emq-{self.queue.name}"
        self._runners = terms.concurrency
        self._keeper = threading.Thread(target=self._keep, name=f"{name}-keeper", daemon=True)
        try:
            self._keeper.start()
            if self._pump is not None:
                self._pump.start(self._fail)
            for number in range(terms.concurrency):
                threading.Thread(target=self._serve, name=f"{name}-{number}", daemon=True).start()
        except BaseException as error:
            self._fail(error)
            if self._keeper.ident is None:
                self._close()
            raise

    def stop(self) -> None:
        """Take no more jobs, and end when those in hand are done, or have gone back after the grace. Does not wait.

        Called again, the worker leaves at once: what it holds comes back when the leases end.
        """
        with self._lock:
            self._stop()

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the end. Returns whether it has come. Raises what ended the worker, if it did not end by itself."""
        if not self._ended.wait(timeout):
            return False
        if self._error is not None:
            raise self._error
        return True

    def run(self, *, processes: int = 1) -> None:
        """Work until SIGTERM or SIGINT, or until the queue is empty with burst=True. A second signal leaves at once.

        Signals are handled when this is called in the main thread. processes: work in so many of them, spawned and
        supervised by this one, each with `concurrency` threads; the bus must come from a URL, the handler from a
        module. Raises WireMismatch and other errors that no waiting can mend; with processes, WorkerFailed for them.
        """
        from emq_native.processes import run_processes
        from emq_native.running import run

        if processes == 1:
            run(self)
        else:
            run_processes(partial(_work, pickle.dumps(self), not self.terms.burst), processes)

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (self.queue.bus, self.queue.name, self._pickled)

    def _stop(self) -> None:
        if self._phase == WORKING:
            self._phase = STOPPING
            self._ends_at = time.monotonic() + self.terms.grace
        else:
            self._phase = LEAVING
        self._changed.notify_all()
        self._keeping.notify()

    def _fail(self, error: BaseException) -> None:
        with self._lock:
            self._error = self._error or error
            self._phase = LEAVING
            self._changed.notify_all()
            self._keeping.notify()

    # Runners

    def _serve(self) -> None:
        try:
            while (job := self._next()) is not None:
                self._run(job)
        except BaseException as error:
            self._fail(error)
        finally:
            with self._lock:
                self._runners -= 1
                self._keeping.notify()

    def _next(self) -> HeldJob | None:
        """The next job to run, after as many round trips as that takes; None at the end."""
        while True:
            with self._lock:
                chosen = self._choose()
            if not isinstance(chosen, _Trip):
                return chosen
            self._travel(chosen)

    def _choose(self) -> HeldJob | _Trip | None:
        """What this runner does now: a job, a round trip, or None for the end. Waits for others to bring jobs."""
        ledger = self._ledger
        while self._phase == WORKING:
            now = time.monotonic()
            resting = self._rests_until - now
            if resting > 0 or not ledger.due(now):
                job = ledger.begin(now)
                if job is not None:
                    return job
            if resting > 0:
                self._changed.wait(resting)
            elif ledger.verdicts or not (self._waiting or self._dry):
                return self._plan()
            elif self.terms.burst and self._dry and ledger.idle and not ledger.asked:
                self._stop()
            else:
                self._changed.wait()
        flush = self._phase == STOPPING and self._ledger.verdicts and self._rests_until <= time.monotonic()
        return self._plan() if flush else None

    def _plan(self) -> _Trip:
        ledger = self._ledger
        if self._phase != WORKING:
            return _Trip(ledger.collect(), 0, False)
        wait = not (self._waiting or ledger.ready)
        count = ledger.room() if ledger.ready else max(1, ledger.room())
        self._waiting = self._waiting or wait
        ledger.asked += count
        return _Trip(ledger.collect(), count, wait)

    def _travel(self, trip: _Trip) -> None:
        settlings = [verdict.settling for verdict in trip.verdicts]
        since = time.monotonic()
        step, trouble = Step([], []), None
        try:
            if trip.count:
                wait = trip.wait and not self.terms.burst
                if self._executor is None:
                    self._ask_whether_paused()
                executor = self._executor = self._executor or self._calls.executor_of(self.queue)
                steps = self._rounds.round(executor, trip.count, settlings, wait=wait)
                step = self._drive(self._waits if wait else self._calls, steps, wait)
                if trip.wait and self.terms.burst and not (step.jobs or step.settled):
                    self._ask_whether_paused()
            else:
                step = self._drive(self._calls, settle(settlings), False)
        except EmqError as error:
            trouble = error
        with self._lock:
            ledger = self._ledger
            ledger.asked -= trip.count
            if trip.wait:
                self._waiting = False
            if trouble is None:
                ledger.settled(trip.verdicts, step.settled)
                lost = ledger.take(step.jobs, since, time.monotonic())
                self._dry = self.terms.burst and trip.wait and not step.jobs and not step.settled
            else:
                lost = []
                ledger.unanswered(trip.verdicts, unsure=is_unsure(trouble))
            news = self._rest(trouble or step.fault)
            # Runners for the jobs, and one to lead.
            self._changed.notify(len(step.jobs) + 1)
        # A log may be slow, or have locks of its own.
        if news is not None:
            logger.log(*news)
        if step.settled:
            tell_settled(trip.verdicts, step.settled)
        if lost:
            self._tell_lost(lost)

    def _ask_whether_paused(self) -> None:
        """Tell the log, once, that the queue is paused: at the start, and where a burst ends."""
        if not self._told_paused:
            (answer,) = self._calls.plain(self.queue, whether_paused(self.queue.key))
            self._told_paused = tell_paused(self.queue.name, answer)

    def _rest(self, trouble: EmqError | str | None) -> tuple[Any, ...] | None:
        """After a trouble, no round trips for a while that grows with each further one. Returns what to log."""
        if self._phase == LEAVING:
            return None
        if trouble is None:
            self._reached = True
            if not self._troubles:
                return None
            self._troubles = 0
            return logging.INFO, "queue %s goes on", self.queue.name
        if isinstance(trouble, EmqError) and self.terms.gives_up(trouble, reached=self._reached):
            self._error = self._error or trouble
            self._phase = LEAVING
            self._changed.notify_all()
            self._keeping.notify()
            return None
        pause = backoff(self._troubles, random.random())
        self._troubles += 1
        self._rests_until = time.monotonic() + pause
        return logging.WARNING, "queue %s, next try in %.1f s: %s", self.queue.name, pause, trouble

    def _run(self, job: HeldJob) -> None:
        ended: object
        policy = _USUAL
        token = _CURRENT.set(job)
        try:
            try:
                policy, call = self.terms.prepare(job)
                ended = result_of(call() if policy.timeout is None else self._timed(job, policy, call))
            except BaseException as error:
                ended = error
            if job._over:
                _let_come()
        except TimedOut as error:
            # It was on its way when the handler ended by itself.
            ended = error
        _CURRENT.reset(token)
        settling = settling_of(job, ended, policy)
        with self._lock:
            counts = self._ledger.finish(job, settling, time.monotonic())
            self._dry = False
        tell_ended(job, ended, counts=counts)

    def _timed(self, job: HeldJob, policy: Policy, call: Callable[[], Any]) -> Any:
        """Run what the keeper may interrupt."""
        with self._lock:
            job._policy = policy
            job._runner = threading.get_ident()
        try:
            return call()
        finally:
            with self._lock:
                job._runner = None

    # The keeper

    def _keep(self) -> None:
        try:
            while self._tick():
                pass
        except BaseException as error:
            self._error = self._error or error
        finally:
            self._close()

    def _close(self) -> None:
        try:
            with self._lock:
                self._phase = LEAVING
                self._changed.notify_all()
            if self._pump is not None:
                self._pump.stop()
            self._calls.close()
            self._waits.close()
        finally:
            self._ended.set()
            for call in self._at_end:
                call()

    def _tick(self) -> bool:
        """Wait for the next thing to do and do it. False at the end."""
        with self._lock:
            if self._phase == WORKING:
                # It is not woken for jobs, which would have to share the interpreter with it just as they begin.
                self._keeping.wait(TICK_S)
            if self._phase == LEAVING:
                return False
            now = time.monotonic()
            self._ledger.reconsider(now)
            beating = self._ledger.beat(now)
            overdue = self._ledger.overdue(now)
        if beating:
            self._renew(beating)
        for job in overdue:
            self._time_out(job)
        if self._phase == STOPPING:
            return self._end()
        with self._lock:
            trip = None
            if self._rests_until <= now and self._ledger.due(now):
                trip = _Trip(self._ledger.collect(), 0, False)
        if trip is not None:
            self._travel(trip)
        return True

    def _renew(self, jobs: Sequence[HeldJob]) -> None:
        since = time.monotonic()
        lease = self.terms.lease
        missing: list[str] = []
        try:
            for first in range(0, len(jobs), 10_000):
                part = jobs[first : first + 10_000]
                try:
                    missing += self._calls.run(t.ExtendMany([(job.id, job.token) for job in part], lease), self.queue)
                except Refused as refusal:
                    if not refuses_job(refusal):
                        raise
                    # One that is refused refuses all.
                    answers = self._calls.pipeline((t.Extend(job, lease), self.queue) for job in part)
                    missing += unrenewed(part, answers)
        except EmqError as error:
            logger.warning("queue %s: leases are not renewed: %s", self.queue.name, error)
            with self._lock:
                self._ledger.beaten = 0.0
            return
        with self._lock:
            lost = self._ledger.renewed(jobs, missing, since)
        self._tell_lost(lost)

    def _tell_lost(self, lost: Sequence[HeldJob]) -> None:
        for job in lost:
            logger.warning("job %s: the lease is lost", job.id, extra=told(job))

    def _time_out(self, job: HeldJob) -> None:
        policy = job._policy
        assert policy is not None
        error = TimedOut(policy.timeout or 0.0)
        settling = settling_of(job, error, policy)
        with self._lock:
            if job._over or job._runner is None:
                return
            self._ledger.give_up(job, settling, time.monotonic())
            _interrupt(job._runner, TimedOut)
            self._changed.notify_all()
        logger.warning("job %s: %s", job.id, error, extra=told(job))

    def _end(self) -> bool:
        """One step towards the end. False when it is reached."""
        now = time.monotonic()
        with self._lock:
            ledger = self._ledger
            ledger.hand_back(now)
            late = now >= self._ends_at
            still = ledger.abandon(now) if late else []
            blocked = self._blocked
            resting = self._rests_until > now and not late
            trip = _Trip(ledger.collect(), 0, False) if ledger.verdicts and not resting else None
        for job in still:
            logger.warning("job %s goes back: its handler runs on beyond the grace", job.id, extra=told(job))
        if blocked is not None:
            self._unblock(blocked)
        if trip is not None:
            self._travel(trip)
        with self._lock:
            if late or not (self._runners or ledger.verdicts or ledger.ready):
                return False
            self._keeping.wait(END_TICK_S)
        return True

    def _unblock(self, number: int) -> None:
        """End the wait of the runner that waits for all; where this user may not, it ends by itself."""
        try:
            self._calls.plain(self.queue, (b"CLIENT", b"UNBLOCK", b"%d" % number))
        except EmqError as error:
            logger.debug("queue %s: the wait goes on to its end: %s", self.queue.name, error)

    # Round trips

    def _drive(self, bus: Bus, steps: Round, watched: bool) -> Step:
        try:
            batch = next(steps)
            while True:
                batch = steps.send(self._carry(bus, batch, watched))
        except StopIteration as end:
            step: Step = end.value
            return step

    def _carry(self, bus: Bus, batch: Batch, watched: bool) -> list[Any]:
        """One round trip. watched: it may wait in the server, and the keeper may end the wait."""
        commands = [each for each in batch if isinstance(each, tuple)]
        steps = [each for each in batch if isinstance(each, t.Transition)]
        key = self.queue.key
        calls = [Call(step.verb, step.words(key), key) for step in steps]

        def send(line: Line, asking: bool) -> list[Answer]:
            if asking:
                raise Unavailable("the slot of the queue is being moved", network=True)
            if watched:
                self._watch(line)
            try:
                line.executor(key)
                answers = line.ask(commands) if commands else line.pipeline(calls)
            finally:
                if watched:
                    with self._lock:
                        self._blocked = None
            for answer in answers:
                if isinstance(answer, Redirected):
                    raise answer
            return answers

        answers: list[Any] = bus._routed(key, send, waits=watched and not commands)
        if commands:
            return answers
        return [
            answer if isinstance(answer, EmqError) else step.decode(answer, self.queue.name)
            for step, answer in zip(steps, answers, strict=True)
        ]

    def _watch(self, line: Line) -> None:
        if line not in self._numbers:
            (answer,) = line.ask([(b"CLIENT", b"ID")])
            self._numbers = {line: answer if isinstance(answer, int) else None}
        with self._lock:
            self._blocked = self._numbers[line]


def _made(bus: Bus, name: str, options: dict[str, Any]) -> Worker:
    return Worker(bus.queue(name), **options)


def _work(pickled: bytes, patient: bool) -> None:
    """In a process of its own. patient: wait for the node."""
    from emq_native.running import patiently

    def made() -> Worker:
        worker: Worker = pickle.loads(pickled)
        return worker

    (patiently(made) if patient else made()).run()


def _interrupt(thread: int, error: type[BaseException]) -> None:
    """Raise in another thread as soon as it executes Python code."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))


def _let_come() -> None:
    """Be Python code in which an interruption is raised that is on its way to this thread.

    It could be taken back, but up to Python 3.12 the interpreter then goes on looking for it in all threads: they get
    slower, and with 3.11 a profiler or a debugger never enters a function again.
    """
    for _ in range(2):
        pass
