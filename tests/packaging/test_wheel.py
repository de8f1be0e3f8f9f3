"""The wheel: what it claims to be, what is in it, and that it works where nothing of the source tree is."""

from __future__ import annotations

import json
import re
import stat
import sys
from pathlib import Path
from zipfile import ZipFile

from .conftest import ROOT, Environment, run

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
    assert re.fullmatch(r"emq_native-[0-9.]+-cp310-abi3-[\w.]+\.whl", wheel.name)
    assert not wheel.name.endswith("-any.whl")
    with ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/WHEEL"))
        facts = archive.read(metadata).decode()
    assert "Root-Is-Purelib: false" in facts
    assert set(re.findall(r"^Tag: (\w+-\w+)-(?:many)?linux\w+$", facts, re.MULTILINE)) == {"cp310-abi3"}


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
    extra = {name for name in names - sources if ".dist-info/" not in name and not name.endswith("/")}
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
    shown = run(sys.executable, "-m", "auditwheel", "show", wheel, cwd=wheel.parent)

    assert shown.returncode == 0, shown.stdout
    assert re.search(r'tag:\s+"?manylinux_2_\d+_', shown.stdout), shown.stdout


def test_case_92_no_python_from_3_10_on_lacks_what_the_wheel_calls(wheel: Path, tmp_path: Path) -> None:
    """case 92"""
    report = tmp_path / "report.json"
    audited = run(sys.executable, "-m", "abi3audit", "--strict", "--report", "--output", report, wheel, cwd=tmp_path)

    assert audited.returncode == 0, audited.stdout
    (spec,) = json.loads(report.read_text("utf-8"))["specs"].values()
    found = {part["name"]: part["result"]["baseline"] for part in spec["wheel"]}
    assert found == {"_native.abi3.so": "3.10", "emq.so": "3.10"}


def test_the_check_of_an_installed_wheel_wants_the_execute_bit(wheel: Path, environment: Environment) -> None:
    environment.install(wheel)
    (environment.package / "emq.so").chmod(0o644)
    checked = run(environment.python, ROOT / "tests/packaging/installed.py", cwd=environment.folder)

    assert checked.returncode != 0
    assert "emq.so has the mode 644" in checked.stdout


def test_an_editable_install_uses_the_tree_and_the_module_that_make_builds(
    unpacked: Path, wheel: Path, environment: Environment
) -> None:
    environment.install("--editable", unpacked)
    file, path = environment.says(
        "import emq_native; from emq_native.paths import module_path; print(emq_native.__file__); print(module_path())"
    ).splitlines()

    assert Path(file) == unpacked / "python/emq_native/__init__.py"
    assert Path(path) == unpacked / "module/build/emq.so"
