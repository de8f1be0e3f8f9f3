"""The source distribution: complete by itself, and plain words where something to build it with is missing."""

from __future__ import annotations

import sys
import tarfile
from pathlib import Path

import pytest

from emq_native import _core

from .conftest import ROOT, build, run


def test_case_94_the_archive_has_every_source_and_no_binary(sdist: Path) -> None:
    """case 94"""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    wanted = {"setup.py", "pyproject.toml", "MANIFEST.in", "module/Makefile", "module/tests/vectors.json"}
    for folder, pattern in (("module/src", "*.[ch]"), ("python/emq_native", "*.py"), ("python/emq_native", "*.lua")):
        wanted |= {str(path.relative_to(ROOT)) for path in (ROOT / folder).rglob(pattern)}
    assert wanted <= names
    assert not [name for name in names if name.endswith((".so", ".o", ".pyc")) or "/build/" in name]


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


def test_package_and_module_have_one_version(wheel: Path) -> None:
    assert wheel.name.split("-")[1] == _core.MODULE_VERSION
