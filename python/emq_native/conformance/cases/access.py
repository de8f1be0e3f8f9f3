# SPDX-License-Identifier: BSD-3-Clause
"""Who may reach which queue: users limited by the server, and the fence of a cluster's queue."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..case import NATIVE, ONCE, OWN_SERVER, case, expect, expect_that
from ..lab import Lab
from ..scenes import READS, SCENES, flat
from ..wire import Error, Wire

SCRIPT_RIGHTS = [
    "+evalsha",
    "+eval",
    "+evalsha_ro",
    "+eval_ro",
    "+script|load",
    "+time",
    "+type",
    "+exists",
    "+publish",
    "+hset",
    "+hget",
    "+hmget",
    "+hgetall",
    "+hdel",
    "+hexists",
    "+hlen",
    "+zadd",
    "+zrem",
    "+zscore",
    "+zrange",
    "+zrangebyscore",
    "+zcard",
    "+sadd",
    "+srem",
    "+sismember",
    "+smembers",
    "+scard",
    "+rpush",
    "+lpush",
    "+lrange",
    "+lindex",
    "+lrem",
    "+ltrim",
    "+llen",
    "+lpos",
    "+del",
    "+get",
    "+set",
    "+hincrby",
    "+lmove",
    "+hstrlen",
    "+hkeys",
    "+zmscore",
    "+smismember",
]


@contextmanager
def user(lab: Lab, *rules: str) -> Iterator[Wire]:
    """A connection of a user who has these rights and no others."""
    lab.plain("ACL", "SETUSER", "limited", "reset", "on", ">secret", *rules)
    try:
        yield lab.connect(url=lab.url.replace("redis://", "redis://limited:secret@"))
    finally:
        lab.plain("ACL", "DELUSER", "limited")


@case("C146", "a user of one queue works there and reaches no other", needs=OWN_SERVER)
def one_queue(lab: Lab) -> None:
    native = lab.executor.name == "native"
    rights = ["+@emq"] if native else SCRIPT_RIGHTS
    own = lab.name
    for scene in (*SCENES, *READS):
        if not lab.serves(scene.verb):
            continue
        words = scene.prepare(lab)
        for pattern, allowed in ((f"~emq:{{{own}-other}}*", False), (f"~{lab.q}*", True)):
            with user(lab, *rights, "+hello", "+select", pattern, f"&{lab.key('events')}") as wire:
                if not allowed:
                    with lab.unchanged(f"{scene} of a foreign queue"):
                        reply = lab.send(scene.verb, *words, wire=wire)
                    expect_that(isinstance(reply, Error) and reply.code == "NOPERM", f"{scene} answers NOPERM", reply)
                else:
                    reply = lab.send(scene.verb, *words, wire=wire)
                    expect(flat(reply), scene.answer(lab), f"reply of {scene} to the user of the queue")
        lab.anew()


@case("C147", "in a cluster every queue has a fence of its own", needs=(OWN_SERVER, NATIVE, ONCE))
def cluster(lab: Lab) -> None:
    assert lab.own_server is not None
    with lab.own_server.another(config={"cluster-enabled": "yes"}) as server:
        server.own_slots()
        with Lab(server.url, lab.executor, lab.protocol, None, lab.prefix) as inside:
            expect(inside.cluster, True, "cluster mode")
            for scene in SCENES:
                if not inside.serves(scene.verb):
                    continue
                words = scene.prepare(inside)
                inside.plain("DEL", inside.fence)
                text = f"EMQFENCE wants echomq:6.0.0 at {inside.key('version')}, found nothing"
                inside.refused(text, scene.verb, *words)
                inside.plain("SET", inside.fence, "echomq:4.0.0")
                inside.refused(text.replace("nothing", "echomq:4.0.0"), scene.verb, *words)
                inside.plain("SET", inside.fence, "echomq:6.0.0")
                expect(flat(inside.send(scene.verb, *words)), scene.answer(inside), f"reply of {scene} with the fence")
                inside.anew()
