"""The synchronous connector: sockets that have passed the fence, and transitions carried over them.

Sockets. A `Line` is one connection. It is fenced in the handshake, after SELECT and before anything else, on each
connect. A line that broke in any way is closed and never used again, so a connect is always a new line. Lines wait in
a `Pool`, are looked at before use (a closed or dirty one is replaced), and are never shared with a forked child,
which begins with an empty pool.

Sending again. A command is sent once. When its answer is lost the call raises Unavailable with `outcome_unknown`: a
lost claim comes back when its lease ends. With `resend=True` the transitions that the contract calls safe are sent
again after Unavailable, four times in all with growing pauses; claims, LOG and PROGRESS never are. A redirection by a
cluster is followed in any case: it was not carried out.

Connecting. With a URL, connecting is tried four times with growing pauses before Unavailable is raised. A client
object's own retry settings decide about connecting, and only about that.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from emq_native import dispatch, fence
from emq_native.dispatch import Answer, Steps, Words, answer_of
from emq_native.errors import EmqError, InvalidArgument, Redirected, Refused, Unavailable, translate, translated
from emq_native.executors import SCRIPTED, Executor
from emq_native.fence import parse_wire
from emq_native.queue import Queue
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

    def open(self) -> None:
        """Connect and pass the fence. Raises WireRefused, Unavailable, PermissionDenied, Redirected."""
        try:
            with translated():
                self.connection.connect()
        except BaseException:
            self.close()
            raise

    def _greet(self, connection: Any) -> None:
        self.broken = False
        self._executor = None
        self._passed.clear()
        try:
            (self._wiring.greeting or type(connection).on_connect)(connection)
            if not (self._wiring.cluster or self._in_cluster_mode(connection)):
                self._executor = self._pass_fence(None)
        except BaseException as error:
            connection.disconnect()
            # Whether to try again is up to the connection's retry settings, which know only the library's exceptions.
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
            many = len(commands) > 1
            packed = connection.pack_commands(commands) if many else connection.pack_command(*commands[0])
            connection.send_packed_command(packed, check_health=False)
            for _ in commands:
                try:
                    answers.append(connection.read_response(disable_decoding=True, disconnect_on_error=True))
                except self._wiring.refusal as error:
                    answers.append(answer_of(error))
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
        if executor is SCRIPTED and is_local(call.verb):
            return SCRIPTED.local(call.verb, call.words)
        frame = frame_of(executor, call)
        (answer,) = self.exchange((frame.argv,), asking)
        if isinstance(answer, EmqError):
            if dispatch.lacks_scripts((answer,)):
                (answer,) = self.drive(dispatch.repair((frame,), [answer]), asking)
            if isinstance(answer, EmqError):
                self.broken = self.broken or isinstance(answer, Unavailable)
                raise answer
        return answer

    def pipeline(self, calls: Sequence[Call]) -> list[Answer]:
        """The answers to calls sent in one round trip; scripts that were unknown are loaded."""
        frames = [frame_of(self.executor(call.owner), call) for call in calls]
        answers = self.ask([frame.argv for frame in frames])
        if dispatch.lacks_scripts(answers):
            answers = self.drive(dispatch.repair(frames, answers))
        self.broken = self.broken or any(isinstance(answer, Unavailable) for answer in answers)
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
        try:
            return not self.connection.can_read(0)
        except Exception:
            return False

    def close(self) -> None:
        """Close the socket."""
        self.broken = True
        with suppress(Exception):
            self.connection.disconnect()


class _Idle:
    """The lines of one process: those at rest, and how many there are in all."""

    __slots__ = ("count", "freed", "lines", "pid", "waiting")

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.lines: deque[Line] = deque()
        self.count = 0
        self.waiting = 0
        self.freed = threading.Condition()


class Pool:
    """The lines to one node, the last used first. When all of them are in use, `take` waits for one."""

    def __init__(self, wiring: Wiring, wires: Wires, attempts: int) -> None:
        self._wiring = wiring
        self._wires = wires
        self._attempts = attempts
        self._idle = _Idle()

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
                if not self._reserve(idle):
                    continue
                try:
                    return self._open(idle)
                except BaseException:
                    self._leave(idle)
                    raise
            if line.usable():
                return line
            line.close()
            self._leave(idle)

    def give(self, line: Line) -> None:
        """Put a line back, or close it when it is broken."""
        idle = line.home
        if idle is None or idle is not self._idle or line.broken:
            line.close()
            if idle is not None:
                self._leave(idle)
            return
        line.used = time.monotonic()
        idle.lines.append(line)
        if idle.waiting:
            with idle.freed:
                idle.freed.notify()

    def close(self) -> None:
        """Close every line: those at rest now, those in use when they are given back."""
        idle, self._idle = self._idle, _Idle()
        if idle.pid != os.getpid():
            return
        while idle.lines:
            idle.lines.pop().close()

    def _reserve(self, idle: _Idle) -> bool:
        """Count one more line; False when instead one may have come to rest."""
        with idle.freed:
            if idle.count < self._wiring.limit:
                idle.count += 1
                return True
            idle.waiting += 1
            try:
                if not idle.lines:
                    idle.freed.wait()
            finally:
                idle.waiting -= 1
        return False

    def _leave(self, idle: _Idle) -> None:
        with idle.freed:
            idle.count -= 1
            idle.freed.notify()

    def _open(self, idle: _Idle) -> Line:
        for attempt in range(self._attempts):
            line = Line(self._wiring, self._wires)
            try:
                line.open()
            except Unavailable:
                if attempt + 1 == self._attempts:
                    raise
                time.sleep(backoff(attempt, random.random()))
            else:
                line.home = idle
                return line
        raise AssertionError("at least one attempt")


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
        attempts = ATTEMPTS if self._resend and call.resend else 1
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

    def _routed(self, owner: bytes | None, send: Callable[[Line, bool], Answer]) -> Answer:
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
            asking = redirection.code == "ASK"
        raise Unavailable("the cluster redirects in circles", network=True)

    def _once(self, call: Call) -> Answer:
        return self._routed(call.owner, lambda line, asking: line.call(call, asking))

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
    target: object,
    *,
    wire: int | str = "auto",
    cluster: bool = False,
    resend: bool = False,
    **options: Any,
) -> Bus:
    """Connect to a node and pass its fence.

    target: a URL with the scheme redis, rediss, valkey, valkeys or unix; or a client object of redis-py or valkey-py
    (Redis, Valkey, RedisCluster, ValkeyCluster, what Sentinel.master_for answers), of which the settings are used.
    wire: 4 for the scripted executor, which claims a node that nobody owns; 6 for the module; "auto" for whichever
    owns the node. cluster: the URL is one of a cluster. resend: send safe transitions again after a lost answer.
    options: go to redis-py's from_url, for example username, password, db, ssl_ca_certs, socket_timeout (default 5
    seconds), max_connections (default 64; a call waits for a free one).

    The fence is asked for here, in cluster mode before the first call of each queue, and on every later connect.
    Raises WireMismatch, WireUnclaimed; Unavailable; PermissionDenied; InvalidArgument for a wrong URL or wire;
    TypeError for an object that is no client.
    """
    asked = parse_wire(wire)
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
