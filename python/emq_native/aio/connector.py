"""The asyncio connector: the twin of `emq_native.connector`, with the same sockets, rules and retries.

A call that is cancelled closes its line: the answer that was on its way can never reach another caller, and whether
the command was carried out is unknown. A bus may be used from one event loop after another, and after a fork; each
begins with an empty pool.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import random
import select
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

from emq_native import dispatch, fence
from emq_native.aio.queue import Queue
from emq_native.dispatch import Answer, Steps, Words, answer_of
from emq_native.errors import EmqError, InvalidArgument, Redirected, Refused, Unavailable, translate, translated
from emq_native.executors import SCRIPTED, Executor
from emq_native.fence import parse_wire
from emq_native.transitions import Transition
from emq_native.wiring import (
    ASKING,
    ATTEMPTS,
    REDIRECTIONS,
    Call,
    Plan,
    Routes,
    Target,
    Wires,
    Wiring,
    backoff,
    frame_of,
    is_local,
    raw_call,
    resolve,
    says_cluster,
)

if TYPE_CHECKING:
    from typing_extensions import Self

R = TypeVar("R")


class Line:
    """One connection that passed the fence. `broken`: it must not be used again."""

    __slots__ = ("_executor", "_passed", "_wires", "_wiring", "broken", "connection", "home", "used")

    def __init__(self, wiring: Wiring, wires: Wires) -> None:
        self._wiring = wiring
        self._wires = wires
        self._executor: Executor | None = None
        self._passed: dict[bytes | None, Executor] = {}
        self.broken = False
        self.used = 0.0
        self.home: _Idle | None = None
        self.connection = wiring.connection(self._greet)

    async def open(self) -> None:
        """Connect and pass the fence. Raises WireRefused, Unavailable, PermissionDenied, Redirected."""
        try:
            with translated():
                await self.connection.connect()
        except BaseException:
            await self.close()
            raise

    async def _greet(self, connection: Any) -> None:
        self.broken = False
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
            # Whether to try again is up to the connection's retry settings, which know only the library's exceptions.
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
            many = len(commands) > 1
            packed = connection.pack_commands(commands) if many else connection.pack_command(*commands[0])
            await _send(connection, packed)
            for _ in commands:
                try:
                    answers.append(await connection.read_response(disable_decoding=True, disconnect_on_error=True))
                except self._wiring.refusal as error:
                    answers.append(answer_of(error))
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
        if executor is SCRIPTED and is_local(call.verb):
            return SCRIPTED.local(call.verb, call.words)
        frame = frame_of(executor, call)
        (answer,) = await self.exchange((frame.argv,), asking)
        if isinstance(answer, EmqError):
            if dispatch.lacks_scripts((answer,)):
                (answer,) = await self.drive(dispatch.repair((frame,), [answer]), asking)
            if isinstance(answer, EmqError):
                self.broken = self.broken or isinstance(answer, Unavailable)
                raise answer
        return answer

    async def pipeline(self, calls: Sequence[Call]) -> list[Answer]:
        """The answers to calls sent in one round trip; scripts that were unknown are loaded."""
        frames = [frame_of(await self.executor(call.owner), call) for call in calls]
        answers = await self.ask([frame.argv for frame in frames])
        if dispatch.lacks_scripts(answers):
            answers = await self.drive(dispatch.repair(frames, answers))
        self.broken = self.broken or any(isinstance(answer, Unavailable) for answer in answers)
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


async def _send(connection: Any, packed: list[bytes]) -> None:
    """Write without waiting where the socket takes it at once, as it nearly always does.

    The library waits by asyncio.wait_for, which up to Python 3.11 makes a task of each command and may swallow a
    cancellation; it is left to wait for a socket that is full.
    """
    writer = connection._writer
    if writer is not None:
        writer.writelines(packed)
        if not writer.transport.get_write_buffer_size():
            return
        packed = []
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
        """Put a line back, or close it when it is broken."""
        idle = line.home
        try:
            if idle is None or idle is not self._idle or line.broken:
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


class Bus:
    """A connection to a node, or a cluster, whose fence admits this package.

    Made by `connect`. Tasks may share it; a forked child may go on using it and opens sockets of its own.

    client: a client of redis-py or valkey-py for other commands: the one that was given, or the one made from the
    URL. It is not fenced.
    """

    def __init__(self, target: Target, wires: Wires, *, resend: bool) -> None:
        self.client = target.client
        self._target = target
        self._wires = wires
        self._resend = resend
        self._routes = Routes(target, lambda wiring: Pool(wiring, wires, target.attempts))

    @property
    def executor(self) -> Executor:
        """Who carries out the transitions: native or scripted.

        Raises InvalidArgument with wire="auto" in cluster mode before the first call of a queue.
        """
        return self._wires.executor

    def queue(self, name: str) -> Queue:
        """The queue of that name, 1 to 128 of A-Z a-z 0-9 . _ -, not "emq". Nothing is sent."""
        return Queue(self, name)

    async def run(self, transition: Transition[R], queue: Queue | str) -> R:
        """Carry out a transition on a queue. Raises EmqError."""
        at = self.queue(queue) if isinstance(queue, str) else queue
        if transition.trivial:
            return transition.decode([], at.name)
        answer = await self._answer(Call(transition.verb, transition.words(at.key), at.key))
        return transition.decode(answer, at.name)

    async def send(self, verb: str, *words: str | bytes | int) -> Any:
        """Send a verb, for example "emq.claim", with its words, the queue key first. Returns the reply as it came.

        bytes, int, None, list, or dict on RESP3. Nothing is checked here; what is wrong with the words, the server
        says. Raises EmqError.
        """
        return await self._answer(raw_call(verb, words))

    async def pipeline(self, steps: Iterable[tuple[Transition[Any], Queue | str]]) -> list[Any]:
        """Carry out transitions of any queues in one round trip per node, in order, each on its own.

        Returns for each its value, or the EmqError that it raised. Nothing is sent again after a lost connection.
        """
        plan = Plan(steps)
        return plan.values(await self._batch(plan.calls))

    async def transaction(self, steps: Iterable[tuple[Transition[Any], Queue | str]]) -> list[Any]:
        """Carry out transitions in one MULTI/EXEC, so that nothing comes between them; in a cluster, all of one queue.

        Returns for each its value, or the EmqError that it raised: one that is refused does not undo the others.
        Raises EmqError when none of them ran.
        """
        plan = Plan(steps)
        return plan.values(await self._together(plan.calls) if plan.calls else ())

    async def close(self) -> None:
        """Close every socket of this bus. A client object that was given stays open."""
        for pool in self._routes.close():
            await pool.close()
        if self._target.owned:
            await self.client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("an asyncio bus cannot be pickled: connect in the other process")

    def __repr__(self) -> str:
        return f"<emq_native.aio.Bus {'cluster ' if self._target.cluster else ''}{self._wires!r}>"

    async def _answer(self, call: Call) -> Answer:
        attempts = ATTEMPTS if self._resend and call.resend else 1
        unknown = False
        for attempt in range(attempts):
            try:
                return await self._once(call)
            except Unavailable as error:
                unknown = unknown or error.outcome_unknown
                if attempt + 1 == attempts:
                    raise
            except Refused as error:
                error.resent = unknown
                raise
            await asyncio.sleep(backoff(attempt, random.random()))
        raise AssertionError("at least one attempt")

    async def _routed(self, owner: bytes | None, send: Callable[[Line, bool], Awaitable[Answer]]) -> Answer:
        pool = self._routes.pool(owner)
        asking = False
        for _ in range(REDIRECTIONS):
            line = await self._take(pool)
            try:
                return await send(line, asking)
            except Redirected as error:
                if not self._target.cluster:
                    raise
                redirection = error
            finally:
                await pool.give(line)
            pool = self._routes.follow(redirection, owner, line.connection.host)
            asking = redirection.code == "ASK"
        raise Unavailable("the cluster redirects in circles", network=True)

    async def _once(self, call: Call) -> Answer:
        return await self._routed(call.owner, lambda line, asking: line.call(call, asking))

    async def _batch(self, calls: Sequence[Call]) -> list[Answer]:
        answers: dict[int, Answer] = {}
        for pool, places in self._routes.groups(calls).items():
            line = await self._take(pool)
            try:
                found = await line.pipeline([calls[place] for place in places])
            except Redirected as error:
                found = [error] * len(places)
            finally:
                await pool.give(line)
            answers.update(zip(places, found, strict=True))
        for place, answer in sorted(answers.items()):
            if isinstance(answer, Redirected) and self._target.cluster:
                try:
                    answers[place] = await self._once(calls[place])
                except EmqError as error:
                    answers[place] = error
        return [answers[place] for place in range(len(calls))]

    async def _together(self, calls: Sequence[Call]) -> list[Answer]:
        owner = calls[0].owner
        if self._target.cluster and any(call.owner != owner for call in calls):
            raise InvalidArgument("in a cluster a transaction concerns one queue")

        async def send(line: Line, asking: bool) -> list[Answer]:
            if asking:
                # ASKING counts for one command, and inside MULTI it is one of those that wait for EXEC.
                raise Unavailable("the slot of the queue is being moved", network=True)
            return await line.transaction(calls)

        answers: list[Answer] = await self._routed(owner, send)
        return answers

    async def _take(self, pool: Pool) -> Line:
        try:
            return await pool.take()
        except Unavailable:
            if self._target.cluster:
                self._routes.forget()
                with suppress(Exception):
                    await self.client.nodes_manager.initialize()
            raise

    async def _open(self) -> None:
        pool = self._routes.pool(None)
        await pool.give(await pool.take())


async def connect(
    target: object,
    *,
    wire: int | str = "auto",
    cluster: bool = False,
    resend: bool = False,
    **options: Any,
) -> Bus:
    """Connect to a node and pass its fence: as `emq_native.connect`, with asyncio clients in place of synchronous
    ones.
    """
    asked = parse_wire(wire)
    with translated():
        found = resolve(target, asynchronous=True, cluster=cluster, options=options)
        if found.cluster:
            await found.client.initialize()
        bus = Bus(found, Wires(asked), resend=resend)
    if not found.cluster:
        try:
            await bus._open()
        except BaseException:
            await bus.close()
            raise
    return bus
