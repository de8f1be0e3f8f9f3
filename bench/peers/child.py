"""One half of one library, in a process of its own and in that library's virtual environment.

    child.py produce LIBRARY                  answers each line of standard input with a line of JSON
    child.py work LIBRARY SETUP [scheduler]   works until it is killed; SETUP is a number

The producer's lines: send N (jobs, one by one), many N (as many at once as the library can), one NUMBER, later NUMBER
SECONDS. Its first answer holds the versions of what is installed; each further one when the command began and ended
(monotonic nanoseconds) and the CPU seconds that it took.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import sys
import time
from importlib import metadata

from libraries import LIBRARIES, OWN, Library


def versions(library: Library) -> dict[str, str]:
    names = [re.split(r"[\[<>=]", package)[0] for package in library.packages] or [OWN]
    return {name: metadata.version(name) for name in names}


async def produce(library: Library) -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a library prints is not an answer
    await library.open()
    answers.write(json.dumps({"versions": versions(library)}) + "\n")
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        command, number, *seconds = line.split()
        used, began = time.process_time(), time.monotonic_ns()
        if command == "send":
            for each in range(int(number)):
                await library.send(each)
        elif command == "many":
            await library.send_many(range(int(number)))
        elif command == "one":
            await library.send(int(number))
        elif command == "later":
            await library.send_later(int(number), float(seconds[0]))
        ended = time.monotonic_ns()
        answers.write(json.dumps({"began": began, "ended": ended, "cpu": time.process_time() - used}) + "\n")
    os._exit(0)  # whatever the library has running


def main() -> None:
    logging.basicConfig(level=logging.WARNING)
    role, name, *words = sys.argv[1:]
    library = LIBRARIES[name]()
    if role == "produce":
        asyncio.run(produce(library))
    else:
        library.work(library.setups[int(words[0])], "scheduler" in words)


if __name__ == "__main__":
    main()
