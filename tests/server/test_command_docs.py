"""COMMAND DOCS: each command has the grammar of the contract, and the parser takes what it says and nothing else."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from emq_native.conformance.lab import Lab
from emq_native.conformance.scenes import VERBS
from emq_native.conformance.wire import Error, Reply, Simple

PROTOCOL = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text()
COMMANDS = sorted({*VERBS, "tra.capabilities"})


@dataclass(frozen=True)
class Argument:
    """One argument of COMMAND DOCS."""

    name: str
    type: str
    shown: str
    token: str | None
    optional: bool
    multiple: bool
    parts: tuple[Argument, ...]

    @staticmethod
    def of(reply: Reply) -> Argument:
        fields = pairs(reply)
        flags = {text(flag) for flag in items(fields.get("flags", []))}
        assert flags <= {"optional", "multiple"}
        return Argument(
            name=text(fields["name"]),
            type=text(fields["type"]),
            shown=text(fields.get("display_text", b"")),
            token=text(fields["token"]) if "token" in fields else None,
            optional="optional" in flags,
            multiple="multiple" in flags,
            parts=tuple(Argument.of(part) for part in items(fields.get("arguments", []))),
        )

    @property
    def once(self) -> str:
        """The grammar of one of it, with `_` for a word that the client chooses."""
        if self.type == "pure-token":
            assert self.token is not None
            return self.token
        inner = {"oneof": "|", "block": " "}.get(self.type)
        body = "_" if inner is None else inner.join(part.grammar for part in self.parts)
        return body if self.token is None else f"{self.token} {body}"

    @property
    def grammar(self) -> str:
        if self.multiple:
            return f"[{self.once} ...]" if self.optional else f"{self.once} [{self.once} ...]"
        return f"[{self.once}]" if self.optional else self.once


def items(reply: Reply) -> list[Reply]:
    assert isinstance(reply, list)
    return reply


def text(reply: Reply) -> str:
    if isinstance(reply, Simple):
        return reply.text
    assert isinstance(reply, bytes)
    return reply.decode()


def pairs(reply: Reply) -> dict[str, Reply]:
    flat = items(reply)
    return {text(name): value for name, value in zip(flat[::2], flat[1::2], strict=True)}


def contract(name: str) -> str:
    """The grammar of a command in the contract, in the same form."""
    if name == "emq.next":
        line, entry = re.findall(r"^EMQ\.NEXT (q lease \[COUNT.*)\nentry = (.*)$", PROTOCOL, re.MULTILINE)[0]
        entry = re.sub(r"\s+\|\s+", "|", entry)
        line = line.replace("entry ...", f"{entry} [{entry} ...]")
    else:
        [line] = re.findall(rf"^\| {re.escape(name.upper())}((?: (?:[^|\\]|\\\|)+)?) \|", PROTOCOL, re.MULTILINE)
    words = re.sub(r"\b[a-z]+\b", "_", line.replace("\\|", "|").strip())
    return words.replace("IN|AT _", "IN _|AT _")


@pytest.fixture
def lab(make_lab: Callable[..., Lab]) -> Lab:
    return make_lab("native")


@pytest.fixture(params=COMMANDS)
def command(request: pytest.FixtureRequest) -> str:
    """Every command in turn."""
    assert isinstance(request.param, str)
    return request.param


def documents(lab: Lab, name: str) -> dict[str, Reply]:
    [found, document] = items(lab.plain("COMMAND", "DOCS", name))
    assert text(found) == name
    return pairs(document)


def arguments(lab: Lab, name: str) -> list[Argument]:
    return [Argument.of(each) for each in items(documents(lab, name).get("arguments", []))]


def info(lab: Lab, name: str) -> list[Reply]:
    [found] = items(lab.plain("COMMAND", "INFO", name))
    return items(found)


def test_the_commands_of_the_module_are_those_of_the_capabilities_and_of_the_contract(lab: Lab) -> None:
    listed = {text(name) for name in items(lab.plain("COMMAND", "LIST", "FILTERBY", "MODULE", "emq"))}
    served = {text(entry).partition("/")[0] for entry in items(lab.plain("TRA.CAPABILITIES"))}
    assert listed == served == set(COMMANDS)
    assert all(re.search(rf"^\| {re.escape(name.upper())} ", PROTOCOL, re.MULTILINE) for name in served)


def test_a_command_is_described(lab: Lab, command: str) -> None:
    document = documents(lab, command)
    assert re.fullmatch(r"[A-Z].{10,}\.", text(document["summary"]))
    assert re.match(r"O\(.+\)", text(document["complexity"]))
    assert re.fullmatch(r"\d+\.\d+\.\d+", text(document["since"]))
    assert text(document["group"]) == "module"
    assert text(document["module"]) == "emq"


def test_the_grammar_is_that_of_the_contract(lab: Lab, command: str) -> None:
    assert " ".join(argument.grammar for argument in arguments(lab, command)) == contract(command)


def test_the_arity_is_that_of_the_grammar(lab: Lab, command: str) -> None:
    least, open_end = 1, False
    for argument in arguments(lab, command):
        if argument.optional:
            open_end = True
            continue
        open_end = open_end or argument.multiple
        least += len(argument.once.partition("|")[0].split())
    assert info(lab, command)[1] == (-least if open_end else least)


def test_a_time_is_shown_with_its_unit(lab: Lab, command: str) -> None:
    def walk(some: Sequence[Argument]) -> Iterator[Argument]:
        for argument in some:
            yield argument
            yield from walk(argument.parts)

    times = {"lease", "delay", "in", "at", "every", "first", "next", "block"}
    for argument in walk(arguments(lab, command)):
        if argument.type == "integer":
            assert argument.shown.endswith("milliseconds") == (argument.name in times), argument


def test_the_queue_is_the_only_key_and_it_comes_first(lab: Lab, command: str) -> None:
    keyed = [argument for argument in arguments(lab, command) if argument.type == "key"]
    specs = items(info(lab, command)[8])
    if command == "tra.capabilities":
        assert keyed == [] == specs
        return
    assert keyed == arguments(lab, command)[:1]
    [spec] = map(pairs, specs)
    flags = {text(flag) for flag in items(spec["flags"])}
    assert flags == ({"RW", "access", "update"} if VERBS[command].writes else {"RO", "access"})
    assert pairs(pairs(spec["begin_search"])["spec"]) == {"index": 1}
    assert pairs(pairs(spec["find_keys"])["spec"]) == {"lastkey": 0, "keystep": 1, "limit": 0}


@pytest.mark.parametrize("words", [["EMQ.VERSION"], ["TRA.CAPABILITIES"], ["TRA.CAPABILITIES", "emq.claim"]])
def test_a_call_without_a_queue_has_no_key(lab: Lab, words: list[str]) -> None:
    assert lab.control.call("COMMAND", "GETKEYS", *words) in ([], Error("ERR The command has no key arguments"))


class Calls:
    """Calls made from the grammar."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab

    def word(self, argument: Argument) -> str:
        if argument.type == "key":
            return self.lab.q
        return {"id": self.lab.ids(1)[0], "at": "0"}.get(argument.name, "1")

    def once(self, argument: Argument) -> list[list[str]]:
        """Every way to write one of it."""
        head = [] if argument.token is None else [argument.token]
        if argument.type == "pure-token":
            return [head]
        if argument.type == "oneof":
            return [head + way for part in argument.parts for way in self.once(part)]
        if argument.type == "block":
            return [head + way for way in self.row(argument.parts)]
        return [[*head, self.word(argument)]]

    def ways(self, argument: Argument) -> list[list[str]]:
        """Every way to write it; of what may be repeated one, and two of them."""
        ways = self.once(argument)
        if argument.multiple:
            ways = [*ways, *([*one, *two] for one, two in itertools.pairwise([*ways, ways[0]]))]
        return [[], *ways] if argument.optional else ways

    def row(self, parts: Sequence[Argument]) -> list[list[str]]:
        """Every way to write all of them."""
        return [list(itertools.chain(*ways)) for ways in itertools.product(*(self.ways(part) for part in parts))]

    def plain(self, parts: Sequence[Argument]) -> Iterator[list[str]]:
        """Without any option, and with each of them alone."""
        ways = [self.ways(part) for part in parts]
        first = [each[0] for each in ways]
        for at, each in enumerate(ways):
            for way in each[1 if at else 0 :]:
                yield list(itertools.chain(*first[:at], way, *first[at + 1 :]))


