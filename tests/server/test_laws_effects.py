"""Every effect is what its plain command would be: the same data, events, dirt, broken watches and invalidations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from emq_native.conformance.audit import Key, differences
from emq_native.conformance.lab import Lab
from emq_native.conformance.scenes import IDLE, READS, REFUSALS, SCENES, Refusal, Scene, flat
from emq_native.conformance.wire import Error, Simple, Wire, Word

MakeLab = Callable[..., Lab]
ROUNDING_MS = 30_000

scenes = pytest.mark.parametrize("scene", SCENES, ids=str)
idle = pytest.mark.parametrize("scene", [*IDLE, *READS], ids=str)
refusals = pytest.mark.parametrize("refusal", REFUSALS, ids=str)


def named(lab: Lab, text: bytes) -> bytes:
    """A text with the queue and the ids of a lab replaced by names that are equal in every lab."""
    for name, job in (("a", lab.a), ("b", lab.b), ("c", lab.c), ("d", lab.d)):
        text = text.replace(job.encode(), name.encode())
    return text.replace(lab.name.encode(), b"q")


def keyspace(lab: Lab) -> dict[bytes, object]:
    """The data of a queue up to names and the clock, to compare what two executors or two ways left behind."""
    return {named(lab, name): _value(lab, key) for name, key in lab.data().items()}


def _value(lab: Lab, key: Key) -> object:
    if isinstance(key.value, bytes):
        return key.type, named(lab, key.value)
    if isinstance(key.value, dict):
        return key.type, {named(lab, name): _clockless(lab, item) for name, item in key.value.items()}
    items = [named(lab, item) for item in key.value]
    return key.type, items if key.type == "list" else sorted(items)


def _clockless(lab: Lab, item: bytes | float) -> object:
    if isinstance(item, float):
        distance = item - lab.now()
        return item if abs(distance) > 10_000_000 else round(distance / ROUNDING_MS)
    return named(lab, item)


def variants() -> Iterator[object]:
    """Every scene, with a group and with parents of both policies where its job can have them."""
    for scene in SCENES:
        for group in (None, "g") if scene.lane else (None,):
            for parent in (None, "id", "fp") if scene.up else (None,):
                yield pytest.param(scene, group, parent, id=f"{scene}-{group}-{parent}")


def prepared(lab: Lab, scene: Scene, group: str | None, parent: str | None) -> list[Word]:
    """The words of a scene whose job has this group, and a held parent that waits for two children."""
    if parent is None:
        return scene.prepare(lab, group=group)
    lab.seed(lab.d, "held", children=2)
    return scene.prepare(lab, group=group, fields={"parent": lab.d, "parent_policy": parent})


@pytest.mark.parametrize(("scene", "group", "parent"), list(variants()))
def test_both_executors_leave_equal_keyspaces(
    make_lab: MakeLab, scene: Scene, group: str | None, parent: str | None
) -> None:
    left = []
    for executor in ("native", "scripted"):
        lab = make_lab(executor)
        words = prepared(lab, scene, group, parent)
        reply = flat(lab.send(scene.verb, *words))
        left.append((named(lab, repr(reply).encode()), keyspace(lab)))
        lab.wipe(lab.name)
    assert left[0] == left[1]


@scenes
def test_an_effect_is_the_same_by_every_way_of_calling(lab: Lab, scene: Scene) -> None:
    ways = [lab.send, lab.in_pipeline, lab.in_multi, *([lab.in_lua] if lab.executor.name == "native" else [])]
    left = []
    for way in ways:
        words = scene.prepare(lab)
        way(scene.verb, *words)
        left.append(keyspace(lab))
        lab.anew()
    assert all(one == left[0] for one in left)


def changed_keys(lab: Lab, scene: Scene) -> list[str]:
    """The keys that a scene changes, found by playing it once."""
    words = scene.prepare(lab)
    before = lab.data()
    lab.send(scene.verb, *words)
    suffixes = [line.partition(": ")[0] for line in differences(before, lab.data())]
    jobs = (lab.a, lab.b, lab.c, lab.d)
    lab.anew()
    for old, new in zip(jobs, (lab.a, lab.b, lab.c, lab.d), strict=True):
        suffixes = [suffix.replace(old, new) for suffix in suffixes]
    return [lab.key(suffix) for suffix in suffixes]


@scenes
@pytest.mark.parametrize("protocol", [2])
def test_an_effect_breaks_the_watch_of_every_key_that_it_changes(lab: Lab, scene: Scene, protocol: int) -> None:
    keys = changed_keys(lab, scene)
    assert keys or scene.row.name in ("emq.progress",)
    words = scene.prepare(lab)
    watchers = []
    for key in keys:
        watcher = lab.connect(2)
        watcher.call("WATCH", key)
        watcher.call("MULTI")
        watcher.call("ECHO", "x")
        watchers.append((key, watcher))
    lab.send(scene.verb, *words)
    assert [key for key, watcher in watchers if watcher.call("EXEC") == [b"x"]] == []


@idle
@pytest.mark.parametrize("protocol", [2])
def test_a_call_without_effect_breaks_no_watch(lab: Lab, scene: Scene, protocol: int) -> None:
    words = scene.prepare(lab)
    watcher = lab.connect(2)
    for name in lab.data():
        watcher.call("WATCH", lab.key(name.decode()))
    for suffix in ("pending", "active", "schedule", "dead", "ring", "lanes", "wake", "meta", f"job:{lab.a}"):
        watcher.call("WATCH", lab.key(suffix))
    lab.send(scene.verb, *words)
    watcher.call("MULTI")
    watcher.call("ECHO", "x")
    assert watcher.call("EXEC") == [b"x"]


@scenes
@pytest.mark.parametrize("protocol", [3])
def test_an_effect_invalidates_every_tracked_key_that_it_changes(lab: Lab, scene: Scene, protocol: int) -> None:
    keys = changed_keys(lab, scene)
    words = scene.prepare(lab)
    tracker = lab.connect(3)
    tracker.call("CLIENT", "TRACKING", "ON")
    for key in keys:
        tracker.call("EXISTS", key)
    lab.send(scene.verb, *words)
    assert _invalidated(tracker) == {key.encode() for key in keys}


@idle
@pytest.mark.parametrize("protocol", [3])
def test_a_call_without_effect_invalidates_nothing(lab: Lab, scene: Scene, protocol: int) -> None:
    words = scene.prepare(lab)
    tracker = lab.connect(3)
    tracker.call("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", lab.q)
    lab.send(scene.verb, *words)
    assert _invalidated(tracker) == set()


def _invalidated(tracker: Wire) -> set[bytes]:
    tracker.call("PING")
    names: set[bytes] = set()
    for push in tracker.pushes:
        if push[0] == b"invalidate" and isinstance(push[1], list):
            names.update(name for name in push[1] if isinstance(name, bytes))
    return names


def dirty(lab: Lab) -> int:
    return int(lab.info("persistence")["rdb_changes_since_last_save"])


@scenes
def test_an_effect_counts_as_dirty(lab: Lab, scene: Scene) -> None:
    words = scene.prepare(lab)
    before = dirty(lab)
    lab.send(scene.verb, *words)
    assert dirty(lab) > before


@idle
def test_a_call_without_effect_is_not_dirty(lab: Lab, scene: Scene) -> None:
    words = scene.prepare(lab)
    lab.load(scene.verb)
    before = dirty(lab)
    lab.send(scene.verb, *words)
    assert dirty(lab) == before


@refusals
def test_a_refusal_is_not_dirty(lab: Lab, refusal: Refusal) -> None:
    words = refusal.prepare(lab)
    lab.load(refusal.verb)
    before = dirty(lab)
    assert lab.send(refusal.verb, *words) == Error(refusal.text)
    assert dirty(lab) == before


@contextmanager
def events(lab: Lab) -> Iterator[Counter[tuple[bytes, bytes]]]:
    """The keyspace events of the queue while the block runs: how often each (event, key)."""
    lab.plain("CONFIG", "SET", "notify-keyspace-events", "KA")
    subscriber = lab.connect(3)
    subscriber.send("PSUBSCRIBE", f"__keyspace@0__:emq:{{{lab.name}}}:*")
    subscriber.call("PING")
    subscriber.pushes.clear()
    seen: Counter[tuple[bytes, bytes]] = Counter()
    try:
        yield seen
    finally:
        subscriber.call("PING")
        lab.plain("CONFIG", "SET", "notify-keyspace-events", "")
    for push in subscriber.pushes:
        if push[0] == b"pmessage":
            channel, event = push[2], push[3]
            assert isinstance(channel, bytes)
            assert isinstance(event, bytes)
            seen[event, named(lab, channel.partition(b"}:")[2])] += 1


@pytest.mark.parametrize(("scene", "group", "parent"), list(variants()))
def test_both_executors_fire_the_same_events(
    make_lab: MakeLab, scene: Scene, group: str | None, parent: str | None
) -> None:
    fired = []
    for executor in ("native", "scripted"):
        lab = make_lab(executor)
        words = prepared(lab, scene, group, parent)
        before = lab.data()
        with events(lab) as seen:
            lab.send(scene.verb, *words)
        changed = {named(lab, line.partition(": ")[0].encode()) for line in differences(before, lab.data())}
        assert changed <= {key for _, key in seen}, executor
        fired.append(seen)
        lab.wipe(lab.name)
    # Several deaths in one call may travel as one command each, or as one for all.
    if parent is None:
        assert fired[0] == fired[1]


@idle
def test_a_call_without_effect_fires_no_event(lab: Lab, scene: Scene) -> None:
    words = scene.prepare(lab)
    with events(lab) as seen:
        lab.send(scene.verb, *words)
    assert not seen


@pytest.mark.parametrize("protocol", [2])
def test_the_clock_stands_still_in_a_transaction(lab: Lab, protocol: int) -> None:
    lab.seed(lab.a)
    lab.seed(lab.b)
    assert lab.wire.call("MULTI") == Simple("OK")
    lab.wire.call(*lab.command("claim", 60_000, inline=True))
    lab.wire.call("DEBUG", "SLEEP", "0.03")
    lab.wire.call(*lab.command("claim", 60_000, inline=True))
    lab.wire.call("EXEC")
    assert len(set(lab.scores("active").values())) == 1


def test_the_clock_stands_still_in_a_script(make_lab: MakeLab) -> None:
    lab = make_lab("native")
    lab.seed(lab.a)
    lab.seed(lab.b)
    script = """
        server.call('EMQ.CLAIM', KEYS[1], 60000)
        local first = server.call('TIME')
        for round = 1, 3000000 do local _ = round * round end
        server.call('EMQ.CLAIM', KEYS[1], 60000)
        return first
    """
    lab.plain("EVAL", script.replace("server.", "redis."), 1, lab.q)
    assert len(set(lab.scores("active").values())) == 1
