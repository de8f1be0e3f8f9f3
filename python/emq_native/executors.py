"""The two executors: each turns a verb and its words into the one command that carries it out. Neither does I/O.

The native executor names the module's command. The scripted executor names a script by its SHA-1, with the keys that
are known before the call; a script is put together here from the files in ``scripts/``. Framing never refuses: whatever
is wrong with the words, the server says.
"""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

from .errors import from_line
from .verbs import VERBS, Effect, Verb

__all__ = ["NATIVE", "SCRIPTED", "Executor", "Frame", "NativeExecutor", "Script", "ScriptedExecutor", "executor_for"]


@dataclass(frozen=True, slots=True)
class Script:
    """The script of one verb.

    sha       the SHA-1 of the source in hexadecimal, by which EVALSHA names it
    keys      the declared keys without ``emq:{NAME}:``, after the queue key itself
    readonly  it writes nothing and is sent by EVALSHA_RO and EVAL_RO
    """

    verb: str
    revision: int
    source: bytes
    sha: str
    keys: tuple[str, ...]
    readonly: bool


@dataclass(slots=True)
class Frame:
    """One wire command. ``script`` is there when the server may not know it yet (NOSCRIPT) and so has to be told."""

    verb: str
    argv: tuple[bytes, ...]
    script: Script | None = None


class Executor(ABC):
    """Who carries out the verbs on a node: its name, the number of its wire, and its identity in the fence."""

    name: str
    wire: int
    identity: str

    @abstractmethod
    def serves(self, verb: str) -> bool:
        """Whether this executor has the verb, named in lower case, in any revision."""

    @abstractmethod
    def frame(self, verb: str, words: Sequence[bytes], *, inline: bool = False) -> Frame:
        """The command for ``verb`` with ``words``, of which the first is the queue key.

        inline: carry everything along, so that the command cannot be answered with NOSCRIPT (inside MULTI).
        """


class NativeExecutor(Executor):
    """The module's own commands."""

    name = "native"
    wire = 6
    identity = "echomq:6.0.0"

    def serves(self, verb: str) -> bool:
        return verb in VERBS

    def frame(self, verb: str, words: Sequence[bytes], *, inline: bool = False) -> Frame:
        return Frame(verb, (_COMMANDS.get(verb) or verb.upper().encode(), *words))


class ScriptedExecutor(Executor):
    """One Lua script per verb, for nodes without the module."""

    name = "scripted"
    wire = 4
    identity = "echomq:4.0.0"

    def serves(self, verb: str) -> bool:
        return verb in VERBS and (VERBS[verb].scripted or self.answers(verb))

    def answers(self, verb: str) -> bool:
        """Whether `local` has the reply to this verb, so that no server is asked."""
        return verb in _LOCAL

    def script(self, verb: str) -> Script:
        """The script of a verb. KeyError when the verb has none."""
        return _script(verb)

    def manifest(self) -> tuple[Script, ...]:
        """Every script of this revision, in the order of the verb table."""
        return tuple(_script(verb.name) for verb in VERBS.values() if verb.scripted)

    def frame(self, verb: str, words: Sequence[bytes], *, inline: bool = False) -> Frame:
        script = _script(verb)
        keys = _keys(VERBS[verb], words)
        command = (b"EVAL_RO" if inline else b"EVALSHA_RO") if script.readonly else (b"EVAL" if inline else b"EVALSHA")
        text = script.source if inline else script.sha.encode()
        argv = (command, text, b"%d" % len(keys), *keys, *words[1:])
        return Frame(verb, argv, None if inline else script)

    def local(self, verb: str, words: Sequence[bytes]) -> list[bytes | int | None]:
        """The reply to EMQ.VERSION or TRA.CAPABILITIES, which on this wire no server is asked.

        The values of ``node`` and ``server`` are null: the fence and the server are not looked at here. Malformed words
        raise what the native executor would answer to them.
        """
        if verb == "emq.version":
            if len(words) > 1:
                raise from_line("ERR wrong number of arguments for 'emq.version' command")
            if words and not _QUEUE_KEY.fullmatch(words[0]):
                raise from_line("ERR queue key must be emq:{name}, name of 1 to 128 of A-Z a-z 0-9 . _ -")
            entries: Mapping[bytes, bytes | int | None] = {
                b"module": None,
                b"module_version": None,
                b"wire": self.wire,
                b"identity": self.identity.encode(),
                b"node": None,
                b"server": None,
                b"api": API,
            }
            return [part for entry in entries.items() for part in entry]
        if verb == "tra.capabilities":
            served = [known for known in VERBS.values() if self.serves(known.name)]
            capabilities = sorted(known.capability.encode() for known in served)
            names = {*capabilities, *(known.name.encode() for known in served)}
            return [int(word in names) for word in words] if words else [*capabilities]
        raise KeyError(verb)


