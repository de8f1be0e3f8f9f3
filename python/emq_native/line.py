"""One connection that passed the fence, and the pool in which such connections wait.

A `Line` is fenced in the handshake, after SELECT and before anything else, on each connect. One that broke in any way
is closed and never used again, so a connect is always a new line. Lines at rest are looked at before they are used: a
closed or dirty one is replaced. They are never shared with a forked child, which begins with an empty pool.
"""

from __future__ import annotations

import os
import random
import select
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TypeVar

from emq_native import dispatch, fence
from emq_native.dispatch import Answer, Steps, Words, answer_of
from emq_native.errors import EmqError, Unavailable, translate, translated
from emq_native.executors import NATIVE, SCRIPTED, Executor
from emq_native.wiring import ASKING, Call, Once, Wires, Wiring, backoff, frame_of, says_cluster

R = TypeVar("R")


class Line:
    """One connection that passed the fence.

    broken: it must not be used again; spent: the server answered that it cannot serve, so it goes after this use.
    """

    __slots__ = (
        "__weakref__",
        "_executor",
        "_news",
        "_passed",
        "_retry",
        "_wires",
        "_wiring",
        "broken",
        "connection",
        "place",
        "spent",
        "used",
    )

    def __init__(self, wiring: Wiring, wires: Wires) -> None:
        self._wiring = wiring
        self._wires = wires
        self._executor: Executor | None = None
        self._passed: dict[bytes | None, Executor] = {}
        self._news = select.poll()
        self.broken = self.spent = False
        self.used = 0.0
        self.place: _Place | None = None
        # The connection does not hold its line: one that an interrupted call has lost is gone, and its place free.
        greet = weakref.WeakMethod(self._greet)
        self.connection = wiring.connection(lambda connection: greet()(connection))  # type: ignore[misc]
        self._retry, self.connection.retry = self.connection.retry, Once()

    def open(self) -> None:
        """Connect and pass the fence. Raises WireRefused, Unavailable, PermissionDenied, Redirected."""
        try:
            with translated():
                self._retry.call_with_retry(self.connection.connect, lambda _: self.connection.disconnect())
            self._news.register(self.connection._sock, select.POLLIN)
        except BaseException:
            self.close()
            raise

    def _greet(self, connection: Any) -> None:
        self.broken = self.spent = False
        self._executor = None
        self._passed.clear()
        try:
            (self._wiring.greeting or type(connection).on_connect)(connection)
            if not (self._wiring.cluster or self._in_cluster_mode(connection)):
                self._executor = self._pass_fence(None)
        except BaseException as error:
            connection.disconnect()
            # Whether to try again is up to the client's retry settings, which know only the library's exceptions.
            if isinstance(error, EmqError) and error.__cause__ is not None:
                raise error.__cause__ from None
            raise

    def _in_cluster_mode(self, connection: Any) -> bool:
        greeting = getattr(connection, "handshake_metadata", None)
        if not greeting:
            # RESP2 begins without HELLO. A user who may not say it is taken for one of a node that stands alone.
            (greeting,) = self.ask([(b"HELLO",)])
            if self.broken:
                raise greeting
        return says_cluster(greeting)

    def _pass_fence(self, owner: bytes | None, asking: bool = False) -> Executor:
        wire = self.drive(fence.verify(self._wires.wanted(owner), fence.fence_key(owner)), asking)
        return self._wires.found(owner, wire)

    def executor(self, owner: bytes | None, asking: bool = False) -> Executor:
        """Who carries out the calls of a queue here. In cluster mode its fence is asked for before its first call."""
        if self._executor is not None:
            return self._executor
        if owner is None:
            return self._wires.executor
        executor = self._passed.get(owner)
        if executor is None:
            executor = self._passed[owner] = self._pass_fence(owner, asking)
        return executor

    def ask(self, commands: Sequence[Words]) -> list[Answer]:
        """One round trip. A lost connection is the answer of every command that got none."""
        if self.broken:
            # Sending would connect anew, behind the back of whoever relies on what this line passed.
            return [Unavailable("the connection was closed", network=True)] * len(commands)
        connection = self.connection
        answers: list[Answer] = []
        try:
            connection.send_packed_command((dispatch.packed(commands),), check_health=False)
            for _ in commands:
                try:
                    answers.append(connection.read_response(disable_decoding=True, disconnect_on_error=True))
                except self._wiring.refusal as error:
                    answer = answer_of(error)
                    self.spent = self.spent or isinstance(answer, Unavailable)
                    answers.append(answer)
        except BaseException as error:
            self.broken = True
            connection.disconnect()
            if translate(error) is None:
                raise
            answers.append(answer_of(error))
            answers += [answer_of(error, lost=True) for _ in commands[len(answers) :]]
        return answers

    def drive(self, steps: Steps[R], asking: bool = False) -> R:
        """Carry the round trips of a generator of `dispatch` or `fence`. asking: each command is preceded by ASKING."""
        try:
            commands = next(steps)
            while True:
                commands = steps.send(self.exchange(commands, asking))
        except StopIteration as end:
            result: R = end.value
            return result

    def exchange(self, commands: Sequence[Words], asking: bool = False) -> list[Answer]:
        """As `ask`; asking: each command is preceded by ASKING."""
        if not asking:
            return self.ask(commands)
        return self.ask([each for command in commands for each in (ASKING, command)])[1::2]

    def call(self, call: Call, asking: bool = False) -> Answer:
        """The reply to one call; a script that was unknown is loaded. Raises EmqError."""
        executor = self._executor or self.executor(call.owner, asking)
        if executor is SCRIPTED and SCRIPTED.answers(call.verb):
            return SCRIPTED.local(call.verb, call.words)
        frame = frame_of(executor, call)
        (answer,) = self.exchange((frame.argv,), asking)
        if isinstance(answer, EmqError):
            if dispatch.lacks_scripts((answer,)):
                (answer,) = self.drive(dispatch.repair((frame,), [answer]), asking)
            if isinstance(answer, EmqError):
                raise answer
        return answer

    def pipeline(self, calls: Sequence[Call]) -> list[Answer]:
        """The answers to calls sent in one round trip; scripts that were unknown are loaded."""
        frames = [frame_of(self.executor(call.owner), call) for call in calls]
        answers = self.ask([frame.argv for frame in frames])
        if self._executor is not NATIVE and dispatch.lacks_scripts(answers):
            answers = self.drive(dispatch.repair(frames, answers))
        return answers

    def transaction(self, calls: Sequence[Call]) -> list[Answer]:
        """The answers to calls of one queue, sent in MULTI/EXEC. Raises what kept all of them from running."""
        frames = [frame_of(self.executor(call.owner), call, inline=True) for call in calls]
        return self.drive(dispatch.transaction(frames))

    def usable(self) -> bool:
        """Whether the socket is open, clean, and not left alone for too long."""
        idle = self._wiring.idle_seconds
        if self.broken or (idle and time.monotonic() - self.used > idle):
            return False
        return not self._news.poll(0)

    def close(self) -> None:
        """Close the socket, and leave the pool."""
        self.broken = True
        with suppress(Exception):
            self.connection.disconnect()
        if self.place is not None:
            self.place.leave()


