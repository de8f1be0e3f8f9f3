"""What a type checker makes of the public surface: values and arguments are inferred for both kinds of queue."""

from __future__ import annotations

from pathlib import Path

import pytest

PROGRAM = """
from typing import Literal
from typing_extensions import assert_type
from emq_native import Admitted, Counts, GroupCounts, Job, aio, connect

def synchronous() -> None:
    with connect("valkey://localhost", wire=6) as bus:
        queue = bus.queue("q")
        assert_type(queue.enqueue(b"x", group="g"), Admitted)
        job = queue.claim(lease=30)
        assert_type(job, Job | None)
        if job is not None:
            assert_type(queue.complete(job, result=b"r"), bool)
            assert_type(queue.retry(job, max_attempts=3), Literal["scheduled", "dead"])
        assert_type(queue.counts(), Counts)
        assert_type(queue.claim_many(30, 5), list[Job])
        assert_type(queue.group_counts("g", "h"), list[GroupCounts])
        assert_type(queue.peek("JOB0EEMl9I7Qw4"), dict[str, bytes] | None)

async def asynchronous() -> None:
    async with await aio.connect("valkey://localhost", wire=6) as bus:
        queue = bus.queue("q")
        assert_type(await queue.enqueue(b"x", group="g"), Admitted)
        assert_type(await queue.claim(lease=30), Job | None)
        assert_type(await queue.log("JOB0EEMl9I7Qw4", "line"), int | None)

def wrong() -> None:
    queue = connect("valkey://localhost").queue("q")
    queue.claim()  # type: ignore[call-arg]
    queue.claim("30")  # type: ignore[arg-type]
    queue.enqueue("text")  # type: ignore[arg-type]
    queue.retry("JOB0EEMl9I7Qw4")  # type: ignore[call-arg]
    queue.nonsense()  # type: ignore[attr-defined]
"""


def test_a_strict_type_checker_agrees(tmp_path: Path) -> None:
    api = pytest.importorskip("mypy.api")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)

    report, complaints, status = api.run(["--strict", "--cache-dir", str(tmp_path / "cache"), str(program)])

    assert status == 0, report + complaints
