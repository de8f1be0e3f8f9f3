"""Every exception of the package, and how an answer becomes one.

    EmqError
     +-- WireRefused              the node belongs to another executor, or to none (.expected .found)
     |    +-- WireMismatch
     |    +-- WireUnclaimed
     +-- ScriptMismatch           the server holds another script under our digest (.expected .found)
     +-- InvalidArgument          refused here, before any traffic (a ValueError too)
     |    +-- InvalidId
     |         +-- InvalidJobId
     +-- MintExhausted            the clock stands beyond what an id can hold
     +-- Refused                  refused by the server; nothing was changed (.code .text)
     |    +-- FenceRefused        EMQFENCE
     |    +-- WrongKind           EMQKIND
     |    +-- StaleToken          EMQSTALE
     |    |    +-- JobGone
     |    +-- WrongState          EMQSTATE
     |    +-- JobLocked           EMQLOCK
     |    +-- RateLimited         EMQRATE
     |    +-- BadRequest          ERR
     |    |    +-- ModuleMissing  unknown command EMQ.*
     |    +-- WrongType           WRONGTYPE
     |    +-- OutOfMemory         OOM
     |    +-- Redirected          MOVED, ASK: the node is one of a cluster (.host .port)
     +-- Unavailable              the server cannot serve now, the same call may succeed later (.code .text)
     +-- PermissionDenied         NOPERM, NOAUTH, WRONGPASS (.code .text)
     +-- LoadFailed               the module was not loaded (.path)
          +-- LoadDisabled        the server takes no modules at run time
          +-- LoadDenied          this user may not load modules
          +-- AlreadyLoaded       a module of this name is there already (.version .wanted)
          +-- BadModuleFile       the file is not there, no file, or not executable

`text` is always the exact line of the server. A client library cuts known codes off its messages; `server_line` puts
them back. Errors of redis-py and of valkey-py are told apart by their names, so neither library is imported here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TypeGuard


class EmqError(Exception):
    """The root: `except EmqError` catches everything that this package raises on purpose."""


class WireRefused(EmqError):
    """The fence of the node does not admit this connector. Nothing but the fence was read, and no command was sent.

    expected: the identity that would have been right; found: what the fence holds, None when it is absent.
    """

    def __init__(self, expected: str, found: str | None) -> None:
        super().__init__(expected, found)
        self.expected = expected
        self.found = found


class WireMismatch(WireRefused):
    """The fence holds another value, or `(not a string)`."""

    def __init__(self, expected: str, found: str) -> None:
        super().__init__(expected, found)

    def __str__(self) -> str:
        return f"the node is fenced for {self.found!r}, this connector speaks {self.expected}"


class WireUnclaimed(WireRefused):
    """Nobody has claimed the node, and this connector does not claim by itself."""

    def __init__(self, expected: str, key: str = "{emq}:version") -> None:
        super().__init__(expected, None)
        self.key = key

    def __reduce__(self) -> tuple[type[WireUnclaimed], tuple[str, str]]:
        return WireUnclaimed, (self.expected, self.key)

    def __str__(self) -> str:
        return (
            f"nothing at {self.key}, wanted {self.expected}; an operator claims the node with"
            " `emq-native fence claim --wire 6` (module) or `emq-native fence claim --wire 4` (scripts)"
        )


class ScriptMismatch(EmqError):
    """SCRIPT LOAD answered another digest than the shipped source has."""

    def __init__(self, expected: str, found: str) -> None:
        super().__init__(expected, found)
        self.expected = expected
        self.found = found

    def __str__(self) -> str:
        return f"the server answers {self.found} for the script {self.expected}"


class InvalidArgument(EmqError, ValueError):
    """An argument is refused by the package; nothing was sent."""


_PARTS: Final = {
    "length": "length is not 14",
    "namespace": "namespace, the first three characters, is not three capital letters",
    "charset": "last eleven characters are not all letters and digits",
    "range": "number is beyond what an id can hold",
}


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


class InvalidId(InvalidArgument):
    """A text is no branded id.

    reason: the first of "length", "namespace", "charset", "range" that is wrong.
    """

    def __init__(self, text: object, reason: str) -> None:
        super().__init__(text, reason)
        self.text = text
        self.reason = reason

    def __str__(self) -> str:
        return f"{_shown(self.text)} is no id: its {_PARTS.get(self.reason, self.reason)}"


class InvalidJobId(InvalidId):
    """A text is no job id; refused here in the words of the server.

    code, refusal: EMQKIND and the whole line that the server would have answered.
    """

    code = "EMQKIND"

    def __init__(self, text: object, reason: str, refusal: str) -> None:
        super().__init__(text, reason)
        self.args = (text, reason, refusal)
        self.refusal = refusal

    def __str__(self) -> str:
        if self.reason == "namespace":
            return f"{self.refusal}, and {_shown(self.text)} does not begin with JOB"
        return f"{self.refusal}: {super().__str__()}"


class MintExhausted(EmqError):
    """The clock is beyond 2093-09-06, the last instant that an id can hold."""


class _Answered(EmqError):
    """An error that is a line of the server: `code` is its first word, `text` the whole line."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text
        self.code = text.split(" ", 1)[0]


