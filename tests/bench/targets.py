"""What is measured: the mock provider directly, through nginx, and through gatewayd. All on loopback."""

import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.bench.processes import Session, running_session
from tests.bench.tools import CannotRunError, Tools, Work, require, running_load
from tests.fakes.daemons.daemon import free_port

START_SECONDS = 60.0
COUNTERS = ("gatewayd_http_requests_total", "gatewayd_http_fast_requests_total")
METRICS_HEADERS = {"Gatewayd-Protocol": "1"}
KEY = "sk-bench"  # of nginx; each gateway issues its own
ROUTER_NAME = "vllm-router"
GATEWAY_PATH = "/api/chat/completions"
MOCK_PATH = "/v1/chat/completions"
MODELS = ("m-fast", "m-c10-i5", "m-c50-i10", "m-c50-i100", "m-c100-i0", "m-c100-i20", "m-c40-i15000")

NGINX = """
daemon off;
{user}
worker_processes 1;
worker_rlimit_nofile {files};
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections {connections}; multi_accept on; }}
http {{
    access_log off;
    keepalive_requests 1000000000;
    client_body_buffer_size 256k;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    map $http_authorization $is_known {{ default 0; "Bearer {key}" 1; }}
    upstream provider {{ server 127.0.0.1:{provider}; keepalive 1024; keepalive_requests 1000000000; }}
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        location / {{
            if ($is_known = 0) {{ return 401; }}
            proxy_pass http://provider;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_buffering off;
            proxy_read_timeout 1h;
        }}
    }}
}}
"""

GATEWAY = """
data_dir = "{state}"
control_socket = "{state}/control.sock"
host = "127.0.0.1"
enable_builtin_model = false
enable_api_keys = true

[[providers]]
name = "mock"
base_url = "http://127.0.0.1:{provider}/v1"
"""


@dataclass(frozen=True)
class RequestCounts:
    """Requests that a gateway has answered, and those of them on its fast path."""

    requests: float
    fast: float


@dataclass(frozen=True)
class Target:
    """A server that answers chat completions; `control` is the control socket of a gateway."""

    name: str
    port: int
    path: str
    session: Session
    key: str | None = None
    control: Path | None = None

    def counts(self) -> RequestCounts | None:
        """Return the requests so far; None for a target that does not count them."""
        if self.control is None:
            return None
        with http_over(self.control) as connection:
            connection.request("GET", "/v1/metrics", headers=METRICS_HEADERS)
            lines = connection.getresponse().read().decode().splitlines()
        samples = [line.rsplit(" ", 1) for line in lines if line.startswith(COUNTERS)]
        found = dict.fromkeys(COUNTERS, 0.0)
        for name, value in samples:
            found[name.split("{")[0]] += float(value)
        if not found[COUNTERS[0]]:
            return None
        return RequestCounts(found[COUNTERS[0]], found[COUNTERS[1]])


@contextlib.contextmanager
def http_over(path: Path) -> Iterator[http.client.HTTPConnection]:
    """Connect to a unix socket that speaks HTTP."""
    connection = http.client.HTTPConnection("localhost", timeout=START_SECONDS)
    with contextlib.closing(connection), socket.socket(socket.AF_UNIX) as channel:
        channel.settimeout(START_SECONDS)
        channel.connect(str(path))
        connection.sock = channel
        yield connection


