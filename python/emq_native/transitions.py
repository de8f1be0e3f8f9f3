"""Every transition of the contract, once and without I/O: what goes out, and what comes back.

A transition is made from typed arguments, which are checked then and there: whatever a server would refuse for its
form raises InvalidArgument here, before any traffic. `words(queue_key)` are the words of the command after its verb,
`decode` turns the reply into a value. Executors frame the words, connectors carry them, queues name the transitions
as methods.

A job is given as the Job that a claim answered. Where a token is needed and only the id is at hand, name both: an id
and `token=`, or in lists a pair (id, token).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Generic, TypeVar

from emq_native import _core
from emq_native.arguments import (
    MAX_MEMBERS,
    Duration,
    Payload,
    instant,
    integer,
    milliseconds,
    payload_bytes,
    text_bytes,
    token_bytes,
)
from emq_native.errors import InvalidArgument
from emq_native.ids import mint, mint_many
from emq_native.values import (
    Admitted,
    Counts,
    GroupCounts,
    Job,
    Reassigned,
    Retried,
    Settled,
    State,
    Version,
)

Reply = Any
"""What a server answered: bytes, int, None, a list, or a dict."""

R_co = TypeVar("R_co", covariant=True)

_SETTLED: Final[dict[int, Settled]] = {1: "completed", 0: "gone", -1: "stale"}
_REASSIGNED: Final[dict[int, Reassigned]] = {1: "moved", 0: "same", -1: "ungrouped", -2: "not waiting"}


def _id_of(job: Job | str) -> bytes:
    return _core.job_id(job.id if isinstance(job, Job) else job)


def _lease_of(job: Job | str, token: int | None) -> tuple[bytes, bytes]:
    if isinstance(job, Job):
        return _core.job_id(job.id), token_bytes(job.attempts if token is None else token)
    if token is None:
        raise InvalidArgument("an id alone proves no lease: pass the Job, or the id and token=")
    return _core.job_id(job), token_bytes(token)


def _leases_of(jobs: Iterable[Job | tuple[str, int]]) -> list[bytes]:
    words: list[bytes] = []
    for job in jobs:
        if not isinstance(job, (Job, tuple)) or (isinstance(job, tuple) and len(job) != 2):
            raise InvalidArgument("jobs must be Job objects or pairs (id, token)")
        words += _lease_of(job, None) if isinstance(job, Job) else _lease_of(*job)
    _at_most_members(len(words) // 2)
    return words


def _at_most_members(count: int) -> None:
    if count > MAX_MEMBERS:
        raise InvalidArgument(f"at most {MAX_MEMBERS} members in one call")


def _new_id(job_id: str | None) -> str:
    return mint() if job_id is None else _core.job_id(job_id).decode()


def _limit(limit: int | None) -> list[bytes]:
    return [] if limit is None else [b"LIMIT", b"%d" % integer("limit", limit)]


def _max(max_attempts: int | None) -> list[bytes]:
    return [] if max_attempts is None else [b"MAX", b"%d" % integer("max_attempts", max_attempts)]


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", "backslashreplace")


def _mapping(reply: Reply) -> dict[bytes, Reply]:
    """A map, which is a dict on RESP3 and a flat list on RESP2 and from a script."""
    return reply if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2], strict=True))


def _job(reply: Sequence[Reply], queue: str) -> Job:
    group = reply[3] if len(reply) == 4 else None
    return Job(reply[0].decode(), reply[1], reply[2], queue, _text(group))


class Transition(Generic[R_co]):
    """One atomic change, or one reading. `verb` is its name as in TRA.CAPABILITIES."""

    verb: str
    _words: Sequence[bytes] = ()

    def __init_subclass__(cls, *, verb: str) -> None:
        cls.verb = verb

    def words(self, key: bytes) -> list[bytes]:
        """The words after the verb, the queue key first."""
        return [key, *self._words]

    @property
    def trivial(self) -> bool:
        """There is nothing to ask a server for: the answer is what an empty array decodes to."""
        return False

    def decode(self, reply: Reply, queue: str) -> R_co:
        """The value of a reply; `queue` is the name of the queue that answered."""
        raise NotImplementedError


class _Flag(Transition[bool], verb=""):
    """Answers 1 when it did it; 0 or -1 when not."""

    def decode(self, reply: Reply, queue: str) -> bool:
        return bool(reply == 1)


class _Count(Transition[int], verb=""):
    """Answers a number."""

    def decode(self, reply: Reply, queue: str) -> int:
        return int(reply)


class _Jobs(Transition["list[Job]"], verb=""):
    """Answers an array of jobs."""

    def decode(self, reply: Reply, queue: str) -> list[Job]:
        return [_job(each, queue) for each in reply]


class _Admission(Transition[Admitted], verb=""):
    """Answers 1 for a new job, 0 when there is one of this id."""

    _id: str

    def decode(self, reply: Reply, queue: str) -> Admitted:
        return Admitted._of(self._id, reply == 1)


@dataclass
class Enqueue(_Admission, verb="emq.enqueue"):
    """Admit a job that may be claimed at once.

    payload: bytes; group: the lane to wait in; id: a job id of your own instead of a new one, which makes it safe to
    send again. Returns the id, a str whose `created` is False when a job of that id exists already, whatever its
    state: then nothing was changed. Raises InvalidArgument; OutOfMemory when the server is full.
    """

    payload: Payload
    group: str | None = field(default=None, kw_only=True)
    id: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        payload = payload_bytes("payload", self.payload)
        group = [] if self.group is None else [_core.group_name(self.group)]
        if group:
            self.verb = "emq.genqueue"
        self._id = _new_id(self.id)
        self._words = [*group, self._id.encode(), payload]


@dataclass
class EnqueueIn(_Admission, verb="emq.schedule"):
    """Admit a job that becomes due after a delay, by the server's clock; `promote` then makes it claimable.

    payload: bytes; delay: seconds or timedelta, 0 or more; id and result as for enqueue.
    """

    payload: Payload
    delay: Duration
    id: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        payload = payload_bytes("payload", self.payload)
        when = b"%d" % milliseconds("delay", self.delay)
        self._id = _new_id(self.id)
        self._words = [self._id.encode(), payload, b"IN", when]


@dataclass
class EnqueueAt(_Admission, verb="emq.schedule"):
    """Admit a job that becomes due at a date; `promote` then makes it claimable.

    payload: bytes; when: an aware datetime, one in the past is due now; id and result as for enqueue.
    """

    payload: Payload
    when: datetime
    id: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        payload = payload_bytes("payload", self.payload)
        when = b"%d" % instant("when", self.when)
        self._id = _new_id(self.id)
        self._words = [self._id.encode(), payload, b"AT", when]


@dataclass
class Claim(Transition["Job | None"], verb="emq.claim"):
    """Take the oldest waiting job without a group, under a lease.

    lease: seconds or timedelta, 1 ms or more: how long the job is yours before others may take it.
    Returns the Job with its token, or None when nothing waits or the queue is paused.
    """

    lease: Duration

    def __post_init__(self) -> None:
        self._words = [b"%d" % milliseconds("lease", self.lease)]

    def decode(self, reply: Reply, queue: str) -> Job | None:
        return _job(reply, queue) if reply else None


@dataclass
class Complete(_Flag, verb="emq.complete"):
    """Finish a job: it is gone, and its parent is told.

    job: the Job, or its id with token=; result: bytes for its parent, the job's id when left out. Returns True, or
    False when there is no such job (any more). Raises StaleToken when the lease was lost, WrongState when the job is
    not active.
    """

    job: Job | str
    token: int | None = field(default=None, kw_only=True)
    result: Payload | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        result = [] if self.result is None else [b"RESULT", payload_bytes("result", self.result)]
        self._words = [*_lease_of(self.job, self.token), *result]


@dataclass
class Retry(Transition[Retried], verb="emq.retry"):
    """Report a failure: the job runs again after a delay, or is dead when it has had its runs.

    job: the Job, or its id with token=; max_attempts: runs in all, 1 or more; error: text, kept in the row;
    delay: seconds or timedelta, 0 or more.
    Returns "scheduled" or "dead". Raises StaleToken, JobGone, WrongState.
    """

    job: Job | str
    max_attempts: int = field(kw_only=True)
    error: str | Payload = field(default=b"", kw_only=True)
    delay: Duration = field(default=0, kw_only=True)
    token: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        self._words = [
            *_lease_of(self.job, self.token),
            b"%d" % milliseconds("delay", self.delay),
            b"%d" % integer("max_attempts", self.max_attempts),
            text_bytes("error", self.error),
        ]

    def decode(self, reply: Reply, queue: str) -> Retried:
        return "dead" if reply == b"dead" else "scheduled"


@dataclass
class Delay(_Flag, verb="emq.delay"):
    """Put an active job back for later. It is no failure and uses up no run.

    job: the Job, or its id with token=; until: seconds or timedelta from now, or an aware datetime.
    Returns True. Raises StaleToken, JobGone, WrongState.
    """

    job: Job | str
    until: Duration | datetime
    token: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if isinstance(self.until, datetime):
            when = [b"AT", b"%d" % instant("until", self.until)]
        else:
            when = [b"IN", b"%d" % milliseconds("delay", self.until)]
        self._words = [*_lease_of(self.job, self.token), *when]


@dataclass
class Extend(_Flag, verb="emq.extend"):
    """Move the end of a lease to now + lease, which may also be earlier than before.

    job: the Job, or its id with token=; lease: seconds or timedelta, 1 ms or more. Returns True, or False when there
    is no such job. Raises StaleToken; WrongState when the lease is over and was reaped.
    """

    job: Job | str
    lease: Duration
    token: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        self._words = [*_lease_of(self.job, self.token), b"%d" % milliseconds("lease", self.lease)]


@dataclass
class Promote(_Count, verb="emq.promote"):
    """Make due jobs claimable, the earliest first.

    limit: at most so many in this call, 1 to 10000, by default 1000. Returns how many; fewer than the limit does not
    prove that no more are due.
    """

    limit: int | None = None

    def __post_init__(self) -> None:
        self._words = _limit(self.limit)


@dataclass
class Reap(_Count, verb="emq.reap"):
    """Take back the jobs whose lease is over, the earliest first. They wait again, under the token they had.

    limit: at most so many in this call, 1 to 10000, by default 1000; max_attempts: a job that has had so many runs is
    dead instead of waiting. Returns how many; fewer than the limit does not prove that no more are over.
    """

    limit: int | None = None
    max_attempts: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        self._words = [*_limit(self.limit), *_max(self.max_attempts)]


@dataclass
class Where(Transition[State], verb="emq.state"):
    """Where a job is: "pending", "active", "scheduled", "dead", "awaiting_children"; "absent" when there is no such
    job, "unknown" when no place lists it.

    job: a Job or an id.
    """

    job: Job | str

    def __post_init__(self) -> None:
        self._words = [_id_of(self.job)]

    def decode(self, reply: Reply, queue: str) -> State:
        state: State = reply.decode()
        return state


@dataclass
class Count(Transition[Counts], verb="emq.counts"):
    """The true number of jobs in each place, and of completions and failures since the queue began."""

    def decode(self, reply: Reply, queue: str) -> Counts:
        numbers = _mapping(reply)
        return Counts(*(int(numbers[name.encode()]) for name in Counts.__slots__))


@dataclass
class Peek(Transition["dict[str, bytes] | None"], verb="emq.peek"):
    """All fields of a job's row, name to bytes; None when there is no such job.

    job: a Job or an id.
    """

    job: Job | str

    def __post_init__(self) -> None:
        self._words = [_id_of(self.job)]

    def decode(self, reply: Reply, queue: str) -> dict[str, bytes] | None:
        if reply is None:
            return None
        return {name.decode("utf-8", "backslashreplace"): value for name, value in _mapping(reply).items()}


@dataclass
class About(Transition[Version], verb="emq.version"):
    """What the executor is, and the fence that it sees."""

    def decode(self, reply: Reply, queue: str) -> Version:
        values = {name.decode(): value for name, value in _mapping(reply).items()}
        texts = {name: _text(values[name]) for name in ("module", "module_version", "node", "server")}
        return Version(**texts, identity=_text(values["identity"]) or "", wire=values["wire"], api=values["api"])


# Many at once


@dataclass
class EnqueueMany(Transition["list[Admitted]"], verb="emq.menqueue"):
    """Admit many jobs in one step.

    payloads: at most 10000 of bytes, or of pairs (id, bytes) for ids of your own. Returns their ids in order, each with
    `created` as for enqueue. All or nothing: one that is refused refuses the call.
    """

    payloads: Iterable[Payload | tuple[str, Payload]]

    def __post_init__(self) -> None:
        members = [each if isinstance(each, tuple) else (None, each) for each in self.payloads]
        _at_most_members(len(members))
        if any(len(member) != 2 for member in members):
            raise InvalidArgument("payloads must be bytes, or pairs (id, bytes)")
        payloads = [payload_bytes("payload", payload) for _, payload in members]
        given = {place: _new_id(job_id) for place, (job_id, _) in enumerate(members) if job_id is not None}
        minted = iter(mint_many(len(members) - len(given)))
        self._ids = [given.get(place) or next(minted) for place in range(len(members))] if given else list(minted)
        self._words = [word for pair in zip(self._ids, payloads, strict=True) for word in (pair[0].encode(), pair[1])]

    @property
    def trivial(self) -> bool:
        return not self._words

    def decode(self, reply: Reply, queue: str) -> list[Admitted]:
        return [Admitted._of(job_id, answer == 1) for job_id, answer in zip(self._ids, reply, strict=True)]


@dataclass
class ClaimMany(_Jobs, verb="emq.mclaim"):
    """Take the oldest waiting jobs without a group, under one lease.

    lease: seconds or timedelta, 1 ms or more; count: at most so many, 1 to 10000. Returns the jobs, perhaps none.
    """

    lease: Duration
    count: int

    def __post_init__(self) -> None:
        self._words = [b"%d" % milliseconds("lease", self.lease), b"%d" % integer("count", self.count)]


@dataclass
class CompleteMany(Transition["list[Settled]"], verb="emq.mcomplete"):
    """Finish many jobs in one step.

    jobs: at most 10000 Job objects, or pairs (id, token). Returns in order "completed", "gone" (no such job any more)
    or "stale" (the lease was lost); a stale one does not hinder the others.
    """

    jobs: Iterable[Job | tuple[str, int]]

    def __post_init__(self) -> None:
        self._words = _leases_of(self.jobs)

    @property
    def trivial(self) -> bool:
        return not self._words

    def decode(self, reply: Reply, queue: str) -> list[Settled]:
        return [_SETTLED[answer] for answer in reply]


@dataclass
class ExtendMany(Transition["list[str]"], verb="emq.mextend"):
    """Move the end of many leases to now + lease.

    jobs: at most 10000 Job objects, or pairs (id, token); lease: seconds or timedelta, 1 ms or more.
    Returns the ids that were not extended because they are gone, stale or not active: empty when all is well.
    """

    jobs: Iterable[Job | tuple[str, int]]
    lease: Duration

    def __post_init__(self) -> None:
        self._words = [b"%d" % milliseconds("lease", self.lease), *_leases_of(self.jobs)]

    @property
    def trivial(self) -> bool:
        return len(self._words) == 1

    def decode(self, reply: Reply, queue: str) -> list[str]:
        return [job_id.decode() for job_id in reply]


# Groups: each has a lane of its own, and lanes are served in turn


@dataclass
class ClaimFair(Transition["Job | None"], verb="emq.gclaim"):
    """Take the oldest job of the group whose turn it is, under a lease. The group then goes to the end of the line.

    lease: seconds or timedelta, 1 ms or more. Returns the Job, or None when no group may be served now.
    """

    lease: Duration

    def __post_init__(self) -> None:
        self._words = [b"%d" % milliseconds("lease", self.lease)]

    def decode(self, reply: Reply, queue: str) -> Job | None:
        return _job(reply, queue) if reply else None


@dataclass
class ClaimWeighted(_Jobs, verb="emq.gwclaim"):
    """Take as many jobs as the weight of the group whose turn it is, under one lease.

    lease: seconds or timedelta, 1 ms or more. Returns the jobs, all of one group, perhaps none.
    """

    lease: Duration

    def __post_init__(self) -> None:
        self._words = [b"%d" % milliseconds("lease", self.lease)]


@dataclass
class ClaimGroup(_Jobs, verb="emq.gmclaim"):
    """Take several jobs of the group whose turn it is, under one lease, within the group's ceiling.

    lease: seconds or timedelta, 1 ms or more; count: at most so many, 1 to 10000. Returns the jobs, perhaps none.
    """

    lease: Duration
    count: int

    def __post_init__(self) -> None:
        self._words = [b"%d" % milliseconds("lease", self.lease), b"%d" % integer("count", self.count)]


class _OfGroup(_Flag, verb=""):
    """A setting of one group."""

    group: str

    def __post_init__(self) -> None:
        self._words = [_core.group_name(self.group)]


@dataclass
class PauseGroup(_OfGroup, verb="emq.gpause"):
    """Park a group: its waiting jobs are not claimed until resume_group. Running jobs go on. Returns True."""

    group: str


@dataclass
class ResumeGroup(_OfGroup, verb="emq.gresume"):
    """Let a parked group be served again. Returns True."""

    group: str


@dataclass
class LimitGroup(_OfGroup, verb="emq.glimit"):
    """Set how many jobs of a group may be active at once; 0 removes the ceiling.

    ceiling: 0 to 2147483647. Running jobs are not stopped. Returns True.
    """

    group: str
    ceiling: int

    def __post_init__(self) -> None:
        self._words = [_core.group_name(self.group), b"%d" % integer("ceiling", self.ceiling)]


@dataclass
class WeighGroup(_OfGroup, verb="emq.gweight"):
    """Set how many jobs of a group one claim_weighted takes; 0 removes the weight, which then is 1.

    weight: 0 to 10000. Returns True.
    """

    group: str
    weight: int

    def __post_init__(self) -> None:
        self._words = [_core.group_name(self.group), b"%d" % integer("weight", self.weight)]


@dataclass
class Reassign(Transition[Reassigned], verb="emq.greassign"):
    """Move a waiting job to another group; it keeps its place by age.

    job: a Job or an id. Returns "moved"; "same" when it is of that group; "ungrouped" when it has no group or does not
    exist; "not waiting" when it is active, scheduled or dead.
    """

    job: Job | str
    group: str

    def __post_init__(self) -> None:
        self._words = [_id_of(self.job), _core.group_name(self.group)]

    def decode(self, reply: Reply, queue: str) -> Reassigned:
        return _REASSIGNED[reply]


@dataclass
class DrainGroup(_Count, verb="emq.gdrain"):
    """Delete the waiting jobs of a group.

    limit: at most so many in this call, 1 to 10000, by default 1000. Returns how many.
    """

    group: str
    limit: int | None = None

    def __post_init__(self) -> None:
        self._words = [_core.group_name(self.group), *_limit(self.limit)]


@dataclass
class ReapGroup(_Count, verb="emq.greap"):
    """Take back the jobs of one group whose lease is over; otherwise as reap."""

    group: str
    limit: int | None = None
    max_attempts: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        self._words = [_core.group_name(self.group), *_limit(self.limit), *_max(self.max_attempts)]


class CountGroups(Transition["list[GroupCounts]"], verb="emq.gcounts"):
    """Waiting and active jobs of the groups named, in that order; without names, of every group that has any, by
    name.
    """

    def __init__(self, *groups: str) -> None:
        self._words = [_core.group_name(group) for group in groups]

    def decode(self, reply: Reply, queue: str) -> list[GroupCounts]:
        return [GroupCounts(_text(group) or "", pending, active) for group, pending, active in reply]


# The queue


@dataclass
class Pause(_Flag, verb="emq.pause"):
    """Stop claims. Everything else goes on. Returns True."""


@dataclass
class Resume(_Flag, verb="emq.resume"):
    """Let claims go on. Returns True."""


@dataclass
class Drain(_Count, verb="emq.drain"):
    """Delete waiting jobs without a group.

    scheduled: also the scheduled ones, of every group; limit: at most so many in this call, 1 to 10000, by default
    1000. Returns how many.
    """

    limit: int | None = None
    scheduled: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        self._words = [*([b"SCHEDULED"] if self.scheduled else []), *_limit(self.limit)]


@dataclass
class Obliterate(Transition[bool], verb="emq.obliterate"):
    """Delete a paused queue, a bounded part of it per call.

    force: also with active jobs and undelivered flow entries; limit: at most so many jobs in this call, 1 to 10000, by
    default 1000. Returns True when nothing is left but the fence, False when it has to be called again.
    Raises WrongState when the queue is not paused, or has active jobs and force is not set.
    """

    limit: int | None = None
    force: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        self._words = [*([b"FORCE"] if self.force else []), *_limit(self.limit)]

    def decode(self, reply: Reply, queue: str) -> bool:
        return bool(reply == 0)


# One job


@dataclass
class Remove(_Flag, verb="emq.remove"):
    """Delete a job, wherever it is.

    job: a Job or an id; force: also when it is active or carries a lock marker. Returns True, or False when there is
    no such job. Raises JobLocked.
    """

    job: Job | str
    force: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        self._words = [_id_of(self.job), *([b"FORCE"] if self.force else [])]


@dataclass
class Reprocess(_Flag, verb="emq.reprocess"):
    """Let a dead job wait again, with as many runs as a new one; its attempts and tokens count on.

    job: a Job or an id. Returns True, or False when there is no such job. Raises WrongState when it is not dead.
    """

    job: Job | str

    def __post_init__(self) -> None:
        self._words = [_id_of(self.job)]


@dataclass
class Update(_Flag, verb="emq.update"):
    """Replace the payload of a job, whatever its state.

    job: a Job or an id; payload: bytes. Returns True, or False when there is no such job.
    """

    job: Job | str
    payload: Payload

    def __post_init__(self) -> None:
        self._words = [_id_of(self.job), payload_bytes("payload", self.payload)]


@dataclass
class Progress(_Flag, verb="emq.progress"):
    """Note the progress of a job and publish it on the queue's channel `emq:{NAME}:events` as JSON.

    job: a Job or an id; text: str or bytes. Returns True, or False when there is no such job.
    """

    job: Job | str
    text: str | Payload

    def __post_init__(self) -> None:
        self._words = [_id_of(self.job), text_bytes("text", self.text)]


@dataclass
class Log(Transition["int | None"], verb="emq.log"):
    """Append a line to the log of a job.

    job: a Job or an id; line: str or bytes; keep: only the last so many lines stay, 1 to 10000.
    Returns the number of lines, or None when there is no such job.
    """

    job: Job | str
    line: str | Payload
    keep: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        keep = [] if self.keep is None else [b"KEEP", b"%d" % integer("keep", self.keep)]
        self._words = [_id_of(self.job), text_bytes("line", self.line), *keep]

    def decode(self, reply: Reply, queue: str) -> int | None:
        return None if reply == -1 else int(reply)


# Repeats


@dataclass
class Repeat(_Flag, verb="emq.repeat"):
    """Note a repeating job; a pump fires it when it is due.

    name: 1 to 128 of A-Z a-z 0-9 . _ -; every: seconds or timedelta, 1 ms or more; payload: bytes, of each job;
    first: an aware datetime, by default one period from now.
    Returns True, or False when a repeat of that name exists: then nothing was changed.
    """

    name: str
    every: Duration
    payload: Payload
    first: datetime | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        self._words = [
            _core.repeat_name(self.name),
            b"EVERY",
            b"%d" % milliseconds("every", self.every),
            payload_bytes("payload", self.payload),
            *([] if self.first is None else [b"AT", b"%d" % instant("first", self.first)]),
        ]


@dataclass
class Unrepeat(_Flag, verb="emq.unrepeat"):
    """Forget a repeat. Jobs that it fired stay. Returns True, or False when there was none of that name."""

    name: str

    def __post_init__(self) -> None:
        self._words = [_core.repeat_name(self.name)]


@dataclass
class Fire(Transition["str | None"], verb="emq.fire"):
    """Admit the job of a repeat that is due, and move the repeat on to its next run, in one step.

    name: of the repeat; next: an aware datetime later than the due one; id: a job id of your own instead of a new one.
    Returns the id of the new job. None when the repeat is not due, has been fired by another pump, or does not exist.
    """

    name: str
    next: datetime
    id: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        self._id = _new_id(self.id)
        self._words = [_core.repeat_name(self.name), b"%d" % instant("next", self.next), self._id.encode()]

    def decode(self, reply: Reply, queue: str) -> str | None:
        return self._id if reply == 1 else None
