"""What a node is and what it serves, asked without changing anything and without ever raising.

    found = probe("redis://127.0.0.1")
    if found.lacks(["emq.claim/1"], wire=6): ...

Locked-down nodes are the normal case: each question has a cheaper one behind it, a denied question leaves its answer
open and says why, and only a node that cannot be asked at all is an `error`.

    what                 asked with                  when that is denied
    server, mode, role   HELLO                       INFO
    module               EMQ.VERSION                 denied means: it is there; else COMMAND INFO; the list of HELLO
                                                     or MODULE LIST only adds the version
    capabilities         TRA.CAPABILITIES            open; on a node of wire 4 the package's own table
    fence                GET                         open
    eviction             INFO memory                 CONFIG GET
    primaries            CLUSTER NODES               open
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from emq_native._core import IDENTITY, MODULE_VERSION, WIRE, queue_key
from emq_native.errors import EmqError, PermissionDenied, Unavailable
from emq_native.executors import SCRIPTED
from emq_native.fence import fence_key
from emq_native.provision import Fence, read
from emq_native.session import Session, pairs
from emq_native.topology import primaries

__all__ = ["Module", "Probe", "probe"]

Module = Literal["loaded", "denied", "absent", "unknown"]
"""loaded: it answers. denied: it is there, this user may not call it. absent: it is not loaded. unknown: not told."""

MODULE_NAME: Final = "emq"
_ROLES: Final = {b"master": "primary", b"slave": "replica", b"replica": "replica"}


@dataclass(frozen=True, slots=True)
class Probe:
    """The answers of one node. None means: the node did not tell; `open` then says why.

    address            host:port or path of the socket
    error, detail      class and text of what kept the node from answering at all, None when it is up and serves
    server, server_version    for example "valkey", "9.1.2"
    role               "primary" or "replica"
    cluster            whether it runs in cluster mode
    module, module_version, module_wire    the module, its semantic version, the wire that it speaks
    fence              the fence of the database; in cluster mode of the queue that was named
    capabilities       verbs with revision, "emq.claim/1", of the executor that the fence names, else of the module
    eviction           maxmemory-policy
    maxmemory          bytes, 0 for no limit
    open               what was not told, as name -> reason
    primaries          in cluster mode a Probe of every primary of the cluster
    """

    address: str
    error: str | None = None
    detail: str | None = None
    server: str | None = None
    server_version: str | None = None
    role: str | None = None
    cluster: bool | None = None
    module: Module = "unknown"
    module_version: str | None = None
    module_wire: int | None = None
    fence: Fence | None = None
    capabilities: tuple[str, ...] | None = None
    eviction: str | None = None
    maxmemory: int | None = None
    open: tuple[tuple[str, str], ...] = ()
    primaries: tuple[Probe, ...] = ()

    @property
    def reachable(self) -> bool:
        """Whether the node is up and serves this user."""
        return self.error is None

    @property
    def other_version(self) -> bool:
        """Whether a module is loaded that is not the one of this package."""
        return self.module_version is not None and self.module_version != MODULE_VERSION

    @property
    def wire(self) -> int | None:
        """The wire on which jobs can run here now: 4, 6, or None when there is none or it was not told.

        Wire 6 needs the fence and the module. In cluster mode without a queue the module alone decides.
        """
        served = self.module in ("loaded", "denied") and self.module_wire in (WIRE, None)
        if self.fence is None:
            return WIRE if self.cluster and self.module == "loaded" and served else None
        return self.fence.wire if self.fence.wire != WIRE or served else None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What endangers jobs on this node, or needs an operator's eye."""
        return tuple(self._warnings())

    def lacks(self, capabilities: Iterable[str] = (), *, wire: int | None = None) -> tuple[str, ...]:
        """Every reason why the node does not meet the requirements; empty when it does.

        capabilities: "emq.claim/1", or "emq.claim" for any revision. In cluster mode every primary must have them.
        """
        wanted = tuple(capabilities)
        nodes = self.primaries or (self,)
        reasons = [f"{node.address}: {reason}" for node in nodes for reason in node._lacks(wanted)]
        if self.reachable and wire is not None and self.wire != wire:
            reasons.append(f"{self.address}: wire {wire} is not served, {self._wire_text()}")
        return tuple(reasons)

    def as_dict(self) -> dict[str, Any]:
        """All fields, with `reachable`, `wire`, `other_version` and `warnings`, fit for JSON."""
        own = asdict(self) | {
            "reachable": self.reachable,
            "wire": self.wire,
            "other_version": self.other_version,
            "warnings": list(self.warnings),
            "open": dict(self.open),
            "primaries": [primary.as_dict() for primary in self.primaries],
        }
        if self.fence is not None:
            own["fence"]["wire"] = self.fence.wire
        return own

    def _lacks(self, capabilities: Iterable[str]) -> Iterator[str]:
        if not self.reachable:
            yield f"{self.error}: {self.detail}"
        elif self.capabilities is None:
            for name in capabilities:
                yield f"{name} is not served as far as known: {dict(self.open).get('capabilities', 'not told')}"
        else:
            bare = {entry.partition("/")[0] for entry in self.capabilities}
            for name in capabilities:
                if name not in self.capabilities and name not in bare:
                    yield f"{name} is not served"

    def _wire_text(self) -> str:
        if self.fence is None:
            return f"the fence was not told ({dict(self.open).get('fence', 'no reason')}), the module is {self.module}"
        return f"the fence is {self.fence}, the module is {self.module}"

    def _warnings(self) -> Iterator[str]:
        if self.eviction is not None and self.eviction.startswith("allkeys-"):
            when = "as soon as a limit is set" if self.maxmemory == 0 else "when memory is full"
            yield f"maxmemory-policy {self.eviction} deletes jobs {when}: use noeviction"
        if self.fence is not None:
            if self.fence.ttl_ms is not None:
                yield f"the fence {self.fence.key} expires in {self.fence.ttl_ms} ms: SET it again without a TTL"
            if self.fence.wire is None and str(self.fence) != "unclaimed":
                yield f"the fence {self.fence.key} holds no identity of this package: {self.fence}"
            if self.fence.wire == WIRE and "absent" in {node.module for node in self.primaries or (self,)}:
                yield f"the node is claimed for {IDENTITY}, but the module is not loaded"
        if self.other_version:
            yield f"the module is version {self.module_version}, this package is made for {MODULE_VERSION}"
        for primary in self.primaries:
            if not primary.reachable:
                yield f"{primary.address}: {primary.error}: {primary.detail}"
            elif primary.address != self.address:
                yield from (f"{primary.address}: {warning}" for warning in primary.warnings)
        if len({(primary.module, primary.module_version) for primary in self.primaries if primary.reachable}) > 1:
            yield "the primaries of the cluster differ in the module that they have"


