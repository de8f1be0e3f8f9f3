"""What the server itself guards before a verb runs: replicas, memory, and rights."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from emq_native.conformance.host import CONFIG, OwnServer
from emq_native.conformance.lab import Lab
from emq_native.conformance.scenes import READS, SCENES, VERBS, Scene, flat
from emq_native.conformance.wire import Error, Wire
from emq_native.executors import NATIVE, Executor
from emq_native.server import Server

writers = pytest.mark.parametrize("scene", SCENES, ids=str)
readers = pytest.mark.parametrize("scene", READS, ids=str)


@pytest.fixture
def protocol() -> int:
    """What the server refuses does not depend on the protocol version."""
    return 2


@pytest.fixture(scope="module")
def replicas() -> Iterator[dict[str, Server]]:
    """Started when first used: a replica of each server under test, with the module where its primary has it."""
    running: dict[str, Server] = {}
    yield running
    for server in running.values():
        server.stop()


@pytest.fixture
def replica(host: OwnServer, executor: Executor, replicas: dict[str, Server]) -> Server:
    if executor.name not in replicas:
        server = Server(module=host.native, config=CONFIG, replica_of=host.server)
        replicas[executor.name] = server.start()
    return replicas[executor.name]


def digest(wire: Wire) -> str:
    return str(getattr(wire.call("DEBUG", "DIGEST"), "text", ""))


def in_step(lab: Lab, follower: Wire) -> None:
    lab.until(lambda: digest(follower) == digest(lab.control), "the replica is equal to its primary")


def load_script(lab: Lab, verb: str, wire: Wire) -> None:
    frame = lab.executor.frame(f"emq.{verb}", [lab.q.encode()])
    if frame.script is not None:
        wire.call("SCRIPT", "LOAD", frame.script.source)


@writers
def test_a_replica_refuses_every_writing_verb_and_keeps_its_data(lab: Lab, replica: Server, scene: Scene) -> None:
    """case 52"""
    words = scene.prepare(lab)
    follower = lab.connect(2, replica.url)
    in_step(lab, follower)
    load_script(lab, scene.verb, follower)
    before = digest(follower)
    reply = lab.send(scene.verb, *words, wire=follower)
    assert isinstance(reply, Error)
    assert reply.code == "READONLY"
    assert digest(follower) == before == digest(lab.control)


@readers
def test_a_replica_answers_every_reading_verb(lab: Lab, replica: Server, scene: Scene) -> None:
    """case 52"""
    words = scene.prepare(lab)
    follower = lab.connect(2, replica.url)
    in_step(lab, follower)
    assert flat(lab.send(scene.verb, *words, wire=follower)) == scene.answer(lab)


@writers
def test_a_full_server_refuses_exactly_what_grows(lab: Lab, scene: Scene) -> None:
    words = scene.prepare(lab)
    lab.load(scene.verb)
    if VERBS[f"emq.{scene.verb}"].grows:
        with lab.unchanged(str(scene)), lab.full_memory():
            reply = lab.send(scene.verb, *words)
        assert isinstance(reply, Error)
        assert reply.code == "OOM"
    else:
        with lab.full_memory():
            assert flat(lab.send(scene.verb, *words)) == scene.answer(lab)


@readers
def test_a_full_server_still_answers_what_only_reads(lab: Lab, scene: Scene) -> None:
    words = scene.prepare(lab)
    lab.load(scene.verb)
    with lab.full_memory():
        assert flat(lab.send(scene.verb, *words)) == scene.answer(lab)


@pytest.fixture
def user(lab: Lab) -> Iterator[Callable[..., Wire]]:
    """Make a user with some rights and get a connection of theirs."""

    def make(*rights: str) -> Wire:
        lab.plain("ACL", "SETUSER", "limited", "reset", "on", ">secret", *rights)
        return lab.connect(url=lab.url.replace("redis://", "redis://limited:secret@"))

    yield make
    lab.plain("ACL", "DELUSER", "limited")


@writers
def test_the_right_to_read_keys_is_not_enough_to_write(lab: Lab, user: Callable[..., Wire], scene: Scene) -> None:
    """case 75"""
    words = scene.prepare(lab)
    lab.load(scene.verb)
    wire = user("+@all", f"%R~{lab.q}*", "&*")
    with lab.unchanged(str(scene)):
        reply = lab.send(scene.verb, *words, wire=wire)
    assert isinstance(reply, Error)
    assert reply.code == "NOPERM"


@readers
def test_the_right_to_read_keys_is_enough_to_look(lab: Lab, user: Callable[..., Wire], scene: Scene) -> None:
    """case 75"""
    words = scene.prepare(lab)
    lab.load(scene.verb)
    wire = user("+@all", f"%R~{lab.q}*")
    assert flat(lab.send(scene.verb, *words, wire=wire)) == scene.answer(lab)


@writers
def test_a_user_of_one_queue_cannot_touch_another(lab: Lab, user: Callable[..., Wire], scene: Scene) -> None:
    """case 75"""
    words = scene.prepare(lab)
    lab.load(scene.verb)
    wire = user("+@all", f"~emq:{{{lab.new_queue()}}}*", "&*")
    with lab.unchanged(str(scene)):
        reply = lab.send(scene.verb, *words, wire=wire)
    assert isinstance(reply, Error)
    assert reply.code == "NOPERM"


ROLES = {
    "producer": (
        ["+emq.enqueue", "+emq.schedule", "+emq.menqueue", "+emq.genqueue", "+emq.state"],
        ["enqueue", "schedule", "menqueue", "genqueue"],
    ),
    "worker": (
        ["+@emq", "-emq.obliterate", "-emq.drain", "-emq.gdrain", "-emq.pause", "-emq.resume", "-emq.remove"],
        ["claim", "complete", "retry", "delay", "extend", "promote", "reap", "gclaim", "progress", "log"],
    ),
    "operator": (["+@emq"], [verb.partition(".")[2] for verb in VERBS if VERBS[verb].writes]),
    "watcher": (["+@emq", "-@write"], []),
    "writer by the server's own category": (
        ["+@write"],
        [verb.partition(".")[2] for verb in VERBS if VERBS[verb].writes],
    ),
}


@pytest.mark.parametrize("executor", [NATIVE], ids=["native"])
@pytest.mark.parametrize("role", ROLES)
def test_a_role_may_do_exactly_what_its_rule_says(
    lab: Lab, user: Callable[..., Wire], executor: Executor, role: str
) -> None:
    """case 76"""
    rights, allowed = ROLES[role]
    for scene in SCENES:
        words = scene.prepare(lab)
        reply = lab.send(scene.verb, *words, wire=user(*rights, f"~{lab.q}*"))
        denied = isinstance(reply, Error) and reply.code == "NOPERM"
        if role in ("worker", "producer") and scene.verb not in allowed:
            assert denied == (f"-emq.{scene.verb}" in rights or role == "producer"), scene
        else:
            assert denied == (scene.verb not in allowed), scene
        lab.anew()
