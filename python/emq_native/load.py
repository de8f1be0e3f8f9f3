"""Load the module into a running server.

A server answers one and the same text to a wrong path, a missing execute bit, a second load and a module that does not
fit; only its log knows. `load` asks beforehand what can be asked, looks at the file when the server runs on this very
host, and says no more than it knows.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from emq_native._core import MODULE_VERSION
from emq_native.errors import (
    AlreadyLoaded,
    BadModuleFile,
    EmqError,
    LoadDenied,
    LoadDisabled,
    LoadFailed,
    PermissionDenied,
    Unavailable,
)
from emq_native.paths import module_path
from emq_native.probe import Questions
from emq_native.session import Session

__all__ = ["load"]

LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
EXECUTE: Final = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH


def load(target: object, path: str | os.PathLike[str] | None = None) -> str:
    """MODULE LOAD on one node, a URL or a synchronous client. Returns the version that the server then has.

    path: the module on the *server's* file system, absolute; without it, this package's own file, which only a server
    on this host can see.
    Raises AlreadyLoaded, LoadDisabled, LoadDenied, BadModuleFile; LoadFailed when only the server's log knows the
    reason; Unavailable or PermissionDenied when the node does not answer or knows no such user.
    """
    file = os.fspath(path) if path is not None else module_path()
    if not os.path.isabs(file):
        raise BadModuleFile(file, f"{file} is not absolute, and the server would look in its own directory")
    with Session(target) as session:
        _refuse_a_second(session, file)
        try:
            session.send("MODULE", "LOAD", file)
        except EmqError as error:
            raise _explained(session, file, error) from error
        found = Questions(session).of_primary(None)
        return found.module_version or MODULE_VERSION


def _refuse_a_second(session: Session, file: str) -> None:
    found = Questions(session).of_primary(None)
    if found.module in ("loaded", "denied"):
        raise AlreadyLoaded(file, found.module_version, MODULE_VERSION)


def _explained(session: Session, file: str, error: EmqError) -> EmqError:
    text = str(error)
    if isinstance(error, Unavailable):
        return error
    if isinstance(error, PermissionDenied):
        return LoadDenied(file, text)
    if "not allowed" in text:
        return LoadDisabled(
            file,
            "the server takes no modules at run time: set `enable-module-command local` (or yes) in its configuration,"
            f" or add `loadmodule {file}`, and restart it",
        )
    if "unknown command" in text.lower():
        return LoadDisabled(file, "the server has no MODULE command: managed servers take it away")
    if (version := Questions(session).listed_version()) is not None:
        return AlreadyLoaded(file, version, MODULE_VERSION)
    if (seen := _seen_on_this_host(session, file)) is not None:
        return BadModuleFile(file, seen)
    return LoadFailed(file, f"the server refused {file}; its log says why")


def _seen_on_this_host(session: Session, file: str) -> str | None:
    """What is wrong with the file when the server sees the same files as this process; None: nothing, or not known."""
    if not _same_files(session):
        return None
    try:
        mode = os.stat(file).st_mode
    except FileNotFoundError:
        return f"there is no {file}"
    except OSError as error:
        return f"{file}: {error.strerror}"
    if not stat.S_ISREG(mode):
        return f"{file} is no file"
    if not mode & EXECUTE:
        return f"{file} has no execute bit: chmod +x"
    return None


def _same_files(session: Session) -> bool:
    """Whether the server certainly runs on this host, outside of any container that this process is not in."""
    if session.host is not None and session.host not in LOOPBACK:
        return False
    try:
        pid = int(Questions(session).info("server")["process_id"])
        return os.path.samefile(f"/proc/{pid}/root", "/") and b"server" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except (EmqError, KeyError, ValueError, OSError):
        return False
