"""The synchronous connector: sockets that have passed the fence, and transitions carried over them.

Sending again. A command is sent once. When its answer is lost the call raises Unavailable with `outcome_unknown`: a
lost claim comes back when its lease ends. With `resend=True` the transitions that the contract calls safe are sent
again after Unavailable, four times in all with growing pauses; claims, LOG and PROGRESS never are. A redirection by a
cluster is followed in any case: it was not carried out.

Connecting. With a URL, connecting is tried four times with growing pauses before Unavailable is raised. A client
object's own retry settings decide about connecting, and only about that.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from emq_native.dispatch import Answer, Words
from emq_native.errors import EmqError, InvalidArgument, Redirected, Refused, Unavailable, translated
from emq_native.executors import Executor
from emq_native.fence import parse_wire
from emq_native.line import Line, Pool
from emq_native.queue import Queue
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

    Made by `connect`. Threads may share it; a forked child may go on using it and opens sockets of its own.

    client: a client of redis-py or valkey-py for other commands: the one that was given, or the one made from the
    URL. It is not fenced.
    """

    def __init__(self, target: Target, wires: Wires, *, resend: bool, origin: tuple[Any, ...] | None) -> None:
        self.client = target.client
        self._target = target
        self._wires = wires
        self._resend = resend
        self._origin = origin
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

    def run(self, transition: Transition[R], queue: Queue | str) -> R:
        """Carry out a transition on a queue. Raises EmqError."""
        at = self.queue(queue) if isinstance(queue, str) else queue
        if transition.trivial:
            return transition.decode([], at.name)
        answer = self._answer(Call(transition.verb, transition.words(at.key), at.key))
        return transition.decode(answer, at.name)

    def send(self, verb: str, *words: str | bytes | int) -> Any:
        """Send a verb, for example "emq.claim", with its words, the queue key first. Returns the reply as it came.

        bytes, int, None, list, or dict on RESP3. Nothing is checked here; what is wrong with the words, the server
        says. Raises EmqError.
        """
        return self._answer(raw_call(verb, words))

    def pipeline(self, steps: Iterable[tuple[Transition[Any], Queue | str]]) -> list[Any]:
        """Carry out transitions of any queues in one round trip per node, in order, each on its own.

        Returns for each its value, or the EmqError that it raised. Nothing is sent again after a lost connection.
        """
        plan = Plan(steps)
        return plan.values(self._batch(plan.calls))

    def transaction(self, steps: Iterable[tuple[Transition[Any], Queue | str]]) -> list[Any]:
        """Carry out transitions in one MULTI/EXEC, so that nothing comes between them; in a cluster, all of one queue.

        Returns for each its value, or the EmqError that it raised: one that is refused does not undo the others.
        Raises EmqError when none of them ran.
        """
        plan = Plan(steps)
        return plan.values(self._together(plan.calls) if plan.calls else ())

    def executor_of(self, queue: Queue | str) -> Executor:
        """Who carries out the transitions of a queue, which in a cluster its own fence says. Raises EmqError."""
        at = self.queue(queue) if isinstance(queue, str) else queue
        found: Executor = self._routed(at.key, lambda line, asking: line.executor(at.key, asking))
        return found

    def plain(self, queue: Queue | str, *commands: Words) -> list[Answer]:
        """Send plain commands of the server about a queue in one round trip, on a line that passed the fence.

        Returns for each its reply, or the EmqError that it is.
        """
        at = self.queue(queue) if isinstance(queue, str) else queue

        def send(line: Line, asking: bool) -> list[Answer]:
            line.executor(at.key, asking)
            answers = line.exchange(commands, asking)
            for answer in answers:
                if isinstance(answer, Redirected):
                    raise answer
            return answers

        answers: list[Answer] = self._routed(at.key, send)
        return answers

    def sibling(self, *, socket_timeout: float | None = None) -> Bus:
        """A bus with sockets of its own to the same node or cluster, which tries to connect once. Nothing is sent.

        socket_timeout: seconds, for calls that wait in the server; by default as here. Closing either of the two
        leaves the other one open.
        """
        target = replace(self._target, owned=False, socket_timeout=socket_timeout or self._target.socket_timeout)
        return Bus(target, self._wires, resend=False, origin=None)

    def close(self) -> None:
        """Close every socket of this bus. A client object that was given stays open."""
        for pool in self._routes.close():
            pool.close()
        if self._target.owned:
            self.client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        if self._origin is None:
            raise TypeError(
                "a bus made from a client object cannot be pickled: connect by URL, or in the other process"
            )
        return _reconnect, self._origin

    def __repr__(self) -> str:
        return f"<emq_native.Bus {'cluster ' if self._target.cluster else ''}{self._wires!r}>"

    def _answer(self, call: Call) -> Answer:
        if not self._resend:
            return self._once(call)
        attempts = ATTEMPTS if call.resend else 1
        unknown = False
        for attempt in range(attempts):
            try:
                return self._once(call)
            except Unavailable as error:
                unknown = unknown or error.outcome_unknown
                if attempt + 1 == attempts:
                    raise
            except Refused as error:
                error.resent = unknown
                raise
            time.sleep(backoff(attempt, random.random()))
        raise AssertionError("at least one attempt")

    def _routed(self, owner: bytes | None, send: Callable[[Line, bool], Answer], *, waits: bool = False) -> Answer:
        pool = self._routes.pool(owner)
        asking = False
        for _ in range(REDIRECTIONS):
            line = self._take(pool)
            try:
                return send(line, asking)
            except Redirected as error:
                if not self._target.cluster:
                    raise
                redirection = error
            finally:
                pool.give(line)
            pool = self._routes.follow(redirection, owner, line.connection.host)
            if waits:  # the node may have carried it out, and then ended the wait with its queue gone elsewhere
                raise Unavailable(redirection.text, outcome_unknown=True)
            asking = redirection.code == "ASK"
        raise Unavailable("the cluster redirects in circles", network=True)

    def _once(self, call: Call) -> Answer:
        return self._routed(call.owner, lambda line, asking: line.call(call, asking), waits=call.waits)

    def _batch(self, calls: Sequence[Call]) -> list[Answer]:
        answers: dict[int, Answer] = {}
        for pool, places in self._routes.groups(calls).items():
            line = self._take(pool)
            try:
                found = line.pipeline([calls[place] for place in places])
            except Redirected as error:
                found = [error] * len(places)
            finally:
                pool.give(line)
            answers.update(zip(places, found, strict=True))
        for place, answer in sorted(answers.items()):
            if isinstance(answer, Redirected) and self._target.cluster:
                try:
                    answers[place] = self._once(calls[place])
                except EmqError as error:
                    answers[place] = error
        return [answers[place] for place in range(len(calls))]

    def _together(self, calls: Sequence[Call]) -> list[Answer]:
        owner = calls[0].owner
        if self._target.cluster and any(call.owner != owner for call in calls):
            raise InvalidArgument("in a cluster a transaction concerns one queue")

        def send(line: Line, asking: bool) -> list[Answer]:
            if asking:
                # ASKING counts for one command, and inside MULTI it is one of those that wait for EXEC.
                raise Unavailable("the slot of the queue is being moved", network=True)
            return line.transaction(calls)

        answers: list[Answer] = self._routed(owner, send)
        return answers

    def _take(self, pool: Pool) -> Line:
        try:
            return pool.take()
        except Unavailable:
            if self._target.cluster:
                self._routes.forget()
                with suppress(Exception):
                    self.client.nodes_manager.initialize()
            raise

    def _open(self) -> None:
        pool = self._routes.pool(None)
        pool.give(pool.take())


