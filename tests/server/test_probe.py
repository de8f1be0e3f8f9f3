"""What `probe` makes of a node, locked down or not, up or not (case 89), and of settings that endanger jobs (case 80).

The server never denies HELLO, so a locked-down user knows it; a server that renamed it is asked by INFO.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
import valkey
from tests.server import older

import emq_native
from emq_native import Probe, connect, mint, probe
from emq_native.server import Server, form_cluster

SERVES_NOTHING = "on >secret ~* -@all +ping +get +pttl +echo"


@pytest.fixture(scope="module")
def plain() -> Iterator[Server]:
    """A server without the module, with users of few rights."""
    users = [f"nobody {SERVES_NOTHING}", "blind on >secret ~* +@all -hello -info -command -module -config -cluster"]
    with Server(module=False, config={"user": users}) as server:
        yield server


@pytest.fixture(scope="module")
def native() -> Iterator[Server]:
    """A server with the module."""
    users = [f"nobody {SERVES_NOTHING}", "reader on >secret ~* +@all -emq.version -module -hello"]
    with Server(config={"user": users}) as server:
        yield server


@pytest.fixture(autouse=True)
def empty(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    for name in ("plain", "native"):
        if name in request.fixturenames:
            request.getfixturevalue(name).client().flushall()


def as_user(server: Server, name: str) -> str:
    return f"redis://{name}:secret@127.0.0.1:{server.port}/0"


def reasons(found: Probe) -> dict[str, str]:
    return dict(found.open)


def test_a_node_where_nobody_listens_is_an_error_and_no_exception() -> None:
    with Server(module=False) as server:
        url = server.url
    found = probe(url)
    assert not found.reachable
    assert found.error == "Unavailable"
    assert "refused" in (found.detail or "")
    assert found.module == "unknown"
    assert found.lacks() != ()


@pytest.mark.parametrize("user", ["nobody:wrong", "unknown:secret"])
def test_a_user_that_the_node_does_not_know_is_an_error(plain: Server, user: str) -> None:
    found = probe(f"redis://{user}@127.0.0.1:{plain.port}")
    assert found.error == "PermissionDenied"
    assert (found.detail or "").startswith("WRONGPASS")


def test_a_missing_password_is_an_error() -> None:
    with Server(module=False, config={"requirepass": "secret"}) as server:
        found = probe(f"redis://127.0.0.1:{server.port}")
    assert found.error == "PermissionDenied"
    assert (found.detail or "").startswith("NOAUTH")


@pytest.mark.parametrize("target", [5, None, "", "http://localhost", "redis://localhost:port", object()])
def test_what_is_no_node_at_all_raises_nothing(target: object) -> None:
    found = probe(target)
    assert found.error in ("InvalidArgument", "TypeError")
    assert found.address == "?"


def test_an_asyncio_client_is_told_to_be_none_for_this() -> None:
    found = probe(redis.asyncio.Redis())
    assert found.error == "TypeError"


def test_a_node_without_the_module_tells_so(plain: Server) -> None:
    found = probe(plain.url)
    assert found == Probe(
        address=f"127.0.0.1:{plain.port}",
        server="valkey",
        server_version=plain.version,
        role="primary",
        cluster=False,
        module="absent",
        fence=found.fence,
        eviction="noeviction",
        maxmemory=0,
        open=(("capabilities", "no module and no claim for the scripts"),),
    )
    assert str(found.fence) == "unclaimed"
    assert found.wire is None


def test_a_locked_down_user_still_learns_that_the_module_is_absent(plain: Server) -> None:
    found = probe(as_user(plain, "nobody"))
    assert found.reachable
    assert found.module == "absent"
    assert found.server_version == plain.version
    assert "NOPERM" in reasons(found)["eviction"]


def test_a_user_without_the_usual_questions_still_learns_the_rest(plain: Server) -> None:
    plain.client().set("{emq}:version", "echomq:4.0.0")
    found = probe(as_user(plain, "blind"))
    assert found.reachable
    assert found.module == "absent"
    assert found.wire == 4


def test_a_loaded_module_is_told_with_version_and_capabilities(native: Server) -> None:
    native.client().set("{emq}:version", "echomq:6.0.0")
    found = probe(native.url)
    assert (found.module, found.module_version, found.module_wire) == ("loaded", emq_native.__version__, 6)
    assert found.wire == 6
    assert found.capabilities is not None
    assert "emq.claim/1" in found.capabilities
    assert not found.other_version
    assert found.warnings == ()
    assert found.lacks(["emq.claim/1", "emq.complete"], wire=6) == ()


def test_a_denied_module_is_told_from_an_absent_one(native: Server) -> None:
    found = probe(as_user(native, "nobody"))
    assert (found.module, found.module_version) == ("denied", emq_native.__version__)
    assert found.module_wire is None
    assert "NOPERM" in reasons(found)["module"]
    assert "NOPERM" in reasons(found)["capabilities"]


def test_a_server_without_hello_is_asked_in_other_words() -> None:
    users = [f"nobody {SERVES_NOTHING}", "lister on >secret ~* +@all -emq.version"]
    with Server(config={"rename-command": 'HELLO ""', "user": users}) as server:
        found, blind, lister = (
            probe(url) for url in (server.url, as_user(server, "nobody"), as_user(server, "lister"))
        )
    assert (found.server, found.server_version, found.role) == ("valkey", server.version, "primary")
    assert found.cluster is False
    assert (blind.server, blind.cluster, blind.module, blind.module_version) == (None, None, "denied", None)
    assert "unknown command" in reasons(blind)["server"]
    assert "cluster mode" in reasons(blind)["fence"]
    assert (lister.module, lister.module_version) == ("denied", emq_native.__version__)


def test_another_version_is_told(older_module: str) -> None:
    with Server(module=older_module) as server:
        found = probe(server.url)
    assert (found.module, found.module_version) == ("loaded", older.VERSION)
    assert found.other_version
    assert any(older.VERSION in warning and emq_native.__version__ in warning for warning in found.warnings)


@pytest.mark.parametrize(
    ("value", "shown", "wire"),
    [
        ("echomq:6.0.0", "echomq:6.0.0", 6),
        ("echomq:4.0.0", "echomq:4.0.0", 4),
        ("echomq:5.0.0", "echomq:5.0.0", None),
        ("", "an empty string", None),
        (b"\xff", "\\xff", None),
    ],
)
def test_the_fence_is_told(native: Server, value: str | bytes, shown: str, wire: int | None) -> None:
    native.client().set("{emq}:version", value)
    found = probe(native.url)
    assert str(found.fence) == shown
    assert found.wire == wire
    assert (found.warnings == ()) is (wire is not None)


def test_a_fence_that_is_no_string_or_expires_is_a_warning(native: Server) -> None:
    native.client().rpush("{emq}:version", "echomq:6.0.0")
    assert any("not a string" in warning for warning in probe(native.url).warnings)
    native.client().delete("{emq}:version")
    native.client().set("{emq}:version", "echomq:6.0.0", ex=1000)
    assert any("expires" in warning for warning in probe(native.url).warnings)


def test_a_fence_that_may_not_be_read_stays_open() -> None:
    with Server(module=False, config={"user": "reader on >secret ~emq:* +@all"}) as server:
        found = probe(as_user(server, "reader"))
    assert found.fence is None
    assert "NOPERM" in reasons(found)["fence"]


def test_a_claim_without_the_module_is_a_warning_and_no_wire(plain: Server) -> None:
    plain.client().set("{emq}:version", "echomq:6.0.0")
    found = probe(plain.url)
    assert found.wire is None
    assert any("not loaded" in warning for warning in found.warnings)


def test_a_node_of_wire_4_serves_what_the_scripts_serve(native: Server) -> None:
    native.client().set("{emq}:version", "echomq:4.0.0")
    found = probe(native.url)
    assert found.lacks(["emq.claim/1", "emq.gclaim/1"], wire=4) == ()
    assert found.lacks(["emq.next/1"]) == (f"{found.address}: emq.next/1 is not served",)
    assert len(found.lacks(wire=6)) == 1


@pytest.mark.parametrize(
    ("policy", "limit", "warned"),
    [
        ("noeviction", 0, None),
        ("volatile-lru", 0, None),
        ("allkeys-lru", 0, "as soon as a limit is set"),
        ("allkeys-random", 100_000_000, "when memory is full"),
    ],
)
def test_an_eviction_policy_that_deletes_jobs_is_a_warning(
    plain: Server, policy: str, limit: int, warned: str | None
) -> None:
    client = plain.client()
    client.config_set("maxmemory", limit)
    client.config_set("maxmemory-policy", policy)
    try:
        found = probe(plain.url)
    finally:
        client.config_set("maxmemory", 0)
        client.config_set("maxmemory-policy", "noeviction")
    assert (found.eviction, found.maxmemory) == (policy, limit)
    assert [warned in warning for warning in found.warnings if warned] == [True] * (warned is not None)
    assert len(found.warnings) == (warned is not None)


def test_a_replica_tells_its_role_and_the_fence(plain: Server) -> None:
    plain.client().set("{emq}:version", "echomq:4.0.0")
    with Server(module=False, replica_of=plain) as replica:
        found = probe(replica.url)
    assert found.role == "replica"
    assert found.fence is not None
    assert found.fence.wire == 4


def test_a_node_that_loads_its_data_has_no_verdict_but_is_known(tmp_path: Path) -> None:
    slow = {"key-load-delay": 5_000, "loading-process-events-interval-bytes": 1024}
    with Server(module=False, directory=tmp_path, config={"save": "3600 1", "rdbcompression": "no"}) as server:
        with server.client().pipeline() as pipeline:
            for number in range(4000):
                pipeline.set(f"key:{number}", "x" * 1024)
            pipeline.execute()
        server.restart(config=slow, ready=False)
        found = probe(server.url)
        assert found.error == "Unavailable"
        assert (found.detail or "").startswith("LOADING")
        assert (found.server, found.server_version) == ("valkey", server.version)
        assert reasons(found)["fence"].startswith("LOADING")
        assert found.module in ("absent", "unknown")
        server.kill()


def test_a_busy_node_has_no_verdict() -> None:
    with Server(module=False, config={"busy-reply-threshold": 1}) as server:

        def spin() -> None:
            with pytest.raises(redis.ResponseError):
                server.client(socket_timeout=60).eval("while true do end", 0)

        spinning = threading.Thread(target=spin)
        spinning.start()
        try:
            while (found := probe(server.url)).error is None:
                pass
            assert (found.detail or "").startswith("BUSY")
        finally:
            server.client().script_kill()
            spinning.join()


def test_a_node_that_hangs_is_an_error_after_the_clients_time_limit() -> None:
    with Server(module=False) as server:
        client = server.client(socket_timeout=0.2)
        os.kill(server.pid, signal.SIGSTOP)
        found = probe(client)
        os.kill(server.pid, signal.SIGCONT)
    assert found.error == "Unavailable"


def test_clients_of_both_libraries_and_a_bus_are_accepted(plain: Server) -> None:
    with connect(plain.url, wire=4) as bus:
        targets = [plain.client(decode_responses=True), valkey.Valkey(port=plain.port), bus]
        assert [probe(target).wire for target in targets] == [4, 4, 4]


def test_a_client_keeps_its_connections_to_itself(plain: Server) -> None:
    client = plain.client(single_connection_client=True)
    before = client.client_id()
    client.execute_command("MULTI")
    assert probe(client).reachable
    client.execute_command("DISCARD")
    assert client.client_id() == before


def test_probing_changes_nothing(native: Server) -> None:
    client = native.client()
    queue = "emq:{q}"
    client.set("{emq}:version", "echomq:6.0.0")
    client.execute_command("EMQ.ENQUEUE", queue, mint(), "payload")
    before = {key: client.dump(key) for key in client.scan_iter()}
    changes = client.info("persistence")["rdb_changes_since_last_save"]
    assert probe(native.url).wire == 6
    assert {key: client.dump(key) for key in client.scan_iter()} == before
    assert client.info("persistence")["rdb_changes_since_last_save"] == changes


def test_everything_that_is_told_fits_into_json(native: Server) -> None:
    told = json.loads(json.dumps(probe(native.url).as_dict()))
    assert told["reachable"] is True
    assert told["fence"]["key"] == "{emq}:version"
    assert told["wire"] is None


@pytest.mark.cluster
def test_every_primary_of_a_cluster_is_asked() -> None:
    modules = [True, True, False]
    servers = [Server(module=module, config={"cluster-enabled": "yes"}).start() for module in modules]
    try:
        form_cluster(servers)
        emq_native.provision.claim(servers[2].url, wire=6, queue="q")
        found = probe(servers[0].url, queue="q")
        states = {primary.address: primary.module for primary in found.primaries}
        absent = f"127.0.0.1:{servers[2].port}"
        assert states == {
            f"127.0.0.1:{servers[0].port}": "loaded",
            f"127.0.0.1:{servers[1].port}": "loaded",
            absent: "absent",
        }
        assert found.fence is not None
        assert (found.fence.key, found.fence.wire) == ("emq:{q}:version", 6)
        assert any("differ" in warning for warning in found.warnings)
        assert [reason.startswith(absent) for reason in found.lacks(["emq.claim/1"])] == [True]

        unnamed = probe(redis.RedisCluster.from_url(servers[1].url))
        assert unnamed.fence is None
        assert "name a queue" in reasons(unnamed)["fence"]

        servers[1].kill()
        found = probe(servers[0].url, queue="q")
        assert [primary.error for primary in found.primaries if not primary.reachable] == ["Unavailable"]
        assert any(reason.startswith(f"127.0.0.1:{servers[1].port}: Unavailable") for reason in found.lacks())
    finally:
        for server in servers:
            server.stop()


def test_a_queue_name_that_is_none_stays_an_open_question_in_a_cluster() -> None:
    with Server(module=False, config={"cluster-enabled": "yes"}) as server:
        server.own_slots()
        found = probe(server.url, queue="no name")
    assert found.reachable
    assert "no name" in reasons(found)["fence"]
