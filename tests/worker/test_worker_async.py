"""The asyncio worker against real servers, on each executor: what differs from the threaded one."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import pytest
from tests.worker.conftest import wait_until

from emq_native import (
    HeldJob,
    Queue,
    Reject,
    Retry,
    Snooze,
    Unavailable,
    WireMismatch,
    aio,
    connect,
    constant,
    current_job,
)
from emq_native.server import Server

Handler = Callable[[HeldJob], Coroutine[Any, Any, Any]]


async def nothing(job: HeldJob) -> None:
    pass


async def until(holds: Callable[[], object], seconds: float = 20.0) -> None:
    """Return as soon as it holds, while the loop goes on."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it does not come to that"
        await asyncio.sleep(0.002)


@asynccontextmanager
async def at_work(url: str, name: str, handler: Handler, **options: Any) -> AsyncIterator[aio.Worker]:
    """A worker that works while the block runs."""
    async with await aio.connect(url) as bus:
        worker = aio.Worker(bus.queue(name), handler, **options)
        running = asyncio.create_task(worker.run(signals=False))
        try:
            yield worker
        finally:
            if worker._phase == "working":
                worker.stop()
            await running


@pytest.fixture
def url(servers: Any, executor: Any) -> str:
    return str(servers(executor.name).server.url)


def has_completed(queue: Queue, number: int) -> bool:
    return queue.counts().completed == number


async def work_off(url: str, queue: Queue, handler: Handler, **options: Any) -> aio.Worker:
    async with await aio.connect(url) as bus:
        worker = aio.Worker(bus.queue(queue.name), handler, burst=True, **options)
        await asyncio.wait_for(worker.run(), 30)
        return worker


@pytest.mark.parametrize("concurrency", [1, 20])
async def test_jobs_of_all_sources_are_completed(url: str, queue: Queue, concurrency: int) -> None:
    queue.enqueue_many([b"%d" % number for number in range(50)])
    for number in range(50, 70):
        queue.enqueue(b"%d" % number, group=f"g{number % 3}")
    seen: list[bytes | None] = []

    async def handler(job: HeldJob) -> None:
        seen.append(current_job().payload)

    worker = await work_off(url, queue, handler, concurrency=concurrency)

    assert set(seen) == {b"%d" % number for number in range(70)}
    assert len(seen) == 70
    assert worker.stats.completed == 70


async def test_up_to_concurrency_handlers_run_at_a_time(url: str, queue: Queue) -> None:
    queue.enqueue_many([b""] * 20)
    now, most = 0, 0

    async def handler(job: HeldJob) -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.01)
        now -= 1

    await work_off(url, queue, handler, concurrency=5)

    assert most == 5


async def test_retry_snooze_reject_and_failures(url: str, queue: Queue) -> None:
    async def handler(job: HeldJob) -> None:
        if job.payload == b"retry":
            raise Retry(0.01)
        if job.payload == b"snooze" and job.attempts < 3:
            raise Snooze(0.01)
        if job.payload == b"reject":
            raise Reject("spam")
        if job.payload == b"fail":
            raise ValueError("x")

    jobs = {word: queue.enqueue(word) for word in (b"retry", b"snooze", b"reject", b"fail")}
    async with at_work(url, queue.name, handler, max_attempts=2, backoff=constant(0.01)):
        await until(lambda: (queue.counts().completed, queue.counts().dead) == (1, 3))

    assert (queue.peek(jobs[b"reject"]) or {})["last_error"] == b"spam"
    assert (queue.peek(jobs[b"fail"]) or {})["last_error"].startswith(b"ValueError: x\n")


async def test_a_backoff_that_fails_costs_a_second_and_no_worker(url: str, queue: Queue) -> None:
    async def handler(job: HeldJob) -> None:
        await asyncio.sleep(60 if job.payload == b"late" else 0)
        raise ValueError("x")

    jobs = [queue.enqueue(word) for word in (b"late", b"fails")]
    async with at_work(url, queue.name, handler, backoff=lambda attempt: float("nan"), timeout=0.1):
        await until(lambda: all((queue.peek(job) or {}).get("last_error") for job in jobs))

    assert all((queue.peek(job) or {})["last_error"].startswith(b"the backoff failed: ") for job in jobs)


