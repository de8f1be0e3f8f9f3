"""What a doctor makes of the facts about a node. Without I/O: facts in, findings out, one function for each check.

A check whose facts this user may not see is `open` and says why. A fix is a command to paste, or a line of valkey.conf.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final, Literal

from emq_native._core import IDENTITY, IDENTITY_SCRIPTED, MODULE_VERSION, WIRE
from emq_native.probe import Probe
from emq_native.provision import Fence
from emq_native.readings import Reading

__all__ = ["CHECKS", "Facts", "Finding", "Rights", "Verdict", "judge"]

Verdict = Literal["ok", "warn", "fail", "open"]
"""open: this user may not be told. It is no warning."""

GRACE: Final = 10.0
"""Seconds that a due job or an ended lease may wait for somebody who moves it."""

SHOWN: Final = 5
MIB: Final = 1 << 20
LISTPACK_LOW: Final = 128
LISTPACK: Final = 4096
SKEW_WARN: Final = 1.0
SKEW_FAIL: Final = 60.0
FULL: Final = 0.8

TAKES: Final = ("emq.claim", "emq.mclaim", "emq.gclaim", "emq.gwclaim", "emq.gmclaim", "emq.next")
ENDS: Final = ("emq.complete", "emq.retry", "emq.extend")


@dataclass(frozen=True, slots=True)
class Finding:
    """check: its name; text: what was found, in a line; fix: a command to paste, None when there is nothing to do;
    node: which one of a cluster, None for all of it or outside one.
    """

    check: str
    verdict: Verdict
    text: str
    fix: str | None = None
    node: str | None = None


@dataclass(frozen=True, slots=True)
class Rights:
    """What `user` may do with `queue`: the verbs that were tried, and whether the fence may be read.

    queue: None when there is none, so that the commands were tried and no key.
    """

    user: str
    queue: str | None
    allowed: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    fence: bool = True
    scripted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What one node told. None and empty: it did not; `open` says why, by the name of the question.

    cli, url: the beginning of a valkey-cli command to the node, and how an emq-native command names it.   login: the
    user who asks.
    info, config: values of INFO and CONFIG GET by name.   module_file: path that the server loaded the module from;
    own_file: path of the module in this package.   offset: server's clock minus this machine's, in seconds, known to
    within `uncertainty`.   strays: keys under a queue's tag that no queue has.   walked: whether all keys were seen.
    """

    cli: str
    url: str
    login: str = "default"
    probe: Probe
    fence: Fence | None = None
    info: Mapping[str, str] = field(default_factory=dict)
    config: Mapping[str, str] = field(default_factory=dict)
    module_file: str | None = None
    own_file: str | None = None
    rights: Rights | None = None
    offset: float | None = None
    uncertainty: float = 0.0
    queues: tuple[Reading, ...] = ()
    unread: tuple[tuple[str, str], ...] = ()
    strays: tuple[str, ...] = ()
    walked: bool = True
    open: Mapping[str, str] = field(default_factory=dict)

    def told(self, name: str) -> int | None:
        """A whole number of CONFIG GET or INFO; None for none."""
        text = self.config.get(name, self.info.get(name, ""))
        return int(text) if text.lstrip("-").isdigit() else None

    def set(self, name: str, value: object) -> str:
        """The command that sets a setting."""
        return f"{self.cli} CONFIG SET {name} {value}"


def judge(facts: Facts) -> Iterator[Finding]:
    """Every check, in order."""
    for check, findings in CHECKS.items():
        for finding in findings(facts):
            yield replace(finding, check=check)


def _ok(text: str) -> Finding:
    return Finding("", "ok", text)


def _warn(text: str, fix: str | None = None) -> Finding:
    return Finding("", "warn", text, fix)


def _fail(text: str, fix: str | None = None) -> Finding:
    return Finding("", "fail", text, fix)


def _open(facts: Facts, question: str) -> Finding:
    return Finding("", "open", f"not told: {facts.open.get(question) or 'the server does not say'}")


def server(facts: Facts) -> Iterator[Finding]:
    name, version = facts.probe.server, facts.probe.server_version
    if name is None or version is None:
        yield _open(replace(facts, open=dict(facts.probe.open)), "server")
        return
    major = int(version.partition(".")[0]) if version[:1].isdigit() else 0
    if name != "valkey" or major < 8:
        yield _warn(f"{name} {version}: the scripts work here; the module needs Valkey 8.0 or newer")
    elif major > 9:
        yield _warn(f"{name} {version}: newer than what the module is tested with, 8.0, 8.1 and 9.x")
    else:
        yield _ok(f"{name} {version}")


