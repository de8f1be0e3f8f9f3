# SPDX-License-Identifier: BSD-3-Clause
"""The fence: who may write on a node, what the connector does about it, and what the module refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier
from typing import Any

import emq_native

from ...errors import EmqError, PermissionDenied, Unavailable, WireMismatch, WireRefused, WireUnclaimed
from ...provision import claim, move
from ..case import NATIVE, ONCE, OWN_SERVER, SCRIPTED, Mismatch, case, expect, expect_that
from ..lab import Lab
from ..scenes import READS, SCENES
from ..wire import Error, Reply, Wire

WIRE_4 = "echomq:4.0.0"
WIRE_6 = "echomq:6.0.0"


@contextmanager
def raises(kind: type[EmqError], what: str) -> Iterator[list[EmqError]]:
    """Demand an exception of this kind; it is put into the list that the block gets."""
    caught: list[EmqError] = []
    try:
        yield caught
    except kind as error:
        caught.append(error)
        return
    except Exception as error:
        raise Mismatch(what, kind.__name__, repr(error)) from error
    raise Mismatch(what, kind.__name__, "no exception")


def first_command(lab: Lab, wire: int, url: str | None = None) -> None:
    """Connect on a wire and run one command of a caller."""
    with emq_native.connect(url or lab.url, wire=wire) as bus:
        bus.queue(lab.name).counts()


@contextmanager
def watched(lab: Lab) -> Iterator[list[str]]:
    """What clients send while the block runs, as MONITOR shows it, without the commands of the lab itself."""
    wire = lab.connect(2)
    own = lab.connections()
    addresses = [client["addr"] for client in clients(lab) if client["id"] in own]
    expect(str(getattr(wire.call("MONITOR"), "text", "")), "OK", "reply of MONITOR")
    seen: list[str] = []
    yield seen
    lab.plain("ECHO", "the end of the block")
    while True:
        line = getattr(wire.read(), "text", "")
        if "the end of the block" in line:
            break
        if not any(f" {address}]" in line for address in addresses):
            seen.append(line.partition("] ")[2])
    wire.close()


def clients(lab: Lab) -> list[dict[str, str]]:
    """CLIENT LIST as dicts."""
    reply = lab.plain("CLIENT", "LIST")
    assert isinstance(reply, bytes)
    return [dict(part.partition("=")[::2] for part in line.split(" ")) for line in reply.decode().splitlines()]


def identity(lab: Lab) -> str:
    return lab.executor.identity


def wire_number(lab: Lab) -> int:
    return lab.executor.wire


@case("C001", "a connector passes on its own identity, and claims a free node on wire 4 only", needs=(OWN_SERVER, ONCE))
def own(lab: Lab) -> None:
    with lab.unchanged("connecting with the own identity"):
        first_command(lab, wire_number(lab))
    if wire_number(lab) == 4:
        with lab.fence_as(None):
            first_command(lab, 4)
            expect(lab.plain("GET", lab.fence), WIRE_4.encode(), "the fence after connecting")
            expect(lab.plain("PTTL", lab.fence), -1, "TTL of the fence")


@case("C002", "wire 4 refuses a node of wire 6 before any command of a caller", needs=(OWN_SERVER, ONCE))
def other(lab: Lab) -> None:
    with lab.fence_as(WIRE_6), lab.unchanged("a refused connect"), watched(lab) as seen:
        with raises(WireMismatch, "connecting on wire 4") as caught:
            first_command(lab, 4)
        expect_that(WIRE_4 in str(caught[0]) and WIRE_6 in str(caught[0]), "both identities are named", str(caught[0]))
    expect([line for line in seen if lab.name in line or "EVAL" in line.upper()], [], "commands of the caller")


@case("C003", "wire 6 refuses a node that nobody claimed and writes nothing", needs=(OWN_SERVER, ONCE))
def unclaimed(lab: Lab) -> None:
    with lab.fence_as(None), lab.unchanged("a refused connect"):
        with raises(WireUnclaimed, "connecting on wire 6"):
            first_command(lab, 6)
        expect(lab.plain("EXISTS", lab.fence), 0, "the fence exists")


@case("C004", "a verdict is asked for again on every reconnect", needs=(OWN_SERVER, ONCE))
def reconnect(lab: Lab) -> None:
    with emq_native.connect(lab.url, wire=wire_number(lab)) as bus:
        queue = bus.queue(lab.name)
        queue.counts()
        with lab.fence_as("echomq:5.0.0"):
            for client in clients(lab):
                if client["id"] not in lab.connections():
                    lab.plain("CLIENT", "KILL", "ID", client["id"])
            refused = False
            for _ in range(3):
                try:
                    queue.counts()
                except WireMismatch:
                    refused = True
                    break
                except Unavailable:
                    continue
            expect(refused, True, "WireMismatch after the reconnect")


@case("C005", "a fence that is no string is a mismatch", needs=(OWN_SERVER, ONCE))
def no_string(lab: Lab) -> None:
    with lab.fence_as(None):
        lab.plain("RPUSH", lab.fence, "x")
        for wire in (4, 6):
            with lab.unchanged("a refused connect"), raises(WireMismatch, f"connecting on wire {wire}") as caught:
                first_command(lab, wire)
            expect_that("(not a string)" in str(caught[0]), "the text names what was found", str(caught[0]))


@case("C006", "a loading server gives no verdict, and passes once it has loaded", needs=(OWN_SERVER, ONCE))
def loading(lab: Lab) -> None:
    assert lab.own_server is not None
    # It takes 20 s, and looks at its connections after every key.
    slow: dict[str, str | int] = {
        "key-load-delay": 5_000,
        "loading-process-events-interval-bytes": 1024,
        "rdbcompression": "no",
    }
    with lab.own_server.another(config=slow) as server:
        wire = lab.connect(2, server.url)
        wire.call("SET", lab.fence, identity(lab))
        wire.pipeline([["SET", f"filler:{number}", "x" * 1024] for number in range(4000)])
        wire.call("BGREWRITEAOF")  # a server that loads a snapshot looks at its connections more often
        lab.until(lambda: "aof_rewrite_in_progress:0" in str(wire.call("INFO", "persistence")), "the rewrite is over")
        wire.close()
        server.restart(ready=False)
        probe = Wire(server.url)
        expect_that(_code(probe.call("GET", lab.fence)) == "LOADING", "the server is loading")
        with raises(Unavailable, "connecting while the server loads") as caught:
            first_command(lab, wire_number(lab), server.url)
        expect_that(not isinstance(caught[0], WireRefused), "no verdict", repr(caught[0]))
        probe.call("CONFIG", "SET", "key-load-delay", 0)
        lab.until(lambda: _code(probe.call("GET", lab.fence)) != "LOADING", "the server has loaded", timeout=30)
        probe.close()
        first_command(lab, wire_number(lab), server.url)


def _code(reply: Reply) -> str | None:
    return reply.code if isinstance(reply, Error) else None


@case("C007", "a user who may not read the fence gets a permission error and no verdict", needs=(OWN_SERVER, ONCE))
def denied(lab: Lab) -> None:
    lab.plain("ACL", "SETUSER", "blind", "reset", "on", ">secret", "+@all", f"~emq:{{{lab.name}}}*")
    try:
        url = lab.url.replace("redis://", "redis://blind:secret@")
        with lab.unchanged("a connect without the right to read"), raises(PermissionDenied, "connecting"):
            first_command(lab, wire_number(lab), url)
    finally:
        lab.plain("ACL", "DELUSER", "blind")


@case("C008", "a replica without a fence is not claimed", needs=(OWN_SERVER, SCRIPTED, ONCE))
def replica(lab: Lab) -> None:
    assert lab.own_server is not None
    with lab.own_server.another() as primary, lab.own_server.another() as follower, follower.client() as client:
        client.replicaof("127.0.0.1", str(primary.port))
        lab.until(lambda: client.info("replication")["master_link_status"] == "up", "the link is up", timeout=30)
        with raises(Unavailable, "connecting to a replica") as caught:
            first_command(lab, 4, follower.url)
        expect_that("READONLY" in str(caught[0]), "the error is that of the server", str(caught[0]))
        expect(client.exists(lab.fence), 0, "the fence exists")


@case("C009", "of two that claim a node at once one wins and the other refuses", needs=(OWN_SERVER, ONCE))
def race(lab: Lab) -> None:
    for _ in range(20):
        with lab.fence_as(None):
            barrier = Barrier(2)
            with ThreadPoolExecutor(2) as pool:
                connector = pool.submit(_outcome, barrier, lambda: first_command(lab, 4))
                operator = pool.submit(_outcome, barrier, lambda: claim(lab.url, wire=6))
                refused, claimed = connector.result(), operator.result()
            found = lab.plain("GET", lab.fence)
            if found == WIRE_4.encode():
                expect(refused, None, "the connector that won")
                expect(getattr(claimed, "wire", claimed), 4, "what the claim that lost finds")
            else:
                expect(found, WIRE_6.encode(), "the fence")
                expect_that(isinstance(refused, WireMismatch), "the connector that lost refuses", refused)
                expect(getattr(claimed, "wire", claimed), 6, "what the claim that won finds")


def _outcome(barrier: Barrier, step: Callable[[], Any]) -> Any:
    barrier.wait()
    try:
        return step()
    except EmqError as error:
        return error


@case("C010", "without a fence the module refuses to write and says where it looked", needs=(OWN_SERVER, NATIVE))
def absent(lab: Lab) -> None:
    with lab.fence_as(None):
        lab.refused(f"EMQFENCE wants {WIRE_6} at {{emq}}:version, found nothing", "enqueue", lab.a, "p")
    with lab.fence_as(""):
        lab.refused(f"EMQFENCE wants {WIRE_6} at {{emq}}:version, found an empty string", "enqueue", lab.a, "p")
    with lab.fence_as(None):
        lab.plain("RPUSH", lab.fence, "x")
        text = f"EMQFENCE wants {WIRE_6} at {{emq}}:version, found a key that is no string"
        lab.refused(text, "enqueue", lab.a, "p")


@case("C011", "under the fence of wire 4 the module refuses every writing verb", needs=(OWN_SERVER, NATIVE))
def foreign(lab: Lab) -> None:
    for scene in SCENES:
        if lab.serves(scene.verb):
            words = scene.prepare(lab)
            with lab.fence_as(WIRE_4):
                lab.refused(f"EMQFENCE wants {WIRE_6} at {{emq}}:version, found {WIRE_4}", scene.verb, *words)
            lab.anew()


@case("C012", "a damaged fence is shown shortened and on one line", needs=(OWN_SERVER, NATIVE))
def damaged(lab: Lab) -> None:
    shown = {
        b"a\nb" + b"x" * 97: "a?b" + "x" * 61,
        b"\0\x1f\x20~\x7f\xff": "?? ~??",
        b"x" * 64: "x" * 64,
        b"x" * 65: "x" * 64,
        b" " + WIRE_6.encode(): " " + WIRE_6,
        WIRE_6.encode() + b"\n": WIRE_6 + "?",
        WIRE_6.encode() + b".1": WIRE_6 + ".1",
        b"echomq:6.0": "echomq:6.0",
        b"ECHOMQ:6.0.0": "ECHOMQ:6.0.0",
        b"6": "6",
    }
    for value, text in shown.items():
        with lab.fence_as(value):
            lab.refused(f"EMQFENCE wants {WIRE_6} at {{emq}}:version, found {text}", "enqueue", lab.a, "p")


@case("C013", "looking needs no fence", needs=(OWN_SERVER, NATIVE))
def readers(lab: Lab) -> None:
    for scene in READS:
        if lab.serves(scene.verb):
            words = scene.prepare(lab)
            for fence in (None, WIRE_4, ""):
                with lab.fence_as(fence), lab.unchanged(f"{scene} under the fence {fence!r}"):
                    reply = lab.send(scene.verb, *words)
                    expect_that(not isinstance(reply, Error), f"{scene} is answered", reply)
            lab.anew()
    with lab.fence_as(None):
        expect(lab.fields(lab.send("version"))[b"node"], None, "node of VERSION")
        expect_that(isinstance(lab.send("tra.capabilities"), list), "TRA.CAPABILITIES is answered")
        lab.plain("RPUSH", lab.fence, "x")
        expect(lab.fields(lab.send("version"))[b"node"], None, "node of VERSION when the fence is a list")


@case("C014", "the fence of one database says nothing about another", needs=(OWN_SERVER, NATIVE))
def database(lab: Lab) -> None:
    wire = lab.connect()
    expect(getattr(wire.call("SELECT", 1), "text", None), "OK", "SELECT")
    with lab.unchanged("ENQUEUE in database 1"):
        reply = lab.send("enqueue", lab.a, "p", wire=wire)
        expect(reply, Error(f"EMQFENCE wants {WIRE_6} at {{emq}}:version, found nothing"), "reply of ENQUEUE")
    expect(lab.fields(lab.send("version", wire=wire))[b"node"], None, "node of VERSION in database 1")


@case("C015", "a fence that is not the old identity is not moved", needs=(OWN_SERVER, ONCE))
def not_moved(lab: Lab) -> None:
    with lab.fence_as(WIRE_6), lab.unchanged("a move that must not happen"):
        moved, found = move(lab.url, source=4, to=6)
        expect(moved, False, "outcome of the move")
        expect(found.value, WIRE_6, "what the move found")
