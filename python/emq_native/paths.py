"""Where the server module is."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
from pathlib import Path

from emq_native.errors import EmqError

_SHIPPED = Path(__file__).with_name("emq.so")


def module_path() -> str:
    """The absolute path of `emq.so`, for `loadmodule` and MODULE LOAD, of a file that has its execute bit.

    That is the file in the package. Where an installer or a umask took the bits and they cannot be set again, as on
    a read-only file system, it is a copy in the temporary directory. Raises EmqError when the package has no module.
    """
    if not _SHIPPED.is_file():
        raise EmqError(f"there is no {_SHIPPED}: this package was not built; `pip install` builds it")
    shipped = _SHIPPED.resolve()
    mode = shipped.stat().st_mode
    if mode & 0o555 == 0o555:
        return str(shipped)
    try:
        shipped.chmod(0o755)
    except OSError:
        # Without read rights for all it still serves a server of this user; without the execute bit it serves none.
        return str(shipped if mode & 0o111 else _executable_copy(shipped))
    return str(shipped)


def _executable_copy(shipped: Path) -> Path:
    """A copy named after its content, so that every process and every version finds the right one."""
    digest = hashlib.sha256(shipped.read_bytes()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir(), f"emq-native-{os.getuid()}")
    folder.mkdir(mode=0o755, exist_ok=True)
    found = folder.lstat()
    # Others may write to the temporary directory; what they put there is not handed to a server.
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise EmqError(f"{folder} is not this user's alone, and {shipped} has no execute bit")
    copy = folder / f"emq-{digest}.so"
    if not copy.exists():
        fresh = folder / f".{copy.name}.{os.getpid()}"
        shutil.copyfile(shipped, fresh)
        fresh.chmod(0o755)
        fresh.replace(copy)
    return copy
