# SPDX-License-Identifier: BSD-3-Clause
"""What travels to replicas and files, and that a verb answers the same wherever it is called from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..case import ONCE, OWN_SERVER, Mismatch, case, expect, expect_that
from ..lab import Lab
from ..play import Play
from ..scenes import IDLE, NATIVE_IDLE, NATIVE_SCENES, READS, REFUSALS, SCENES, Scene, flat
from ..wire import Error, Map, Reply, Wire


def digest(wire: Wire) -> str:
    """DEBUG DIGEST of a server."""
    return str(getattr(wire.call("DEBUG", "DIGEST"), "text", ""))


def served(lab: Lab, scenes: tuple[Scene, ...]) -> Iterator[Scene]:
    return (scene for scene in scenes if lab.serves(scene.verb))


@contextmanager
def beside(lab: Lab, url: str, protocol: int = 2) -> Iterator[Lab]:
    """A lab on another server of our own, its fence claimed for the executor under test."""
    wire = lab.connect(2, url)
    wire.call("SET", "{emq}:version", lab.executor.identity)
    with Lab(url, lab.executor, protocol, None, lab.prefix) as other:
        yield other


@case("C142", "a replica without the module follows every verb and never runs one", needs=OWN_SERVER)
def replica(lab: Lab) -> None:
    assert lab.own_server is not None
    with lab.own_server.another(module=False, replica=True) as server:
        follower, monitor = lab.connect(2, server.url), lab.connect(2, server.url)
        expect(getattr(monitor.call("MONITOR"), "text", None), "OK", "MONITOR on the replica")
        for scene in served(lab, (*SCENES, *NATIVE_SCENES)):
            words = scene.prepare(lab)
            expect(flat(lab.send(scene.verb, *words)), scene.answer(lab), f"reply of {scene}")
            _follow(lab, follower)
            expect(digest(follower), digest(lab.control), f"digest of the replica after {scene}")
            lab.anew()
        _follow(lab, follower)
        lab.plain("PUBLISH", "the-end", "x")
        seen = []
        while "the-end" not in (line := getattr(monitor.read(), "text", "")):
            seen.append(line.partition("] ")[2].split(" ", 1)[0].strip('"').lower())
        foreign = [word for word in seen if word.startswith(("emq.", "tra.", "eval", "fcall"))]
        expect(foreign, [], "verbs and scripts that reached the replica")
        plain = {
            "multi",
            "exec",
            "del",
            "hset",
            "hdel",
            "set",
            "zadd",
            "zrem",
            "sadd",
            "srem",
            "rpush",
            "lpush",
            "lrem",
        }
        own = {"ltrim", "publish", "select", "ping", "info", "debug", "rename", "hincrby", "replconf", "monitor"}
        expect(sorted(set(seen) - plain - own), [], "commands that reached the replica")


def _follow(lab: Lab, follower: Wire) -> None:
    def caught_up() -> bool:
        reply = follower.call("INFO", "replication")
        assert isinstance(reply, bytes)
        return f"slave_repl_offset:{lab.info('replication')['master_repl_offset']}\r".encode() in reply

    lab.until(caught_up, "the replica has caught up")


@case("C143", "an append-only file replayed later, without the module, gives the same data", needs=(OWN_SERVER, ONCE))
def replay(lab: Lab) -> None:
    assert lab.own_server is not None
    with lab.own_server.another() as server, beside(lab, server.url) as other:
        play = Play(other, seed=143)
        for _ in range(400):
            play.step()
        instant, before = other.now(), digest(other.control)
        server.kill()
        server.restart(module=False)
        wire = lab.connect(2, server.url)
        expect(digest(wire), before, "digest after the replay")
        lab.reach(instant + 50)
        wire.call("DEBUG", "LOADAOF")
        expect(digest(wire), before, "digest after a later replay")
        other.reconnect()


@case("C144", "refusals and no-ops move no replication offset", needs=OWN_SERVER)
def nothing_travels(lab: Lab) -> None:
    for scene in served(lab, (*IDLE, *NATIVE_IDLE)):
        words = scene.prepare(lab)
        with lab.unchanged(str(scene)):
            expect(flat(lab.send(scene.verb, *words)), scene.answer(lab), f"reply of {scene}")
        lab.anew()
    for refusal in REFUSALS:
        if lab.serves(refusal.verb):
            lab.refused(refusal.text, refusal.verb, *refusal.prepare(lab))
            lab.anew()


@case("C145", "a verb answers the same alone, in a pipeline, in MULTI and in Lua")
def contexts(lab: Lab) -> None:
    native = lab.executor.name == "native"
    ways = [lab.send, lab.in_pipeline, lab.in_multi, *([lab.in_lua] if native else [])]
    for scene in served(lab, (*SCENES, *NATIVE_SCENES, *READS, *IDLE, *NATIVE_IDLE)):
        for way in ways:
            words = scene.prepare(lab)
            reply = way(scene.verb, *words)
            what = f"reply of {scene} by {way.__name__}"
            if isinstance(scene.answer(lab), list) and scene.verb in ("counts", "peek"):
                is_map = native and lab.protocol == 3 and way != lab.in_lua
                expect_that(isinstance(reply, Map if is_map else list), f"form of the {what}", reply)
            _same(flat(reply), scene.answer(lab), what)
            lab.anew()
    for refusal in REFUSALS:
        if lab.serves(refusal.verb):
            for way in ways:
                words = refusal.prepare(lab)
                with lab.unchanged(f"{refusal} by {way.__name__}"):
                    expect(way(refusal.verb, *words), Error(refusal.text), f"reply of {refusal} by {way.__name__}")
                lab.anew()


def _same(found: Reply, expected: object, what: str) -> None:
    """Equality of value and type all the way down: an integer is never text, a bulk string never a simple one."""
    if isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        for position, (one, other) in enumerate(zip(found, expected, strict=True)):
            _same(one, other, f"{what}, element {position}")
    elif type(found) is not type(expected) or found != expected:
        raise Mismatch(what, expected, found)
