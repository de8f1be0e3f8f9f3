"""What a connector is told, and nothing of how it talks: which client, which sockets, which wire.

A target is a URL or a client object of redis-py or valkey-py. Of a client object only the settings are used: the
connector opens sockets of its own from them, so every one of them passes the fence, no retry of the client can send a
claim twice, and the client stays what it was. Neither library is imported unless its objects are given; a URL is
opened with redis-py.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, TypeVar
from urllib.parse import urlsplit

from emq_native._core import queue_key
from emq_native.errors import EmqError, InvalidArgument, Redirected, WireMismatch, translated
from emq_native.executors import SCRIPTED, Executor, Frame, executor_for
from emq_native.fence import Wire
from emq_native.transitions import Transition
from emq_native.verbs import VERBS

Address = tuple[str, int]
PoolT = TypeVar("PoolT")
R = TypeVar("R")

URL_VARIABLE: Final = "EMQ_URL"
"""The node that is meant where none is named."""

ATTEMPTS: Final = 4
"""How often a connector of a URL tries to connect, and how often a safe transition is sent at most with resend=True."""

REDIRECTIONS: Final = 8
"""How many redirections of a cluster one call follows."""

ASKING: Final = (b"ASKING",)

SOCKET_SECONDS: Final = 5.0
MAX_CONNECTIONS: Final = 64

_SCHEMES: Final = {"redis": "redis", "rediss": "rediss", "valkey": "redis", "valkeys": "rediss", "unix": "unix"}
_LIBRARIES: Final = ("redis", "valkey")
_CLIENTS: Final = {"Redis": False, "Valkey": False, "RedisCluster": True, "ValkeyCluster": True}
_NO_CLIENTS: Final = ("Pipeline", "ClusterPipeline", "PubSub", "Monitor")

# Set up by a pool or a client for itself; a socket of ours is not theirs to steer.
_FOREIGN_OPTIONS: Final = (
    "maint_notifications_config",
    "maint_notifications_pool_handler",
    "oss_cluster_maint_notifications_handler",
)


def backoff(attempt: int, chance: float) -> float:
    """Seconds to wait after attempt 0, 1, ...: up to 0.1, 0.2, 0.4 ... at most 1, the upper half by chance, 0 to 1."""
    return float(min(1.0, 0.1 * 2**attempt) * (0.5 + chance / 2))


@dataclass(frozen=True)
class Target:
    """A client object, and what is known about it.

    owned: it was made here, from a URL; socket_timeout: seconds in place of the client's own setting.
    """

    client: Any
    library: str
    cluster: bool
    owned: bool
    socket_timeout: float | None = None

    @property
    def attempts(self) -> int:
        """How often to try to connect: a given client's own settings decide, so once for that."""
        return ATTEMPTS if self.owned else 1


def named(target: object) -> object:
    """The target, or for None the URL of $EMQ_URL; None when there is neither."""
    return (os.environ.get(URL_VARIABLE) or None) if target is None else target


def resolve(target: object, *, asynchronous: bool, cluster: bool, options: Mapping[str, Any]) -> Target:
    """The client for a target. Raises TypeError for an object that is none, InvalidArgument for a wrong URL."""
    if isinstance(target, str):
        return Target(_open(target, asynchronous, cluster, options), "redis", cluster, owned=True)
    if options:
        raise TypeError(f"a client object brings its own settings: {', '.join(sorted(options))} go with a URL")
    for base in type(target).__mro__:
        library, _, rest = base.__module__.partition(".")
        if library not in _LIBRARIES:
            continue
        if base.__name__ in _NO_CLIENTS:
            break
        if base.__name__ in _CLIENTS:
            if ("asyncio" in rest) is not asynchronous:
                raise TypeError(
                    "this is a synchronous client: use emq_native.connect"
                    if asynchronous
                    else "this is an asyncio client: use emq_native.aio.connect"
                )
            return Target(target, library, _CLIENTS[base.__name__], owned=False)
    raise TypeError(
        "connect takes a URL or a client object of redis-py or valkey-py (Redis, Valkey, RedisCluster, ValkeyCluster,"
        " or what Sentinel.master_for answers), "
        + (
            f"or goes without one to the node of ${URL_VARIABLE}"
            if target is None
            else f"not {type(target).__module__}.{type(target).__name__}"
        )
    )


