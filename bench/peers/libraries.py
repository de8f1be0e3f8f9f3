"""How each library sends a job and runs a worker, as its own documentation has it, with its defaults.

This file runs in the virtual environment of one library at a time (child.py), so every import of a library stands where
it is used. The first thing that each handler does is `record`, the same for all; then it returns.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import os
import random
import signal
import struct
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

PORT = int(os.environ.get("PEERS_PORT", "0"))
URL = f"redis://127.0.0.1:{PORT}/0"
PAYLOAD = "".join(random.Random(7).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=100))
BULK = 500  # jobs per call, where many can be sent at once
OWN = "emq-native"  # the virtual environment of this project
AT_ONCE = 50  # calls in flight, where they are asynchronous and many cannot be sent at once

_record = -1


def record(number: int) -> None:
    """Notes that this job has begun: 16 bytes appended to a file, outside the server, whose figures stay its own."""
    global _record
    if _record < 0:
        _record = os.open(os.environ["PEERS_RECORD"], os.O_WRONLY | os.O_APPEND)
    os.write(_record, struct.pack("<qq", number, time.monotonic_ns()))


@dataclass(frozen=True)
class Setup:
    """A way to run one worker. jobs_per_ack: 0 when a taken job is not acknowledged, and dies with its worker."""

    label: str
    concurrency: int
    jobs_per_ack: int = 1
    most: int = 10_000  # jobs that are worked off; fewer where that would take minutes


class Library:
    """A producer and a worker. The producer's methods are coroutines only so that all libraries look alike."""

    packages: ClassVar[tuple[str, ...]] = ()
    venv: ClassVar[str] = ""  # default: the name in LIBRARIES; libraries that share one differ in how they are used
    setups: ClassVar[tuple[Setup, ...]] = (Setup("1", 1), Setup("10", 10), Setup("50", 50))
    prompt: ClassVar[int] = 1  # which setup is asked how soon it starts a job
    jobs: ClassVar[int] = 10_000
    bulk_by: ClassVar[str] = ""  # how many are sent at once: a call, a pipeline, or calls in flight
    delays: ClassVar[bool] = True
    prompt_jobs: ClassVar[int] = 300
    prompt_gap: ClassVar[tuple[float, float]] = (0.002, 0.020)  # seconds between two jobs of that question
    module: ClassVar[bool] = False  # whether the server loads emq.so
    note: ClassVar[str] = ""

    async def open(self) -> None: ...

    async def send(self, number: int) -> None:
        raise NotImplementedError

    async def send_many(self, numbers: Sequence[int]) -> None:
        for first in range(0, len(numbers), AT_ONCE):
            await asyncio.gather(*map(self.send, numbers[first : first + AT_ONCE]))

    async def send_later(self, number: int, seconds: float) -> None:
        raise NotImplementedError

    def work(self, setup: Setup, scheduler: bool) -> None:
        """Works until the process is killed. scheduler: also whatever the library needs to run delayed jobs."""
        raise NotImplementedError


def portions(numbers: Sequence[int]) -> list[Sequence[int]]:
    return [numbers[first : first + BULK] for first in range(0, len(numbers), BULK)]


class EmqNative(Library):
    """Tasks, as `App` has them: a call with its arguments, by the module."""

    venv = OWN
    setups: ClassVar[tuple[Setup, ...]] = (Setup("1", 1, 1), Setup("1, batch 10", 1, 10), Setup("1, batch 100", 1, 100))
    prompt = 0
    bulk_by = "one call"
    module = True
    wire = 6
    note = "leases with fencing tokens; a job of a dead worker runs again"

    def app(self) -> Any:
        from emq_native import App, provision

        provision.claim(URL, wire=self.wire)
        return App(URL, wire=self.wire)

    def make(self) -> tuple[Any, Any]:
        app = self.app()

        @app.task("handle")
        def handle(number: int, data: str) -> None:
            record(number)

        return app, handle

    async def open(self) -> None:
        app, self.task = self.make()
        self.queue = app.bus.queue(app.queues[0])
        self.queue.counts()

    async def send(self, number: int) -> None:
        self.task.enqueue(number, PAYLOAD)

    async def send_many(self, numbers: Sequence[int]) -> None:
        for portion in portions(numbers):
            self.queue.enqueue_many([self.task.message(number, PAYLOAD) for number in portion])

    async def send_later(self, number: int, seconds: float) -> None:
        self.task.enqueue_in(seconds, number, PAYLOAD)

    def work(self, setup: Setup, scheduler: bool) -> None:
        app, _ = self.make()
        worker = app.worker(concurrency=setup.concurrency, batch=setup.jobs_per_ack)
        worker.start()
        worker.join()


