"""The asyncio connector: the twin of `emq_native.connector`, with the same sockets, rules and retries.

A call that is cancelled leaves open whether its command was carried out.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from emq_native.aio.line import Line, Pool
from emq_native.aio.queue import Queue
from emq_native.dispatch import Answer, Words
from emq_native.errors import EmqError, InvalidArgument, Redirected, Refused, Unavailable, translated
from emq_native.executors import Executor
from emq_native.fence import parse_wire
from emq_native.transitions import Transition
from emq_native.wiring import (
    ATTEMPTS,
    REDIRECTIONS,
    Call,
    Plan,
    Routes,
    Target,
    Wires,
    backoff,
    named,
    raw_call,
    resolve,
)

if TYPE_CHECKING:
    from typing_extensions import Self

R = TypeVar("R")


class Bus:
    """A connection to a node, or a cluster, whose fence admits this package.

    Made by `connect`. Tasks may share it; a forked child may go on using it and opens sockets of its own.

    client: a client of redis-py or valkey-py for other commands: the one that was given, or the one made from the
    URL. It is not fenced.
    """

    def __init__(self, target: Target, wires: Wires, *, resend: bool, elsewhere: bool = False) -> None:
        self.client = target.client
        self._elsewhere = elsewhere
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

    async def executor_of(self, queue: Queue | str) -> Executor:
        """Who carries out the transitions of a queue, which in a cluster its own fence says. Raises EmqError."""
        at = self.queue(queue) if isinstance(queue, str) else queue
        found: Executor = await self._routed(at.key, lambda line, asking: line.executor(at.key, asking))
        return found

    async def plain(self, queue: Queue | str, *commands: Words) -> list[Answer]:
        """Send plain commands of the server about a queue in one round trip, on a line that passed the fence.

        Returns for each its reply, or the EmqError that it is.
        """
        at = self.queue(queue) if isinstance(queue, str) else queue

        async def send(line: Line, asking: bool) -> list[Answer]:
            await line.executor(at.key, asking)
            answers = await line.exchange(commands, asking)
            for answer in answers:
                if isinstance(answer, Redirected):
                    raise answer
            return answers

        answers: list[Answer] = await self._routed(at.key, send)
        return answers

    def sibling(self, *, socket_timeout: float | None = None, elsewhere: bool = False) -> Bus:
        """A bus with sockets of its own to the same node or cluster, which tries to connect once. Nothing is sent.

        socket_timeout: seconds, for calls that wait in the server; by default as here. elsewhere: it is for another
        event loop, in which the client must not talk; so where the nodes of a cluster are is left to this bus to learn.
        Closing either of the two leaves the other one open.
        """
        target = replace(self._target, owned=False, socket_timeout=socket_timeout or self._target.socket_timeout)
        return Bus(target, self._wires, resend=False, elsewhere=elsewhere)

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
        if not self._resend:
            return await self._once(call)
        attempts = ATTEMPTS if call.resend else 1
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

    async def _routed(
        self, owner: bytes | None, send: Callable[[Line, bool], Awaitable[Answer]], *, waits: bool = False
    ) -> Answer:
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
            if waits:  # the node may have carried it out, and then ended the wait with its queue gone elsewhere
                raise Unavailable(redirection.text, outcome_unknown=True)
            asking = redirection.code == "ASK"
        raise Unavailable("the cluster redirects in circles", network=True)

    async def _once(self, call: Call) -> Answer:
        return await self._routed(call.owner, lambda line, asking: line.call(call, asking), waits=call.waits)

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
                if not self._elsewhere:
                    with suppress(Exception):
                        await self.client.nodes_manager.initialize()
            raise

    async def _open(self) -> None:
        pool = self._routes.pool(None)
        await pool.give(await pool.take())


async def connect(
    target: object = None,
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
    target = named(target)
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
