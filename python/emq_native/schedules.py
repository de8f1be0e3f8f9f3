"""When a repeating job runs next: computed from the schedule and from the run that was due, never from when it fired.

Times are Unix milliseconds. Runs that were missed because nobody fired them are made up for by one run, not by all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from typing import Any, Protocol
from zoneinfo import ZoneInfo

from emq_native.arguments import Duration, milliseconds
from emq_native.errors import InvalidArgument

__all__ = ["Cron", "Every", "Schedule", "from_spec"]

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class Schedule(Protocol):
    """When to run."""

    @property
    def every_ms(self) -> int:
        """The period, for who knows nothing better: of a calendar, the shortest of the next few."""
        ...

    def after(self, due: int, now: int) -> int:
        """The first run after `now`, which is not before the run that was `due`."""
        ...

    def spec(self) -> dict[str, Any] | None:
        """What goes into the message of the job, so that whoever fires it knows the schedule; None when the period
        says it all.
        """
        ...


@dataclass(frozen=True)
class Every:
    """With a fixed period, 1 ms or more, on a grid that the first run begins."""

    every_ms: int

    @classmethod
    def of(cls, period: Duration) -> Every:
        """From seconds or a timedelta."""
        return cls(milliseconds("every", period))

    def after(self, due: int, now: int) -> int:
        return due + self.every_ms * (max(0, now - due) // self.every_ms + 1)

    def spec(self) -> None:
        return None


@dataclass(frozen=True)
class Cron:
    """By the calendar: the five fields of cron, in a time zone.

    A run in the hour that a zone skips happens right after it; one in the hour that occurs twice happens once when the
    fields name hours, and in both when they are wildcards.
    """

    expression: str
    zone: str = "UTC"

    def __post_init__(self) -> None:
        self._next(datetime.now(timezone.utc))

    @property
    def every_ms(self) -> int:
        runs = [self._next(datetime.now(timezone.utc))]
        for _ in range(3):
            runs.append(self._next(runs[-1]))
        gaps = [later - earlier for earlier, later in pairwise(runs)]
        return max(1, min(gaps) // timedelta(milliseconds=1))

    def after(self, due: int, now: int) -> int:
        run = self._next(_EPOCH + timedelta(milliseconds=max(due, now)))
        return (run - _EPOCH) // timedelta(milliseconds=1)

    def spec(self) -> dict[str, Any]:
        return {"cron": self.expression, "zone": self.zone}

    def _next(self, moment: datetime) -> datetime:
        try:
            from cronsim import CronSim, CronSimError
        except ImportError:
            raise InvalidArgument("schedules by the calendar need cronsim: pip install 'emq-native[cron]'") from None
        try:
            local = moment.astimezone(ZoneInfo(self.zone))
        except (KeyError, ValueError, OSError) as error:
            raise InvalidArgument(f"there is no time zone {self.zone!r}") from error
        try:
            found = next(CronSim(self.expression, local))
        except CronSimError as error:
            raise InvalidArgument(f"{self.expression!r} is no cron expression: {error}") from error
        except StopIteration:
            raise InvalidArgument(f"{self.expression!r} never comes") from None
        # Arithmetic within one zone ignores its changes of the clock.
        return found.astimezone(timezone.utc)


def from_spec(spec: Mapping[str, Any] | None, every_ms: int) -> Schedule:
    """The schedule that a message carries; without a usable one, the period."""
    if spec is not None:
        try:
            return Cron(str(spec["cron"]), str(spec.get("zone", "UTC")))
        except (KeyError, InvalidArgument):
            pass
    return Every(max(1, every_ms))
