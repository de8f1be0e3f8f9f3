"""The scripts as texts, and what a real server makes of them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from emq_native.conformance.wire import Error, Reply, Wire, Word, word
from emq_native.executors import SCRIPTED, Script
from emq_native.server import Server
from emq_native.verbs import VERBS, Effect

SCRIPTS = pytest.mark.parametrize("script", SCRIPTED.manifest(), ids=lambda script: script.verb)
QUEUE = "emq:{q}"
A, B, C = "JOB0EEMl9I7Qw4", "JOB0EEMl9I7Qw5", "JOB0EEMl9I7S07"
WRONGTYPE = Error("WRONGTYPE Operation against a key holding the wrong kind of value")


def code(script: Script) -> str:
    """The source below the shebang, without its texts."""
    below = script.source.decode().split("\n", 1)[1]
    return re.sub(r"'(?:\\.|[^'\\\n])*'|\"[^\"\n]*\"", "''", below)


@SCRIPTS
def test_the_first_line_carries_the_flags_of_the_verb(script: Script) -> None:
    flags = {Effect.GROWS: "#!lua", Effect.WRITES: "#!lua flags=allow-oom", Effect.READS: "#!lua flags=no-writes"}
    assert script.source.decode().splitlines()[0] == flags[VERBS[script.verb].effect]
    assert script.readonly == (VERBS[script.verb].effect is Effect.READS)


@SCRIPTS
def test_a_script_carries_no_dead_code_and_no_comments(script: Script) -> None:
    text = code(script)
    names = {
        name
        for line in re.findall(r"\blocal (?:function )?([A-Za-z_][\w, ]*)", text)
        for name in re.findall(r"\w+", line)
    }
    assert [name for name in sorted(names - {"_"}) if len(re.findall(rf"\b{name}\b", text)) < 2] == []
    assert "--" not in text
    assert "\n\n" not in text


KEYWORDS = {
    *("and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local", "nil", "not"),
    *("or", "repeat", "return", "then", "true", "until", "while"),
}
SANDBOX = {
    "KEYS",
    "ARGV",
    "redis",
    "string",
    "table",
    "math",
    "error",
    "pcall",
    "tonumber",
    "unpack",
    "next",
    "ipairs",
    "pairs",
}


@SCRIPTS
def test_every_name_is_defined_above_its_use(script: Script) -> None:
    """Lua finds a missing name only when it gets there, and then some writes may be done."""
    text = code(script)
    known = KEYWORDS | SANDBOX
    for match in re.finditer(r"(?<![\w.:])([A-Za-z_]\w*)", text):
        name, before, after = match[1], text[: match.start()], text[match.end() :]
        declared = re.search(
            r"(?:\blocal(?: function)?|\bfor|\bfunction(?: [\w.]+)?\s*\() ?(?:[\w.]+, )*$", before[-120:]
        )
        field = re.search(r"[{,]\s*$", before) and re.match(r"\s*=[^=]", after)
        if declared:
            known = known | {name}
        assert field or name in known, name


@SCRIPTS
def test_a_script_builds_names_on_the_queue_key_alone(script: Script) -> None:
    assert set(re.findall(r"KEYS\[(\d+)\]", script.source.decode())) == {"1"}


@SCRIPTS
def test_strings_are_never_ordered_by_the_locale(script: Script) -> None:
    """A sort takes a comparison of its own, and `<` stands between numbers only, which the order of groups proves."""
    assert not re.search(r"table\.sort\(\s*\w+\s*\)", script.source.decode())


class Scripted:
    """One connection that carries out verbs as a client of the scripted executor does."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire

    def __call__(self, verb: str, *words: Word) -> Reply:
        frame = SCRIPTED.frame(f"emq.{verb}", [word(item) for item in words])
        reply = self.wire.call(*frame.argv)
        if isinstance(reply, Error) and reply.code == "NOSCRIPT" and frame.script:
            assert self.wire.call("SCRIPT", "LOAD", frame.script.source) == frame.script.sha.encode()
            reply = self.wire.call(*frame.argv)
        return reply


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(module=False) as server:
        yield server


@pytest.fixture
def call(server: Server, protocol: int) -> Iterator[Scripted]:
    with Wire(server.url, protocol) as wire:
        wire.call("FLUSHALL")
        yield Scripted(wire)


def test_a_job_lives_and_is_completed(call: Scripted) -> None:
    assert call("enqueue", QUEUE, A, b"\0\r\n") == 1
    assert call("enqueue", QUEUE, A, "other") == 0
    assert call("claim", QUEUE, 60_000) == [A.encode(), b"\0\r\n", 1]
    assert call("claim", QUEUE, 60_000) == []
    assert call("complete", QUEUE, A, 1) == 1
    assert call("complete", QUEUE, A, 1) == 0
    assert call.wire.call("KEYS", "*") == [b"emq:{q}:metrics:completed"]


