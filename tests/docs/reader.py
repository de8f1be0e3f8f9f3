"""One who reads a page and does what it says, on a node of his own."""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import redis
from tests.docs.pages import ROOT, Block

from emq_native import App
from emq_native.server import Server

PATIENCE_S = 120

CLI = '''#!{python}
"""What valkey-cli does with a command on its command line; --json answers in JSON."""
import json, os, sys
import redis

words, url, as_json = sys.argv[1:], os.environ["EMQ_URL"], False
while words and words[0].startswith("-"):
    option = words.pop(0)
    if option == "--json":
        as_json = True
    elif option == "-u":
        url = words.pop(0)
    elif option == "-p":
        url = "redis://127.0.0.1:" + words.pop(0)
    else:
        sys.exit(f"valkey-cli: {{option}} is not known here")
client = redis.Redis.from_url(url, protocol=3, decode_responses=True)
client.response_callbacks.clear()
try:
    answer = client.execute_command(*words)
except redis.RedisError as refusal:
    sys.exit(f"(error) {{refusal}}")
if as_json:
    print(json.dumps(answer))
elif isinstance(answer, dict):
    print("\\n".join(f"{{name}} {{value}}" for name, value in answer.items()))
else:
    print(*answer if isinstance(answer, list) else [answer], sep="\\n")
'''


class Reader:
    """Runs the blocks of one page in order: what one leaves behind, the next one finds.

    server: what is meant by port 6379 of this machine; directory: where files are written and commands run.
    """

    def __init__(self, server: Server, directory: Path) -> None:
        self.server = server
        self.directory = directory
        self.names: dict[str, object] = {"__name__": "page"}
        self._groups: list[int] = []
        tools = directory / "bin"
        tools.mkdir()
        (tools / "valkey-cli").write_text(CLI.format(python=sys.executable))
        (tools / "valkey-cli").chmod(0o755)
        self.environment = os.environ | {
            "EMQ_URL": server.url,
            "PATH": f"{tools}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(directory),
            "PYTHONUNBUFFERED": "1",
        }

    def here(self, text: str) -> str:
        """A text of a page with this server in place of the one on port 6379."""
        return text.replace("127.0.0.1:6379", f"127.0.0.1:{self.server.port}").replace(
            "--port 6379", f"--port {self.server.port}"
        )

    def write(self, name: str, block: Block) -> None:
        (self.directory / name).write_text(self.here(block.text))

    def shell(self, command: str, *, status: int = 0) -> str:
        """What a command prints. What it left in the background is ended by `close`."""
        output = self.directory / "bin" / "output"
        with output.open("w") as file:
            process = subprocess.Popen(
                ["bash", "-euo", "pipefail", "-c", self.here(command)],
                cwd=self.directory,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            self._groups.append(process.pid)
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise
        printed = output.read_text()
        assert process.returncode == status, f"{process.returncode} from\n{command}\n{printed}"
        return printed

    def python(self, block: Block) -> str:
        """What a snippet prints. Its names stay for the next ones of the page."""
        code = "\n" * (block.line - 1) + self.here(block.text)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(ROOT / block.page), "exec"), self.names)
        return printed.getvalue()

    def read(self, blocks: list[Block]) -> None:
        """Do what a page says, and see that it prints what it says."""
        printed = ""
        for block in blocks:
            if block.remark == "file":
                self.write(block.value, block)
            elif block.remark == "output":
                checker = doctest.OutputChecker()
                flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
                assert checker.check_output(self.here(block.text), printed, flags), (
                    f"{block} is not what came:\n{printed}"
                )
            elif block.runs:
                if block.remark == "given":
                    self.shell(block.value)
                printed = self.python(block) if block.language == "python" else self.shell(block.text)

    def close(self) -> None:
        for group in self._groups:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", None) or "").startswith(f"{self.directory}/"):
                for made in vars(module).values():
                    if isinstance(made, App):
                        made.close()
                del sys.modules[name]
        for made in self.names.values():
            if hasattr(made, "close"):
                with contextlib.suppress(Exception):
                    made.close()


def free_port() -> int:
    """A port of this machine at which nothing serves."""
    with Server(module=False) as server:
        return server.port


def until_it_serves(server: Server) -> None:
    """Wait until a server that somebody else started answers at the port of this one."""
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            with server.client() as client:
                client.ping()
            return
        except redis.ConnectionError:
            assert time.monotonic() < end, f"nothing serves at {server.port}"
            time.sleep(0.02)
