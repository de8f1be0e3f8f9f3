"""The wheel: what it claims to be, what is in it, and that it works where nothing of the source tree is."""

from __future__ import annotations

import re
import stat
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from .conftest import Environment, run

GLIBC_BASE = (2, 34)
"""The oldest glibc that a build on Debian 12 or newer promises to run with: RHEL 9, Ubuntu 22.04, Debian 12."""

LOAD = """if True:
    from emq_native.paths import module_path
    from emq_native.server import Server
    with Server(module=True) as server:
        print(server.client().execute_command("EMQ.VERSION"))
        print(module_path())
"""


def members(wheel: Path) -> dict[str, int]:
    """Names and Unix modes."""
    with ZipFile(wheel) as archive:
        return {entry.filename: entry.external_attr >> 16 for entry in archive.infolist()}


def test_case_92_one_wheel_per_platform_for_every_python(wheel: Path) -> None:
    """case 92"""
    assert re.fullmatch(r"emq_native-[0-9.]+-cp310-abi3-\w+\.whl", wheel.name)
    assert not wheel.name.endswith("-any.whl")
    with ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/WHEEL"))
        facts = archive.read(metadata).decode()
    assert "Root-Is-Purelib: false" in facts
    assert re.search(r"^Tag: cp310-abi3-linux_\w+$", facts, re.MULTILINE)


def test_case_91_the_module_is_executable_in_the_wheel(wheel: Path) -> None:
    """case 91"""
    mode = members(wheel)["emq_native/emq.so"]

    assert stat.S_ISREG(mode)
    assert stat.S_IMODE(mode) == 0o755


def test_the_wheel_has_what_the_package_needs_and_nothing_else(wheel: Path, unpacked: Path) -> None:
    names = set(members(wheel))
    sources = {
        str(path.relative_to(unpacked / "python"))
        for path in (unpacked / "python/emq_native").rglob("*")
        if path.suffix in (".py", ".lua", ".json", ".pyi", ".typed") or path.name == "py.typed"
    }

    assert sources <= names
    extra = {name for name in names - sources if ".dist-info/" not in name}
    assert extra == {"emq_native/emq.so", "emq_native/_native.abi3.so"}


def test_an_installed_wheel_serves_outside_of_the_source_tree(wheel: Path, environment: Environment) -> None:
    """case 91, case 92"""
    environment.install(wheel)
    version, path = environment.says(LOAD).splitlines()

    assert "echomq:6.0.0" in version
    assert Path(path) == environment.package / "emq.so"
    assert stat.S_IMODE(Path(path).stat().st_mode) == 0o755


def test_case_91_a_strict_umask_does_not_keep_the_server_out(wheel: Path, environment: Environment) -> None:
    """case 91"""
    environment.install(wheel, umask=0o077)
    path = Path(environment.says("from emq_native.paths import module_path; print(module_path())").strip())

    assert path == environment.package / "emq.so"
    assert stat.S_IMODE(path.stat().st_mode) == 0o755
    assert "echomq:6.0.0" in environment.says(LOAD, umask=0o077)


def test_the_command_is_installed(wheel: Path, environment: Environment) -> None:
    environment.install(wheel)
    told = run(environment.folder / "bin" / "emq-native", "module-path", cwd=environment.folder)

    assert told.returncode == 0, told.stdout
    assert told.stdout.strip() == str(environment.package / "emq.so")


def test_case_93_no_symbol_is_newer_than_the_base(wheel: Path) -> None:
    """case 93"""
    with ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.endswith(".so"):
                versions = re.findall(rb"GLIBC_(\d+)\.(\d+)", archive.read(name))
                newest = max(((int(major), int(minor)) for major, minor in versions), default=(0, 0))
                assert newest <= GLIBC_BASE, name


def test_case_92_auditwheel_sees_a_platform_wheel(wheel: Path) -> None:
    """case 92"""
    pytest.importorskip("auditwheel")
    shown = run(sys.executable, "-m", "auditwheel", "show", wheel, cwd=wheel.parent)

    assert shown.returncode == 0, shown.stdout
    assert re.search(r'tag:\s+"?manylinux_2_\d+_', shown.stdout), shown.stdout


def test_an_editable_install_uses_the_tree_and_the_module_that_make_builds(
    unpacked: Path, wheel: Path, environment: Environment
) -> None:
    environment.install("--editable", unpacked)
    file, path = environment.says(
        "import emq_native; from emq_native.paths import module_path; print(emq_native.__file__); print(module_path())"
    ).splitlines()

    assert Path(file) == unpacked / "python/emq_native/__init__.py"
    assert Path(path) == unpacked / "module/build/emq.so"
