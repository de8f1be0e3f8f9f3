"""The command `doctor` on servers to which each fault was really done."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
import redis
from tests.cli.conftest import PROGRAM, Run
from tests.server import older

import emq_native
from emq_native import provision
from emq_native.doctor import named
from emq_native.server import Server, form_cluster
from emq_native.session import Session
from emq_native.verbs import VERBS

SOUND = {"appendonly": "yes", "hash-max-listpack-value": 256, "enable-debug-command": "local"}
TRANSITIONS = len(VERBS.keys() - {"emq.version", "tra.capabilities"})
USERS = [
    "worker on >secret ~emq:{orders}* %R~{emq}:version -@all +@emq +get +select +hello +client|setinfo +ping",
    "half on >secret ~emq:{orders}* %R~{emq}:version -@all +emq.claim +emq.complete +get +ping",
    "elsewhere on >secret ~emq:{fills}* -@all +@emq +get +ping",
    "nobody on >secret -@all",
]


@pytest.fixture(scope="module")
def sound_server() -> Iterator[Server]:
    with Server(config={**SOUND, "user": USERS}) as server:
        yield server


@pytest.fixture
def sound(sound_server: Server) -> Iterator[Server]:
    """A node of wire 6 with nothing wrong, and one queue with a job."""
    with sound_server.client() as client:
        client.flushall()
        before = client.config_get("*")
        provision.claim(sound_server.url, wire=6)
        with emq_native.connect(sound_server.url) as bus:
            bus.queue("orders").enqueue(b"x")
        yield sound_server
        for name in ("maxmemory-policy", "maxmemory", "timeout", "hash-max-listpack-value", "min-replicas-to-write"):
            client.config_set(name, before[name])


@pytest.fixture
def told(run: Run) -> Callable[..., dict[str, dict[str, Any]]]:
    """`told(url)["fence"]`: the last finding of each check, which the test expects to be one."""

    def ask(*words: str) -> dict[str, dict[str, Any]]:
        document = json.loads(run("doctor", *words, "--json").stdout)
        assert document["error"] is None, document
        return {finding["check"]: finding for finding in document["findings"]}

    return ask


Told = Callable[..., dict[str, dict[str, Any]]]


def as_user(server: Server, name: str) -> str:
    return f"redis://{name}:secret@127.0.0.1:{server.port}/0"


def test_a_sound_node_has_nothing_but_ok(run: Run, told: Told, sound: Server) -> None:
    assert {name: each["verdict"] for name, each in told(sound.url).items() if each["verdict"] != "ok"} == {}
    shown = run("doctor", sound.url, "--strict")
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert all(line.startswith("ok ") for line in shown.stdout.splitlines())


def test_it_names_server_module_file_wire_fence_and_loss_window(told: Told, sound: Server) -> None:
    found = told(sound.url)
    assert found["server"]["text"] == f"valkey {sound.version}"
    assert found["module"]["text"] == f"{emq_native.__version__} from {emq_native.module_path()}, as in this package"
    assert found["wire"]["text"].startswith("6:")
    assert found["fence"]["text"].startswith("echomq:6.0.0")
    assert "up to 1 s" in found["persistence"]["text"]


def test_examining_changes_and_replicates_nothing(run: Run, sound: Server) -> None:
    def state(client: redis.Redis) -> tuple[Any, ...]:
        offset = client.info("replication")["master_repl_offset"]
        return client.execute_command("DEBUG", "DIGEST"), offset, client.config_get("*")

    with sound.client() as client:
        before = state(client)
        client.set("moves", "it")
        moved = state(client)
        assert moved[0] != before[0]
        assert moved[1] > before[1]
        assert run("doctor", sound.url).exit_code == 0
        assert state(client) == moved


@pytest.mark.parametrize(
    ("name", "value", "check", "verdict"),
    [
        ("maxmemory-policy", "allkeys-lru", "eviction", "fail"),
        ("maxmemory-policy", "volatile-ttl", "eviction", "ok"),
        ("timeout", "60", "clients", "warn"),
        ("hash-max-listpack-value", "64", "rows", "warn"),
        ("min-replicas-to-write", "1", "replication", "fail"),
        ("maxmemory", "1mb", "memory", "fail"),
    ],
)
def test_a_setting_is_judged_and_its_fix_mends_it(
    run: Run, told: Told, sound: Server, name: str, value: str, check: str, verdict: str
) -> None:
    with sound.client() as client:
        client.config_set(name, value)
        found = told(sound.url)[check]
        assert found["verdict"] == verdict
        assert run("doctor", sound.url).exit_code == (verdict == "fail")
        if found["fix"]:
            words = shlex.split(found["fix"])
            assert words[:3] == ["valkey-cli", "-u", sound.url]
            client.execute_command(*words[3:])
            assert told(sound.url)[check]["verdict"] == "ok"


def test_strict_makes_a_warning_fail(run: Run, sound: Server) -> None:
    with sound.client() as client:
        client.config_set("timeout", 60)
    assert run("doctor", sound.url).exit_code == 0
    shown = run("doctor", sound.url, "--strict")
    assert shown.exit_code == 1
    assert "1 warn" in shown.stderr


@pytest.mark.parametrize("value", [None, "echomq:5.0.0", "", ["list"]])
def test_a_fence_that_admits_nobody_fails(run: Run, told: Told, sound: Server, value: object) -> None:
    with sound.client() as client:
        client.delete("{emq}:version")
        if isinstance(value, list):
            client.rpush("{emq}:version", *value)
        elif value is not None:
            client.set("{emq}:version", str(value))
    found = told(sound.url)["fence"]
    assert found["verdict"] == "fail"
    assert run("doctor", sound.url).exit_code == 1
    words = shlex.split(found["fix"])
    if words[0] == "emq-native":
        assert run(*words[1:]).exit_code == 0
    else:
        with sound.client() as client:
            client.execute_command(*words[3:])
    assert told(sound.url)["fence"]["verdict"] == "ok"


def test_a_fence_that_expires_fails_and_is_kept_by_the_fix(told: Told, sound: Server) -> None:
    with sound.client() as client:
        client.expire("{emq}:version", 1000)
        found = told(sound.url)["fence"]
        assert found["verdict"] == "fail"
        client.execute_command(*shlex.split(found["fix"])[3:])
    assert told(sound.url)["fence"]["verdict"] == "ok"


@pytest.mark.parametrize("names", [["orders"], ["fills", "orders"]], ids=len)
def test_queues_that_are_paused_are_told_and_the_fix_resumes_them(told: Told, sound: Server, names: list[str]) -> None:
    with emq_native.connect(sound.url) as bus:
        assert told(sound.url)["paused"]["verdict"] == "ok"
        for name in names:
            bus.queue(name).enqueue(b"x")
            bus.queue(name).pause()
        found = told(sound.url)["paused"]
        assert found["verdict"] == "warn"
        assert all(name in found["text"] for name in names)
        fix = found["fix"].replace("emq-native", PROGRAM)
        subprocess.run(["sh", "-c", fix], check=True, timeout=60)
    assert told(sound.url)["paused"]["verdict"] == "ok"


def test_jobs_that_are_due_and_leases_that_ended_want_somebody_who_moves_them(told: Told, sound: Server) -> None:
    with emq_native.connect(sound.url) as bus, sound.client() as client:
        queue = bus.queue("orders")
        queue.enqueue_at(b"x", datetime.fromtimestamp(time.time() - 3600, timezone.utc))
        job = queue.claim(3600)
        assert job is not None
        assert told(sound.url)["leases"]["verdict"] == "ok"
        client.zadd("emq:{orders}:active", {job.id: 1})
        found = told(sound.url)
        for check in ("due", "leases"):
            assert found[check]["verdict"] == "warn"
            assert "orders" in found[check]["text"]
            client.execute_command(*shlex.split(found[check]["fix"].partition("#")[0])[3:])
    found = told(sound.url)
    assert (found["due"]["verdict"], found["leases"]["verdict"]) == ("ok", "ok")


def test_stray_keys_and_queues_that_cannot_be_read(run: Run, sound: Server) -> None:
    with sound.client() as client:
        client.mset({"emq:{orders}:whatever": "x", "emq:{no name}:pending": "x", "emq:{broken}:pending": "x"})
        client.mset({"emq:{orders}:limiter": "x", "emq:{orders}:de:x": "x"})  # reserved, so not stray
    document = json.loads(run("doctor", sound.url, "--json").stdout)
    found = {each["verdict"]: each["text"] for each in document["findings"] if each["check"] == "keys"}
    assert found["warn"].startswith(("emq:{no name}:pending, emq:{orders}:whatever", "emq:{orders}:whatever, emq:{no"))
    assert "limiter" not in found["warn"]
    assert found["fail"].startswith("broken cannot be read: WRONGTYPE")


def test_a_node_of_wire_4_is_sound_without_the_module(run: Run) -> None:
    with Server(module=False, config=SOUND) as server:
        provision.claim(server.url, wire=4)
        with emq_native.connect(server.url) as bus:
            bus.queue("orders").enqueue(b"x")
        shown = run("doctor", server.url, "--strict")
    assert shown.exit_code == 0
    assert "the scripts own the node" in shown.stdout
    scripted = sum(verb.scripted for verb in VERBS.values())
    assert f"emq:{{orders}}: {scripted} of {scripted} transitions" in shown.stdout


def test_a_node_that_the_module_owns_without_having_it_fails(told: Told, node: Server) -> None:
    provision.claim(node.url, wire=6)
    found = told(node.url)
    assert found["module"]["verdict"] == "fail"
    assert found["module"]["fix"] == f"emq-native load {node.url}"
    assert found["rights"]["verdict"] == "open"


def test_a_module_of_another_version_is_a_warning_with_both_files(
    told: Told, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = older.build(tmp_path_factory.mktemp("older"))
    with Server(module=other) as server:
        found = told(server.url)["module"]
    assert found["verdict"] == "warn"
    assert f"{older.VERSION} from {other}" in found["text"]
    assert emq_native.module_path() in found["fix"]


def test_a_replica_is_examined_as_one(told: Told, sound: Server) -> None:
    with Server(module=False, replica_of=sound) as replica:
        found, primary = told(replica.url), told(sound.url)
        sound_port = sound.port
    assert found["replication"]["verdict"] == "warn"
    assert found["replication"]["fix"] == f"emq-native doctor redis://127.0.0.1:{sound_port}"
    assert found["module"]["verdict"] == "warn"
    assert "WAIT 1" in primary["replication"]["text"]


def test_a_node_without_persistence_is_a_warning(told: Told, node: Server) -> None:
    found = told(node.url)["persistence"]
    assert (found["verdict"], found["text"].partition(":")[0]) == ("warn", "none")


@pytest.mark.parametrize(
    ("user", "verdict", "words"),
    [
        ("worker", "ok", f"on emq:{{orders}}: {TRANSITIONS} of {TRANSITIONS} "),
        ("half", "warn", f"2 of {TRANSITIONS} "),
        ("elsewhere", "fail", "no transition at all"),
        ("nobody", "fail", "no transition at all"),
    ],
)
def test_the_rights_of_a_user_are_tried_for_each_transition(
    told: Told, sound: Server, user: str, verdict: str, words: str
) -> None:
    found = told(sound.url, "--user", user)["rights"]
    assert found["verdict"] == verdict
    assert words in found["text"]


def test_the_rights_are_tried_on_a_queue_that_the_user_may_look_at(told: Told, sound: Server) -> None:
    with emq_native.connect(sound.url) as bus:
        bus.queue("fills").enqueue(b"x")
    for user, queue in (("worker", "orders"), ("elsewhere", "fills"), ("nobody", "fills")):
        assert f"{user} on emq:{{{queue}}}: " in told(sound.url, "--user", user)["rights"]["text"]


def test_the_rights_are_those_for_the_queue_that_was_named(told: Told, sound: Server) -> None:
    assert told(sound.url, "--user", "elsewhere", "--queue", "fills")["rights"]["text"].startswith(
        "elsewhere on emq:{fills}"
    )
    assert told(sound.url, "--user", "worker", "--queue", "fills")["rights"]["verdict"] == "fail"


def test_without_a_queue_the_commands_are_tried_and_no_key(told: Told, sound: Server) -> None:
    with sound.client() as client:
        client.delete(*client.keys("emq:*"))
    found = {user: told(sound.url, "--user", user)["rights"] for user in ("worker", "nobody")}
    assert found["worker"]["text"].startswith("worker, without a queue to try it on: ")
    assert (found["worker"]["verdict"], found["nobody"]["verdict"]) == ("ok", "fail")


def test_a_queue_that_a_user_may_not_read_is_open(told: Told, sound: Server) -> None:
    with sound.client() as client:
        client.execute_command("ACL", "SETUSER", "lister", "on", ">secret", "-@all", "+scan", "+ping")
    found = told(as_user(sound, "lister"))
    assert {found[check]["verdict"] for check in ("due", "leases")} == {"open"}
    assert found["keys"]["verdict"] == "ok"


@pytest.mark.parametrize(
    ("target", "cli", "url"),
    [
        ("redis://h:1/0", "valkey-cli -u redis://h:1/0", "redis://h:1/0"),
        ("rediss://h:1?ssl_cert_reqs=none", "valkey-cli -u 'rediss://h:1?ssl_cert_reqs=none'", None),
        ("redis://u:secret@h:1", 'valkey-cli -u "$EMQ_URL"', '"$EMQ_URL"'),
        ("unix:///tmp/x.sock", "valkey-cli -s /tmp/x.sock", "unix:///tmp/x.sock"),
        (redis.Redis(host="h", port=1), "valkey-cli -h h -p 1", "redis://h:1"),
    ],
)
def test_commands_to_paste_name_the_node(target: object, cli: str, url: str | None) -> None:
    found = named(target, Session(target), cluster=False)
    assert found == (cli, url or cli.removeprefix("valkey-cli -u "))


@pytest.mark.parametrize("user", ["worker", "half", "elsewhere", "nobody"])
def test_what_a_user_may_not_ask_is_open_and_no_failure(run: Run, told: Told, sound: Server, user: str) -> None:
    url = as_user(sound, user)
    shown = run("doctor", url)
    assert shown.exit_code == 0
    assert "secret" not in shown.stdout
    found = told(url)
    assert {found[check]["verdict"] for check in ("rights", "persistence", "rows", "clock")} == {"open"}
    assert found["rights"]["fix"].startswith(f"emq-native doctor --user {user} ")
    assert (found["fence"]["verdict"] == "ok") == (user in ("worker", "half"))


def test_a_node_that_does_not_answer_has_no_verdict(run: Run, nowhere: str) -> None:
    shown = run("doctor", nowhere)
    assert shown.exit_code == 3
    assert "refused" in shown.stderr
    document = run("doctor", nowhere, "--json")
    assert document.exit_code == 3
    assert json.loads(document.stdout)["verdict"] is None


def test_a_login_that_the_node_does_not_know_has_no_verdict(run: Run, sound: Server) -> None:
    assert run("doctor", f"redis://nobody:wrong@127.0.0.1:{sound.port}").exit_code == 3


def test_a_node_that_loads_its_data_has_no_verdict(run: Run, tmp_path: Path) -> None:
    slow = {"key-load-delay": 2000, "loading-process-events-interval-bytes": 1024}
    with Server(module=False, directory=tmp_path, config={"save": "3600 1"}) as server:
        with server.client().pipeline() as pipeline:
            for number in range(5000):
                pipeline.set(f"key:{number}", "x" * 100)
            pipeline.execute()
        server.restart(config=slow, ready=False)
        shown = run("doctor", server.url)
        server.kill()
    assert shown.exit_code == 3
    assert "LOADING" in shown.stderr


@pytest.mark.parametrize("words", [["--queue", "no name"], ["http://127.0.0.1"]])
def test_a_wrong_command_line(run: Run, sound: Server, words: list[str]) -> None:
    assert run("doctor", *words, *([sound.url] if words[0].startswith("--") else [])).exit_code == 2


def test_a_snapshot_that_failed_stops_writes_and_is_told(run: Run, told: Told) -> None:
    with Server(module=False, config={"save": "3600 1", "dbfilename": "x.rdb"}) as server, server.client() as client:
        provision.claim(server.url, wire=4)
        Path(server.directory, "x.rdb").mkdir()  # so that no file can be put there
        client.bgsave()
        while client.info("persistence")["rdb_last_bgsave_status"] == "ok":
            time.sleep(0.01)
        found = told(server.url)["saves"]
        stopped = run("fence", "move", server.url, "--from", "4", "--to", "6")
        Path(server.directory, "x.rdb").rmdir()
    assert found["verdict"] == "fail"
    assert "MISCONF" in stopped.stderr


@pytest.mark.cluster
def test_a_cluster_is_examined_primary_by_primary_and_queue_by_queue(run: Run) -> None:
    servers = [Server(config={**SOUND, "cluster-enabled": "yes"}).start() for _ in range(3)]
    try:
        form_cluster(servers)
        for name in ("orders", "fills"):
            provision.claim(servers[0].url, wire=6, queue=name)
        with emq_native.connect(servers[0].url, cluster=True) as bus:
            for name in ("orders", "fills"):
                bus.queue(name).enqueue(b"x")
        assert run("doctor", servers[0].url, "--strict").exit_code == 0
        with redis.RedisCluster.from_url(servers[0].url) as client:
            client.delete("emq:{orders}:version")
        document = json.loads(run("doctor", servers[0].url, "--json").stdout)
        assert len({finding["node"] for finding in document["findings"]}) == 3
        (lacking,) = [each for each in document["findings"] if each["verdict"] == "fail"]
        assert (lacking["check"], "orders" in lacking["text"]) == ("fence", True)
        path = f"{os.path.dirname(PROGRAM)}:{os.environ['PATH']}"
        subprocess.run(["bash", "-c", lacking["fix"]], env={**os.environ, "PATH": path}, check=True)
        assert run("doctor", servers[0].url, "--strict").exit_code == 0
        servers[2].kill()
        lost = json.loads(run("doctor", servers[0].url, "--json").stdout)
        assert any("does not answer" in each["text"] for each in lost["findings"] if each["verdict"] == "fail")
    finally:
        for server in servers:
            server.stop()
