"""Machines that have one thing each, as containers. $EMQ_BASE_IMAGE: see tests/containers/conftest.py."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack

import docker
import pytest
from docker.errors import ImageNotFound
from tests.containers.conftest import engine as engine

from emq_native.server import _free_port

PUBLIC = {"8.1": "valkey/valkey:8.1", "python": "python:3.13-slim", "debian": "debian:12"}
"""Public images, and what docker/base-image calls those that stand for them."""


def machine(name: str) -> str:
    """The image of a machine with nothing but Debian 12, or Python."""
    pattern = os.environ.get("EMQ_BASE_IMAGE")
    return PUBLIC[name] if pattern is None else pattern.format(version=name)


@pytest.fixture
def public_names(engine: docker.DockerClient) -> Iterator[None]:
    """Where no registry is reachable, our own bases have the names of the public ones for the time of a test."""
    with ExitStack() as names:
        for name, public in PUBLIC.items():
            try:
                engine.images.get(public)
            except ImageNotFound:
                if machine(name) != public:
                    engine.images.get(machine(name)).tag(public)
                    names.callback(engine.images.remove, public, noprune=True)
        yield


@pytest.fixture
def free_port() -> int:
    """A TCP port of 127.0.0.1 that nobody has, and that no connection is given while the images are built."""
    return _free_port()
