"""The pure C files, from Python: the only module that touches the extension.

Everything here checks types and lengths before C sees a pointer, and turns a status into one of our exceptions. Texts
may be str or bytes; a str is judged by its UTF-8 bytes, of which no rule accepts any but ASCII.
"""

from __future__ import annotations

from typing import Any, Final

from emq_native._native import ffi, lib
from emq_native.errors import InvalidArgument, InvalidId, InvalidJobId, MintExhausted

WIRE: Final = lib.EMQ_WIRE
API: Final = lib.EMQ_API
IDENTITY: Final = ffi.string(lib.EMQ_IDENTITY).decode()
IDENTITY_SCRIPTED: Final = ffi.string(lib.EMQ_IDENTITY_SCRIPTED).decode()
FENCE_KEY: Final = ffi.string(lib.EMQ_FENCE_KEY)
MODULE_VERSION: Final = ffi.string(lib.EMQ_MODULE_VERSION).decode()
EPOCH_MS: Final = lib.EMQ_ID_EPOCH_MS

# A mint is part of every enqueue, a check of every settling, so what they need is looked up once.
_new: Final = ffi.new
_unpack: Final = ffi.unpack
_mint: Final = lib.mint
_check: Final = lib.emq_job_id_check
_JOB_ID_OK: Final = lib.EMQ_JOB_ID_OK

_ID_LENGTH: Final = 14
_SPACE_LENGTH: Final = 3
_OK: Final = lib.EMQ_ID_OK
_REASONS: Final = {
    lib.EMQ_ID_LENGTH_ERROR: "length",
    lib.EMQ_ID_NAMESPACE_ERROR: "namespace",
    lib.EMQ_ID_CHARSET_ERROR: "charset",
    lib.EMQ_ID_RANGE_ERROR: "range",
}
_REFUSALS: Final = {
    lib.EMQ_JOB_ID_SPACE: ffi.string(lib.EMQ_ERR_KIND_SPACE).decode(),
    lib.EMQ_JOB_ID_SHAPE: ffi.string(lib.EMQ_ERR_KIND_SHAPE).decode(),
}


def as_bytes(text: str | bytes, what: str) -> bytes:
    """The bytes of a text. Raises InvalidArgument, naming `what`, for anything that is neither str nor bytes."""
    if isinstance(text, bytes):
        return text
    if isinstance(text, str):
        return text.encode("utf-8", "surrogatepass")
    raise InvalidArgument(f"{what} must be str or bytes, not {type(text).__name__}")


def as_integer(number: int, what: str, low: int, high: int) -> int:
    """An int of low..high. Raises InvalidArgument, naming `what`, for anything else; a bool is no number."""
    if isinstance(number, bool) or not isinstance(number, int):
        raise InvalidArgument(f"{what} must be int, not {type(number).__name__}")
    if not low <= number <= high:
        raise InvalidArgument(f"{what} must be between {low} and {high}, not {number}")
    return number


# Ids


def id_decode(text: str | bytes) -> tuple[str, int]:
    """The namespace and the 63-bit number of a branded id. Raises InvalidId."""
    raw = as_bytes(text, "an id")
    space = ffi.new("char[3]")
    value = ffi.new("uint64_t *")
    status = lib.emq_id_decode(raw, len(raw), space, value)
    if status != _OK:
        raise InvalidId(text, _REASONS[status])
    return ffi.unpack(space, _SPACE_LENGTH).decode("ascii"), int(value[0])


def id_encode(space: str | bytes, value: int) -> str:
    """The branded id of a number, 0 to 2**63 - 1, in a namespace, three letters A..Z. Raises InvalidId."""
    raw = as_bytes(space, "a namespace")
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidArgument(f"the number of an id must be int, not {type(value).__name__}")
    if not 0 <= value < 1 << 63:
        raise InvalidId(value, "range")
    if len(raw) != _SPACE_LENGTH:
        raise InvalidId(space, "namespace")
    text = ffi.new("char[14]")
    status = lib.emq_id_encode(raw, value, text)
    if status != _OK:
        raise InvalidId(space, _REASONS[status])
    return ffi.unpack(text, _ID_LENGTH).decode("ascii")


def job_id(text: str | bytes) -> bytes:
    """The bytes of a job id. Raises InvalidJobId with the text of the server's refusal."""
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else as_bytes(text, "a job id")
    status = _check(raw, len(raw))
    if status == _JOB_ID_OK:
        return raw
    if status == lib.EMQ_JOB_ID_SPACE:
        raise InvalidJobId(text, "namespace", _REFUSALS[status])
    try:
        id_decode(raw)
    except InvalidId as why:
        raise InvalidJobId(text, why.reason, _REFUSALS[status]) from None
    raise AssertionError("the gate refuses only what the decoder refuses")


def id_hash32(value: int) -> int:
    """The placement hash of a 64-bit number, 0 to 2**32 - 1."""
    return int(lib.emq_id_hash32(as_integer(value, "the number to hash", 0, (1 << 64) - 1)))


