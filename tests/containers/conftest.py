"""The image of docker/Dockerfile, built on a base of each Valkey version and run as an operator would run it.

$EMQ_BASE_IMAGE names the bases, {version} standing for the version (default valkey/valkey:{version}); docker/base-image
makes some where no registry is reachable. $EMQ_REQUIRE_CONTAINERS=1 turns a missing engine from a skip into a failure.
"""

from __future__ import annotations

import gc
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import docker
import pytest
from docker.errors import BuildError, DockerException
from tests.containers.node import Node

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def engine() -> Iterator[docker.DockerClient]:
    try:
        client = docker.from_env()  # asks the engine for its version
    except DockerException as problem:
        missing = f"no container engine: {problem}"
    else:
        yield client
        client.close()
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()  # the client that could not connect leaves a socket open
    absent(missing)


def absent(what: str) -> NoReturn:
    """End a test that needs what is not there."""
    if os.environ.get("EMQ_REQUIRE_CONTAINERS") == "1":
        pytest.fail(what)
    pytest.skip(what)


@pytest.fixture(scope="session", params=["8.1", "9.1", "8.1-alpine"])
def version(request: pytest.FixtureRequest) -> str:
    """The tag of the base."""
    return str(request.param)


@pytest.fixture(scope="session")
def base(version: str) -> str:
    """The name of an image with that Valkey and without the module."""
    return os.environ.get("EMQ_BASE_IMAGE", "valkey/valkey:{version}").format(version=version)


@pytest.fixture(scope="session")
def image(engine: docker.DockerClient, version: str, base: str) -> str:
    """The name of the image on a base with that Valkey. It stays in the engine, so that the next build is short."""
    from testcontainers.core.image import DockerImage

    built = DockerImage(
        path=ROOT,
        dockerfile_path="docker/Dockerfile",
        tag=f"emq-native:test-{version}",
        buildargs={"BASE_IMAGE": base},
        rm=True,
    )
    try:
        built.build()
    except BuildError as problem:
        log = "".join(str(step.get("stream", "")) for step in problem.build_log)
        pytest.fail(f"{problem}\n{log[-3000:]}", pytrace=False)
    built.get_docker_client().client.close()
    return str(built)


@pytest.fixture(scope="session")
def node(image: str, version: str) -> Iterator[Node]:
    with Node(image, version) as running:
        yield running
