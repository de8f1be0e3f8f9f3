# SPDX-License-Identifier: BSD-3-Clause
"""The verbs as data, for cases that speak about all of them.

`VERBS` repeats the table of all verbs in the contract: flags, forms of a call, and the keys whose kind is tested before
anything else. `NUMBERS` are the bounds of every kind of number. `SCENES` are situations in which a verb has an effect,
with the reply that it then gives; `IDLE` are those in which it has none.

A form is the words after the queue key: words in capitals stand for themselves, the others are slots that `fill` gives
a sound value, so that a law can put a bad one in the place of each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from .case import full_name
from .wire import Map, Reply, Word

if TYPE_CHECKING:
    from .lab import Lab

M: Final = 9_007_199_254_740_991
LEASE: Final = 60_000
GROUP: Final = "g"
MAX: Final = 2_147_483_647

LANE_KEYS: Final = (f"g:{GROUP}:pending", "ring", "wake", "lanes", "paused", "glimit", "gactive")
PLACE_KEYS: Final = ("pending", "active", "schedule", "dead", "held")


@dataclass(frozen=True)
class Number:
    """Bounds of a kind of number; `sum`: now + value must not be above M either."""

    low: int
    high: int
    sum: bool = False

    def text(self, name: str) -> str:
        """The refusal of a value outside."""
        return f"ERR {name} must be an integer between {self.low} and {self.high}"


NUMBERS: Final[Mapping[str, Number]] = {
    "lease": Number(1, M, sum=True),
    "delay": Number(0, M, sum=True),
    "in": Number(0, M, sum=True),
    "at": Number(0, M),
    "max": Number(1, MAX),
    "limit": Number(1, 10_000),
    "keep": Number(1, 10_000),
    "count": Number(1, 10_000),
    "every": Number(1, M, sum=True),
    "next": Number(0, M),
    "ceiling": Number(0, MAX),
    "weight": Number(0, 10_000),
    "promote": Number(0, 10_000),
    "reap": Number(0, 10_000),
}

DEFAULTS: Final[Mapping[str, Word]] = {
    "payload": "payload",
    "token": "1",
    "lease": LEASE,
    "delay": 1000,
    "in": 1000,
    "at": 1_900_000_000_000,
    "max": 3,
    "limit": 10,
    "keep": 10,
    "count": 10,
    "every": 1000,
    "next": M,
    "ceiling": 5,
    "weight": 5,
    "group": GROUP,
    "other": "h",
    "name": "nightly",
    "template": "template",
    "error": "boom",
    "result": "result",
    "line": "line",
    "text": "text",
    "promote": 10,
    "reap": 10,
    "one": 1,
}


def fill(form: str, lab: Lab, **values: Word) -> list[Word]:
    """The words of a form, every slot with its sound value or the one given."""
    sound: dict[str, Word] = {**DEFAULTS, "id": lab.a, **values}
    return [word if word.isupper() else sound[word] for word in form.split()]


@dataclass(frozen=True)
class Verb:
    """One row of the table of verbs.

    flags: as in the contract, W write, R readonly, O growing, F fast, B blocking. keys: of step 7 by their suffixes;
    `row` is the row of the id that the call names or meets, `rows` those that a mover meets.
    """

    name: str
    flags: str
    forms: tuple[str, ...]
    keys: tuple[str, ...]

    @property
    def writes(self) -> bool:
        return "W" in self.flags

    @property
    def grows(self) -> bool:
        return "O" in self.flags

    @property
    def blocks(self) -> bool:
        return "B" in self.flags

    def slots(self, kind: str) -> Iterator[str]:
        """The forms that have a slot of this kind."""
        return (form for form in self.forms if kind in form.split())

    @property
    def takes_ids(self) -> bool:
        return any(True for _ in self.slots("id"))


_CLAIM = ("meta", "pending", "active", "row")
_SETTLE = ("active", "pending", "metrics:completed", "row")
_LANE_CLAIM = ("meta", "active", "ring", "row")
_REAP = ("active", "pending", "dead", "metrics:failed", "rows")

_ROUNDS = (
    "lease",
    "lease COUNT count FROM LANES FLAT PROMOTE promote REAP reap MAX max",
    "lease SETTLE one COMPLETE id token",
    "lease SETTLE one RESULT id token result",
    "lease SETTLE one RETRY id token delay max error",
    "lease SETTLE one DELAY id token IN in",
    "lease COUNT count SETTLE one DELAY id token AT at",
)

_TABLE: Final[tuple[tuple[str, str, tuple[str, ...], tuple[str, ...]], ...]] = (
    ("ENQUEUE", "WOF", ("id payload",), ("pending", "row")),
    ("SCHEDULE", "WOF", ("id payload IN in", "id payload AT at"), ("schedule", "row")),
    ("CLAIM", "WF", ("lease",), _CLAIM),
    ("COMPLETE", "WF", ("id token", "id token RESULT result"), _SETTLE),
    ("RETRY", "WF", ("id token delay max error",), ("active", "pending", "schedule", "dead", "metrics:failed", "row")),
    ("DELAY", "WF", ("id token IN in", "id token AT at"), ("active", "pending", "schedule", "row")),
    ("EXTEND", "WF", ("id token lease",), ("active", "row")),
    ("PROMOTE", "W", ("", "LIMIT limit"), ("schedule", "pending", "rows")),
    ("REAP", "W", ("", "LIMIT limit", "MAX max", "LIMIT limit MAX max", "MAX max LIMIT limit"), _REAP),
    ("STATE", "RF", ("id",), ("row", *PLACE_KEYS)),
    ("COUNTS", "R", ("",), (*PLACE_KEYS, "lanes", "metrics:completed", "metrics:failed")),
    ("PEEK", "RF", ("id",), ("row",)),
    ("VERSION", "RF", ("",), ()),
    ("MENQUEUE", "WO", ("id payload",), ("pending", "row")),
    ("MCLAIM", "W", ("lease count",), _CLAIM),
    ("MCOMPLETE", "W", ("id token",), _SETTLE),
    ("MEXTEND", "W", ("lease id token",), ("active", "row")),
    ("GENQUEUE", "WOF", ("group id payload",), (*LANE_KEYS, "row")),
    ("GCLAIM", "WF", ("lease",), _LANE_CLAIM),
    ("GWCLAIM", "W", ("lease",), (*_LANE_CLAIM, "gweight")),
    ("GMCLAIM", "W", ("lease count",), _LANE_CLAIM),
    ("GPAUSE", "WF", ("group",), (*LANE_KEYS, "gweight")),
    ("GRESUME", "WF", ("group",), (*LANE_KEYS, "gweight")),
    ("GLIMIT", "WF", ("group ceiling",), (*LANE_KEYS, "gweight")),
    ("GWEIGHT", "WF", ("group weight",), (*LANE_KEYS, "gweight")),
    ("GREASSIGN", "WF", ("id group",), (*LANE_KEYS, "row")),
    ("GDRAIN", "W", ("group", "group LIMIT limit"), (*LANE_KEYS, "rows")),
    ("GREAP", "W", ("group", "group LIMIT limit", "group MAX max", "group LIMIT limit MAX max"), (*_REAP, *LANE_KEYS)),
    ("GCOUNTS", "R", ("", "group"), ("lanes", "gactive", f"g:{GROUP}:pending")),
    ("PAUSE", "WF", ("",), ("meta",)),
    ("RESUME", "WF", ("",), ("meta",)),
    ("DRAIN", "W", ("", "LIMIT limit", "SCHEDULED", "SCHEDULED LIMIT limit"), ("pending", "schedule", "rows")),
    (
        "OBLITERATE",
        "W",
        ("", "FORCE", "LIMIT limit", "FORCE LIMIT limit"),
        ("meta", *PLACE_KEYS, f"g:{GROUP}:pending", "lanes", "repeat", "flow:outbox", "metrics:failed", "rows"),
    ),
    ("REMOVE", "WF", ("id", "id FORCE"), (*PLACE_KEYS, "row")),
    ("REPROCESS", "WF", ("id",), ("dead", "pending", "row")),
    ("UPDATE", "WOF", ("id payload",), ("row",)),
    ("PROGRESS", "WOF", ("id text",), ("row",)),
    ("LOG", "WOF", ("id line", "id line KEEP keep"), ("row", "logs")),
    ("REPEAT", "WOF", ("name EVERY every template", "name EVERY every template AT at"), ("repeat", "repeat:nightly")),
    ("UNREPEAT", "WF", ("name",), ("repeat", "repeat:nightly")),
    ("FIRE", "WOF", ("name next id",), ("repeat", "repeat:nightly", "pending", "row")),
    ("NEXT", "WB", _ROUNDS, ()),
)

VERBS: Final[Mapping[str, Verb]] = {
    full_name(name): Verb(full_name(name), flags, forms, keys) for name, flags, forms, keys in _TABLE
}
"""Every verb with a queue key that some executor serves, by its name in TRA.CAPABILITIES."""

LATER: Final = ("flow", "flowhold", "flowchild", "flowsweep", "flowdeliver", "flowack")
"""Verbs of the contract that no executor serves yet, by their short names."""


@dataclass(frozen=True)
class Scene:
    """A situation in which a verb has one effect, on the job `lab.a` where there is one.

    place: where the job is (None: there is none). group: the group that it always has. setup: what else is there.
    values: of the slots of `form`. reply: what the verb answers, a value or a function of the lab.
    lane: with a group the call reads +lane. up: with a parent it reads +up, and the child's end is `done` or `failed`.
    """

    verb: str
    form: str
    reply: object
    place: str | None = None
    group: str | None = None
    score: int | None = None
    setup: Callable[[Lab], object] | None = None
    values: Mapping[str, Word] = field(default_factory=dict)
    lane: bool = False
    up: str | None = None
    title: str = ""

    @property
    def row(self) -> Verb:
        """The verb in the table."""
        return VERBS[full_name(self.verb)]

    def __str__(self) -> str:
        return f"{self.verb}-{self.title}" if self.title else self.verb

    def prepare(self, lab: Lab, *, group: str | None = None, fields: Mapping[str, Word] | None = None) -> list[Word]:
        """Bring the queue of a lab into the situation; returns the words of the call.

        group, fields: of the row. A flat claim meets a job of a group only where a foreign write left it in `pending`.
        """
        if self.setup is not None:
            self.setup(lab)
        if self.place is not None and self.verb in ("claim", "mclaim") and group is not None:
            lab.seed(lab.a, self.place, fields={**(fields or {}), "group": group})
        elif self.place is not None:
            lab.seed(lab.a, self.place, group=group or self.group, score=self.score, fields=fields)
        return fill(self.form, lab, **self.values)

    def answer(self, lab: Lab) -> object:
        """The reply that the contract promises."""
        return self.reply(lab) if callable(self.reply) else self.reply


def _triple(lab: Lab) -> list[Reply]:
    return [lab.a.encode(), b"payload", 1]


def _quadruple(lab: Lab) -> list[Reply]:
    return [*_triple(lab), GROUP.encode()]


def _repeat(lab: Lab) -> None:
    lab.plain("HSET", lab.key("repeat:nightly"), "every_ms", "1000", "template", "template")
    lab.plain("ZADD", lab.key("repeat"), 1, "nightly")


def _weight(lab: Lab) -> None:
    lab.plain("HSET", lab.key("gweight"), GROUP, 3)


def _running(lab: Lab) -> None:
    lab.seed(lab.b, "active", group=GROUP)


def _counts(lab: Lab) -> list[Reply]:
    names = ("pending", "active", "scheduled", "dead", "awaiting_children", "completed", "failed")
    flat: list[Reply] = []
    for name in names:
        flat += [name.encode(), 1 if name == "pending" else 0]
    return flat


def _settled(word: bytes) -> list[Reply]:
    return [[word], [], None]


def _peek(_: Lab) -> list[Reply]:
    return [b"state", b"pending", b"attempts", b"0", b"payload", b"payload"]


SCENES: Final[tuple[Scene, ...]] = (
    Scene("enqueue", "id payload", 1),
    Scene("schedule", "id payload IN in", 1, title="in"),
    Scene("schedule", "id payload AT at", 1, title="at"),
    Scene("claim", "lease", _triple, "pending", lane=True),
    Scene("complete", "id token", 1, "active", lane=True, up="done"),
    Scene("complete", "id token RESULT result", 1, "active", lane=True, up="done", title="result"),
    Scene("retry", "id token delay max error", b"scheduled", "active", lane=True, title="scheduled"),
    Scene(
        "retry", "id token delay max error", b"dead", "active", values={"max": 1}, lane=True, up="failed", title="dead"
    ),
    Scene("delay", "id token IN in", 1, "active", lane=True, title="in"),
    Scene("delay", "id token AT at", 1, "active", lane=True, title="at"),
    Scene("extend", "id token lease", 1, "active", score=1),
    Scene("promote", "", 1, "schedule", score=1, lane=True),
    Scene("reap", "", 1, "active", score=1, lane=True, title="waiting"),
    Scene("reap", "MAX max", 1, "active", score=1, values={"max": 1}, lane=True, up="failed", title="dead"),
    Scene("menqueue", "id payload", [1]),
    Scene("mclaim", "lease count", lambda lab: [_triple(lab)], "pending", lane=True),
    Scene("mcomplete", "id token", [1], "active", lane=True, up="done"),
    Scene("mextend", "lease id token", [], "active", score=1),
    Scene("genqueue", "group id payload", 1),
    Scene("gclaim", "lease", _quadruple, "pending", GROUP, lane=True),
    Scene("gwclaim", "lease", lambda lab: [_quadruple(lab)], "pending", GROUP, setup=_weight, lane=True),
    Scene("gmclaim", "lease count", lambda lab: [_quadruple(lab)], "pending", GROUP, lane=True),
    Scene("gpause", "group", 1, "pending", GROUP),
    Scene("gresume", "group", 1, "pending", GROUP, setup=lambda lab: lab.park(GROUP)),
    Scene("glimit", "group ceiling", 1, "pending", GROUP, title="set"),
    Scene(
        "glimit",
        "group ceiling",
        1,
        "pending",
        GROUP,
        setup=lambda lab: lab.limit(GROUP, 2),
        values={"ceiling": 0},
        title="off",
    ),
    Scene("gweight", "group weight", 1, title="set"),
    Scene("gweight", "group weight", 1, setup=_weight, values={"weight": 0}, title="off"),
    Scene("greassign", "id group", 1, "pending", "f"),
    Scene("gdrain", "group", 1, "pending", GROUP, up="failed"),
    Scene("greap", "group", 1, "active", GROUP, score=1, title="waiting"),
    Scene("greap", "group MAX max", 1, "active", GROUP, score=1, values={"max": 1}, up="failed", title="dead"),
    Scene("pause", "", 1),
    Scene("resume", "", 1, setup=lambda lab: lab.pause()),
    Scene("drain", "", 1, "pending", up="failed", title="pending"),
    Scene("drain", "SCHEDULED", 1, "schedule", lane=True, up="failed", title="scheduled"),
    Scene("obliterate", "", 0, "pending", setup=lambda lab: lab.pause(), up="failed"),
    Scene("obliterate", "", 0, "pending", GROUP, setup=lambda lab: lab.pause(), title="lane"),
    Scene("obliterate", "FORCE", 0, "active", setup=lambda lab: lab.pause(), lane=True, up="failed", title="force"),
    Scene("remove", "id", 1, "pending", lane=True, up="failed"),
    Scene("remove", "id FORCE", 1, "active", lane=True, up="failed", title="force"),
    Scene("reprocess", "id", 1, "dead", lane=True),
    Scene("update", "id payload", 1, "pending", values={"payload": "new"}),
    Scene("progress", "id text", 1, "active"),
    Scene("log", "id line", 1, "active"),
    Scene("log", "id line KEEP keep", 1, "active", values={"keep": 1}, title="keep"),
    Scene("repeat", "name EVERY every template", 1, title="every"),
    Scene("repeat", "name EVERY every template AT at", 1, title="at"),
    Scene("unrepeat", "name", 1, setup=_repeat),
    Scene("fire", "name next id", 1, setup=_repeat),
)

NATIVE_SCENES: Final[tuple[Scene, ...]] = (
    Scene("next", "lease", lambda lab: [[], [[*_triple(lab), None]], None], "pending", title="flat"),
    Scene("next", "lease", lambda lab: [[], [_quadruple(lab)], None], "pending", GROUP, title="lane"),
    Scene("next", "lease", lambda lab: [[], [[*_triple(lab), None]], None], "schedule", score=1, title="due"),
    Scene("next", "lease SETTLE one COMPLETE id token", _settled(b"completed"), "active", lane=True, up="done"),
    Scene(
        "next",
        "lease SETTLE one RESULT id token result",
        _settled(b"completed"),
        "active",
        lane=True,
        up="done",
        title="result",
    ),
    Scene(
        "next",
        "lease SETTLE one RETRY id token delay max error",
        _settled(b"scheduled"),
        "active",
        lane=True,
        title="scheduled",
    ),
    Scene(
        "next",
        "lease SETTLE one RETRY id token delay max error",
        _settled(b"dead"),
        "active",
        values={"max": 1},
        lane=True,
        up="failed",
        title="dead",
    ),
    Scene("next", "lease SETTLE one DELAY id token IN in", _settled(b"delayed"), "active", lane=True, title="delayed"),
)
"""The same of verbs that only the module has."""

READS: Final[tuple[Scene, ...]] = (
    Scene("state", "id", b"pending", "pending"),
    Scene("state", "id", b"absent", title="absent"),
    Scene("counts", "", _counts, "pending"),
    Scene("peek", "id", _peek, "pending"),
    Scene("peek", "id", None, title="absent"),
    Scene("gcounts", "", [[b"g", 1, 0]], "pending", GROUP),
    Scene("gcounts", "group", [[b"g", 0, 0]], title="empty"),
)
"""Situations in which a reading verb answers something."""

IDLE: Final[tuple[Scene, ...]] = (
    Scene("enqueue", "id payload", 0, "pending", title="twice"),
    Scene("schedule", "id payload IN in", 0, "active", title="twice"),
    Scene("claim", "lease", [], title="empty"),
    Scene("claim", "lease", [], "pending", setup=lambda lab: lab.pause(), title="paused"),
    Scene("complete", "id token", 0, title="gone"),
    Scene("extend", "id token lease", -1, title="gone"),
    Scene("promote", "", 0, title="nothing"),
    Scene("promote", "", 0, "schedule", score=M, title="not-due"),
    Scene("reap", "", 0, title="nothing"),
    Scene("reap", "MAX max", 0, "active", title="not-lapsed"),
    Scene("menqueue", "id payload", [0], "dead", title="twice"),
    Scene("mclaim", "lease count", [], title="empty"),
    Scene("mclaim", "lease count", [], "pending", setup=lambda lab: lab.pause(), title="paused"),
    Scene("mcomplete", "id token", [0], title="gone"),
    Scene("mcomplete", "id token", [-1], "active", values={"token": "9"}, title="stale"),
    Scene("mextend", "lease id token", lambda lab: [lab.a.encode()], title="gone"),
    Scene("mextend", "lease id token", lambda lab: [lab.a.encode()], "active", values={"token": "9"}, title="stale"),
    Scene("genqueue", "group id payload", 0, "pending", title="twice"),
    Scene("gclaim", "lease", [], title="empty"),
    Scene("gclaim", "lease", [], "pending", GROUP, setup=lambda lab: lab.pause(), title="paused"),
    Scene("gwclaim", "lease", [], title="empty"),
    Scene("gwclaim", "lease", [], "pending", GROUP, setup=lambda lab: lab.pause(), title="paused"),
    Scene("gmclaim", "lease count", [], title="empty"),
    Scene("gmclaim", "lease count", [], "pending", GROUP, setup=lambda lab: lab.pause(), title="paused"),
    Scene("greassign", "id group", -1, title="gone"),
    Scene("greassign", "id group", -1, "pending", title="flat"),
    Scene("greassign", "id group", 0, "pending", GROUP, title="same"),
    Scene("greassign", "id group", -2, "active", "f", title="active"),
    Scene("gdrain", "group", 0, title="empty"),
    Scene("greap", "group", 0, title="nothing"),
    Scene("drain", "SCHEDULED", 0, title="empty"),
    Scene("remove", "id", -1, title="gone"),
    Scene("reprocess", "id", -1, title="gone"),
    Scene("update", "id payload", -1, title="gone"),
    Scene("progress", "id text", -1, title="gone"),
    Scene("log", "id line", -1, title="gone"),
    Scene("repeat", "name EVERY every template", 0, setup=_repeat, title="twice"),
    Scene("unrepeat", "name", 0, title="gone"),
    Scene("fire", "name next id", 0, title="gone"),
    Scene("fire", "name next id", 0, setup=_repeat, values={"next": 1}, title="not-later"),
    Scene("fire", "name next id", 0, "dead", setup=_repeat, title="taken"),
)
"""Situations in which a verb answers that there is nothing to do."""

NATIVE_IDLE: Final[tuple[Scene, ...]] = (
    Scene("next", "lease", [[], [], None], title="empty"),
    Scene("next", "lease", [[], [], None], "pending", setup=lambda lab: lab.pause(), title="paused"),
    Scene("next", "lease SETTLE one COMPLETE id token", _settled(b"gone"), title="gone"),
    Scene(
        "next", "lease SETTLE one COMPLETE id token", _settled(b"stale"), "active", values={"token": "9"}, title="stale"
    ),
    Scene(
        "next",
        "lease SETTLE one RETRY id token delay max error",
        _settled(b"inactive"),
        "dead",
        values={"token": "0"},
        title="inactive",
    ),
)
"""The same of verbs that only the module has."""


@dataclass(frozen=True)
class Refusal:
    """A call that is refused by the data: steps 8 to 10 of the order of refusals."""

    verb: str
    form: str
    text: str
    place: str | None = None
    setup: Callable[[Lab], object] | None = None
    values: Mapping[str, Word] = field(default_factory=dict)
    title: str = ""

    def __str__(self) -> str:
        return f"{self.verb}-{self.title}"

    def prepare(self, lab: Lab) -> list[Word]:
        """Bring the queue into the situation; returns the words of the call."""
        return Scene(self.verb, self.form, None, self.place, setup=self.setup, values=self.values).prepare(lab)


def _lock(lab: Lab) -> None:
    lab.plain("SET", lab.row(lab.a, "lock"), "somebody")


def _outbox(lab: Lab) -> None:
    lab.pause()
    lab.plain("RPUSH", lab.key("flow:outbox"), b"\0".join([b"other", lab.c.encode(), lab.d.encode(), b"result"]))


def _paused_and_running(lab: Lab) -> None:
    lab.pause()
    lab.seed(lab.b, "active")


_STALE: Final[Mapping[str, Word]] = {"token": "2"}

REFUSALS: Final[tuple[Refusal, ...]] = (
    Refusal("complete", "id token", "EMQSTALE complete token mismatch", "active", values=_STALE, title="stale"),
    Refusal("complete", "id token", "EMQSTATE job is not active", "pending", values={"token": 0}, title="pending"),
    Refusal("retry", "id token delay max error", "EMQSTALE job gone", title="gone"),
    Refusal(
        "retry", "id token delay max error", "EMQSTALE retry token mismatch", "active", values=_STALE, title="stale"
    ),
    Refusal(
        "retry", "id token delay max error", "EMQSTATE job is not active", "dead", values={"token": 0}, title="dead"
    ),
    Refusal("delay", "id token IN in", "EMQSTALE job gone", title="gone"),
    Refusal("delay", "id token IN in", "EMQSTALE delay token mismatch", "active", values=_STALE, title="stale"),
    Refusal(
        "delay", "id token AT at", "EMQSTATE job is not active", "schedule", values={"token": 0}, title="scheduled"
    ),
    Refusal("extend", "id token lease", "EMQSTALE extend token mismatch", "active", values=_STALE, title="stale"),
    Refusal("extend", "id token lease", "EMQSTATE job is not active", "pending", values={"token": 0}, title="pending"),
    Refusal("remove", "id", "EMQLOCK job is active", "active", title="active"),
    Refusal("remove", "id", "EMQLOCK job is locked", "pending", setup=_lock, title="locked"),
    Refusal("reprocess", "id", "EMQSTATE not dead", "pending", title="pending"),
    Refusal("obliterate", "", "EMQSTATE not paused", "pending", title="open"),
    Refusal("obliterate", "", "EMQSTATE active jobs present", setup=_paused_and_running, title="active"),
    Refusal("obliterate", "", "EMQSTATE flow outbox is not empty", setup=_outbox, title="outbox"),
)


def flat(reply: Reply) -> Reply:
    """A reply with a map at its top as the flat array that RESP2 sends; any other as it is."""
    if isinstance(reply, Map):
        return [item for pair in reply.pairs for item in pair]
    return reply
