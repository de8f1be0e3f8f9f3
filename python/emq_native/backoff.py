"""How long a failed job waits before its next run."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from emq_native.errors import InvalidArgument

__all__ = ["Backoff", "constant", "exponential"]

Backoff = Callable[[int], float]
"""From the number of the failed run, 1 for the first, to seconds."""


@dataclass(frozen=True, slots=True)
class _Exponential:
    first: float
    factor: float
    longest: float
    jitter: float

    def __call__(self, attempt: int) -> float:
        try:
            delay = min(self.longest, self.first * self.factor ** (attempt - 1))
        except OverflowError:
            delay = self.longest
        return delay * (1 - self.jitter * random.random())


def exponential(first: float = 1.0, *, factor: float = 2.0, longest: float = 3600.0, jitter: float = 0.5) -> Backoff:
    """`first` seconds after the first run, `factor` times as many after each further one, at most `longest`.

    jitter: the part of the delay, 0 to 1, that chance may take away, so that jobs that failed together do not come
    back together.
    """
    if not (first >= 0 and factor >= 1 and longest >= 0 and 0 <= jitter <= 1):
        raise InvalidArgument("a backoff needs first >= 0, factor >= 1, longest >= 0 and a jitter from 0 to 1")
    return _Exponential(first, factor, longest, jitter)


def constant(delay: float) -> Backoff:
    """Always `delay` seconds."""
    return exponential(delay, factor=1.0, longest=delay, jitter=0.0)
