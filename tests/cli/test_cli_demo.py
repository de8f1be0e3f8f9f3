"""`demo`: the main job on real files, on both executors, with one worker killed and one too late."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest


def demo(program: str, *words: str) -> tuple[int, dict[str, str], str]:
    """Exit status, the table, everything that was said."""
    answer = subprocess.run([program, "demo", *words], capture_output=True, text=True, check=False)
    lines = answer.stdout.splitlines()
    table = dict(line.split(": ", 1) for line in lines if ": " in line)
    return answer.returncode, table, answer.stdout + answer.stderr


@pytest.mark.parametrize("executor", ["native", "scripted"])
def test_every_digest_is_right_although_a_worker_is_killed_and_one_is_late(program: str, executor: str) -> None:
    status, table, said = demo(program, "--executor", executor, "--directory", os.path.dirname(os.__file__) + "/json")
    count = int(table["files"])
    assert status == 0, said
    assert table["verdict"] == f"all {count} digests equal those of the sequential run"
    assert "in its hands" in table["killed"]
    assert "SIGKILL to worker" in said
    assert int(table["redelivered"]) >= 2
    assert table["refused as stale"].endswith("EMQSTALE complete token mismatch")
    assert "Traceback" not in said


def test_awkward_files_are_hashed_too(program: str, tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"plain{number}").write_text(str(number))
    (tmp_path / "empty").touch()
    (tmp_path / "big").write_bytes(os.urandom(5_000_000))
    (tmp_path / "new\nline").write_text("x")
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))).write_text("not UTF-8")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "inside").write_text("x")
    (tmp_path / "link").symlink_to("plain0")
    (tmp_path / "nowhere").symlink_to("missing")
    os.mkfifo(tmp_path / "pipe")
    status, table, said = demo(program, "--directory", str(tmp_path))
    assert status == 0, said
    assert table["files"] == "35"


def test_a_single_file_is_enough(program: str, tmp_path: Path) -> None:
    (tmp_path / "one").write_text("x")
    status, table, said = demo(program, "--directory", str(tmp_path))
    assert status == 0, said
    assert table["verdict"].startswith("all 1 digests")


def test_a_directory_without_files_is_refused(program: str, tmp_path: Path) -> None:
    status, _, said = demo(program, "--directory", str(tmp_path))
    assert status == 2
    assert f"there is no file below {tmp_path}" in said


def test_a_directory_that_is_none_is_refused(program: str, tmp_path: Path) -> None:
    assert demo(program, "--directory", str(tmp_path / "missing"))[0] == 2


def test_too_few_workers_are_refused(program: str) -> None:
    assert demo(program, "--workers", "2")[0] == 2
