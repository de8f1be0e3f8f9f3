"""The examples for CI services do what they say: their commands are run here, in order, as those would."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.docs.pages import blocks
from tests.docs.reader import Reader, free_port

from emq_native.server import Server

GITHUB, GITLAB = (yaml.safe_load(block.text) for block in blocks("docs/ci.md") if block.language == "yaml")


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    one = Reader(Server(port=free_port()), tmp_path)  # not started: the example starts its own
    yield one
    one.close()


def try_out(reader: Reader, scripts: list[Any], url: str) -> None:
    """Run all but the installation, which tests/packaging does; of the conformance cases a few."""
    assert reader.here(url) == reader.environment["EMQ_URL"].removesuffix("/0")
    install, *rest = scripts
    assert install == "pip install 'emq-native[server]'"
    for script in rest:
        reader.shell(script.replace("conformance --junit", "conformance --only C030-C033 --junit"))
    assert 'failures="0"' in (reader.directory / "conformance.xml").read_text()


def test_the_workflow_of_github_runs(reader: Reader) -> None:
    job = GITHUB["jobs"]["queue"]
    try_out(reader, [step["run"] for step in job["steps"] if "run" in step], job["env"]["EMQ_URL"])


def test_the_job_of_gitlab_runs(reader: Reader) -> None:
    job = GITLAB["queue"]
    try_out(reader, job["script"], job["variables"]["EMQ_URL"])
    assert job["artifacts"]["reports"]["junit"] == "conformance.xml"
