"""Who may do what: the categories of roles, and the users that docs/operations.md shows, made from its very text."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from emq_native import Bus, HeldJob, Worker, connect, overview, provision
from emq_native.conformance.wire import Error, Reply, Wire
from emq_native.errors import PermissionDenied
from emq_native.server import Server

PAGE = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()
ROLES = {"producer": "emq_produce", "worker": "emq_consume", "operator": "emq_operate"}
USERS = (*ROLES, "metrics")
OWN, OTHER = "emq:{orders}", "emq:{invoices}"

FORBIDDEN = (
    ["DEL", f"{OWN}:pending"],
    ["HSET", f"{OWN}:meta", "paused", "1"],
    ["HVALS", f"{OWN}:job:x"],
    ["ZADD", f"{OWN}:pending", "0", "x"],
    ["EVAL", "return 1", "0"],
    ["KEYS", "*"],
    ["FLUSHALL"],
    ["CONFIG", "GET", "*"],
    ["ACL", "LIST"],
    ["MODULE", "LIST"],
    ["SHUTDOWN", "NOSAVE"],
)
"""What none of the users may."""


def rights(user: str) -> list[str]:
    """The words after ACL SETUSER that the page shows; lines after the first are indented."""
    [shown] = re.findall(rf"^ACL SETUSER ({user} .*(?:\n +.*)*)$", PAGE, re.MULTILINE)
    words: list[str] = shown.split()
    return words


def listed(category: str) -> set[str]:
    """The commands that the page lists for a category, with those that it lists for each."""
    found: set[str] = set()
    for name in (f"`@{category}`", "each of the three"):
        [cell] = re.findall(rf"^\| {name} \| (.*) \|$", PAGE, re.MULTILINE)
        found |= {word.lower() if "." in word else f"emq.{word.lower()}" for word in cell.split(", ")}
    return found


def items(reply: Reply) -> list[Reply]:
    assert isinstance(reply, list)
    return reply


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server with every user of the page."""
    with Server() as running:
        provision.claim(running.url, wire=6)
        with running.client() as client:
            for user in USERS:
                client.execute_command("ACL", "SETUSER", *rights(user))
        yield running


@pytest.fixture
def wire(server: Server) -> Iterator[Callable[..., Wire]]:
    """A plain connection, of the administrator or of a user."""
    made: list[Wire] = []

    def make(user: str | None = None) -> Wire:
        made.append(Wire(url(server, user) if user else server.url, 2))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def bus(server: Server) -> Iterator[Callable[[str], Bus]]:
    """The connector of a user, who in the whole test is denied nothing but what the test says."""
    made: list[Bus] = []

    def make(user: str) -> Bus:
        made.append(connect(url(server, user)))
        return made[-1]

    yield make
    for each in made:
        each.close()


def url(server: Server, user: str) -> str:
    return server.url.replace("redis://", f"redis://{user}:secret@")


@pytest.fixture
def commands(wire: Callable[..., Wire]) -> dict[str, tuple[int, set[str]]]:
    """Least number of words and categories of every command of the module."""
    root = wire()
    names = [bytes(entry).partition(b"/")[0] for entry in items(root.call("TRA.CAPABILITIES"))]  # type: ignore[arg-type]
    found = {}
    for name, info in zip(names, items(root.call("COMMAND", "INFO", *names)), strict=True):
        arity, labels = items(info)[1], items(items(info)[6])
        assert isinstance(arity, int)
        found[name.decode()] = abs(arity), {getattr(label, "text", "").removeprefix("@") for label in labels}
    return found


def denied(wire: Wire, commands: dict[str, tuple[int, set[str]]], queue: str) -> set[str]:
    """The commands that the user of a connection may not call on a queue."""
    found = set()
    for name, (least, _) in commands.items():
        words = [queue] * (max(least, 2) - 1) if name != "tra.capabilities" else []
        reply = wire.call(name, *words)
        if isinstance(reply, Error) and reply.code == "NOPERM":
            found.add(name)
    return found


def allowed(user: str, commands: dict[str, tuple[int, set[str]]]) -> set[str]:
    if user == "metrics":
        return {"emq.counts", "emq.gcounts", "emq.version"}
    return {name for name, (_, labels) in commands.items() if ROLES[user] in labels}


@pytest.mark.parametrize("category", sorted(ROLES.values()))
def test_a_category_holds_the_commands_that_the_page_lists(
    category: str, commands: dict[str, tuple[int, set[str]]]
) -> None:
    assert {name for name, (_, labels) in commands.items() if category in labels} == listed(category)