def _open(url: str, asynchronous: bool, cluster: bool, options: Mapping[str, Any]) -> Any:
    scheme = urlsplit(url).scheme
    if scheme not in _SCHEMES:
        raise InvalidArgument(f"the scheme of a URL is one of {', '.join(_SCHEMES)}, not {scheme!r}")
    if cluster and scheme == "unix":
        raise InvalidArgument("a cluster is reached by host and port, not by a unix socket")
    library = importlib.import_module("redis.asyncio" if asynchronous else "redis")
    retries = importlib.import_module("redis.asyncio.retry" if asynchronous else "redis.retry")
    settings = {
        "socket_timeout": SOCKET_SECONDS,
        "socket_connect_timeout": SOCKET_SECONDS,
        "max_connections": MAX_CONNECTIONS,
        **options,
    }
    if not cluster:
        settings.setdefault("retry", retries.Retry(importlib.import_module("redis.backoff").NoBackoff(), 0))
    made = library.RedisCluster if cluster else library.Redis
    try:
        return made.from_url(_SCHEMES[scheme] + url[len(scheme) :], **settings)
    except ValueError as error:
        raise InvalidArgument(f"the URL cannot be used: {error}") from error


@dataclass(frozen=True)
class Wiring:
    """How the sockets to one node are made.

    greeting: what the client does on connect, if it does something of its own; refusal: the library's exception for
    an error line; cluster: each queue has its own fence; limit: most sockets at a time; idle_seconds: a socket unused
    for longer is replaced, 0 for never.
    """

    library: str
    cluster: bool
    connection_class: Callable[..., Any]
    options: Mapping[str, Any]
    greeting: Callable[[Any], Any] | None
    refusal: type[Exception]
    limit: int
    idle_seconds: float

    def at(self, address: Address) -> Wiring:
        """The same for another node of the cluster."""
        return replace(self, options={**self.options, "host": address[0], "port": address[1]})

    def connection(self, greet: Callable[[Any], Any]) -> Any:
        """A connection object, not connected yet, that calls `greet` in place of its own handshake."""
        return self.connection_class(**self.options, **{f"{self.library}_connect_func": greet})


def wiring_of(target: Target) -> Wiring:
    """The wiring of a client; of a cluster client, that of its default node."""
    source = target.client
    if target.cluster:
        source = source.get_default_node()
        if not hasattr(source, "connection_kwargs"):
            source = getattr(target.client, f"get_{target.library}_connection")(source).connection_pool
    else:
        source = source.connection_pool
    options = {name: value for name, value in source.connection_kwargs.items() if name not in _FOREIGN_OPTIONS}
    if target.socket_timeout is not None:
        options["socket_timeout"] = target.socket_timeout
    return Wiring(
        library=target.library,
        cluster=target.cluster,
        connection_class=source.connection_class,
        greeting=options.pop(f"{target.library}_connect_func", None),
        refusal=importlib.import_module(f"{target.library}.exceptions").ResponseError,
        limit=source.max_connections,
        idle_seconds=options.get("health_check_interval") or 0,
        options=options,
    )


class Once:
    """Takes the place of a connection's own retries: a line tries again by them, but with the handshake, to which older
    releases of the libraries do not extend them.
    """

    def call_with_retry(self, do: Callable[[], R], *_: object, **__: object) -> R:
        """The one attempt."""
        return do()


def says_cluster(greeting: Any) -> bool:
    """Whether the answer to HELLO says that the server runs in cluster mode. An error says nothing, so no."""
    if isinstance(greeting, list):
        greeting = dict(zip(greeting[::2], greeting[1::2], strict=True))
    if not isinstance(greeting, dict):
        return False
    return greeting.get(b"mode", greeting.get("mode")) in (b"cluster", "cluster")


class Wires:
    """Which executor owns what: the node, under None, or in cluster mode each queue, under its key.

    A wire that was asked for holds for everything. With "auto", the first verdict is kept as the wire that every later
    connect must find again.
    """

    def __init__(self, wire: Wire) -> None:
        self._asked = None if wire is None else executor_for(wire)
        self._found: dict[bytes | None, Executor] = {}

    def wanted(self, owner: bytes | None) -> Wire:
        """What the fence of `owner` must say: 4, 6, or None for either."""
        executor = self._asked or self._found.get(owner)
        return None if executor is None else executor.wire

    def found(self, owner: bytes | None, wire: int) -> Executor:
        """The executor of a verdict, which is kept. Raises WireMismatch when another connect found another wire."""
        executor = self._found.setdefault(owner, self._asked or executor_for(wire))
        if executor.wire != wire:
            raise WireMismatch(executor.identity, executor_for(wire).identity)
        return executor

    @property
    def executor(self) -> Executor:
        """The executor, that of the first queue if they differ. Raises InvalidArgument before the first verdict."""
        executor = self._asked or next(iter(self._found.values()), None)
        if executor is None:
            raise InvalidArgument('with wire="auto" a cluster is known by its queues: call a queue first')
        return executor

    def __repr__(self) -> str:
        executor = self._asked or next(iter(self._found.values()), None)
        return "auto" if executor is None else executor.identity