def connect(
    target: object = None,
    *,
    wire: int | str = "auto",
    cluster: bool = False,
    resend: bool = False,
    **options: Any,
) -> Bus:
    """Connect to a node and pass its fence.

    target: a URL with the scheme redis, rediss, valkey, valkeys or unix, by default that of $EMQ_URL; or a client
    object of redis-py or valkey-py (Redis, Valkey, RedisCluster, ValkeyCluster, what Sentinel.master_for answers), of
    which the settings are used.
    wire: 4 for the scripted executor, which claims a node that nobody owns; 6 for the module; "auto" for whichever
    owns the node. cluster: the URL is one of a cluster. resend: send safe transitions again after a lost answer.
    options: go to redis-py's from_url, for example username, password, db, ssl_ca_certs, socket_timeout (default 5
    seconds), max_connections (default 64; a call waits for a free one).

    The fence is asked for here, in cluster mode before the first call of each queue, and on every later connect.
    Raises WireMismatch, WireUnclaimed; Unavailable; PermissionDenied; InvalidArgument for a wrong URL or wire;
    TypeError for an object that is no client, and for no target without $EMQ_URL.
    """
    asked = parse_wire(wire)
    target = named(target)
    with translated():
        found = resolve(target, asynchronous=False, cluster=cluster, options=options)
        origin = (target, wire, cluster, resend, options) if found.owned else None
        bus = Bus(found, Wires(asked), resend=resend, origin=origin)
    if not found.cluster:
        try:
            bus._open()
        except BaseException:
            bus.close()
            raise
    return bus


def _reconnect(target: str, wire: int | str, cluster: bool, resend: bool, options: dict[str, Any]) -> Bus:
    return connect(target, wire=wire, cluster=cluster, resend=resend, **options)
