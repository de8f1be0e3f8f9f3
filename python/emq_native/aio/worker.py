"""A worker for asyncio: the twin of `emq_native.worker`, with tasks in place of threads.

One task leads: it settles, takes and waits by the same round trip. While it waits, a courier makes the trips that
settle. Leases are renewed by a thread with an event loop of its own, so a handler that keeps the loop busy does not
lose them. A handler whose lease is lost, or whose time is up, is cancelled.
"""

from __future__ import annotations

import asyncio
import random
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import suppress
from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from emq_native import transitions as t
from emq_native.backoff import Backoff, exponential
from emq_native.compositions import Source, Step
from emq_native.context import _CURRENT
from emq_native.dispatch import Answer
from emq_native.errors import EmqError, Redirected, Refused, Unavailable, refuses_job
from emq_native.executors import Executor
from emq_native.ledger import AHEAD_S, PATIENCE_S, HeldJob, Ledger, Stats, Verdict
from emq_native.outcome import Policy, Snooze, TimedOut, is_a, result_of, settling_of
from emq_native.pump import Strokes
from emq_native.rounds import Batch, Rounds, settle, unrenewed
from emq_native.serializers import Json, Serializer
from emq_native.terms import (
    Prepare,
    Terms,
    ends_worker,
    is_unsure,
    logger,
    simple,
    tell_ended,
    tell_paused,
    tell_settled,
    tell_stopping,
    told,
    whether_paused,
)
from emq_native.wiring import Call, backoff

if TYPE_CHECKING:
    from emq_native.aio.connector import Bus
    from emq_native.aio.line import Line
    from emq_native.aio.queue import Queue

__all__ = ["Worker"]

R = TypeVar("R")
T = TypeVar("T")

END_TICK_S: Final = 0.02
WORKING, STOPPING, LEAVING = "working", "stopping", "leaving"


