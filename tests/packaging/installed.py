"""Proves an installed wheel: run it with the Python of the environment that has the wheel, outside of the source tree.

    python installed.py                  native and scripted
    python installed.py native           one of the two

The package is the installed one, `emq.so` has the mode it was shipped with, and the module in it, or the scripts, pass
the conformance suite on a server of their own: $EMQ_VALKEY_SERVER, or the one of emq-native[server]. Where there is no
server, that is a failure. It needs nothing but the package: cibuildwheel runs it on each platform and Python.
"""

from __future__ import annotations

import importlib.metadata
import platform
import stat
import subprocess
import sys
import sysconfig
from pathlib import Path

import emq_native
from emq_native import _core
from emq_native.server import find_binary


def check_files() -> None:
    """Before anything asks for the module's path, which would mend a lost bit."""
    package = Path(emq_native.__file__).resolve().parent
    installed = Path(sysconfig.get_path("platlib"), "emq_native").resolve()
    assert package == installed, f"{package} is not an installed package"
    module = package / "emq.so"
    mode = module.lstat().st_mode
    assert stat.S_ISREG(mode), f"{module} is no plain file"
    assert stat.S_IMODE(mode) == 0o755, f"{module} has the mode {stat.S_IMODE(mode):o}"
    version = importlib.metadata.version("emq-native")
    assert version == _core.MODULE_VERSION, f"package {version}, module {_core.MODULE_VERSION}"


def main(executors: list[str]) -> int:
    check_files()
    print(f"{emq_native.__file__} on Python {platform.python_version()}, {find_binary()}", flush=True)
    command = Path(sysconfig.get_path("scripts"), "emq-native")
    for executor in executors:
        words = [command, "conformance", "--executor", executor]
        done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False)
        lines = done.stdout.splitlines()
        print("\n".join(lines if done.returncode else lines[-1:]), flush=True)
        if done.returncode:
            return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["native", "scripted"]))
