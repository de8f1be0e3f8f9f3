from __future__ import annotations

import pytest
from tests.server import older


@pytest.fixture(scope="session")
def older_module(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of a module of another version, `older.VERSION`."""
    return older.build(tmp_path_factory.mktemp("older"))
