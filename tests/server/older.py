"""A module of another version: our own sources, built with another number."""

from __future__ import annotations

import subprocess
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "module" / "src"
VERSION = "0.0.9"


def build(folder: Path) -> str:
    """Build it in `folder`. Returns the path of its `emq.so`."""
    header = (SOURCES / "wire.h").read_text()
    changed = header.replace('VERSION "0.1.0"', f'VERSION "{VERSION}"').replace(
        "VERSION_NUMBER 100 ", "VERSION_NUMBER 9 "
    )
    assert changed != header
    (folder / "wire.h").write_text(changed)
    for source in SOURCES.glob("*.[ch]"):
        if source.name != "wire.h":
            (folder / source.name).write_text(source.read_text())
    module = folder / "emq.so"
    sources = [str(path) for path in sorted(folder.glob("*.c"))]
    options = ["-std=c11", "-D_GNU_SOURCE", "-shared", "-fPIC", "-fvisibility=hidden"]
    subprocess.run(["cc", *options, "-o", str(module), *sources], check=True)
    return str(module)