class Worker:
    """Takes jobs from one queue and runs an asynchronous handler on them, up to `concurrency` at a time.

    Everything is as for `emq_native.worker.Worker`, but: the handler is a coroutine function, and it is cancelled when
    its lease is lost, when its time is up, and at the end of the grace. A KeyboardInterrupt that reaches a handler
    stops the worker; its job goes back.
    """

    def __init__(
        self,
        queue: Queue,
        handler: Callable[[HeldJob], Awaitable[Any]],
        *,
        concurrency: int = 100,
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
        # Between the event loop and the thread that renews.
        self._lock = threading.Lock()
        self._phase = WORKING
        self._ends_at = 0.0
        self._waiting = False
        self._dry = False
        self._reached = False
        self._told_paused = False
        self._troubles = 0
        self._rests_until = 0.0
        self._numbers: dict[Line, int | None] = {}
        self._blocked: int | None = None
        self._error: BaseException | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._courier: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._stirred = asyncio.Event()
        self._turned = asyncio.Event()
        self._calls: Bus
        self._waits: Bus
        self._rounds: Rounds
        self._executor: Executor | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def stats(self) -> Stats:
        """What became of the jobs so far."""
        return self._ledger.stats

    # Its life

    async def run(self, *, signals: bool = True) -> None:
        """Work until `stop`, SIGTERM or SIGINT, or until the queue is empty with burst=True. A worker runs once.

        signals: handle them; only in the main thread. A second one leaves at once. When this coroutine is cancelled,
        the handlers are too, and their jobs go back. Raises WireMismatch and other errors that no waiting can mend.
        """
        if self._loop is not None:
            raise RuntimeError("a worker runs once")
        loop = self._loop = asyncio.get_running_loop()
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
        keeper = _Keeper(
            self._ledger,
            self._lock,
            self.queue,
            lose=partial(self._from_thread, self._lose),
            fail=partial(self._from_thread, self._fail),
        )
        keeper.start()
        handled = (signal.SIGTERM, signal.SIGINT) if signals and _in_main_thread() else ()
        for number in handled:
            loop.add_signal_handler(number, self._signalled)
        leader = asyncio.create_task(self._lead())
        leader.add_done_callback(self._noticed)
        pump = asyncio.create_task(self._fire()) if terms.repeats else None
        if pump is not None:
            pump.add_done_callback(self._noticed)
        try:
            try:
                await self._turned.wait()
            except asyncio.CancelledError:
                self._phase, self._ends_at = STOPPING, 0.0
                await self._finish(leader)
                raise
            await self._finish(leader)
        finally:
            self._phase = LEAVING
            for number in handled:
                loop.remove_signal_handler(number)
            if pump is not None:
                pump.cancel()
            try:
                await self._leave(leader)
            finally:
                # Also when this is cancelled again: a keeper that goes on keeps what nobody works on.
                await keeper.end()
        if self._error is not None:
            raise self._error

    def _signalled(self) -> None:
        tell_stopping(again=self._phase != WORKING, grace=self.terms.grace)
        self.stop()

    def stop(self) -> None:
        """Take no more jobs, and end when those in hand are done, or have gone back after the grace. Does not wait.

        Called again, the worker leaves at once: what it holds comes back when the leases end. Call it in the loop.
        """
        if self._phase == WORKING:
            self._phase = STOPPING
            self._ends_at = time.monotonic() + self.terms.grace
        else:
            self._phase = LEAVING
        self._turned.set()
        self._stirred.set()

    def _fail(self, error: BaseException) -> None:
        self._error = self._error or error
        self._phase = LEAVING
        self._turned.set()
        self._stirred.set()

    def _noticed(self, task: asyncio.Task[None]) -> None:
        """A task of the worker ended; by an error, it takes the worker along."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    async def _finish(self, leader: asyncio.Task[None]) -> None:
        """From the stop to the end: jobs go back, handlers may finish within the grace, verdicts travel."""
        while self._phase == STOPPING:
            now = time.monotonic()
            late = now >= self._ends_at
            with self._lock:
                self._ledger.hand_back(now)
                for job in self._ledger.abandon(now) if late else []:
                    logger.warning("job %s goes back: its handler is cancelled", job.id, extra=told(job))
            if late:
                await self._cancel_handlers()
            if self._blocked is not None:
                await self._unblock(self._blocked)
            if self._ledger.verdicts and (late or self._rests_until <= now):
                await self._travel(0, wait=False)
            ledger = self._ledger
            if late or not (self._tasks or ledger.ready or ledger.verdicts or not leader.done() or self._courier):
                return
            pending = {each for each in (leader, self._courier, *self._tasks) if each is not None and not each.done()}
            if pending:
                await asyncio.wait(pending, timeout=END_TICK_S)
            else:
                await asyncio.sleep(END_TICK_S)

    async def _leave(self, leader: asyncio.Task[None]) -> None:
        leader.cancel()
        if self._courier is not None:
            self._courier.cancel()
        if self._timer is not None:
            self._timer.cancel()
        try:
            await self._cancel_handlers()
            with suppress(asyncio.CancelledError, Exception):
                await leader
        finally:
            await self._calls.close()
            await self._waits.close()

    async def _cancel_handlers(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=1.0)

    # Round trips

    async def _lead(self) -> None:
        while self._phase == WORKING:
            self._stirred.clear()
            now = time.monotonic()
            ledger = self._ledger
            resting = self._rests_until - now
            if resting > 0:
                with suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._stirred.wait(), resting)
                continue
            count = 0 if self._dry else ledger.room()
            flush = ledger.verdicts and (not ledger.ready or ledger.due(now))
            if count or flush:
                await self._travel(count, wait=bool(count) and not ledger.ready)
            elif self.terms.burst and self._dry and ledger.idle:
                self.stop()
            else:
                await self._stirred.wait()

    async def _carry_verdicts(self) -> None:
        # Handlers that end together are settled together.
        await asyncio.sleep(0)
        await self._travel(max(1, self._ledger.room()) if self._phase == WORKING else 0, wait=False)

    async def _travel(self, count: int, *, wait: bool) -> None:
        """One round trip. count: 0 to settle only; wait: as the leader, in the server."""
        ledger = self._ledger
        with self._lock:
            verdicts: list[Verdict] = ledger.collect()
            ledger.asked += count
        self._waiting = self._waiting or wait
        settlings = [verdict.settling for verdict in verdicts]
        since = time.monotonic()
        step, trouble = Step([], []), None
        try:
            if count:
                blocks = wait and not self.terms.burst
                if self._executor is None:
                    await self._ask_whether_paused()
                executor = self._executor = self._executor or await self._calls.executor_of(self.queue)
                steps = self._rounds.round(executor, count, settlings, wait=blocks)
                step = await self._drive(self._waits if blocks else self._calls, steps, blocks)
                if wait and self.terms.burst and not (step.jobs or step.settled):
                    await self._ask_whether_paused()
            elif settlings:
                step = await self._drive(self._calls, settle(settlings), False)
        except EmqError as error:
            trouble = error
        except asyncio.CancelledError:
            with self._lock:
                ledger.unanswered(verdicts, unsure=True)
            raise
        finally:
            ledger.asked -= count
            if wait:
                self._waiting = False
        with self._lock:
            if trouble is None:
                ledger.settled(verdicts, step.settled)
                lost = ledger.take(step.jobs, since, time.monotonic())
                if wait:
                    self._dry = self.terms.burst and not step.jobs and not step.settled
            else:
                lost = []
                ledger.unanswered(verdicts, unsure=is_unsure(trouble))
        self._rest(trouble or step.fault)
        tell_settled(verdicts, step.settled)
        for job in lost:
            self._lose(job)
        self._stir()

    async def _ask_whether_paused(self) -> None:
        """Tell the log, once, that the queue is paused: at the start, and where a burst ends."""
        if not self._told_paused:
            (answer,) = await self._calls.plain(self.queue, whether_paused(self.queue.key))
            self._told_paused = tell_paused(self.queue.name, answer)

    def _rest(self, trouble: EmqError | str | None) -> None:
        """After a trouble, no round trips for a while that grows with each further one."""
        if trouble is None:
            self._reached = True
            if self._troubles:
                self._troubles = 0
                logger.info("queue %s goes on", self.queue.name)
            return
        if isinstance(trouble, EmqError) and self.terms.gives_up(trouble, reached=self._reached):
            self._fail(trouble)
            return
        pause = backoff(self._troubles, random.random())
        self._troubles += 1
        self._rests_until = time.monotonic() + pause
        logger.warning("queue %s, next try in %.1f s: %s", self.queue.name, pause, trouble)

    def _stir(self) -> None:
        """Something changed: begin what is ready, and see to it that verdicts travel."""
        ledger = self._ledger
        while self._phase == WORKING and ledger.running < self.terms.concurrency:
            with self._lock:
                job = ledger.begin(time.monotonic())
            if job is None:
                break
            task = asyncio.create_task(self._run(job))
            job._runner = task
            self._tasks.add(task)
            task.add_done_callback(partial(self._done, job))
        with self._lock:
            ledger.reconsider(time.monotonic())
        if ledger.ready:
            self._later(PATIENCE_S)
        self._stirred.set()
        if self._phase != WORKING or not ledger.verdicts or not self._waiting or self._courier is not None:
            return
        now = time.monotonic()
        if now < self._rests_until:
            self._later(self._rests_until - now)
        elif not ledger.ready or ledger.due(now):
            self._courier = asyncio.create_task(self._carry_verdicts())
            self._courier.add_done_callback(self._arrived)
        else:
            self._later(AHEAD_S)

    def _arrived(self, task: asyncio.Task[None]) -> None:
        self._courier = None
        self._noticed(task)
        self._stir()

    def _later(self, seconds: float) -> None:
        """Stir again after so many seconds, or earlier if that is planned."""
        loop = asyncio.get_running_loop()
        if self._timer is not None and self._timer.when() <= loop.time() + seconds:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_later(seconds, self._timed_stir)

    def _timed_stir(self) -> None:
        self._timer = None
        self._stir()

    async def _fire(self) -> None:
        """Fire the repeats of the queue, while the worker works."""
        strokes = Strokes(self.queue.key, promote=False, reap=False, serializer=self.terms.serializer)
        troubles = 0
        while self._phase == WORKING:
            try:
                pause = (await self._drive(self._calls, strokes.stroke(), False)).pause
                troubles = 0
            except EmqError as error:
                if ends_worker(error):
                    raise
                pause = backoff(troubles, random.random())
                troubles += 1
                logger.warning("queue %s: %s; repeats are tried again in %.1f s", self.queue.name, error, pause)
            await asyncio.sleep(pause)

    async def _drive(self, bus: Bus, steps: Generator[Batch, list[Any], R], watched: bool) -> R:
        try:
            batch = next(steps)
            while True:
                batch = steps.send(await self._carry(bus, batch, watched))
        except StopIteration as end:
            value: R = end.value
            return value

    async def _carry(self, bus: Bus, batch: Batch, watched: bool) -> list[Any]:
        """One round trip. watched: it may wait in the server, and a stop may end the wait."""
        commands = [each for each in batch if isinstance(each, tuple)]
        steps = [each for each in batch if isinstance(each, t.Transition)]
        key = self.queue.key
        calls = [Call(step.verb, step.words(key), key) for step in steps]

        async def send(line: Line, asking: bool) -> list[Answer]:
            if asking:
                raise Unavailable("the slot of the queue is being moved", network=True)
            try:
                await line.executor(key)
                if watched:
                    await self._watch(line)
                answers = await (line.ask(commands) if commands else line.pipeline(calls))
            finally:
                if watched:
                    self._blocked = None
            for answer in answers:
                if isinstance(answer, Redirected):
                    raise answer
            return answers

        answers: list[Any] = await bus._routed(key, send, waits=watched and not commands)
        if commands:
            return answers
        return [
            answer if isinstance(answer, EmqError) else step.decode(answer, self.queue.name)
            for step, answer in zip(steps, answers, strict=True)
        ]

    async def _watch(self, line: Line) -> None:
        if line not in self._numbers:
            (answer,) = await line.ask([(b"CLIENT", b"ID")])
            self._numbers = {line: answer if isinstance(answer, int) else None}
        self._blocked = self._numbers[line]

    async def _unblock(self, number: int) -> None:
        """End the wait of the leader; where this user may not, it ends by itself."""
        try:
            await self._calls.plain(self.queue, (b"CLIENT", b"UNBLOCK", b"%d" % number))
        except EmqError as error:
            logger.debug("queue %s: the wait goes on to its end: %s", self.queue.name, error)

    # Handlers

    async def _run(self, job: HeldJob) -> None:
        ended: object
        policy = Policy()
        _CURRENT.set(job)
        timer = None
        try:
            policy, call = self.terms.prepare(job)
            if policy.timeout is not None:
                timer = asyncio.get_running_loop().call_later(policy.timeout, self._time_out, job, policy)
            ended = call()
            ended = result_of(await ended if isawaitable(ended) else ended)
        except KeyboardInterrupt as error:
            # Whoever pressed the keys meant the worker, not this job.
            ended = Snooze(0)
            self._error = self._error or error
            if self._phase == WORKING:
                self.stop()
        except BaseException as error:
            ended = error
        if timer is not None:
            timer.cancel()
        if is_a(ended, asyncio.CancelledError) and (job._lost or job._over):
            with self._lock:
                self._ledger.forfeit(job)
        else:
            self._settle(job, ended, policy)
        job._runner = None
        self._dry = False
        self._stir()

    def _done(self, job: HeldJob, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if job._runner is not None:
            # Cancelled before its first step.
            with self._lock:
                self._ledger.forfeit(job)
            self._noticed(task)
            self._stir()

    def _settle(self, job: HeldJob, ended: object, policy: Policy) -> None:
        settling = settling_of(job, ended, policy)
        with self._lock:
            counts = self._ledger.finish(job, settling, time.monotonic())
        tell_ended(job, ended, counts=counts)

    def _time_out(self, job: HeldJob, policy: Policy) -> None:
        if job._over:
            return
        error = TimedOut(policy.timeout or 0.0)
        with self._lock:
            self._ledger.give_up(job, settling_of(job, error, policy), time.monotonic())
        logger.warning("job %s: %s", job.id, error, extra=told(job))
        job._runner.cancel()
        self._stir()

    def _lose(self, job: HeldJob) -> None:
        logger.warning("job %s: the lease is lost", job.id, extra=told(job))
        if job._runner is not None:
            job._runner.cancel()

    def _from_thread(self, call: Callable[[T], None], value: T) -> None:
        assert self._loop is not None
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(call, value)


class _Keeper:
    """Renews the leases of a ledger from a thread with an event loop of its own.

    lose, fail: called in that thread, with a job whose lease is lost, and with what ended the thread.
    """

    def __init__(
        self,
        ledger: Ledger,
        lock: threading.Lock,
        queue: Queue,
        lose: Callable[[HeldJob], None],
        fail: Callable[[BaseException], None],
    ) -> None:
        self._ledger = ledger
        self._lock = lock
        self._queue = queue
        self._lose = lose
        self._fail = fail
        self._bus = queue.bus.sibling(elsewhere=True)
        self._worker_loop = asyncio.get_running_loop()
        self._loop = asyncio.new_event_loop()
        self._over = asyncio.Event()
        self._left = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name=f"emq-{queue.name}-keeper", daemon=True)

    def start(self) -> None:
        try:
            self._thread.start()
        except BaseException:
            self._loop.close()
            raise

    async def end(self) -> None:
        """Stop renewing; waits for the thread, not in another one: those of the loop may all be taken by handlers."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._over.set)
        await self._left.wait()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._keep())
        except BaseException as error:
            self._fail(error)
        finally:
            self._loop.close()
            with suppress(RuntimeError):
                self._worker_loop.call_soon_threadsafe(self._left.set)

    async def _keep(self) -> None:
        pause = self._ledger.lease / 6
        try:
            while not self._over.is_set():
                with suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._over.wait(), pause)
                with self._lock:
                    jobs = self._ledger.beat(time.monotonic())
                if jobs and not self._over.is_set():
                    await self._renew(jobs)
        finally:
            await self._bus.close()

    async def _renew(self, jobs: Sequence[HeldJob]) -> None:
        since = time.monotonic()
        lease = self._ledger.lease
        missing: list[str] = []
        try:
            for first in range(0, len(jobs), 10_000):
                part = jobs[first : first + 10_000]
                try:
                    missing += await self._bus.run(
                        t.ExtendMany([(job.id, job.token) for job in part], lease), self._queue
                    )
                except Refused as refusal:
                    if not refuses_job(refusal):
                        raise
                    # One that is refused refuses all.
                    answers = await self._bus.pipeline((t.Extend(job, lease), self._queue) for job in part)
                    missing += unrenewed(part, answers)
        except EmqError as error:
            logger.warning("queue %s: leases are not renewed: %s", self._queue.name, error)
            with self._lock:
                self._ledger.beaten = 0.0
            return
        with self._lock:
            lost = self._ledger.renewed(jobs, missing, since)
        for job in lost:
            self._lose(job)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
