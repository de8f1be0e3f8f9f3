"""A queue for asyncio: every transition as a coroutine method, one for one as in `emq_native.queue`."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from emq_native import transitions as t
from emq_native._core import queue_key
from emq_native.queue import document
from emq_native.transitions import Transition

if TYPE_CHECKING:
    from emq_native.aio.connector import Bus

P = ParamSpec("P")
R = TypeVar("R")


class Verb(Generic[P, R]):
    """A transition as a coroutine method: called with the transition's arguments, it carries it out.

    The arguments are checked by the call, before anything is awaited.
    """

    def __init__(self, transition: Callable[P, Transition[R]]) -> None:
        def method(queue: Queue, /, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
            return queue.bus.run(transition(*args, **kwargs), queue)

        self._method = method
        document(method, transition)

    def __set_name__(self, owner: type, name: str) -> None:
        self._method.__name__ = name
        self._method.__qualname__ = f"{owner.__qualname__}.{name}"

    @overload
    def __get__(self, queue: None, owner: type) -> Callable[Concatenate[Queue, P], Coroutine[Any, Any, R]]: ...
    @overload
    def __get__(self, queue: Queue, owner: type) -> Callable[P, Coroutine[Any, Any, R]]: ...
    def __get__(self, queue: Queue | None, owner: type) -> Any:
        return self._method.__get__(queue, owner)


class Queue:
    """One queue of a bus, for asyncio.

    name: 1 to 128 of A-Z a-z 0-9 . _ -, not "emq"; key: its queue key, `emq:{NAME}`. Every method raises EmqError:
    InvalidArgument before anything is sent, Refused when the server refuses, Unavailable and PermissionDenied.
    """

    __slots__ = ("bus", "key", "name")

    def __init__(self, bus: Bus, name: str) -> None:
        self.key = queue_key(name)
        self.bus = bus
        self.name = name

    enqueue = Verb(t.Enqueue)
    enqueue_in = Verb(t.EnqueueIn)
    enqueue_at = Verb(t.EnqueueAt)
    claim = Verb(t.Claim)
    complete = Verb(t.Complete)
    retry = Verb(t.Retry)
    delay = Verb(t.Delay)
    extend = Verb(t.Extend)
    promote = Verb(t.Promote)
    reap = Verb(t.Reap)
    state = Verb(t.Where)
    counts = Verb(t.Count)
    peek = Verb(t.Peek)
    version = Verb(t.About)

    enqueue_many = Verb(t.EnqueueMany)
    claim_many = Verb(t.ClaimMany)
    complete_many = Verb(t.CompleteMany)
    extend_many = Verb(t.ExtendMany)

    claim_fair = Verb(t.ClaimFair)
    claim_weighted = Verb(t.ClaimWeighted)
    claim_group = Verb(t.ClaimGroup)
    pause_group = Verb(t.PauseGroup)
    resume_group = Verb(t.ResumeGroup)
    limit_group = Verb(t.LimitGroup)
    weigh_group = Verb(t.WeighGroup)
    reassign = Verb(t.Reassign)
    drain_group = Verb(t.DrainGroup)
    reap_group = Verb(t.ReapGroup)
    group_counts = Verb(t.CountGroups)

    pause = Verb(t.Pause)
    resume = Verb(t.Resume)
    drain = Verb(t.Drain)
    obliterate = Verb(t.Obliterate)

    remove = Verb(t.Remove)
    reprocess = Verb(t.Reprocess)
    update = Verb(t.Update)
    progress = Verb(t.Progress)
    log = Verb(t.Log)

    repeat = Verb(t.Repeat)
    unrepeat = Verb(t.Unrepeat)
    fire = Verb(t.Fire)

    async def pipeline(self, steps: Iterable[Transition[Any]]) -> list[Any]:
        """Carry out transitions in one round trip, in order, each on its own: as Bus.pipeline, all on this queue."""
        return await self.bus.pipeline((step, self) for step in steps)

    async def transaction(self, steps: Iterable[Transition[Any]]) -> list[Any]:
        """Carry out transitions in one MULTI/EXEC: as Bus.transaction, all on this queue."""
        return await self.bus.transaction((step, self) for step in steps)

    def __repr__(self) -> str:
        return f"<emq_native.aio.Queue {self.name}>"
