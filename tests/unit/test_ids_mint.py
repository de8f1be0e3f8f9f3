"""The mint: one cell per process, over clocks that misbehave, bursts, threads, signals and forks."""

from __future__ import annotations

import errno
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emq_native import ids, nodes
from emq_native.errors import InvalidArgument, InvalidId, MintExhausted
from emq_native.ids import JobId, Mint
from emq_native.nodes import Lease, Node

# Forks amid threads are what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")

NOON = 1750000000000
CAPACITY = 4096


class Clock:
    """A clock that the test sets."""

    def __init__(self, ms: int = NOON) -> None:
        self.ms = ms

    def __call__(self) -> int:
        return self.ms


def node_7(besides: int | None) -> Node:
    return Node(7, "configured")


def increases(texts: Iterable[str]) -> bool:
    return all(a < b for a, b in itertools.pairwise(texts))


def test_the_listed_ids_come_out() -> None:
    """C017, the mint vector of section 4.5."""
    mint = Mint(Clock(), node_7)
    minted = [mint() for _ in range(CAPACITY)]

    assert (minted[0], minted[4094], minted[4095]) == ("JOB0EEMl9I7Qw5", "JOB0EEMl9I7S07", "JOB0EEMl9IP248")


@given(st.lists(st.tuples(st.integers(-3_600_000, 3_600_000), st.integers(1, 30)), min_size=1, max_size=30))
def test_case_96_ids_increase_whatever_the_clock_does(steps: list[tuple[int, int]]) -> None:
    """case 96"""
    clock = Clock()
    mint = Mint(clock, node_7)
    minted = []
    for offset, count in steps:
        clock.ms = NOON + offset
        minted += [mint() for _ in range(count)]

    assert increases(minted)
    assert JobId(minted[-1]).ms == max(NOON, *(NOON + offset for offset, _ in steps))


def test_case_96_a_step_back_does_not_reset_the_sequence() -> None:
    """case 96"""
    clock = Clock()
    mint = Mint(clock, node_7)
    minted = []
    for offset in (0, 1, -5, -4, -3, -2, -1, 0, 1, -3_600_000, 3_600_000, 1):
        clock.ms = NOON + offset
        minted.append(mint())

    assert increases(minted)
    last = JobId(minted[-1])
    assert (last.ms, last.sequence) == (NOON + 3_600_000, 1)


def test_threads_share_one_cell_over_a_clock_that_steps_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """C018"""
    readings = itertools.count()
    mint = Mint(lambda: NOON + 10_000 - 10_000 * (next(readings) > 20_000), node_7)
    mint()
    monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail("a mint waits"))
    minted: list[list[str]] = [[] for _ in range(8)]

    def fill(mine: list[str]) -> None:
        mine += [mint() for _ in range(10_000)]

    threads = [threading.Thread(target=fill, args=(mine,)) for mine in minted]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert all(increases(mine) for mine in minted)
    assert len(set(itertools.chain(*minted))) == 80_000


def test_case_98_a_frozen_clock_gives_three_full_milliseconds_and_one() -> None:
    """case 98"""
    mint = Mint(Clock(), node_7)
    minted = [JobId(mint()) for _ in range(3 * CAPACITY + 1)]

    assert increases(minted)
    assert minted[-1].ms == NOON + 3
    assert {job.node for job in minted} == {7}