class EmqAsyncio(EmqNative):
    """The same on one event loop."""

    setups = (Setup("10", 10, 10), Setup("100", 100, 100))

    def work(self, setup: Setup, scheduler: bool) -> None:
        app = self.app()

        @app.task("handle")
        async def handle(number: int, data: str) -> None:
            record(number)

        async def main() -> None:
            worker = await app.aworker(concurrency=setup.concurrency, batch=setup.jobs_per_ack)
            await worker.run()

        asyncio.run(main())


class EmqScripted(EmqNative):
    """The same contract by Lua, on a server without the module."""

    setups = (Setup("1", 1, 1), Setup("1, batch 100", 1, 100))
    module = False
    wire = 4
    prompt_jobs, prompt_gap = 40, (0.0, 0.6)
    note = "the same contract as Lua scripts, on a server without the module"


class RawList(Library):
    """The floor for a worker of redis-py: two calls a job, or two pipelined for many."""

    packages = ("redis", "hiredis")
    venv = OWN
    setups = (Setup("1", 1, 1), Setup("pipelines of 10", 10, 10), Setup("pipelines of 50", 50, 50))
    prompt, bulk_by, delays = 0, "pipeline", False
    note = "LPUSH, BLMOVE, LREM: no leases, no retries, no delays; a job of a dead worker stays where it is"

    async def open(self) -> None:
        import redis

        self.client = redis.Redis(port=PORT)
        self.client.ping()

    @staticmethod
    def message(number: int) -> str:
        return f"{number}:{PAYLOAD}"

    async def send(self, number: int) -> None:
        self.client.lpush("queue", self.message(number))

    async def send_many(self, numbers: Sequence[int]) -> None:
        for portion in portions(numbers):
            pipeline = self.client.pipeline(transaction=False)
            for number in portion:
                pipeline.lpush("queue", self.message(number))
            pipeline.execute()

    def work(self, setup: Setup, scheduler: bool) -> None:
        import redis

        client: Any = redis.Redis(port=PORT)
        done: list[bytes] = []
        while True:
            if setup.concurrency == 1 or not done:
                taken = [message] if (message := client.blmove("queue", "busy", 1, "RIGHT", "LEFT")) else []
            else:
                pipeline = client.pipeline(transaction=False)
                for message in done:
                    pipeline.lrem("busy", 1, message)
                for _ in range(setup.concurrency):
                    pipeline.lmove("queue", "busy", "RIGHT", "LEFT")
                taken = [message for message in pipeline.execute()[len(done) :] if message]
            for message in taken:
                record(int(message.split(b":", 1)[0]))
            if setup.concurrency == 1:
                for message in taken:
                    client.lrem("busy", 1, message)
            else:
                done = taken


class RawStream(RawList):
    """The floor for a consumer group."""

    setups = (Setup("1", 1, 1), Setup("10 a call", 10, 10), Setup("50 a call", 50, 50))
    note = "XADD, XREADGROUP, XACK, nothing deleted: no retries, no delays; XAUTOCLAIM would be up to the user"

    async def send(self, number: int) -> None:
        self.client.xadd("stream", {"number": number, "data": PAYLOAD})

    async def send_many(self, numbers: Sequence[int]) -> None:
        for portion in portions(numbers):
            pipeline = self.client.pipeline(transaction=False)
            for number in portion:
                pipeline.xadd("stream", {"number": number, "data": PAYLOAD})
            pipeline.execute()

    def work(self, setup: Setup, scheduler: bool) -> None:
        import redis

        client: Any = redis.Redis(port=PORT)
        with suppress(redis.ResponseError):  # it is there
            client.xgroup_create("stream", "group", "0", mkstream=True)
        while True:
            reply = client.xreadgroup("group", "worker", {"stream": ">"}, count=setup.concurrency, block=1000)
            if not reply:
                continue
            found = reply[b"stream"][0] if isinstance(reply, dict) else reply[0][1]
            for _, fields in found:
                record(int(fields[b"number"]))
            client.xack("stream", "group", *[entry for entry, _ in found])


