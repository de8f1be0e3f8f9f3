"""How calls of tasks become payloads, and back.

The default is JSON: `{"task": "reports.build", "args": [7], "kwargs": {"year": 2026}}`, so that a program in any
language can enqueue. Another format is an object with the two methods of `Serializer`. There is none for pickle here:
it would let whoever can enqueue run code in the workers.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from emq_native.errors import InvalidArgument

__all__ = ["Json", "Message", "Serializer"]


@dataclass(frozen=True, slots=True)
class Message:
    """A call of a task. repeat: the schedule of a repeating one, when its period does not say it all."""

    task: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    repeat: dict[str, Any] | None = None


class Serializer(Protocol):
    """A format of messages. Results of tasks, which parents read, have the same format."""

    def dumps(self, message: Message) -> bytes:
        """A message as a payload. Raises InvalidArgument for one that does not fit the format."""
        ...

    def loads(self, payload: bytes) -> Message:
        """The message of a payload. Raises InvalidArgument for one that is none."""
        ...

    def dumps_result(self, value: Any) -> bytes:
        """What a task returned. Raises InvalidArgument."""
        ...


@dataclass(frozen=True, slots=True)
class Json:
    """JSON as UTF-8.

    Tuples come back as lists. default, object_hook: as for `json.dumps` and `json.loads`, for further types.
    """

    default: Callable[[Any], Any] | None = None
    object_hook: Callable[[dict[str, Any]], Any] | None = None

    def dumps(self, message: Message) -> bytes:
        document: dict[str, Any] = {"task": message.task}
        if message.args:
            document["args"] = list(message.args)
        if message.kwargs:
            document["kwargs"] = message.kwargs
        if message.repeat:
            document["repeat"] = message.repeat
        return self.dumps_result(document)

    def dumps_result(self, value: Any) -> bytes:
        try:
            text = json.dumps(value, default=self.default, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
            return text.encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidArgument(f"not JSON: {error}") from error

    def loads(self, payload: bytes) -> Message:
        try:
            document = json.loads(payload, object_hook=self.object_hook)
        except (ValueError, RecursionError) as error:
            raise InvalidArgument(f"the payload is not JSON: {error}") from error
        if not isinstance(document, dict) or not isinstance(document.get("task"), str):
            raise InvalidArgument('the payload is no call of a task: {"task": "name", "args": [...], "kwargs": {...}}')
        args, kwargs, repeat = document.get("args", []), document.get("kwargs", {}), document.get("repeat")
        if not isinstance(args, list) or not isinstance(kwargs, dict):
            raise InvalidArgument("args must be an array and kwargs an object")
        return Message(document["task"], tuple(args), kwargs, repeat if isinstance(repeat, dict) else None)
