"""The synchronous connector against real servers: the fence on every connect, faults, forks, every kind of client."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import pickle
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import redis
import redis.asyncio
import redis.backoff
import redis.retry
import redis.sentinel
import valkey
from tests.proxy import Proxy, answer, hold, lose_command, lose_reply
from tests.server.watching import cut, others, watching

from emq_native import Bus, Job, Queue, connect, errors, mint
from emq_native import transitions as t
from emq_native.conformance.host import OwnServer
from emq_native.executors import Executor
from emq_native.line import Pool
from emq_native.server import Server, form_cluster
from emq_native.wiring import Routes

KEY = "{emq}:version"
SCRIPTED = "echomq:4.0.0"
NATIVE = "echomq:6.0.0"


@pytest.fixture(scope="module")
def node() -> Iterator[Server]:
    """A server without the module that these tests may claim, empty and pause as they like."""
    with Server(module=False, config={"enable-debug-command": "yes"}, unix_socket=True) as server:
        yield server


@pytest.fixture
def control(node: Server) -> Iterator[redis.Redis]:
    """A plain client of that server, which is empty and unclaimed."""
    with node.client(decode_responses=True) as client:
        client.flushall()
        client.script_flush()
        yield client


@pytest.fixture
def bus(node: Server, control: redis.Redis) -> Iterator[Bus]:
    """A bus of the scripted executor on that server."""
    with connect(node.url, wire=4) as made:
        yield made


@pytest.fixture
def proxy(node: Server, control: redis.Redis) -> Iterator[Proxy]:
    """A proxy before that server, which is claimed for the scripts."""
    control.set(KEY, SCRIPTED)
    with Proxy(node.port) as made:
        yield made


@pytest.fixture
def far(proxy: Proxy) -> Iterator[Queue]:
    """A queue behind the proxy."""
    with connect(proxy.url, wire=4) as made:
        yield made.queue("q")


def at_once(control: redis.Redis, calls: int, call: Callable[[], object], *, connections: int | None = None) -> None:
    """Run a call that writes in so many threads; none is answered before so many connections wait for an answer."""
    threads = [threading.Thread(target=call) for _ in range(calls)]
    control.execute_command("CLIENT", "PAUSE", 60_000, "WRITE")
    try:
        for each in threads:
            each.start()
        while sum("b" in each["flags"] for each in control.client_list()) < (connections or calls):
            time.sleep(0.001)
    finally:
        control.execute_command("CLIENT", "UNPAUSE")
    for each in threads:
        each.join()


# The fence


def test_each_killed_connection_asks_for_the_fence_first(servers: Any, executor: Executor) -> None:
    server: Server = servers(executor.name).server
    with ExitStack() as stack:
        control = stack.enter_context(server.client(db=3))
        control.set(KEY, executor.identity)
        bus = stack.enter_context(connect(server.url.replace("/0", "/3"), wire=executor.wire))
        queue = bus.queue("killed")
        with watching(server) as opened:
            at_once(control, 4, lambda: queue.complete(mint(), token=1))
        pooled = others(control, db=3)

        with watching(server) as reopened:
            cut(control, pooled)
            at_once(control, 4, lambda: queue.complete(mint(), token=1))

        assert len(pooled) == 4
        assert len(opened.firsts()) == 3
        assert len(reopened.firsts()) == 4
        for watch in (opened, reopened):
            assert all([words[0].upper(), words[1]] == ["GET", KEY] for words in watch.firsts())


def test_c001_wire_4_claims_a_node_that_nobody_owns(node: Server, control: redis.Redis) -> None:
    with connect(node.url, wire=4) as bus:
        assert control.get(KEY) == SCRIPTED
        assert control.ttl(KEY) == -1
        assert bus.queue("q").enqueue(b"x").created


@pytest.mark.parametrize("wire", [4, 6, "auto"])
def test_c001_nothing_is_written_where_the_identity_is_right(
    wire: int | str, node: Server, control: redis.Redis
) -> None:
    control.set(KEY, NATIVE if wire == 6 else SCRIPTED)
    before = control.info("persistence")["rdb_changes_since_last_save"]

    connect(node.url, wire=wire).close()

    assert control.info("persistence")["rdb_changes_since_last_save"] == before


def test_c002_another_identity_is_a_mismatch_and_nothing_was_sent(proxy: Proxy, control: redis.Redis) -> None:
    control.set(KEY, NATIVE)

    with pytest.raises(errors.WireMismatch) as refused:
        connect(proxy.url, wire=4)

    assert (refused.value.expected, refused.value.found) == (SCRIPTED, NATIVE)
    assert proxy.verbs() == ["GET"]


@pytest.mark.parametrize("wire", [6, "auto"])
def test_c003_an_unclaimed_node_is_left_alone(wire: int | str, node: Server, control: redis.Redis) -> None:
    with pytest.raises(errors.WireUnclaimed, match=r"--wire 6.*--wire 4"):
        connect(node.url, wire=wire)

    assert control.exists(KEY) == 0


@pytest.mark.parametrize("wire", [4, "auto"])
def test_c004_a_verdict_is_asked_for_again(wire: int | str, node: Server, control: redis.Redis) -> None:
    control.set(KEY, SCRIPTED)
    with connect(node.url, wire=wire) as bus:
        queue = bus.queue("q")
        before = others(control)
        control.set(KEY, NATIVE)
        assert queue.state(mint()) == "absent"

        cut(control, before)

        for _ in range(2):
            with pytest.raises(errors.WireMismatch):
                queue.enqueue(b"x")
        assert control.dbsize() == 1
        control.set(KEY, SCRIPTED)
        assert queue.enqueue(b"x").created


@pytest.mark.parametrize("wire", [4, 6, "auto"])
def test_c005_a_fence_that_is_no_string_is_a_mismatch(wire: int | str, node: Server, control: redis.Redis) -> None:
    control.rpush(KEY, "x")

    with pytest.raises(errors.WireMismatch) as refused:
        connect(node.url, wire=wire)

    assert refused.value.found == "(not a string)"


def test_c006_a_loading_server_is_waited_for(proxy: Proxy) -> None:
    client = redis.Redis(port=proxy.port, retry=redis.retry.Retry(redis.backoff.NoBackoff(), 3))
    for target in (proxy.url, client):
        proxy.on("GET", answer("-LOADING Valkey is loading the dataset in memory"), times=2)

        with connect(target, wire=4) as bus:
            assert bus.queue("q").enqueue(b"x").created

        assert proxy.verbs()[:3] == ["GET", "GET", "GET"]
        assert len({number for number, words in proxy.seen if words[0] in (b"GET", b"EVALSHA")}) == 3
        proxy.seen.clear()
    client.close()


@pytest.mark.parametrize("code", ["LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "BUSY"])
def test_c006_no_verdict_is_retryable_and_no_mismatch(code: str, proxy: Proxy) -> None:
    proxy.on("GET", answer(f"-{code} not now"), times=None)

    with pytest.raises(errors.Unavailable) as refused:
        connect(proxy.url, wire=4)

    assert refused.value.text == f"{code} not now"
    assert set(proxy.verbs()) == {"GET"}
    assert len(proxy.verbs()) == 4


def test_the_causes_of_a_failed_connect_are_the_network_alone() -> None:
    with Server(module=False) as server:
        url = server.url
    with pytest.raises(errors.Unavailable) as refused:
        connect(url)

    causes: list[BaseException] = []
    cause: BaseException | None = refused.value
    while cause := cause.__cause__ or cause.__context__:
        causes.append(cause)
    assert causes
    assert all(isinstance(each, (OSError, redis.RedisError)) for each in causes)


@pytest.mark.parametrize("library", [redis, valkey])
@pytest.mark.parametrize("retries", [0, 2])
def test_c006_a_given_client_decides_how_often_to_try(library: Any, retries: int, proxy: Proxy) -> None:
    proxy.on("GET", answer("-LOADING not now"), times=None)
    kind = getattr(library, library.__name__.capitalize())
    client = kind(port=proxy.port, retry=library.retry.Retry(library.backoff.NoBackoff(), retries))

    with pytest.raises(errors.Unavailable):
        connect(client, wire=4)

    assert len(proxy.verbs()) == retries + 1


@pytest.mark.parametrize("code", ["NOPERM", "NOAUTH"])
def test_c007_a_fence_that_may_not_be_read_is_a_matter_of_permission(code: str, proxy: Proxy) -> None:
    proxy.on("GET", answer(f"-{code} no"), times=None)

    with pytest.raises(errors.PermissionDenied) as refused:
        connect(proxy.url, wire=4)

    assert refused.value.code == code
    assert proxy.verbs() == ["GET"]


def test_c007_a_user_without_the_fence(node: Server, control: redis.Redis) -> None:
    control.acl_setuser("w", enabled=True, nopass=True, commands=["+@all"], keys=["emq:{q}*"])
    control.set(KEY, SCRIPTED)

    with pytest.raises(errors.PermissionDenied, match="NOPERM"):
        connect(node.url, wire=4, username="w", password="x")


def test_a_wrong_password_is_a_matter_of_permission(node: Server, control: redis.Redis) -> None:
    control.acl_setuser("p", enabled=True, passwords=["+right"], commands=["+@all"], keys=["*"])

    with pytest.raises(errors.PermissionDenied, match="WRONGPASS"):
        connect(node.url, wire=4, username="p", password="wrong")


def test_c008_a_replica_cannot_be_claimed(node: Server, control: redis.Redis) -> None:
    with Server(module=False, replica_of=node) as replica:
        with pytest.raises(errors.Unavailable) as refused:
            connect(replica.url, wire=4)

        assert refused.value.code == "READONLY"
        assert control.exists(KEY) == 0


def test_c009_of_two_that_claim_one_stays(node: Server, control: redis.Redis) -> None:
    for _ in range(20):
        control.delete(KEY)
        outcome: list[object] = []

        def claim_4(outcome: list[object] = outcome) -> None:
            try:
                connect(node.url, wire=4).close()
                outcome.append(SCRIPTED)
            except errors.WireMismatch as refused:
                outcome.append(refused.found)

        other = threading.Thread(target=claim_4)
        other.start()
        control.set(KEY, NATIVE, nx=True)
        other.join()

        assert outcome == [control.get(KEY)]


@pytest.mark.parametrize(("identity", "wire"), [(SCRIPTED, 4), (NATIVE, 6)])
def test_auto_takes_the_executor_of_the_node(identity: str, wire: int, node: Server, control: redis.Redis) -> None:
    control.set(KEY, identity)

    with connect(node.url) as bus:
        assert bus.executor.wire == wire


def test_the_fence_belongs_to_the_database(node: Server, control: redis.Redis) -> None:
    control.set(KEY, SCRIPTED)

    with pytest.raises(errors.WireUnclaimed):
        connect(node.url.replace("/0", "/1"), wire="auto")


# Case 46: lost answers


@pytest.fixture
def evalsha(bus: Bus) -> str:
    """The verb under which scripts travel, with every script loaded."""
    queue = bus.queue("warm")
    queue.enqueue(b"x")
    job = queue.claim(30)
    assert job is not None
    queue.extend(job, 30)
    queue.retry(job, max_attempts=9)
    queue.complete(mint(), token=1)
    bus.client.flushall()
    bus.client.set(KEY, SCRIPTED)
    return "EVALSHA"


def test_case_46_a_lost_enqueue_says_that_the_outcome_is_unknown(evalsha: str, proxy: Proxy, far: Queue) -> None:
    proxy.on(evalsha, lose_reply)

    with pytest.raises(errors.Unavailable) as lost:
        far.enqueue(b"x")

    assert lost.value.outcome_unknown
    assert lost.value.code == ""
    assert proxy.sent(evalsha) == 1
    assert far.counts().pending == 1


def test_case_46_a_command_that_never_left_the_wire_is_unknown_too(evalsha: str, proxy: Proxy, far: Queue) -> None:
    proxy.on(evalsha, lose_command)

    with pytest.raises(errors.Unavailable) as lost:
        far.enqueue(b"x")

    assert lost.value.outcome_unknown
    assert far.counts().pending == 0


def test_case_46_a_late_answer_is_a_lost_one_and_reaches_nobody(evalsha: str, proxy: Proxy) -> None:
    gate = threading.Event()
    with connect(proxy.url, wire=4, socket_timeout=2) as bus:
        queue = bus.queue("q")
        proxy.on(evalsha, hold(gate))
        with pytest.raises(errors.Unavailable) as late:
            queue.enqueue(b"x")
        gate.set()

        assert late.value.outcome_unknown
        assert queue.state(mint()) == "absent"
        assert queue.counts().pending == 1


@pytest.fixture
def again(proxy: Proxy, evalsha: str) -> Iterator[Queue]:
    """A queue behind the proxy that sends safe transitions again."""
    with connect(proxy.url, wire=4, resend=True) as made:
        yield made.queue("q")


def test_case_46_a_resent_enqueue_counts_once(evalsha: str, proxy: Proxy, again: Queue) -> None:
    proxy.on(evalsha, lose_reply)

    job_id = again.enqueue(b"x")

    assert proxy.sent(evalsha) == 2
    assert again.counts().pending == 1
    assert again.state(job_id) == "pending"


def test_case_46_a_resent_complete_finds_the_job_gone(evalsha: str, proxy: Proxy, again: Queue) -> None:
    again.enqueue(b"x")
    job = again.claim(30)
    assert job is not None
    proxy.on(evalsha, lose_reply)

    assert again.complete(job) is False
    assert again.counts().completed == 1


def test_case_46_a_resent_retry_says_that_the_outcome_is_unknown(evalsha: str, proxy: Proxy, again: Queue) -> None:
    again.enqueue(b"x")
    job = again.claim(30)
    assert job is not None
    proxy.on(evalsha, lose_reply)

    with pytest.raises(errors.WrongState) as refused:
        again.retry(job, max_attempts=3)

    assert refused.value.resent
    assert "may have been carried out" in str(refused.value)
    assert refused.value.text == "EMQSTATE job is not active"
    assert again.state(job) == "scheduled"


def test_case_46_a_refusal_that_was_not_resent_does_not_say_so(far: Queue) -> None:
    far.enqueue(b"x")
    job = far.claim(30)
    assert job is not None
    with pytest.raises(errors.StaleToken) as refused:
        far.complete(job, token=9)
    assert not refused.value.resent


@pytest.mark.parametrize("resend", [False, True])
def test_case_46_a_claim_is_never_sent_again(resend: bool, evalsha: str, proxy: Proxy) -> None:
    with connect(proxy.url, wire=4, resend=resend) as bus:
        queue = bus.queue("q")
        queue.enqueue(b"x")
        queue.enqueue(b"y")
        proxy.seen.clear()
        proxy.on(evalsha, lose_reply)

        with pytest.raises(errors.Unavailable):
            queue.claim(30)

        assert proxy.sent(evalsha) == 1
        assert queue.counts().active == 1


@pytest.mark.parametrize("library", [redis, valkey], ids=["redis-py", "valkey-py"])
def test_case_46_the_retries_of_a_given_client_do_not_touch_a_claim(library: Any, evalsha: str, proxy: Proxy) -> None:
    retry = library.retry.Retry(library.backoff.NoBackoff(), 5)
    made = library.Redis if library is redis else library.Valkey
    client = made(port=proxy.port, retry=retry, retry_on_error=[ConnectionError, OSError])
    with connect(client, wire=4) as bus:
        queue = bus.queue("q")
        queue.enqueue(b"x")
        proxy.seen.clear()
        proxy.on(evalsha, lose_reply)

        with pytest.raises(errors.Unavailable):
            queue.claim(30)

        assert proxy.sent(evalsha) == 1
    client.close()


def test_case_46_a_resend_ends(evalsha: str, proxy: Proxy, again: Queue) -> None:
    proxy.on(evalsha, lose_command, times=None)

    with pytest.raises(errors.Unavailable):
        again.enqueue(b"x")

    assert proxy.sent(evalsha) == 4


def test_a_server_that_is_gone_is_unavailable_and_not_unknown(node: Server) -> None:
    with Server(module=False) as short:
        with short.client() as client:
            client.set(KEY, SCRIPTED)
        bus = connect(short.url, wire=4)
    with bus, pytest.raises(errors.Unavailable) as gone:
        bus.queue("q").enqueue(b"x")
    assert not gone.value.outcome_unknown


# Scripts


def test_an_unknown_script_is_loaded_and_runs_once(bus: Bus, control: redis.Redis) -> None:
    queue = bus.queue("q")
    for payload in (b"1", b"2"):
        control.script_flush()
        assert queue.enqueue(payload).created
    assert queue.counts().pending == 2


def test_c148_a_pipeline_loads_what_is_missing_and_keeps_the_places(bus: Bus, control: redis.Redis) -> None:
    queue = bus.queue("q")
    queue.enqueue(b"known")
    ids = [mint() for _ in range(3)]
    steps = [
        t.Enqueue(b"p", id=ids[0]),
        t.Where(ids[0]),
        t.Enqueue(b"p", id=ids[1]),
        t.Count(),
        t.Enqueue(b"p", id=ids[2]),
    ]

    for flush in (False, True):
        if flush:
            control.script_flush()
        values = queue.pipeline(steps)
        assert [values[0], values[2], values[4]] == ids
        assert values[1] == "pending"
        assert values[3].pending >= 3
        assert values[0].created is not flush

    assert queue.counts().pending == 4


def test_c148_a_transaction_needs_no_loaded_script(bus: Bus, control: redis.Redis) -> None:
    queue = bus.queue("q")
    control.script_flush()

    admitted, job, refused, stolen = queue.transaction([t.Enqueue(b"x"), t.Claim(30), t.Where(mint()), t.Claim(30)])

    assert isinstance(job, Job)
    assert job.id == admitted
    assert refused == "absent"
    assert stolen is None


def test_c149_a_script_under_another_digest_is_a_mismatch(proxy: Proxy, far: Queue, control: redis.Redis) -> None:
    proxy.on("SCRIPT", answer("$40\r\n" + "0" * 40))

    with pytest.raises(errors.ScriptMismatch) as refused:
        far.enqueue(b"x")

    assert refused.value.found == "0" * 40
    assert control.dbsize() == 1
    assert far.enqueue(b"x").created


def test_a_second_noscript_is_raised(proxy: Proxy, far: Queue) -> None:
    proxy.on("EVALSHA", answer("-NOSCRIPT No matching script."), times=2)

    with pytest.raises(errors.Refused) as refused:
        far.enqueue(b"x")

    assert refused.value.code == "NOSCRIPT"
    assert proxy.verbs() == ["GET", "EVALSHA", "SCRIPT", "EVALSHA"]


def test_errors_of_a_pipeline_stand_in_their_places(bus: Bus) -> None:
    queue = bus.queue("q")
    job_id = queue.enqueue(b"x")
    job = queue.claim(30)
    assert job is not None

    stale, done, gone = queue.pipeline([t.Complete(job_id, token=9), t.Complete(job), t.Complete(job)])

    assert isinstance(stale, errors.StaleToken)
    assert done is True
    assert gone is False


def test_errors_of_a_transaction_stand_in_their_places(bus: Bus) -> None:
    queue = bus.queue("q")
    queue.enqueue(b"x")
    job = queue.claim(30)
    assert job is not None

    stale, done = queue.transaction([t.Retry(job, token=9, max_attempts=1), t.Complete(job)])

    assert isinstance(stale, errors.StaleToken)
    assert stale.text == "EMQSTALE retry token mismatch"
    assert done is True


def test_a_transaction_that_cannot_run_raises(bus: Bus, control: redis.Redis) -> None:
    control.config_set("maxmemory", 1)
    try:
        with pytest.raises(errors.OutOfMemory):
            bus.queue("q").transaction([t.Enqueue(b"x")])
    finally:
        control.config_set("maxmemory", 0)
    assert control.dbsize() == 1


def test_a_pipeline_that_loses_its_connection_says_so_for_each(proxy: Proxy, far: Queue) -> None:
    far.enqueue(b"x")
    proxy.on("EVALSHA", lose_command, times=None)

    values = far.pipeline([t.Enqueue(b"y"), t.Claim(30)])

    assert all(isinstance(value, errors.Unavailable) and value.outcome_unknown for value in values)


def test_a_pipeline_of_several_queues(bus: Bus) -> None:
    first, second = bus.pipeline([(t.Enqueue(b"x"), "a"), (t.Enqueue(b"y"), bus.queue("b"))])

    assert bus.queue("a").state(first) == "pending"
    assert bus.queue("b").state(second) == "pending"


def test_nothing_to_send_asks_nobody(proxy: Proxy, far: Queue) -> None:
    proxy.seen.clear()

    assert far.enqueue_many([]) == []
    assert far.pipeline([]) == []
    assert far.transaction([]) == []
    assert far.pipeline([t.CompleteMany([])]) == [[]]

    assert proxy.seen == []


# Raw calls


def test_a_raw_call_is_framed_and_its_errors_are_ours(bus: Bus) -> None:
    job_id = mint()

    assert bus.send("EMQ.ENQUEUE", "emq:{q}", job_id, b"\xff") == 1
    assert bus.send("emq.claim", b"emq:{q}", 1000)[:2] == [job_id.encode(), b"\xff"]
    with pytest.raises(errors.BadRequest, match="lease must be an integer"):
        bus.send("emq.claim", "emq:{q}", "abc")
    with pytest.raises(errors.InvalidArgument, match="wire 4"):
        bus.send("emq.next", "emq:{q}", 1000)
    with pytest.raises(errors.InvalidArgument):
        bus.send("emq.claim", "emq:{q}", 1.5)  # type: ignore[arg-type]


def test_what_the_scripts_cannot_say_is_answered_here(bus: Bus) -> None:
    assert bus.queue("q").version().identity == SCRIPTED
    assert b"emq.claim/1" in bus.send("tra.capabilities")
    assert bus.send("tra.capabilities", "emq.claim", "no.such") == [1, 0]


# Errors


def test_a_refused_command_leaves_the_connection_as_it_was(bus: Bus, control: redis.Redis) -> None:
    queue = bus.queue("q")
    queue.enqueue(b"x")
    connected = others(control)

    control.set("emq:{q}:active", "x")
    with pytest.raises(errors.WrongType):
        queue.claim(30)
    control.delete("emq:{q}:active")

    assert queue.claim(30) is not None
    assert others(control) == connected


def test_a_verb_that_the_user_may_not_use(node: Server, control: redis.Redis) -> None:
    control.acl_setuser("r", enabled=True, nopass=True, commands=["+@all", "-evalsha"], keys=["*"])
    with connect(node.url, wire=4, username="r", password="x") as bus:
        with pytest.raises(errors.PermissionDenied, match="evalsha"):
            bus.queue("q").enqueue(b"x")
        assert bus.queue("q").state(mint()) == "absent"


def test_a_full_server_refuses_what_grows(bus: Bus, control: redis.Redis) -> None:
    queue = bus.queue("q")
    queue.enqueue(b"x")
    job = queue.claim(30)
    assert job is not None
    control.config_set("maxmemory", 1)
    try:
        with pytest.raises(errors.OutOfMemory):
            queue.enqueue(b"y")
        assert queue.complete(job)
    finally:
        control.config_set("maxmemory", 0)


# Connections


def test_a_connection_is_used_again(bus: Bus, control: redis.Redis) -> None:
    queue = bus.queue("q")
    before = others(control)
    for _ in range(20):
        queue.counts()
    assert others(control) == before


def test_a_call_waits_for_a_free_connection(node: Server, control: redis.Redis) -> None:
    before = others(control)
    with connect(node.url, wire=4, max_connections=2) as bus:
        queue = bus.queue("q")

        at_once(control, 8, lambda: queue.enqueue(b"x"), connections=2)

        assert queue.counts().pending == 8
        assert len(others(control) - before) == 2


def test_a_connection_left_alone_is_replaced_where_the_client_asks_for_health_checks(
    node: Server, control: redis.Redis
) -> None:
    with connect(node.url, wire=4, health_check_interval=0.05) as bus:
        before = others(control)
        deadline = time.monotonic() + 0.1
        while time.monotonic() < deadline:
            control.ping()
        bus.queue("q").counts()
        assert not others(control) & before


def test_a_closed_bus_says_so_and_leaves_a_given_client_open(node: Server, control: redis.Redis) -> None:
    control.set(KEY, SCRIPTED)
    client = redis.Redis(port=node.port)
    with connect(client) as bus:
        queue = bus.queue("q")
        queue.counts()

    with pytest.raises(errors.InvalidArgument, match="closed"):
        queue.counts()
    assert client.ping()
    client.close()


def test_no_connection_is_left_after_close(node: Server, control: redis.Redis) -> None:
    before = others(control)
    with connect(node.url, wire=4) as bus:
        at_once(control, 3, lambda: bus.queue("q").enqueue(b"x"))
        assert len(others(control) - before) == 3
    assert others(control) == before


@contextmanager
def profiled(hook: Callable[[FrameType, str, Any], None]) -> Iterator[None]:
    """This thread tells the hook of its calls and returns."""
    sys.setprofile(hook)
    try:
        yield
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("moment", [Pool.take, Routes._at])
def test_a_bus_that_is_closed_in_the_middle_of_a_call_keeps_no_connection(
    moment: Any, node: Server, control: redis.Redis
) -> None:
    def hook(frame: FrameType, event: str, argument: object) -> None:
        if frame.f_code is moment.__code__ and event == "call":
            sys.setprofile(None)
            sibling.close()

    with connect(node.url, wire=4) as bus:
        before = others(control)
        sibling = bus.sibling()
        with profiled(hook), suppress(errors.InvalidArgument):
            sibling.queue("q").counts()
        assert others(control) == before


class Interrupted(BaseException):
    """What may be raised anywhere, as KeyboardInterrupt and the end of a handler's time."""