def test_case_98_a_clock_that_moves_while_it_is_read_gives_no_id_twice() -> None:
    """case 98"""
    readings = itertools.count()
    mint = Mint(lambda: NOON + next(readings) // 5000, node_7)

    assert increases(mint() for _ in range(20_000))


def test_case_98_a_million_ids_flat_out_increase() -> None:
    """case 98"""
    ids.mint()

    assert increases(ids.mint() for _ in range(1_000_000))


def test_given_the_rate_falls_the_drift_is_given_back() -> None:
    """case 98"""
    clock = Clock()
    mint = Mint(clock, node_7)
    for _ in range(3 * CAPACITY + 1):
        mint()
    assert mint.last_ms - clock.ms == 3

    drifts = []
    for _ in range(5):
        clock.ms += 1
        mint()
        drifts.append(mint.last_ms - clock.ms)
    assert drifts == [2, 1, 0, 0, 0]


def test_a_shared_node_starts_each_millisecond_at_random() -> None:
    clock = Clock()
    mint = Mint(clock, lambda besides: Node(7, "drawn"))
    starts = set()
    for _ in range(200):
        clock.ms += 1
        starts.add(JobId(mint()).sequence)

    assert len(starts) > 100
    assert max(starts) <= 1023


def test_a_configured_node_starts_each_millisecond_at_zero() -> None:
    clock = Clock()
    mint = Mint(clock, node_7)
    clock.ms += 1

    assert JobId(mint()).sequence == 0


@pytest.mark.parametrize("ms", [0, -1, ids.EPOCH_MS - 1])
def test_a_clock_before_the_epoch_counts_as_the_epoch(ms: int) -> None:
    mint = Mint(Clock(ms), node_7)

    assert JobId(mint()).ms == ids.EPOCH_MS


def test_a_clock_beyond_the_last_instant_is_an_error_until_it_is_set_right() -> None:
    clock = Clock(ids.LAST_MS + 1)
    mint = Mint(clock, node_7)
    with pytest.raises(MintExhausted):
        mint()

    clock.ms = NOON
    assert JobId(mint()).ms == NOON


def test_the_last_number_of_all_is_the_end() -> None:
    mint = Mint(Clock(ids.LAST_MS), node_7)
    for _ in range(CAPACITY - 1):
        last = mint()
    with pytest.raises(MintExhausted):
        mint()
    assert JobId(last).sequence == 4095


@pytest.mark.parametrize("namespace", ["", "JO", "JOBS", "job", "J B", "ÄÖ", "JÄ"])
def test_a_namespace_is_three_capitals(namespace: str) -> None:
    with pytest.raises(InvalidId, match="namespace"):
        ids.mint(namespace)


def test_other_namespaces_come_from_the_same_cell() -> None:
    mint = Mint(Clock(), node_7)

    assert [mint("USR")[3:], mint()[3:]] == ["0EEMl9I7Qw5", "0EEMl9I7Qw6"]


def test_a_signal_handler_may_mint_in_the_middle_of_a_mint() -> None:
    mint = Mint(Clock(), node_7)
    minted: list[str] = []
    before = signal.signal(signal.SIGALRM, lambda *_: minted.append(mint()))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
        for _ in range(100_000):
            minted.append(mint())
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

    assert len(set(minted)) == len(minted) > 100_000


# Forks


def in_child(work: Callable[[], Iterable[str]], *, linger: bool = False) -> tuple[int, int]:
    """Forks; the child writes what `work` answers to a pipe and ends, or lingers to be killed. Answers pid and pipe."""
    source, sink = os.pipe()
    pid = os.fork()
    if pid:
        os.close(sink)
        return pid, source
    status = 1
    try:
        os.close(source)
        with open(sink, "w", encoding="ascii") as pipe:
            pipe.write("\n".join(work()))
        if linger:
            signal.pause()
        status = 0
    finally:
        os._exit(status)


def harvest(pid: int, source: int) -> list[str]:
    with open(source, encoding="ascii") as pipe:
        return pipe.read().split()


def reap(pid: int) -> None:
    assert os.waitpid(pid, 0)[1] == 0


def test_a_forked_child_goes_on_under_a_node_of_its_own() -> None:
    """C019"""
    first = ids.mint()
    pid, source = in_child(lambda: (ids.mint() for _ in range(10_000)))
    ours = [ids.mint() for _ in range(10_000)]
    theirs = harvest(pid, source)
    reap(pid)

    assert increases([first, *ours])
    assert increases([first, *theirs])
    assert not set(ours) & set(theirs)
    assert {JobId(job).node for job in theirs}.isdisjoint({JobId(job).node for job in ours})


def test_case_97_32_children_with_one_frozen_clock_mint_no_id_twice() -> None:
    """case 97"""
    mint = Mint(Clock())
    seen = {mint()}
    children = [in_child(lambda: (mint() for _ in range(20_000)), linger=True) for _ in range(32)]
    minted = [harvest(*child) for child in children]
    for pid, _ in children:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)

    assert all(increases(mine) for mine in minted)
    seen.update(*minted)
    assert len(seen) == 32 * 20_000 + 1


def test_case_97_a_child_of_a_child_is_no_twin_either() -> None:
    """case 97"""

    def grandchildren() -> Iterator[str]:
        mine = [ids.mint() for _ in range(1000)]
        pid, source = in_child(lambda: (ids.mint() for _ in range(1000)))
        mine += [ids.mint() for _ in range(1000)]
        mine += harvest(pid, source)
        reap(pid)
        yield from mine

    pid, source = in_child(grandchildren)
    ours = [ids.mint() for _ in range(1000)]
    minted = ours + harvest(pid, source)
    reap(pid)

    assert len(set(minted)) == 4000


def test_a_fork_amid_minting_threads_leaves_a_mint_that_works() -> None:
    done = threading.Event()

    def work() -> None:
        while not done.is_set():
            ids.mint()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        children = [in_child(lambda: (ids.mint() for _ in range(100))) for _ in range(10)]
        minted = [harvest(*child) for child in children]
        for pid, _ in children:
            reap(pid)
    finally:
        done.set()
        for thread in threads:
            thread.join()

    assert [len(mine) for mine in minted] == [100] * 10
    assert len(set(itertools.chain(*minted))) == 1000


