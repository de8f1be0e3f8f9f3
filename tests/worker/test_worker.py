"""The threaded worker against real servers, on each executor."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from functools import partial

import pytest
from tests.proxy import Proxy, answer, lose_reply
from tests.worker.conftest import wait_until

from emq_native import (
    Bus,
    HeldJob,
    PermissionDenied,
    Queue,
    Reject,
    Retry,
    Snooze,
    StaleToken,
    TimedOut,
    Unavailable,
    Worker,
    connect,
    constant,
    current_job,
)
from emq_native.conformance.host import OwnServer
from emq_native.executors import Executor
from emq_native.server import Server

Start = Callable[[Worker], Worker]
SOON = constant(0.01)


def nothing(job: HeldJob) -> None:
    pass


def completed(queue: Queue) -> int:
    """What the server has counted. A worker learns it with its next job."""
    return queue.counts().completed


def has_completed(queue: Queue, number: int) -> bool:
    return completed(queue) == number


def work_off(queue: Queue, handler: Callable[[HeldJob], object], **options: object) -> Worker:
    """Work until nothing more can be taken."""
    worker = Worker(queue, handler, burst=True, **options)  # type: ignore[arg-type]
    worker.start()
    assert worker.join(30)
    return worker


# Taking and settling


@pytest.mark.parametrize("concurrency", [1, 4])
def test_jobs_of_all_sources_are_completed(queue: Queue, concurrency: int) -> None:
    queue.enqueue_many([b"%d" % number for number in range(50)])
    for number in range(50, 70):
        queue.enqueue(b"%d" % number, group=f"g{number % 3}")
    seen: list[bytes | None] = []

    worker = work_off(queue, lambda job: seen.append(job.payload), concurrency=concurrency)

    assert set(seen) == {b"%d" % number for number in range(70)}
    assert len(seen) == 70
    assert worker.stats.completed == 70
    assert queue.counts().completed == 70


def test_only_the_sources_asked_for_are_served(queue: Queue) -> None:
    queue.enqueue(b"flat")
    queue.enqueue(b"lane", group="g")
    seen: list[bytes | None] = []

    work_off(queue, lambda job: seen.append(job.payload), sources=("lanes",))

    assert seen == [b"lane"]


def test_many_short_jobs_share_round_trips(own_server: Server) -> None:
    with Proxy(own_server.port) as proxy, connect(proxy.url) as far:
        at = far.queue("short")
        at.enqueue_many([b""] * 500)
        before = len(proxy.seen)

        work_off(at, nothing)

        assert len(proxy.seen) - before < 200


def test_a_single_runner_settles_takes_and_waits_with_one_command(native_server: OwnServer) -> None:
    with (
        Proxy(native_server.server.port) as proxy,
        connect(proxy.url) as far,
        connect(native_server.server.url) as near,
    ):
        queue = near.queue("one-command")
        worker = Worker(far.queue("one-command"), nothing)
        worker.start()
        for number in range(1, 6):
            queue.enqueue(b"")
            wait_until(partial(has_completed, queue, number))
        worker.stop()
        assert worker.join(10)

        verbs = [verb for verb in proxy.verbs() if verb.startswith("EMQ.")]
        assert verbs == ["EMQ.NEXT"] * 6


def test_a_waiting_worker_takes_a_job_at_once(queue: Queue, started: Start, executor: Executor) -> None:
    started(Worker(queue, nothing, concurrency=3))
    for number in range(1, 11):
        queue.enqueue(b"", group="g" if number % 2 else None)
        wait_until(partial(has_completed, queue, number), 2.0)


def test_a_scheduled_job_runs_when_it_is_due(queue: Queue, started: Start) -> None:
    times: list[float] = []
    started(Worker(queue, lambda job: times.append(time.time())))
    due = time.time() + 0.3
    queue.enqueue_in(b"", 0.3)

    wait_until(lambda: times)

    assert -0.01 <= times[0] - due < 1.0


def test_an_expired_lease_is_recovered_and_counts_as_a_run(queue: Queue) -> None:
    queue.enqueue(b"")
    assert queue.claim(0.001) is not None
    tokens: list[int] = []

    worker = work_off(queue, lambda job: tokens.append(job.token))

    assert tokens == [2]
    assert worker.stats.completed == 1


def test_a_job_that_ends_its_workers_is_dead_in_the_end(queue: Queue) -> None:
    job = queue.enqueue(b"")
    assert queue.claim(0.001) is not None
    wait_until(lambda: queue.reap() == 1)
    assert queue.claim(0.001) is not None
    wait_until(lambda: queue.reap() == 1)
    assert queue.claim(0.001) is not None

    work_off(queue, nothing, max_attempts=3)
    work_off(queue, nothing, max_attempts=3)

    assert queue.state(job) == "dead"


def test_a_burst_leaves_what_is_due_later(queue: Queue) -> None:
    queue.enqueue(b"")
    queue.enqueue_in(b"", 3600)

    worker = work_off(queue, nothing)

    assert worker.stats.completed == 1
    assert queue.counts().scheduled == 1


def test_jobs_taken_ahead_go_back_when_one_takes_long(queue: Queue, started: Start) -> None:
    long = threading.Event()

    def handler(job: HeldJob) -> None:
        if job.payload == b"long":
            long.wait(20)

    queue.enqueue_many([b"short"] * 200)
    queue.enqueue(b"long")
    queue.enqueue_many([b"last"] * 5)
    try:
        started(Worker(queue, handler))
        wait_until(lambda: completed(queue) == 200)
        wait_until(lambda: queue.counts().active == 1)
        other = work_off(queue, nothing)
        assert other.stats.completed == 5
    finally:
        long.set()


# How runs end


def test_a_failure_runs_again_after_its_backoff_and_is_dead_at_last(queue: Queue, started: Start) -> None:
    runs: list[int] = []

    def handler(job: HeldJob) -> None:
        runs.append(job.attempts)
        raise ValueError(f"number {job.attempts}")

    asked: list[int] = []

    def pause(attempt: int) -> float:
        asked.append(attempt)
        return 0.02

    job = queue.enqueue(b"")
    started(Worker(queue, handler, max_attempts=3, backoff=pause))
    wait_until(lambda: queue.state(job) == "dead")

    assert runs == [1, 2, 3]
    assert asked == [1, 2, 3]


def test_a_dead_letter_keeps_the_error_and_its_own_frames(queue: Queue) -> None:
    def deep(depth: int) -> None:
        if depth:
            deep(depth - 1)
        raise ValueError("é" * 5000)

    job = queue.enqueue(b"")
    work_off(queue, lambda job: deep(40), max_attempts=1)

    fields = queue.peek(job) or {}
    error = fields["last_error"]
    assert error.startswith(b"ValueError: \xc3\xa9")
    assert len(error) <= 4096
    assert b"in deep" in error
    assert b"emq_native" not in error
    error.decode()


def test_retry_snooze_and_reject_say_what_happens(queue: Queue, started: Start) -> None:
    runs: dict[bytes | None, list[int]] = {}

    def handler(job: HeldJob) -> None:
        mine = runs.setdefault(job.payload, [])
        mine.append(job.attempts)
        if job.payload == b"retry":
            raise Retry(0.01, "not yet")
        if job.payload == b"snooze" and len(mine) < 5:
            raise Snooze(0.01)
        if job.payload == b"reject":
            raise Reject("spam")

    retried, snoozed, rejected = (queue.enqueue(word) for word in (b"retry", b"snooze", b"reject"))
    started(Worker(queue, handler, max_attempts=2, backoff=constant(3600)))
    wait_until(lambda: (queue.counts().completed, queue.counts().dead) == (1, 2))

    assert runs == {b"retry": [1, 2], b"snooze": [1, 2, 3, 4, 5], b"reject": [1]}
    assert [queue.state(job) for job in (retried, snoozed, rejected)] == ["dead", "absent", "dead"]
    assert (queue.peek(retried) or {})["last_error"] == b"not yet"
    assert (queue.peek(rejected) or {})["last_error"] == b"spam"


def test_the_log_says_why_a_job_is_dead(queue: Queue, started: Start, caplog: pytest.LogCaptureFixture) -> None:
    def handler(job: HeldJob) -> None:
        raise Reject("spam\nand more")

    job = queue.enqueue(b"")
    with caplog.at_level("INFO", "emq_native"):
        started(Worker(queue, handler))
        wait_until(lambda: f"job {job} is dead: spam" in caplog.messages)


def test_the_log_says_when_a_failed_job_runs_again(
    queue: Queue, started: Start, caplog: pytest.LogCaptureFixture
) -> None:
    def handler(job: HeldJob) -> None:
        raise Retry(3600, "busy")

    job = queue.enqueue(b"")
    with caplog.at_level("INFO", "emq_native"):
        started(Worker(queue, handler))
        wait_until(lambda: f"job {job} runs again in 3600.0 s: busy" in caplog.messages)


@pytest.mark.parametrize("signal", [Retry, Snooze])
def test_a_delay_beyond_what_the_server_keeps_fails_the_run_and_does_not_hold_the_job(
    queue: Queue, signal: type[Retry | Snooze]
) -> None:
    longest = timedelta(milliseconds=2**52)

    def handler(job: HeldJob) -> None:
        raise signal(longest if job.payload == b"longest" else longest + timedelta(milliseconds=1))

    longer, later = queue.enqueue(b"longer"), queue.enqueue(b"longest")
    work_off(queue, handler, max_attempts=2, backoff=constant(3600))

    assert [queue.state(job) for job in (longer, later)] == ["scheduled", "scheduled"]
    assert b"delay must be at most 4503599627370496 milliseconds" in (queue.peek(longer) or {})["last_error"]


@pytest.mark.parametrize("pause", [float("nan"), -1.0, 1e300, 9e12, None, "soon", ZeroDivisionError()])
def test_a_backoff_that_fails_costs_a_second_and_no_worker(queue: Queue, started: Start, pause: object) -> None:
    def broken(attempt: int) -> float:
        if isinstance(pause, Exception):
            raise pause
        return pause  # type: ignore[return-value]

    def handler(job: HeldJob) -> None:
        if job.payload == b"late":
            while True:
                pass
        raise ValueError("x")

    jobs = [queue.enqueue(word) for word in (b"late", b"fails")]
    worker = started(Worker(queue, handler, concurrency=2, backoff=broken, timeout=0.1))
    wait_until(lambda: all((queue.peek(job) or {}).get("last_error") for job in jobs))

    assert all((queue.peek(job) or {})["last_error"].startswith(b"the backoff failed: ") for job in jobs)
    worker.stop()
    assert worker.join(10)


def test_a_handler_over_its_time_is_interrupted_and_has_failed(queue: Queue, started: Start) -> None:
    raised: list[BaseException] = []

    def handler(job: HeldJob) -> None:
        try:
            while True:
                pass
        except BaseException as error:
            raised.append(error)
            raise

    job = queue.enqueue(b"")
    started(Worker(queue, handler, max_attempts=1, timeout=0.1))
    wait_until(lambda: queue.state(job) == "dead" and raised)
    queue.enqueue(b"")
    wait_until(lambda: queue.counts().dead == 2)

    assert [type(error) for error in raised] == [TimedOut] * 2
    assert b"longer than 0.1 s" in (queue.peek(job) or {})["last_error"]


@pytest.mark.timeout(60)
def test_a_handler_that_was_interrupted_leaves_the_interpreter_to_its_profiler(queue: Queue) -> None:
    def handler(job: HeldJob) -> None:
        while True:
            pass

    calls: list[str] = []
    queue.enqueue(b"")
    work_off(queue, handler, max_attempts=1, timeout=0.1)
    sys.setprofile(lambda frame, event, argument: calls.append(event))
    try:
        nothing(None)  # type: ignore[arg-type]
    finally:
        sys.setprofile(None)
    assert "return" in calls


async def coroutine(job: HeldJob) -> bytes:
    return b"never"


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
def test_a_job_whose_coroutine_nobody_runs_has_failed(queue: Queue) -> None:
    job_id = queue.enqueue(b"work")
    assert work_off(queue, coroutine, max_attempts=1).stats.dead == 1
    assert b"emq_native.aio.Worker" in (queue.peek(job_id) or {})["last_error"]


def test_a_reason_that_is_an_exception_is_its_text(queue: Queue) -> None:
    def handle(job: HeldJob) -> None:
        raise Reject(ValueError("no such customer"))  # type: ignore[arg-type]

    job_id = queue.enqueue(b"work")
    assert work_off(queue, handle).stats.dead == 1
    assert (queue.peek(job_id) or {})["last_error"] == b"no such customer"


class Stubborn(Exception):
    """An error that does not let its traceback be set, and has no text."""

    def with_traceback(self, trace: object) -> Stubborn:
        raise RuntimeError("no")

    def __str__(self) -> str:
        raise RuntimeError("no")


class Unnamed:
    """What raises when it is asked of which class it is, as a proxy of something that is not there does."""

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        raise RuntimeError("nothing is behind it")


class Hidden(Unnamed, Exception):
    """An error that tells neither its class nor where it came from, and cannot be shown."""

    @property
    def __traceback__(self) -> None:  # type: ignore[override]
        raise RuntimeError("no")

    def __repr__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize("error", [Stubborn, Hidden])
def test_an_error_of_any_make_fails_its_job_and_not_the_worker(queue: Queue, error: type[Exception]) -> None:
    def handler(job: HeldJob) -> None:
        if job.payload == b"fails":
            raise error

    fails = queue.enqueue(b"fails")
    queue.enqueue_many([b"", b""])
    worker = work_off(queue, handler, max_attempts=1)
    assert (worker.stats.dead, worker.stats.completed) == (1, 2)
    assert error.__name__.encode() in (queue.peek(fails) or {})["last_error"]


def test_a_result_of_any_make_fails_its_job_and_not_the_worker(queue: Queue) -> None:
    fails = queue.enqueue(b"fails")
    queue.enqueue_many([b"", b""])
    worker = work_off(queue, lambda job: Unnamed() if job.payload else None, max_attempts=1)
    assert (worker.stats.dead, worker.stats.completed) == (1, 2)
    assert (queue.peek(fails) or {})["last_error"].startswith(b"RuntimeError: nothing is behind it")


def test_a_backoff_that_exits_fails_its_job_and_not_the_worker(queue: Queue, started: Start) -> None:
    def handler(job: HeldJob) -> None:
        if job.payload == b"fails":
            raise ValueError

    fails = queue.enqueue(b"fails")
    queue.enqueue_many([b"", b""])
    started(Worker(queue, handler, backoff=lambda attempt: sys.exit(3)))
    wait_until(lambda: (queue.counts().completed, queue.counts().scheduled) == (2, 1))
    assert (queue.peek(fails) or {})["last_error"].startswith(b"the backoff failed: SystemExit: 3")


def test_a_handler_that_exits_fails_its_own_job(queue: Queue) -> None:
    def handler(job: HeldJob) -> None:
        if job.payload == b"exits":
            sys.exit(3)

    exits = queue.enqueue(b"exits")
    queue.enqueue_many([b""] * 5)
    worker = work_off(queue, handler, max_attempts=1)

    assert (worker.stats.dead, worker.stats.completed) == (1, 5)
    assert (queue.peek(exits) or {})["last_error"].startswith(b"SystemExit: 3\n")


def test_the_current_job_is_known_to_what_a_handler_calls(queue: Queue) -> None:
    seen: list[HeldJob] = []
    job = queue.enqueue(b"", group="g")

    work_off(queue, lambda job: seen.append(current_job()))

    assert (seen[0].id, seen[0].token, seen[0].queue, seen[0].group) == (job, 1, queue.name, "g")
    with pytest.raises(LookupError):
        current_job()


# Leases


def test_a_busy_handler_keeps_its_lease(queue: Queue, started: Start) -> None:
    tokens: list[int] = []

    def busy(job: HeldJob) -> None:
        tokens.append(job.token)
        until = time.monotonic() + 5
        while time.monotonic() < until:
            pass

    queue.enqueue(b"")
    started(Worker(queue, busy, lease=2, concurrency=2))
    wait_until(lambda: tokens)
    while not completed(queue):
        assert queue.reap() == 0

    assert tokens == [1]


def test_a_lost_lease_is_visible_and_its_settling_is_refused(queue: Queue, started: Start) -> None:
    taken, lost = threading.Event(), threading.Event()
    complaints: list[Exception] = []

    def handler(job: HeldJob) -> None:
        if job.attempts > 1:
            return
        taken.set()
        wait_until(lambda: job.lost)
        try:
            job.ensure()
        except StaleToken as error:
            complaints.append(error)
        with pytest.raises(StaleToken):
            queue.complete(job)
        lost.set()

    job = queue.enqueue(b"")
    worker = started(Worker(queue, handler, lease=0.5, block=0.2))
    assert taken.wait(10)

    def lapses() -> bool:
        queue.extend(str(job), 0.001, token=1)
        return any(queue.reap() for _ in range(100))  # unless a beat comes between

    wait_until(lapses)
    other = queue.claim(60)
    assert other is not None

    assert lost.wait(10)
    wait_until(lambda: worker.stats.lost == 1)
    assert len(complaints) == 1
    assert queue.complete(other)


def test_a_removed_job_is_lost_too(queue: Queue, started: Start) -> None:
    lost = threading.Event()

    def handler(job: HeldJob) -> None:
        queue.remove(job, force=True)
        wait_until(lambda: job.lost)
        lost.set()

    queue.enqueue(b"")
    worker = started(Worker(queue, handler, lease=0.3, block=0.2))

    assert lost.wait(10)
    wait_until(lambda: worker.stats.lost == 1)


# The end


def test_a_stop_lets_handlers_finish_and_hands_back_the_rest_at_once(queue: Queue, started: Start) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def handler(job: HeldJob) -> None:
        if job.payload == b"long":
            begun.set()
            go_on.wait(20)

    queue.enqueue_many([b"short"] * 100)
    queue.enqueue(b"long")
    queue.enqueue_many([b"rest"] * 10)
    worker = started(Worker(queue, handler, lease=60))
    assert begun.wait(10)
    worker.stop()
    wait_until(lambda: queue.counts().active == 1)
    other = work_off(queue, nothing)
    go_on.set()

    assert worker.join(10)
    assert other.stats.completed == 10
    assert queue.counts().completed == 111


def test_a_stop_ends_the_wait_of_an_idle_worker(queue: Queue, started: Start) -> None:
    worker = started(Worker(queue, nothing, concurrency=4, block=3600.0))
    queue.enqueue(b"")
    wait_until(lambda: completed(queue) == 1)

    worker.stop()

    assert worker.join(60)


def test_what_runs_beyond_the_grace_goes_back(queue: Queue, started: Start) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def handler(job: HeldJob) -> None:
        begun.set()
        go_on.wait(20)

    job = queue.enqueue(b"")
    worker = started(Worker(queue, handler, lease=60, grace=0.05))
    assert begun.wait(10)
    worker.stop()
    try:
        assert worker.join(10)
        assert queue.state(job) == "scheduled"
        assert queue.promote() == 1
        again = queue.claim(60)
        assert again is not None
        assert again.token == 2
    finally:
        go_on.set()


def test_a_second_stop_leaves_at_once(queue: Queue, started: Start) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def handler(job: HeldJob) -> None:
        begun.set()
        go_on.wait(20)

    job = queue.enqueue(b"")
    worker = started(Worker(queue, handler, lease=60, grace=60))
    assert begun.wait(10)
    worker.stop()
    worker.stop()
    try:
        assert worker.join(10)
        assert queue.state(job) == "active"
    finally:
        go_on.set()


# Its threads


@pytest.mark.parametrize("refused", ["keeper", "pump", "2"])
def test_a_worker_whose_threads_cannot_all_start_has_ended(
    queue: Queue, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    start = threading.Thread.start

    def limited(thread: threading.Thread) -> None:
        if thread.name == f"emq-{queue.name}-{refused}":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    worker = Worker(queue, nothing, concurrency=3, block=0.1, repeats=True)
    with pytest.raises(RuntimeError, match="new thread"):
        worker.start()
    with pytest.raises(RuntimeError, match="new thread"):
        worker.join(20)
    wait_until(lambda: not [each for each in threading.enumerate() if each.name.startswith(f"emq-{queue.name}-")])


def test_a_log_that_stops_the_worker_of_which_it_hears_does_not_hold_it_up(own_server: Server, started: Start) -> None:
    class Stops(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "next try" in record.getMessage():
                stopping = threading.Thread(target=worker.stop, daemon=True)
                stopping.start()
                stopping.join(20)
                stopped.append(not stopping.is_alive())

    stopped: list[bool] = []
    stops = Stops()
    with connect(own_server.url) as bus:
        own_server.kill()
        worker = Worker(bus.queue("q"), nothing)
        logging.getLogger("emq_native").addHandler(stops)
        try:
            started(worker)
            wait_until(lambda: stopped, 60)
        finally:
            logging.getLogger("emq_native").removeHandler(stops)
    assert all(stopped)


# Troubles


def test_a_worker_outlives_its_server(own_server: Server, started: Start) -> None:
    with connect(own_server.url) as bus:
        queue = bus.queue("q")
        started(Worker(queue, nothing, concurrency=2))
        queue.enqueue(b"")
        wait_until(lambda: completed(queue) == 1)
        for number in range(2, 4):
            own_server.kill()
            own_server.start()
            queue.enqueue(b"")
            wait_until(partial(has_completed, queue, number))


def test_the_log_says_when_a_trouble_is_over(
    own_server: Server, started: Start, caplog: pytest.LogCaptureFixture
) -> None:
    with connect(own_server.url) as bus, caplog.at_level("INFO", "emq_native"):
        queue = bus.queue("q")
        started(Worker(queue, nothing))
        queue.enqueue(b"")
        wait_until(lambda: completed(queue) == 1)
        assert "queue q goes on" not in caplog.messages
        own_server.kill()
        wait_until(lambda: "next try" in caplog.text)
        own_server.start()
        wait_until(lambda: "queue q goes on" in caplog.messages)


def test_a_verdict_waits_for_the_server_and_counts_once(own_server: Server, started: Start) -> None:
    running, go_on = threading.Event(), threading.Event()

    def handler(job: HeldJob) -> None:
        running.set()
        go_on.wait(20)

    with connect(own_server.url) as bus:
        queue = bus.queue("q")
        queue.enqueue(b"")
        started(Worker(queue, handler))
        assert running.wait(10)
        own_server.kill()
        go_on.set()
        own_server.start()
        wait_until(lambda: completed(queue) == 1)
        queue.enqueue(b"")
        wait_until(lambda: completed(queue) == 2)


def test_a_verdict_waits_for_the_module_too(native_server: OwnServer, started: Start) -> None:
    running, go_on = threading.Event(), threading.Event()

    def handler(job: HeldJob) -> None:
        running.set()
        go_on.wait(20)

    with Proxy(native_server.server.port) as proxy, connect(proxy.url) as far:
        queue = far.queue("verdict-without-module")
        queue.enqueue(b"")
        worker = started(Worker(queue, handler))
        assert running.wait(10)
        for verb in ("EMQ.NEXT", "EMQ.COMPLETE"):
            proxy.on(verb, answer(f"-ERR unknown command '{verb}', with args beginning with: 'emq:{{q}}' "))
        go_on.set()
        wait_until(lambda: completed(queue) == 1)
        worker.stop()
        assert worker.join(10)


def test_a_burst_does_not_wait_for_a_node_that_is_not_there(own_server: Server) -> None:
    with connect(own_server.url) as bus:
        own_server.kill()
        with pytest.raises(Unavailable):
            work_off(bus.queue("q"), nothing, concurrency=3)


def test_a_burst_that_has_begun_waits_for_its_node(own_server: Server) -> None:
    def handler(job: HeldJob) -> None:
        own_server.kill()
        own_server.start()

    with connect(own_server.url) as bus:
        queue = bus.queue("q")
        queue.enqueue(b"")
        assert work_off(queue, handler).stats.completed == 1


def test_a_burst_that_a_pause_ends_says_so_once(queue: Queue, caplog: pytest.LogCaptureFixture) -> None:
    left = queue.enqueue_many([b""] * 5)
    with caplog.at_level("WARNING", "emq_native"):
        work_off(queue, lambda job: queue.pause(), batch=1)
        assert [line for line in caplog.messages if "paused" in line] == [
            f"queue {queue.name} is paused: nothing is taken before `emq-native queues resume {queue.name}`"
        ]
        caplog.clear()
        queue.resume()
        work_off(queue, nothing)
        assert caplog.messages == []
    assert {queue.state(job) for job in left} == {"absent"}


def test_a_worker_of_a_paused_queue_says_so_when_it_starts(
    queue: Queue, started: Start, caplog: pytest.LogCaptureFixture
) -> None:
    queue.pause()
    with caplog.at_level("WARNING", "emq_native"):
        started(Worker(queue, nothing))
        wait_until(lambda: f"queue {queue.name} is paused" in caplog.text)


def test_a_user_who_may_not_ask_whether_a_queue_is_paused_works_on_it(own_server: Server) -> None:
    with own_server.client() as control:
        control.execute_command("ACL", "SETUSER", "u", "on", "nopass", "~*", "&*", "+@all", "-hmget")
    with connect(own_server.url, username="u", password="x") as bus:
        work_off(bus.queue("q"), nothing)


def test_a_lost_answer_is_no_second_completion(own_server: Server, executor: Executor, started: Start) -> None:
    verb = "EMQ.NEXT" if executor.name == "native" else "EVALSHA"
    release = threading.Event()

    def handler(job: HeldJob) -> None:
        release.wait(20)

    with Proxy(own_server.port) as proxy, connect(proxy.url) as far, connect(own_server.url) as near:
        queue = near.queue("q")
        queue.enqueue(b"")
        worker = started(Worker(far.queue("q"), handler, lease=0.5, block=0.5))
        wait_until(lambda: queue.counts().active == 1)
        proxy.on(verb, lose_reply)
        release.set()
        wait_until(lambda: completed(queue) == 1)
        queue.enqueue(b"")
        wait_until(lambda: completed(queue) == 2)
        worker.stop()
        assert worker.join(10)

        assert worker.stats.completed + worker.stats.unsure == 2
        assert worker.stats.lost == 0


def test_a_server_that_becomes_a_replica_is_waited_for(own_server: Server, started: Start) -> None:
    with connect(own_server.url) as bus, own_server.client() as control:
        queue = bus.queue("q")
        worker = started(Worker(queue, nothing))
        queue.enqueue(b"")
        wait_until(lambda: completed(queue) == 1)
        control.execute_command("REPLICAOF", "127.0.0.1", "1")
        wait_until(lambda: worker._troubles > 0)
        control.execute_command("REPLICAOF", "NO", "ONE")
        queue.enqueue(b"")
        wait_until(lambda: completed(queue) == 2)


def test_a_node_that_another_executor_takes_over_ends_the_worker(own_server: Server, started: Start) -> None:
    from emq_native import WireMismatch

    with connect(own_server.url) as bus, own_server.client() as control:
        queue = bus.queue("q")
        worker = started(Worker(queue, nothing))
        queue.enqueue(b"")
        wait_until(lambda: completed(queue) == 1)
        control.set("{emq}:version", "echomq:9.0.0")
        control.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        with pytest.raises(WireMismatch):
            worker.join(20)


def test_a_fence_that_is_gone_for_a_while_is_waited_for(own_server: Server, executor: Executor, started: Start) -> None:
    with connect(own_server.url) as bus, own_server.client() as control:
        queue = bus.queue("q")
        worker = started(Worker(queue, nothing, block=0.1))
        queue.enqueue(b"")
        wait_until(lambda: completed(queue) == 1)
        control.delete("{emq}:version")
        if executor.name == "native":
            wait_until(lambda: worker._troubles > 0)
        control.set("{emq}:version", executor.identity)
        queue.enqueue(b"")
        wait_until(lambda: completed(queue) == 2)


def test_a_node_that_cannot_renew_a_lease_has_not_taken_it_back(
    fenced_server: Server, started: Start, caplog: pytest.LogCaptureFixture
) -> None:
    go_on = threading.Event()
    with connect(fenced_server.url) as bus, fenced_server.client() as control:
        queue = bus.queue("q")
        worker = started(Worker(queue, lambda job: go_on.wait(20), lease=3))
        queue.enqueue(b"")
        wait_until(lambda: queue.counts().active == 1)

        control.delete("{emq}:version")
        wait_until(lambda: "leases are not renewed" in caplog.text)
        control.set("{emq}:version", "echomq:6.0.0")
        go_on.set()

        wait_until(lambda: completed(queue) == 1)
        assert worker.stats.lost == 0


def test_one_refused_settling_does_not_stop_the_others(bus: Bus, queue: Queue, started: Start) -> None:
    go_on = threading.Event()
    jobs = [queue.enqueue(b"") for _ in range(3)]
    worker = started(Worker(queue, lambda job: go_on.wait(20), concurrency=3))
    wait_until(lambda: queue.counts().active == 3)
    row = f"emq:{{{queue.name}}}:job:{jobs[1]}"
    bus.client.hset(row, "attempts", "x")
    go_on.set()

    wait_until(lambda: completed(queue) == 2 and worker.stats.refused == 1)

    assert queue.remove(str(jobs[1]), force=True)


def test_a_poisoned_row_does_not_stop_the_other_source(bus: Bus, queue: Queue, started: Start) -> None:
    poison = queue.enqueue(b"")
    bus.client.hset(f"emq:{{{queue.name}}}:job:{poison}", "attempts", "x")
    started(Worker(queue, nothing))
    queue.enqueue(b"", group="g")

    wait_until(lambda: completed(queue) == 1)

    queue.remove(str(poison))


def test_a_user_who_may_not_unblock_ends_with_the_wait(own_server: Server, executor: Executor, started: Start) -> None:
    with own_server.client() as control:
        control.execute_command(
            "ACL",
            "SETUSER",
            "u",
            "on",
            "nopass",
            "~emq:{q}*",
            "~{emq}:version",
            "+@all",
            "-client|unblock",
            "-client|id",
        )
    with connect(own_server.url, username="u", password="x") as bus:
        queue = bus.queue("q")
        worker = started(Worker(queue, nothing, block=0.5))
        queue.enqueue(b"")
        wait_until(lambda: completed(queue) == 1)
        worker.stop()
        assert worker.join(10)


def test_a_user_who_may_not_fire_repeats_ends_the_worker_that_shall(own_server: Server, started: Start) -> None:
    with own_server.client() as control:
        control.execute_command("ACL", "SETUSER", "u", "on", "nopass", "~*", "+@all", "-hmget")
        with connect(own_server.url) as bus:
            bus.queue("q").repeat("n", 60, b"", first=datetime.now(timezone.utc))
    with connect(own_server.url, username="u", password="x") as bus:
        worker = started(Worker(bus.queue("q"), nothing, repeats=True))
        with pytest.raises(PermissionDenied):
            worker.join(10)
