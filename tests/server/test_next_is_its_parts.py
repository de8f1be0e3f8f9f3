"""EMQ.NEXT adds no rule: it answers and writes what the verbs that it is made of answer and write one by one.

Both happen to copies of one queue within one script, in which the clock stands still, so they must be equal to the bit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import pytest
from tests.server.waiting import own_lab

from emq_native.conformance.lab import Lab
from emq_native.conformance.play import Play
from emq_native.conformance.wire import Error, Reply, Word

OTHERS = (
    *(("enqueue", "genqueue", "schedule", "resume", "gresume", "mclaim", "gmclaim") * 2),
    *("next", "next", "glimit", "gpause", "pause", "reap"),
)
ENDINGS = {"COMPLETE": 3, "RESULT": 4, "RETRY": 6, "DELAY": 5}
SPOILT = ("pending", "schedule", "active", "dead", "ring", "wake", "lanes", "meta", "gactive", "g:g:pending")

BOTH = """#!lua
local whole, parts = KEYS[1], KEYS[2]
local round = cjson.decode(ARGV[1])
local answer = redis.pcall('EMQ.NEXT', whole, unpack(round.words))
if answer.err then
    return answer
end

local fault = false
local function try(verb, ...)
    local reply = redis.pcall(verb, parts, ...)
    if type(reply) == 'table' and reply.err then
        fault = fault or reply.err
        return nil
    end
    return reply
end

local words_of = {
    ['EMQSTALE job gone'] = 'gone',
    ['EMQSTALE complete token mismatch'] = 'stale',
    ['EMQSTALE retry token mismatch'] = 'stale',
    ['EMQSTALE delay token mismatch'] = 'stale',
    ['EMQSTATE job is not active'] = 'inactive',
}
local settled = {}
for at, ending in ipairs(round.endings) do
    local kind, id, token = ending[1], ending[2], ending[3]
    local reply
    if kind == 'COMPLETE' then
        reply = redis.pcall('EMQ.COMPLETE', parts, id, token)
    elseif kind == 'RESULT' then
        reply = redis.pcall('EMQ.COMPLETE', parts, id, token, 'RESULT', ending[4])
    else
        reply = redis.pcall('EMQ.' .. kind, parts, unpack(ending, 2))
    end
    if type(reply) == 'table' then
        settled[at] = words_of[reply.err] or reply.err
    elseif type(reply) == 'string' then
        settled[at] = reply
    elseif kind == 'DELAY' then
        settled[at] = 'delayed'
    else
        settled[at] = reply == 1 and 'completed' or 'gone'
    end
end

local most = round.max and { 'MAX', round.max } or {}
if round.reap > 0 then
    try('EMQ.REAP', 'LIMIT', round.reap, unpack(most))
end
if round.promote > 0 then
    try('EMQ.PROMOTE', 'LIMIT', round.promote)
end
local jobs, dry, left = {}, {}, #round.from
while #jobs < round.count and left > 0 do
    for _, source in ipairs(round.from) do
        if not dry[source] and #jobs < round.count then
            local job = try(source == 'FLAT' and 'EMQ.CLAIM' or 'EMQ.GCLAIM', round.lease)
            if job and #job > 0 then
                job[4] = job[4] or false
                jobs[#jobs + 1] = job
            else
                dry[source] = true
                left = left - 1
            end
        end
    end
end
return { answer, { settled, jobs, fault } }
"""


@pytest.fixture
def lab() -> Iterator[Lab]:
    with own_lab() as laboratory:
        yield laboratory


def parsed(words: Sequence[Word]) -> dict[str, object]:
    """The words of a NEXT, as the script reads them."""
    texts = [str(word) for word in words]
    found: dict[str, object] = {"words": texts, "lease": texts[0], "count": 1, "reap": 100, "promote": 100}
    sources, endings, at = ["FLAT", "LANES"], [], 1
    while at < len(texts):
        option = texts[at]
        if option == "FROM":
            sources = [word for word in texts[at + 1 : at + 3] if word in ("FLAT", "LANES")]
            at += 1 + len(sources)
        elif option in ENDINGS:
            endings.append(texts[at : at + ENDINGS[option]])
            at += ENDINGS[option]
        else:
            found[option.lower()] = int(texts[at + 1])
            at += 2
    return found | {"from": sources, "endings": endings}


def adopt(lab: Lab, play: Play) -> None:
    """A parent that waits for two jobs, whatever they are doing."""
    there = [name for name in play.jobs if lab.exists(f"job:{name}") and "parent" not in lab.fields_of(name)]
    parent = play.job()
    if len(there) < 2 or lab.exists(f"job:{parent}"):
        return
    lab.seed(parent, "held", children=2, group=play.draw.choice([None, play.group()]))
    for child, policy in zip(there[:2], play.draw.choice([("fp", "id"), ("id", "id")]), strict=True):
        lab.plain("HSET", lab.row(child), "parent", parent, "parent_policy", policy)
    lab.held_with.clear()  # a child may end, come again, and end again


def harm(lab: Lab, play: Play, *queues: str) -> None:
    """The same damage to each queue: a key of another kind, a row that cannot be read, an entry without a row."""
    job, kind = play.job(), play.draw.randrange(4)
    spoilt = play.draw.choice([*SPOILT, f"job:{job}", f"job:{job}:processed", "metrics:failed"])
    for queue in queues:
        if kind == 0:
            lab.plain("DEL", lab.key(spoilt, queue))
            lab.plain("XADD", lab.key(spoilt, queue), "1-1", "field", "value")
        elif kind == 1 and lab.exists(f"job:{job}"):
            lab.plain("HSET", lab.key(f"job:{job}", queue), "attempts", "x")
        elif kind == 2:
            lab.plain("DEL", lab.key(f"job:{job}", queue))


def named(queue: str, text: object) -> object:
    return text.replace(queue.encode(), b"q") if isinstance(text, bytes) else text


def copied(lab: Lab) -> str:
    """A queue with the data of the lab's own."""
    queue = lab.new_queue()
    for suffix in lab.data():
        lab.plain("COPY", lab.key(suffix.decode()), lab.key(suffix.decode(), queue))
    return queue


def keyspace(lab: Lab, queue: str) -> dict[bytes, object]:
    """All keys of a queue, but for its name, which entries of the outbox bear."""
    return {
        name: [named(queue, item) for item in key.value] if isinstance(key.value, list) else key.value
        for name, key in lab.data(queue).items()
    }


@pytest.mark.parametrize("seed", range(4))
def test_a_round_is_the_verbs_that_it_is_made_of(lab: Lab, seed: int) -> None:
    play = Play(lab, seed, jobs=10)
    play.verbs = list(OTHERS)
    refused = faults = taken = 0
    for number in range(250):
        play.step()
        if number % 8 == 0:
            adopt(lab, play)
        whole, parts = copied(lab), copied(lab)
        if play.draw.random() < 0.5:
            harm(lab, play, whole, parts)
        before = keyspace(lab, whole)
        words = play.round()
        keys = (lab.key("", queue)[:-1] for queue in (whole, parts))
        answers: Reply = lab.wire.call("EVAL", BOTH, 2, *keys, json.dumps(parsed(words)))
        if isinstance(answers, Error):
            assert keyspace(lab, whole) == before, words
            refused += 1
        else:
            assert isinstance(answers, list)
            assert answers[0] == answers[1], words
            assert keyspace(lab, whole) == keyspace(lab, parts), words
            assert isinstance(answers[0], list)
            taken += bool(answers[0][1])
            faults += answers[0][2] is not None
        lab.wipe(whole)
        lab.wipe(parts)
    assert min(refused, faults, taken) > 0
