"""Settings of the module: in valkey.conf, on the command line, in MODULE LOADEX, by CONFIG SET, kept by REWRITE."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from emq_native import module_path
from emq_native.server import Server, ServerError, find_binary

PAGE = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()
DEFAULTS = {"emq.max-waiters": "10000"}


@pytest.fixture
def conf(tmp_path: Path) -> Callable[[str], Server]:
    """Makes a server that is started with a valkey.conf of these lines, and no directive about the module beside it."""

    def make(text: str) -> Server:
        file, program = tmp_path / "valkey.conf", tmp_path / "valkey-server"
        file.write_text(text)
        program.write_text(f'#!/bin/sh\nexec "{find_binary()}" "{file}" "$@"\n')
        program.chmod(0o755)
        return Server(binary=program, module=False)

    return make


@pytest.fixture
def client() -> Iterator[redis.Redis]:
    """Of a server that the test may do anything to."""
    with Server() as server, server.client(decode_responses=True) as client:
        yield client


def settings(server: Server) -> dict[str, str]:
    with server.client(decode_responses=True) as client:
        found: dict[str, str] = client.config_get("emq.*")
        return found


def is_loaded(client: redis.Redis) -> bool:
    return "emq" in str(client.module_list())


def test_every_setting_has_its_default_and_stands_in_the_guide() -> None:
    with Server() as server:
        assert settings(server) == DEFAULTS
    shown = dict(re.findall(r"^\| `(emq\.\S+)` \((\d+)\) \|", PAGE, re.MULTILINE))
    assert shown == DEFAULTS


@pytest.mark.parametrize("order", ["{load}\n{set}\n", "{set}\n{load}\n"], ids=["after", "before"])
def test_a_line_of_the_configuration_file_sets_it(conf: Callable[[str], Server], order: str) -> None:
    text = order.format(load=f"loadmodule {module_path()}", set="emq.max-waiters 7")
    with conf(text) as server:
        assert settings(server) == {"emq.max-waiters": "7"}


def test_a_word_of_the_command_line_sets_it() -> None:
    with Server(config={"emq.max-waiters": 7}) as server:
        assert settings(server) == {"emq.max-waiters": "7"}


def test_module_loadex_sets_it() -> None:
    with Server(module=False, config={"enable-module-command": "local"}) as server, server.client() as client:
        client.execute_command("MODULE", "LOADEX", module_path(), "CONFIG", "emq.max-waiters", "7")
        assert settings(server) == {"emq.max-waiters": "7"}


@pytest.mark.parametrize(
    "words",
    [["CONFIG", "emq.max-waiters", "-1"], ["CONFIG", "emq.max-waiterz", "7"], ["ARGS", "7"]],
    ids=["value", "name", "argument"],
)
def test_module_loadex_loads_nothing_with_a_setting_that_is_wrong(words: list[str]) -> None:
    with Server(module=False, config={"enable-module-command": "local"}) as server, server.client() as client:
        with pytest.raises(redis.ResponseError):
            client.execute_command("MODULE", "LOADEX", module_path(), *words)
        assert not is_loaded(client)
        client.execute_command("MODULE", "LOADEX", module_path(), "CONFIG", "emq.max-waiters", "7")
        assert settings(server) == {"emq.max-waiters": "7"}


@pytest.mark.parametrize("at_start", [True, False])
def test_a_module_that_was_loaded_stays(at_start: bool) -> None:
    config = {"enable-module-command": "local"}
    with Server(module=at_start, config=config) as server, server.client(decode_responses=True) as client:
        if not at_start:
            client.module_load(str(module_path()))
            with pytest.raises(redis.ResponseError, match="unloading module"):
                client.module_unload("emq")
        client.acl_setuser("somebody", enabled=True, commands=["+emq.claim"])
        with pytest.raises(redis.ResponseError, match="unloading module"):
            client.module_unload("emq")
        client.acl_deluser("somebody")
        with pytest.raises(redis.ResponseError, match="unloading module"):
            client.module_unload("emq")
        assert is_loaded(client)
        assert client.config_get("emq.*") == DEFAULTS


@pytest.mark.parametrize("line", ["emq.max-waiters -1", "emq.max-waiters 1000001", "emq.max-waiters", "emq.waiters 5"])
def test_a_server_does_not_start_with_a_setting_that_is_wrong(conf: Callable[[str], Server], line: str) -> None:
    with pytest.raises(ServerError), conf(f"loadmodule {module_path()}\n{line}\n"):
        pass


def test_config_set_changes_it_and_several_at_once(client: redis.Redis) -> None:
    client.config_set("emq.max-waiters", 7)
    assert client.config_get("emq.max-waiters") == {"emq.max-waiters": "7"}
    client.config_set("emq.max-waiters", 8, "maxmemory-policy", "volatile-lru")
    assert client.config_get("emq.max-waiters", "maxmemory-policy") == {
        "emq.max-waiters": "8",
        "maxmemory-policy": "volatile-lru",
    }
    assert client.info("emq")["emq_max_waiters"] == 8


@pytest.mark.parametrize("value", ["-1", "1000001", "1e3", "07x", "many", ""])
def test_a_value_that_is_wrong_changes_nothing(client: redis.Redis, value: str) -> None:
    client.config_set("emq.max-waiters", 7)
    with pytest.raises(redis.ResponseError):
        client.config_set("maxmemory-policy", "volatile-lru", "emq.max-waiters", value)
    assert client.config_get("emq.*") == {"emq.max-waiters": "7"}
    assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}


def test_what_was_set_survives_a_rewrite_and_a_restart(conf: Callable[[str], Server], tmp_path: Path) -> None:
    with conf(f"loadmodule {module_path()}\n") as server:
        with server.client() as client:
            client.config_rewrite()
            assert "max-waiters" not in (tmp_path / "valkey.conf").read_text()
            client.config_set("emq.max-waiters", 7)
            client.config_rewrite()
        server.restart()
        assert settings(server) == {"emq.max-waiters": "7"}
        with server.client() as client:
            client.config_set("emq.max-waiters", 8)
            client.config_rewrite()
        server.restart()
        assert settings(server) == {"emq.max-waiters": "8"}
        assert (tmp_path / "valkey.conf").read_text().count("loadmodule") == 1


def test_what_loadex_set_survives_a_rewrite_and_a_restart(conf: Callable[[str], Server]) -> None:
    with conf("enable-module-command local\n") as server:
        with server.client() as client:
            client.execute_command("MODULE", "LOADEX", module_path(), "CONFIG", "emq.max-waiters", "7")
            client.config_rewrite()
        server.restart()
        assert settings(server) == {"emq.max-waiters": "7"}