def module(facts: Facts) -> Iterator[Finding]:
    probe, wire = facts.probe, facts.fence.wire if facts.fence else None
    load = f"emq-native load {facts.url}"
    foreign = dict(probe.open).get("module", "")
    if probe.module == "absent" and "not this one" in foreign:
        yield _fail(foreign, f"{facts.cli} MODULE LIST")
    elif probe.module == "absent" and wire == WIRE and probe.role == "replica":
        yield _warn("not loaded: it follows its primary, and nobody can work here after a failover", load)
    elif probe.module == "absent" and wire == WIRE:
        yield _fail("not loaded, and the fence says that it owns the node: nobody can work", load)
    elif probe.module == "absent":
        text = "not loaded; the scripts own the node" if wire else "not loaded: only the scripts can work here"
        yield _ok(text) if wire else _warn(text, load)
    elif probe.module == "unknown":
        yield Finding("", "open", f"not told: {foreign}")
    else:
        where = f" from {facts.module_file}" if facts.module_file else ""
        found = f"{probe.module_version or 'loaded, version not told'}{where}"
        if probe.other_version:
            own = facts.own_file or "emq.so"
            fix = f"loadmodule {own}   # in valkey.conf, then restart: a module cannot be replaced in a running server"
            yield _warn(f"{found}; this package has {MODULE_VERSION} at {own}", fix)
        else:
            yield _ok(f"{found}{', as in this package' if probe.module_version else ''}")


def wire(facts: Facts) -> Iterator[Finding]:
    owner = facts.fence.wire if facts.fence else None
    speaks = facts.probe.module_wire
    if owner == 4:
        yield _ok("4: the scripts of this package")
    elif speaks is not None and speaks != WIRE:
        yield _fail(
            f"the module speaks wire {speaks}, this package {WIRE}",
            f"loadmodule {facts.own_file or 'emq.so'}   # in valkey.conf, then restart",
        )
    elif speaks is not None:
        yield _ok(f"{speaks}: the module's, as in this package")
    elif facts.probe.module == "denied":
        yield Finding("", "open", f"not told: {dict(facts.probe.open).get('module')}")


def fence(facts: Facts) -> Iterator[Finding]:
    if facts.probe.cluster:
        yield from _fences(facts)
        return
    if facts.fence is None:
        yield _open(facts, "fence")
        return
    key, found = shlex.quote(facts.fence.key), facts.fence
    best = WIRE if facts.probe.module in ("loaded", "denied") else 4
    if found.ttl_ms is not None:
        yield _fail(
            f"{found.key} expires in {found.ttl_ms / 1000:.0f} s, and all writes are refused then",
            f"{facts.cli} PERSIST {key}",
        )
    elif found.wire is not None:
        yield _ok(f"{found}: the {'module' if found.wire == WIRE else 'scripts'} may write")
    elif found.is_string and found.value is None:
        yield _fail("nobody claimed the node: writes are refused", f"emq-native fence claim --wire {best} {facts.url}")
    else:
        yield _fail(
            f"{found.key} holds what is nobody's: {found}. Find out who wrote it; if it is a mistake, set it",
            f"{facts.cli} SET {key} {IDENTITY if best == WIRE else IDENTITY_SCRIPTED}",
        )


def _fences(facts: Facts) -> Iterator[Finding]:
    names = {state: [each.queue for each in facts.queues if each.fence == state] for state in ("missing", "foreign")}
    if not facts.queues:
        yield _open(facts, "queues") if "queues" in facts.open else _ok("no queue here yet: each needs its own fence")
    best = WIRE if facts.probe.module in ("loaded", "denied") else 4
    if lacking := names["missing"]:
        claim = f'emq-native fence claim --wire {best} --queue "$queue" {facts.url}'
        each = f"for queue in {' '.join(lacking)}; do {claim}; done"
        yield _fail(f"nobody claimed {_some(lacking)}: their writes are refused", each)
    if names["foreign"]:
        yield _fail(
            f"the fence of {_some(names['foreign'])} holds what is nobody's",
            f"emq-native fence show --queue {names['foreign'][0]} {facts.url}",
        )
    owners = [queue for queue in facts.queues if queue.fence in ("wire4", "wire6")]
    if owners:
        yield _ok(f"{len(owners)} of {len(facts.queues)} queues are claimed")
    if any(each.fence == "unknown" for each in facts.queues):
        yield _open(facts, "fence")