def rq_handle(number: int, data: str) -> None:
    record(number)


class Rq(Library):
    packages = ("rq", "hiredis")
    setups = (Setup("fork a job", 1, 1, 300), Setup("SimpleWorker", 1, 1, 1000))
    prompt, bulk_by, jobs, prompt_jobs = 0, "one call", 3_000, 100
    note = "one job at a time in a process; keeps results"

    async def open(self) -> None:
        import redis
        import rq

        self.queue = rq.Queue("default", connection=redis.Redis(port=PORT))
        self.queue.connection.ping()

    async def send(self, number: int) -> None:
        self.queue.enqueue("libraries.rq_handle", number, PAYLOAD)

    async def send_many(self, numbers: Sequence[int]) -> None:
        for portion in portions(numbers):
            prepare = self.queue.prepare_data
            self.queue.enqueue_many([prepare("libraries.rq_handle", args=(number, PAYLOAD)) for number in portion])

    async def send_later(self, number: int, seconds: float) -> None:
        self.queue.enqueue_in(dt.timedelta(seconds=seconds), "libraries.rq_handle", number, PAYLOAD)

    def work(self, setup: Setup, scheduler: bool) -> None:
        import libraries  # noqa: F401  as a user's module is there from the first job on
        import redis
        import rq

        kind = rq.SimpleWorker if setup.label == "SimpleWorker" else rq.Worker
        kind(["default"], connection=redis.Redis(port=PORT)).work(with_scheduler=scheduler, logging_level="WARNING")


async def arq_handle(context: dict[str, Any], number: int, data: str) -> None:
    record(number)


class Arq(Library):
    packages = ("arq", "hiredis")
    setups = (Setup("1", 1, 1, 20), Setup("10", 10, 1, 2000), Setup("50", 50))
    bulk_by, jobs = "50 in flight", 4_000
    prompt_jobs, prompt_gap = 40, (0.0, 0.6)
    note = "looks every 0.5 s; keeps results for an hour"

    async def open(self) -> None:
        from arq import create_pool
        from arq.connections import RedisSettings

        self.pool = await create_pool(RedisSettings(host="127.0.0.1", port=PORT))

    async def send(self, number: int) -> None:
        await self.pool.enqueue_job("arq_handle", number, PAYLOAD)

    async def send_later(self, number: int, seconds: float) -> None:
        await self.pool.enqueue_job("arq_handle", number, PAYLOAD, _defer_by=seconds)

    def work(self, setup: Setup, scheduler: bool) -> None:
        from arq.connections import RedisSettings
        from arq.worker import Worker

        settings = RedisSettings(host="127.0.0.1", port=PORT)
        Worker([arq_handle], redis_settings=settings, max_jobs=setup.concurrency).run()


async def saq_handle(context: dict[str, Any], *, number: int, data: str) -> None:
    record(number)


class Saq(Library):
    packages = ("saq[redis,hiredis]", "typing_extensions")
    bulk_by, jobs = "50 in flight", 5_000
    note = "looks for delayed jobs every second; keeps results for 10 minutes"

    def make(self) -> Any:
        from saq import Queue

        return Queue.from_url(URL)

    async def open(self) -> None:
        self.queue = self.make()
        await self.queue.connect()

    async def send(self, number: int) -> None:
        await self.queue.enqueue("saq_handle", number=number, data=PAYLOAD)

    async def send_later(self, number: int, seconds: float) -> None:
        await self.queue.enqueue("saq_handle", number=number, data=PAYLOAD, scheduled=time.time() + seconds)

    def work(self, setup: Setup, scheduler: bool) -> None:
        from saq import Worker

        async def main() -> None:
            await Worker(self.make(), functions=[saq_handle], concurrency=setup.concurrency).start()

        asyncio.run(main())