class Cell:
    """The milliseconds and the sequence that one process minted last. Threads may share it without a lock."""

    __slots__ = ("_word",)

    def __init__(self, wall_ms: int) -> None:
        self._word = ffi.new("uint64_t *", lib.emq_id_mint_start(wall_ms))

    def mint(self, wall_ms: int, node: int, jitter: int, namespace: str | bytes, count: int = 1) -> str:
        """The next `count` ids, one behind the other: Unix milliseconds, node and jitter 0 to 1023, a namespace of
        three letters A..Z.

        Raises InvalidId for the namespace, and MintExhausted when the time, or what the cell has run ahead of it, does
        not fit an id.
        """
        space = as_bytes(namespace, "a namespace")
        if len(space) != _SPACE_LENGTH:
            raise InvalidId(namespace, "namespace")
        texts = _new("char[]", _ID_LENGTH * count)
        status = _mint(wall_ms, self._word, node, jitter, space, texts, count)
        if status == _OK:
            return _unpack(texts, _ID_LENGTH * count).decode("ascii")
        if status == lib.EMQ_ID_NAMESPACE_ERROR:
            raise InvalidId(namespace, "namespace")
        raise MintExhausted(f"no id is left at {wall_ms} ms")

    @property
    def last_ms(self) -> int:
        """Unix milliseconds of the last id: later than the clock while a burst or a step back lasts."""
        return (int(self._word[0]) >> 12) + EPOCH_MS


# Names and keys


def queue_name(name: str | bytes) -> bytes:
    """The bytes of a queue's name. Raises InvalidArgument."""
    raw = as_bytes(name, "a queue name")
    if not lib.emq_queue_name_valid(raw, len(raw)):
        raise InvalidArgument(f"a queue name is 1 to 128 of A-Z a-z 0-9 . _ - and not 'emq', not {_shown(name)}")
    return raw


def group_name(group: str | bytes) -> bytes:
    """The bytes of a group's name. Raises InvalidArgument."""
    raw = as_bytes(group, "a group")
    if not lib.emq_group_valid(raw, len(raw)):
        raise InvalidArgument(f"a group is 1 to 64 of A-Z a-z 0-9 . _ -, not {_shown(group)}")
    return raw


def repeat_name(name: str | bytes) -> bytes:
    """The bytes of a repeat's name. Raises InvalidArgument."""
    raw = as_bytes(name, "a repeat name")
    if not lib.emq_repeat_name_valid(raw, len(raw)):
        raise InvalidArgument(f"a repeat name is 1 to 128 of A-Z a-z 0-9 . _ -, not {_shown(name)}")
    return raw


def queue_key_name(key: str | bytes) -> bytes:
    """The name in a queue key `emq:{NAME}`. Raises InvalidArgument."""
    raw = as_bytes(key, "a queue key")
    length = lib.queue_key_name(raw, len(raw))
    if not length:
        raise InvalidArgument(f"a queue key is emq:{{name}}, name of 1 to 128 of A-Z a-z 0-9 . _ -, not {_shown(key)}")
    return raw[-length - 1 : -1]


def slot(key: str | bytes) -> int:
    """The cluster slot of any key, 0 to 16383."""
    raw = as_bytes(key, "a key")
    return int(lib.emq_slot(raw, len(raw)))


# The builders below trust the queue key, which comes from queue_key, and the suffix, which is one of ours.


def queue_key(name: str | bytes) -> bytes:
    """`emq:{NAME}`. Raises InvalidArgument."""
    raw = queue_name(name)
    out = _key_buffer()
    return ffi.unpack(out, lib.emq_key_queue(out, raw, len(raw)))


def key_fixed(queue: bytes, suffix: bytes) -> bytes:
    """`emq:{NAME}:<suffix>`."""
    out = _key_buffer()
    return ffi.unpack(out, lib.emq_key_fixed(out, queue, len(queue), suffix))


def key_job(queue: bytes, job: str | bytes, suffix: bytes) -> bytes:
    """`emq:{NAME}:job:<id><suffix>`. Raises InvalidJobId."""
    raw = job_id(job)
    out = _key_buffer()
    return ffi.unpack(out, lib.emq_key_job(out, queue, len(queue), raw, suffix))


def key_lane(queue: bytes, group: str | bytes) -> bytes:
    """`emq:{NAME}:g:<group>:pending`. Raises InvalidArgument."""
    raw = group_name(group)
    out = _key_buffer()
    return ffi.unpack(out, lib.emq_key_lane(out, queue, len(queue), raw, len(raw)))


def key_repeat(queue: bytes, name: str | bytes) -> bytes:
    """`emq:{NAME}:repeat:<name>`. Raises InvalidArgument."""
    raw = repeat_name(name)
    out = _key_buffer()
    return ffi.unpack(out, lib.emq_key_repeat(out, queue, len(queue), raw, len(raw)))


def _key_buffer() -> Any:
    return ffi.new("char[]", lib.EMQ_KEY_MAX)


def _shown(text: object) -> str:
    """A text for a message, however long it is."""
    shown = repr(text)
    return shown if len(shown) <= 80 else f"{shown[:76]}..."
