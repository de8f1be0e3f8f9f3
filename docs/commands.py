"""Write docs/reference/commands.md, from what the module tells of its commands and from the tables of docs/protocol.md.

    python docs/commands.py             writes it
    python docs/commands.py --check     exits with 1 when it is not what would be written

The module is asked by COMMAND DOCS, COMMAND INFO and TRA.CAPABILITIES, so the page shows what is served. Replies, keys,
effects, ranges and texts of refusals are those of sections 7.1, 7.5 and 8.1 of the contract.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emq_native import Queue, transitions
from emq_native.queue import Verb
from emq_native.server import Server
from emq_native.verbs import VERBS

DOCS = Path(__file__).parent
PAGE = DOCS / "reference" / "commands.md"
PROTOCOL = DOCS / "protocol.md"
WIDE = 100

HEAD = """\
# Commands

What the module serves, written by `docs/commands.py` from its command table and from the tables of the
[contract](../protocol.md), which is normative. `queue` is a queue key, `emq:{NAME}`; all times are milliseconds; `M` is
2^53 - 1. Each verb is atomic and may stand in a pipeline, in MULTI and in a Lua script. A refusal is an error reply and
changes nothing; where several apply, the [order of refusals](../protocol.md#74-order-of-refusals) decides.

| Refusal | When |
|---|---|
| `ERR ...` | arity, an unknown option, a bad queue key, group or name, a number out of range |
| `EMQFENCE wants ...` | a verb that may write, on a node that belongs to another executor or to nobody |
| `EMQKIND ...` | a job id that is none |
| `WRONGTYPE ...`, `EMQSTATE job row is damaged` | a foreign client wrote into the keys that the verb looks at |
| `OOM ...` | the server is full; only verbs with the flag `denyoom` |
| `NOPERM`, `READONLY`, `MOVED`, ... | the server's own, before the verb begins |
"""


@dataclass
class Command:
    """A verb as the module tells it. arguments: those of COMMAND DOCS, the queue key first if there is one."""

    name: str
    revision: str
    docs: Mapping[str, Any]
    arity: int
    flags: list[str]
    categories: list[str]

    @property
    def short(self) -> str:
        return self.name.upper().removeprefix("EMQ.")

    @property
    def arguments(self) -> list[Any]:
        return list(self.docs.get("arguments", ()))


def text(value: Any) -> Any:
    """A reply with its bytes as text."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, dict):
        return {text(key): text(member) for key, member in value.items()}
    return [text(member) for member in value] if isinstance(value, (list, set, tuple)) else value


def served() -> dict[str, Command]:
    """Every verb of the module by its upper-case name without `EMQ.`."""
    verbs = {}
    with Server() as server, server.client(protocol=3) as client:
        client.response_callbacks.clear()
        for entry in text(client.execute_command("TRA.CAPABILITIES")):
            name, _, revision = entry.partition("/")
            docs = text(client.execute_command("COMMAND DOCS", name))[name]
            info = text(client.execute_command("COMMAND INFO", name))[0]
            flags = sorted(set(info[2]) - {"module", "no_mandatory_keys"})
            verb = Command(name, revision, docs, info[1], flags, sorted(info[6]))
            verbs[verb.short] = verb
    return verbs


def syntax(argument: Mapping[str, Any]) -> str:
    """An argument of COMMAND DOCS as the usual notation: `[LIMIT limit]`, `IN in | AT at`."""
    flags = argument.get("flags", ())
    kind = argument["type"]
    if kind == "pure-token":
        inner = argument["token"]
    elif kind in ("oneof", "block"):
        inner = (" | " if kind == "oneof" else " ").join(syntax(part) for part in argument["arguments"])
        inner = f"<{inner}>" if kind == "oneof" else inner
    else:
        inner = argument.get("display_text", argument["name"])
    word = f"{argument['token']} {inner}" if "token" in argument and kind != "pure-token" else inner
    if "multiple" in flags:
        word = f"{word} [{inner} ...]" if len(inner) < WIDE / 2 else f"{word} ..."
    return f"[{word}]" if "optional" in flags else word


def numbers(arguments: list[Any]) -> Iterator[str]:
    """The names, in the words of section 7.1, of all numbers among the arguments."""
    for argument in arguments:
        if argument["type"] == "integer":
            token = argument.get("token", "").lower()
            yield "at" if token == "at" else argument["name"]
        elif argument["type"] in ("oneof", "block"):
            inside = list(numbers(argument["arguments"]))
            yield from (["settle", *inside[1:]] if argument["name"] == "settle" else inside)


def names(arguments: list[Any]) -> set[str]:
    """The names of all arguments."""
    return {
        name
        for argument in arguments
        for name in ({argument["name"]} | (names(argument["arguments"]) if "arguments" in argument else set()))
    }


def table(page: str, heading: str) -> list[list[str]]:
    """The rows of the first table under a heading of the contract, without its head."""
    lines = page[page.index(f"\n{heading}") :].splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("|---"))
    rows = []
    for line in lines[start + 1 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return rows


def ranges(page: str) -> dict[str, str]:
    """Section 7.1: the range of each number by its name."""
    found = {}
    for name_cell, _, range_cell in table(page, "### 7.1"):
        groups, limits = name_cell.split(";"), range_cell.split(";")
        if len(limits) != len(groups):
            limits = [range_cell] * len(groups)
        for group, limit in zip(groups, limits, strict=True):
            for name in re.findall(r"`(\w+)`", group):
                found[name] = limit.strip().replace(" .. ", " to ")
    return found


def refusals(page: str, verb: str) -> list[str]:
    """Section 7.5: the texts whose cell "Raised by" names the verb."""
    found = []
    for said, by in table(page, "### 7.5"):
        if re.search(rf"\b{verb}\b", by):
            found += re.findall(r"`(EMQ\w+ [^`]*)`", said)
    return [line.replace("<word>", verb.lower()) for line in found]


def families(page: str) -> dict[str, tuple[str, str]]:
    """The heading and the anchor of the section of 8.2 to 8.8 that tells a verb's steps, by its name."""
    found: dict[str, tuple[str, str]] = {}
    for section in re.split(r"(?m)^### (?=8\.[2-8])", page)[1:]:
        head, _, rest = section.partition("\n")
        number, _, title = head.partition(" ")
        anchor = re.sub(r"[^a-z0-9 -]", "", head.lower()).replace(" ", "-")
        for block in re.findall(r"(?ms)^```\n(.*?)^```", rest.partition("\n## ")[0]):
            for name in re.findall(r"(?m)(?:^|\s{4})([A-Z]{3,})\s{2,}", block):
                found.setdefault(name, (title.split(":")[0], f"{number} {anchor}"))
    return found


def methods() -> dict[str, list[str]]:
    """The methods of Queue by the verb that they send, as far as a transition is of one verb."""
    verbs = {
        made.__doc__: made.verb
        for made in vars(transitions).values()
        if isinstance(made, type) and issubclass(made, transitions.Transition) and made is not transitions.Transition
    }
    found: dict[str, list[str]] = {}
    for name, member in vars(Queue).items():
        if isinstance(member, Verb):
            found.setdefault(verbs[getattr(Queue, name).__doc__], []).append(f"Queue.{name}")
    found["emq.genqueue"] = ["Queue.enqueue(group=...)"]
    return found


def entry(verb: Command, page: str, rows: Mapping[str, list[str]], family: tuple[str, str] | None) -> Iterator[str]:
    """The lines about one verb."""
    limits = ranges(page)
    _, reply, _, keys, effects = (cell.replace("8.8", "those of its steps") for cell in rows[verb.short])
    words = " ".join([verb.name.upper(), *map(syntax, verb.arguments)])
    if len(words) > WIDE:
        words = re.sub(r" (?=\[[A-Z])|(?<=SETTLE count) | (?=\| [A-Z]+ id)", "\n    ", words)
    yield f"### {verb.name.upper()}\n"
    yield f"```text\n{words}\n```\n"
    yield f"{verb.docs['summary']}\n"
    yield "| | |\n|---|---|"
    yield f"| Reply | {reply} |"
    bounds = [f"`{name}` {limits[name]}" for name in dict.fromkeys(numbers(verb.arguments))]
    if bounds:
        yield f"| Numbers | {'<br>'.join(bounds)} |"
    own = [f"`{line}`" for line in refusals(page, verb.short)]
    general = [
        code
        for code, applies in (
            ("ERR", True),
            ("EMQFENCE", "write" in verb.flags),
            ("EMQKIND", "id" in names(verb.arguments)),
            ("WRONGTYPE", keys not in ("none", "fence")),
            ("OOM", "denyoom" in verb.flags),
        )
        if applies
    ]
    yield f"| Refusals | {', '.join(own + general)} |"
    yield f"| Complexity | {verb.docs['complexity']} |"
    yield f"| Keys | {keys} |"
    yield f"| Effects | {effects} |"
    yield f"| Flags | {' '.join(verb.flags)} |"
    yield f"| ACL | {' '.join(verb.categories)} |"
    python = ", ".join(f"`{name}`" for name in methods().get(verb.name, ()))
    if python:
        yield f"| Python | {python} |"
    number, anchor = family[1].split() if family else ("8.2", "82-core")
    here = f"[{number}](../protocol.md#{anchor})"
    by_scripts = "by the scripts too" if VERBS[verb.name].scripted else "by the module only"
    yield f"| Served | revision {verb.revision}, since {verb.docs['since']}, {by_scripts}; steps: {here} |"
    yield ""


def generate() -> str:
    """The whole page."""
    page, verbs = PROTOCOL.read_text(), served()
    rows = {}
    for row in table(page, "### 8.1"):
        name = row[0].split()[0].removeprefix("EMQ.")
        rows[name] = row
    sections = families(page)
    lines = [HEAD]
    heading = None
    known = [name for name in rows if name in verbs]
    if missing := set(verbs) - set(rows):
        raise SystemExit(f"section 8.1 of the contract has no {', '.join(sorted(missing))}")
    order = list(dict.fromkeys(sections.values()))
    for name in sorted(known, key=lambda name: order.index(sections[name]) if name in sections else len(order)):
        title = sections[name][0] if name in sections else "About"
        if title != heading:
            lines.append(f"## {title}\n")
            heading = title
        lines += entry(verbs[name], page, rows, sections.get(name))
    later = [name for name in rows if name not in verbs]
    if later:
        lines.append("## Not served yet\n")
        lines.append(
            "The contract has these verbs, this version of the module does not: a call answers `ERR unknown command`,\n"
            "and `TRA.CAPABILITIES` does not list them.\n"
        )
        lines += [f"- `{rows[name][0].replace(chr(92), '')}`" for name in later]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def main(arguments: list[str]) -> int:
    made = generate()
    if arguments == ["--check"]:
        return int(not PAGE.exists() or PAGE.read_text() != made)
    PAGE.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
