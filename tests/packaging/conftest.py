"""The source distribution, the wheel that is built from it alone, and clean environments to install it in.

Nothing is fetched: builds run without isolation, and the environments borrow the dependencies of the running one. All
folders have a space in their names, because some users' have.

$EMQ_WHEEL names a wheel to test in place of one that is built here.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(
    *words: str | Path, cwd: Path, umask: int = -1, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a command and answers how it went, its two outputs in one."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PIP_", "MAKE", "CFLAGS"))}
    return subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env={**inherited, **(environment or {})},
        umask=umask,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=280,
        check=False,
    )


def build(source: Path, kind: str, into: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return run(
        sys.executable,
        "-m",
        "build",
        "--no-isolation",
        kind,
        "--outdir",
        into,
        source,
        cwd=into.parent,
        environment=environment,
    )


def only(folder: Path, pattern: str) -> Path:
    (found,) = folder.glob(pattern)
    return found


@pytest.fixture(scope="session")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # What an earlier build found would be taken in again, whatever MANIFEST.in says now.
    (ROOT / "python/emq_native.egg-info/SOURCES.txt").unlink(missing_ok=True)
    out = tmp_path_factory.mktemp("source distribution") / "dist"
    built = build(ROOT, "--sdist", out)
    assert built.returncode == 0, built.stdout
    return only(out, "*.tar.gz")


@pytest.fixture(scope="session")
def unpacked(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution in a folder where nothing else is."""
    folder = tmp_path_factory.mktemp("un packed")
    with tarfile.open(sdist) as archive:
        # Python 3.10 before 3.10.12 does not know filters; the archive is our own.
        if hasattr(tarfile, "data_filter"):
            archive.extractall(folder, filter="data")
        else:
            archive.extractall(folder)
    return only(folder, "*")


@pytest.fixture(scope="session")
def wheel(unpacked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if given := os.environ.get("EMQ_WHEEL"):
        return Path(given).resolve(strict=True)
    out = tmp_path_factory.mktemp("a wheel") / "dist"
    built = build(unpacked, "--wheel", out)
    assert built.returncode == 0, built.stdout
    return only(out, "*.whl")


@dataclass(frozen=True)
class Environment:
    """A virtual environment without our package, until it is installed."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def package(self) -> Path:
        return only(self.folder, "lib/python*/site-packages") / "emq_native"

    def install(self, *what: str | Path, umask: int = -1) -> subprocess.CompletedProcess[str]:
        pip: tuple[str | Path, ...] = (sys.executable, "-m", "pip", "--python", self.python)
        offline = ("--no-index", "--no-deps", "--no-build-isolation")
        done = run(*pip, "install", *offline, *what, cwd=self.folder, umask=umask)
        assert done.returncode == 0, done.stdout
        return done

    def says(self, script: str, umask: int = -1) -> str:
        """What a script prints here, in a folder outside of every source tree."""
        done = run(self.python, "-c", script, cwd=self.folder, umask=umask)
        assert done.returncode == 0, done.stdout
        return done.stdout


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    folder = tmp_path / "clean environment"
    made = run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=tmp_path)
    assert made.returncode == 0, made.stdout
    here = Environment(folder)
    # A path file adds the folder of the dependencies, but not what path files in that folder would add.
    borrowed = sysconfig.get_path("purelib")
    (here.package.parent / "borrowed.pth").write_text(f"{borrowed}\n", "utf-8")
    return here
