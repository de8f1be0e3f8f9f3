"""MODULE LOAD through `load`, and the causes that it tells apart where the server has one text for most (case 89)."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server import older

import emq_native
from emq_native import Unavailable, load, module_path, probe
from emq_native.errors import AlreadyLoaded, BadModuleFile, LoadDenied, LoadDisabled, LoadFailed, PermissionDenied
from emq_native.server import Server

OPEN = {"enable-module-command": "local"}


@pytest.fixture
def server() -> Iterator[Server]:
    """A server without the module that takes modules at run time."""
    with Server(module=False, config=OPEN) as running:
        yield running


def refused_without_a_trace(server: Server) -> bool:
    return server.running and probe(server.url).module == "absent"


def test_it_loads_this_packages_module(server: Server) -> None:
    assert load(server.url) == emq_native.__version__
    assert probe(server.url).module == "loaded"


def test_it_loads_a_path_through_a_client(server: Server) -> None:
    assert load(server.client(), Path(module_path())) == emq_native.__version__


def test_it_tells_the_version_that_was_loaded(server: Server, older_module: str) -> None:
    assert load(server.url, older_module) == older.VERSION


def test_a_second_load_is_refused_with_the_version_that_is_there(server: Server) -> None:
    load(server.url)
    with pytest.raises(AlreadyLoaded) as caught:
        load(server.url)
    assert caught.value.same
    assert caught.value.version == emq_native.__version__


def test_no_version_is_loaded_over_another(server: Server, older_module: str) -> None:
    load(server.url, older_module)
    with pytest.raises(AlreadyLoaded, match=f"{older.VERSION}; this package has {emq_native.__version__}") as caught:
        load(server.url)
    assert not caught.value.same
    assert probe(server.url).module_version == older.VERSION


def test_a_foreign_module_of_the_same_name_is_in_the_way(tmp_path: Path) -> None:
    with Server(module=older.build_foreign(tmp_path), config=OPEN) as server:
        assert probe(server.url).module == "absent"
        assert "not this one" in dict(probe(server.url).open)["module"]
        with pytest.raises(AlreadyLoaded, match=r"version 3\.2\.1"):
            load(server.url)


def test_a_module_that_this_user_may_not_call_is_loaded_already() -> None:
    config = {**OPEN, "user": "default on nopass ~* &* +@all -@emq"}
    with Server(config=config) as server, pytest.raises(AlreadyLoaded):
        load(server.url)


def test_a_server_that_takes_no_modules_says_how_it_would() -> None:
    with Server(module=False) as server:
        with pytest.raises(LoadDisabled, match="enable-module-command local") as caught:
            load(server.url)
        assert caught.value.path == module_path()
        assert refused_without_a_trace(server)


def test_a_server_without_the_command_is_told_from_one_that_forbids_it() -> None:
    config = {"rename-command": 'MODULE ""'}
    with Server(module=False, config=config) as server, pytest.raises(LoadDisabled, match="no MODULE command"):
        load(server.url)


def test_a_user_who_may_not_load_is_told() -> None:
    with Server(module=False, config={**OPEN, "user": "default on nopass ~* &* +@all -module"}) as server:
        with pytest.raises(LoadDenied, match="NOPERM"):
            load(server.url)
        assert refused_without_a_trace(server)


def test_a_user_who_is_not_known_is_told() -> None:
    with Server(module=False, config={**OPEN, "requirepass": "secret"}) as server, pytest.raises(PermissionDenied):
        load(f"redis://:wrong@127.0.0.1:{server.port}")


def test_a_relative_path_is_refused_before_anything_is_sent(server: Server) -> None:
    with pytest.raises(BadModuleFile, match="not absolute"):
        load(server.url, "emq.so")
    assert server.client().info("commandstats").get("cmdstat_module|load") is None


def test_a_path_where_nothing_is_is_told(server: Server, tmp_path: Path) -> None:
    with pytest.raises(BadModuleFile, match="there is no"):
        load(server.url, tmp_path / "emq.so")
    assert refused_without_a_trace(server)


def test_a_directory_is_told(server: Server, tmp_path: Path) -> None:
    with pytest.raises(BadModuleFile, match="is no file"):
        load(server.url, tmp_path)
    assert refused_without_a_trace(server)


def test_a_missing_execute_bit_is_told(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "emq.so"
    file.write_bytes(Path(module_path()).read_bytes())
    file.chmod(0o644)
    with pytest.raises(BadModuleFile, match=r"chmod \+x"):
        load(server.url, file)
    file.chmod(0o755)
    assert load(server.url, file) == emq_native.__version__


def test_a_file_that_is_no_module_is_the_logs_to_explain(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "emq.so"
    file.write_text("no module")
    file.chmod(0o755)
    with pytest.raises(LoadFailed, match="its log says why") as caught:
        load(server.url, file)
    assert type(caught.value) is LoadFailed
    assert "invalid ELF header" in server.log() or "file too short" in server.log()
    assert refused_without_a_trace(server)


def test_without_the_servers_process_id_nothing_is_said_about_the_file(tmp_path: Path) -> None:
    with Server(module=False, config={**OPEN, "user": "default on nopass ~* &* +@all -info"}) as server:
        with pytest.raises(LoadFailed, match="its log says why") as caught:
            load(server.url, tmp_path / "emq.so")
        assert type(caught.value) is LoadFailed


def test_a_node_where_nobody_listens_is_unavailable(server: Server) -> None:
    url = server.url
    server.stop()
    with pytest.raises(Unavailable):
        load(url)


def test_a_path_with_a_space_is_loaded(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "a folder" / "emq.so"
    file.parent.mkdir()
    file.write_bytes(Path(module_path()).read_bytes())
    file.chmod(0o755)
    assert load(server.url, file) == emq_native.__version__


def test_the_errors_survive_pickling() -> None:
    path = "/emq.so"
    for error in (AlreadyLoaded(path, None, "1.0.0"), LoadFailed(path, "text"), LoadDisabled(path, "text")):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), again.path) == (type(error), str(error), path)