class Refused(_Answered):
    """The server refused the command. Nothing was changed.

    resent: the command was sent a second time because the first answer got lost. The first one may have done its
    work, so this refusal says: outcome unknown, and the job is not this lease's any more.
    """

    resent = False

    def __str__(self) -> str:
        if self.resent:
            return f"{self.text} (sent again after a lost answer: the first one may have been carried out)"
        return self.text


class FenceRefused(Refused):
    """The fence of the node does not hold the identity of the module."""


class WrongKind(Refused):
    """A job id is none."""


class StaleToken(Refused):
    """The lease that the token proves is not the last one that was given."""


class JobGone(StaleToken):
    """There is no such job."""


class WrongState(Refused):
    """The job or the queue is not in the state that the verb needs."""


class JobLocked(Refused):
    """The job is active, or carries a foreign lock marker."""


class RateLimited(Refused):
    """Reserved by the contract; no verb of this revision raises it."""


class BadRequest(Refused):
    """Syntax, a name or a number is wrong."""


class ModuleMissing(BadRequest):
    """The node does not know the EMQ.* command: the module is not loaded there, or is an older one."""

    def __str__(self) -> str:
        return (
            f"{super().__str__()} (the module is not loaded on this node, or is an older one: see `MODULE LIST`;"
            " `emq-native load` loads it, docs/install.md says how it stays)"
        )


class WrongType(Refused):
    """A key of the queue holds another kind of value."""


class OutOfMemory(Refused):
    """The server is at its memory limit and admits nothing that grows."""


class Redirected(Refused):
    """The slot is served by another node: connect with cluster=True, or with a cluster client.

    host, port: the address that the server named; host is empty when it is that of the node asked.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        host, _, port = text.rpartition(" ")[2].rpartition(":")
        self.host = host
        self.port = int(port) if port.isdigit() else 0

    def __str__(self) -> str:
        return f"{self.text} (the node is one of a cluster: connect with cluster=True or with a cluster client)"


class Unavailable(_Answered):
    """The server cannot serve now; the same call may succeed later.

    code: the server's word, or "" for a lost connection and a time-out.
    outcome_unknown: the command left this process and its answer did not arrive; it may have been carried out.
    """

    def __init__(self, text: str, *, outcome_unknown: bool = False, network: bool = False) -> None:
        super().__init__(text)
        if network:
            self.code = ""
        self.outcome_unknown = outcome_unknown

    def __reduce__(self) -> tuple[type[Unavailable], tuple[str], dict[str, object]]:
        return Unavailable, (self.text,), self.__dict__


class PermissionDenied(_Answered):
    """The server does not let this user do it, or does not know the user."""


class LoadFailed(EmqError):
    """The module was not loaded. The class itself: the server refused it for a reason that only its log tells.

    path: the file that was to be loaded.
    """

    def __init__(self, path: str, text: str) -> None:
        super().__init__(path, text)
        self.path = path

    def __str__(self) -> str:
        return str(self.args[1])


class LoadDisabled(LoadFailed):
    """The server takes no modules at run time: load it with `loadmodule`, or set `enable-module-command`."""


class LoadDenied(LoadFailed):
    """This user may not load modules."""


class AlreadyLoaded(LoadFailed):
    """A module of this name is there already, and none is loaded over another.

    version: that of the loaded module, None when the server does not tell.   wanted: that of this package.
    """

    def __init__(self, path: str, version: str | None, wanted: str) -> None:
        super().__init__(path, "")
        self.args = (path, version, wanted)
        self.version = version
        self.wanted = wanted

    def __str__(self) -> str:
        found = f"the module is loaded already, version {self.version or 'unknown'}"
        return found if self.version == self.wanted else f"{found}; this package has {self.wanted}"

    @property
    def same(self) -> bool:
        """Whether the loaded module has the version of this package."""
        return self.version == self.wanted


class BadModuleFile(LoadFailed):
    """The path is relative, or, seen from the server's own host, no executable file."""