@pytest.mark.timeout(120)
def test_a_call_that_is_interrupted_anywhere_gives_its_connection_back(node: Server, control: redis.Redis) -> None:
    def hook(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal left
        if argument is sys.setprofile:
            return
        left -= 1
        if left < 0:
            sys.setprofile(None)
            raise Interrupted

    for moment in itertools.count():
        with connect(node.url, wire=4, max_connections=1) as bus:
            queue = bus.queue("q")
            queue.counts()
            left = moment
            try:
                sys.setprofile(hook)
                queue.counts()
                sys.setprofile(None)
            except Interrupted:
                pass
            queue.counts()
            if left >= 0:
                break


def test_a_refused_connect_leaves_no_connection(node: Server, control: redis.Redis) -> None:
    before = others(control)
    control.set(KEY, NATIVE)
    for _ in range(3):
        with pytest.raises(errors.WireMismatch):
            connect(node.url, wire=4)
    assert others(control) == before


# Case 84: fork


def _work(queue: Queue, results: Any) -> None:
    claimed = []
    while job := queue.claim(60):
        claimed.append((job.id, queue.enqueue_in(b"later", 3600)))
        queue.complete(job)
    results.put(claimed)


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_case_84_children_share_no_socket(start: str, bus: Bus) -> None:
    queue = bus.queue("q")
    expected = set()
    for _ in range(10):
        expected |= set(queue.enqueue_many([b"x"] * 100))
    method = multiprocessing.get_context(start)
    results = method.Queue()
    children = [method.Process(target=_work, args=(queue, results)) for _ in range(8)]
    for child in children:
        child.start()

    claims = [pair for _ in children for pair in results.get(timeout=60)]
    for child in children:
        child.join()

    assert all(child.exitcode == 0 for child in children)
    assert sorted(claimed for claimed, _ in claims) == sorted(expected)
    assert len({made for _, made in claims}) == 1000
    assert queue.counts().completed == 1000


def test_case_84_the_parent_keeps_its_connection(bus: Bus, control: redis.Redis) -> None:
    queue = bus.queue("q")
    queue.counts()
    before = others(control)

    child = os.fork()
    if child == 0:
        try:
            queue.enqueue(b"of the child")
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

    assert queue.counts().pending == 1
    assert before <= others(control)


def test_case_84_a_bus_from_a_url_is_pickled_and_asks_for_the_fence_again(bus: Bus, control: redis.Redis) -> None:
    text = pickle.dumps(bus.queue("q"))

    other = pickle.loads(text)
    assert other.name == "q"
    assert other.enqueue(b"x").created
    other.bus.close()

    control.set(KEY, NATIVE)
    with pytest.raises(errors.WireMismatch):
        pickle.loads(text)


def test_case_84_a_bus_from_a_client_says_that_it_cannot_be_pickled(node: Server, control: redis.Redis) -> None:
    client = redis.Redis(port=node.port)
    with connect(client, wire=4) as bus, pytest.raises(TypeError, match="connect by URL"):
        pickle.dumps(bus.queue("q"))
    client.close()


# Case 88: every kind of client


def _clients(node: Server) -> dict[str, Callable[[], Any]]:
    return {
        "redis": lambda: redis.Redis(port=node.port),
        "redis resp2": lambda: redis.Redis(port=node.port, protocol=2),
        "redis decoding": lambda: redis.Redis(port=node.port, decode_responses=True),
        "redis by url": lambda: redis.from_url(node.url),
        "redis blocking pool": lambda: redis.Redis(
            connection_pool=redis.BlockingConnectionPool(port=node.port, max_connections=2)
        ),
        "redis single connection": lambda: redis.Redis(port=node.port, single_connection_client=True),
        "redis unix socket": lambda: redis.Redis(unix_socket_path=node.socket),
        "redis with a connect function": lambda: redis.Redis(port=node.port, redis_connect_func=_greet),
        "valkey": lambda: valkey.Valkey(port=node.port),
        "valkey resp3": lambda: valkey.Valkey(port=node.port, protocol=3),
        "valkey decoding": lambda: valkey.Valkey(port=node.port, decode_responses=True),
        "valkey as redis": lambda: valkey.Redis(port=node.port),
        "valkey unix socket": lambda: valkey.Valkey(unix_socket_path=node.socket),
    }


def _greet(connection: Any) -> None:
    connection.on_connect()
    connection.send_command("CLIENT", "SETNAME", "greeted")
    connection.read_response()


@pytest.mark.parametrize("kind", _clients(None))  # type: ignore[arg-type]
def test_case_88_client_objects(kind: str, node: Server, control: redis.Redis) -> None:
    client = _clients(node)[kind]()
    settings = dict(client.connection_pool.connection_kwargs)

    with connect(client, wire=4) as bus:
        queue = bus.queue("q")
        job_id = queue.enqueue(b"\xff\x00")
        job = queue.claim(30)
        assert job is not None
        assert (job.id, job.payload) == (job_id, b"\xff\x00")
        assert queue.counts().active == 1
        assert queue.peek(job) is not None
        with pytest.raises(errors.StaleToken):
            queue.complete(job, token=7)
        assert queue.complete(job)
        assert bus.client is client

    assert client.connection_pool.connection_kwargs == settings
    client.close()


def test_case_88_what_a_client_does_on_connect_is_done(node: Server, control: redis.Redis) -> None:
    client = redis.Redis(port=node.port, redis_connect_func=_greet)
    with connect(client, wire=4):
        assert "greeted" in {each["name"] for each in control.client_list()}
    client.close()


@pytest.mark.parametrize("scheme", ["redis", "valkey"])
def test_case_88_urls(scheme: str, node: Server, control: redis.Redis) -> None:
    with connect(f"{scheme}://127.0.0.1:{node.port}/2", wire=4) as bus:
        bus.queue("q").enqueue(b"x")
        assert bus.client.dbsize() == 3


def test_case_88_a_unix_socket(node: Server, control: redis.Redis) -> None:
    with connect(f"unix://{node.socket}?db=2", wire=4) as bus:
        assert bus.queue("q").enqueue(b"x").created


@pytest.mark.parametrize("scheme", ["rediss", "valkeys"])
def test_case_88_an_encrypted_url_wants_an_encrypted_server(scheme: str, node: Server, control: redis.Redis) -> None:
    with pytest.raises(errors.Unavailable):
        connect(f"{scheme}://127.0.0.1:{node.port}/0", wire=4, socket_timeout=0.2, socket_connect_timeout=0.2)
    assert control.exists(KEY) == 0


@pytest.mark.parametrize(
    "url", ["http://localhost", "localhost:6379", "", "redis+sentinel://x", "redis://localhost/abc:"]
)
def test_case_88_a_url_that_is_none(url: str) -> None:
    with pytest.raises(errors.InvalidArgument if not url.startswith("redis://") else errors.EmqError):
        connect(url, wire=4)


NO_CLIENTS: dict[str, Callable[[], object]] = {
    "none": lambda: None,
    "number": lambda: 6379,
    "object": object,
    "bytes": lambda: b"redis://localhost",
    "class": lambda: redis.Redis,
    "pool": lambda: redis.ConnectionPool(),
    "pipeline": lambda: redis.Redis().pipeline(),
    "pubsub": lambda: redis.Redis().pubsub(),
    "sentinel": lambda: redis.sentinel.Sentinel([("localhost", 1)]),
    "asyncio": lambda: redis.asyncio.Redis(),
    "valkey asyncio": lambda: valkey.asyncio.Valkey(),
}


@pytest.mark.parametrize("kind", NO_CLIENTS)
def test_case_88_what_is_no_client_is_a_clear_type_error(kind: str) -> None:
    with pytest.raises(TypeError, match=r"connect takes a URL or a client object|emq_native\.aio\.connect"):
        connect(NO_CLIENTS[kind](), wire=4)


def test_without_a_target_the_node_is_that_of_the_variable(
    node: Server, control: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    control.set(KEY, SCRIPTED)
    monkeypatch.setenv("EMQ_URL", node.url)
    with connect() as bus:
        assert bus.executor.identity == SCRIPTED
        with pickle.loads(pickle.dumps(bus)) as again:
            assert again.executor.identity == SCRIPTED
    monkeypatch.delenv("EMQ_URL")
    with pytest.raises(TypeError, match=r"\$EMQ_URL"):
        connect()


def test_options_go_with_a_url() -> None:
    with pytest.raises(TypeError, match="db"):
        connect(redis.Redis(), wire=4, db=1)


@pytest.mark.parametrize("library", ["redis", "valkey"])
def test_case_88_a_master_from_sentinel(library: str, node: Server, control: redis.Redis, tmp_path: Path) -> None:
    module: Any = redis if library == "redis" else valkey
    with _sentinel(node, tmp_path) as sentinel:
        master = module.sentinel.Sentinel([("127.0.0.1", sentinel.port)]).master_for("main")

        with connect(master, wire=4) as bus:
            queue = bus.queue("q")
            assert queue.enqueue(b"x").created
            cut(control, others(control))
            assert queue.counts().pending == 1
        master.close()


def _sentinel(node: Server, folder: Path) -> Any:
    from tests.server.sentinel import Sentinel

    return Sentinel(node, folder)


# Clusters


@pytest.fixture(scope="module")
def cluster() -> Iterator[list[Server]]:
    """Two nodes in cluster mode, with the module, so that both executors run there."""
    with ExitStack() as stack:
        nodes = [stack.enter_context(Server(config={"cluster-enabled": "yes"})) for _ in range(2)]
        form_cluster(nodes)
        yield nodes


def _here_and_there(nodes: list[Server]) -> tuple[str, str]:
    """The names of two queues, the first in a slot of the first node."""
    slots = {name: _slot(nodes, name) for name in map("q{}".format, range(50))}
    half = 16384 // 2
    return next(n for n, s in slots.items() if s < half), next(n for n, s in slots.items() if s >= half)


def _slot(nodes: list[Server], name: str) -> int:
    with nodes[0].client() as client:
        slot = client.execute_command("CLUSTER", "KEYSLOT", name)
        assert isinstance(slot, int)
        return slot


@pytest.mark.cluster
def test_a_cluster_has_a_fence_for_each_queue(cluster: list[Server]) -> None:
    here, there = _here_and_there(cluster)
    with connect(cluster[0].url, wire=4, cluster=True) as bus:
        for name in (here, there):
            queue = bus.queue(name)
            job_id = queue.enqueue(b"x")
            assert queue.state(job_id) == "pending"
            assert bus.client.get(f"emq:{{{name}}}:version") == SCRIPTED.encode()
        assert bus.client.get(KEY) is None
        values = bus.pipeline([(t.Count(), here), (t.Count(), there), (t.Claim(30), there), (t.Count(), here)])
        assert values[0].pending == values[1].pending == values[3].pending == 1
        assert values[2].queue == there
        with pytest.raises(errors.InvalidArgument, match="one queue"):
            bus.transaction([(t.Count(), here), (t.Count(), there)])
        assert len(bus.transaction([(t.Count(), there), (t.Claim(30), there)])) == 2


@pytest.mark.cluster
def test_a_cluster_queue_of_another_wire_is_refused_before_its_first_command(cluster: list[Server]) -> None:
    with connect(cluster[0].url, wire="auto", cluster=True) as bus:
        with pytest.raises(errors.WireUnclaimed) as unclaimed:
            bus.queue("fresh").enqueue(b"x")
        assert unclaimed.value.key == "emq:{fresh}:version"
        bus.client.set("emq:{native}:version", NATIVE)
        bus.client.set("emq:{mine}:version", SCRIPTED)
        assert bus.queue("mine").enqueue(b"x").created
    with connect(cluster[0].url, wire=4, cluster=True) as bus:
        with pytest.raises(errors.WireMismatch):
            bus.queue("native").enqueue(b"x")
        assert bus.client.exists("emq:{native}:pending") == 0


@pytest.mark.cluster
@pytest.mark.parametrize("library", ["redis", "valkey"])
def test_case_88_a_cluster_client(library: str, cluster: list[Server]) -> None:
    client: Any = (
        redis.RedisCluster("127.0.0.1", cluster[0].port)
        if library == "redis"
        else valkey.ValkeyCluster("127.0.0.1", cluster[0].port)
    )
    with connect(client, wire=4) as bus:
        for name in _here_and_there(cluster):
            queue = bus.queue(f"{name}-{library}")
            assert queue.enqueue(b"x").created
            assert queue.claim(30) is not None
    client.close()


@pytest.mark.cluster
def test_a_moving_slot_is_followed(cluster: list[Server], executor: Executor) -> None:
    name = next(each for each in map(f"{executor.name}{{}}".format, range(50)) if _slot(cluster, each) < 16384 // 2)
    with (
        cluster[0].client() as source,
        cluster[1].client() as target,
        connect(cluster[0].url, wire=executor.wire, cluster=True) as bus,
    ):
        bus.client.set(f"emq:{{{name}}}:version", executor.identity)
        queue = bus.queue(name)
        queue.counts()
        slot = _slot(cluster, name)
        from_id, to_id = (client.execute_command("CLUSTER", "MYID").decode() for client in (source, target))
        target.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", from_id)
        source.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", to_id)
        keys = source.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 100)
        source.execute_command("MIGRATE", "127.0.0.1", cluster[1].port, "", 0, 5000, "KEYS", *keys)

        with connect(cluster[0].url, wire=executor.wire, cluster=True) as other:
            asked = [mint(), mint()]
            if executor.wire == 6:
                other.queue(name).enqueue(b"x", id=asked[0])
                other.queue(name).pipeline([t.Enqueue(b"x", id=asked[1])])
                with pytest.raises(errors.Unavailable, match="being moved"):
                    other.queue(name).transaction([t.Count()])
            else:
                with pytest.raises(errors.Unavailable) as refused:
                    other.queue(name).enqueue(b"x")
                assert refused.value.code == "TRYAGAIN"
                assert not refused.value.outcome_unknown

        for client in (target, source):
            client.execute_command("CLUSTER", "SETSLOT", slot, "NODE", to_id)
        moved = queue.enqueue(b"after it moved")
        assert queue.state(moved) == "pending"
        assert queue.counts().pending == (3 if executor.wire == 6 else 1)
        assert queue.pipeline([t.Where(moved), t.Claim(30)])[0] == "pending"
        assert queue.transaction([t.Where(mint())]) == ["absent"]
        assert target.execute_command("CLUSTER", "COUNTKEYSINSLOT", slot) >= 3


@pytest.mark.cluster
@pytest.mark.parametrize("kind", [redis.Redis, valkey.Valkey], ids=["resp3", "resp2"])
def test_a_plain_client_of_a_cluster_node_is_told_where_to_go(kind: Any, cluster: list[Server]) -> None:
    here, there = _here_and_there(cluster)
    client: Any = kind(port=cluster[0].port)
    with client, connect(client, wire=4) as bus:
        assert bus.queue(here).counts() is not None
        assert client.get(f"emq:{{{here}}}:version") == SCRIPTED.encode()
        with pytest.raises(errors.Redirected, match="cluster=True"):
            bus.queue(there).counts()


def test_a_cluster_that_cannot_be_reached(node: Server) -> None:
    with pytest.raises(errors.Unavailable):
        connect(f"redis://127.0.0.1:{node.port}", wire=4, cluster=True)


# The real thing


def test_both_executors_carry_a_job_through_its_life(servers: Any, host: OwnServer, executor: Executor) -> None:
    with connect(host.server.url, wire=executor.wire) as bus:
        queue = bus.queue(f"life-{mint()}")
        job_id = queue.enqueue(b"x")
        job = queue.claim(30)
        assert job == Job(job_id, b"x", 1, queue.name)
        assert queue.extend(job, 60)
        assert queue.retry(job, max_attempts=2, error="first") == "scheduled"
        assert queue.promote() == 1
        second = queue.claim(30)
        assert second is not None
        assert second.token == 2
        with pytest.raises(errors.StaleToken):
            queue.complete(job)
        assert queue.delay(second, 0)
        assert queue.promote() == 1
        third = queue.claim(30)
        assert third is not None
        assert queue.retry(third, max_attempts=2, error="last") == "dead"
        assert queue.peek(third) == {
            "state": b"dead",
            "attempts": b"3",
            "payload": b"x",
            "last_error": b"last",
            "floor": b"1",
        }
        assert queue.reprocess(third)
        assert queue.remove(third)
        assert queue.state(third) == "absent"
        grouped = queue.enqueue(b"g", group="g")
        assert queue.group_counts() == [("g", 1, 0)]
        fair = queue.claim_fair(30)
        assert fair is not None
        assert (fair.id, fair.group) == (grouped, "g")
        assert queue.complete_many([fair, (mint(), 1)]) == ["completed", "gone"]
        assert queue.counts().completed == 1
        assert queue.pause()
        assert queue.obliterate()
