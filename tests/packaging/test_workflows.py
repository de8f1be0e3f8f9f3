"""What the workflows and cibuildwheel do on machines that we do not have, in step with the rest of the project."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from .conftest import ROOT, run

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def jobs(name: str) -> dict[str, Any]:
    (path,) = (path for path in WORKFLOWS if path.stem == name)
    found: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))["jobs"]
    return found


def supported() -> list[str]:
    """The Pythons that the package's classifiers name."""
    return re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["project"]["classifiers"]))


def test_the_workflows_are_what_their_schema_wants() -> None:
    checked = run(
        sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", *WORKFLOWS, cwd=ROOT
    )

    assert checked.returncode == 0, checked.stdout
    assert {path.stem for path in WORKFLOWS} >= {"ci", "wheels", "image"}


def test_what_the_workflows_make_is_a_target() -> None:
    commands = [
        step["run"] for path in WORKFLOWS for job in jobs(path.stem).values() for step in job["steps"] if "run" in step
    ]
    lines = re.findall(r"^make (.+)", "\n".join(commands), re.MULTILINE)
    made = {word for line in lines for word in line.split() if "=" not in word}
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))

    assert made >= {"lint", "docs", "test", "containers"}
    assert made <= targets


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_no_workflow_names_a_host(path: Path) -> None:
    assert not re.findall(r"\b[\w-]+\.(?:com|dev|io|net|org)\b", path.read_text("utf-8"))


def test_every_python_that_the_package_names_is_tested() -> None:
    names = [f"cp{python.replace('.', '')}-*" for python in supported()]

    assert f">={supported()[0]}" == PROJECT["project"]["requires-python"]
    assert PROJECT["tool"]["cibuildwheel"]["build"] == names
    assert jobs("ci")["test"]["strategy"]["matrix"]["python"] == supported()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="cibuildwheel itself needs Python 3.11")
@pytest.mark.parametrize(
    ("platform", "machine", "tags"),
    [
        ("linux", "x86_64", {"manylinux_x86_64", "musllinux_x86_64"}),
        ("linux", "aarch64", {"manylinux_aarch64", "musllinux_aarch64"}),
        ("macos", "x86_64", {"macosx_x86_64"}),
        ("macos", "arm64", {"macosx_arm64"}),
    ],
)
def test_each_platform_builds_once_and_tests_on_every_python(platform: str, machine: str, tags: set[str]) -> None:
    shown = run(
        sys.executable, "-m", "cibuildwheel", "--print-build-identifiers",
        "--platform", platform, "--archs", machine, cwd=ROOT,
    )  # fmt: skip

    assert shown.returncode == 0, shown.stdout
    pythons = [python.replace(".", "") for python in supported()]
    assert set(shown.stdout.split()) == {f"cp{python}-{tag}" for python in pythons for tag in tags}
