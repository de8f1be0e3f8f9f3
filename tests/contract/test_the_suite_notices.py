"""The suite is worth its name only if it fails: for each verb an executor that does it wrongly must be found out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from emq_native.conformance import CASES, Outcome, judge
from emq_native.conformance.case import OWN_SERVER, full_name
from emq_native.conformance.lab import Lab
from emq_native.conformance.scenes import VERBS
from emq_native.conformance.wire import Error, Map, Reply, Wire, Word
from emq_native.executors import NATIVE, SCRIPTED
from emq_native.verbs import VERBS as PRODUCT

Send = Callable[..., Reply]
Wrong = Callable[[Lab, Send, Sequence[Word]], Reply]


def says_otherwise(lab: Lab, send: Send, words: Sequence[Word]) -> Reply:
    """Does the right thing and answers something else."""
    reply = send(words)
    if isinstance(reply, (bool, Error)):
        return reply
    if isinstance(reply, int):
        return reply + 1
    if isinstance(reply, bytes):
        return reply + b"x"
    if isinstance(reply, list):
        return [*reply, b"x"]
    if isinstance(reply, Map):
        return Map((*reply.pairs, (b"x", b"x")))
    return b"x"


def does_nothing(lab: Lab, send: Send, words: Sequence[Word]) -> Reply:
    """Answers well and has no effect at all."""
    before = {name: lab.control.call("DUMP", lab.key(name.decode())) for name in lab.data()}
    reply = send(words)
    for name in lab.data():
        if name not in before:
            lab.plain("DEL", lab.key(name.decode()))
    for name, dump in before.items():
        assert isinstance(dump, bytes)
        lab.plain("RESTORE", lab.key(name.decode()), 0, dump, "REPLACE")
    return reply


def leaves_a_trace(lab: Lab, send: Send, words: Sequence[Word]) -> Reply:
    """Does the right thing and writes one field too many, also when it refuses."""
    reply = send(words)
    lab.plain("HINCRBY", lab.key("metrics:failed"), "count", 1)
    return reply


def refuses_with_another_text(lab: Lab, send: Send, words: Sequence[Word]) -> Reply:
    """Answers every error with a text of its own."""
    reply = send(words)
    return Error("ERR " + reply.text) if isinstance(reply, Error) else reply


@pytest.mark.parametrize("wrong", [says_otherwise, does_nothing, leaves_a_trace, refuses_with_another_text])
@pytest.mark.parametrize("verb", sorted(VERBS))
def test_a_verb_that_is_wrong_is_found_out(
    verb: str, wrong: Wrong, servers: Callable[[str], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    if verb == "emq.version" or (wrong is does_nothing and not VERBS[verb].writes):
        return
    executor = SCRIPTED if PRODUCT[verb].scripted else NATIVE
    host = servers(executor.name)
    original = Lab.send_raw

    def send_raw(self: Lab, name: str, words: Sequence[Word], *, wire: Wire | None = None) -> Reply:
        def send(some: Sequence[Word]) -> Reply:
            return original(self, name, some, wire=wire)

        return wrong(self, send, words) if full_name(name) == verb and self.name in str(words) else send(words)

    monkeypatch.setattr(Lab, "send_raw", send_raw)
    for case in sorted(CASES.values(), key=lambda case: (verb not in case.verbs, case.number != "C023", case.number)):
        foreign = case.verbs and verb not in case.verbs
        if case.function is None or OWN_SERVER in case.needs or executor.name not in case.executors() or foreign:
            continue
        if judge(case, host.server.url, executor, 2, host).outcome is Outcome.FAIL:
            return
    pytest.fail(f"no case found out that {verb} {wrong.__doc__}", pytrace=False)
