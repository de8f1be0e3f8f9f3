"""The comparison with other queues runs; of the libraries only those that this project's own environment has."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from bench.peers.libraries import LIBRARIES, OWN

ROOT = Path(__file__).parents[2]
HERE = [name for name, library in LIBRARIES.items() if library.venv == OWN]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, object]]]:
    """The tables of a small run."""
    folder = tmp_path_factory.mktemp("peers")
    sizes = ["--rounds", "1", "--jobs", "300", "--no-aof", "--no-waits", "--output", str(folder)]
    command = [sys.executable, "-m", "bench.peers", "--only", ",".join(HERE), *sizes]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert ended.returncode == 0, ended.stdout[-2000:] + ended.stderr[-4000:]
    tables: dict[str, list[dict[str, object]]] = json.loads((folder / "peers.json").read_text())["tables"]
    return tables


def test_each_library_is_measured_and_none_failed(found: dict[str, list[dict[str, object]]]) -> None:
    assert [row["library"] for row in found["peers"]] == HERE
    for row in found["peers"]:
        assert row["failures"] == [], row
        assert all(row[name] for name in ("send", "send_x", "bulk", "bytes", "best", "best_x", "versions")), row


def test_every_job_is_worked_off_once_by_each_setup(found: dict[str, list[dict[str, object]]]) -> None:
    setups = [(name, setup.label) for name in HERE for setup in LIBRARIES[name].setups]

    assert [(row["library"], row["setup"]) for row in found["working"]] == setups
    assert all((row["jobs"], row["twice"]) == ([300], [0]) for row in found["working"]), found["working"]
