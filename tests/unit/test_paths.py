"""The path of the module, for servers that insist on an absolute path and an execute bit."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest

from emq_native import paths
from emq_native.errors import EmqError


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An emq.so of the test's own, and a temporary directory too."""
    file = tmp_path / "with spaces" / "emq.so"
    file.parent.mkdir()
    file.write_bytes(b"\x7fELF module")
    file.chmod(0o755)
    monkeypatch.setattr(paths, "_SHIPPED", file)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return file


@pytest.fixture
def read_only(monkeypatch: pytest.MonkeyPatch, shipped: Path) -> None:
    """A file system that lets nobody change the shipped file."""
    real = Path.chmod

    def chmod(self: Path, mode: int) -> None:
        if self == shipped:
            raise PermissionError
        real(self, mode)

    monkeypatch.setattr(Path, "chmod", chmod)


def mode(path: str | Path) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def test_the_path_is_absolute_and_that_of_the_package(shipped: Path) -> None:
    assert paths.module_path() == str(shipped)


def test_a_link_is_followed_to_the_file(shipped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = shipped.with_name("link.so")
    link.symlink_to(shipped.name)
    monkeypatch.setattr(paths, "_SHIPPED", link)

    assert paths.module_path() == str(shipped)


@pytest.mark.parametrize("lost", [0o644, 0o600, 0o711, 0o700])
def test_case_91_lost_bits_are_set_again(shipped: Path, lost: int) -> None:
    """case 91"""
    shipped.chmod(lost)

    assert paths.module_path() == str(shipped)
    assert mode(shipped) == 0o755


@pytest.mark.usefixtures("read_only")
def test_case_91_a_read_only_package_is_copied_with_the_bit(shipped: Path, tmp_path: Path) -> None:
    """case 91"""
    os.chmod(shipped, 0o644)
    copy = Path(paths.module_path())

    assert copy.is_absolute()
    assert copy.is_relative_to(tmp_path)
    assert copy.read_bytes() == shipped.read_bytes()
    assert mode(copy) == 0o755
    assert paths.module_path() == str(copy)
    assert [entry.name for entry in copy.parent.iterdir()] == [copy.name]


@pytest.mark.usefixtures("read_only")
def test_case_91_a_read_only_package_with_its_bit_is_used_as_it_is(shipped: Path) -> None:
    """case 91"""
    os.chmod(shipped, 0o711)

    assert paths.module_path() == str(shipped)


@pytest.mark.usefixtures("read_only")
def test_another_version_is_another_copy(shipped: Path) -> None:
    os.chmod(shipped, 0o644)
    first = paths.module_path()
    shipped.write_bytes(b"\x7fELF next version")

    assert paths.module_path() != first


@pytest.mark.usefixtures("read_only")
@pytest.mark.parametrize("trap", ["writable", "link"])
def test_a_folder_that_others_could_fill_is_not_trusted(shipped: Path, tmp_path: Path, trap: str) -> None:
    os.chmod(shipped, 0o644)
    folder = tmp_path / f"emq-native-{os.getuid()}"
    if trap == "writable":
        folder.mkdir()
        folder.chmod(0o777)
    else:
        folder.symlink_to(shipped.parent)

    with pytest.raises(EmqError, match="alone"):
        paths.module_path()


def test_a_package_that_was_not_built_says_so(shipped: Path) -> None:
    shipped.unlink()

    with pytest.raises(EmqError, match="not built"):
        paths.module_path()
