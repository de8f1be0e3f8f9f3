# SPDX-License-Identifier: BSD-3-Clause
"""A RESP client that hides nothing.

Client libraries turn replies into what is comfortable: a map becomes a dict on both protocols, an error an exception,
a simple string the same bytes as a bulk string. The contract is about exactly these differences, so the conformance
cases read the wire themselves. Every kind of reply has one Python type of its own:

    integer         int             bulk string     bytes           array       list
    null            None            simple string   Simple          map         Map
    error           Error           null array      NULL_ARRAY      the rest    Other

Out-of-band messages (push) never mix with replies: they are collected in `Wire.pushes`.
"""

from __future__ import annotations

import select
import socket
import ssl
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

if TYPE_CHECKING:
    from typing_extensions import Self

Word = str | bytes | int


@dataclass(frozen=True)
class Simple:
    """A simple string, `+text`."""

    text: str


@dataclass(frozen=True)
class Error:
    """An error line, `-text`. Errors are replies here and are never raised."""

    text: str

    @property
    def code(self) -> str:
        """The first word, the class on which clients match."""
        return self.text.split(" ", 1)[0]


@dataclass(frozen=True)
class NullArray:
    """The RESP2 null array, `*-1`; the contract never answers one."""


@dataclass(frozen=True)
class Map:
    """A RESP3 map, its pairs in the order in which they were sent."""

    pairs: tuple[tuple[Reply, Reply], ...]


@dataclass(frozen=True)
class Other:
    """A reply of any further RESP3 kind, named by its first byte: double `,`, boolean `#`, set `~` and so on."""

    kind: str
    value: object


Reply = int | bytes | None | Simple | Error | NullArray | Map | Other | list["Reply"]

NULL_ARRAY: Final = NullArray()


class WireLost(ConnectionError):
    """The server takes no connection, closed it, or did not answer in time."""


def word(value: Word) -> bytes:
    """The bytes that stand for a value in a command; text is UTF-8, an integer its plain decimal."""
    if isinstance(value, bytes):
        return value
    return str(value).encode()


def encode(words: Iterable[Word]) -> bytes:
    """One command as the array of bulk strings that a server reads."""
    parts = [word(item) for item in words]
    frame = [b"*%d\r\n" % len(parts)]
    frame += [b"$%d\r\n%b\r\n" % (len(part), part) for part in parts]
    return b"".join(frame)


@dataclass(frozen=True)
class Address:
    """Where a URL points to: redis, rediss, valkey, valkeys (TCP, the `s` with TLS) or unix."""

    host: str
    port: int
    path: str | None
    tls: bool
    username: str | None
    password: str | None
    database: int
    verify: bool

    @classmethod
    def parse(cls, url: str) -> Address:
        """Read a URL. Raises ValueError for a scheme that is none of the five."""
        parts = urlsplit(url)
        query = parse_qs(parts.query)
        if parts.scheme not in ("redis", "rediss", "valkey", "valkeys", "unix"):
            raise ValueError(f"cannot connect to {url!r}: the scheme must be redis, rediss, valkey, valkeys or unix")
        on_disk = parts.scheme == "unix"
        database = query["db"][0] if "db" in query else ("" if on_disk else parts.path.strip("/"))
        return cls(
            host=parts.hostname or "127.0.0.1",
            port=parts.port or 6379,
            path=unquote(parts.path) if on_disk else None,
            tls=parts.scheme in ("rediss", "valkeys"),
            username=_part(parts, "username"),
            password=_part(parts, "password"),
            database=int(database or 0),
            verify=query.get("ssl_cert_reqs", ["required"])[0] != "none",
        )

    def __str__(self) -> str:
        """Where, without the password."""
        return self.path or f"{self.host}:{self.port}"


def _part(parts: SplitResult, name: str) -> str | None:
    value = getattr(parts, name)
    return None if value is None else unquote(value)


