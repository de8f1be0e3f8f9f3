"""Modules that are not the one of this package: another version of it, and a foreign one of the same name."""

from __future__ import annotations

import subprocess
from pathlib import Path

FOREIGN = """
typedef struct { int (*get)(const char *, void *); } context;
int ValkeyModule_OnLoad(context *ctx, void **argv, int argc) {
    (void)argv, (void)argc;
    int (*set_attributes)(context *, const char *, int, int);
    if (ctx->get("ValkeyModule_SetModuleAttribs", &set_attributes)) return 1;
    set_attributes(ctx, "emq", 30201, 1);
    return 0;
}
"""

SOURCES = Path(__file__).parents[2] / "module" / "src"
VERSION = "0.0.9"


def build_foreign(folder: Path) -> str:
    """Build a module named `emq`, version 3.2.1, without any command. Returns its path."""
    module = folder / "foreign.so"
    command = ["cc", "-shared", "-fPIC", "-xc", "-o", str(module), "-"]
    subprocess.run(command, input=FOREIGN, text=True, check=True)
    return str(module)


def build(folder: Path) -> str:
    """Build our own sources with another version number in `folder`. Returns the path of its `emq.so`."""
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
