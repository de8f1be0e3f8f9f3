"""The same for asyncio.

from emq_native.aio import connect

async with await connect("valkey://localhost") as bus:
    queue = bus.queue("emails")
    await queue.enqueue(b"hello")
    job = await queue.claim(lease=30)
    if job is not None:
        await queue.complete(job)
"""

from __future__ import annotations

from emq_native.aio.connector import Bus, connect
from emq_native.aio.queue import Queue
from emq_native.aio.worker import Worker

__all__ = ["Bus", "Queue", "Worker", "connect"]
