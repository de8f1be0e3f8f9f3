# SPDX-License-Identifier: BSD-3-Clause
"""Random play: calls of a careless crowd of clients on one queue, for laws that hold after every command."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from .lab import Lab
from .wire import Reply, Word

GROUPS = ("g", "h", "i")


class Play:
    """A crowd of clients on the queue of a lab.

    The same seed draws the same calls as long as the data are the same. Ids come from a small pool, so that calls meet
    jobs in every place; tokens are mostly the right ones; leases lapse at once or not at all.
    """

    def __init__(self, lab: Lab, seed: int, jobs: int = 12) -> None:
        self.lab = lab
        self.draw = random.Random(seed)
        self.jobs = lab.ids(jobs)
        self.verbs = [verb for verb in _CALLS if lab.serves(verb)]

    def step(self) -> tuple[str, list[Word], Reply]:
        """Send one call; returns the verb, its words after the queue key, and the reply."""
        verb = self.draw.choice(self.verbs)
        words = _CALLS[verb](self)
        self._remember(verb, words)
        return verb, words, self.lab.send(verb, *words)

    def _remember(self, verb: str, words: list[Word]) -> None:
        """A ceiling may be set below what runs; the audit has to know."""
        if verb == "glimit":
            self.lab.lowered.add(str(words[0]))

    def job(self) -> str:
        return self.draw.choice(self.jobs)

    def group(self) -> str:
        return self.draw.choice(GROUPS)

    def lease(self) -> int:
        return self.draw.choice([1, 600_000])

    def member(self) -> list[Word]:
        """A job and, four times out of five, its token."""
        job = self.job()
        token = self.lab.fields_of(job).get("attempts", b"1") if self.draw.random() < 0.8 else b"9"
        return [job, token]

    def limit(self) -> list[Word]:
        return ["LIMIT", self.draw.choice([1, 2, 10])] if self.draw.random() < 0.5 else []

    def maximum(self) -> list[Word]:
        return ["MAX", self.draw.choice([1, 2, 3])] if self.draw.random() < 0.5 else []

    def maybe(self, *words: Word) -> list[Word]:
        return list(words) if self.draw.random() < 0.5 else []

    def ending(self) -> list[Word]:
        """An entry of a settle list."""
        kind = self.draw.choice(["COMPLETE", "RESULT", "RETRY", "DELAY"])
        words: list[Word] = [kind, *self.member()]
        if kind == "RESULT":
            words.append("result")
        if kind == "RETRY":
            words += [self.draw.choice([0, 600_000]), self.draw.choice([1, 2, 3]), "error"]
        return words + self.when() if kind == "DELAY" else words

    def round(self) -> list[Word]:
        """The words of a NEXT that does not wait."""
        count = self.draw.choice([1, 2, 5])
        sources = self.draw.choice([["FLAT"], ["LANES"], ["FLAT", "LANES"], ["LANES", "FLAT"]])
        words: list[Word] = [self.lease(), *self.maybe("COUNT", count), *self.maybe("FROM", *sources), *self.maximum()]
        words += [*self.maybe("PROMOTE", count - 1), *self.maybe("REAP", count - 1)]
        endings = self.draw.choice([0, 1, 2, 4])
        if endings:
            words += ["SETTLE", endings]
        for _ in range(endings):
            words += self.ending()
        return words

    def when(self) -> list[Word]:
        return self.draw.choice([["IN", 0], ["IN", 600_000], ["AT", 0], ["AT", 4_000_000_000_000]])


_CALLS: Mapping[str, Callable[[Play], list[Word]]] = {
    "enqueue": lambda play: [play.job(), "payload"],
    "schedule": lambda play: [play.job(), "payload", *play.when()],
    "claim": lambda play: [play.lease()],
    "complete": lambda play: [*play.member(), *play.maybe("RESULT", "result")],
    "retry": lambda play: [*play.member(), play.draw.choice([0, 600_000]), play.draw.choice([1, 2, 3]), "error"],
    "delay": lambda play: [*play.member(), *play.when()],
    "extend": lambda play: [*play.member(), play.lease()],
    "promote": lambda play: play.limit(),
    "reap": lambda play: [*play.limit(), *play.maximum()],
    "menqueue": lambda play: [play.job(), "one", play.job(), "two"],
    "mclaim": lambda play: [play.lease(), play.draw.choice([1, 2, 5])],
    "mcomplete": lambda play: [*play.member(), *play.member()],
    "mextend": lambda play: [play.lease(), *play.member(), *play.member()],
    "genqueue": lambda play: [play.group(), play.job(), "payload"],
    "gclaim": lambda play: [play.lease()],
    "gwclaim": lambda play: [play.lease()],
    "gmclaim": lambda play: [play.lease(), play.draw.choice([1, 2, 5])],
    "gpause": lambda play: [play.group()],
    "gresume": lambda play: [play.group()],
    "glimit": lambda play: [play.group(), play.draw.choice([0, 1, 2])],
    "gweight": lambda play: [play.group(), play.draw.choice([0, 1, 3])],
    "greassign": lambda play: [play.job(), play.group()],
    "gdrain": lambda play: [play.group(), *play.limit()],
    "greap": lambda play: [play.group(), *play.limit(), *play.maximum()],
    "drain": lambda play: [*play.maybe("SCHEDULED"), "LIMIT", 1],
    "remove": lambda play: [play.job(), *play.maybe("FORCE")],
    "reprocess": lambda play: [play.job()],
    "update": lambda play: [play.job(), "changed"],
    "progress": lambda play: [play.job(), "50"],
    "log": lambda play: [play.job(), "line", *play.maybe("KEEP", 2)],
    "repeat": lambda play: ["nightly", "EVERY", 1, "template", *play.maybe("AT", 0)],
    "unrepeat": lambda play: ["nightly"],
    "fire": lambda play: ["nightly", play.lab.now(), play.job()],
    "next": lambda play: play.round(),
    "pause": lambda play: [],
    "resume": lambda play: [],
    "obliterate": lambda play: [*play.maybe("FORCE"), "LIMIT", 2],
}