def test_a_job_in_a_lane_lives_and_is_completed(call: Scripted) -> None:
    assert call("genqueue", QUEUE, "g", A, "p") == 1
    assert call("gclaim", QUEUE, 60_000) == [A.encode(), b"p", 1, b"g"]
    assert call("gcounts", QUEUE) == [[b"g", 0, 1]]
    assert call("retry", QUEUE, A, 1, 0, 3, "error") == b"scheduled"
    assert call("gcounts", QUEUE) == []
    assert call("promote", QUEUE) == 1
    assert call("gcounts", QUEUE, "g", "h") == [[b"g", 1, 0], [b"h", 0, 0]]
    assert call("remove", QUEUE, A) == 1
    assert call.wire.call("KEYS", "*") == [b"emq:{q}:wake"]


def test_groups_are_answered_in_the_order_of_their_bytes(call: Scripted) -> None:
    long = "tenant-of-a-name-that-is-long-"
    groups = ["b", "B", "_", "a", "-", "0", ".", "aa", "a-", "Aa", long + "2", long + "10", long]
    for index, group in enumerate(groups):
        call("genqueue", QUEUE, group, f"JOB0000000000{index:x}", "p")
    assert call("gcounts", QUEUE) == [[group.encode(), 1, 0] for group in sorted(groups)]


@SCRIPTS
def test_the_server_computes_the_digest_of_the_manifest(server: Server, script: Script) -> None:
    with Wire(server.url) as wire:
        assert wire.call("SCRIPT", "LOAD", script.source) == script.sha.encode()


@SCRIPTS
def test_a_call_without_words_is_a_matter_of_arity(call: Scripted, script: Script) -> None:
    wrong = Error(f"ERR wrong number of arguments for '{script.verb}' command")
    verb = script.verb.removeprefix("emq.")
    assert call(verb) == wrong
    known = VERBS[script.verb]
    if not known.options and not known.tail:
        assert call(verb, QUEUE, *["x"] * (len(known.words) + 1)) == wrong
    if known.words:
        assert call(verb, QUEUE) == wrong


@SCRIPTS
def test_a_verb_writes_no_key_that_belongs_to_another_queue(call: Scripted, script: Script) -> None:
    words = [b"1"] * (len(VERBS[script.verb].words) or 2)
    frame = SCRIPTED.frame(script.verb, [b"emq:{other}", *words])
    forged: list[Word] = [*frame.argv[:3], QUEUE, *frame.argv[4:]]
    call.wire.call("SCRIPT", "LOAD", script.source)
    call.wire.call(*forged)
    assert call.wire.call("KEYS", "*{other}*") == []


@pytest.mark.parametrize("name", ["pending", "active", "job:" + A, "metrics:completed"])
def test_another_kind_of_key_is_refused_word_for_word(call: Scripted, name: str) -> None:
    call("enqueue", QUEUE, A, "p")
    call("claim", QUEUE, 60_000)
    call.wire.call("DEL", f"{QUEUE}:{name}")
    call.wire.call("XADD", f"{QUEUE}:{name}", "*", "field", "value")
    assert call("complete", QUEUE, A, 1) == WRONGTYPE


def test_refusals_are_exact_alone_and_in_multi(call: Scripted) -> None:
    stale = Error("EMQSTALE complete token mismatch")
    call("enqueue", QUEUE, A, "p")
    assert call("complete", QUEUE, A, "x") == stale
    call.wire.call("MULTI")
    inline = SCRIPTED.frame("emq.complete", [word(QUEUE), word(A), b"x"], inline=True)
    call.wire.call(*inline.argv)
    assert call.wire.call("EXEC") == [stale]


def test_a_thousand_members_and_more_fit_into_one_call(call: Scripted) -> None:
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    ids = [f"JOB000000000{x}{y}" for x in digits for y in digits][:2_500]
    assert call("menqueue", QUEUE, *(item for job in ids for item in (job, "p"))) == [1] * 2_500
    taken = call("mclaim", QUEUE, 60_000, 10_000)
    assert taken == [[job.encode(), b"p", 1] for job in ids]
    assert call("mextend", QUEUE, 60_000, *(item for job in ids for item in (job, 1))) == []
    assert call("mcomplete", QUEUE, *(item for job in ids for item in (job, 1))) == [1] * 2_500
    assert call.wire.call("HGET", f"{QUEUE}:metrics:completed", "count") == b"2500"


def test_a_reading_script_runs_for_a_user_who_may_only_read(call: Scripted, server: Server) -> None:
    call("enqueue", QUEUE, A, "p")
    call("state", QUEUE, A)
    call("counts", QUEUE)
    call.wire.call("ACL", "SETUSER", "reader", "on", ">secret", "+@read", "+evalsha_ro", "%R~emq:{q}*")
    call.wire.call("AUTH", "reader", "secret")
    try:
        assert call("state", QUEUE, A) == b"pending"
        counts = call("counts", QUEUE)
        assert isinstance(counts, list)
        assert counts[:2] == [b"pending", 1]
    finally:
        call.wire.call("AUTH", "default", "")
        call.wire.call("ACL", "DELUSER", "reader")
