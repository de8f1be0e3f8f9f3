"""Functions as tasks: enqueue a call here, have it made by a worker elsewhere.

    from emq_native import App, exponential

    app = App("valkey://localhost")

    @app.task(retries=3, backoff=exponential(1.0), timeout=30)
    def resize(path: str, width: int) -> None: ...

    resize.enqueue("cat.png", width=200)        # checked by the type checker as a call of the function
    resize("cat.png", width=200)                # calls it here and now

Workers are started by `emq-native worker module:app` or by `app.worker().run()`.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import sys
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import update_wrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, ParamSpec, TypeVar

from emq_native import aio
from emq_native import transitions as t
from emq_native._core import group_name, queue_key, repeat_name
from emq_native.arguments import Duration, integer
from emq_native.backoff import Backoff, exponential
from emq_native.connector import Bus, connect
from emq_native.errors import EmqError, InvalidArgument
from emq_native.ledger import HeldJob
from emq_native.outcome import Policy, Reject
from emq_native.schedules import Cron, Every, Schedule
from emq_native.serializers import Json, Message, Serializer
from emq_native.transitions import Transition
from emq_native.values import Admitted, Job
from emq_native.wiring import URL_VARIABLE, named
from emq_native.worker import Worker

if TYPE_CHECKING:
    from emq_native.aio.worker import Worker as AsyncWorker

__all__ = ["App", "Task", "UnknownTask"]

P = ParamSpec("P")
R = TypeVar("R")

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MS: Final = timedelta(milliseconds=1)
_RUN: Final = ("__main__", "__mp_main__")
"""What the module that is run is called, and what multiprocessing calls it in a spawned process."""


class UnknownTask(EmqError, LookupError):
    """A job names a task that this app does not have. The job runs again later, perhaps where a newer app works."""


@dataclass(frozen=True)
class _Repeat:
    name: str
    queue: str
    schedule: Schedule
    payload: bytes


class Task(Generic[P, R]):
    """A function that workers call; made by `App.task`. Called, it is the function.

    name: how messages call it; queue: where its calls wait; policy: what each call is allowed; lane: the group, or what
    tells it from the arguments of a call.
    """

    def __init__(
        self,
        app: App,
        function: Callable[P, R],
        *,
        name: str,
        queue: str,
        policy: Policy,
        lane: str | Callable[..., str | None] | None,
        result: bool,
    ) -> None:
        self.app = app
        self.function = function
        self.name = name
        self.queue = queue
        self.policy = policy
        self.lane = lane
        self.result = result
        self._signature = inspect.signature(function)
        update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def message(self, *args: P.args, **kwargs: P.kwargs) -> bytes:
        """The payload of a call. Raises TypeError for arguments that the function does not take."""
        self._signature.bind(*args, **kwargs)
        return self.app.serializer.dumps(Message(self.name, args, dict(kwargs)))

    # Each of these has a twin for asyncio, with an a before its name.

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Admitted:
        """Enqueue a call. Returns the id of the job. Raises EmqError; TypeError for wrong arguments."""
        return self.app.bus.run(self._now(*args, **kwargs), self.queue)

    def enqueue_in(self, delay: Duration, /, *args: P.args, **kwargs: P.kwargs) -> Admitted:
        """Enqueue a call that is due after `delay`, in seconds or as a timedelta. Not for a task with a lane."""
        return self.app.bus.run(self._in(delay, *args, **kwargs), self.queue)

    def enqueue_at(self, when: datetime, /, *args: P.args, **kwargs: P.kwargs) -> Admitted:
        """Enqueue a call that is due at an aware datetime. Not for a task with a lane."""
        return self.app.bus.run(self._at(when, *args, **kwargs), self.queue)

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> Admitted:
        """As `enqueue`."""
        return await (await self.app.abus()).run(self._now(*args, **kwargs), self.queue)

    async def aenqueue_in(self, delay: Duration, /, *args: P.args, **kwargs: P.kwargs) -> Admitted:
        """As `enqueue_in`."""
        return await (await self.app.abus()).run(self._in(delay, *args, **kwargs), self.queue)

    async def aenqueue_at(self, when: datetime, /, *args: P.args, **kwargs: P.kwargs) -> Admitted:
        """As `enqueue_at`."""
        return await (await self.app.abus()).run(self._at(when, *args, **kwargs), self.queue)

    def every(self, period: Duration, *args: Any, name: str | None = None, **kwargs: Any) -> None:
        """Repeat a call of these arguments with a period of seconds or a timedelta. Not for a task with a lane.

        name: of the repeat, by default that of the task. Workers started with repeats=True install it and fire it.
        Raises TypeError for wrong arguments.
        """
        self._repeat(Every.of(period), name, args, kwargs)

    def cron(self, expression: str, zone: str, *args: Any, name: str | None = None, **kwargs: Any) -> None:
        """Repeat a call by the five fields of cron in a time zone, for example "30 3 * * mon", "Europe/Berlin".

        Otherwise as `every`. Needs emq-native[cron].
        """
        self._repeat(Cron(expression, zone), name, args, kwargs)

    def _now(self, *args: P.args, **kwargs: P.kwargs) -> Transition[Admitted]:
        group = self.lane(*args, **kwargs) if callable(self.lane) else self.lane
        return t.Enqueue(self.message(*args, **kwargs), group=group)

    def _in(self, delay: Duration, *args: P.args, **kwargs: P.kwargs) -> Transition[Admitted]:
        self._without_lane()
        return t.EnqueueIn(self.message(*args, **kwargs), delay)

    def _at(self, when: datetime, *args: P.args, **kwargs: P.kwargs) -> Transition[Admitted]:
        self._without_lane()
        return t.EnqueueAt(self.message(*args, **kwargs), when)

    def _without_lane(self) -> None:
        if self.lane is not None:
            raise InvalidArgument(
                f"{self.name} has a lane, and a job that is scheduled or repeated cannot have a group"
            )

    def _repeat(self, schedule: Schedule, name: str | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._without_lane()
        self._signature.bind(*args, **kwargs)
        payload = self.app.serializer.dumps(Message(self.name, args, kwargs, schedule.spec()))
        self.app._add_repeat(_Repeat(name or self.name, self.queue, schedule, payload))

    def __repr__(self) -> str:
        return f"<emq_native.Task {self.name}>"


class App:
    """A set of tasks, and where their calls go.

    target: a URL, a client object, or None for $EMQ_URL; nothing is connected before the first call. queue: for tasks
    that name none; serializer: by default JSON; options: as for `emq_native.connect`.
    """

    def __init__(
        self,
        target: object = None,
        *,
        queue: str = "default",
        serializer: Serializer | None = None,
        **options: Any,
    ) -> None:
        queue_key(queue)
        self.queue = queue
        self.serializer = serializer or Json()
        self.tasks: dict[str, Task[..., Any]] = {}
        self._target = target
        self._options = options
        self._repeats: dict[tuple[str, str], _Repeat] = {}
        self._lock = threading.Lock()
        self._bus: Bus | None = None
        self._abus: aio.Bus | None = None

    def task(
        self,
        name: str | None = None,
        *,
        retries: int = 3,
        backoff: Backoff | None = None,
        timeout: float | None = None,
        lane: str | Callable[..., str | None] | None = None,
        queue: str | None = None,
        result: bool = False,
    ) -> Callable[[Callable[P, R]], Task[P, R]]:
        """Make a function a task.

        name: by default its module and name; for a file that is run itself, the module that workers import. retries:
        further runs after a failed one; backoff: from the number of the failed run to seconds, by default
        exponential(); timeout: seconds of one run; lane: a group, or a function of the same arguments that tells it;
        queue: instead of the app's; result: keep what it returns for a parent. Raises InvalidArgument for a name that
        is there already or is no text, and without a name for a function that no worker could import.
        """
        if not isinstance(name or "", str):
            raise InvalidArgument("a task is declared with parentheses: @app.task()")
        policy = Policy(integer("retries", retries) + 1, backoff or exponential(), timeout)
        if queue is not None:
            queue_key(queue)
        if isinstance(lane, str):
            group_name(lane)

        def decorate(function: Callable[P, R]) -> Task[P, R]:
            known = name or f"{_module_of(function)}.{function.__qualname__}"
            if known in self.tasks:
                raise InvalidArgument(f"there is a task {known} already")
            made = Task(self, function, name=known, queue=queue or self.queue, policy=policy, lane=lane, result=result)
            self.tasks[known] = made
            return made

        return decorate

    def enqueue(self, name: str, /, *args: Any, **kwargs: Any) -> Admitted:
        """Enqueue a call of a task by its name. Returns the id of the job.

        The name need not be one of this app: such a call waits in the queue of the app. Raises EmqError.
        """
        task = self.tasks.get(name)
        if task is not None:
            return task.enqueue(*args, **kwargs)
        return self.bus.run(t.Enqueue(self.serializer.dumps(Message(name, args, kwargs))), self.queue)

    # Connections

    @property
    def bus(self) -> Bus:
        """The bus, connected by the first call. Raises EmqError."""
        while (bus := self._bus) is None:
            target = self._target
            made = connect(self.target, **self._options)
            # Of those that connect at once one bus is kept. A lock held for so long could be left held by a fork.
            with self._lock:
                kept = self._bus is None and self._target is target
                if kept:
                    self._bus = made
            if not kept:
                made.close()
        return bus

    async def abus(self) -> aio.Bus:
        """The bus for asyncio, connected by the first call. Raises EmqError."""
        while (bus := self._abus) is None:
            target = self._target
            made = await aio.connect(self.target, **self._options)
            if self._abus is None and self._target is target:
                self._abus = made
            else:
                await made.close()
        return bus

    @property
    def target(self) -> object:
        """What to connect to. Raises InvalidArgument without a target and without $EMQ_URL."""
        target = named(self._target or None)
        if target is None:
            raise InvalidArgument(f"the app has no target: pass a URL, or set ${URL_VARIABLE}")
        return target

    def retarget(self, target: object) -> object:
        """Go to another node from now on; what was open is closed. Returns the target before."""
        with self._lock:
            before, self._target = self._target, target
            bus, self._bus, self._abus = self._bus, None, None
        if bus is not None:
            bus.close()
        return before

    def close(self) -> None:
        """Close the bus. The one for asyncio is closed with `await (await app.abus()).close()`."""
        with self._lock:
            bus, self._bus = self._bus, None
        if bus is not None:
            bus.close()

    # Working

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues of the tasks, sorted; without tasks, that of the app."""
        return tuple(sorted({task.queue for task in self.tasks.values()})) or (self.queue,)

    def worker(self, queue: str | None = None, **options: Any) -> Worker:
        """A worker with threads for the tasks of one queue, by default the app's; options as for `Worker`."""
        if options.get("repeats"):
            self.install_repeats()
        at = self.bus.queue(queue or self.queue)
        return Worker(at, _no_handler, **self._working(options), prepare=self.prepare)

    async def aworker(self, queue: str | None = None, **options: Any) -> AsyncWorker:
        """A worker for asyncio; options as for `emq_native.aio.Worker`. Plain functions run in threads."""
        from emq_native.aio.worker import Worker as AsyncWorker

        if options.get("repeats"):
            await asyncio.to_thread(self.install_repeats)
        at = (await self.abus()).queue(queue or self.queue)
        return AsyncWorker(at, _no_coroutine, **self._working(options), prepare=self.aprepare)

    def prepare(self, job: Job) -> tuple[Policy, Callable[[], Any]]:
        """The policy of a job and the call that it is; coroutine functions are run to their end."""
        task, message = self._find(job)

        def call() -> Any:
            value = task.function(*message.args, **message.kwargs)
            return self._result(task, asyncio.run(_awaited(value)) if inspect.isawaitable(value) else value)

        return task.policy, call

    def aprepare(self, job: Job) -> tuple[Policy, Callable[[], Any]]:
        """As `prepare`, for asyncio: plain functions are run in a thread."""
        task, message = self._find(job)

        async def call() -> Any:
            if inspect.iscoroutinefunction(task.function):
                return self._result(task, await task.function(*message.args, **message.kwargs))
            return self._result(task, await asyncio.to_thread(task.function, *message.args, **message.kwargs))

        return task.policy, call

    def install_repeats(self) -> list[str]:
        """Put the repeats of the tasks into their queues; one that is there with another definition is replaced.

        Returns the names of those that were put or replaced. Raises EmqError.
        """
        return [repeat.name for repeat in self._repeats.values() if self._install(repeat)]

    def has_repeats(self, queue: str) -> bool:
        """Whether a task repeats in a queue."""
        return any(repeat.queue == queue for repeat in self._repeats.values())

    def _find(self, job: Job) -> tuple[Task[..., Any], Message]:
        try:
            message = self.serializer.loads(job.payload or b"")
        except InvalidArgument as error:
            raise Reject(str(error)) from error
        if isinstance(job, HeldJob):
            job._task = message.task
        task = self.tasks.get(message.task)
        if task is None:
            raise UnknownTask(f"this app has no task {message.task!r}")
        return task, message

    def _result(self, task: Task[..., Any], value: Any) -> bytes | None:
        return self.serializer.dumps_result(value) if task.result else None

    def _working(self, options: dict[str, Any]) -> dict[str, Any]:
        """Options of a worker. A job that ends its workers is dead after as many runs as the most patient task has."""
        patience = max((task.policy.max_attempts for task in self.tasks.values()), default=Policy().max_attempts)
        return {"max_attempts": patience, "serializer": self.serializer, **options}

    def _add_repeat(self, repeat: _Repeat) -> None:
        repeat_name(repeat.name)
        if (repeat.queue, repeat.name) in self._repeats:
            raise InvalidArgument(f"there is a repeat {repeat.name} already: give the further one a name")
        self._repeats[repeat.queue, repeat.name] = repeat

    def _install(self, repeat: _Repeat) -> bool:
        queue = self.bus.queue(repeat.queue)
        period = timedelta(milliseconds=repeat.schedule.every_ms)
        now = datetime.now(timezone.utc)
        first = _EPOCH + timedelta(milliseconds=repeat.schedule.after(0, (now - _EPOCH) // _MS))
        first = first if repeat.schedule.spec() else now + period
        key = queue.key + b":repeat:" + repeat.name.encode()
        (known,) = queue.bus.plain(queue, (b"HMGET", key, b"every_ms", b"template"))
        if known == [b"%d" % repeat.schedule.every_ms, repeat.payload]:
            return False
        install = t.Repeat(repeat.name, period, repeat.payload, first=first)
        for answer in queue.pipeline([t.Unrepeat(repeat.name), install]):
            if isinstance(answer, EmqError):
                raise answer
        return True


async def _awaited(value: Awaitable[R]) -> R:
    return await value


def _no_handler(job: Job) -> None:
    """A worker of an app runs what `prepare` answers."""


async def _no_coroutine(job: Job) -> None:
    """As `_no_handler`."""


def _module_of(function: Callable[..., Any]) -> str:
    """The module of a function, as another process imports it. Raises InvalidArgument when there is no such name.

    The module that is run has another name there: `python -m` knows it, for a file it is the stem.
    """
    name = function.__module__
    if name not in _RUN:
        return name
    module = sys.modules.get(name)
    spec, file = getattr(module, "__spec__", None), getattr(module, "__file__", None)
    # What is read from standard input has a __file__ too.
    for known in (spec and spec.name, file and os.path.isfile(file) and Path(file).stem):
        if known and known not in _RUN:
            return str(known)
    raise InvalidArgument(
        f"{function.__qualname__} is in no module that workers could import: put it into a file, or give it a name, "
        f'@app.task("{function.__qualname__}")'
    )
