"""Three nodes behind a balancer, PostgreSQL, Redis and a bucket, with links that can be cut."""

import contextlib
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from tests.conftest import missing, real_postgres
from tests.fakes.cluster.balanced import balancer
from tests.fakes.cluster.link import Link, linked
from tests.fakes.daemons.chat_site import PROVIDER, House
from tests.fakes.daemons.chat_site import SETTINGS as PEOPLE_SETTINGS
from tests.fakes.daemons.daemon import Daemon, Start, free_port, running_alone, wait_ready
from tests.fakes.daemons.nodes import LEASE_SECONDS, slow_services
from tests.fakes.daemons.redis_server import RedisServer, redis_server
from tests.fakes.providers.background_upstream import Provider, background_upstream
from tests.fakes.storage.object_servers import BUCKET, find_server, object_server
from tests.fakes.storage.postgres import Postgres

NODES = 3
READY_SECONDS = 60.0
CHECK = "check inter 200ms fall 1 rise 1 on-marked-down shutdown-sessions"
SETTINGS = {
    **PEOPLE_SETTINGS,
    "CLUSTER": "true",
    "WEBUI_SECRET_KEY": "the secret that all nodes have, in full length",
    "NODE_LEASE": str(LEASE_SECONDS),
    "DATABASE_POOL_SIZE": "5",
}


@dataclass
class Node:
    """One node, which may be killed and started again, and its links."""

    start: Start
    to_postgres: Link
    to_redis: Link
    log: list[str]
    run: "AbstractContextManager[Daemon] | None" = None
    daemon: "Daemon | None" = None

    @property
    def pid(self) -> int:
        assert self.daemon is not None
        return self.daemon.process.pid

    def begin(self) -> None:
        self.run = running_alone(self.start, self.log)
        self.daemon = self.run.__enter__()

    def end(self, number: int = signal.SIGTERM) -> None:
        """End the process by a signal, if it runs."""
        if self.run is not None and self.daemon is not None:
            self.daemon.stop(number)
            self.run.__exit__(None, None, None)
        self.run = self.daemon = None

    def send(self, number: int) -> None:
        assert self.daemon is not None
        self.daemon.process.send_signal(number)


@dataclass
class Bed:
    """All of it; `house` asks through the balancer."""

    nodes: list[Node]
    postgres: Postgres
    url: str
    redis: RedisServer
    provider: Provider
    house: House

    def wait_well(self) -> None:
        """Wait until every node is ready and nothing is degraded."""
        deadline = time.monotonic() + READY_SECONDS
        for node in self.nodes:
            assert node.daemon is not None
            answer: object = None
            while answer != (200, {"status": True}):
                assert time.monotonic() < deadline, (answer, "".join(node.log)[-3000:])
                time.sleep(0.1)
                with contextlib.suppress(OSError):
                    answer = node.daemon.call("GET", "/readyz")
        first = self.nodes[0].daemon
        assert first is not None
        # The process of the first node may be another one now.
        self.house.daemon.process = first.process
        wait_ready(self.house.daemon)

    def rows(self, sql: str) -> list[list[str]]:
        """Return the rows of a query of the database; their values are without blanks."""
        name = urlsplit(self.url).path.strip("/")
        text = self.postgres.psql(f"\\c {name}\n\\t on\n\\pset format unaligned\n{sql}")
        return [line.split("|") for line in text.splitlines() if "|" in line]


@contextlib.contextmanager
def files_of(folder: Path) -> Iterator[Mapping[str, str]]:
    """Run a server of the S3 protocol; yield the settings of nodes that use it."""
    if find_server("moto") is None:
        missing("moto_server", "install moto[s3,server], and name its directory of programs")
    with object_server("moto", folder) as server:
        yield {
            "FILE_STORE": f"s3://{BUCKET}/gateway",
            "FILE_STORE_ENDPOINT": server.endpoint,
            "FILE_STORE_REGION": "us-east-1",
            "FILE_STORE_ACCESS_KEY": "key",
            "FILE_STORE_SECRET_KEY": "secret",
        }


@contextlib.contextmanager
def running_bed(folder: Path) -> Iterator[Bed]:
    """Run everything until the end of the block."""
    with ExitStack() as stack:
        (folder / "postgres").mkdir()
        postgres = stack.enter_context(real_postgres(folder / "postgres"))
        redis = stack.enter_context(redis_server())
        bucket = stack.enter_context(files_of(folder / "bucket"))
        services = stack.enter_context(slow_services())
        services.released.set()
        provider = stack.enter_context(background_upstream())
        configuration = folder / "gatewayd.toml"
        configuration.write_text(PROVIDER.format(url=provider.url))
        url = postgres.migrated_database()
        parts = urlsplit(url)
        place = Path(parse_qs(parts.query)["host"][0])
        socket_path = next(path for path in place.glob(".s.PGSQL.*") if path.suffix != ".lock")
        nodes: list[Node] = []
        for number in range(NODES):
            to_postgres = stack.enter_context(linked(socket_path))
            to_redis = stack.enter_context(linked(redis.socket))
            settings = {
                **SETTINGS,
                **bucket,
                **services.settings,
                "NODE_NAME": f"node-{number}",
                "PORT": str(free_port()),
                "DATABASE_URL": f"postgresql://postgres@127.0.0.1:{to_postgres.port}{parts.path}",
                "REDIS_URL": f"redis://127.0.0.1:{to_redis.port}",
            }
            start = Start(folder / f"n{number}", ["-f", str(configuration)], settings)
            nodes.append(Node(start, to_postgres, to_redis, []))
            stack.callback(nodes[-1].end)
            nodes[-1].begin()
        port = free_port()
        ports = [int(node.start.settings["PORT"]) for node in nodes]
        stack.enter_context(balancer(folder, ports, port, CHECK))
        first = nodes[0].daemon
        assert first is not None
        front = Daemon(first.process, f"http://127.0.0.1:{port}", first.socket, folder)
        house = House(front, provider, folder)
        wait_ready(front)
        house.sign_up()
        yield Bed(nodes, postgres, url, redis, provider, house)
