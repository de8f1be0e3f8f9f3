"""One plain connection to one node, for what an operator does there: look, load the module, provision the fence.

It is made from a URL or from a client that somebody holds, with that client's address, login and encryption, but it is
a connection of its own: no fence is verified, nothing is sent twice, replies are bytes, and errors are those of this
package.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from emq_native.errors import EmqError, PermissionDenied, Redirected, Refused, Unavailable, translate
from emq_native.wiring import SOCKET_SECONDS, resolve, wiring_of

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Session", "is_clustered", "pairs"]

Reply = Any
Words = Sequence[str | bytes | int]


class Session:
    """A connection to the node that `target` means; opened by `with` or by the first command.

    target: a URL (redis, rediss, valkey, valkeys, unix), a synchronous client of redis-py or valkey-py, also one of a
    cluster (its default node), or an object that holds such a client as `client`. Raises InvalidArgument for a URL that
    is none, TypeError for anything else.
    """

    def __init__(self, target: object) -> None:
        held = getattr(target, "client", None)
        client = target if held is None or callable(held) else held
        wiring = wiring_of(resolve(client, asynchronous=False, cluster=False, options={}))
        self._kind: Any = wiring.connection_class
        # RESP2 needs no HELLO, which a locked-down user may not send.
        self._settings: dict[str, Any] = {**wiring.options, "protocol": 2, "retry": None}
        for name in ("socket_timeout", "socket_connect_timeout"):
            self._settings[name] = self._settings.get(name) or SOCKET_SECONDS
        self._connection: Any = None
        self.asking = False
        """Whether the cluster sent us here because the slot is on its way to this node."""

    @property
    def host(self) -> str | None:
        """Name or address, None for a unix socket."""
        return None if "path" in self._settings else str(self._settings.get("host", "localhost"))

    @property
    def user(self) -> str:
        """The name that it logs in with."""
        return str(self._settings.get("username") or "default")

    @property
    def address(self) -> str:
        """What to call the node in a message: `host:port`, or the path of its socket."""
        if self.host is None:
            return str(self._settings["path"])
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self._settings.get('port', 6379)}"

    @property
    def is_open(self) -> bool:
        """Whether there is a connection, perhaps one that was lost unnoticed."""
        return self._connection is not None

    def twin(self) -> Session:
        """Another connection to the same node, not opened yet."""
        return self._with(self._settings)

    def at(self, host: str, port: int) -> Session:
        """A connection to another node of the same cluster, not opened yet: same login, another address."""
        return self._with({**self._settings, "host": host or self.host, "port": port})

    def _with(self, settings: dict[str, Any]) -> Session:
        other: Session = object.__new__(Session)
        other._kind, other._settings, other._connection, other.asking = self._kind, settings, None, False
        return other

    def open(self) -> Session:
        """Connect and log in. Raises Unavailable or PermissionDenied."""
        if self._connection is None:
            connection = self._kind(**self._settings)
            try:
                connection.connect()
            except Exception as error:
                connection.disconnect()
                raise _ours(error) from error
            self._connection = connection
        return self

    def close(self) -> None:
        """Drop the connection. A transaction that was begun is gone with it."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.disconnect()

    def send(self, *words: str | bytes | int) -> Reply:
        """Send one command and return its reply: bytes, integers, lists, mappings (RESP3) or None. Raises EmqError."""
        self.open()
        if self.asking:
            self._exchange("ASKING")
        return self._exchange(*words)

    def send_all(self, commands: Sequence[Words]) -> list[Reply | EmqError]:
        """Send commands in one round trip. Returns for each its reply, or the EmqError that it is.

        Raises Unavailable for a lost connection.
        """
        self.open()
        answers: list[Reply | EmqError] = []
        try:
            self._connection.send_packed_command(self._connection.pack_commands(commands))
            for _ in commands:
                try:
                    answers.append(self._connection.read_response(disable_decoding=True))
                except Exception as error:
                    answer = translate(error)
                    if answer is None or (isinstance(answer, Unavailable) and not answer.code):
                        raise
                    answers.append(answer)
        except Exception as error:
            raise _ours(error) from error
        return answers

    def begin(self, *words: str | bytes | int) -> None:
        """Send one command and leave its reply to `finish`."""
        self.open()
        try:
            self._connection.send_command(*words)
        except Exception as error:
            raise _ours(error) from error

    def finish(self) -> Reply:
        """The reply to the command that was begun. Raises as `send`."""
        try:
            return self._connection.read_response(disable_decoding=True)
        except Exception as error:
            raise _ours(error) from error

    def send_following(self, *words: str | bytes | int) -> Reply:
        """As `send`, but go where the cluster says the slot is served, and stay there for the next commands."""
        for _ in range(5):
            try:
                return self.send(*words)
            except Redirected as redirection:
                elsewhere = self.at(redirection.host, redirection.port)
                self.close()
                self._settings = elsewhere._settings
                self.asking = redirection.code == "ASK"
        return self.send(*words)

    def _exchange(self, *words: str | bytes | int) -> Reply:
        self.begin(*words)
        return self.finish()

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def pairs(reply: Reply) -> dict[str, Any]:
    """A map of the server by names, from RESP3 or from the flat array of RESP2. Values stay as they are."""
    items = reply.items() if isinstance(reply, Mapping) else zip(reply[::2], reply[1::2], strict=True)
    return {name.decode() if isinstance(name, bytes) else str(name): value for name, value in items}


def _ours(error: Exception) -> Exception:
    return translate(error, sent=False) or error


def is_clustered(session: Session) -> bool:
    """Whether the node runs in cluster mode. Raises EmqError when this user has no way to learn it."""
    try:
        return bool(pairs(session.send("HELLO")).get("mode") == b"cluster")
    except (Refused, PermissionDenied):
        # Valkey says server_mode, or redis_mode when it is set to look like the other.
        return b"_mode:cluster" in bytes(session.send("INFO", "server"))
