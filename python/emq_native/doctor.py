"""A doctor for a node: asks what matters to jobs there, changes nothing, and says what is wrong and how to mend it.

    report = examine("redis://127.0.0.1")
    for finding in report.findings: ...

What is asked is here; what the answers mean is in `findings`. Of a cluster every primary is examined. A user of few
rights, a replica, a server without the module and one of wire 4 are the normal case.
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlsplit

from emq_native.conformance.audit import FIXED
from emq_native.errors import EmqError, PermissionDenied, Redirected, Unavailable
from emq_native.executors import NATIVE, SCRIPTED, Executor
from emq_native.fence import fence_key
from emq_native.findings import Facts, Finding, Rights, Verdict, judge
from emq_native.keys import Keys
from emq_native.overview import QUEUE_KEYS, queue_of
from emq_native.paths import module_path
from emq_native.probe import MODULE_NAME, Probe, Questions
from emq_native.provision import Fence, read
from emq_native.readings import WALK_CALLS, WALK_COUNT, Fleet, Node, Reading, fields
from emq_native.session import Session, pairs
from emq_native.verbs import VERBS, Verb

__all__ = ["Examination", "examine"]

SECTIONS: Final = ("server", "clients", "memory", "persistence", "replication", "emq")
SETTINGS: Final = (
    "appendonly",
    "appendfsync",
    "save",
    "stop-writes-on-bgsave-error",
    "hash-max-listpack-value",
    "min-replicas-*",
    "timeout",
    "tcp-keepalive",
    "maxclients",
)
QUEUES: Final = 1000
CLOCK_READINGS: Final = 5

ABOUT: Final = ("emq.version", "tra.capabilities")
"""Verbs that concern no queue."""

_KINDS: Final = re.compile(
    rb"g:[A-Za-z0-9._-]{1,64}:pending|repeat:[A-Za-z0-9._-]{1,128}|de:.*|stream:.*|limiter|metrics:(completed|failed):data",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Examination:
    """The findings, and error and detail (class and text) when the node cannot be examined at all."""

    address: str
    findings: tuple[Finding, ...] = ()
    error: str | None = None
    detail: str | None = None

    @property
    def verdict(self) -> Verdict:
        """The worst of the findings; open ones count as ok."""
        found = {finding.verdict for finding in self.findings}
        return "fail" if "fail" in found else "warn" if "warn" in found else "ok"


def examine(target: object, *, queues: Sequence[str] = (), user: str | None = None) -> Examination:
    """Examine the node that `target`, a URL or a synchronous client, means. Changes nothing.

    queues: only these, by default those that a bounded walk over the keys finds; the first one is the one for which
    the rights are tried. user: whose rights, by default one's own; for another's an administrator has to ask. Raises
    InvalidArgument for a name or a URL that is none, TypeError for a target that is none, and nothing for a node.
    """
    for name in queues:
        Keys(name)
    fleet = Fleet(target)
    try:
        nodes = fleet.nodes()
        found: list[Finding] = []
        for node in nodes:
            visit = Visit(node, target, queues, user)
            try:
                own = tuple(judge(visit.facts()))
            except EmqError as error:
                if len(nodes) == 1:
                    raise
                text = f"does not answer: {error}"
                own = (Finding("server", "fail", text, f"{visit.cli} PING"),)
            found += [replace(each, node=node.address) for each in own] if len(nodes) > 1 else own
        return Examination(fleet.address, tuple(found))
    except EmqError as error:
        return Examination(fleet.address, error=type(error).__name__, detail=str(error))
    finally:
        fleet.close()


class Visit:
    """The questions to one node. What it does not answer is noted in `open`."""

    def __init__(self, node: Node, target: object, queues: Sequence[str], user: str | None) -> None:
        self.node = node
        self.session = node.session
        self.cli, self.url = named(target, node.session, cluster=node.cluster)
        self._queues = queues
        self._user = user
        self.open: dict[str, str] = {}

    def facts(self) -> Facts:
        """Everything. Raises EmqError when the node does not serve this user."""
        self.node.about()
        probe = Questions(self.session).of_primary(None)
        fence = None if self.node.cluster else self._fence()
        probe = replace(probe, fence=fence)
        # A server that cannot save refuses even PING; that is a finding.
        if not probe.reachable and not (probe.detail or "").startswith("MISCONF"):
            raise Unavailable(f"{probe.detail}")
        info = self._ask("info", "INFO", *SECTIONS)
        config = self._ask("config", "CONFIG", "GET", *SETTINGS)
        names, strays, walked = self._walk()
        readings: list[Reading] = []
        unread: list[tuple[str, str]] = []
        for name, found in self.node.queues(names[:QUEUES], lanes=0):
            if isinstance(found, Reading):
                readings.append(found)
            elif isinstance(found, (PermissionDenied, Redirected)):
                self._note("queues", found)
            else:
                unread.append((name, str(found)))
        offset, uncertainty = self._clock()
        return Facts(
            cli=self.cli,
            url=self.url,
            probe=probe,
            fence=fence,
            info={} if info is None else fields(info),
            config={} if config is None else {name: _text(value) for name, value in pairs(config).items()},
            module_file=self._module_file(),
            own_file=own_file(),
            login=self.session.user,
            rights=self._rights(names, probe),
            offset=offset,
            uncertainty=uncertainty,
            queues=tuple(readings),
            unread=tuple(unread),
            strays=strays,
            walked=walked,
            open=self.open,
        )

    def _note(self, question: str, error: EmqError) -> None:
        if isinstance(error, Unavailable):
            raise error
        self.open[question] = str(error)

    def _ask(self, question: str, *words: str | bytes | int) -> Any:
        try:
            return self.session.send(*words)
        except EmqError as error:
            self._note(question, error)
            return None

    def _fence(self) -> Fence | None:
        key = fence_key(None)
        try:
            return read(self.session, key)
        except EmqError as error:
            self._note("fence", error)
        value = self._ask("fence", "GET", key)  # whether it expires may be what this user may not ask
        return None if value is None else Fence(key.decode(), _text(value))

    def _walk(self) -> tuple[list[str], tuple[str, ...], bool]:
        """The names of queues, the stray keys, and whether all keys were seen."""
        if self._queues:
            self.open["keys"] = "queues were named, so no walk was made"
            return [name for name in self._queues if self.node.owns(name)], (), False
        names: set[str] = set()
        strays: list[str] = []
        cursor = 0
        for _ in range(WALK_CALLS):
            reply = self._ask("queues", "SCAN", cursor, "MATCH", QUEUE_KEYS, "COUNT", WALK_COUNT)
            if reply is None:
                self.open["keys"] = self.open["queues"]
                return [], (), False
            for key in reply[1]:
                name = queue_of(key)
                if name is not None:
                    names.add(name)
                if is_stray(key):
                    strays.append(key.decode("utf-8", "backslashreplace"))
            cursor = int(reply[0])
            if not cursor:
                break
        return sorted(names), tuple(strays), not cursor

    def _module_file(self) -> str | None:
        try:
            for module in map(pairs, self.session.send("MODULE", "LIST")):
                if _text(module.get("name")) == MODULE_NAME:
                    return _text(module.get("path", "")) or None
        except EmqError as error:
            self._note("module", error)
        return None

    def _clock(self) -> tuple[float | None, float]:
        """The server's clock minus ours in seconds, by the quickest of several readings, and half its round trip."""
        best: tuple[float | None, float] = (None, 0.0)
        for _ in range(CLOCK_READINGS):
            before, began = time.time(), time.perf_counter()
            reply = self._ask("clock", "TIME")
            half = (time.perf_counter() - began) / 2
            if reply is None:
                break
            if best[0] is None or half < best[1]:
                best = (int(reply[0]) + int(reply[1]) / 1e6 - (before + half), half)
        return best

    def _rights(self, names: Sequence[str], probe: Probe) -> Rights | None:
        owner = probe.fence.wire if probe.fence else None
        if probe.module == "absent" and owner == NATIVE.wire:
            self.open["rights"] = "the module is not loaded, so its commands are not known"
            return None
        executor = SCRIPTED if probe.module == "absent" or owner == SCRIPTED.wire else NATIVE
        user = self._user or _text(self._ask("rights", "ACL", "WHOAMI") or b"")
        if not user:
            return None
        queue = self._queue_of(user, names or self._queues, executor)
        keys = Keys(queue or "doctor")
        verbs = [verb for verb in VERBS.values() if verb.name not in ABOUT and executor.serves(verb.name)]
        tried = [("GET", keys.fence(cluster=self.node.cluster)), *(sample(verb, keys, executor) for verb in verbs)]
        verdicts = self.session.send_all([("ACL", "DRYRUN", user, *words) for words in tried])
        allowed: list[str] = []
        denied: list[str] = []
        for verb, verdict in zip(verbs, verdicts[1:], strict=True):
            if isinstance(verdict, EmqError):
                if "not found" in str(verdict) and "ommand" in str(verdict):
                    continue  # an older module lacks the verb
                self._note("rights", verdict)
                return None
            (allowed if _granted(verdict, queue) else denied).append(verb.name)
        fence = _granted(verdicts[0], None if self.node.cluster and queue is None else "")
        return Rights(user, queue, tuple(allowed), tuple(denied), fence, executor is SCRIPTED)

    def _queue_of(self, user: str, names: Sequence[str], executor: Executor) -> str | None:
        """The first queue whose counts the user may read, as all roles of it may; else the first."""
        tried = [sample(VERBS["emq.counts"], Keys(name), executor) for name in names[:QUEUES]]
        verdicts = self.session.send_all([("ACL", "DRYRUN", user, *words) for words in tried])
        seen = (name for name, verdict in zip(names[:QUEUES], verdicts, strict=True) if verdict == b"OK")
        return next(seen, next(iter(names), None))


