"""Random steps that are worth taking.

A walk looks at the model to choose words that mostly mean something: an id that is there, the token that is good. Each
walk has likings of its own, which verbs and which harm by others, so that different walks go to different places. The
same seed walks the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from tests.model.data import Hash, List, Zset
from tests.model.machine import BEGIN, FAR, LEAP, QUEUES, Command, Divergence, Machine, Step, show, shrink
from tests.model.model import KINDS, PLACES, SUBKEYS, Model, Refusal, lane, row
from tests.model.words import VERBS

LENGTH = 300

# Ids whose order by bytes is not the order of a dictionary.
JOBS = [b"JOB0KHTOWnGL" + end for end in (b"09", b"0A", b"0a", b"0Z", b"0z", b"Aa", b"aA", b"Za", b"zZ", b"z0")]
PARENTS = [
    b"JOB0NgWEfAEJ" + end for end in (b"00", b"0A", b"0a", b"A0", b"B0", b"a0", b"b0", b"x0", b"x1", b"x2", b"x3")
]
GROUPS = (b"a", b"B", b"a.b", b"JOB-1")
REPEATS = (b"n", b"N.1")
TEXTS = (b"", b"p", b'{"a": 1}', b'q"\\/\r\n\0\x7f\x1f', "\u00e4\u20ac".encode(), b"1", b"fail")
WRONG_IDS = (
    *(b"ORD0KHTOWnGLuC", b"JOB0KHTOWnGLu", b"JOB0KHTOWnGLuCx", b"JOBAzL8n0Y58m8", b"JOBB0000000000", b"JOB0KHTOWnGL!C"),
    *(b"job0KHTOWnGLuC", b""),
)
WRONG_QUEUES = (b"emq:{}", b"emq:{emq}", b"emq:{a b}", b"orders", b"emq:{orders}x", b"emq:{" + b"q" * 129 + b"}")
WRONG_NUMBERS = (
    *(b"", b"x", b"0", b"-1", b"-0", b"01", b"00", b"+5", b" 5", b"5 ", b"1e3", b"0x10", b"5.0", b"10000", b"10001"),
    *(b"9007199254740991", b"9007199254740992", b"99999999999999999999", b"9" * 400),
)
WRONG_WORDS = (
    *WRONG_NUMBERS,
    *(
        b"\xff\0",
        b"a b",
        b"g" * 64,
        b"g" * 65,
        b"n" * 128,
        b"n" * 129,
        b"LIMIT",
        b"limit",
        b"MAX",
        b"FORCE",
        b"AT",
        b"in",
    ),
)
STALE_TOKENS = (b"0", b"1", b"2", b"3", b"4", b"01", b"", b"x", b"9007199254740991")

LIKINGS = {
    **dict.fromkeys(VERBS, 3),
    **dict.fromkeys(("emq.enqueue", "emq.genqueue", "emq.complete", "emq.claim", "emq.gclaim", "emq.reap"), 9),
    **dict.fromkeys(
        ("emq.retry", "emq.delay", "emq.promote", "emq.schedule", "emq.mclaim", "emq.gmclaim", "emq.fire"), 6
    ),
    **dict.fromkeys(("emq.menqueue", "emq.gwclaim", "emq.mcomplete", "emq.greap", "emq.greassign"), 5),
    **dict.fromkeys(("emq.resume", "emq.gresume", "emq.glimit", "emq.gdrain", "emq.repeat", "emq.log"), 2),
    **dict.fromkeys(("emq.state", "emq.peek", "emq.counts"), 2),
    **dict.fromkeys(("emq.pause", "emq.gpause", "emq.gweight", "emq.update", "emq.progress"), 1),
    **dict.fromkeys(("emq.drain", "emq.obliterate", "emq.remove"), 1),
}
# They meet stale entries.
MOVERS = (
    "emq.claim",
    "emq.gclaim",
    "emq.gwclaim",
    "emq.promote",
    "emq.greap",
    "emq.drain",
    "emq.gdrain",
    "emq.obliterate",
)


class Walk:
    """The steps of one seed. damage: others also break what the laws promise."""

    def __init__(self, seed: int, model: Model, *, damage: bool) -> None:
        self.random = Random(seed)
        self.model = model
        choose = self.random.choice
        self.likings = {verb: liking * choose((0.2, 1, 1, 4)) for verb, liking in LIKINGS.items()}
        if damage:
            self.likings |= {verb: self.likings[verb] * 2 for verb in MOVERS}
        self.jobs = JOBS[: choose((4, 7, 10))]
        self.groups = GROUPS[: choose((1, 2, 4, 4))]
        self.wrong_words = choose((0, 0.03, 0.06))
        self.harmless = choose((0.04, 0.08, 0.15))
        self.harm = choose((0.06, 0.15)) if damage else 0
        self.harms = [
            harm
            for harm in (
                self.lose_row,
                self.spoil,
                self.spoil,
                self.spoil_parent,
                self.break_row,
                self.list_twice,
                self.list_ghost,
                self.list_lane,
                self.break_ring,
            )
            if self.random.random() < 0.6
        ] or [self.spoil]
        self.queue = QUEUES[0]

    # What there is

    def key(self, name: bytes) -> bytes:
        return self.queue + b":" + name

    def value(self, name: bytes, kind: type) -> object:
        value = self.model.keys.get(self.key(name))
        return value if type(value) is kind else kind()

    def row(self, job: bytes) -> Hash:
        return self.value(row(job), Hash)  # type: ignore[return-value]

    def listed(self, *places: bytes) -> list[bytes]:
        """All ids in some places; the lanes are places too, named by `lanes`."""
        found: list[bytes] = []
        for place in places:
            names = [lane(group) for group in self.groups] if place == b"lanes" else [place]
            for name in names:
                found += self.value(name, Zset)  # type: ignore[arg-type]
        return sorted(found)

    def likely(self, chance: float) -> bool:
        return self.random.random() < chance

    # Words

    def job(self, *places: bytes) -> bytes:
        """An id, most of the time one that is listed in one of the places."""
        there = self.listed(*places)
        if there and self.likely(0.85):
            return self.random.choice(there)
        return self.random.choice(self.jobs if self.likely(0.9) else PARENTS)

    def new_job(self) -> bytes:
        free = [job for job in self.jobs if not self.row(job)]
        return self.random.choice(free if free and self.likely(0.85) else self.jobs)

    def lent_job(self) -> bytes:
        """An id whose token may be good: active, or reaped and waiting again."""
        if self.likely(0.75):
            return self.job(b"active")
        reaped = [job for job in self.listed(b"pending", b"lanes") if b"reaped" in self.row(job)]
        return self.random.choice(reaped) if reaped else self.job(*PLACES, b"lanes")

    def token(self, job: bytes) -> bytes:
        good = self.row(job).get(b"attempts")
        return good if good is not None and self.likely(0.88) else self.random.choice(STALE_TOKENS)

    def text(self) -> bytes:
        return self.random.choice(TEXTS)

    def group(self) -> bytes:
        return self.random.choice(self.groups)

    def duration(self, *short: int) -> bytes:
        """In milliseconds: over at the next command, or not over in our days."""
        if self.likely(0.5):
            return b"%d" % self.random.choice(short)
        return b"%d" % (FAR + self.random.randrange(10) * 1000)

    def lease(self) -> bytes:
        return self.duration(1, 1, 7)

    def instant(self) -> bytes:
        return b"%d" % self.random.choice((0, 1, 2, BEGIN - 1, BEGIN + 2 * FAR, BEGIN + 2 * FAR + 1, 2**53 - 1))

    def when(self) -> tuple[bytes, bytes]:
        return (b"IN", self.duration(0, 1, 1, 7)) if self.likely(0.7) else (b"AT", self.instant())

    def few(self) -> bytes:
        return self.random.choice((b"1", b"1", b"2", b"2", b"3", b"5", b"10000"))

    def options(self, **values: Callable[[], bytes] | None) -> tuple[bytes, ...]:
        """Some of the options, in any order."""
        words: list[bytes] = []
        names = list(values)
        self.random.shuffle(names)
        for name in names:
            value = values[name]
            if self.likely(0.4):
                words += [name.encode(), *([value()] if value else [])]
        return tuple(words)

    def most(self) -> bytes:
        return self.random.choice((b"1", b"1", b"2", b"3", b"2147483647"))

    def members(self, *items: Callable[[], tuple[bytes, bytes]]) -> tuple[bytes, ...]:
        return tuple(word for _ in range(self.random.choice((1, 2, 3, 4))) for word in self.random.choice(items)())

    def lent(self) -> tuple[bytes, bytes]:
        job = self.lent_job()
        return job, self.token(job)

    def words(self, verb: str) -> tuple[bytes, ...]:
        """Words that fit the grammar of a verb."""
        match verb.partition(".")[2]:
            case "enqueue":
                return (self.new_job(), self.text())
            case "schedule":
                return (self.new_job(), self.text(), *self.when())
            case "claim" | "gclaim" | "gwclaim":
                return (self.lease(),)
            case "mclaim" | "gmclaim":
                return (self.lease(), self.few())
            case "complete":
                return (*self.lent(), *self.options(RESULT=self.text))
            case "retry":
                return (*self.lent(), self.duration(0, 1, 1, 7), self.most(), self.text())
            case "delay":
                return (*self.lent(), *self.when())
            case "extend":
                return (*self.lent(), self.lease())
            case "promote":
                return self.options(LIMIT=self.few)
            case "reap":
                return self.options(LIMIT=self.few, MAX=self.most)
            case "state" | "peek":
                return (self.job(*PLACES, b"lanes"),)
            case "menqueue":
                return self.members(lambda: (self.new_job(), self.text()))
            case "mcomplete":
                return self.members(self.lent)
            case "mextend":
                return (self.lease(), *self.members(self.lent))
            case "genqueue":
                return (self.group(), self.new_job(), self.text())
            case "gpause" | "gresume":
                return (self.group(),)
            case "glimit":
                return (self.group(), self.random.choice((b"0", b"1", b"1", b"2", b"3", b"2147483647")))
            case "gweight":
                return (self.group(), self.random.choice((b"0", b"1", b"2", b"3", b"10000")))
            case "greassign":
                return (self.job(b"lanes"), self.group())
            case "gdrain":
                ghosts = [group for group in self.groups if any(not self.row(job) for job in self.listed(lane(group)))]
                return (self.random.choice(ghosts or self.groups), *self.options(LIMIT=self.few))
            case "greap":
                return (self.group(), *self.options(LIMIT=self.few, MAX=self.most))
            case "gcounts":
                return tuple(self.group() for _ in range(self.random.choice((0, 0, 1, 3))))
            case "drain":
                return self.options(SCHEDULED=None, LIMIT=self.few)
            case "obliterate":
                return self.options(FORCE=None, LIMIT=self.few)
            case "remove":
                locked = [job for job in self.jobs if self.key(row(job) + b":lock") in self.model.keys]
                job = self.random.choice(locked) if locked and self.likely(0.5) else self.job(*PLACES, b"lanes")
                return (job, *self.options(FORCE=None))
            case "reprocess":
                return (self.job(b"dead"),)
            case "update" | "progress":
                return (self.job(*PLACES, b"lanes"), self.text())
            case "log":
                return (self.job(*PLACES, b"lanes"), self.text(), *self.options(KEEP=self.few))
            case "repeat":
                at = self.options(AT=self.instant)
                return (self.random.choice(REPEATS), b"EVERY", self.lease(), self.text(), *at)
            case "unrepeat":
                return (self.random.choice(REPEATS),)
            case "fire":
                known = [*self.value(b"repeat", Zset)] * 3  # type: ignore[misc]
                name = self.random.choice((*known, *REPEATS))
                due = self.value(b"repeat", Zset).get(name, BEGIN)  # type: ignore[attr-defined]
                after = due + self.random.choice((-1, 0, 0, 1, 1)) if self.likely(0.7) else int(self.instant())
                return (name, b"%d" % min(max(after, 0), 2**53 - 1), self.new_job())
        return ()  # counts, pause, resume

    def spoilt(self, words: Sequence[bytes]) -> tuple[bytes, ...]:
        """Words, of which something is wrong, or at least unusual."""
        changed = list(words)
        for _ in range(self.random.choice((1, 1, 2))):
            at = self.random.randrange(len(changed) + 1)
            there = changed[at : at + 1]
            match self.random.randrange(6):
                case 0:
                    changed[at : at + 1] = []
                case 1:
                    changed.insert(at, self.random.choice(WRONG_WORDS))
                case 2:
                    changed[at : at + 1] = [word.swapcase() for word in there if word.isalpha()]
                case _:
                    changed[at : at + 1] = [self.random.choice(self.wrong(*there))]
        return tuple(changed)

    def wrong(self, word: bytes = b"") -> Sequence[bytes]:
        """What may stand in place of a word."""
        if word.startswith(b"JOB"):
            return WRONG_IDS
        if word.startswith(b"emq:"):
            return WRONG_QUEUES
        if word.isdigit():
            return (*4 * (b"0" + word, b"+" + word, b" " + word, word + b" ", word + b".0"), *WRONG_NUMBERS)
        return WRONG_WORDS

    # Steps

    def step(self, now: int) -> Step:
        """The next step. now: the clock of the model."""
        while True:
            self.queue = QUEUES[0] if self.likely(0.75) else QUEUES[1]
            if self.likely(self.harm):
                step = self.random.choice(self.harms)()
            elif self.likely(0.25):
                step = self.mend()
            elif self.likely(self.harmless):
                step = self.random.choice((self.adopt, self.adopt, self.chain, self.decorate, self.decorate))()
            else:
                step = [self.call(now)]
            if step:
                return step

    def call(self, now: int) -> Command:
        """A verb, most of the time one that changes something or meets harm."""
        for _ in range(6):
            verb = self.random.choices(list(self.likings), list(self.likings.values()))[0]
            words = (self.queue, *self.words(verb))
            if self.likely(self.wrong_words):
                words = self.spoilt(words)
                break
            if self.likely(0.2) or self.matters(verb, words, now):
                break
        return (verb.encode(), *words)

    def matters(self, verb: str, words: Sequence[bytes], now: int) -> bool:
        trial = self.model.copy()
        answer = trial.call(verb, words, now)
        if isinstance(answer, Refusal):
            return answer.text.startswith(("WRONGTYPE", "EMQSTATE job row", "EMQLOCK")) and self.likely(0.7)
        return trial.keys != self.model.keys

    def plain(self, command: str, name: bytes, *words: bytes) -> Command:
        return (command.encode(), self.key(name), *words)

    # Others who know the contract

    def adopt(self) -> Step:
        """A parent is held, and jobs that are there become its children."""
        free = [job for job in PARENTS if not self.row(job)]
        children = [job for job in (*self.jobs, *PARENTS) if self.row(job) and b"parent" not in self.row(job)]
        self.random.shuffle(children)
        children = children[: self.random.choice((1, 2, 3))]
        if not free or not children:
            return []
        parent = self.random.choice(free)
        extra = (b"group", self.group()) if self.likely(0.3) else ()
        step = [*self.hold(parent, len(children), *extra)]
        for child in children:
            step.append(self.adopted(child, parent, self.random.choice((b"fp", b"fp", b"id", b"id", b""))))
            if self.likely(0.15):
                step.append(self.plain("HSET", row(child), b"parent_queue", b"orders"))
        if self.likely(0.1):
            step.append(self.plain("HSET", row(parent) + b":processed", children[0], b"noted"))
        return step

    def hold(self, parent: bytes, children: int, *extra: bytes) -> Step:
        state = (b"state", b"awaiting_children", b"attempts", b"0", b"payload", b"of a parent")
        return [
            self.plain("HSET", row(parent), *state, *extra),
            self.plain("SET", row(parent) + b":dependencies", b"%d" % children),
            self.plain("ZADD", b"held", b"0", parent),
        ]

    def adopted(self, child: bytes, parent: bytes, policy: bytes) -> Command:
        policy_words = (b"parent_policy", policy) if policy else ()
        return self.plain("HSET", row(child), b"parent", parent, *policy_words)

    def chain(self) -> Step:
        """Parents of parents, so many that a death does not reach the last of them in one call."""
        free = [job for job in PARENTS if not self.row(job)]
        leaves = [job for job in self.jobs if self.row(job) and b"parent" not in self.row(job)]
        if not leaves or len(free) < 3:
            return []
        child, step = self.random.choice(leaves), []
        for parent in free:
            step += [*self.hold(parent, 1), self.adopted(child, parent, b"fp")]
            child = parent
        return step

    def decorate(self) -> Step:
        """What may lie about: locks, unknown fields, reserved keys, undelivered entries, tokens that nobody takes."""
        tokens = len(self.value(b"wake", List))  # type: ignore[arg-type]
        choices = [
            self.plain("SET", b"limiter", b"x"),
            self.plain("SET", b"metrics:failed:data", b"x"),
            self.plain("RPUSH", b"flow:outbox", b"orders\0JOB00000000001\0JOB00000000002\0r"),
            self.plain("RPUSH", b"flow:poison", b"x"),
            self.plain("RPUSH", b"wake", *[b"1"] * (64 - tokens)) if tokens < 64 else self.plain("DEL", b"wake"),
        ]
        there = [job for job in (*self.jobs, *PARENTS) if self.row(job)]
        if there:
            job = self.random.choice(there)
            choices += 3 * [self.plain("SET", row(job) + b":lock", b"holder")]
            choices += [self.plain("HSET", row(job), b"stalled", b"1")]
        return [self.random.choice(choices)]

    # Others who do not

    def lose_row(self) -> Step:
        return [self.plain("DEL", row(self.job(*self.random.choice(((b"lanes",), PLACES)))))]

    def break_row(self) -> Step:
        """Fields that are unsound or that contradict the place."""
        job = self.job(*PLACES, b"lanes")
        if not self.row(job):
            return []
        field, *values = self.random.choice(
            (
                (b"attempts", b"x", b"", b"-1", b"01", b"9007199254740991", b"9007199254740990", b"3"),
                (b"state", b"pending", b"active", b"scheduled", b"dead", b"awaiting_children", b"x"),
                (b"floor", b"x", b"-1", b"1", b"2", b"01", b"9007199254740993", b"9999999999999999"),
                (b"reaped", b"1", b"2", b"x"),
                (b"group", *GROUPS),
                (b"parent", job, *JOBS, *PARENTS, b"ghost"),
                (b"parent_queue", b"orders", b"orders.eu", b"no name"),
                (b"parent_policy", b"fp", b"id", b"ID"),
            )
        )
        if self.likely(0.15):
            return [self.plain("HDEL", row(job), field)]
        return [self.plain("HSET", row(job), field, self.random.choice(values))]

    def list_twice(self) -> Step:
        job = self.job(*PLACES, b"lanes")
        return [self.plain("ZADD", self.random.choice(self.there()), self.random.choice((b"0", b"1", b"5")), job)]

    def list_ghost(self) -> Step:
        ghosts = [self.random.choice((b"JOB00000000000", b"JOBAzL8n0Y58m7", b"ghost")) for _ in range(2)]
        place = self.random.choice(self.there())
        return [self.plain("ZADD", place, self.random.choice((b"0", b"1")), ghost) for ghost in ghosts]

    def list_lane(self) -> Step:
        return [self.plain("SADD", b"lanes", self.random.choice(GROUPS))]

    def there(self) -> list[bytes]:
        """Places that are there or may be made by hand; an empty lane may not, or the ring would be wrong."""
        lanes = [lane(group) for group in self.groups if self.value(lane(group), Zset)]
        return [place for place in (*PLACES, *lanes) if type(self.model.keys.get(self.key(place), Zset())) is Zset]

    def break_ring(self) -> Step:
        """The ring is lost or lists a lane wrongly, and an operator repairs it."""
        ring = self.value(b"ring", List)
        if any(key.startswith(b"kept:") for key in self.model.keys):  # or the repair would be refused
            return []
        repair = self.random.choice(("emq.gresume", "emq.glimit"))
        waiting = [group for group in GROUPS if self.value(lane(group), Zset)]
        idle = [group for group in GROUPS if group not in ring and group not in waiting]  # type: ignore[operator]
        step = [self.plain("DEL", b"ring"), *(self.plain("RPUSH", b"ring", group) for group in idle)]
        for group in (*waiting, *idle):
            step.append((repair.encode(), self.queue, group, *((b"2",) if repair == "emq.glimit" else ())))
        return step

    def spoil(self) -> Step:
        """A key of another kind in place of what belongs there, which is kept aside."""
        job = self.job(*PLACES, b"lanes")
        names = [*KINDS, *(lane(group) for group in self.groups), row(job), row(job)]
        names += [row(job) + sub for sub in SUBKEYS] + [b"repeat:" + name for name in REPEATS]
        return self.spoilt_key(self.random.choice(names))

    def spoil_parent(self) -> Step:
        """A key of a parent that the end of a child will want to write."""
        parents = [self.row(job)[b"parent"] for job in (*self.jobs, *PARENTS) if b"parent" in self.row(job)]
        if not parents:
            return self.adopt()
        parent = row(self.random.choice(parents))
        return self.spoilt_key(self.random.choice((parent, *(parent + sub for sub in SUBKEYS[2:]))))

    def spoilt_key(self, name: bytes) -> Step:
        key = self.key(name)
        kept = b"kept:" + key
        if kept in self.model.keys or sum(other.startswith(b"kept:") for other in self.model.keys) > 2:
            return []
        strange = self.plain("RPUSH", name, b"strange")
        if (
            type(self.model.keys.get(key)) is List
            or name in (b"ring", b"wake", b"flow:outbox")
            or name.endswith(b":logs")
        ):
            strange = self.plain("SET", name, b"strange")
        aside = [(b"RENAME", key, kept)] if key in self.model.keys else [(b"SET", kept, b"nothing")]
        return [*aside, strange]

    def mend(self) -> Step:
        """What was kept aside goes back, unless its place was cleared meanwhile."""
        kept = sorted(key for key in self.model.keys if key.startswith(b"kept:"))
        if not kept:
            return []
        aside = self.random.choice(kept)
        key = aside.removeprefix(b"kept:")
        strange = self.model.keys.get(key) in (b"strange", [b"strange"])
        if not strange or self.model.keys[aside] == b"nothing":
            return [(b"DEL", aside), *([(b"DEL", key)] if strange else [])]
        return [(b"DEL", key), (b"RENAME", aside, key)]


def walk(machine: Machine, seed: int, length: int = LENGTH, *, seconds: float = 60) -> None:
    """Take the walk of a seed. Divergence, with fewer steps that lead to one, when the three disagree.

    Every other seed speaks RESP3 and hears what is published; of four seeds two walk among damage. seconds: how long to
    look for fewer steps.
    """
    protocol, damaged = 2 + seed % 2, seed % 4 >= 2
    machine.reset(protocol)
    machine.damaged = damaged
    choice = Walk(seed, machine.model, damage=damaged)
    steps: list[Step] = []
    try:
        while len(steps) < length:
            steps.append(choice.step(machine.now + LEAP))
            machine.step(steps[-1])
    except Divergence as divergence:
        report = [f"seed {seed} (make soak SEED={seed}), step {len(steps)}: {divergence}"]
        if seconds > 0:
            fewer, last = shrink(machine, steps, protocol, divergence, seconds=seconds)
            report += ["", f"{len(fewer)} steps on RESP{protocol} lead to: {last}"]
            report += ["  " + "; ".join(map(show, step)) for step in fewer]
        raise Divergence("\n".join(report)) from None