@dataclass(slots=True)
class Call:
    """A verb and its words. owner: the key of the queue that it concerns, None for a verb without a queue."""

    verb: str
    words: list[bytes]
    owner: bytes | None

    @property
    def resend(self) -> bool:
        """Whether the contract lets it be sent again after a lost answer."""
        known = VERBS.get(self.verb)
        return known is not None and known.resend

    @property
    def waits(self) -> bool:
        """Whether it may wait in the server, so that even a redirection may come after it was carried out."""
        return self.verb == "emq.next" and b"BLOCK" in self.words


def frame_of(executor: Executor, call: Call, *, inline: bool = False) -> Frame:
    """The frame of a call. Raises InvalidArgument for a verb that this executor does not send to a server."""
    if executor is SCRIPTED and not (call.verb in VERBS and VERBS[call.verb].scripted):
        raise InvalidArgument(f"{call.verb} has no script: it is not sent on wire 4")
    return executor.frame(call.verb, call.words, inline=inline)


def raw_call(verb: str, words: Iterable[str | bytes | int]) -> Call:
    """A call from a verb in any letter case and words, str as UTF-8, int as decimal. Raises InvalidArgument."""
    verb = verb.lower()
    encoded = [_word(word) for word in words]
    return Call(verb, encoded, encoded[0] if encoded and verb != "tra.capabilities" else None)


def _word(word: object) -> bytes:
    if isinstance(word, bytes):
        return word
    if isinstance(word, str):
        return word.encode("utf-8", "surrogatepass")
    if isinstance(word, int) and not isinstance(word, bool):
        return b"%d" % word
    raise InvalidArgument(f"a word is str, bytes or int, not {type(word).__name__}")


class Plan:
    """Transitions that travel together. `calls` are those that need a server; `values` puts the answers in their
    places.
    """

    def __init__(self, steps: Iterable[tuple[Transition[Any], Any]]) -> None:
        self._steps: list[tuple[Transition[Any], str]] = []
        self.calls: list[Call] = []
        for step, at in steps:
            name, key = (at, queue_key(at)) if isinstance(at, str) else (at.name, at.key)
            self._steps.append((step, name))
            if not step.trivial:
                self.calls.append(Call(step.verb, step.words(key), key))

    def values(self, answers: Iterable[Any]) -> list[Any]:
        """The value of each transition, or the EmqError that is its answer."""
        arriving = iter(answers)
        values: list[Any] = []
        for step, name in self._steps:
            answer = [] if step.trivial else next(arriving)
            values.append(answer if isinstance(answer, EmqError) else step.decode(answer, name))
        return values


class Routes(Generic[PoolT]):
    """Which pool serves which queue: the only one, or in a cluster that of the node which holds the queue's slot.

    The client's own map of the cluster is where a route begins; where a node says MOVED, that is remembered here.
    """

    def __init__(self, target: Target, make: Callable[[Wiring], PoolT]) -> None:
        self._target = target
        self._wiring = wiring_of(target)
        self._make = make
        self._pools: dict[Address | None, PoolT] = {}
        self._moved: dict[bytes, Address] = {}
        self._closed = False

    def pool(self, owner: bytes | None) -> PoolT:
        """The pool for a queue, or for calls without a queue. Raises InvalidArgument when closed, Unavailable."""
        if self._closed:
            raise InvalidArgument("this bus is closed")
        return self._at(self._address(owner) if self._target.cluster else None)

    def follow(self, redirection: Redirected, owner: bytes | None, host: str) -> PoolT:
        """The pool that a node at `host` redirected to."""
        address = (redirection.host or host, redirection.port)
        remap = getattr(self._target.client.nodes_manager, "remap_host_port", None)
        if remap is not None:
            address = remap(*address)
        if redirection.code == "MOVED" and owner is not None:
            self._moved[owner] = address
        return self._at(address)

    def groups(self, calls: Sequence[Call]) -> dict[PoolT, list[int]]:
        """The places of calls in their sequence, by the pool that serves them."""
        groups: dict[PoolT, list[int]] = {}
        for place, call in enumerate(calls):
            groups.setdefault(self.pool(call.owner), []).append(place)
        return groups

    def forget(self) -> None:
        """Forget what nodes said, because one of them cannot be reached."""
        self._moved.clear()

    def close(self) -> list[PoolT]:
        """Serve no more. Returns every pool."""
        self._closed = True
        return list(self._pools.values())

    def _address(self, owner: bytes | None) -> Address | None:
        if owner is None:
            return None
        moved = self._moved.get(owner)
        if moved is not None:
            return moved
        with translated():
            node = self._target.client.get_node_from_key(owner)
        return node.host, int(node.port)

    def _at(self, address: Address | None) -> PoolT:
        pool = self._pools.get(address)
        if pool is None:
            wiring = self._wiring if address is None else self._wiring.at(address)
            # No lock, which a fork could leave held: of two threads that come here at once, one pool is kept.
            pool = self._pools.setdefault(address, self._make(wiring))
            if self._closed:  # in the meantime, so nobody would close this one
                raise InvalidArgument("this bus is closed")
        return pool