_COMMANDS: Final = {verb: verb.upper().encode() for verb in VERBS}

API: Final = 1
"""The revision of the contract that this package speaks."""

NATIVE: Final = NativeExecutor()
SCRIPTED: Final = ScriptedExecutor()


def executor_for(wire: int) -> Executor:
    """The executor of a wire: 4 is scripted, 6 is native. ValueError for any other."""
    for executor in (SCRIPTED, NATIVE):
        if executor.wire == wire:
            return executor
    raise ValueError(f"there is no wire {wire}: 4 is scripted, 6 is native")


_LOCAL: Final = frozenset({"emq.version", "tra.capabilities"})
_QUEUE_KEY: Final = re.compile(rb"emq:\{(?!emq\})[A-Za-z0-9._-]{1,128}\}")
_PLACEHOLDER: Final = re.compile(r"<(\w+)>")


def _keys(verb: Verb, words: Sequence[bytes]) -> list[bytes]:
    """The queue key and every key known before the call.

    A queue key that the script will refuse is declared alone: names built on it might not share its hash tag.
    """
    if not words or not _QUEUE_KEY.fullmatch(words[0]):
        return list(words[:1])
    base = words[0] + b":"
    keys = [words[0]]
    for template in verb.keys:
        placeholder = _PLACEHOLDER.search(template)
        if placeholder is None:
            keys.append(base + template.encode())
            continue
        before, after = (part.encode() for part in template.split(placeholder.group()))
        keys += (base + before + value + after for value in verb.values(placeholder.group(1), words))
    return keys


_FLAGS: Final = {Effect.GROWS: "", Effect.WRITES: " flags=allow-oom", Effect.READS: " flags=no-writes"}
_USES: Final = re.compile(r"^-- uses: (.+)$", re.MULTILINE)


@cache
def _script(name: str) -> Script:
    """Put a script together: the shebang, the helpers that the verb uses, and its body as a function that may refuse.

    A file in ``scripts/`` holds one verb, a file in ``scripts/shared/`` one noun that several verbs share. Either names
    the nouns that it uses in a line ``-- uses: ...``, so a script carries what it needs and nothing else.
    """
    verb = VERBS[name]
    if not verb.scripted:
        raise KeyError(name)
    parts = [f"#!lua{_FLAGS[verb.effect]}", f"local VERB = '{verb.name}'"]
    parts += (_code(_file(f"shared/{helper}")) for helper in _needed(name))
    parts += ("local function transition()", _code(_file(name)), "end", _code(_file("shared/answer")))
    source = ("\n".join(parts) + "\n").encode()
    return Script(
        verb=verb.name,
        revision=verb.revision,
        source=source,
        sha=hashlib.sha1(source, usedforsecurity=False).hexdigest(),
        keys=verb.keys,
        readonly=verb.effect is Effect.READS,
    )


def _needed(name: str) -> list[str]:
    """The helpers that a verb names, each after those that it names itself."""
    order: list[str] = []

    def visit(path: str) -> None:
        uses = _USES.search(_file(path))
        for helper in uses.group(1).split() if uses else ():
            if helper not in order:
                visit(f"shared/{helper}")
                order.append(helper)

    visit(name)
    return order


def _code(text: str) -> str:
    """The text without its comment lines and blank lines: what travels is code."""
    return "\n".join(line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("--"))


@cache
def _file(path: str) -> str:
    return files(__package__).joinpath(f"scripts/{path}.lua").read_text("utf-8")