ENDINGS = {"COMPLETE", "RESULT", "RETRY", "DELAY"}


def is_beyond_grammar(words: list[str]) -> bool:
    """What a grammar cannot say: the two sources of FROM differ, and SETTLE is told the number of its endings."""
    twice = "FROM" in words and words[words.index("FROM") + 1 :][:2] in (["FLAT", "FLAT"], ["LANES", "LANES"])
    return twice or ("SETTLE" in words and sum(word in ENDINGS for word in words) != 1)


def is_refused(reply: Reply) -> bool:
    """Whether a call was refused for its words."""
    return isinstance(reply, Error) and bool(re.match("ERR (syntax error|wrong number of arguments)", reply.text))


def shape(words: list[str]) -> tuple[str, ...]:
    """The words, with `_` for those that a client chooses."""
    return tuple(word if word.isupper() and word.isalpha() else "_" for word in words)


def test_the_parser_takes_every_call_of_the_grammar(lab: Lab, command: str) -> None:
    rows = Calls(lab).row(arguments(lab, command))
    replies = lab.control.pipeline([[command, *words] for words in rows])
    for words, reply in zip(rows, replies, strict=True):
        assert is_refused(reply) == is_beyond_grammar(words), (words, reply)


def test_the_parser_takes_no_word_more(lab: Lab, command: str) -> None:
    described = arguments(lab, command)
    if described[-1].multiple and described[-1].type == "string":
        return  # one more is another of the list
    for words in Calls(lab).plain(described):
        for word in ("BOGUS", "1"):
            if words or command != "emq.version":  # there, a first word is the queue
                assert is_refused(lab.control.call(command, *words, word)), (words, word)


def test_the_parser_takes_no_word_less(lab: Lab, command: str) -> None:
    described = arguments(lab, command)
    legal = {shape(words) for words in Calls(lab).row(described)}
    for words in Calls(lab).plain(described):
        for missing in range(len(words)):
            shorter = words[:missing] + words[missing + 1 :]
            if shape(shorter) not in legal:
                assert isinstance(lab.control.call(command, *shorter), Error), shorter
