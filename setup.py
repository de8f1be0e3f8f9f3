"""Builds what pyproject.toml cannot describe: the cffi extension and the server module.

The module is built by its own Makefile. A wheel gets a copy of `emq.so`; an editable or in-place build gets a link to
it, so that `make -C module` alone brings a change of the C sources into use.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from itertools import pairwise
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.errors import PlatformError

MODULE = Path("module")
BUILT = MODULE / "build" / "emq.so"
STABLE_ABI = not sysconfig.get_config_var("Py_GIL_DISABLED")


def require_tools() -> None:
    """Names everything that is missing and how to get it, before any of it fails in its own words."""
    if sys.platform == "win32":
        raise PlatformError(
            "emq-native needs a POSIX system, as Valkey does: Linux or macOS; on Windows, WSL or a container"
        )
    compiler = shlex.split(os.environ.get("CC") or str(sysconfig.get_config_var("CC") or "cc"))[0]
    make = shlex.split(os.environ.get("MAKE") or "make")[0]
    header = Path(sysconfig.get_path("include"), "Python.h")
    wanted = {
        f"a C compiler ('{compiler}'; Debian: apt-get install gcc libc6-dev)": shutil.which(compiler),
        f"make ('{make}'; Debian: apt-get install make)": shutil.which(make),
        f"the headers of Python ('{header}'; Debian: apt-get install python3-dev)": header.is_file(),
    }
    missing = [what for what, found in wanted.items() if not found]
    if missing:
        raise PlatformError("emq-native is built from C sources and needs " + "; ".join(missing))


def architectures(command: list[str]) -> list[str]:
    """The options of a compiler command that say for which processors: on macOS there may be several."""
    return [word for before, word in pairwise(["", *command]) if "-arch" in (before, word)]


class BuildExtension(build_ext):
    """The extension, then the module beside it."""

    def run(self) -> None:
        require_tools()
        super().run()
        self.build_module()

    def build_module(self) -> None:
        make = shlex.split(os.environ.get("MAKE") or "make")
        # A make that started this build would otherwise hand its own options and job slots down.
        environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL")}
        # The module runs on each processor that the extension beside it runs on. And a warning that some other compiler
        # has is our business, not that of who installs the package.
        processors = " ".join(architectures(self.compiler.compiler_so))
        lenience = "" if self.is_in_place else "-Wno-error"
        environment["CFLAGS"] = f"{os.environ.get('CFLAGS', '')} {processors} {lenience}"
        environment["LDFLAGS"] = f"{os.environ.get('LDFLAGS', '')} {processors}"
        try:
            subprocess.run([*make, "-C", str(MODULE), "build/emq.so"], check=True, env=environment)
        except subprocess.CalledProcessError as failure:
            raise PlatformError("the server module did not build; the compiler's message stands above") from failure

        target = self.module_target()
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        if self.is_in_place:
            target.symlink_to(os.path.relpath(BUILT, target.parent))
        else:
            shutil.copyfile(BUILT, target)
            target.chmod(0o755)  # the server refuses a module without the bit, and the umask may have withheld it

    @property
    def is_in_place(self) -> bool:
        return bool(self.inplace or self.editable_mode)

    def module_target(self) -> Path:
        return Path(self.get_ext_fullpath("emq_native._native")).with_name("emq.so")

    def get_outputs(self) -> list[str]:
        return [*super().get_outputs(), str(self.module_target())]


class Wheel(bdist_wheel):
    """A wheel for one platform and every Python from 3.10 on."""

    def finalize_options(self) -> None:
        self.py_limited_api = "cp310" if STABLE_ABI else False
        super().finalize_options()


setup(
    cffi_modules=["python/emq_native/_build.py:builder"],
    cmdclass={"build_ext": BuildExtension, "bdist_wheel": Wheel},
)