def test_every_command_is_in_the_category_of_all_and_in_that_of_a_role(
    commands: dict[str, tuple[int, set[str]]],
) -> None:
    for name, (_, labels) in commands.items():
        assert "emq" in labels, name
        assert labels & {*ROLES.values()}, name


@pytest.mark.parametrize("user", USERS)
def test_a_user_may_call_the_commands_of_its_role_and_no_others(
    user: str, wire: Callable[..., Wire], commands: dict[str, tuple[int, set[str]]]
) -> None:
    assert denied(wire(user), commands, OWN) == set(commands) - allowed(user, commands)


@pytest.mark.parametrize("user", ["producer", "worker"])
def test_a_user_of_one_queue_reaches_no_other(
    user: str, wire: Callable[..., Wire], commands: dict[str, tuple[int, set[str]]]
) -> None:
    assert denied(wire(user), commands, OTHER) == set(commands) - {"tra.capabilities"}


@pytest.mark.parametrize("user", USERS)
def test_no_user_gets_past_the_commands_of_the_module(user: str, wire: Callable[..., Wire]) -> None:
    connection = wire(user)
    for words in FORBIDDEN:
        reply = connection.call(*words)
        assert isinstance(reply, Error), words
        assert reply.code == "NOPERM", words


@pytest.mark.parametrize("user", ["producer", "worker", "metrics"])
def test_only_the_operator_reads_whole_hashes(user: str, wire: Callable[..., Wire]) -> None:
    reply = wire(user).call("HGETALL", f"{OWN}:job:x")
    assert isinstance(reply, Error)
    assert reply.code == "NOPERM"


@pytest.mark.parametrize("user", ["producer", "worker", "metrics"])
def test_only_the_operator_writes_the_fence(user: str, wire: Callable[..., Wire]) -> None:
    connection = wire(user)
    assert connection.call("GET", "{emq}:version") == b"echomq:6.0.0"
    reply = connection.call("SET", "{emq}:version", "mine")
    assert isinstance(reply, Error)
    assert reply.code == "NOPERM"


@pytest.fixture
def nothing_denied(wire: Callable[..., Wire]) -> Iterator[None]:
    root = wire()
    root.call("ACL", "LOG", "RESET")
    yield
    assert root.call("ACL", "LOG") == []


@pytest.fixture
def empty(wire: Callable[..., Wire]) -> None:
    """Nothing is in any queue."""
    root = wire()
    for queue in (OWN, OTHER):
        root.call("EMQ.PAUSE", queue)
        while root.call("EMQ.OBLITERATE", queue, "FORCE") == 1:
            pass


@pytest.mark.usefixtures("empty", "nothing_denied")
def test_a_producer_sends_jobs_of_every_kind(bus: Callable[[str], Bus]) -> None:
    queue = bus("producer").queue("orders")
    job = queue.enqueue(b"one")
    queue.enqueue_many([b"two", b"three"])
    queue.enqueue(b"four", group="ada")
    queue.enqueue_in(b"five", timedelta(hours=1))
    queue.enqueue_at(b"six", datetime.now(timezone.utc) + timedelta(hours=1))
    queue.update(job, b"changed")
    queue.repeat("nightly", timedelta(hours=1), b"seven")
    queue.unrepeat("nightly")
    assert queue.state(job) == "pending"
    assert (queue.counts().pending, queue.counts().scheduled) == (4, 2)


@pytest.mark.usefixtures("empty")
def test_a_producer_takes_no_job(bus: Callable[[str], Bus]) -> None:
    queue = bus("producer").queue("orders")
    job = queue.enqueue(b"one")
    with pytest.raises(PermissionDenied):
        queue.claim(60)
    with pytest.raises(PermissionDenied):
        queue.remove(job)
    assert queue.state(job) == "pending"


@pytest.mark.usefixtures("empty", "nothing_denied")
def test_a_worker_works_on_what_a_producer_sends(bus: Callable[[str], Bus]) -> None:
    producer, queue, seen = bus("producer").queue("orders"), bus("worker").queue("orders"), threading.Semaphore(0)

    def handle(job: HeldJob) -> None:
        queue.progress(job, "half")
        queue.log(job, "done")
        seen.release()

    worker = Worker(queue, handle, repeats=True)
    worker.start()
    try:
        producer.enqueue(b"one")
        producer.enqueue(b"two", group="ada")
        producer.enqueue_in(b"three", timedelta(milliseconds=1))
        producer.repeat("often", timedelta(milliseconds=50), b"four")
        for _ in range(5):
            assert seen.acquire(timeout=20)
    finally:
        worker.stop()
        assert worker.join(20)
    assert worker.stats.retried == worker.stats.dead == 0