class Streaq(Library):
    packages = ("streaq",)
    bulk_by, jobs = "one call", 4_000
    note = "keeps results for 5 minutes"

    def make(self, concurrency: int = 16) -> tuple[Any, Any]:
        from streaq import Worker

        worker: Any = Worker(redis_url=URL, concurrency=concurrency)

        @worker.task
        async def handle(number: int, data: str) -> None:
            record(number)

        return worker, handle

    async def open(self) -> None:
        self.worker, self.task = self.make()
        await self.worker.__aenter__()

    async def send(self, number: int) -> None:
        await self.task.enqueue(number, PAYLOAD)

    async def send_many(self, numbers: Sequence[int]) -> None:
        for portion in portions(numbers):
            await self.worker.enqueue_many([self.task.enqueue(number, PAYLOAD) for number in portion])

    async def send_later(self, number: int, seconds: float) -> None:
        await self.task.enqueue(number, PAYLOAD).start(delay=dt.timedelta(seconds=seconds))

    def work(self, setup: Setup, scheduler: bool) -> None:
        self.make(setup.concurrency)[0].run_sync()


class Dramatiq(Library):
    packages = ("dramatiq[redis]", "hiredis")
    setups = (Setup("1 thread", 1, 1, 2000), Setup("8 threads", 8))
    jobs, prompt_jobs, prompt_gap = 5_000, 30, (0.0, 1.5)
    note = "looks with pauses of up to a second"

    def make(self) -> tuple[Any, Any]:
        import dramatiq
        from dramatiq.brokers.redis import RedisBroker

        broker = RedisBroker(url=URL)
        dramatiq.set_broker(broker)

        @dramatiq.actor(broker=broker)
        def handle(number: int, data: str) -> None:
            record(number)

        return broker, handle

    async def open(self) -> None:
        broker, self.task = self.make()
        broker.client.ping()

    async def send(self, number: int) -> None:
        self.task.send(number, PAYLOAD)

    async def send_later(self, number: int, seconds: float) -> None:
        self.task.send_with_options(args=(number, PAYLOAD), delay=int(seconds * 1000))

    def work(self, setup: Setup, scheduler: bool) -> None:
        import dramatiq

        broker, _ = self.make()
        dramatiq.Worker(broker, worker_threads=setup.concurrency).start()
        signal.pause()


class Celery(Library):
    packages = ("celery[redis]", "hiredis")
    setups = (Setup("1 solo", 1, 0), Setup("2 prefork", 2, 0), Setup("10 threads", 10, 0))
    jobs = 4_000
    note = "acknowledges before it runs a job, so a job of a dead worker is lost; delays are timers in the worker"

    def make(self) -> tuple[Any, Any]:
        import celery

        app = celery.Celery("peers", broker=URL)
        app.conf.broker_connection_retry_on_startup = True

        @app.task(name="handle")
        def handle(number: int, data: str) -> None:
            record(number)

        return app, handle

    async def open(self) -> None:
        app, self.task = self.make()
        with app.connection_for_write() as connection:
            connection.ensure_connection()

    async def send(self, number: int) -> None:
        self.task.apply_async((number, PAYLOAD))

    async def send_later(self, number: int, seconds: float) -> None:
        self.task.apply_async((number, PAYLOAD), countdown=seconds)

    def work(self, setup: Setup, scheduler: bool) -> None:
        pool = setup.label.split()[1]
        app, _ = self.make()
        app.worker_main(["worker", "--pool", pool, "-c", str(setup.concurrency), "-l", "WARNING"])


class Huey(Library):
    packages = ("huey", "redis", "hiredis")
    setups = (Setup("1 thread", 1, 0), Setup("10 threads", 10, 0))
    note = "BRPOP: a job of a dead worker is lost; looks for delayed jobs every second"

    def make(self) -> tuple[Any, Any]:
        from huey import RedisHuey

        huey = RedisHuey("peers", host="127.0.0.1", port=PORT)

        @huey.task(name="handle")
        def handle(number: int, data: str) -> None:
            record(number)

        return huey, handle

    async def open(self) -> None:
        huey, self.task = self.make()
        huey.storage.conn.ping()

    async def send(self, number: int) -> None:
        self.task(number, PAYLOAD)

    async def send_later(self, number: int, seconds: float) -> None:
        self.task.schedule((number, PAYLOAD), delay=seconds)

    def work(self, setup: Setup, scheduler: bool) -> None:
        self.make()[0].create_consumer(workers=setup.concurrency, worker_type="thread").run()


