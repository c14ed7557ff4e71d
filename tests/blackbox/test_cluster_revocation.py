"""Two nodes on one PostgreSQL: what is revoked on one opens nothing on the other a second later.

The other node is stopped, loses its database with and without being told, reconnects, or misses pruned rows.
The checker of the histories is seen to fail in tests/gatewayd/cluster/test_history.py.
"""

import contextlib
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from gatewayd.cluster.freshness import boottime
from tests.fakes.cluster.history import Asked, check_revocation
from tests.fakes.cluster.link import Link, linked
from tests.fakes.daemons.daemon import Daemon, running_daemon
from tests.fakes.daemons.paused_processes import stopped
from tests.fakes.storage.postgres import Postgres

pytestmark = [pytest.mark.timeout(300), pytest.mark.slow]

PASSWORD = "a password of the administrator"
ADMIN = {"email": "admin@example.org", "password": PASSWORD}
PAUSE = 0.05
REQUEST_SECONDS = 15.0
SETTINGS = {"CLUSTER": "true", "WEBUI_SECRET_KEY": "the secret that both nodes have, in full length"}


@dataclass
class Pair:
    """Two nodes, of which the second has its database at the end of a link."""

    postgres: Postgres
    url: str
    first: Daemon
    second: Daemon
    link: Link

    def sign_in(self) -> str:
        status, reply = self.first.call("POST", "/api/v1/auths/signin", ADMIN)
        assert status == 200, reply
        token: str = reply["token"]
        return token

    def sql(self, statement: str) -> None:
        command = [self.postgres.programs / "psql", self.url, "-c", statement]
        subprocess.run(command, check=True, capture_output=True, timeout=30)


@dataclass
class Client:
    """Asks the second node all the time, without waiting for answers."""

    pair: Pair
    token: str
    asked: list[Asked] = field(default_factory=list)

    def ask(self) -> None:
        request = urllib.request.Request(f"{self.pair.second.base_url}/api/v1/auths/")
        request.add_header("Authorization", f"Bearer {self.token}")
        sent_at, status = boottime(), 0
        with contextlib.suppress(OSError, urllib.error.URLError):
            try:
                with urllib.request.urlopen(request, timeout=REQUEST_SECONDS) as reply:
                    status = reply.status
            except urllib.error.HTTPError as error:
                with error:
                    status = error.code
        self.asked.append(Asked("second", sent_at, 200 <= status < 300, is_unknown=status == 0))

    @contextlib.contextmanager
    def asking(self) -> Iterator[None]:
        ended = threading.Event()

        def go_on() -> None:
            with ThreadPoolExecutor(64) as pool:
                while not ended.wait(PAUSE):
                    pool.submit(self.ask)

        thread = threading.Thread(target=go_on)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def wait_admitted(self) -> None:
        deadline = time.monotonic() + 30
        while not any(each.is_admitted for each in self.asked):
            assert time.monotonic() < deadline, "the second node admits nobody"
            time.sleep(0.05)


@pytest.fixture(scope="module")
def pair(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    url = postgres.migrated_database()
    parts = urlsplit(url)
    folder = Path(parse_qs(parts.query)["host"][0])
    socket_path = next(path for path in folder.glob(".s.PGSQL.*") if not path.name.endswith(".lock"))
    with linked(socket_path) as link:
        by_link = f"postgresql://postgres@127.0.0.1:{link.port}{parts.path}"
        *states, files = [tmp_path_factory.mktemp(name) for name in ("a", "b", "files")]
        # A revocation does not depend on Redis, which is away.
        settings = {**SETTINGS, "FILE_STORE": str(files), "REDIS_URL": f"unix://{files}/absent"}
        with (
            running_daemon(states[0], DATABASE_URL=url, **settings) as first,
            running_daemon(states[1], DATABASE_URL=by_link, **settings) as second,
        ):
            status, reply = first.call("POST", "/api/v1/auths/signup", {"name": "Admin", **ADMIN})
            assert status == 200, reply
            yield Pair(postgres, url, first, second, link)


@contextlib.contextmanager
def not_told(_: Pair) -> Iterator[None]:
    yield


@contextlib.contextmanager
def held(pair: Pair) -> Iterator[None]:
    pair.link.hold()
    yield
    time.sleep(2.0)
    pair.link.heal()


@contextlib.contextmanager
def cut(pair: Pair) -> Iterator[None]:
    pair.link.cut()
    yield
    time.sleep(2.0)
    pair.link.heal()


@contextlib.contextmanager
def paused(pair: Pair) -> Iterator[None]:
    with stopped(pair.second.process.pid):
        yield
        time.sleep(2.0)


@contextlib.contextmanager
def pruned(pair: Pair) -> Iterator[None]:
    pair.link.hold()
    yield
    pair.sql("DELETE FROM cluster_changes")
    time.sleep(2.0)
    pair.link.heal()


@contextlib.contextmanager
def reconnecting(pair: Pair) -> Iterator[None]:
    pair.link.cut()
    pair.link.heal()
    yield
    pair.link.cut()
    pair.link.heal()


@pytest.mark.parametrize("fault", [not_told, held, cut, paused, pruned, reconnecting])
def test_a_revoked_session_opens_nothing_a_second_later(
    pair: Pair, fault: Callable[[Pair], contextlib.AbstractContextManager[None]]
) -> None:
    client = Client(pair, pair.sign_in())
    with client.asking():
        client.wait_admitted()
        with fault(pair):
            time.sleep(0.2)
            status, _ = pair.first.call(
                "GET", "/api/v1/auths/signout", headers={"Authorization": f"Bearer {client.token}"}
            )
            revoked_at = boottime()
            assert status == 200
        time.sleep(2.0)
    assert check_revocation(client.asked, revoked_at) == []
    # Both nodes serve again, and say what does not work without Redis.
    for node in (pair.first, pair.second):
        degraded = [
            "events of other nodes",
            "event tickets",
            "calls and tasks of other nodes",
            "limits of all nodes",
        ]
        assert node.call("GET", "/readyz") == (200, {"status": True, "degraded": degraded})
    again = Client(pair, pair.sign_in())
    with again.asking():
        again.wait_admitted()
