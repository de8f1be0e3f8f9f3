"""The suite's own client: it keeps every kind of reply apart and reaches a server by every kind of URL."""

from __future__ import annotations

import os
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from emq_native.conformance.wire import (
    NULL_ARRAY,
    Address,
    Error,
    Map,
    Other,
    Reply,
    Simple,
    Wire,
    WireLost,
    encode,
)
from emq_native.server import Server

CERTIFICATE = Path(__file__).with_name("localhost.pem")
"""For localhost, signed by itself, good for nothing but this test."""


class Scripted:
    """A server that answers each connection with fixed bytes and keeps what it read."""

    def __init__(self, answer: bytes, context: ssl.SSLContext | None = None) -> None:
        self.answer = answer
        self.context = context
        self.read = b""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                plain, _ = self._listener.accept()
                connection = self.context.wrap_socket(plain, server_side=True) if self.context else plain
                self.read += connection.recv(1 << 16)
                for byte in self.answer:
                    connection.sendall(bytes([byte]))
                connection.close()
            except OSError:
                return

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()


@pytest.fixture
def answering() -> Iterator[list[Scripted]]:
    made: list[Scripted] = []
    yield made
    for server in made:
        server.close()


REPLIES: list[tuple[bytes, Reply]] = [
    (b":7\r\n", 7),
    (b":-1\r\n", -1),
    (b"$3\r\na\r\n\r\n", b"a\r\n"),
    (b"$0\r\n\r\n", b""),
    (b"$-1\r\n", None),
    (b"_\r\n", None),
    (b"*-1\r\n", NULL_ARRAY),
    (b"*0\r\n", []),
    (b"*2\r\n:1\r\n*1\r\n$1\r\nx\r\n", [1, [b"x"]]),
    (b"+OK\r\n", Simple("OK")),
    (b"-EMQSTALE job gone\r\n", Error("EMQSTALE job gone")),
    (b"%1\r\n$1\r\nk\r\n:1\r\n", Map(((b"k", 1),))),
    (b"~1\r\n:1\r\n", Other("~", [1])),
    (b",1.5\r\n", Other(",", b"1.5")),
    (b"#t\r\n", Other("#", b"t")),
    (b"(123\r\n", Other("(", b"123")),
    (b"=5\r\ntxt:x\r\n", Other("=", b"txt:x")),
    (b"!5\r\nERR x\r\n", Other("!", b"ERR x")),
]


@pytest.mark.parametrize(("sent", "expected"), REPLIES, ids=lambda value: repr(value)[:30])
def test_every_kind_of_reply_has_a_type_of_its_own(answering: list[Scripted], sent: bytes, expected: Reply) -> None:
    answering.append(Scripted(sent))
    with Wire(f"redis://127.0.0.1:{answering[0].port}") as wire:
        found = wire.call("PING")
    assert found == expected
    assert type(found) is type(expected)


def test_no_two_kinds_are_equal() -> None:
    values = [reply for sent, reply in REPLIES if sent != b"_\r\n"]
    assert all(one != other for i, one in enumerate(values) for j, other in enumerate(values) if i != j)


def test_pushes_are_put_aside(answering: list[Scripted]) -> None:
    answering.append(Scripted(b">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n:1\r\n"))
    with Wire(f"redis://127.0.0.1:{answering[0].port}") as wire:
        assert wire.call("PING") == 1
        assert wire.pushes == [[b"invalidate", [b"k"]]]


def test_a_broken_or_silent_server_is_lost(answering: list[Scripted]) -> None:
    answering.append(Scripted(b"$5\r\nab"))
    with Wire(f"redis://127.0.0.1:{answering[0].port}") as wire, pytest.raises(WireLost, match="closed"):
        wire.call("PING")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        wire = Wire(f"redis://127.0.0.1:{silent.getsockname()[1]}", timeout=0.05)
        with pytest.raises(WireLost, match="in time"):
            wire.call("PING")
        wire.close()


def test_garbage_is_refused(answering: list[Scripted]) -> None:
    answering.append(Scripted(b"?what\r\n"))
    with Wire(f"redis://127.0.0.1:{answering[0].port}") as wire, pytest.raises(WireLost, match="no known kind"):
        wire.call("PING")


@pytest.mark.parametrize("scheme", ["rediss", "valkeys"])
def test_tls_is_spoken_and_the_certificate_verified(answering: list[Scripted], scheme: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    answering.append(Scripted(b"+PONG\r\n", context))
    with Wire(f"{scheme}://localhost:{answering[0].port}/0?ssl_cert_reqs=none") as wire:
        assert wire.call("PING") == Simple("PONG")
    answering.append(Scripted(b"+PONG\r\n", context))
    with pytest.raises(WireLost, match="CERTIFICATE_VERIFY_FAILED"):
        Wire(f"{scheme}://localhost:{answering[1].port}/0")


def test_a_server_is_reached_by_unix_socket_password_and_database() -> None:
    with Server(module=False, config={"requirepass": "p:w@d"}, unix_socket=True) as server:
        assert server.socket is not None
        for base in (f"redis://:p%3Aw%40d@127.0.0.1:{server.port}/3", f"unix://:p%3Aw%40d@{server.socket}?db=3"):
            for protocol in (2, 3):
                with Wire(base, protocol) as wire:
                    assert b"db=3 " in _info(wire)
                    assert f"resp={protocol}".encode() in _info(wire)
        with pytest.raises(WireLost, match="WRONGPASS"):
            Wire(f"valkey://:wrong@127.0.0.1:{server.port}")
        with pytest.raises(WireLost, match="SELECT was refused"):
            Wire(f"valkey://:p%3Aw%40d@127.0.0.1:{server.port}/99")
        assert os.path.exists(server.socket)


def _info(wire: Wire) -> bytes:
    reply = wire.call("CLIENT", "INFO")
    text = reply.value if isinstance(reply, Other) else reply
    assert isinstance(text, bytes)
    return text


@pytest.mark.parametrize("url", ["http://127.0.0.1", "127.0.0.1:6379", ""])
def test_another_scheme_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="scheme"):
        Address.parse(url)


def test_a_command_is_an_array_of_bulk_strings() -> None:
    assert encode(["SET", b"\0", 5]) == b"*3\r\n$3\r\nSET\r\n$1\r\n\0\r\n$1\r\n5\r\n"