class Wire:
    """One connection, on one protocol version (2 or 3), authenticated and with its database selected.

    timeout: seconds to wait for the connection and for each reply; WireLost when they are over.
    """

    def __init__(self, url: str, protocol: int = 2, *, timeout: float = 10.0) -> None:
        self.url = url
        self.protocol = protocol
        self.timeout = timeout
        self.pushes: list[list[Reply]] = []
        self._address = Address.parse(url)
        self._buffer = bytearray()
        try:
            self._socket = self._open()
        except OSError as error:
            raise WireLost(f"cannot connect to {self._address}: {error}") from error
        self._introduce()

    def _open(self) -> socket.socket:
        address = self._address
        if address.path is not None:
            local = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            local.settimeout(self.timeout)
            local.connect(address.path)
            return local
        plain = socket.create_connection((address.host, address.port), timeout=self.timeout)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not address.tls:
            return plain
        context = ssl.create_default_context()
        if not address.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context.wrap_socket(plain, server_hostname=address.host)

    def _introduce(self) -> None:
        address = self._address
        hello: list[Word] = ["HELLO", self.protocol]
        if address.password is not None:
            hello += ["AUTH", address.username or "default", address.password]
        if self.protocol != 2 or address.password is not None:
            self._insist(*hello)
        if address.database:
            self._insist("SELECT", address.database)

    def _insist(self, *words: Word) -> None:
        reply = self.call(*words)
        if isinstance(reply, Error):
            self.close()
            raise WireLost(f"{self._address}: {word(words[0]).decode()} was refused: {reply.text}")

    def send(self, *words: Word) -> None:
        """Send one command and do not wait."""
        self._write(encode(words))

    def call(self, *words: Word) -> Reply:
        """Send one command and read its reply."""
        self.send(*words)
        return self.read()

    def pipeline(self, commands: Sequence[Sequence[Word]]) -> list[Reply]:
        """Send all commands in one write, then read one reply for each."""
        self._write(b"".join(encode(command) for command in commands))
        return [self.read() for _ in commands]

    def read(self, timeout: float | None = None) -> Reply:
        """The next reply; pushes that come before it are put aside."""
        deadline = time.monotonic() + (self.timeout if timeout is None else timeout)
        while True:
            reply = self._parse(deadline)
            if isinstance(reply, Other) and reply.kind == ">":
                assert isinstance(reply.value, list)
                self.pushes.append(reply.value)
                continue
            return reply

    def quiet(self, seconds: float) -> bool:
        """Whether nothing arrives for this long."""
        return not self._buffer and not select.select([self._socket], [], [], seconds)[0]

    def close(self) -> None:
        """End the connection; safe to repeat."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, data: bytes) -> None:
        try:
            self._socket.settimeout(self.timeout)
            self._socket.sendall(data)
        except OSError as error:
            raise WireLost(f"the connection to {self._address} broke while sending: {error}") from error

    def _fill(self, deadline: float) -> None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise WireLost(f"no reply from {self._address} in time")
        try:
            self._socket.settimeout(left)
            chunk = self._socket.recv(1 << 16)
        except TimeoutError as error:
            raise WireLost(f"no reply from {self._address} in time") from error
        except OSError as error:
            raise WireLost(f"the connection to {self._address} broke: {error}") from error
        if not chunk:
            raise WireLost(f"{self._address} closed the connection")
        self._buffer += chunk

    def _line(self, deadline: float) -> bytes:
        while (end := self._buffer.find(b"\r\n")) < 0:
            self._fill(deadline)
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        return line

    def _bulk(self, size: int, deadline: float) -> bytes:
        while len(self._buffer) < size + 2:
            self._fill(deadline)
        data = bytes(self._buffer[:size])
        del self._buffer[: size + 2]
        return data

    def _parse(self, deadline: float) -> Reply:
        line = self._line(deadline)
        kind, rest = line[:1].decode("latin-1"), line[1:]
        if kind == ":":
            return int(rest)
        if kind == "$":
            return None if rest == b"-1" else self._bulk(int(rest), deadline)
        if kind == "*":
            return NULL_ARRAY if rest == b"-1" else [self._parse(deadline) for _ in range(int(rest))]
        if kind == "+":
            return Simple(rest.decode("utf-8", "backslashreplace"))
        if kind == "-":
            return Error(rest.decode("utf-8", "backslashreplace"))
        if kind == "_":
            return None
        if kind == "%":
            return Map(tuple((self._parse(deadline), self._parse(deadline)) for _ in range(int(rest))))
        if kind in "~>":
            return Other(kind, [self._parse(deadline) for _ in range(int(rest))])
        if kind in "=!":
            return Other(kind, self._bulk(int(rest), deadline))
        if kind in ",#(":
            return Other(kind, rest)
        raise WireLost(f"{self._address} sent a reply of no known kind: {line[:64]!r}")