def _granted(verdict: Any, queue: str | None) -> bool:
    """Whether ACL DRYRUN grants a call; without a queue, whether it is only the key that it denies."""
    return bool(verdict == b"OK" or (queue is None and b" key" in verdict))


def sample(verb: Verb, keys: Keys, executor: Executor) -> tuple[bytes, ...]:
    """A call of a verb that names the keys of a queue, to try whether a user may make it. It is never carried out."""
    values = {"id": b"JOB00000000000", "group": b"g", "name": b"n"}
    words = [values.get(word, b"1") for word in (*verb.words, *verb.tail)]
    return executor.frame(verb.name, [keys.queue, *words]).argv


def is_stray(key: bytes) -> bool:
    """Whether a key stands under the tag of a queue without being one that a queue has."""
    if queue_of(key) is None:
        return not re.fullmatch(rb"emq:\{[A-Za-z0-9._-]{1,128}\}:version", key)
    kind = key.partition(b"}:")[2]
    return kind.decode("utf-8", "replace") not in FIXED and not _KINDS.fullmatch(kind)


def named(target: object, session: Session, *, cluster: bool) -> tuple[str, str]:
    """How commands to paste name the node: the beginning of one of valkey-cli, and the URL for emq-native.

    A URL with a password is not repeated: $EMQ_URL stands for it.
    """
    if cluster or not isinstance(target, str):
        if session.host is None:
            return f"valkey-cli -s {shlex.quote(session.address)}", f"unix://{session.address}"
        host, _, port = session.address.rpartition(":")
        return f"valkey-cli -h {host.strip('[]')} -p {port}", f"redis://{session.address}"
    if session.host is None:
        return f"valkey-cli -s {shlex.quote(session.address)}", shlex.quote(target)
    shown = '"$EMQ_URL"' if urlsplit(target).password else shlex.quote(target)
    return f"valkey-cli -u {shown}", shown


def own_file() -> str | None:
    """The path of this package's module, None when it has none."""
    try:
        return str(module_path())
    except (EmqError, OSError):
        return None


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