async def test_a_handler_over_its_time_is_cancelled_and_has_failed(url: str, queue: Queue) -> None:
    cancelled = asyncio.Event()

    async def handler(job: HeldJob) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    job = queue.enqueue(b"")
    async with at_work(url, queue.name, handler, max_attempts=1, timeout=0.1):
        await until(lambda: queue.state(job) == "dead")
        await asyncio.wait_for(cancelled.wait(), 10)


async def test_a_handler_that_exits_fails_its_own_job(url: str, queue: Queue) -> None:
    async def handler(job: HeldJob) -> None:
        if job.payload == b"exits":
            sys.exit(3)
        await until(lambda: queue.counts().dead == 1)

    exits = queue.enqueue(b"exits")
    queue.enqueue_many([b""] * 5)
    worker = await work_off(url, queue, handler, max_attempts=1)

    assert (worker.stats.dead, worker.stats.completed) == (1, 5)
    assert (queue.peek(exits) or {})["last_error"].startswith(b"SystemExit: 3\n")


async def test_a_result_of_any_make_fails_its_job_and_not_the_worker(url: str, queue: Queue) -> None:
    class Unnamed:
        @property  # type: ignore[misc]
        def __class__(self) -> type:
            raise RuntimeError("nothing is behind it")

    async def handler(job: HeldJob) -> object:
        return Unnamed() if job.payload else None

    fails = queue.enqueue(b"fails")
    queue.enqueue_many([b"", b""])
    worker = await work_off(url, queue, handler, max_attempts=1)
    assert (worker.stats.dead, worker.stats.completed) == (1, 2)
    assert (queue.peek(fails) or {})["last_error"].startswith(b"RuntimeError: nothing is behind it")


def test_an_interrupt_stops_the_worker_when_the_others_are_done(url: str, queue: Queue) -> None:
    workers: list[aio.Worker] = []

    async def work() -> None:
        interrupted = asyncio.Event()

        async def handler(job: HeldJob) -> None:
            if job.payload == b"interrupted":
                interrupted.set()
                raise KeyboardInterrupt
            await interrupted.wait()
            await until(lambda: queue.state(held) != "active")

        async with await aio.connect(url) as bus:
            workers.append(aio.Worker(bus.queue(queue.name), handler))
            await workers[0].run(signals=False)

    held = queue.enqueue(b"interrupted")
    queue.enqueue(b"")
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(work())

    assert (workers[0].stats.completed, workers[0].stats.delayed) == (1, 1)
    assert queue.counts().active == 0


async def test_a_handler_that_blocks_the_loop_keeps_its_lease(url: str, queue: Queue) -> None:
    tokens: list[int] = []

    async def busy(job: HeldJob) -> None:
        tokens.append(job.token)
        until = time.monotonic() + 5
        while time.monotonic() < until:
            pass

    queue.enqueue(b"")
    reaped: list[int] = []

    def reap() -> None:
        wait_until(lambda: tokens)
        while not queue.counts().completed:
            reaped.append(queue.reap())

    reaper = threading.Thread(target=reap)
    reaper.start()
    async with at_work(url, queue.name, busy, lease=2):
        await asyncio.to_thread(reaper.join)

    assert tokens == [1]
    assert sum(reaped) == 0


async def test_a_lost_lease_cancels_the_handler(url: str, queue: Queue) -> None:
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def handler(job: HeldJob) -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            assert job.lost
            cancelled.set()
            raise

    job = queue.enqueue(b"")
    async with at_work(url, queue.name, handler, lease=0.3) as worker:
        await asyncio.wait_for(begun.wait(), 10)
        queue.remove(job, force=True)
        await asyncio.wait_for(cancelled.wait(), 10)
        await until(lambda: worker.stats.lost == 1)


