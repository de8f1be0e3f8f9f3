"""On a machine with Python only, no compiler and no checkout, the steps of docs/install.md lead to a job that runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import docker
import pytest
from docker.types import Mount
from testcontainers.core.container import DockerContainer
from tests.newcomer.conftest import machine
from tests.newcomer.guide import ROOT, steps

pytestmark = pytest.mark.timeout(900)  # it downloads and builds


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel of this checkout, in the place of the package index."""
    folder = tmp_path_factory.mktemp("wheels")
    built = ("-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, ROOT)
    subprocess.run((sys.executable, *built), check=True, capture_output=True)
    folder.chmod(0o755)
    return folder


def test_the_package_brings_its_server_and_runs_a_job(engine: docker.DockerClient, wheels: Path) -> None:
    [commands] = steps("With pip")
    mounts = [Mount("/wheels", str(wheels), type="bind", read_only=True)]
    index = {"PIP_FIND_LINKS": "/wheels"}
    with DockerContainer(machine("python"), command="sleep infinity", env=index, mounts=mounts) as here:
        container = here.get_wrapped_container()
        lacks = "for tool in cc gcc make valkey-server; do ! command -v $tool || exit 1; done"
        assert container.exec_run(["sh", "-c", lacks]).exit_code == 0
        status, said = container.exec_run(["sh", "-euxc", commands], workdir="/tmp")
        assert status == 0, said.decode()
        assert "resized cat.png to 200" in said.decode()
