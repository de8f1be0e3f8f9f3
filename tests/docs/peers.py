"""The code of other systems that the pages on migrating show, run against those systems, each in a folder of its own.

    python -m tests.docs.peers          # makes environments in build/peers, which needs PyPI; a minute

The versions are those that the pages name.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from tests.docs.pages import ROOT, blocks

from emq_native.server import Server

PEERS = {
    "docs/migrating/rq.md": ("rq==3.0.*",),
    "docs/migrating/celery.md": ("celery==5.7.*", "redis", "packaging"),
    "docs/migrating/arq.md": ("arq==0.28.*",),
}
ENVIRONMENTS = ROOT / "build" / "peers"


def install(page: str) -> Path:
    """Where the commands of the other system are, each system in an environment of its own."""
    environment = ENVIRONMENTS / Path(page).stem
    if not (environment / "bin" / "python").exists():
        venv.create(environment, with_pip=True)
    command = [str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*command, *PEERS[page]], check=True)
    return environment / "bin"


def run(page: str, tools: Path, server: Server, folder: Path) -> None:
    """Write every block of the page that is a file, then run those that are commands or that send."""
    shown = [block for block in blocks(page) if block.remark == "theirs"]
    assert shown, page
    address = f"127.0.0.1:{server.port}"
    for block in shown:
        text = block.text.replace('"127.0.0.1", 6379', f'"127.0.0.1", {server.port}').replace("127.0.0.1:6379", address)
        text = text.replace("_defer_by=90", "_defer_by=1")  # arq in burst mode waits for what is due later
        if block.language == "sh":
            command = ["bash", "-euc", f'PATH="{tools}:$PATH"; {text}']
        else:
            (folder / block.value).write_text(text)
            if block.value != "send.py":
                continue
            command = [str(tools / "python"), block.value]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
        printed = done.stdout + done.stderr
        print(f"{block}\n{printed}")
        assert done.returncode == 0, f"{block} ended with {done.returncode}"
        assert block.language != "sh" or "resized cat.png to 200" in printed, f"{block} did not run the job"


def main() -> int:
    for page in PEERS:
        tools = install(page)
        with Server(module=False) as server, tempfile.TemporaryDirectory() as folder:
            run(page, tools, server, Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
