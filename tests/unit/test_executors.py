"""Framing: what goes out for a verb, on either executor, whatever the words are."""

import hashlib

import pytest

from emq_native.errors import BadRequest
from emq_native.executors import NATIVE, SCRIPTED, Frame, executor_for
from emq_native.verbs import VERBS

QUEUE = b"emq:{q}"
A, B = b"JOB0EEMl9I7Qw4", b"JOB0EEMl9I7Qw5"


def keys(frame: Frame) -> list[bytes]:
    count = int(frame.argv[2])
    return list(frame.argv[3 : 3 + count])


def arguments(frame: Frame) -> list[bytes]:
    return list(frame.argv[3 + int(frame.argv[2]) :])


def declared(verb: str, *words: bytes) -> set[bytes]:
    names = keys(SCRIPTED.frame(verb, [QUEUE, *words]))
    assert names[0] == QUEUE
    return {name.removeprefix(QUEUE + b":") for name in names[1:]}


def test_a_wire_has_one_executor() -> None:
    assert executor_for(4) is SCRIPTED
    assert executor_for(6) is NATIVE
    assert (SCRIPTED.identity, NATIVE.identity) == ("echomq:4.0.0", "echomq:6.0.0")
    with pytest.raises(ValueError, match="no wire 5"):
        executor_for(5)


def test_the_native_executor_names_the_command_of_the_module() -> None:
    frame = NATIVE.frame("emq.claim", [QUEUE, b"60000"])
    assert frame == Frame("emq.claim", (b"EMQ.CLAIM", QUEUE, b"60000"), None)
    assert NATIVE.frame("tra.capabilities", []).argv == (b"TRA.CAPABILITIES",)


def test_the_scripted_executor_names_a_script_by_its_digest() -> None:
    frame = SCRIPTED.frame("emq.claim", [QUEUE, b"60000"])
    script = SCRIPTED.script("emq.claim")
    assert frame.script is script
    assert frame.argv[:2] == (b"EVALSHA", script.sha.encode())
    assert arguments(frame) == [b"60000"]


def test_a_reading_verb_is_sent_as_reading() -> None:
    assert SCRIPTED.frame("emq.state", [QUEUE, A]).argv[0] == b"EVALSHA_RO"
    assert SCRIPTED.frame("emq.state", [QUEUE, A], inline=True).argv[0] == b"EVAL_RO"


def test_inside_multi_the_source_travels_along() -> None:
    frame = SCRIPTED.frame("emq.complete", [QUEUE, A, b"1"], inline=True)
    assert frame.script is None
    assert frame.argv[:2] == (b"EVAL", SCRIPTED.script("emq.complete").source)
    assert keys(frame) == keys(SCRIPTED.frame("emq.complete", [QUEUE, A, b"1"]))


@pytest.mark.parametrize(
    ("verb", "words", "names"),
    [
        ("emq.enqueue", [A, b"p"], {b"pending", b"job:" + A}),
        ("emq.claim", [b"9"], {b"meta", b"pending", b"active"}),
        ("emq.menqueue", [A, b"p", B, b"p"], {b"pending", b"job:" + A, b"job:" + B}),
        ("emq.mextend", [b"9", A, b"1", B, b"1"], {b"active", b"job:" + A, b"job:" + B}),
        ("emq.log", [A, b"line", b"KEEP", b"2"], {b"job:" + A, b"job:" + A + b":logs"}),
        ("emq.gcounts", [], {b"lanes", b"gactive"}),
        ("emq.gcounts", [b"g", b"h"], {b"lanes", b"gactive", b"g:g:pending", b"g:h:pending"}),
        ("emq.unrepeat", [b"n"], {b"repeat", b"repeat:n"}),
        ("emq.fire", [b"n", b"9", A], {b"repeat", b"repeat:n", b"pending", b"job:" + A}),
        (
            "emq.greassign",
            [A, b"g"],
            {b"g:g:pending", b"ring", b"wake", b"lanes", b"paused", b"glimit", b"gactive", b"job:" + A},
        ),
    ],
)
def test_a_script_declares_every_key_known_before_the_call(verb: str, words: list[bytes], names: set[bytes]) -> None:
    assert declared(verb, *words) == names


@pytest.mark.parametrize("verb", [verb.name for verb in VERBS.values() if verb.scripted])
@pytest.mark.parametrize("words", [[], [QUEUE], [QUEUE, b""], [QUEUE, A, b"\0\xff", b"", b"", b"", b"", b"", b""]])
def test_framing_refuses_nothing(verb: str, words: list[bytes]) -> None:
    frame = SCRIPTED.frame(verb, words)
    assert keys(frame)[:1] == words[:1]
    assert arguments(frame) == words[1:]
    assert all(name.startswith(QUEUE) for name in keys(frame))


@pytest.mark.parametrize("queue", [b"q", b"emq:{}", b"emq:{emq}", b"emq:{a b}", b"emq:{q}x", b"emq:{q}\n", b""])
def test_no_name_is_built_on_a_queue_key_that_is_none(queue: bytes) -> None:
    assert keys(SCRIPTED.frame("emq.enqueue", [queue, A, b"p"])) == [queue]


def test_version_and_capabilities_need_no_server_on_wire_4() -> None:
    version = SCRIPTED.local("emq.version", [])
    assert version[::2] == [b"module", b"module_version", b"wire", b"identity", b"node", b"server", b"api"]
    assert version[1::2] == [None, None, 4, b"echomq:4.0.0", None, None, 1]

    served = SCRIPTED.local("tra.capabilities", [])
    assert b"emq.claim/1" in served
    assert served == sorted(name for name in served if isinstance(name, bytes))
    assert len(served) == len([verb for verb in VERBS if SCRIPTED.serves(verb)])
    asked = [b"emq.claim/1", b"emq.claim", b"no.such/1", b"emq.claim/2", b""]
    assert SCRIPTED.local("tra.capabilities", asked) == [1, 1, 0, 0, 0]


def test_version_on_wire_4_refuses_what_the_module_would() -> None:
    with pytest.raises(BadRequest, match="queue key must be"):
        SCRIPTED.local("emq.version", [b"q"])
    with pytest.raises(BadRequest, match="wrong number of arguments for"):
        SCRIPTED.local("emq.version", [QUEUE, QUEUE])


def test_what_has_no_script_is_not_framed() -> None:
    for verb in ("emq.version", "tra.capabilities"):
        assert SCRIPTED.serves(verb)
        with pytest.raises(KeyError):
            SCRIPTED.frame(verb, [])
    assert not SCRIPTED.serves("emq.nothing")
    with pytest.raises(KeyError):
        SCRIPTED.local("emq.claim", [])


def test_the_manifest_lists_every_script_with_its_digest_and_keys() -> None:
    manifest = SCRIPTED.manifest()
    assert [script.verb for script in manifest] == [verb.name for verb in VERBS.values() if verb.scripted]
    for script in manifest:
        assert script.sha == hashlib.sha1(script.source).hexdigest()
        assert script.keys == VERBS[script.verb].keys
        assert script.revision == VERBS[script.verb].revision