class _Idle:
    """The lines of one process: those at rest, and how many there are in all."""

    __slots__ = ("count", "freed", "lines", "pid", "waiting")

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.lines: deque[Line] = deque()
        self.count = 0
        self.waiting = 0
        self.freed = threading.Condition()


class _Place:
    """One of the places for lines in a process: taken when it is made, until it is left, or lost by a call that was
    interrupted, at any point, by a signal or by the end of its time.
    """

    __slots__ = ("idle",)

    def __init__(self, idle: _Idle) -> None:
        self.idle: _Idle | None = idle
        idle.count += 1

    def leave(self) -> None:
        """Let another line have it. A second time is none."""
        idle = self.idle
        if idle is None or idle.pid != os.getpid():
            return
        with idle.freed:
            if self.idle is not None:
                self.idle = None
                idle.count -= 1
                idle.freed.notify()

    def __del__(self) -> None:
        if not sys.is_finalizing():
            self.leave()


class Pool:
    """The lines to one node, the last used first. When all of them are in use, `take` waits for one."""

    def __init__(self, wiring: Wiring, wires: Wires, attempts: int) -> None:
        self._wiring = wiring
        self._wires = wires
        self._attempts = attempts
        self._idle = _Idle()
        self._closed = False

    def take(self) -> Line:
        """A line that is connected and fenced. Give it back. Raises as Line.open."""
        idle = self._idle
        if idle.pid != os.getpid():
            # A forked child: the sockets are the parent's, so they are dropped here without a word on the wire.
            idle = self._idle = _Idle()
        while True:
            try:
                line = idle.lines.pop()
            except IndexError:
                line = None  # opened below, so that an error of the opening does not mention this one
            if line is None:
                place = self._reserve(idle)
                if place is None:
                    continue
                try:
                    return self._open(place)
                except BaseException:
                    place.leave()
                    raise
            if line.usable():
                return line
            line.close()

    def give(self, line: Line) -> None:
        """Put a line back, or close it when it is broken or spent."""
        idle = self._idle
        if line.place is None or line.place.idle is not idle or line.broken or line.spent:
            line.close()
            return
        line.used = time.monotonic()
        idle.lines.append(line)
        if self._closed:  # perhaps only now, so that nobody else would close it
            self._drain(idle)
        if idle.waiting:
            with idle.freed:
                idle.freed.notify()

    def close(self) -> None:
        """Close every line: those at rest now, those in use when they are given back."""
        self._closed = True
        if self._idle.pid == os.getpid():
            self._drain(self._idle)

    def _drain(self, idle: _Idle) -> None:
        with suppress(IndexError):
            while True:
                idle.lines.pop().close()

    def _reserve(self, idle: _Idle) -> _Place | None:
        """A place for one more line; None when instead one may have come to rest."""
        with idle.freed:
            if idle.count < self._wiring.limit:
                return _Place(idle)
            idle.waiting += 1
            try:
                if not idle.lines:
                    idle.freed.wait()
            finally:
                idle.waiting -= 1
        return None

    def _open(self, place: _Place) -> Line:
        for attempt in range(self._attempts):
            line = Line(self._wiring, self._wires)
            try:
                line.open()
            except Unavailable:
                if attempt + 1 == self._attempts:
                    raise
                time.sleep(backoff(attempt, random.random()))
            else:
                line.place = place
                return line
        raise AssertionError("at least one attempt")
