"""A restart under load loses nothing: every request is answered, and what was acknowledged is there."""

import socket
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fakes.daemons.chat_site import wait_until
from tests.faults.acknowledged import Chats, Load, Reads, Runs, Uploads
from tests.faults.lines import Line
from tests.faults.service import Service, running_service

pytestmark = pytest.mark.faults


@dataclass(frozen=True)
class Size:
    """How much is made, by how many clients, and how often the service is restarted meanwhile."""

    requests: int
    uploads: int
    runs: int
    clients: int
    restarts: int


SHORT = Size(requests=200, uploads=8, runs=8, clients=4, restarts=1)
BURST = 240
LONG = Size(requests=10_000, uploads=200, runs=200, clients=16, restarts=4)


@pytest.mark.short
def test_a_restart_loses_nothing(tmp_path: Path) -> None:
    restart_under_load(tmp_path, SHORT, is_activated=True)


@pytest.mark.short
@pytest.mark.parametrize("is_activated", [True, False], ids=["activated", "bound"])
def test_a_burst_at_the_moment_of_a_stop_is_answered(tmp_path: Path, is_activated: bool) -> None:
    with running_service(tmp_path, is_activated=is_activated) as service, ExitStack() as stack:
        address = ("127.0.0.1", service.port)
        clients = [stack.enter_context(socket.create_connection(address, 30)) for _ in range(BURST)]
        for client in clients:
            client.sendall(b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n")
        service.restart()
        answered = [client.recv(65536).startswith(b"HTTP/1.1 200 OK\r\n") for client in clients]
        assert answered.count(True) == BURST


@pytest.mark.timeout(900)
@pytest.mark.parametrize("is_activated", [True, False], ids=["activated", "bound"])
def test_many_restarts_lose_nothing(tmp_path: Path, is_activated: bool) -> None:
    restart_under_load(tmp_path, LONG, is_activated=is_activated)


def restart_under_load(folder: Path, size: Size, *, is_activated: bool) -> None:
    """Restart a service under clients that keep their connections, and clients that do not."""
    with running_service(folder, is_activated=is_activated) as service:
        load, reads, chats, uploads, runs = Load(), Reads(), Chats(), Uploads(), Runs("again")
        load.add(reads, size.requests // 2, lines(service, size.clients))
        load.add(chats, size.requests // 2, lines(service, size.clients))
        load.add(uploads, size.uploads, lines(service, size.clients // 2))
        load.add(runs, size.runs, lines(service, size.clients // 2))
        total = size.requests + size.uploads + size.runs
        load.start()
        for number in range(size.restarts):
            share = total * (number + 1) // (size.restarts + 1)
            wait_until(lambda share=share: load.done >= share, "requests", 600)
            service.restart()
        load.join()
        assert load.lost == []
        (line,) = lines(service, 1)
        for kept, count in (
            (reads, size.requests // 2),
            (chats, size.requests // 2),
            (uploads, size.uploads),
        ):
            assert (kept.count, kept.missing(line)) == (count, [])
        assert (runs.count, runs.missing(line)) == (size.runs, [])
        line.close()


def lines(service: Service, count: int) -> list[Line]:
    """Return clients, of which every second keeps its connection."""
    return [
        Line(service.host, service.credential, number % 2 == 0, service.channel is None)
        for number in range(count)
    ]
