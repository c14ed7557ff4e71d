"""Nodes behind a balancer that look like one daemon: each request and command goes to the next node."""

import atexit
import contextlib
import itertools
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tests.conftest import missing
from tests.fakes.daemons.daemon import Daemon, Start, free_port, running_alone
from tests.fakes.daemons.redis_server import redis_server
from tests.fakes.storage.postgres import Postgres, start_postgres

START_SECONDS = 30
# The clock of a connection that nothing is sent on: longer than any test.
BALANCER = """
global
    maxconn 2000
    tune.bufsize 131072
defaults
    mode http
    balance roundrobin
    retries 0
    option abortonclose
    option httpchk
    http-check send meth GET uri /readyz ver HTTP/1.1 hdr Host 127.0.0.1
    timeout connect 5s
    timeout client 10m
    timeout server 10m
    timeout tunnel 10m
    timeout check 10s
frontend all
    bind 127.0.0.1:{port}
    default_backend nodes
backend nodes
"""
SETTINGS = {"CLUSTER": "true", "WEBUI_SECRET_KEY": "the secret that all nodes have, in full length"}


class Together:
    """The processes of all nodes as one: a signal reaches all, and the pid is that of the first."""

    stdout = None

    def __init__(self, nodes: Sequence[Daemon]) -> None:
        self._nodes = nodes

    @property
    def pid(self) -> int:
        return self._nodes[0].process.pid

    @property
    def returncode(self) -> int | None:
        return self.poll()

    def poll(self) -> int | None:
        """Return the status of a node that has ended, None while all live."""
        ended = [node.process.poll() for node in self._nodes]
        return next((status for status in ended if status is not None), None)

    def wait(self, timeout: float | None = None) -> int:
        return max(node.process.wait(timeout) for node in self._nodes)

    def send_signal(self, number: int) -> None:
        for node in self._nodes:
            node.process.send_signal(number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


@dataclass
class Balanced(Daemon):
    """Several nodes as one daemon."""

    nodes: Sequence[Daemon] = ()
    turns: Iterator[int] = field(default_factory=itertools.count)

    def run_ctl(
        self,
        *args: str,
        input: str | None = None,
        env: Mapping[str, str] | None = None,
        seconds: float = 60,
    ) -> "subprocess.CompletedProcess[str]":
        """Run gatewayctl against the next node."""
        node = self.nodes[next(self.turns) % len(self.nodes)]
        return node.run_ctl(*args, input=input, env=env, seconds=seconds)


@cache
def server() -> Postgres:
    """Return a server for all nodes of this process."""
    folder = tempfile.mkdtemp(prefix="gatewayd-balanced-")
    made = start_postgres(Path(folder))

    def end() -> None:
        made.stop()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    return made


@cache
def database_of(_: Path) -> str:
    """Return the database of a state: a daemon that lives again finds what it has stored."""
    return server().migrated_database()


@contextlib.contextmanager
def balancer(folder: Path, ports: Sequence[int], port: int, check: str = "") -> Iterator[None]:
    """Run a balancer that sends each request, also those of one connection, to the next port.

    With `check` it leaves out the nodes that are not ready; the text is the end of a line of a server.
    """
    program = shutil.which("haproxy", path="/usr/sbin:/usr/bin")
    if program is None:
        missing("haproxy", "Debian: apt-get install haproxy")
    lines = [f"    server node-{number} 127.0.0.1:{each} {check}\n" for number, each in enumerate(ports)]
    configuration = folder / "haproxy.cfg"
    configuration.write_text(BALANCER.format(port=port) + "".join(lines))
    process = subprocess.Popen(
        [str(program), "-q", "-db", "-f", str(configuration)], stdin=subprocess.DEVNULL
    )
    try:
        _await_answer(process, f"http://127.0.0.1:{port}/livez")
        yield
    finally:
        process.kill()
        process.wait()


def _await_answer(process: "subprocess.Popen[bytes]", url: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        assert process.poll() is None, "the balancer has ended"
        try:
            urllib.request.urlopen(url, timeout=10).close()
        except urllib.error.HTTPError:
            return
        except OSError:
            assert time.monotonic() < deadline, "the balancer does not answer"
            time.sleep(0.05)
        else:
            return


def running_balanced(count: int) -> Callable[[Start], Any]:
    """Return what starts daemons of tests as so many nodes; those that cannot be nodes are started alone."""

    @contextlib.contextmanager
    def run(start: Start) -> Iterator[Daemon]:
        if not is_possible(start):
            with running_alone(start) as daemon:
                yield daemon
            return
        state = start.state
        base = state.parent / f"{state.name}-nodes"
        files = base / "files"
        files.mkdir(parents=True, exist_ok=True, mode=0o700)
        port = int(start.settings.get("PORT", 0)) or free_port()
        with contextlib.ExitStack() as stack:
            redis = stack.enter_context(redis_server())
            shared = {
                **SETTINGS,
                "DATABASE_URL": database_of(state),
                "FILE_STORE": str(files),
                "REDIS_URL": redis.url,
                "DATABASE_POOL_SIZE": "5",
                **start.settings,
            }
            nodes: list[Daemon] = []
            log: list[str] = []
            for number in range(count):
                place = base / f"n{number}" if number else state
                own = {**shared, "NODE_NAME": f"node-{number}", "PORT": str(free_port())}
                begun = running_alone(start.changed(place, own), log)
                nodes.append(stack.enter_context(begun))
            ports = [int(node.base_url.rpartition(":")[2]) for node in nodes]
            stack.enter_context(balancer(base, ports, port))
            url = f"http://127.0.0.1:{port}"
            yield Balanced(Together(nodes), url, nodes[0].socket, state, log, nodes)  # type: ignore[arg-type]

    return run


def is_possible(start: Start) -> bool:
    """Whether a daemon of a test can be several nodes: it is one of the gateway, with nothing of its own."""
    own = {"DATABASE_URL", "CLUSTER", "REDIS_URL", "FILE_STORE"} & set(start.settings)
    return not (own or start.activated or start.module != "gatewayd" or "--quickstart" in start.args)
