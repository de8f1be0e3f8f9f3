"""A job queue that lives in a Valkey server.

    from emq_native import connect

    with connect("valkey://localhost") as bus:
        queue = bus.queue("emails")
        queue.enqueue(b"hello")
        job = queue.claim(lease=30)
        if job is not None:
            queue.complete(job)

`emq_native.aio` has the same for asyncio.
"""

from __future__ import annotations

from emq_native._core import MODULE_VERSION as __version__
from emq_native.connector import Bus, connect
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
from emq_native.load import load
from emq_native.paths import module_path
from emq_native.probe import Probe, probe
from emq_native.queue import Queue
from emq_native.values import Admitted, Counts, GroupCounts, Job, Version

__all__ = [
    "Admitted",
    "AlreadyLoaded",
    "BadModuleFile",
    "BadRequest",
    "Bus",
    "Counts",
    "EmqError",
    "FenceRefused",
    "GroupCounts",
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
    "OutOfMemory",
    "PermissionDenied",
    "Probe",
    "Queue",
    "RateLimited",
    "Redirected",
    "Refused",
    "ScriptMismatch",
    "StaleToken",
    "Unavailable",
    "Version",
    "WireMismatch",
    "WireRefused",
    "WireUnclaimed",
    "WrongKind",
    "WrongState",
    "WrongType",
    "__version__",
    "configure_node",
    "connect",
    "load",
    "mint",
    "module_path",
    "probe",
]