_CLASSES: Final[dict[str, type[_Answered]]] = {
    "EMQFENCE": FenceRefused,
    "EMQKIND": WrongKind,
    "EMQSTALE": StaleToken,
    "EMQSTATE": WrongState,
    "EMQLOCK": JobLocked,
    "EMQRATE": RateLimited,
    "ERR": BadRequest,
    "WRONGTYPE": WrongType,
    "OOM": OutOfMemory,
    "MOVED": Redirected,
    "ASK": Redirected,
    **dict.fromkeys(
        (
            "LOADING",
            "READONLY",
            "MASTERDOWN",
            "CLUSTERDOWN",
            "TRYAGAIN",
            "BUSY",
            "MISCONF",
            "NOREPLICAS",
        ),
        Unavailable,
    ),
    **dict.fromkeys(("NOPERM", "NOAUTH", "WRONGPASS"), PermissionDenied),
}


_TEXTS: Final[dict[str, type[_Answered]]] = {
    "EMQSTALE job gone": JobGone,
    "ERR max number of clients reached": Unavailable,
}


OF_THE_NODE: Final = (FenceRefused, ModuleMissing)
"""Refusals that say nothing about the job: as soon as the node is mended, the same command goes through."""


def refuses_job(answer: object) -> TypeGuard[Refused]:
    """Whether an answer is a refusal that holds for this job, also when it is asked again."""
    return isinstance(answer, Refused) and not isinstance(answer, OF_THE_NODE)


_NO_MODULE: Final = re.compile("ERR unknown command ['`]?(EMQ|TRA)[.]", re.IGNORECASE)


def from_line(line: str) -> EmqError:
    """The exception for an error line of the server. An unknown class of error is a plain Refused."""
    if _NO_MODULE.match(line):
        return ModuleMissing(line)
    if line.startswith("UNBLOCKED "):  # it ended a wait: what the command did before it waited is done
        return Unavailable(line, outcome_unknown=True)
    return (_TEXTS.get(line) or _CLASSES.get(line.split(" ", 1)[0], Refused))(line)


def code_of(error: BaseException) -> str:
    """The first word of a server's error line, "" for every other exception."""
    return error.code if isinstance(error, _Answered) else ""


_LIBRARIES: Final = frozenset({"redis", "valkey"})

_CUT_CODES: Final = {
    "BusyLoadingError": "LOADING",
    "ReadOnlyError": "READONLY",
    "NoScriptError": "NOSCRIPT",
    "NoPermissionError": "NOPERM",
    "OutOfMemoryError": "OOM",
    "ExecAbortError": "EXECABORT",
    "MovedError": "MOVED",
    "AskError": "ASK",
    "TryAgainError": "TRYAGAIN",
    "MasterDownError": "MASTERDOWN",
    "ClusterDownError": "CLUSTERDOWN",
    "ClusterCrossSlotError": "CROSSSLOT",
}


def _library_names(error: BaseException) -> list[str]:
    return [c.__name__ for c in type(error).__mro__ if c.__module__.partition(".")[0] in _LIBRARIES]


def server_line(error: BaseException) -> str | None:
    """The exact error line behind an exception of a client library; None when it was no answer of the server."""
    names = _library_names(error)
    text = str(error)
    code = getattr(error, "status_code", None) or next((_CUT_CODES[n] for n in names if n in _CUT_CODES), None)
    if code is not None:
        return f"{code} {text}"
    if "AuthenticationError" in names:
        first = "WRONGPASS" if text.startswith("invalid username-password") else "NOAUTH"
        return f"{first} {text}"
    if "ResponseError" not in names:
        return None
    # Without a status_code the library has either cut off "ERR " or nothing.
    first = text.split(" ", 1)[0]
    return text if first.isalpha() and first.isupper() and len(first) > 2 else f"ERR {text}"


def translate(error: BaseException, *, sent: bool = False) -> EmqError | None:
    """Our exception for one of a client library, None for an exception that is not a library's.

    sent: a command was on its way, so the outcome of a lost connection is unknown.
    """
    if isinstance(error, EmqError):
        return error
    names = _library_names(error)
    line = server_line(error)
    if line is not None:
        return PermissionDenied(line) if "AuthenticationError" in names else from_line(line)
    if not names and not isinstance(error, OSError):
        return None
    if names and names[0] in ("DataError", "InvalidPipelineStack"):
        return InvalidArgument(str(error))
    return Unavailable(str(error) or names[0], outcome_unknown=sent, network=True)


@contextmanager
def translated() -> Iterator[None]:
    """A block whose exceptions of a client library come out as ours."""
    try:
        yield
    except Exception as error:
        ours = translate(error)
        if ours is None or ours is error:
            raise
        raise ours from error