def rights(facts: Facts) -> Iterator[Finding]:
    found = facts.rights
    if found is None:
        fix = f"emq-native doctor --user {shlex.quote(facts.login)} {facts.url}   # as an administrator"
        yield replace(_open(facts, "rights"), fix=fix)
        return
    of = len(found.allowed) + len(found.denied)
    who = f"{found.user} on emq:{{{found.queue}}}" if found.queue else f"{found.user}, without a queue to try it on"
    give = f"{facts.cli} ACL SETUSER {shlex.quote(found.user)}"
    keys = f"emq:{{{found.queue or 'QUEUE'}}}"
    if not found.fence:
        key = f"{keys}:version" if facts.probe.cluster else "{emq}:version"
        yield _fail(f"{found.user} may not read the fence, so no connector works", f"{give} '%R~{key}' +get")
    if not found.allowed:
        yield _fail(f"{who}: no transition at all", f"{give} '~{keys}*' +@emq")
        return
    lacking = [name for name in ENDS if name in found.denied]
    text = f"{who}: {len(found.allowed)} of {of} transitions"
    if found.denied:
        text += f"; not {' '.join(name.removeprefix('emq.') for name in found.denied)}"
    if found.scripted:
        text += " (that the scripts may be called; the commands in them are checked as they run)"
    if lacking and any(name in found.allowed for name in TAKES):
        yield _warn(f"{text}: it can take jobs and not end them", f"{give} {' '.join(f'+{name}' for name in lacking)}")
    else:
        yield _ok(text)


def persistence(facts: Facts) -> Iterator[Finding]:
    """What is lost when the server dies, of what it has answered."""
    aof = facts.info.get("aof_enabled") or {"yes": "1", "no": "0"}.get(facts.config.get("appendonly", ""))
    sync, save = facts.config.get("appendfsync"), facts.config.get("save")
    on = facts.set("appendonly", "yes")
    if aof is None:
        yield _open(facts, "info")
    elif aof == "1" and sync is None:
        yield Finding("", "open", f"append-only file; how often it is synced is not told: {facts.open.get('config')}")
    elif aof == "1" and sync == "always":
        yield _ok("append-only file, synced before each answer: nothing that was answered is lost")
    elif aof == "1" and sync == "everysec":
        yield _ok("append-only file, synced every second: up to 1 s is lost, 2 s when the disk is slow")
    elif aof == "1":
        yield _warn(
            "append-only file that is never synced: what the system holds back is lost with the machine, often 30 s",
            facts.set("appendfsync", "everysec"),
        )
    elif save is None:
        yield Finding(
            "", "open", f"no append-only file; whether snapshots are made is not told: {facts.open.get('config')}"
        )
    elif save:
        yield _warn(f"snapshots only ({_every(save)}): everything since the last one is lost", on)
    else:
        yield _warn("none: every job is lost when the server ends", on)


def _every(save: str) -> str:
    words = save.split()
    return ", ".join(
        f"{changes} changes in {seconds} s" for seconds, changes in zip(words[::2], words[1::2], strict=False)
    )


def saves(facts: Facts) -> Iterator[Finding]:
    info = facts.info
    if "rdb_last_bgsave_status" not in info:
        yield _open(facts, "info")
        return
    stops = facts.config.get("stop-writes-on-bgsave-error") != "no" and facts.config.get("save") != ""
    troubles = []
    if info.get("aof_last_write_status", "ok") != "ok":
        troubles.append(_fail("the append-only file cannot be written: writes are refused", "df -h   # on the server"))
    if info.get("aof_last_bgrewrite_status", "ok") != "ok":
        troubles.append(_warn("the last rewrite of the append-only file failed", f"{facts.cli} BGREWRITEAOF"))
    if info["rdb_last_bgsave_status"] != "ok":
        again = f"{facts.cli} BGSAVE"
        if stops:
            troubles.append(_fail("the last snapshot failed: writes are refused (stop-writes-on-bgsave-error)", again))
        else:
            troubles.append(_warn("the last snapshot failed", again))
    if info.get("loading", "0") != "0":
        troubles.append(_warn("the server loads its data"))
    yield from troubles or [_ok("the last ones succeeded")]


def eviction(facts: Facts) -> Iterator[Finding]:
    policy, limit = facts.probe.eviction, facts.probe.maxmemory
    if policy is None:
        yield _open(replace(facts, open=dict(facts.probe.open)), "eviction")
    elif policy.startswith("allkeys-"):
        when = "as soon as a limit is set" if limit == 0 else "when memory is full"
        yield _fail(f"{policy} throws jobs and the fence away {when}", facts.set("maxmemory-policy", "noeviction"))
    else:
        yield _ok(policy if policy == "noeviction" else f"{policy}: keys with a TTL only, and no job has one")