async def test_a_node_that_cannot_renew_a_lease_has_not_taken_it_back(
    fenced_server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def handler(job: HeldJob) -> None:
        begun.set()
        await asyncio.wait_for(go_on.wait(), 20)

    with connect(fenced_server.url) as bus, fenced_server.client() as control:
        queue = bus.queue("q")
        queue.enqueue(b"")
        async with at_work(fenced_server.url, "q", handler, lease=3) as worker:
            await asyncio.wait_for(begun.wait(), 10)
            taken = control.zrange("emq:{q}:active", 0, -1, withscores=True)
            await until(lambda: control.zrange("emq:{q}:active", 0, -1, withscores=True) != taken)

            control.delete("{emq}:version")
            await until(lambda: "leases are not renewed" in caplog.text)
            control.set("{emq}:version", "echomq:6.0.0")
            go_on.set()

            await until(partial(has_completed, queue, 1))
            assert worker.stats.lost == 0


def keepers() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name.endswith("keeper")]


async def test_a_worker_that_ends_before_its_keeper_has_begun_ends_it_too(
    fenced_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    ending = threading.Event()
    run, call = threading.Thread.run, asyncio.BaseEventLoop.call_soon_threadsafe
    own = asyncio.get_running_loop()

    def held_up(thread: threading.Thread) -> None:
        if thread.name.endswith("keeper"):
            ending.wait(10)
        run(thread)

    def noticed(loop: asyncio.BaseEventLoop, *arguments: Any, **options: Any) -> asyncio.Handle:
        handle = call(loop, *arguments, **options)
        if loop is not own:
            ending.set()
        return handle

    async with await aio.connect(fenced_server.url) as bus:
        monkeypatch.setattr(threading.Thread, "run", held_up)
        monkeypatch.setattr(asyncio.BaseEventLoop, "call_soon_threadsafe", noticed)
        await aio.Worker(bus.queue("q"), nothing, burst=True).run(signals=False)

    assert ending.is_set()
    assert not keepers()


async def test_a_worker_whose_keeper_cannot_start_leaves_nothing_behind(
    url: str, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    handlers = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    async with await aio.connect(url) as bus:
        worker = aio.Worker(bus.queue(queue.name), nothing)
        with monkeypatch.context() as limits:
            limits.setattr(threading.Thread, "start", refused)
            with pytest.raises(RuntimeError, match="new thread"):
                await worker.run()

    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == handlers


async def test_a_worker_ends_although_its_handlers_hold_all_threads_of_the_loop(url: str, queue: Queue) -> None:
    go_on = threading.Event()
    begun = asyncio.Event()

    async def handler(job: HeldJob) -> None:
        begun.set()
        await asyncio.to_thread(go_on.wait, 60)

    queue.enqueue(b"")
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    try:
        async with await aio.connect(url) as bus:
            worker = aio.Worker(bus.queue(queue.name), handler, grace=0)
            running = asyncio.create_task(worker.run(signals=False))
            await begun.wait()
            worker.stop()
            await asyncio.wait_for(running, 20)
    finally:
        go_on.set()
    assert not keepers()


async def test_a_worker_that_is_cancelled_again_and_again_renews_no_more_leases(url: str, queue: Queue) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def handler(job: HeldJob) -> None:
        begun.set()
        while not go_on.is_set():
            with suppress(asyncio.CancelledError):
                await go_on.wait()

    queue.enqueue(b"")
    async with await aio.connect(url) as bus:
        running = asyncio.create_task(aio.Worker(bus.queue(queue.name), handler).run(signals=False))
        await begun.wait()
        while not running.done():
            running.cancel()
            await asyncio.sleep(0.01)
        await until(lambda: not keepers())
        go_on.set()


async def test_a_worker_that_was_stopped_before_it_ran_ends_at_once(url: str, queue: Queue) -> None:
    queue.enqueue(b"")
    async with await aio.connect(url) as bus:
        worker = aio.Worker(bus.queue(queue.name), nothing)
        worker.stop()
        await asyncio.wait_for(worker.run(signals=False), 20)
    assert queue.counts().pending == 1


async def test_a_handler_that_cancels_itself_as_it_ends_has_one_run(url: str, queue: Queue) -> None:
    async def handler(job: HeldJob) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()

    queue.enqueue_many([b""] * 3)
    worker = await work_off(url, queue, handler, concurrency=1)
    assert (worker.stats.completed, worker._ledger.running) == (3, 0)


async def test_a_stop_ends_the_wait_of_an_idle_worker(url: str, queue: Queue) -> None:
    async def work() -> None:
        async with at_work(url, queue.name, nothing, block=3600.0):
            queue.enqueue(b"")
            await until(lambda: queue.counts().completed == 1)

    await asyncio.wait_for(work(), 60)


async def test_a_stop_lets_handlers_finish(url: str, queue: Queue) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def handler(job: HeldJob) -> None:
        begun.set()
        await go_on.wait()

    queue.enqueue(b"")
    async with at_work(url, queue.name, handler) as worker:
        await begun.wait()
        worker.stop()
        queue.enqueue(b"")
        go_on.set()

    counts = queue.counts()
    assert (counts.completed, counts.active, counts.pending + counts.scheduled) == (1, 0, 1)


@pytest.mark.parametrize("how", ["grace", "cancel"])
async def test_what_does_not_finish_is_cancelled_and_goes_back(url: str, queue: Queue, how: str) -> None:
    begun = asyncio.Event()

    async def handler(job: HeldJob) -> None:
        begun.set()
        await asyncio.sleep(60)

    job = queue.enqueue(b"")
    async with await aio.connect(url) as bus:
        worker = aio.Worker(bus.queue(queue.name), handler, grace=0.05)
        running = asyncio.create_task(worker.run(signals=False))
        await begun.wait()
        if how == "grace":
            worker.stop()
            await running
        else:
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running

    assert queue.state(job) == "scheduled"
    queue.promote()
    again = queue.claim(60)
    assert again is not None
    assert again.token == 2


async def test_a_worker_outlives_its_server(own_server: Server) -> None:
    with connect(own_server.url) as bus:
        queue = bus.queue("q")
        async with at_work(own_server.url, "q", nothing):
            for number in range(1, 4):
                queue.enqueue(b"")
                await until(partial(has_completed, queue, number))
                own_server.kill()
                own_server.start()


async def test_the_log_says_when_a_trouble_is_over(own_server: Server, caplog: pytest.LogCaptureFixture) -> None:
    with connect(own_server.url) as bus, caplog.at_level("INFO", "emq_native"):
        queue = bus.queue("q")
        async with at_work(own_server.url, "q", nothing):
            queue.enqueue(b"")
            await until(partial(has_completed, queue, 1))
            own_server.kill()
            await until(lambda: "next try" in caplog.text)
            own_server.start()
            await until(lambda: "queue q goes on" in caplog.messages)


async def test_a_burst_does_not_wait_for_a_node_that_is_not_there(own_server: Server) -> None:
    async with await aio.connect(own_server.url) as bus:
        own_server.kill()
        with pytest.raises(Unavailable):
            await asyncio.wait_for(aio.Worker(bus.queue("q"), nothing, burst=True).run(), 30)


async def test_a_burst_that_a_pause_ends_says_so_once(url: str, queue: Queue, caplog: pytest.LogCaptureFixture) -> None:
    async def handler(job: HeldJob) -> None:
        queue.pause()

    queue.enqueue_many([b""] * 5)
    with caplog.at_level("WARNING", "emq_native"):
        await work_off(url, queue, handler, concurrency=1, batch=1)
    assert [line for line in caplog.messages if "paused" in line] == [
        f"queue {queue.name} is paused: nothing is taken before `emq-native queues resume {queue.name}`"
    ]


async def test_another_executor_on_the_node_ends_the_worker(own_server: Server) -> None:
    async with await aio.connect(own_server.url) as bus:
        worker = aio.Worker(bus.queue("q"), nothing)
        running = asyncio.create_task(worker.run(signals=False))
        await bus.queue("q").enqueue(b"")
        await until(lambda: worker.stats.taken == 1)
        with own_server.client() as control:
            control.set("{emq}:version", "echomq:9.0.0")
            control.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        with pytest.raises(WireMismatch):
            await asyncio.wait_for(running, 20)


async def test_repeats_are_fired(url: str, queue: Queue) -> None:
    queue.repeat("tick", 0.05, b"tick")
    async with at_work(url, queue.name, nothing, repeats=True):
        await until(lambda: queue.counts().completed >= 3)
    queue.unrepeat("tick")
