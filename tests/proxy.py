"""A TCP proxy before a server that misbehaves on order, and remembers every command that came through.

    with Proxy(server.port) as proxy:
        proxy.on("EMQ.CLAIM", lose_reply)            # carried out, but the answer never arrives
        proxy.on("GET", answer("LOADING ..."), times=2)
        redis.Redis(port=proxy.port)

Commands come one at a time on each connection, or as a pipeline that meets no rule but those that end the connection.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self

HOST = "127.0.0.1"


@dataclass
class Passage:
    """One connection through the proxy. `losing`: the next bytes from the server end it; `gate`: they wait for it."""

    client: socket.socket
    server: socket.socket
    number: int
    losing: bool = False
    gate: threading.Event | None = None

    def end(self) -> None:
        for each in (self.client, self.server):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


Action = Callable[[Passage], bool]
"""What happens to a command; True lets it through to the server."""


def lose_reply(passage: Passage) -> bool:
    """The server carries it out, then the connection ends without an answer."""
    passage.losing = True
    return True


def lose_command(passage: Passage) -> bool:
    """The connection ends, and the server never sees it."""
    passage.end()
    return False


def answer(line: str) -> Action:
    """The server never sees it; the proxy answers with this RESP line, for example "-LOADING x" or "+OK"."""

    def act(passage: Passage) -> bool:
        passage.client.sendall(line.encode() + b"\r\n")
        return False

    return act


def hold(gate: threading.Event) -> Action:
    """The server carries it out, and the answer waits for the event."""

    def act(passage: Passage) -> bool:
        passage.gate = gate
        return True

    return act


@dataclass
class Rule:
    verb: str
    action: Action
    times: int | None


@dataclass
class Proxy:
    """Listens on `port` of 127.0.0.1 while its block runs. `seen`: (number of the connection, words of the command)."""

    upstream: int
    seen: list[tuple[int, list[bytes]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._rules: list[Rule] = []
        self._lock = threading.Lock()
        self._passages: list[Passage] = []
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server((HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        self.url = f"redis://{HOST}:{self.port}/0"

    def on(self, verb: str, action: Action, *, times: int | None = 1) -> None:
        """The next `times` commands of this verb, or all with None, meet this action."""
        with self._lock:
            self._rules.append(Rule(verb, action, times))

    def sent(self, verb: str) -> int:
        """How often a command came through."""
        return sum(words[0].decode().upper() == verb for _, words in self.seen)

    def verbs(self) -> list[str]:
        """The verbs that came through, in order, without those of a handshake."""
        verbs = (words[0].decode().upper() for _, words in self.seen)
        return [verb for verb in verbs if verb not in ("HELLO", "CLIENT", "SELECT", "AUTH")]

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._threads[0].join()  # who came at the last moment is among those that end now
        for passage in self._passages:
            passage.end()
            if passage.gate is not None:
                passage.gate.set()
        for thread in self._threads:
            thread.join()
        for each in (self._listener, *(end for passage in self._passages for end in (passage.client, passage.server))):
            each.close()

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            passage = Passage(client, socket.create_connection((HOST, self.upstream)), len(self._passages))
            self._passages.append(passage)
            self._start(self._carry_commands, passage)
            self._start(self._carry_answers, passage)

    def _carry_commands(self, passage: Passage) -> None:
        stream = passage.client.makefile("rb")
        try:
            while head := stream.readline():
                raw, words = [head], []
                for _ in range(int(head[1:])):
                    length = stream.readline()
                    body = stream.read(int(length[1:]) + 2)
                    raw += [length, body]
                    words.append(body[:-2])
                self.seen.append((passage.number, words))
                action = self._action(words[0].decode().upper())
                if action is None or action(passage):
                    passage.server.sendall(b"".join(raw))
        except OSError:
            pass
        finally:
            stream.close()
            passage.end()

    def _carry_answers(self, passage: Passage) -> None:
        try:
            while data := passage.server.recv(65536):
                if passage.losing:
                    break
                if passage.gate is not None:
                    passage.gate.wait(30)
                    passage.gate = None
                passage.client.sendall(data)
        except OSError:
            pass
        finally:
            passage.end()

    def _action(self, verb: str) -> Action | None:
        with self._lock:
            for rule in self._rules:
                if rule.verb == verb and rule.times != 0:
                    if rule.times is not None:
                        rule.times -= 1
                    return rule.action
        return None
