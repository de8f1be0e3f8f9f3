"""A job queue that lives in a Valkey server.

    from emq_native import connect

    with connect("valkey://localhost") as bus:
        queue = bus.queue("emails")
        queue.enqueue(b"hello")
        job = queue.claim(lease=30)
        if job is not None:
            queue.complete(job)

Functions as tasks, and workers that call them:

    from emq_native import App, exponential

    app = App("valkey://localhost")

    @app.task(retries=3, backoff=exponential(), timeout=30)
    def send(to: str) -> None: ...

    send.enqueue("ada@example.org")
    app.worker(concurrency=8).run()             # or: emq-native worker module:app

`emq_native.aio` has the same for asyncio.
"""

from __future__ import annotations

from emq_native._core import MODULE_VERSION as __version__
from emq_native.backoff import constant, exponential
from emq_native.connector import Bus, connect
from emq_native.context import current_job
from emq_native.errors import (
    AlreadyLoaded,
    BadModuleFile,
    BadRequest,
    EmqError,
    FenceRefused,
    InvalidArgument,
    InvalidId,
    InvalidJobId,
    JobGone,
    JobLocked,
    LoadDenied,
    LoadDisabled,
    LoadFailed,
    MintExhausted,
    ModuleMissing,
    OutOfMemory,
    PermissionDenied,
    RateLimited,
    Redirected,
    Refused,
    ScriptMismatch,
    StaleToken,
    Unavailable,
    WireMismatch,
    WireRefused,
    WireUnclaimed,
    WrongKind,
    WrongState,
    WrongType,
)
from emq_native.ids import JobId, configure_node, mint
from emq_native.ledger import HeldJob, Stats
from emq_native.load import load
from emq_native.outcome import Reject, Retry, Snooze, TimedOut
from emq_native.paths import module_path
from emq_native.probe import Probe, probe
from emq_native.pump import Pump
from emq_native.queue import Queue
from emq_native.tasks import App, Task, UnknownTask
from emq_native.values import Admitted, Counts, GroupCounts, Job, Version
from emq_native.worker import Worker

__all__ = [
    "Admitted",
    "AlreadyLoaded",
    "App",
    "BadModuleFile",
    "BadRequest",
    "Bus",
    "Counts",
    "EmqError",
    "FenceRefused",
    "GroupCounts",
    "HeldJob",
    "InvalidArgument",
    "InvalidId",
    "InvalidJobId",
    "Job",
    "JobGone",
    "JobId",
    "JobLocked",
    "LoadDenied",
    "LoadDisabled",
    "LoadFailed",
    "MintExhausted",
    "ModuleMissing",
    "OutOfMemory",
    "PermissionDenied",
    "Probe",
    "Pump",
    "Queue",
    "RateLimited",
    "Redirected",
    "Refused",
    "Reject",
    "Retry",
    "ScriptMismatch",
    "Snooze",
    "StaleToken",
    "Stats",
    "Task",
    "TimedOut",
    "Unavailable",
    "UnknownTask",
    "Version",
    "WireMismatch",
    "WireRefused",
    "WireUnclaimed",
    "Worker",
    "WrongKind",
    "WrongState",
    "WrongType",
    "__version__",
    "configure_node",
    "connect",
    "constant",
    "current_job",
    "exponential",
    "load",
    "mint",
    "module_path",
    "probe",
]