def probe(target: object, *, queue: str | None = None) -> Probe:
    """Ask the node that `target`, a URL or a synchronous client, means. Changes nothing and never raises.

    queue: in cluster mode, the queue whose fence is asked for.
    """
    try:
        with Session(target) as session:
            return Questions(session).of_node(queue)
    except Exception as error:
        return _failed(target, error)


def _failed(target: object, error: Exception) -> Probe:
    try:
        address = target.address if isinstance(target, Session) else Session(target).address
    except Exception:
        address = "?"
    return Probe(address, error=type(error).__name__, detail=str(error))


class Questions:
    """One round of questions to one node. Each method gives what it learned and notes in `open` what it did not."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.open: dict[str, str] = {}

    def of_node(self, queue: str | None) -> Probe:
        """Everything, with every primary when the node is one of a cluster."""
        about = self._about()
        fence = self._fence(about.get("cluster"), queue)
        others = self._primaries(fence) if about.get("cluster") else ()
        return self._answers(about, fence, fence=fence, primaries=others)

    def of_primary(self, fence: Fence | None) -> Probe:
        """What can differ between the nodes of a cluster; `fence` is the one that was found already."""
        return self._answers(self._about(), fence)

    def _answers(self, about: dict[str, Any], claimed: Fence | None, **more: Any) -> Probe:
        serving = self._ask("PING")
        if isinstance(serving, (Unavailable, PermissionDenied)) and serving.code != "NOPERM":
            more |= {"error": type(serving).__name__, "detail": str(serving)}
        more |= self._memory() | self._module(about.pop("modules", None))
        more["capabilities"] = self._capabilities(more["module"], claimed)
        return Probe(self.session.address, **about, **more, open=tuple(self.open.items()))

    def _ask(self, *words: str | bytes) -> Any:
        """The reply, or the exception when the server answered with an error. A lost connection is raised."""
        try:
            return self.session.send(*words)
        except EmqError as error:
            if isinstance(error, Unavailable) and not error.code:
                raise
            return error

    def _about(self) -> dict[str, Any]:
        hello = self._ask("HELLO")
        if not isinstance(hello, EmqError):
            told = pairs(hello)
            return {
                "server": _text(told.get("server")),
                "server_version": _text(told.get("version")),
                "cluster": told.get("mode") == b"cluster",
                "role": _ROLES.get(told.get("role", b"")),
                "modules": told.get("modules"),
            }
        info = self.info("server") | self.info("replication")
        if not info:
            self.open["server"] = str(hello)
            return {}
        name = info.get("server_name", "redis")
        return {
            "server": name,
            "server_version": info.get(f"{name}_version"),
            "cluster": "cluster" in (info.get("server_mode"), info.get("redis_mode")),
            "role": _ROLES.get(info.get("role", "").encode()),
        }

    def info(self, section: str) -> dict[str, str]:
        reply = self._ask("INFO", section)
        if isinstance(reply, EmqError):
            return {}
        lines = (line.partition(":") for line in reply.decode("utf-8", "replace").splitlines() if ":" in line)
        return {name: value for name, _, value in lines}

    def _module(self, modules: Any) -> dict[str, Any]:
        version = self._ask("EMQ.VERSION")
        if not isinstance(version, EmqError):
            told = pairs(version)
            return {
                "module": "loaded",
                "module_version": _text(told.get("module_version")),
                "module_wire": told.get("wire"),
            }
        listed = self.listed_version(modules)
        if isinstance(version, PermissionDenied) and version.code == "NOPERM":
            # A server looks for the command before it looks at the user's rights.
            state: Module = "denied"
        elif "unknown command" in str(version).lower():
            state = "absent"
            if listed is not None:
                self.open["module"] = f"a module of the name {MODULE_NAME} is loaded that is not this one"
        else:
            command = self._ask("COMMAND", "INFO", "emq.version")
            state = "unknown" if isinstance(command, EmqError) else "loaded" if command and command[0] else "absent"
        if state != "absent":
            self.open["module"] = str(version)
        return {"module": state, "module_version": listed if state != "absent" else None}

    def listed_version(self, modules: Any = None) -> str | None:
        """The version of a module of this name as the server lists it; None when it lists none, or no modules."""
        listed = modules if modules is not None else self._ask("MODULE", "LIST")
        if isinstance(listed, EmqError):
            return None
        for entry in map(pairs, listed):
            if entry.get("name") == MODULE_NAME.encode():
                number = int(entry["ver"])
                return f"{number // 10000}.{number // 100 % 100}.{number % 100}"
        return None

    def _fence(self, cluster: bool | None, queue: str | None) -> Fence | None:
        if cluster is None:
            self.open["fence"] = "the node does not tell whether it runs in cluster mode"
            return None
        if cluster and queue is None:
            self.open["fence"] = "in cluster mode each queue has its own: name a queue"
            return None
        try:
            with self.session.twin() as other:
                return read(other, fence_key(queue_key(queue) if cluster and queue is not None else None))
        except EmqError as error:
            self.open["fence"] = str(error)
            return None

    def _capabilities(self, module: Module, fence: Fence | None) -> tuple[str, ...] | None:
        if fence is not None and fence.wire == SCRIPTED.wire:
            return tuple(_text(entry) or "" for entry in SCRIPTED.local("tra.capabilities", ()))
        reply = self._ask("TRA.CAPABILITIES")
        if isinstance(reply, EmqError):
            self.open["capabilities"] = "no module and no claim for the scripts" if module == "absent" else str(reply)
            return None
        return tuple(_text(entry) or "" for entry in reply)

    def _memory(self) -> dict[str, Any]:
        info = self.info("memory")
        policy, limit = info.get("maxmemory_policy"), info.get("maxmemory")
        if policy is None:
            reply = self._ask("CONFIG", "GET", "maxmemory*")
            if isinstance(reply, EmqError):
                self.open["eviction"] = str(reply)
                return {}
            told = pairs(reply)
            policy, limit = _text(told.get("maxmemory-policy")), _text(told.get("maxmemory"))
        return {"eviction": policy, "maxmemory": None if limit is None else int(limit)}

    def _primaries(self, fence: Fence | None) -> tuple[Probe, ...]:
        reply = self._ask("CLUSTER", "NODES")
        if isinstance(reply, EmqError):
            self.open["primaries"] = str(reply)
            return ()
        return tuple(_of_primary(self.session.at(each.host, each.port), fence) for each in primaries(reply))


def _of_primary(session: Session, fence: Fence | None) -> Probe:
    try:
        with session:
            return Questions(session).of_primary(fence)
    except Exception as error:
        return _failed(session, error)


def _text(value: Any) -> str | None:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else None if value is None else str(value)
