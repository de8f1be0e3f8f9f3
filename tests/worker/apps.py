"""An app for worker processes: its node is the one of $EMQ_URL."""

from __future__ import annotations

import os
import time
from pathlib import Path

from emq_native import App, HeldJob

app = App(queue="jobs")


@app.task("note", retries=0)
def note(path: str, text: str, seconds: float = 0.0) -> None:
    """Append a line to a file; first the process, then, after a while, the text."""
    with Path(path).open("a") as file:
        file.write(f"pid {os.getpid()}\n")
    time.sleep(seconds)
    if text == "fail":
        raise ValueError(text)
    with Path(path).open("a") as file:
        file.write(f"{text}\n")


@app.task("other", queue="others")
async def other() -> None:
    """Nothing."""


def slow(job: HeldJob) -> None:
    """A handler in a module: notes its process."""
    path = (job.payload or b"").decode()
    with Path(path).open("a") as file:
        file.write(f"{os.getpid()}\n")