class TaskiqList(Library):
    packages, venv = ("taskiq", "taskiq-redis", "hiredis"), "taskiq"
    setups = (Setup("1", 1, 0), Setup("10", 10, 0), Setup("50", 50, 0))
    bulk_by, jobs = "50 in flight", 5_000
    note = "BRPOP: a job of a dead worker is lost; delays need a scheduler (here in the worker; every second, not 60)"

    def broker(self) -> Any:
        from taskiq_redis import ListQueueBroker

        return ListQueueBroker(URL)

    def make(self) -> tuple[Any, Any]:
        broker = self.broker()

        @broker.task(task_name="handle")
        async def handle(number: int, data: str) -> None:
            record(number)

        return broker, handle

    async def open(self) -> None:
        from taskiq_redis import ListRedisScheduleSource

        broker, self.task = self.make()
        await broker.startup()
        self.schedule = ListRedisScheduleSource(URL)
        await self.schedule.startup()

    async def send(self, number: int) -> None:
        await self.task.kiq(number, PAYLOAD)

    async def send_later(self, number: int, seconds: float) -> None:
        when = dt.datetime.now(dt.timezone.utc) + dt.timedelta(seconds=seconds)
        await self.task.schedule_by_time(self.schedule, when, number, PAYLOAD)

    def work(self, setup: Setup, scheduler: bool) -> None:
        from taskiq import TaskiqScheduler
        from taskiq.api import run_receiver_task, run_scheduler_task
        from taskiq_redis import ListRedisScheduleSource

        async def main() -> None:
            broker, _ = self.make()
            broker.is_worker_process = True
            await broker.startup()
            running = [run_receiver_task(broker, max_async_tasks=setup.concurrency)]
            if scheduler:
                source = TaskiqScheduler(broker, [ListRedisScheduleSource(URL)])
                running.append(run_scheduler_task(source, interval=dt.timedelta(seconds=1)))
            await asyncio.gather(*running)

        asyncio.run(main())


class TaskiqStream(TaskiqList):
    setups = (Setup("1", 1), Setup("10", 10), Setup("50", 50))
    note = "a consumer group; delays need a scheduler (here in the worker; every second, not 60)"

    def broker(self) -> Any:
        from taskiq_redis import RedisStreamBroker

        return RedisStreamBroker(URL, consumer_id="0")


class BullMqPython(Library):
    packages, venv = ("bullmq", "hiredis"), "bullmq"
    bulk_by, jobs = "one call", 5_000
    note = "keeps completed jobs"

    async def open(self) -> None:
        from bullmq import Queue

        self.queue = Queue("peers", {"connection": URL})
        await self.queue.getJobCounts("wait")

    @staticmethod
    def data(number: int) -> dict[str, Any]:
        return {"number": number, "data": PAYLOAD}

    async def send(self, number: int) -> None:
        await self.queue.add("handle", self.data(number))

    async def send_many(self, numbers: Sequence[int]) -> None:
        for portion in portions(numbers):
            await self.queue.addBulk([{"name": "handle", "data": self.data(number)} for number in portion])

    async def send_later(self, number: int, seconds: float) -> None:
        await self.queue.add("handle", self.data(number), {"delay": int(seconds * 1000)})

    def work(self, setup: Setup, scheduler: bool) -> None:
        from bullmq import Worker

        async def handle(job: Any, token: str) -> None:
            record(job.data["number"])

        async def main() -> None:
            Worker("peers", handle, {"connection": URL, "concurrency": setup.concurrency})
            await asyncio.Event().wait()

        asyncio.run(main())


class BullMqNode(Library):
    """Runs in bullmq.cjs, by the same words on standard input."""

    packages = ("bullmq", "ioredis")
    bulk_by = "one call"
    note = "Node.js; keeps completed jobs"


LIBRARIES: dict[str, type[Library]] = {
    "emq-native": EmqNative,
    "emq-native asyncio": EmqAsyncio,
    "emq-native scripted": EmqScripted,
    "lists": RawList,
    "streams": RawStream,
    "rq": Rq,
    "arq": Arq,
    "saq": Saq,
    "streaq": Streaq,
    "dramatiq": Dramatiq,
    "celery": Celery,
    "huey": Huey,
    "taskiq list": TaskiqList,
    "taskiq stream": TaskiqStream,
    "bullmq Python": BullMqPython,
    "bullmq Node.js": BullMqNode,
}
