"""The benchmarks run, and what they conclude is what they measured. Their figures are no matter here."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from bench.__main__ import QUESTIONS
from bench.common import Table
from bench.memory import SETTING, shipped
from bench.verdict import JUDGES, judge, waiters

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What a run of all questions printed, and the folder that it wrote to."""
    folder = tmp_path_factory.mktemp("bench")
    command = [sys.executable, "-m", "bench", "--size", "smoke", "--out", str(folder), "--note", "Nothing else ran."]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert ended.returncode == 0, ended.stdout[-2000:] + ended.stderr[-4000:]
    return ended.stdout, folder


def test_every_question_is_answered_in_one_run(run: tuple[str, Path]) -> None:
    found = json.loads((run[1] / "bench.json").read_text())

    assert found["tables"].keys() == {"verdict", "fleets", *QUESTIONS}
    assert all(found["tables"].values())
    assert found["note"] == "Nothing else ran."
    assert len(found["load"]) == 2
    assert {"valkey", "python", "redis"} <= found["versions"].keys()
    assert {"cpu", "cpus", "memory_gb", "platform"} <= found["machine"].keys()


def test_each_target_is_judged(run: tuple[str, Path]) -> None:
    found = json.loads((run[1] / "bench.json").read_text())["tables"]["verdict"]

    assert {row["target"] for row in found} == {"1", "3", "4", "5", "6", "7"}
    for row in found:
        relation, aim = row["aim"].split()
        reached = row["measured"] <= float(aim) if relation == "<=" else row["measured"] >= float(aim)
        assert row["verdict"] == ("met" if reached else "missed"), row


def test_what_is_printed_stands_in_the_document_too(run: tuple[str, Path]) -> None:
    printed, folder = run
    document = (folder / "bench.md").read_text()
    rows = [line for line in printed.splitlines() if line.startswith("|")]

    assert len(rows) > 50
    assert [row for row in rows if row not in document] == []
    assert "Nothing else ran." in document
    assert "![the figure](bench.png)" in document


def test_the_figure_is_a_picture(run: tuple[str, Path]) -> None:
    assert (run[1] / "bench.png").read_bytes().startswith(b"\x89PNG")


@dataclass
class Wake:
    waits_by: str
    waiters: int
    growth: float


def test_a_target_is_missed_when_the_rows_say_so() -> None:
    rows = [Wake(name, number, growth) for name in ("EMQ.NEXT", "PING") for number, growth in ((1, 1.0), (4_000, 1.1))]
    worse: list[Any] = [replace(row, growth=row.growth * 1.2) for row in rows]

    assert [each.verdict for each in waiters(rows)] == ["met"]
    assert [each.verdict for each in waiters(worse)] == ["missed"]


def test_only_what_was_asked_is_judged() -> None:
    rows = [Wake(name, number, 1.0) for name in ("EMQ.NEXT", "PING") for number in (1, 4_000)]

    verdict = judge([Table("waiters", "", "", {}, rows)])

    assert [each.target for each in verdict.rows] == ["6"]
    assert set(JUDGES) <= set(QUESTIONS)


def test_memory_is_measured_with_the_settings_that_are_shipped() -> None:
    config = shipped()

    assert f"{SETTING} {config[SETTING]}" in (ROOT / "docker" / "valkey.conf").read_text().splitlines()
    assert config["appendonly"] == "yes"
    assert not {"loadmodule", "port", "dir"} & config.keys()


def test_a_question_that_is_not_there_is_refused() -> None:
    command = [sys.executable, "-m", "bench", "--only", "flat,colour"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)

    assert ended.returncode == 2
    assert "there is no colour" in ended.stderr
