"""One asyncio connection that passed the fence, and the pool in which such connections wait.

The twin of `emq_native.line`. A call that is cancelled closes its line: the answer that was on its way can never reach
another caller. A pool may be used from one event loop after another, and after a fork; each begins with an empty one.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import random
import select
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

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

    __slots__ = ("_executor", "_passed", "_retry", "_wires", "_wiring", "broken", "connection", "home", "spent", "used")

    def __init__(self, wiring: Wiring, wires: Wires) -> None:
        self._wiring = wiring
        self._wires = wires
        self._executor: Executor | None = None
        self._passed: dict[bytes | None, Executor] = {}
        self.broken = self.spent = False
        self.used = 0.0
        self.home: _Idle | None = None
        self.connection = wiring.connection(self._greet)
        self._retry, self.connection.retry = self.connection.retry, Once()

    async def open(self) -> None:
        """Connect and pass the fence. Raises WireRefused, Unavailable, PermissionDenied, Redirected."""
        try:
            with translated():
                await self._retry.call_with_retry(
                    self.connection.connect, lambda _: self.connection.disconnect(nowait=True)
                )
        except BaseException:
            await self.close()
            raise

    async def _greet(self, connection: Any) -> None:
        self.broken = self.spent = False
        self._executor = None
        self._passed.clear()
        try:
            greeted = (self._wiring.greeting or type(connection).on_connect)(connection)
            if inspect.isawaitable(greeted):
                await greeted
            if not (self._wiring.cluster or await self._in_cluster_mode(connection)):
                self._executor = await self._pass_fence(None)
        except BaseException as error:
            await connection.disconnect(nowait=True)
            # Whether to try again is up to the client's retry settings, which know only the library's exceptions.
            if isinstance(error, EmqError) and error.__cause__ is not None:
                raise error.__cause__ from None
            raise

    async def _in_cluster_mode(self, connection: Any) -> bool:
        greeting = getattr(connection, "handshake_metadata", None)
        if not greeting:
            # RESP2 begins without HELLO. A user who may not say it is taken for one of a node that stands alone.
            (greeting,) = await self.ask([(b"HELLO",)])
            if self.broken:
                raise greeting
        return says_cluster(greeting)

    async def _pass_fence(self, owner: bytes | None, asking: bool = False) -> Executor:
        wire = await self.drive(fence.verify(self._wires.wanted(owner), fence.fence_key(owner)), asking)
        return self._wires.found(owner, wire)

    async def executor(self, owner: bytes | None, asking: bool = False) -> Executor:
        """Who carries out the calls of a queue here. In cluster mode its fence is asked for before its first call."""
        if self._executor is not None:
            return self._executor
        if owner is None:
            return self._wires.executor
        executor = self._passed.get(owner)
        if executor is None:
            executor = self._passed[owner] = await self._pass_fence(owner, asking)
        return executor

    async def ask(self, commands: Sequence[Words]) -> list[Answer]:
        """One round trip. A lost connection is the answer of every command that got none."""
        if self.broken:
            # Sending would connect anew, behind the back of whoever relies on what this line passed.
            return [Unavailable("the connection was closed", network=True)] * len(commands)
        connection = self.connection
        answers: list[Answer] = []
        try:
            await _send(connection, dispatch.packed(commands))
            for _ in commands:
                try:
                    answers.append(await connection.read_response(disable_decoding=True, disconnect_on_error=True))
                except self._wiring.refusal as error:
                    answer = answer_of(error)
                    self.spent = self.spent or isinstance(answer, Unavailable)
                    answers.append(answer)
        except BaseException as error:
            self.broken = True
            await connection.disconnect(nowait=True)
            if translate(error) is None:
                raise
            answers.append(answer_of(error))
            answers += [answer_of(error, lost=True) for _ in commands[len(answers) :]]
        return answers

    async def drive(self, steps: Steps[R], asking: bool = False) -> R:
        """Carry the round trips of a generator of `dispatch` or `fence`. asking: each command is preceded by ASKING."""
        try:
            commands = next(steps)
            while True:
                commands = steps.send(await self.exchange(commands, asking))
        except StopIteration as end:
            result: R = end.value
            return result

    async def exchange(self, commands: Sequence[Words], asking: bool = False) -> list[Answer]:
        """As `ask`; asking: each command is preceded by ASKING."""
        if not asking:
            return await self.ask(commands)
        answers = await self.ask([each for command in commands for each in (ASKING, command)])
        return answers[1::2]

    async def call(self, call: Call, asking: bool = False) -> Answer:
        """The reply to one call; a script that was unknown is loaded. Raises EmqError."""
        executor = self._executor or await self.executor(call.owner, asking)
        if executor is SCRIPTED and SCRIPTED.answers(call.verb):
            return SCRIPTED.local(call.verb, call.words)
        frame = frame_of(executor, call)
        (answer,) = await self.exchange((frame.argv,), asking)
        if isinstance(answer, EmqError):
            if dispatch.lacks_scripts((answer,)):
                (answer,) = await self.drive(dispatch.repair((frame,), [answer]), asking)
            if isinstance(answer, EmqError):
                raise answer
        return answer

    async def pipeline(self, calls: Sequence[Call]) -> list[Answer]:
        """The answers to calls sent in one round trip; scripts that were unknown are loaded."""
        frames = [frame_of(await self.executor(call.owner), call) for call in calls]
        answers = await self.ask([frame.argv for frame in frames])
        if self._executor is not NATIVE and dispatch.lacks_scripts(answers):
            answers = await self.drive(dispatch.repair(frames, answers))
        return answers

    async def transaction(self, calls: Sequence[Call]) -> list[Answer]:
        """The answers to calls of one queue, sent in MULTI/EXEC. Raises what kept all of them from running."""
        frames = [frame_of(await self.executor(call.owner), call, inline=True) for call in calls]
        return await self.drive(dispatch.transaction(frames))

    async def usable(self) -> bool:
        """Whether the socket is open, clean, and not left alone for too long."""
        idle = self._wiring.idle_seconds
        if self.broken or (idle and time.monotonic() - self.used > idle):
            return False
        try:
            if _has_news(self.connection):
                return False
            look = getattr(self.connection, "can_read", None) or self.connection.can_read_destructive
            return not await look()
        except Exception:
            return False
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Close the socket."""
        self.broken = True
        with suppress(Exception):
            await self.connection.disconnect(nowait=True)


