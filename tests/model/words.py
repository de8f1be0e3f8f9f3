"""The words of a call: the grammar of every verb and steps 1 to 6 of the order of refusals (section 7.4)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

M = 2**53 - 1
MEMBERS = 10_000


class Refused(Exception):
    """A call is refused with this text."""


# Sections 3.1 and 4: names and ids.

_QUEUE_KEY = re.compile(rb"emq:\{([A-Za-z0-9._-]{1,128})\}")
_NAMES = {
    "group": (re.compile(rb"[A-Za-z0-9._-]{1,64}"), "ERR group must be 1 to 64 of A-Z a-z 0-9 . _ -"),
    "name": (re.compile(rb"[A-Za-z0-9._-]{1,128}"), "ERR name must be 1 to 128 of A-Z a-z 0-9 . _ -"),
}
_DIGITS = re.compile(rb"[0-9A-Za-z]{11}")
_INTEGER = re.compile(rb"0|-?[1-9][0-9]*")


def id_error(text: bytes) -> str | None:
    """What the job gate says to a text, None when it is a job id."""
    if text[:3] != b"JOB":
        return "EMQKIND job id must be JOB-namespaced"
    if len(text) != 14 or not _DIGITS.fullmatch(text[3:]) or text[3:] > b"AzL8n0Y58m7":
        return "EMQKIND job id must be 14 bytes: JOB and 11 base62 digits"
    return None


# Section 7.1: item -> least, most, and whether now is added to it.

_NUMBERS = {
    "lease": (1, M, True),
    "delay": (0, M, True),
    "in": (0, M, True),
    "at": (0, M, False),
    "max": (1, 2**31 - 1, False),
    "limit": (1, 10_000, False),
    "keep": (1, 10_000, False),
    "count": (1, 10_000, False),
    "every": (1, M, True),
    "next": (0, M, False),
    "ceiling": (0, 2**31 - 1, False),
    "weight": (0, 10_000, False),
}

# Section 8.1: the grammar after q, and the keys that are tested in step 7 whatever happens. A word in capitals stands
# for itself, what is in brackets may be left out, the tail in parentheses repeats.

_REAP = "active pending dead metrics:failed"
_CLAIM, _GCLAIM = "meta pending active", "meta active ring"
VERBS = {
    "emq.enqueue": ("job payload", "pending"),
    "emq.schedule": ("job payload IN|AT ms", "schedule"),
    "emq.claim": ("lease", _CLAIM),
    "emq.complete": ("job token [RESULT result]", "active pending metrics:completed"),
    "emq.retry": ("job token delay max error", "active pending schedule dead metrics:failed"),
    "emq.delay": ("job token IN|AT ms", "active pending schedule"),
    "emq.extend": ("job token lease", "active"),
    "emq.promote": ("[LIMIT limit]", "schedule pending"),
    "emq.reap": ("[LIMIT limit] [MAX max]", _REAP),
    "emq.state": ("job", "pending active schedule dead held"),
    "emq.counts": ("", "pending active schedule dead held lanes metrics:completed metrics:failed"),
    "emq.peek": ("job", ""),
    "emq.menqueue": ("(job payload)+", "pending"),
    "emq.mclaim": ("lease count", _CLAIM),
    "emq.mcomplete": ("(job token)+", "active pending metrics:completed"),
    "emq.mextend": ("lease (job token)+", "active"),
    "emq.genqueue": ("group job payload", "LANE"),
    "emq.gclaim": ("lease", _GCLAIM),
    "emq.gwclaim": ("lease", _GCLAIM + " gweight"),
    "emq.gmclaim": ("lease count", _GCLAIM),
    "emq.gpause": ("group", "LANE gweight"),
    "emq.gresume": ("group", "LANE gweight"),
    "emq.glimit": ("group ceiling", "LANE gweight"),
    "emq.gweight": ("group weight", "LANE gweight"),
    "emq.greassign": ("job group", "LANE"),
    "emq.gdrain": ("group [LIMIT limit]", "LANE"),
    "emq.greap": ("group [LIMIT limit] [MAX max]", _REAP + " LANE"),
    "emq.gcounts": ("(group)*", "lanes gactive"),
    "emq.pause": ("", "meta"),
    "emq.resume": ("", "meta"),
    "emq.drain": ("[SCHEDULED] [LIMIT limit]", "pending schedule"),
    "emq.obliterate": (
        "[FORCE] [LIMIT limit]",
        "meta pending active schedule dead held lanes repeat flow:outbox metrics:failed",
    ),
    "emq.remove": ("job [FORCE]", "pending active schedule dead held"),
    "emq.reprocess": ("job", "dead pending"),
    "emq.update": ("job payload", ""),
    "emq.progress": ("job text", ""),
    "emq.log": ("job line [KEEP keep]", ""),
    "emq.repeat": ("name EVERY every template [AT at]", "repeat REPEAT"),
    "emq.unrepeat": ("name", "repeat REPEAT"),
    "emq.fire": ("name next job", "repeat REPEAT pending"),
}


@dataclass
class Words:
    """A call whose words were found to be in order."""

    name: bytes  # of the queue
    values: dict[str, bytes]
    numbers: dict[str, int]
    members: list[tuple[bytes, ...]]


def read(verb: str, words: Sequence[bytes], now: int) -> Words:
    """Steps 1 to 6 of 7.4."""
    grammar = VERBS[verb][0]
    fixed_part, _, tail_part = re.fullmatch(r"([^(]*)(\((.*)\).)?", grammar).groups()  # type: ignore[union-attr]
    options = {option.split()[0]: option.split()[1:] for option in re.findall(r"\[(.*?)\]", fixed_part)}
    fixed = re.sub(r"\[.*?\]", "", fixed_part).split()
    tail = tail_part.split() if tail_part else []

    rest = len(words) - 1 - len(fixed)
    if tail:
        counts = rest % len(tail) == 0 and rest >= (len(tail) if grammar.endswith("+") else 0)
    else:
        counts = rest >= 0 if options else rest == 0
    if not counts:
        raise Refused(f"ERR wrong number of arguments for '{verb}' command")
    if tail and grammar[-1:] == "+" and rest // len(tail) > MEMBERS:
        raise Refused("ERR at most 10000 members in one call")
    found: list[tuple[str, bytes]] = []  # every word but the words that stand for themselves, from left to right
    choice = ""
    for item, word in zip(fixed, words[1:], strict=False):
        if item.isupper():
            choice = word.upper().decode("latin-1")
            if choice not in item.split("|"):
                raise Refused("ERR syntax error")
        else:
            found.append((choice.lower() if item == "ms" else item, word))
    after = list(words[1 + len(fixed) :])
    if tail:
        found += [(tail[place % len(tail)], word) for place, word in enumerate(after)]
    given = set()
    while options and after:
        option = after.pop(0).upper().decode("latin-1")
        if option not in options or option in given or len(after) < len(options[option]):
            raise Refused("ERR syntax error")
        given.add(option)
        found += [(item, after.pop(0)) for item in options[option]] or [(option, b"")]

    queue = _QUEUE_KEY.fullmatch(words[0])
    if not queue or queue[1] == b"emq":
        raise Refused("ERR queue key must be emq:{name}, name of 1 to 128 of A-Z a-z 0-9 . _ -")
    for item, word in found:
        if item in _NAMES and not _NAMES[item][0].fullmatch(word):
            raise Refused(_NAMES[item][1])
    numbers = {}
    for item, word in found:
        if item in _NUMBERS:
            least, most, added = _NUMBERS[item]
            if not _INTEGER.fullmatch(word) or not least <= int(word) <= most - now * added:
                raise Refused(f"ERR {item} must be an integer between {least} and {most}")
            numbers[item] = int(word)
    for item, word in found:
        if item == "job" and (error := id_error(word)):
            raise Refused(error)
    members = [tuple(after[at : at + len(tail)]) for at in range(0, len(after), len(tail))] if tail else []
    return Words(queue[1], dict(found), numbers, members)
