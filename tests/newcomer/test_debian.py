"""On Debian with the Valkey of the distribution, the steps of docs/install.md lead to a job through the module."""

from __future__ import annotations

import io
import tarfile

import docker
import pytest
from testcontainers.core.container import DockerContainer
from tests.newcomer.conftest import machine
from tests.newcomer.guide import ROOT, steps

pytestmark = pytest.mark.timeout(900)  # it downloads and builds


def source() -> bytes:
    """An archive of what a build of the module needs."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as archive:
        archive.add(ROOT / "module" / "Makefile", "module/Makefile")
        archive.add(ROOT / "module" / "src", "module/src")
    return written.getvalue()


def test_the_server_of_the_distribution_loads_the_module_and_lends_a_job(engine: docker.DockerClient) -> None:
    [commands] = steps("On Debian")
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    with DockerContainer(machine("debian"), command="sleep infinity", env=quiet) as here:
        container = here.get_wrapped_container()
        container.put_archive("/root", source())
        status, said = container.exec_run(["sh", "-euxc", commands], workdir="/root")
        assert status == 0, said.decode()
        assert said.decode().splitlines()[-1] == "1"
        version = container.exec_run(["valkey-cli", "EMQ.VERSION"]).output.decode().split()
        assert version[version.index("node") + 1] == "echomq:6.0.0"
        assert version[version.index("server") + 1].startswith("8.0.")
