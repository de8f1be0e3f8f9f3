"""The asyncio connector against real servers: what is special to asyncio, and that the rules are those of its twin."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import pickle
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any

import pytest
import redis
import redis.asyncio
import valkey.asyncio
from tests.proxy import Proxy, answer, hold, lose_command, lose_reply
from tests.server.sentinel import Sentinel
from tests.server.watching import cut, others, watching

from emq_native import Job, errors, mint
from emq_native import transitions as t
from emq_native.aio import Bus, Queue, connect
from emq_native.conformance.host import OwnServer
from emq_native.executors import Executor
from emq_native.server import Server, form_cluster

KEY = "{emq}:version"
SCRIPTED = "echomq:4.0.0"
NATIVE = "echomq:6.0.0"


@pytest.fixture(scope="module")
def node() -> Iterator[Server]:
    """A server without the module that these tests may claim and empty as they like."""
    with Server(module=False, unix_socket=True) as server:
        yield server


@pytest.fixture
def control(node: Server) -> Iterator[redis.Redis]:
    """A plain client of that server, which is empty and unclaimed."""
    with node.client(decode_responses=True) as client:
        client.flushall()
        yield client


@pytest.fixture
async def bus(node: Server, control: redis.Redis) -> AsyncIterator[Bus]:
    """A bus of the scripted executor on that server."""
    async with await connect(node.url, wire=4) as made:
        yield made


@pytest.fixture
def proxy(node: Server, control: redis.Redis) -> Iterator[Proxy]:
    """A proxy before that server, which is claimed for the scripts."""
    control.set(KEY, SCRIPTED)
    with Proxy(node.port) as made:
        yield made


@pytest.fixture
async def far(proxy: Proxy) -> AsyncIterator[Queue]:
    """A queue behind the proxy, all its scripts known."""
    async with await connect(proxy.url, wire=4) as made:
        queue = made.queue("q")
        job = await _claimed(queue)
        await queue.retry(job, max_attempts=1)
        await queue.remove(job)
        await queue.complete(mint(), token=1)
        await queue.counts()
        yield queue


async def _claimed(queue: Queue) -> Job:
    await queue.enqueue(b"x")
    job = await queue.claim(30)
    assert job is not None
    return job


async def test_each_killed_connection_asks_for_the_fence_first(servers: Any, executor: Executor) -> None:
    server: Server = servers(executor.name).server
    async with AsyncExitStack() as stack:
        control = stack.enter_context(server.client(db=4))
        control.set(KEY, executor.identity)
        bus = await stack.enter_async_context(await connect(server.url.replace("/0", "/4"), wire=executor.wire))
        queue = bus.queue("killed")
        with watching(server) as opened:
            await asyncio.gather(*(queue.state(mint()) for _ in range(4)))
        pooled = others(control, db=4)

        with watching(server) as reopened:
            cut(control, pooled)
            await asyncio.gather(*(queue.state(mint()) for _ in range(4)))

        assert len(pooled) == 4
        assert len(opened.firsts()) == 3
        assert len(reopened.firsts()) == 4
        for watch in (opened, reopened):
            assert all([words[0].upper(), words[1]] == ["GET", KEY] for words in watch.firsts())


async def test_c001_wire_4_claims_a_node_that_nobody_owns(bus: Bus, control: redis.Redis) -> None:
    assert control.get(KEY) == SCRIPTED
    assert control.ttl(KEY) == -1
    assert (await bus.queue("q").enqueue(b"x")).created


async def test_without_a_target_the_node_is_that_of_the_variable(
    node: Server, control: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    control.set(KEY, SCRIPTED)
    monkeypatch.setenv("EMQ_URL", node.url)
    async with await connect() as bus:
        assert bus.executor.identity == SCRIPTED
    monkeypatch.delenv("EMQ_URL")
    with pytest.raises(TypeError, match=r"\$EMQ_URL"):
        await connect()


async def test_c002_another_identity_is_a_mismatch_and_nothing_was_sent(proxy: Proxy, control: redis.Redis) -> None:
    control.set(KEY, NATIVE)

    with pytest.raises(errors.WireMismatch):
        await connect(proxy.url, wire=4)

    assert proxy.verbs() == ["GET"]


@pytest.mark.parametrize("wire", [6, "auto"])
async def test_c003_an_unclaimed_node_is_left_alone(wire: int | str, node: Server, control: redis.Redis) -> None:
    with pytest.raises(errors.WireUnclaimed):
        await connect(node.url, wire=wire)

    assert control.exists(KEY) == 0


async def test_c004_a_verdict_is_asked_for_again(bus: Bus, control: redis.Redis) -> None:
    queue = bus.queue("q")
    control.set(KEY, NATIVE)
    assert await queue.state(mint()) == "absent"

    cut(control, others(control))

    with pytest.raises(errors.WireMismatch):
        await queue.enqueue(b"x")
    assert control.dbsize() == 1


async def test_c005_a_fence_that_is_no_string_is_a_mismatch(node: Server, control: redis.Redis) -> None:
    control.rpush(KEY, "x")

    with pytest.raises(errors.WireMismatch) as refused:
        await connect(node.url, wire=4)

    assert refused.value.found == "(not a string)"


async def test_c006_a_loading_server_is_waited_for(proxy: Proxy) -> None:
    proxy.on("GET", answer("-LOADING Valkey is loading the dataset in memory"), times=2)

    async with await connect(proxy.url, wire=4) as bus:
        assert (await bus.queue("q").enqueue(b"x")).created


@pytest.mark.parametrize("code", ["LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "BUSY"])
async def test_c006_no_verdict_is_retryable_and_no_mismatch(code: str, proxy: Proxy) -> None:
    proxy.on("GET", answer(f"-{code} not now"), times=None)

    with pytest.raises(errors.Unavailable) as refused:
        await connect(proxy.url, wire=4)

    assert refused.value.text == f"{code} not now"
    assert len(proxy.verbs()) == 4


@pytest.mark.parametrize("library", [redis.asyncio, valkey.asyncio])
async def test_c006_a_given_client_decides_how_often_to_try(library: Any, proxy: Proxy) -> None:
    proxy.on("GET", answer("-LOADING not now"), times=None)
    kind = library.Redis if library is redis.asyncio else library.Valkey
    client = kind(port=proxy.port, retry=library.retry.Retry(redis.backoff.NoBackoff(), 2))

    with pytest.raises(errors.Unavailable):
        await connect(client, wire=4)

    assert len(proxy.verbs()) == 3
    await client.aclose()


async def test_c007_a_fence_that_may_not_be_read_is_a_matter_of_permission(proxy: Proxy) -> None:
    proxy.on("GET", answer("-NOPERM no"), times=None)

    with pytest.raises(errors.PermissionDenied):
        await connect(proxy.url, wire=4)


# Cancellation


async def test_a_cancelled_call_hands_its_answer_to_nobody(proxy: Proxy, far: Queue, control: redis.Redis) -> None:
    gate = threading.Event()
    proxy.on("EVALSHA", hold(gate))
    before = len(proxy.seen)

    call = asyncio.create_task(far.enqueue(b"x"))
    while not control.exists("emq:{q}:pending"):
        await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    gate.set()

    states = await asyncio.gather(*(far.state(mint()) for _ in range(5)))
    assert states == ["absent"] * 5
    assert (await far.counts()).pending == 1
    used = {number for number, words in proxy.seen[before + 1 :]}
    assert proxy.seen[before][0] not in used


async def test_a_call_that_takes_too_long_hands_its_answer_to_nobody(proxy: Proxy, far: Queue) -> None:
    gate = threading.Event()
    proxy.on("EVALSHA", hold(gate))

    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(far.enqueue(b"x"), 0.1)
    gate.set()

    assert await far.state(mint()) == "absent"


async def test_a_cancelled_connect_leaves_no_connection(proxy: Proxy, control: redis.Redis) -> None:
    before = others(control)
    gate = threading.Event()
    proxy.on("GET", hold(gate))

    call = asyncio.create_task(connect(proxy.url, wire=4))
    while "GET" not in proxy.verbs():
        await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    gate.set()

    async with await connect(proxy.url, wire=4) as bus:
        assert await bus.queue("q").state(mint()) == "absent"
    while others(control) - before:
        await asyncio.sleep(0)


async def test_calls_that_wait_for_a_connection_may_be_cancelled(node: Server, control: redis.Redis) -> None:
    before = others(control)
    async with await connect(node.url, wire=4, max_connections=2) as bus:
        queue = bus.queue("q")
        calls = [asyncio.create_task(queue.enqueue(b"x")) for _ in range(50)]
        await asyncio.sleep(0)
        for call in calls[::2]:
            call.cancel()
        outcomes = await asyncio.gather(*calls, return_exceptions=True)

        assert sum(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes) == 25
        assert (await queue.counts()).pending >= 25
        assert len(others(control) - before) <= 2


# Case 46


async def test_case_46_a_lost_enqueue_says_that_the_outcome_is_unknown(proxy: Proxy, far: Queue) -> None:
    proxy.on("EVALSHA", lose_reply)
    before = proxy.sent("EVALSHA")

    with pytest.raises(errors.Unavailable) as lost:
        await far.enqueue(b"x")

    assert lost.value.outcome_unknown
    assert proxy.sent("EVALSHA") == before + 1
    assert (await far.counts()).pending == 1


async def test_case_46_a_late_answer_is_a_lost_one(proxy: Proxy, far: Queue) -> None:
    async with await connect(proxy.url, wire=4, socket_timeout=2) as bus:
        gate = threading.Event()
        proxy.on("EVALSHA", hold(gate))
        with pytest.raises(errors.Unavailable) as late:
            await bus.queue("q").enqueue(b"x")
        gate.set()

        assert late.value.outcome_unknown
        assert await bus.queue("q").state(mint()) == "absent"


async def test_case_46_what_is_safe_is_sent_again_when_asked(proxy: Proxy, far: Queue) -> None:
    async with await connect(proxy.url, wire=4, resend=True) as bus:
        queue = bus.queue("q")
        proxy.on("EVALSHA", lose_reply)
        await queue.enqueue(b"x")
        assert (await queue.counts()).pending == 1

        job = await queue.claim(30)
        assert job is not None
        proxy.on("EVALSHA", lose_reply)
        with pytest.raises(errors.WrongState) as refused:
            await queue.retry(job, max_attempts=3)
        assert refused.value.resent

        await queue.enqueue(b"y")
        proxy.on("EVALSHA", lose_reply)
        with pytest.raises(errors.Unavailable):
            await queue.claim(30)
        assert (await queue.counts()).active == 1


@pytest.mark.parametrize("library", ["redis", "valkey"])
async def test_case_46_the_retries_of_a_given_client_do_not_touch_a_claim(
    library: str, proxy: Proxy, far: Queue
) -> None:
    client = _clients(proxy.port, None)[library]()
    async with await connect(client, wire=4) as bus:
        queue = bus.queue("q")
        await queue.enqueue(b"x")
        before = proxy.sent("EVALSHA")
        proxy.on("EVALSHA", lose_reply)

        with pytest.raises(errors.Unavailable):
            await queue.claim(30)

        assert proxy.sent("EVALSHA") == before + 1
    await client.aclose()


# Scripts, pipelines, transactions


async def test_c148_unknown_scripts_are_loaded(bus: Bus, control: redis.Redis) -> None:
    queue = bus.queue("q")
    first, second = mint(), mint()
    steps = [t.Enqueue(b"p", id=first), t.Where(first), t.Enqueue(b"p", id=second), t.Claim(30)]

    control.script_flush()
    await queue.counts()
    a, state, b, job = await queue.pipeline(steps)
    control.script_flush()
    taken, nothing = await queue.transaction([t.Claim(30), t.Claim(30)])

    assert (a, state, b, job.id) == (first, "pending", second, first)
    assert taken.id == second
    assert nothing is None


async def test_c149_a_script_under_another_digest_is_a_mismatch(proxy: Proxy, far: Queue, control: redis.Redis) -> None:
    control.script_flush()
    proxy.on("SCRIPT", answer("$40\r\n" + "0" * 40))

    with pytest.raises(errors.ScriptMismatch):
        await far.enqueue(b"x")


async def test_errors_stand_in_their_places(bus: Bus) -> None:
    queue = bus.queue("q")
    job = await _claimed(queue)

    for send in (queue.pipeline, queue.transaction):
        stale, extended = await send([t.Complete(job, token=9), t.Extend(job, 30)])
        assert isinstance(stale, errors.StaleToken)
        assert extended is True


async def test_a_pipeline_that_loses_its_connection_says_so_for_each(proxy: Proxy, far: Queue) -> None:
    proxy.on("EVALSHA", lose_command, times=None)

    values = await far.pipeline([t.Enqueue(b"y"), t.Claim(30)])

    assert all(isinstance(value, errors.Unavailable) and value.outcome_unknown for value in values)


async def test_arguments_are_refused_by_the_call_itself(bus: Bus) -> None:
    queue = bus.queue("q")
    with pytest.raises(errors.InvalidArgument):
        queue.claim(-1)
    with pytest.raises(errors.InvalidArgument):
        queue.enqueue("text")  # type: ignore[arg-type]


# Loops, forks, processes


def test_a_bus_outlives_its_event_loop(node: Server, control: redis.Redis) -> None:
    made: list[Bus] = []

    async def first() -> None:
        made.append(await connect(node.url, wire=4))
        await made[0].queue("q").enqueue(b"x")

    async def second() -> None:
        assert (await made[0].queue("q").counts()).pending == 1
        await made[0].close()

    def one_after_the_other() -> None:
        asyncio.run(first())
        asyncio.run(second())
        gc.collect()

    with pytest.warns(ResourceWarning):
        one_after_the_other()


async def _work(queue: Queue) -> list[str]:
    claimed = []
    while job := await queue.claim(60):
        claimed.append(job.id)
        await queue.complete(job)
    return claimed


def _child(queue: Queue, results: Any) -> None:
    results.put(asyncio.run(_work(queue)))


async def test_case_84_children_share_no_socket(bus: Bus) -> None:
    queue = bus.queue("q")
    expected = await queue.enqueue_many([b"x"] * 400)
    method = multiprocessing.get_context("fork")
    results = method.Queue()
    children = [method.Process(target=_child, args=(queue, results)) for _ in range(4)]
    for child in children:
        child.start()

    mine = await _work(queue)
    claims = mine + [job_id for _ in children for job_id in results.get(timeout=60)]
    for child in children:
        child.join()

    assert sorted(claims) == sorted(expected)
    assert (await queue.counts()).completed == 400


async def test_case_84_pickling_fails_clearly(bus: Bus) -> None:
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(bus.queue("q"))


# Case 88


def _clients(port: int, socket: str | None) -> dict[str, Callable[[], Any]]:
    return {
        "redis": lambda: redis.asyncio.Redis(port=port),
        "redis resp2": lambda: redis.asyncio.Redis(port=port, protocol=2),
        "redis decoding": lambda: redis.asyncio.Redis(port=port, decode_responses=True),
        "redis blocking pool": lambda: redis.asyncio.Redis(
            connection_pool=redis.asyncio.BlockingConnectionPool(port=port, max_connections=2)
        ),
        "redis unix socket": lambda: redis.asyncio.Redis(unix_socket_path=socket),
        "redis with a connect function": lambda: redis.asyncio.Redis(port=port, redis_connect_func=_greet),
        "valkey": lambda: valkey.asyncio.Valkey(port=port),
        "valkey resp3": lambda: valkey.asyncio.Valkey(port=port, protocol=3),
        "valkey unix socket": lambda: valkey.asyncio.Valkey(unix_socket_path=socket),
    }


async def _greet(connection: Any) -> None:
    await connection.on_connect()
    await connection.send_command("CLIENT", "SETNAME", "greeted")
    await connection.read_response()


@pytest.mark.parametrize("kind", _clients(0, None))
async def test_case_88_client_objects(kind: str, node: Server, control: redis.Redis) -> None:
    client = _clients(node.port, node.socket)[kind]()

    async with await connect(client, wire=4) as bus:
        queue = bus.queue("q")
        job_id = await queue.enqueue(b"\xff\x00")
        job = await queue.claim(30)
        assert job is not None
        assert (job.id, job.payload) == (job_id, b"\xff\x00")
        assert (await queue.counts()).active == 1
        with pytest.raises(errors.StaleToken):
            await queue.complete(job, token=7)
        cut(control, others(control))
        assert await queue.complete(job)
        names = {each["name"] for each in control.client_list()}
        assert ("greeted" in names) is (kind == "redis with a connect function")

    await client.aclose()


@pytest.mark.parametrize("target", [None, object(), b"redis://x", redis.Redis()])
async def test_case_88_what_is_no_client_is_a_clear_type_error(target: object) -> None:
    with pytest.raises(TypeError, match=r"connect takes a URL or a client object|use emq_native\.connect"):
        await connect(target, wire=4)


async def test_case_88_a_master_from_sentinel(node: Server, control: redis.Redis, tmp_path: Path) -> None:
    with Sentinel(node, tmp_path) as sentinel:
        manager = redis.asyncio.Sentinel([("127.0.0.1", sentinel.port)])
        master = manager.master_for("main")

        async with await connect(master, wire=4) as bus:
            queue = bus.queue("q")
            await queue.enqueue(b"x")
            cut(control, others(control))
            assert (await queue.counts()).pending == 1
        await master.aclose()
        for each in manager.sentinels:
            await each.aclose()


@pytest.fixture(scope="module")
def cluster() -> Iterator[list[Server]]:
    """Two nodes in cluster mode, with the module, so that both executors run there."""
    with ExitStack() as stack:
        nodes = [stack.enter_context(Server(config={"cluster-enabled": "yes"})) for _ in range(2)]
        form_cluster(nodes)
        yield nodes


async def _run_on_both_nodes(bus: Bus, executor: Executor) -> None:
    for name in (f"{executor.name}-{number}" for number in range(8)):
        await bus.client.set(f"emq:{{{name}}}:version", executor.identity)
        queue = bus.queue(name)
        job_id = await queue.enqueue(b"x")
        assert await queue.pipeline([t.Where(job_id)]) == ["pending"]
        assert len(await queue.transaction([t.Claim(30)])) == 1
    values = await bus.pipeline([(t.Count(), f"{executor.name}-{number}") for number in range(8)])
    assert {value.active for value in values} == {1}


@pytest.mark.cluster
async def test_a_cluster_has_a_fence_for_each_queue(cluster: list[Server], executor: Executor) -> None:
    async with await connect(cluster[0].url, wire=executor.wire, cluster=True) as bus:
        await bus.client.flushall(target_nodes="all")
        await _run_on_both_nodes(bus, executor)
        if executor.wire == 6:
            with pytest.raises(errors.WireUnclaimed):
                await bus.queue("unclaimed").enqueue(b"x")


@pytest.mark.cluster
@pytest.mark.parametrize("library", ["redis", "valkey"])
async def test_case_88_a_cluster_client(library: str, cluster: list[Server], executor: Executor) -> None:
    made: Any = redis.asyncio.RedisCluster if library == "redis" else valkey.asyncio.ValkeyCluster
    client = made("127.0.0.1", cluster[0].port)
    async with await connect(client, wire=executor.wire) as bus:
        await client.flushall(target_nodes="all")
        await _run_on_both_nodes(bus, executor)
    await client.aclose()


@pytest.mark.cluster
async def test_a_moved_slot_is_followed(cluster: list[Server]) -> None:
    with ExitStack() as stack:
        source, target = (stack.enter_context(each.client()) for each in cluster)
        async with await connect(cluster[0].url, wire=4, cluster=True) as bus:
            name = next(
                each
                for each in map("m{}".format, range(50))
                if source.execute_command("CLUSTER", "KEYSLOT", each) < 16384 // 2
            )
            slot = source.execute_command("CLUSTER", "KEYSLOT", name)
            queue = bus.queue(name)
            await queue.counts()
            source.delete(f"emq:{{{name}}}:version")
            owner = target.execute_command("CLUSTER", "MYID")
            for client in (target, source):
                client.execute_command("CLUSTER", "SETSLOT", slot, "NODE", owner)

            job_id = await queue.enqueue(b"x")
            assert await queue.pipeline([t.Where(job_id)]) == ["pending"]
            assert await queue.transaction([t.Where(job_id)]) == ["pending"]
            assert target.exists(f"emq:{{{name}}}:pending")


def test_every_coroutine_is_awaited_or_never_made(node: Server, control: redis.Redis) -> None:
    """Closing a loop with a bus in use loses no answer to a later one and raises nothing."""

    async def abandon() -> None:
        bus = await connect(node.url, wire=4)
        calls: list[Coroutine[Any, Any, object]] = [bus.queue("q").counts() for _ in range(3)]
        await asyncio.gather(*calls)
        await bus.close()

    asyncio.run(abandon())
    assert others(control) == set()


async def test_both_executors_carry_a_job_through_its_life(host: OwnServer, executor: Executor) -> None:
    async with await connect(host.server.url, wire=executor.wire) as bus:
        queue = bus.queue(f"life-{mint()}")
        job = await _claimed(queue)
        assert await queue.retry(job, max_attempts=2, error="first") == "scheduled"
        assert await queue.promote() == 1
        second = await queue.claim(30)
        assert second is not None
        with pytest.raises(errors.StaleToken):
            await queue.complete(job)
        assert await queue.complete(second)
        assert (await queue.counts()).completed == 1
        assert (await queue.version()).wire == executor.wire
