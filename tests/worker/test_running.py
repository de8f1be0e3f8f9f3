"""Workers in the foreground: what ends them, and signals that come at any moment."""

from __future__ import annotations

import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from types import FrameType
from typing import Any

import pytest
from click.testing import CliRunner
from tests.worker.conftest import wait_until

from emq_native import HeldJob, PermissionDenied, Pump, Queue, Worker, connect
from emq_native.cli import main
from emq_native.cli.metrics import _until_told_to_end
from emq_native.running import bell, run
from emq_native.server import Server

Start = Callable[[Worker], Worker]


def nothing(job: HeldJob) -> None:
    pass


@contextmanager
def profiled(hook: Callable[[FrameType, str, object], None]) -> Iterator[None]:
    """This thread tells the hook of its calls and returns."""
    sys.setprofile(hook)
    try:
        yield
    finally:
        sys.setprofile(None)


def test_an_error_of_one_worker_lets_the_others_finish_and_is_raised(own_server: Server) -> None:
    begun, go_on = threading.Event(), threading.Event()
    raised: list[BaseException] = []

    def handler(job: HeldJob) -> None:
        begun.set()
        go_on.wait(20)

    def together() -> None:
        try:
            run(failing, idle, busy)
        except PermissionDenied as error:
            raised.append(error)

    with own_server.client() as control:
        control.execute_command("ACL", "SETUSER", "u", "on", "nopass", "~*", "+@all")
        with connect(own_server.url) as bus, connect(own_server.url, username="u", password="x") as limited:
            bus.queue("busy").enqueue(b"")
            failing = Worker(limited.queue("failing"), nothing, repeats=True)
            idle = Worker(bus.queue("idle"), nothing)
            busy = Worker(bus.queue("busy"), handler)
            running = threading.Thread(target=together, daemon=True)
            running.start()
            assert begun.wait(20)
            control.execute_command("ACL", "SETUSER", "u", "-time")
            wait_until(idle._ended.is_set)
            go_on.set()
            running.join(20)
            assert len(raised) == 1
            assert bus.queue("busy").counts().completed == 1


def test_workers_of_which_one_cannot_start_all_end(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start

    def refused(thread: threading.Thread) -> None:
        if thread.name == "emq-second-keeper":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refused)
    workers = [Worker(queue, nothing), Worker(queue.bus.queue("second"), nothing), Worker(queue, nothing)]
    with pytest.raises(RuntimeError, match="new thread"):
        run(*workers)
    assert workers[0].join(20)


BLOCKING = ("acquire", "get", "read", "select")


@dataclass
class Moment:
    """A hook for `profiled` that sends SIGTERM once: so many calls and returns after it begins, or, if it comes to that
    before, at the call that blocks.
    """

    left: int
    begins: Callable[[FrameType, str], bool]
    begun: bool = False
    sent: bool = False

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        self.begun = self.begun or self.begins(frame, event)
        if not self.begun or self.sent:
            return
        self.left -= 1
        if self.left < 0 or (event == "c_call" and argument.__name__ in BLOCKING):
            self.sent = True
            signal.raise_signal(signal.SIGTERM)


def moments(begins: Callable[[FrameType, str], bool]) -> Iterator[Moment]:
    """Every moment until something blocks."""
    for number in count():
        moment = Moment(number, begins)
        yield moment
        assert moment.sent
        if moment.left >= 0:
            return


def test_no_signal_is_lost_while_the_bell_is_hung() -> None:
    taken: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda *_: taken.append(1))
    try:
        for moment in moments(lambda frame, event: frame.f_code.co_name == "bell"):
            taken.clear()
            with profiled(moment), bell() as (reader, rung):
                heard = bool(select.select([reader], [], [], 0)[0]) and rung()
            assert taken or heard
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.timeout(60)
def test_a_signal_may_stop_a_pump_at_any_moment_of_its_pause(queue: Queue) -> None:
    before = signal.signal(signal.SIGTERM, lambda *_: pump.stop())
    try:
        for moment in moments(lambda frame, event: frame.f_code is Pump.step.__code__ and event == "return"):
            pump = Pump(queue, beat=3600)
            with profiled(moment):
                pump.run()
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.timeout(60)
def test_a_signal_may_end_the_exporter_at_any_moment_of_its_wait() -> None:
    def begins(frame: FrameType, event: str) -> bool:
        return signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL

    for moment in moments(begins):
        with profiled(moment):
            _until_told_to_end()


@pytest.mark.timeout(60)
def test_a_signal_may_end_a_server_at_any_moment_of_its_wait() -> None:
    def begins(frame: FrameType, event: str) -> bool:
        return event == "return" and frame.f_code.co_name == "running" and frame.f_back.f_code.co_name == "serve"

    for moment in moments(begins):
        with profiled(moment):
            assert CliRunner().invoke(main, ["serve"]).exit_code == 0


@pytest.mark.timeout(60)
def test_a_stop_may_be_called_by_a_signal_in_the_middle_of_a_stop(queue: Queue, started: Start) -> None:
    def hook(frame: FrameType, event: str, argument: object) -> None:
        if frame.f_code is Worker._stop.__code__ and event == "call":
            sys.setprofile(None)
            signal.raise_signal(signal.SIGTERM)

    worker = started(Worker(queue, nothing))
    before = signal.signal(signal.SIGTERM, lambda *_: worker.stop())
    try:
        with profiled(hook):
            worker.stop()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert worker.join(20)
