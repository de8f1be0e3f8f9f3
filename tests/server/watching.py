"""What the connector tests of both kinds look at: who is connected, and what each connection sent first."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import redis

from emq_native.server import Server

HANDSHAKE = {"hello", "client", "select", "auth", "readonly"}
_LINE = re.compile(r"^\+[\d.]+ \[\d+ (\S+)\] (.*)$")
_WORD = re.compile(r'"((?:[^"\\]|\\.)*)"')


def others(client: redis.Redis, db: int | None = None) -> set[int]:
    """The ids of all connections but that of `client`; with db, of those that have selected it."""
    own = client.client_id()
    return {int(each["id"]) for each in client.client_list() if db is None or int(each["db"]) == db} - {own}


def cut(client: redis.Redis, ids: set[int]) -> None:
    """End these connections from the server's side."""
    for number in ids:
        client.execute_command("CLIENT", "KILL", "ID", number)


class Watch:
    """What MONITOR saw, by connection: `firsts()` are the first commands of each after its handshake."""

    def __init__(self) -> None:
        self.commands: dict[str, list[list[str]]] = {}

    def firsts(self) -> list[list[str]]:
        after = ([words for words in each if words[0].lower() not in HANDSHAKE] for each in self.commands.values())
        return [words[0] for words in after if words]


@contextmanager
def watching(server: Server) -> Iterator[Watch]:
    """Watch every connection but those that were there before, for as long as the block runs."""
    watch = Watch()
    with server.client() as control, socket.create_connection(("127.0.0.1", server.port)) as monitor:
        monitor.sendall(b"*1\r\n$7\r\nMONITOR\r\n")
        stream = monitor.makefile("rb")
        assert stream.readline() == b"+OK\r\n"
        known = {each["addr"] for each in control.client_list()}
        yield watch
        control.execute_command("PING", "the end")
        while "the end" not in (line := stream.readline().decode()):
            if (found := _LINE.match(line)) and found.group(1) not in {*known, "lua"}:
                watch.commands.setdefault(found.group(1), []).append(_WORD.findall(found.group(2)))
