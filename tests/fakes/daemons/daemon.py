"""A real gatewayd process, for tests that need the whole of it."""

import contextlib
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gatewayctl.client import ControlClient
from gatewayctl.transport import Transport
from gatewayctl.wire.routes import READ_METRICS
from tests.fakes.daemons import forking
from tests.fakes.daemons.forking import Forked
from tests.fakes.http.raw_http import send
from tests.fakes.storage.migrated import NAME, migrated_copy

START_SECONDS = 60.0
PORT_SECONDS = 20.0


@dataclass
class Daemon:
    """A running daemon and ways to talk to it."""

    process: subprocess.Popen[bytes] | Forked
    base_url: str
    socket: Path
    state: Path
    log: list[str] = field(default_factory=list)

    def run_ctl(
        self,
        *args: str,
        input: str | None = None,
        env: Mapping[str, str] | None = None,
        seconds: float = 60,
    ) -> subprocess.CompletedProcess[str]:
        """Run gatewayctl against this daemon's control socket."""
        given = {**os.environ, "NO_COLOR": "1", **(env or {})}
        return forking.run("gatewayctl", ["--socket", str(self.socket), *args], given, input, seconds)

    def call(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Any]:
        """Send one HTTP request and return status and decoded JSON (or text)."""
        data = None if body is None else json.dumps(body).encode()
        sent = {"Content-Type": "application/json", **(headers or {}), "Connection": "close"}
        reply = send(self.base_url, method, path, data, sent, seconds=90)
        return reply.status, decoded(reply.body)

    def metrics(self) -> str:
        """Return what `gatewayctl metrics` prints, without a process."""
        return ControlClient(Transport(self.socket)).read(READ_METRICS)

    def wait_for(self, words: str, seconds: float = START_SECONDS) -> str:
        """Wait until the daemon has printed these words and return all that it printed so far."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            text = "".join(self.log)
            if words in text:
                return text
            time.sleep(0.05)
        raise AssertionError(f"the daemon did not print {words!r}:\n" + "".join(self.log))

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and return the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(timeout=60)


def decoded(data: bytes) -> Any:
    """Return what JSON says, or the text that it is not."""
    try:
        return json.loads(data)
    except ValueError:
        return data.decode(errors="replace")


def free_port() -> int:
    """Return a loopback port that nobody uses just now."""
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def await_port(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    """Wait until a server listens on a port of loopback; fail with its log when it ends or takes too long."""
    deadline = time.monotonic() + PORT_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise AssertionError(f"{process.args} did not start: {log.read_text()}")


def environment(state: Path, port: int, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a daemon that keeps everything below `state`."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "VIRTUAL_ENV") if name in os.environ}
    return {
        **kept,
        "PYTHONPATH": str(Path(__file__).parents[3]),
        "DATA_DIR": str(state),
        "CONTROL_SOCKET": str(state / "control.sock"),
        "HOST": "127.0.0.1",
        "PORT": str(port),
        "ENABLE_BUILTIN_MODEL": "false",
        # A test makes its administrator by the first sign-up; what keeps strangers from it has its own tests.
        "ENABLE_INITIAL_ADMIN_SIGNUP": "true",
        "SIGNUP_LIMIT": "1000",
        "SIGNUP_ADDRESS_LIMIT": "1000",
        **settings,
    }


def started(
    module: str, args: Sequence[str], env: Mapping[str, str], sockets: Sequence[int] = ()
) -> subprocess.Popen[bytes] | Forked:
    """Start a module; the daemon itself without its imports, unless it is to be started as people do it."""
    if module == "gatewayd" and "--quickstart" not in args:
        return forking.start_logged(module, args, env, sockets)
    return subprocess.Popen(
        [sys.executable, "-m", module, *args],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


@dataclass(frozen=True)
class Start:
    """How a daemon is to be started; see `running_daemon`."""

    state: Path
    args: Sequence[str]
    settings: Mapping[str, str]
    ready: bool = True
    fresh: bool = False
    module: str = "gatewayd"
    activated: Sequence[socket.socket] = ()
    files: int | None = None

    def changed(self, state: Path, settings: Mapping[str, str]) -> "Start":
        """Return the same start of another state with other settings."""
        return replace(self, state=state, settings=settings)


@contextlib.contextmanager
def running_alone(start: Start, log: list[str] | None = None) -> Iterator[Daemon]:
    """Run one process, which prints to a list that may be shared."""
    state, args, settings = start.state, start.args, start.settings
    state.mkdir(parents=True, exist_ok=True)
    is_made = "--quickstart" in args or "DATABASE_URL" in settings or (state / NAME).exists()
    if not (start.fresh or is_made):
        migrated_copy(state)
    port = int(settings.get("PORT", 0)) or free_port()
    env = environment(state, port, settings)
    activated = start.activated
    if activated:
        env |= {"LISTEN_FDS": str(len(activated)), "LISTEN_FDNAMES": ":".join("http" for _ in activated)}
    process = started(start.module, args, env, [channel.fileno() for channel in activated])
    if start.files is not None:
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (start.files, start.files))
    printed: list[str] = [] if log is None else log
    daemon = Daemon(process, f"http://127.0.0.1:{port}", state / "control.sock", state, printed)
    reader = threading.Thread(target=_drain, args=(daemon,), daemon=True)
    reader.start()
    try:
        if start.ready:
            wait_ready(daemon)
        yield daemon
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(timeout=45)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        reader.join(timeout=5)
        assert process.stdout is not None
        process.stdout.close()


class Starting:
    """What starts the daemons of tests: a process each, or what tests/conftest.py puts in its place."""

    run: Callable[[Start], contextlib.AbstractContextManager[Daemon]] = staticmethod(running_alone)


@contextlib.contextmanager
def running_daemon(
    state: Path,
    *args: str,
    ready: bool = True,
    fresh: bool = False,
    module: str = "gatewayd",
    activated: Sequence[socket.socket] = (),
    files: int | None = None,
    **settings: str,
) -> Iterator[Daemon]:
    """Start `python -m gatewayd`, or a module that runs it, with its state below a folder; stop it at last.

    A new one finds a database with its schema, unless it is to be `fresh` or has the state of a quick start.
    It listens on a port, or on the sockets that it is `activated` with. `files` is how many it may open.
    With GATEWAYD_TEST_NODES it is several nodes behind a balancer; see tests/fakes/cluster/balanced.py.
    """
    start = Start(state, args, settings, ready, fresh, module, activated, files)
    with Starting.run(start) as daemon:
        yield daemon


def wait_ready(daemon: Daemon) -> None:
    """Wait until the daemon says that it is ready; fail with its log when it ends or takes too long."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if daemon.process.poll() is not None:
            time.sleep(0.1)
            raise AssertionError("the daemon ended:\n" + "".join(daemon.log))
        with contextlib.suppress(OSError):
            if daemon.call("GET", "/readyz")[0] == 200:
                return
        time.sleep(0.05)
    raise AssertionError("the daemon did not become ready:\n" + "".join(daemon.log))


def _drain(daemon: Daemon) -> None:
    assert daemon.process.stdout is not None
    for line in daemon.process.stdout:
        daemon.log.append(line.decode(errors="replace"))


def run_daemon(state: Path, *args: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m gatewayd`, without its imports, until it ends by itself."""
    return forking.run("gatewayd", args, environment(state, free_port(), settings), None, 60)