def test_a_child_that_has_its_parents_pid_in_another_namespace_is_no_twin() -> None:
    ids.mint()
    parent = os.getpid()

    def child() -> Iterator[str]:
        os.getpid = lambda: parent
        yield ids.mint()

    pid, source = in_child(child)
    (theirs,) = harvest(pid, source)
    reap(pid)

    assert JobId(theirs).node != JobId(ids.mint()).node


def test_a_child_that_mints_nothing_does_not_hold_its_parents_node() -> None:
    script = """if True:
        import os, sys
        from emq_native import ids
        print(ids.node().number, flush=True)
        if os.fork() == 0:
            sys.stdin.read()
    """
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        node = int(process.stdout.readline())
        process.wait()
        Lease(node).release()


def test_a_child_of_a_configured_process_gets_another_node_until_it_is_configured() -> None:
    mint = Mint(Clock())
    mint.configure(1000)

    def child() -> Iterator[str]:
        yield mint()
        mint.configure(1001)
        yield mint()

    pid, source = in_child(child)
    inherited, configured = (JobId(text) for text in harvest(pid, source))
    reap(pid)

    assert JobId(mint()).node == 1000
    assert inherited.node != 1000
    assert configured.node == 1001
    assert configured > inherited


# Nodes


def test_case_97_fresh_processes_lease_different_nodes() -> None:
    """case 97"""
    script = """if True:
        import sys
        from emq_native import ids
        print(*(ids.mint() for _ in range(2000)), flush=True)
        sys.stdin.read()
    """
    processes = [
        subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(8)
    ]
    minted: list[str] = []
    for process in processes:
        assert process.stdout is not None
        minted += process.stdout.readline().split()
    for process in processes:
        process.communicate("")
        assert process.returncode == 0

    assert len({JobId(job).node for job in minted}) == 8
    assert len(set(minted)) == 16_000


def test_case_97_processes_alike_in_host_and_pid_draw_different_nodes() -> None:
    """case 97"""
    drawn = [nodes.acquired(lease=cannot_lease) for _ in range(64)]

    assert {node.origin for node in drawn} == {"drawn"}
    assert len({node.number for node in drawn}) > 32


def cannot_lease(node: int) -> Lease:
    raise OSError(errno.EPERM, "no sockets here")


def test_a_leased_node_is_not_used_in_the_millisecond_in_which_it_was_free() -> None:
    before = time.time_ns() // 1_000_000
    node = nodes.acquired()
    node.release()

    assert node.origin == "leased"
    assert time.time_ns() // 1_000_000 > before


def test_a_held_node_is_passed_over() -> None:
    held = nodes.acquired()
    try:
        assert held.origin == "leased"
        with pytest.raises(OSError, match="in use"):
            Lease(held.number)
    finally:
        held.release()
    Lease(held.number).release()


def test_a_lease_ends_with_its_process_even_when_it_is_killed() -> None:
    node = nodes.acquired()
    node.release()
    script = f"""if True:
        import sys
        from emq_native.nodes import Lease
        lease = Lease({node.number})
        print("held", flush=True)
        sys.stdin.read()
    """
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(OSError, match="in use"):
            Lease(node.number)
        process.kill()
        process.wait()
        Lease(node.number).release()


def test_when_every_node_is_held_one_is_drawn() -> None:
    asked = []

    def all_held(node: int) -> Lease:
        asked.append(node)
        raise OSError(errno.EADDRINUSE, "held")

    node = nodes.acquired(5, lease=all_held)

    assert node.origin == "drawn"
    assert node.number != 5
    assert sorted(asked) == [n for n in range(1024) if n != 5]


def test_a_configured_node_is_not_leased_to_a_neighbour() -> None:
    free = nodes.acquired()
    free.release()
    mint = Mint(Clock())
    mint.configure(free.number)

    with pytest.raises(OSError, match="in use"):
        Lease(free.number)
    mint.configure((free.number + 1) % 1024)
    Lease(free.number).release()


def test_a_configured_node_shows() -> None:
    mint = Mint(Clock())
    mint.configure(1023)

    assert mint.node == Node(1023, "configured")
    assert JobId(mint()).node == 1023


@pytest.mark.parametrize("number", [-1, 1024, True, 1.0, "7", None])
def test_a_node_is_an_int_of_10_bits(number: Any) -> None:
    with pytest.raises(InvalidArgument):
        ids.configure_node(number)


@pytest.mark.parametrize("number", [-1, True, 1.0, "1", 1 << 62])
def test_a_number_of_ids_is_an_int_that_fits(number: Any) -> None:
    with pytest.raises(InvalidArgument):
        ids.mint_many(number)
