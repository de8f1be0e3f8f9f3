"""Files outlive the module: what was written with it loads without it, whole or cut off anywhere."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from emq_native.conformance.audit import examine, snapshot
from emq_native.conformance.host import CONFIG
from emq_native.conformance.lab import Lab
from emq_native.conformance.play import GROUPS, Play
from emq_native.conformance.wire import Error, Simple, Wire
from emq_native.executors import Executor
from emq_native.server import Server

CALLS = 250
CUT = Error("ERR Error trying to load the AOF files, check server logs.")
AOF = "appendonlydir/appendonly.aof.1.incr.aof"


@pytest.fixture
def protocol() -> int:
    """Files know nothing of protocol versions."""
    return 2


def digest(wire: Wire) -> str:
    return str(getattr(wire.call("DEBUG", "DIGEST"), "text", ""))


@pytest.fixture
def played(executor: Executor) -> Iterator[tuple[Server, Lab]]:
    """A server of its own on which a crowd has played."""
    with Server(module=executor.name == "native", config=CONFIG) as server:
        with Wire(server.url) as wire:
            wire.call("SET", "{emq}:version", executor.identity)
        with Lab(server.url, executor) as lab:
            play = Play(lab, seed=7)
            for _ in range(CALLS):
                play.step()
            lab.check()
            yield server, lab


def test_an_rdb_file_loads_without_the_module(played: tuple[Server, Lab], tmp_path: Path) -> None:
    server, lab = played
    before = digest(lab.control)
    lab.plain("SAVE")
    shutil.copy(os.path.join(server.directory, "dump.rdb"), tmp_path)
    with (
        Server(binary=server.binary, module=False, directory=tmp_path, config={"enable-debug-command": "yes"}) as other,
        Wire(other.url) as wire,
    ):
        assert digest(wire) == before


def test_an_append_only_file_loads_without_the_module(played: tuple[Server, Lab], tmp_path: Path) -> None:
    server, lab = played
    before = digest(lab.control)
    shutil.copytree(os.path.join(server.directory, "appendonlydir"), tmp_path / "appendonlydir")
    with (
        Server(binary=server.binary, module=False, directory=tmp_path, config=CONFIG) as other,
        Wire(other.url) as wire,
    ):
        assert digest(wire) == before


def test_a_rewritten_append_only_file_loads_without_the_module(played: tuple[Server, Lab], tmp_path: Path) -> None:
    server, lab = played
    before = digest(lab.control)
    lab.plain("CONFIG", "SET", "aof-use-rdb-preamble", "no")
    lab.plain("BGREWRITEAOF")
    lab.until(lambda: lab.info("persistence")["aof_rewrite_in_progress"] == "0", "the rewrite is over")
    shutil.copytree(os.path.join(server.directory, "appendonlydir"), tmp_path / "appendonlydir")
    with (
        Server(binary=server.binary, module=False, directory=tmp_path, config=CONFIG) as other,
        Wire(other.url) as wire,
    ):
        assert digest(wire) == before


def test_files_written_without_the_module_load_with_it(tmp_path: Path) -> None:
    with Server(module=False, config=CONFIG) as server:
        with Wire(server.url) as wire:
            wire.call("HSET", "emq:{q}:job:JOB0EEMl9I7Qw4", "state", "pending", "attempts", "0", "payload", "p")
            wire.call("ZADD", "emq:{q}:pending", "0", "JOB0EEMl9I7Qw4")
            wire.call("SET", "{emq}:version", "echomq:6.0.0")
            before = digest(wire)
        shutil.copytree(os.path.join(server.directory, "appendonlydir"), tmp_path / "appendonlydir")
    with Server(directory=tmp_path, config=CONFIG) as other, Wire(other.url) as wire:
        assert digest(wire) == before
        assert wire.call("EMQ.CLAIM", "emq:{q}", 1000) == [b"JOB0EEMl9I7Qw4", b"p", 1]


def test_an_append_only_file_cut_at_any_command_loads_to_a_sound_queue(played: tuple[Server, Lab]) -> None:
    server, lab = played
    whole = Path(server.directory, AOF).read_bytes()
    config = {**CONFIG, "aof-load-truncated": "yes"}
    with Server(binary=server.binary, module=False, config=config) as other, Wire(other.url) as wire:
        target = Path(other.directory, AOF)
        for cut, in_transaction in boundaries(whole):
            target.write_bytes(whole[:cut])
            # Of a cut transaction the server takes nothing, and says so by an error when it is not starting.
            assert wire.call("DEBUG", "LOADAOF") == (CUT if in_transaction else Simple("OK"))
            findings = examine(snapshot(wire, lab.q.encode()), lowered=GROUPS)
            assert findings == [], f"cut after byte {cut}: {whole[max(0, cut - 300) : cut]!r}"
        assert cut == len(whole)
        assert digest(wire) == digest(lab.control)


def boundaries(aof: bytes) -> list[tuple[int, bool]]:
    """Where each command of an append-only file ends, and whether a transaction is open there."""
    ends = []
    position = 0
    in_transaction = False
    while position < len(aof):
        head = re.compile(rb"(?:#[^\r\n]*\r\n)*\*(\d+)\r\n").match(aof, position)
        assert head is not None, aof[position : position + 80]
        position = head.end()
        name = aof[position : position + 15].split(b"\r\n")[1].lower()
        in_transaction = name == b"multi" or (in_transaction and name != b"exec")
        for _ in range(int(head[1])):
            size = re.compile(rb"\$(\d+)\r\n").match(aof, position)
            assert size is not None
            position = size.end() + int(size[1]) + 2
        ends.append((position, in_transaction))
    return ends


def test_no_verb_is_written_to_the_append_only_file(played: tuple[Server, Lab]) -> None:
    server, _ = played
    whole = Path(server.directory, AOF).read_bytes()
    names = {name.lower() for name in re.findall(rb"\*\d+\r\n\$\d+\r\n([^\r]+)\r\n", whole)}
    effects = {
        b"del",
        b"hset",
        b"hdel",
        b"set",
        b"zadd",
        b"zrem",
        b"sadd",
        b"srem",
        b"rpush",
        b"lpush",
        b"lrem",
        b"ltrim",
    }
    assert names <= effects | {b"multi", b"exec", b"select"}
