"""The verbs of the contract, once: what each changes, which keys it names, and which of its words are ids or names.

Everything that has to know a verb reads this table: the executors that frame it, the connector that asks whether it
may be sent again, the tests that run over all verbs. A grammar is written as in the contract, without the verb and the
queue key: words in their fixed positions, then options, then a tail whose words repeat together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

__all__ = ["VERBS", "Effect", "Verb"]


class Effect(Enum):
    """What a verb may do to data, and so which flags its command or script carries."""

    GROWS = "grows"  # may need memory: refused on a full server
    WRITES = "writes"  # settles, moves or removes: goes on when the server is full
    READS = "reads"


@dataclass(frozen=True, slots=True)
class Verb:
    """One verb of the contract.

    name      as in TRA.CAPABILITIES, for example ``emq.claim``
    effect    what it may do to data
    words     the words in fixed positions after the queue key
    options   the option words that may follow them, each with the number of its values
    tail      the words that repeat until the end of the call
    keys      every key that is known before the call, without ``emq:{NAME}:``; ``<id>``, ``<group>`` and ``<name>``
              stand for the words of that name
    resend    sending it twice does what sending it once does, so it may be sent again after a lost answer
    scripted  there is a script for it
    """

    name: str
    effect: Effect
    words: tuple[str, ...] = ()
    options: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    tail: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    resend: bool = True
    scripted: bool = True
    revision: int = 1

    @property
    def capability(self) -> str:
        """The entry of TRA.CAPABILITIES, for example ``emq.claim/1``."""
        return f"{self.name}/{self.revision}"

    def positions(self, word: str, count: int) -> Iterator[int]:
        """Where ``word`` stands in a call of ``count`` words, the queue key being word 0."""
        for position, known in enumerate(self.words, 1):
            if known == word and position < count:
                yield position
        if word in self.tail:
            yield from range(1 + len(self.words) + self.tail.index(word), count, len(self.tail))

    def values(self, word: str, words: Sequence[bytes]) -> list[bytes]:
        """The words of a call that stand where ``word`` stands in the grammar. A malformed call simply has fewer."""
        return [words[position] for position in self.positions(word, len(words))]


_LANE = ("g:<group>:pending", "ring", "wake", "lanes", "paused", "glimit", "gactive")
_PLACES = ("pending", "active", "schedule", "dead", "held")
_SETTLED = ("active", "pending", "metrics:completed")
_REAPED = ("active", "pending", "dead", "metrics:failed")
_LIMIT = {"LIMIT": 1}


def _verb(
    name: str,
    effect: Effect,
    words: str = "",
    keys: Sequence[str] = (),
    *,
    options: Mapping[str, int] = MappingProxyType({}),
    tail: str = "",
    resend: bool = True,
    scripted: bool = True,
) -> Verb:
    return Verb(
        name=name,
        effect=effect,
        words=tuple(words.split()),
        options=MappingProxyType(dict(options)),
        tail=tuple(tail.split()),
        keys=tuple(keys),
        resend=resend,
        scripted=scripted,
    )


_GROWS, _WRITES, _READS = Effect.GROWS, Effect.WRITES, Effect.READS

VERBS: Mapping[str, Verb] = MappingProxyType(
    {
        verb.name: verb
        for verb in (
            # core
            _verb("emq.enqueue", _GROWS, "id payload", ("pending", "job:<id>")),
            _verb("emq.schedule", _GROWS, "id payload when ms", ("schedule", "job:<id>")),
            _verb("emq.claim", _WRITES, "lease", ("meta", "pending", "active"), resend=False),
            _verb("emq.complete", _WRITES, "id token", (*_SETTLED, "job:<id>"), options={"RESULT": 1}),
            _verb(
                "emq.retry",
                _WRITES,
                "id token delay max error",
                ("active", "pending", "schedule", "dead", "metrics:failed", "job:<id>"),
            ),
            _verb("emq.delay", _WRITES, "id token when ms", ("active", "pending", "schedule", "job:<id>")),
            _verb("emq.extend", _WRITES, "id token lease", ("active", "job:<id>")),
            _verb("emq.promote", _WRITES, "", ("schedule", "pending"), options=_LIMIT),
            _verb("emq.reap", _WRITES, "", _REAPED, options={"LIMIT": 1, "MAX": 1}),
            _verb("emq.state", _READS, "id", ("job:<id>", *_PLACES)),
            _verb("emq.counts", _READS, "", (*_PLACES, "lanes", "metrics:completed", "metrics:failed")),
            _verb("emq.peek", _READS, "id", ("job:<id>",)),
            _verb("emq.version", _READS, scripted=False),
            _verb("tra.capabilities", _READS, scripted=False),
            # many
            _verb("emq.menqueue", _GROWS, "", ("pending", "job:<id>"), tail="id payload"),
            _verb("emq.mclaim", _WRITES, "lease count", ("meta", "pending", "active"), resend=False),
            _verb("emq.mcomplete", _WRITES, "", (*_SETTLED, "job:<id>"), tail="id token"),
            _verb("emq.mextend", _WRITES, "lease", ("active", "job:<id>"), tail="id token"),
            # lanes
            _verb("emq.genqueue", _GROWS, "group id payload", (*_LANE, "job:<id>")),
            _verb("emq.gclaim", _WRITES, "lease", ("meta", "active", "ring"), resend=False),
            _verb("emq.gwclaim", _WRITES, "lease", ("meta", "active", "ring", "gweight"), resend=False),
            _verb("emq.gmclaim", _WRITES, "lease count", ("meta", "active", "ring"), resend=False),
            _verb("emq.gpause", _WRITES, "group", (*_LANE, "gweight")),
            _verb("emq.gresume", _WRITES, "group", (*_LANE, "gweight")),
            _verb("emq.glimit", _WRITES, "group ceiling", (*_LANE, "gweight")),
            _verb("emq.gweight", _WRITES, "group weight", (*_LANE, "gweight")),
            _verb("emq.greassign", _WRITES, "id group", (*_LANE, "job:<id>")),
            _verb("emq.gdrain", _WRITES, "group", _LANE, options=_LIMIT),
            _verb("emq.greap", _WRITES, "group", (*_REAPED, *_LANE), options={"LIMIT": 1, "MAX": 1}),
            _verb("emq.gcounts", _READS, "", ("lanes", "gactive", "g:<group>:pending"), tail="group"),
            # queue
            _verb("emq.pause", _WRITES, "", ("meta",)),
            _verb("emq.resume", _WRITES, "", ("meta",)),
            _verb("emq.drain", _WRITES, "", ("pending", "schedule"), options={"SCHEDULED": 0, "LIMIT": 1}),
            _verb(
                "emq.obliterate",
                _WRITES,
                "",
                ("meta", *_PLACES, "lanes", "repeat", "flow:outbox", "metrics:failed"),
                options={"FORCE": 0, "LIMIT": 1},
            ),
            # job
            _verb("emq.remove", _WRITES, "id", (*_PLACES, "job:<id>"), options={"FORCE": 0}),
            _verb("emq.reprocess", _WRITES, "id", ("dead", "pending", "job:<id>")),
            _verb("emq.update", _GROWS, "id payload", ("job:<id>",)),
            _verb("emq.progress", _GROWS, "id text", ("job:<id>",), resend=False),
            _verb("emq.log", _GROWS, "id line", ("job:<id>", "job:<id>:logs"), options={"KEEP": 1}, resend=False),
            # repeat
            _verb("emq.repeat", _GROWS, "name every ms template", ("repeat", "repeat:<name>"), options={"AT": 1}),
            _verb("emq.unrepeat", _WRITES, "name", ("repeat", "repeat:<name>")),
            _verb("emq.fire", _GROWS, "name next id", ("repeat", "repeat:<name>", "pending", "job:<id>")),
            # worker; FROM takes one source or two, SETTLE a number and that many entries up to the end
            _verb(
                "emq.next",
                _WRITES,
                "lease",
                options={"COUNT": 1, "FROM": 1, "BLOCK": 1, "PROMOTE": 1, "REAP": 1, "MAX": 1, "SETTLE": 1},
                resend=False,
                scripted=False,
            ),
        )
    }
)
"""Every verb of this revision by its name."""