@dataclass(frozen=True)
class Mock:
    """The running provider."""

    port: int
    session: Session

    def answers(self) -> int:
        """Return how many answers are in progress."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/stats", timeout=10) as reply:
            return int(json.load(reply)["answers"])


@contextlib.contextmanager
def running_mock(tools: Tools, folder: Path) -> Iterator[Mock]:
    """Start the mock provider on a free port."""
    log = folder / "mock.log"
    with running_session([str(tools.mock), "0", *MODELS], log) as session:
        yield Mock(_told_port(session, log), session)


@contextlib.contextmanager
def running_nginx(mock: Mock, folder: Path) -> Iterator[Target]:
    """Start nginx with one worker, kept-alive connections to the provider and a check of the key."""
    require("nginx")
    folder.mkdir(parents=True, exist_ok=True)
    port, files = free_port(), os.sysconf("SC_OPEN_MAX")
    configuration = folder / "nginx.conf"
    user = "user root;" if os.geteuid() == 0 else ""
    configuration.write_text(
        NGINX.format(
            user=user,
            files=files,
            connections=files - 64,
            folder=folder,
            key=KEY,
            port=port,
            provider=mock.port,
        )
    )
    log = folder / "error.log"
    command = ["nginx", "-p", str(folder), "-c", str(configuration), "-e", str(log)]
    with running_session(command, log) as session:
        _wait_accepting(session, log, port)
        yield Target("nginx", port, MOCK_PATH, session, KEY)


@contextlib.contextmanager
def running_router(program: Path, mock: Mock, folder: Path) -> Iterator[Target]:
    """Start vllm-router in front of the provider, without checks of keys."""
    folder.mkdir(parents=True, exist_ok=True)
    port, metrics_port = free_port(), free_port()
    command = [str(program), "--host", "127.0.0.1", "--port", str(port), "--policy", "round_robin"]
    command += ["--worker-urls", f"http://127.0.0.1:{mock.port}", "--log-level", "error"]
    command += ["--prometheus-port", str(metrics_port), "--disable-retries"]
    log = folder / "router.log"
    with running_session(command, log, folder=folder, environment=_environment()) as session:
        _wait_accepting(session, log, port)
        yield Target(ROUTER_NAME, port, MOCK_PATH, session)


@contextlib.contextmanager
def running_floor(name: str, mock: Mock, folder: Path) -> Iterator[Target]:
    """Start a proxy of `floors` in front of the provider."""
    log = folder / f"{name}.log"
    command = [sys.executable, "-m", "tests.bench.floors", name, str(mock.port)]
    with running_session(
        command, log, folder=Path(__file__).parents[2], environment=_environment()
    ) as session:
        yield Target(name, _told_port(session, log), MOCK_PATH, session)


@dataclass(frozen=True)
class Gateway:
    """A checkout of gatewayd with a prepared state: a database, an account and a key."""

    name: str
    root: Path
    state: Path
    key: str
    module: str = "gatewayd"

    @contextlib.contextmanager
    def running(self) -> Iterator[tuple[Target, float]]:
        """Start it; yield it with the seconds from exec to READY."""
        with started(self.root, self.state, self.module) as (port, session, seconds):
            control = self.state / "control.sock"
            yield Target(self.name, port, GATEWAY_PATH, session, self.key, control), seconds


def prepared_gateway(name: str, root: Path, mock: Mock, state: Path, module: str = "gatewayd") -> Gateway:
    """Make a fresh state for a checkout: started once, with an account and a key made by gatewayctl.

    `module` is what runs then.
    """
    state.mkdir(mode=0o700, parents=True)
    (state / "gatewayd.toml").write_text(GATEWAY.format(state=state, provider=mock.port))
    with started(root, state):
        key = make_key(root, state)
    return Gateway(name, root, state, key, module)


def make_key(root: Path, state: Path) -> str:
    """Have gatewayctl make the account of the running gateway of a checkout, and return its key."""
    command = [sys.executable, "-m", "gatewayctl", "--socket", str(state / "control.sock"), "setup"]
    options = ["--email", "bench@example.org", "--name", "Bench", "-o", "name"]
    done = subprocess.run(
        command + options, cwd=root, env=_environment(), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise CannotRunError(f"cannot make a key for the gateway of {root}: {done.stderr.strip()}")
    return done.stdout.strip()


def checked_out(root: Path, revision: str, folder: Path) -> Path:
    """Put the files of another commit into a folder, and leave the repository as it is."""
    require("git", "tar")
    folder.mkdir()
    archive = [
        "git",
        "-C",
        str(root),
        "archive",
        "--format=tar",
        "--output",
        str(folder / "tree.tar"),
        revision,
    ]
    done = subprocess.run(archive, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotRunError(f"cannot check out {revision}: {done.stderr.strip()}")
    subprocess.run(["tar", "-x", "-f", "tree.tar"], cwd=folder, check=True)
    return folder


def check(tools: Tools, target: Target) -> None:
    """Refuse to measure a target that does not answer."""
    with running_load(
        tools.load, Work("plain", "m-fast", seconds=0.2), target.port, target.path, target.key
    ) as load:
        result = load.result()
    if result["errors"] or not result["all_ok"]:
        raise CannotRunError(f"{target.name} does not answer: {result['faults']} {result['sample']}")


@contextlib.contextmanager
def started(root: Path, state: Path, module: str = "gatewayd") -> Iterator[tuple[int, Session, float]]:
    """Run a gateway on a free port and wait for READY; yield port, session and the seconds that it took."""
    port = free_port()
    address = state / "notify.sock"
    address.unlink(missing_ok=True)
    environment = {**_environment(), "PORT": str(port), "NOTIFY_SOCKET": str(address)}
    command = [sys.executable, "-m", module, "-f", str(state / "gatewayd.toml")]
    log = state / "gatewayd.log"
    with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as notices:
        notices.bind(str(address))
        notices.settimeout(0.5)
        began = time.monotonic()
        with running_session(command, log, folder=root, environment=environment) as session:
            while not _is_ready(notices):
                _check_start(session, log, began + START_SECONDS)
            yield port, session, time.monotonic() - began


def _is_ready(notices: socket.socket) -> bool:
    try:
        return b"READY=1" in notices.recv(4096).split(b"\n")
    except TimeoutError:
        return False


def _environment() -> dict[str, str]:
    """Return an environment without settings of the gateway."""
    kept = ("PATH", "HOME", "LANG", "TMPDIR", "VIRTUAL_ENV")
    return {name: os.environ[name] for name in kept if name in os.environ}


def _told_port(session: Session, log: Path) -> int:
    """Wait until a server has written its port, and return it."""
    deadline = time.monotonic() + START_SECONDS
    while not log.read_text().endswith("\n"):
        _check_start(session, log, deadline)
        time.sleep(0.01)
    return int(log.read_text())


def _wait_accepting(session: Session, log: Path, port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not _accepts(port):
        _check_start(session, log, deadline)
        time.sleep(0.01)


def _check_start(session: Session, log: Path, deadline: float) -> None:
    if session.process.poll() is not None:
        raise CannotRunError(f"a server ended at its start, see {log.name}:\n{_tail(log)}")
    if time.monotonic() > deadline:
        raise CannotRunError(f"a server did not become ready, see {log.name}:\n{_tail(log)}")


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-20:])


def _accepts(port: int) -> bool:
    with contextlib.closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