async def _send(connection: Any, packed: bytes) -> None:
    """Write without waiting where the socket takes it at once, as it nearly always does.

    The library waits by asyncio.wait_for, which up to Python 3.11 makes a task of each command and may swallow a
    cancellation; it is left to wait for a socket that is full.
    """
    writer = connection._writer
    if writer is not None:
        writer.write(packed)
        if not writer.transport.get_write_buffer_size():
            return
        packed = b""
    await connection.send_packed_command(packed, check_health=False)


def _has_news(connection: Any) -> bool:
    """Whether the socket can be read or is closed, also when the event loop had no turn yet to notice."""
    poll = select.poll()
    poll.register(connection._writer.get_extra_info("socket"), select.POLLIN)
    return bool(poll.poll(0))


class _Idle:
    """The lines of one event loop of one process: those at rest, and how many more may be in use."""

    __slots__ = ("lines", "loop", "pid", "slots")

    def __init__(self, limit: int) -> None:
        self.pid = os.getpid()
        self.loop = asyncio.get_running_loop()
        self.lines: list[Line] = []
        self.slots = asyncio.Semaphore(limit)


_PARENTS: Final[list[_Idle]] = []
"""What forked children hold of their parents, never to be touched: closing a transport would reach the parent's loop.
"""


class Pool:
    """The lines to one node, the last used first. When all of them are in use, `take` waits for one."""

    def __init__(self, wiring: Wiring, wires: Wires, attempts: int) -> None:
        self._wiring = wiring
        self._wires = wires
        self._attempts = attempts
        self._idle: _Idle | None = None

    async def take(self) -> Line:
        """A line that is connected and fenced. Give it back. Raises as Line.open."""
        idle = self._here()
        await idle.slots.acquire()
        try:
            while idle.lines:
                line = idle.lines.pop()
                if await line.usable():
                    return line
                await line.close()
            return await self._open(idle)
        except BaseException:
            idle.slots.release()
            raise

    async def give(self, line: Line) -> None:
        """Put a line back, or close it when it is broken or spent."""
        idle = line.home
        try:
            if idle is None or idle is not self._idle or line.broken or line.spent:
                await line.close()
            else:
                line.used = time.monotonic()
                idle.lines.append(line)
        finally:
            if idle is not None:
                idle.slots.release()

    async def close(self) -> None:
        """Close every line: those at rest now, those in use when they are given back."""
        idle, self._idle = self._idle, None
        if idle is not None and idle.pid == os.getpid() and idle.loop is asyncio.get_running_loop():
            for line in idle.lines:
                await line.close()

    def _here(self) -> _Idle:
        idle = self._idle
        if idle is None or idle.loop is not asyncio.get_running_loop() or idle.pid != os.getpid():
            if idle is not None and idle.pid != os.getpid():
                _PARENTS.append(idle)
            idle = self._idle = _Idle(self._wiring.limit)
        return idle

    async def _open(self, idle: _Idle) -> Line:
        for attempt in range(self._attempts):
            line = Line(self._wiring, self._wires)
            try:
                await line.open()
            except Unavailable:
                if attempt + 1 == self._attempts:
                    raise
                await asyncio.sleep(backoff(attempt, random.random()))
            else:
                line.home = idle
                return line
        raise AssertionError("at least one attempt")
