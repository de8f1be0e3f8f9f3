"""The pump and the schedules: what is due is promoted, reaped and fired, on the grid of the schedule."""

from __future__ import annotations

import json
import threading
from datetime import datetime, timedelta, timezone
from functools import partial
from zoneinfo import ZoneInfo

import pytest
from tests.worker.conftest import wait_until

from emq_native import Bus, InvalidArgument, Pump, Queue, connect
from emq_native.schedules import Cron, Every, from_spec
from emq_native.server import Server

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def ms(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(milliseconds=1)


def next_run(queue: Queue, name: str) -> int:
    score = queue.bus.client.zscore(f"emq:{{{queue.name}}}:repeat", name)
    assert score is not None
    return int(score)


def test_due_jobs_are_promoted_and_expired_ones_reaped(queue: Queue) -> None:
    queue.enqueue(b"")
    assert queue.claim(0.001) is not None
    queue.enqueue_in(b"", 0)
    pump = Pump(queue)
    wait_until(lambda: queue.counts().active == 0 or pump.step().reaped == 1)
    assert queue.counts().pending == 2
    pump.stop()


def test_a_step_does_only_what_it_was_told(queue: Queue) -> None:
    queue.enqueue_in(b"", 0)
    pump = Pump(queue, promote=False, reap=False)
    assert pump.step().promoted == 0
    assert queue.counts().scheduled == 1
    pump.stop()


def test_a_repeat_fires_on_its_grid_and_makes_up_once_for_what_was_missed(queue: Queue) -> None:
    first = EPOCH + timedelta(milliseconds=ms(datetime.now(timezone.utc)) - 10_500)
    queue.repeat("tick", 3, b"x", first=first)
    pump = Pump(queue, promote=False, reap=False)

    fired = pump.step().fired

    assert len(fired) == 1
    assert queue.counts().pending == 1
    assert next_run(queue, "tick") == ms(first) + 12_000
    assert pump.step().fired == ()
    pump.stop()


def test_of_many_pumps_one_fires(bus: Bus, queue: Queue) -> None:
    queue.repeat("tick", 3600, b"x", first=EPOCH)
    pumps = [Pump(queue, promote=False, reap=False) for _ in range(4)]
    fired: list[str] = []
    threads = [threading.Thread(target=lambda pump=pump: fired.extend(pump.step().fired)) for pump in pumps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for pump in pumps:
        pump.stop()

    assert len(fired) == 1
    assert queue.counts().pending == 1


def test_the_pause_ends_when_the_next_repeat_is_due(queue: Queue) -> None:
    queue.repeat("tick", 0.2, b"x")
    pump = Pump(queue, promote=False, reap=False, beat=5)
    assert 0 < pump.step().pause <= 0.2
    queue.unrepeat("tick")
    assert pump.step().pause == 5
    pump.stop()


def test_a_message_that_carries_a_calendar_is_fired_by_it(queue: Queue) -> None:
    message = {"task": "night", "repeat": {"cron": "30 3 * * *", "zone": "Europe/Berlin"}}
    queue.repeat("night", 60, json.dumps(message).encode(), first=EPOCH)
    pump = Pump(queue)

    assert len(pump.step().fired) == 1

    run = (EPOCH + timedelta(milliseconds=next_run(queue, "night"))).astimezone(ZoneInfo("Europe/Berlin"))
    assert (run.hour, run.minute) == (3, 30)
    assert run > datetime.now(timezone.utc)
    pump.stop()


@pytest.mark.parametrize(
    ("name", "row"),
    [
        (b"a b", {"every_ms": "1000", "template": "x"}),
        (b"\xff", {"every_ms": "1000", "template": "x"}),
        (b"a", {"every_ms": "9" * 400, "template": "x"}),
        (b"a", {"every_ms": "9" * 5000, "template": "x"}),
        (b"a", {"every_ms": "0"}),
        (b"a", "no hash"),
        (b"a", None),
    ],
)
@pytest.mark.parametrize("score", [0, float("-inf"), float("inf")])
def test_a_repeat_that_others_wrote_badly_keeps_no_other_from_firing(
    queue: Queue, name: bytes, row: object, score: float
) -> None:
    repeats = queue.key + b":repeat"
    client = queue.bus.client
    client.zadd(repeats, {name: score})
    if isinstance(row, dict):
        client.hset(repeats + b":" + name, mapping=row)
    elif row:
        client.set(repeats + b":" + name, row)
    queue.repeat("good", 100, b"good", first=EPOCH)

    pump = Pump(queue)
    pumped = pump.step()
    pump.stop()

    assert any(job.payload == b"good" for job in queue.claim_many(60, 10))
    assert 0 < pumped.pause <= 1


def test_a_period_beyond_the_calendar_fires_once_and_never_again(queue: Queue) -> None:
    queue.repeat("once", timedelta(days=4_000_000), b"x", first=EPOCH)
    pump = Pump(queue)

    assert len(pump.step().fired) == 1
    assert pump.step().fired == ()
    assert next_run(queue, "once") == ms(datetime.max.replace(tzinfo=timezone.utc))
    pump.stop()


def test_a_pump_in_a_thread_goes_on_until_it_is_stopped(queue: Queue) -> None:
    pump = Pump(queue, beat=0.05)
    pump.start()
    for number in range(1, 4):
        queue.enqueue_in(b"", 0)
        wait_until(partial(has_pending, queue, number))
    pump.stop()
    assert pump._thread is not None
    assert not pump._thread.is_alive()


def test_a_stop_ends_the_pause_of_a_pump(queue: Queue) -> None:
    queue.enqueue_in(b"", 0)
    pump = Pump(queue, beat=3600)
    pump.start()
    wait_until(lambda: queue.counts().pending == 1)
    stopping = threading.Thread(target=pump.stop, daemon=True)
    stopping.start()
    stopping.join(60)
    assert not stopping.is_alive()


def test_a_pump_may_be_stopped_by_whom_it_tells_that_it_failed(own_server: Server) -> None:
    stopped = threading.Event()

    def failed(error: BaseException) -> None:
        pump.stop()
        stopped.set()

    with own_server.client() as control:
        control.execute_command("ACL", "SETUSER", "u", "on", "nopass", "~*", "+@all", "-time")
    with connect(own_server.url, username="u", password="x") as bus:
        pump = Pump(bus.queue("q"), promote=False, reap=False)
        pump.start(failed)
        assert stopped.wait(20)


def has_pending(queue: Queue, number: int) -> bool:
    return queue.counts().pending == number


# Schedules


@pytest.mark.parametrize(
    ("due", "now", "following"), [(100, 100, 110), (100, 99, 110), (100, 109, 110), (100, 110, 120), (100, 1234, 1240)]
)
def test_a_period_stays_on_its_grid(due: int, now: int, following: int) -> None:
    assert Every(10).after(due, now) == following


def test_a_calendar_follows_the_clock_of_its_zone() -> None:
    daily = Cron("0 12 * * *", "Europe/Berlin")
    winter = ms(datetime(2025, 3, 29, 11, 0, tzinfo=timezone.utc))
    summer = ms(datetime(2025, 3, 30, 10, 0, tzinfo=timezone.utc))
    assert daily.after(winter, winter) == summer


def test_an_hour_that_is_skipped_or_comes_twice_has_one_run() -> None:
    daily = Cron("30 2 * * *", "Europe/Berlin")
    before = ms(datetime(2025, 3, 29, 20, 0, tzinfo=timezone.utc))
    assert daily.after(before, before) == ms(datetime(2025, 3, 30, 1, 0, tzinfo=timezone.utc))
    autumn = ms(datetime(2025, 10, 25, 20, 0, tzinfo=timezone.utc))
    first = daily.after(autumn, autumn)
    assert daily.after(first, first) - first > 23 * 3_600_000


def test_a_calendar_that_nobody_can_read_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="no cron expression"):
        Cron("every day")
    with pytest.raises(InvalidArgument, match="no time zone"):
        Cron("* * * * *", "Europe/Atlantis")
    assert from_spec({"cron": "nonsense"}, 500) == Every(500)
    assert from_spec(None, 500) == Every(500)
