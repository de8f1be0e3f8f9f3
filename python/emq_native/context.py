"""The job that the code at hand runs for."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

from emq_native.ledger import HeldJob

__all__ = ["current_job"]

_CURRENT: Final[ContextVar[HeldJob]] = ContextVar("emq_native.current_job")


def current_job() -> HeldJob:
    """The job in whose handler this is called: its id, queue, attempts, and the token for writes that must be fenced.

    Raises LookupError outside of a handler.
    """
    try:
        return _CURRENT.get()
    except LookupError:
        raise LookupError("there is no current job: this is not called by a handler") from None
