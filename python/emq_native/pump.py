"""What has to be called by somebody: due jobs promoted, expired ones reaped, repeats fired.

Workers promote and reap in passing, on either wire. A pump does it where only claims are made by hand on wire 4, and
it fires the repeats of a queue, on either wire, when no worker was told to. Any number of pumps may run: of those that
see the same due repeat, one fires it.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final

from emq_native import transitions as t
from emq_native.arguments import MAX_INTEGER
from emq_native.errors import EmqError, InvalidArgument, Refused
from emq_native.rounds import Batch
from emq_native.schedules import Schedule, from_spec
from emq_native.serializers import Json, Serializer
from emq_native.terms import ends_worker, logger
from emq_native.transitions import Transition
from emq_native.wiring import backoff

if TYPE_CHECKING:
    from emq_native.connector import Bus
    from emq_native.queue import Queue

__all__ = ["Pump", "Pumped"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
_LAST: Final = 253_402_300_799_999
"""The last instant that a datetime can name. A repeat whose next run comes later runs then."""


@dataclass(frozen=True, slots=True)
class Pumped:
    """What one stroke did. pause: seconds until the next one is worth while."""

    promoted: int
    reaped: int
    fired: tuple[str, ...]
    pause: float


@dataclass(frozen=True, slots=True)
class Strokes:
    """The strokes of a pump, without I/O. beat: most seconds between two; limit: most of each kind in one."""

    key: bytes
    promote: bool = True
    reap: bool = True
    repeats: bool = True
    beat: float = 1.0
    limit: int = 1000
    max_attempts: int | None = None
    serializer: Serializer = Json()  # noqa: RUF009

    def __post_init__(self) -> None:
        if not self.beat > 0:
            raise InvalidArgument("beat must be more than 0 seconds")
        t.Reap(self.limit, max_attempts=self.max_attempts)

    def stroke(self) -> Generator[Batch, list[Any], Pumped]:
        """Yields what travels together and is sent the answers, as a round of `rounds`."""
        sweep: list[Transition[Any]] = [t.Reap(self.limit, max_attempts=self.max_attempts)] if self.reap else []
        sweep += [t.Promote(self.limit)] if self.promote else []
        counts = [_value(answer) for answer in (yield sweep)] if sweep else []
        pause = 0.0 if self.limit in counts else self.beat
        fired: tuple[str, ...] = ()
        if self.repeats:
            fired, wait = yield from self._fire()
            pause = min(pause, wait)
        reaped = counts.pop(0) if self.reap else 0
        return Pumped(counts.pop(0) if self.promote else 0, reaped, fired, pause)

    def _fire(self) -> Generator[Batch, list[Any], tuple[tuple[str, ...], float]]:
        """Fire what is due. Returns the ids of the jobs, and the seconds until more is due, at most a beat."""
        repeats = self.key + b":repeat"
        first = b"%d" % self.limit
        clock, listed = yield [(b"TIME",), (b"ZRANGE", repeats, b"0", first, b"WITHSCORES")]
        seconds, micros = _value(clock)
        now = int(seconds) * 1000 + int(micros) // 1000
        known = _scored(_value(listed))
        due = [(name, score) for name, score in known if score <= now]
        later = [score for _, score in known if score > now]
        if not due:
            return (), self._until(later, now)
        rows = yield [(b"HMGET", repeats + b":" + name, b"every_ms", b"template") for name, _ in due]
        steps: dict[bytes, Transition[Any]] = {}
        for (name, score), row in zip(due, rows, strict=True):
            try:
                following = self._following(score, now, row)
                steps[name] = t.Fire(name.decode(), _EPOCH + timedelta(milliseconds=following))
            except (Refused, ValueError, OverflowError) as error:
                # Others wrote it. It keeps nobody else from firing.
                _tell_not_fired(name, error)
            else:
                later.append(following)
        answers = (yield list(steps.values())) if steps else []
        fired = tuple(answer for answer in answers if isinstance(answer, str))
        for name, answer in zip(steps, answers, strict=True):
            if isinstance(answer, EmqError):
                _tell_not_fired(name, answer)
        return fired, 0.0 if len(due) > self.limit and fired else self._until(later, now)

    def _following(self, score: int, now: int, row: Any) -> int:
        """The run after the one that is due."""
        return min(self._schedule(*_value(row)).after(score, now), _LAST)

    def _until(self, times: Sequence[int], now: int) -> float:
        """Seconds until the first of the times, at most a beat."""
        return min([self.beat, *((each - now) / 1000 for each in times)])

    def _schedule(self, every: bytes | None, template: bytes | None) -> Schedule:
        spec = None
        if template is not None and b"repeat" in template:
            try:
                spec = self.serializer.loads(template).repeat
            except Exception:
                spec = None
        return from_spec(spec, int(every) if every is not None and every.isdigit() else 1000)


class Pump:
    """Promotes, reaps and fires for one queue, at least once in `beat` seconds.

    promote, reap, repeats: what to do; limit: most of each kind in one stroke; max_attempts: an expired job that has
    had so many runs is dead; serializer: of the tasks, to read schedules from messages.
    """

    def __init__(
        self,
        queue: Queue,
        *,
        promote: bool = True,
        reap: bool = True,
        repeats: bool = True,
        beat: float = 1.0,
        limit: int = 1000,
        max_attempts: int | None = None,
        serializer: Serializer | None = None,
    ) -> None:
        self.queue = queue
        self._strokes = Strokes(queue.key, promote, reap, repeats, beat, limit, max_attempts, serializer or Json())
        self._bus: Bus = queue.bus.sibling()
        # What was put there once stays: the end. An Event has a lock, which a signal that calls `stop` would find held
        # by `run` in the same thread.
        self._bell: SimpleQueue[None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def step(self) -> Pumped:
        """One stroke. Raises EmqError."""
        steps = self._strokes.stroke()
        try:
            batch = next(steps)
            while True:
                batch = steps.send(self._carry(batch))
        except StopIteration as end:
            pumped: Pumped = end.value
            return pumped

    def run(self) -> None:
        """Pump until `stop`. Troubles of the server are waited out. Raises what no waiting can mend."""
        troubles = 0
        while self._bell.empty():
            try:
                pause = self.step().pause
                troubles = 0
            except EmqError as error:
                if not self._bell.empty():
                    return
                if ends_worker(error):
                    raise
                pause = backoff(troubles, random.random())
                troubles += 1
                logger.warning("queue %s, the pump tries again in %.1f s: %s", self.queue.name, pause, error)
            with suppress(Empty):
                self._bell.put(self._bell.get(timeout=max(0.0, pause)))

    def start(self, failed: Callable[[BaseException], object] | None = None) -> None:
        """Pump in a thread of its own. failed: is told there what ended it, if it did not end by `stop`."""
        name = f"emq-{self.queue.name}-pump"
        thread = threading.Thread(target=partial(self._run_until, failed), name=name, daemon=True)
        thread.start()
        self._thread = thread

    def stop(self) -> None:
        """End `run`, and wait for the thread if there is one, unless it is the one that calls."""
        self._bell.put(None)
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        self._bus.close()

    def _run_until(self, failed: Callable[[BaseException], object] | None) -> None:
        try:
            self.run()
        except BaseException as error:
            if failed is None:
                raise
            failed(error)

    def _carry(self, batch: Batch) -> list[Any]:
        commands = [each for each in batch if isinstance(each, tuple)]
        if commands:
            return self._bus.plain(self.queue, *commands)
        return self._bus.pipeline((each, self.queue) for each in batch if isinstance(each, Transition))


def _value(answer: Any) -> Any:
    if isinstance(answer, EmqError):
        raise answer
    return answer


def _scored(reply: list[Any]) -> list[tuple[bytes, int]]:
    """Members with their scores: pairs on RESP3, a flat list on RESP2."""
    pairs = reply if reply and isinstance(reply[0], list) else zip(reply[::2], reply[1::2], strict=True)
    return [(member, int(min(max(float(score), 0.0), MAX_INTEGER))) for member, score in pairs]


def _tell_not_fired(name: bytes, error: Exception) -> None:
    logger.error("repeat %s is not fired: %s", name.decode("utf-8", "backslashreplace"), error)