@pytest.mark.usefixtures("empty", "nothing_denied")
def test_a_client_of_another_kind_works_by_next_with_the_category_alone(wire: Callable[..., Wire]) -> None:
    wire().call("ACL", "SETUSER", "bare", "reset", "on", ">secret", f"~{OWN}", "+@emq_consume")
    wire("producer").call("EMQ.ENQUEUE", OWN, "JOB00000000000", "payload")
    worker = wire("bare")
    worker.send("EMQ.NEXT", OWN, "60000", "BLOCK", "20000")
    assert worker.read(20) == [[], [[b"JOB00000000000", b"payload", 1, None]], None]
    settled = worker.call("EMQ.NEXT", OWN, "60000", "SETTLE", "1", "COMPLETE", "JOB00000000000", "1")
    assert settled == [[b"completed"], [], None]


@pytest.mark.usefixtures("empty")
def test_a_worker_sends_no_job_and_stops_no_queue(bus: Callable[[str], Bus]) -> None:
    queue = bus("worker").queue("orders")
    with pytest.raises(PermissionDenied):
        queue.enqueue(b"one")
    with pytest.raises(PermissionDenied):
        queue.pause()


@pytest.mark.usefixtures("empty", "nothing_denied")
def test_an_operator_sees_and_changes_every_queue(bus: Callable[[str], Bus], wire: Callable[..., Wire]) -> None:
    root = wire()
    for key in (OWN, OTHER):
        root.call("EMQ.ENQUEUE", key, "JOB00000000000", "payload")
        root.call("EMQ.CLAIM", key, "60000")
        root.call("EMQ.RETRY", key, "JOB00000000000", "1", "0", "1", "error")
    operator = bus("operator")
    assert overview.queue_names(operator) == ["invoices", "orders"]
    for name in ("orders", "invoices"):
        queue = operator.queue(name)
        assert overview.snapshot(operator, name).counts.dead == 1
        assert [job.error for job in overview.jobs_in(operator, name, ["dead"], 10)] == ["error"]
        assert queue.reprocess("JOB00000000000")
        queue.pause()
        queue.limit_group("ada", 1)
        assert [lane.limit for lane in overview.lanes_in(operator, name)] == [1]
        queue.pause_group("ada")
        assert queue.remove("JOB00000000000")
        assert queue.obliterate()
    assert operator.client.info("emq")["emq_refused_other"] >= 0


@pytest.mark.usefixtures("empty", "nothing_denied")
def test_an_operator_moves_the_node_to_the_other_executor_and_back(server: Server) -> None:
    target = url(server, "operator")
    assert provision.show(target).wire == 6
    assert provision.move(target, source=6, to=4)[0]
    assert provision.move(target, source=4, to=6)[0]
    assert provision.claim(target, wire=6).wire == 6


@pytest.mark.usefixtures("empty")
def test_an_operator_sends_and_takes_no_job(bus: Callable[[str], Bus]) -> None:
    queue = bus("operator").queue("orders")
    with pytest.raises(PermissionDenied):
        queue.enqueue(b"one")
    with pytest.raises(PermissionDenied):
        queue.claim(60)


def test_the_categories_give_a_user_all_that_reads_and_no_more(
    wire: Callable[..., Wire], commands: dict[str, tuple[int, set[str]]]
) -> None:
    wire().call("ACL", "SETUSER", "reader", "reset", "on", ">secret", f"%R~{OWN}*", "+@emq", "-@write")
    readers = {name for name, (_, labels) in commands.items() if "read" in labels}
    assert denied(wire("reader"), commands, OWN) == set(commands) - readers


def test_the_users_can_stand_in_the_configuration_and_in_an_acl_file(tmp_path: Path) -> None:
    lines = [" ".join(rights(user)) for user in USERS]
    with Server(config={"user": lines}) as server:
        provision.claim(server.url, wire=6)
        with connect(url(server, "producer")) as producer:
            producer.queue("orders").enqueue(b"one")
            with pytest.raises(PermissionDenied):
                producer.queue("orders").pause()
        with server.client() as client:
            known = sorted(line for line in client.acl_list())
    file = tmp_path / "users.acl"
    file.write_text("".join(f"user {line}\n" for line in lines))
    with Server(config={"aclfile": str(file)}) as server, server.client() as client:
        assert sorted(client.acl_list()) == known
        client.execute_command("ACL", "SAVE")
        client.execute_command("ACL", "LOAD")
        assert sorted(client.acl_list()) == known