def memory(facts: Facts) -> Iterator[Finding]:
    used, limit, machine = facts.told("used_memory"), facts.probe.maxmemory, facts.told("total_system_memory")
    if used is None or limit is None:
        yield _open(facts, "info")
        return
    most, of = (limit, "maxmemory") if limit else (machine, "the machine, without maxmemory")
    text = f"{used / MIB:.0f} MiB" + (f" of {most / MIB:.0f} MiB, {of}" if most else ", without maxmemory")
    more = facts.set("maxmemory", f"{max(2 * limit, 64 * MIB) // MIB}mb")
    if limit and used >= limit:
        yield _fail(f"{text}: new jobs are refused with OOM", more)
    elif limit and used >= FULL * limit:
        yield _warn(f"{text}: soon new jobs are refused with OOM", more)
    elif not limit and machine and used >= FULL * machine:
        yield _warn(
            f"{text}: the system may kill the server", facts.set("maxmemory", f"{int(machine * FULL) // MIB}mb")
        )
    else:
        yield _ok(text)


def rows(facts: Facts) -> Iterator[Finding]:
    value = facts.told("hash-max-listpack-value")
    if value is None:
        yield _open(facts, "config")
    elif value < LISTPACK_LOW:
        yield _warn(
            f"hash-max-listpack-value {value}: a job with a longer payload takes up to twice the memory",
            facts.set("hash-max-listpack-value", LISTPACK),
        )
    else:
        yield _ok(f"hash-max-listpack-value {value}")


def clock(facts: Facts) -> Iterator[Finding]:
    """Leases and due times are the server's alone; ids carry the time of the machine that minted them."""
    if facts.offset is None:
        yield _open(facts, "clock")
        return
    apart = max(0.0, abs(facts.offset) - facts.uncertainty)
    side = "ahead of" if facts.offset > 0 else "behind"
    text = f"the server is {abs(facts.offset):.3f} s {side} this machine, ± {facts.uncertainty:.3f} s"
    fix = "chronyc makestep   # or timedatectl set-ntp true, on the machine that is wrong"
    if apart >= SKEW_FAIL:
        yield _fail(f"{text}: jobs enqueued here have a wrong order and age, and times given as AT are wrong", fix)
    elif apart >= SKEW_WARN:
        yield _warn(f"{text}: jobs enqueued here stand in a wrong order beside those of other machines", fix)
    else:
        yield _ok(text)


def replication(facts: Facts) -> Iterator[Finding]:
    info = facts.info
    if "role" not in info:
        yield _open(facts, "info")
    elif info["role"] != "master":
        primary = f"{info.get('master_host')}:{info.get('master_port')}"
        if info.get("master_link_status") == "up":
            yield _warn(f"this is a replica of {primary}: it serves no writes", f"emq-native doctor redis://{primary}")
        else:
            yield _fail(f"this is a replica and its link to {primary} is down", f"{facts.cli} INFO replication")
    else:
        yield from _replicas(facts)


def _replicas(facts: Facts) -> Iterator[Finding]:
    needed, lag = facts.told("min-replicas-to-write") or 0, facts.told("min-replicas-max-lag") or 10
    replicas = [
        dict(pair.partition("=")[::2] for pair in value.split(","))
        for name, value in facts.info.items()
        if name.removeprefix("slave").isdigit()
    ]
    online = [each for each in replicas if each.get("state") == "online"]
    good = [each for each in online if each.get("lag", "").isdigit() and int(each["lag"]) <= lag]
    text = f"{len(online)} of {len(replicas)} replicas online" if replicas else "no replica"
    if needed > len(good):
        yield _fail(
            f"{text}, {needed} needed by min-replicas-to-write: writes are refused with NOREPLICAS",
            facts.set("min-replicas-to-write", len(good)),
        )
    elif len(good) < len(replicas):
        yield _warn(f"{text}, {len(good)} of them not more than {lag} s behind", f"{facts.cli} INFO replication")
    elif not replicas:
        yield _ok(f"{text}: WAIT confirms nothing here, what the disk has is all there is")
    else:
        bound = f", {needed} needed for writes" if needed else f": WAIT {len(good)} confirms a write on each"
        yield _ok(f"{text}{bound}")


def clients(facts: Facts) -> Iterator[Finding]:
    idle, alive = facts.told("timeout"), facts.told("tcp-keepalive")
    connected, most = facts.told("connected_clients"), facts.told("maxclients")
    troubles = []
    if idle:
        text = f"timeout {idle}: a worker whose job takes longer finds its connection closed"
        troubles.append(_warn(text, facts.set("timeout", 0)))
    if alive == 0:
        text = "tcp-keepalive 0: connections of machines that died stay, waiting ones too"
        troubles.append(_warn(text, facts.set("tcp-keepalive", 60)))
    if connected and most and connected >= FULL * most:
        troubles.append(_warn(f"{connected} of {most} clients are connected", facts.set("maxclients", 2 * most)))
    if not troubles and idle is None:
        yield _open(facts, "config")
    yield from troubles or ([] if idle is None else [_ok("idle connections stay")])


