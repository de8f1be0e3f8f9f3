"""The source distribution: complete by itself, and plain words where something to build it with is missing."""

from __future__ import annotations

import re
import sys
import tarfile
from pathlib import Path

import pytest

from emq_native import _core

from .conftest import ROOT, build, run

NOT_SHIPPED = (".ci/", ".github/", ".dockerignore", ".gitignore")
"""What belongs to the repository and not to a release."""

GENERATED = ("PKG-INFO", "setup.cfg", "python/emq_native.egg-info/")


def test_case_94_the_archive_has_every_file_of_the_repository_and_no_other(sdist: Path) -> None:
    """case 94"""
    with tarfile.open(sdist) as archive:
        files = {member.name.partition("/")[2] for member in archive.getmembers() if not member.isdir()}
    listed = run("git", "-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT)
    assert listed.returncode == 0, listed.stdout
    kept = {name for name in listed.stdout.splitlines() if (ROOT / name).is_file() and not name.startswith(NOT_SHIPPED)}

    assert {"setup.py", "module/Makefile", "module/src/module.c", "python/emq_native/scripts/emq.claim.lua"} <= kept
    assert {name for name in files if not name.startswith(GENERATED)} == kept


def test_case_94_a_wheel_is_built_from_the_archive_alone(wheel: Path) -> None:
    """case 94"""
    assert wheel.is_file()


def test_case_94_without_compiler_and_make_the_message_says_so(unpacked: Path, tmp_path: Path) -> None:
    """case 94"""
    empty = tmp_path / "bin"
    empty.mkdir()
    built = build(unpacked, "--wheel", tmp_path / "dist", PATH=str(empty))

    assert built.returncode != 0
    assert "emq-native is built from C sources and needs a C compiler" in built.stdout
    assert "make ('make'; Debian: apt-get install make)" in built.stdout
    assert not list(tmp_path.glob("dist/*"))


@pytest.mark.parametrize(("name", "what"), [("CC", "a C compiler"), ("MAKE", "make")])
def test_case_94_what_the_environment_names_is_looked_for(unpacked: Path, tmp_path: Path, name: str, what: str) -> None:
    """case 94"""
    built = build(unpacked, "--wheel", tmp_path / "dist", **{name: "no-such-tool"})

    assert built.returncode != 0
    assert f"needs {what} ('no-such-tool'" in built.stdout


def test_case_94_without_the_headers_of_python_the_message_says_so(unpacked: Path) -> None:
    """case 94"""
    script = """if True:
        import runpy, sys, sysconfig
        sysconfig.get_path = lambda name, *rest, **more: "/nowhere"
        sys.argv = ["setup.py", "build_ext"]
        runpy.run_path("setup.py", run_name="__main__")
    """
    built = run(sys.executable, "-c", script, cwd=unpacked)

    assert built.returncode != 0
    assert "needs the headers of Python ('/nowhere/Python.h'; Debian: apt-get install python3-dev)" in built.stdout


def test_case_94_on_windows_the_message_says_what_the_package_needs(unpacked: Path) -> None:
    """case 94"""
    script = """if True:
        import runpy, sys, setuptools
        setuptools.setup = lambda **what: None
        require_tools = runpy.run_path("setup.py")["require_tools"]
        sys.platform = "win32"
        require_tools()
    """
    built = run(sys.executable, "-c", script, cwd=unpacked)

    assert built.returncode != 0
    assert "emq-native needs a POSIX system, as Valkey does: Linux or macOS; on Windows, WSL" in built.stdout


def test_the_module_is_for_the_processors_of_the_extension(unpacked: Path) -> None:
    script = """if True:
        import runpy, setuptools
        setuptools.setup = lambda **what: None
        architectures = runpy.run_path("setup.py")["architectures"]
        print(*architectures("clang -Wall -arch arm64 -O2 -arch x86_64 -g".split()))
        print(*architectures("gcc -O2 -march=x86-64-v2".split()))
    """
    told = run(sys.executable, "-c", script, cwd=unpacked)

    assert told.returncode == 0, told.stdout
    assert told.stdout.splitlines() == ["-arch arm64 -arch x86_64", ""]


def test_on_macos_the_module_is_a_bundle_built_without_what_only_elf_knows(unpacked: Path) -> None:
    told = run("make", "-C", "module", "--dry-run", "--always-make", "SYSTEM=Darwin", "build/emq.so", cwd=unpacked)

    assert told.returncode == 0, told.stdout
    assert " -bundle " in told.stdout
    assert not re.findall(r"-shared|-fno-plt|-flto=|-Wl,", told.stdout)


def test_package_module_image_and_changelog_have_one_version(wheel: Path) -> None:
    told = {"package": wheel.name.split("-")[1]}
    for file, pattern in (
        ("CHANGELOG.md", r"^## ([\w.]+)"),
        ("docker/Dockerfile", r'^LABEL .*(?:\n .*)*image\.version="([^"]+)"'),
        ("pyproject.toml", r'^version = "(.+)"'),
    ):
        found = re.search(pattern, (ROOT / file).read_text("utf-8"), re.MULTILINE)
        told[file] = found[1] if found else "none"

    assert told == dict.fromkeys(told, _core.MODULE_VERSION)