def waiters(facts: Facts) -> Iterator[Finding]:
    waiting, most = facts.told("emq_waiters"), facts.told("emq_max_waiters")
    if waiting is None or most is None:
        return
    more = facts.set("emq.max-waiters", max(10000, 2 * most))
    if most == 0:
        yield _warn("emq.max-waiters 0: no worker can wait in the server, so all ask again and again", more)
    elif waiting >= FULL * most:
        yield _warn(f"{waiting} of {most} workers wait that may: further ones ask again and again", more)
    else:
        yield _ok(f"{waiting} of {most}")


def due(facts: Facts) -> Iterator[Finding]:
    late = {each.queue: each.late for each in facts.queues if each.late is not None and each.late > GRACE}
    yield from _moved(facts, late, "late", "jobs are due and nobody promotes them", "EMQ.PROMOTE")


def leases(facts: Facts) -> Iterator[Finding]:
    lapsed = {each.queue: each.lapse for each in facts.queues if each.lapse is not None and each.lapse > GRACE}
    yield from _moved(facts, lapsed, "lapse", "leases ended and nobody reaps them", "EMQ.REAP")


def paused(facts: Facts) -> Iterator[Finding]:
    names = [each.queue for each in facts.queues if each.paused]
    if names:
        chosen = names[0] if len(names) == 1 else '"$queue"'
        fix = f"emq-native queues resume {chosen} --url {facts.url}"
        each = fix if len(names) == 1 else f"for queue in {' '.join(names)}; do {fix}; done"
        yield _warn(f"nobody can take jobs of {_some(names)}: paused", each)
    elif not facts.queues and "queues" in facts.open:
        yield _open(facts, "queues")
    elif any(each.paused is None for each in facts.queues):
        yield Finding("", "open", "not told: this user may not read the queues' keys")
    else:
        yield _ok(f"none; queues looked at: {len(facts.queues)}" if facts.queues else "no queue yet")


def _moved(facts: Facts, waiting: dict[str, float], name: str, text: str, verb: str) -> Iterator[Finding]:
    if not facts.queues and "queues" in facts.open:
        yield _open(facts, "queues")
    elif waiting:
        order = sorted(waiting.items(), key=lambda each: -each[1])
        longest = [f"{queue} since {timedelta(seconds=round(seconds))}" for queue, seconds in order]
        first = longest[0].partition(" ")[0]
        native = facts.probe.module == "loaded" and facts.probe.wire != 4
        once = f"{facts.cli} {verb} 'emq:{{{first}}}'   # once; a running worker does it all the time"
        yield _warn(f"{text}: {_some(longest)}", once if native else "emq-native worker --help   # a worker does it")
    elif any(getattr(each, name) is None for each in facts.queues):
        yield Finding("", "open", "not told: this user may not read the queues' keys")
    else:
        yield _ok(f"none; queues looked at: {len(facts.queues)}" if facts.queues else "no queue yet")


def keys(facts: Facts) -> Iterator[Finding]:
    for queue, why in facts.unread[:SHOWN]:
        yield _fail(f"{queue} cannot be read: {why}", f"{facts.cli} --scan --pattern 'emq:{{{queue}}}:*'")
    if facts.strays:
        first = shlex.quote(facts.strays[0])
        yield _warn(f"{_some(facts.strays)}: no key of a queue", f"{facts.cli} TYPE {first}")
    elif "keys" in facts.open:
        yield _open(facts, "keys")
    elif not facts.unread:
        yield _ok("no stray ones" if facts.walked else "no stray ones among those looked at, which were not all")


def _some(names: Iterable[str]) -> str:
    every = list(names)
    return ", ".join(every[:SHOWN]) + (f" and {len(every) - SHOWN} more" if len(every) > SHOWN else "")


CHECKS: Final[Mapping[str, Callable[[Facts], Iterator[Finding]]]] = {
    "server": server,
    "module": module,
    "wire": wire,
    "fence": fence,
    "rights": rights,
    "persistence": persistence,
    "saves": saves,
    "eviction": eviction,
    "memory": memory,
    "rows": rows,
    "clock": clock,
    "replication": replication,
    "clients": clients,
    "waiters": waiters,
    "due": due,
    "leases": leases,
    "paused": paused,
    "keys": keys,
}
"""The checks by their names, in the order of the report."""
