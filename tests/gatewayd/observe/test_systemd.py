import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.observe.systemd import Notifier, Watchdog, activated_sockets, notifier_from_environment


class Manager:
    """The receiving end of NOTIFY_SOCKET."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.channel = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.channel.settimeout(5)
        self.channel.bind("\0" + address[1:] if address.startswith("@") else address)

    def receive(self) -> str:
        return self.channel.recv(4096).decode()

    def pending(self) -> bool:
        self.channel.setblocking(False)
        try:
            self.channel.recv(4096)
        except BlockingIOError:
            return False
        return True


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Manager]:
    address = str(tmp_path / "notify") if request.param == "path" else f"@gatewayd-test-{os.getpid()}"
    opened = Manager(address)
    yield opened
    opened.channel.close()


def test_every_message_is_one_datagram(manager: Manager) -> None:
    notifier = Notifier(manager.address)
    notifier.ready("serving\n3 models")
    assert manager.receive() == "READY=1\nSTATUS=serving 3 models"
    notifier.status("migrating")
    assert manager.receive() == "STATUS=migrating"
    notifier.stopping()
    assert manager.receive() == "STOPPING=1"
    notifier.watchdog()
    assert manager.receive() == "WATCHDOG=1"


def test_reloading_carries_the_monotonic_time(manager: Manager) -> None:
    Notifier(manager.address).reloading()
    first, second = manager.receive().split("\n")
    assert first == "RELOADING=1"
    name, value = second.split("=")
    assert name == "MONOTONIC_USEC"
    assert int(value) > 0


def test_without_a_manager_nothing_is_sent() -> None:
    notifier = Notifier()
    notifier.ready("serving")
    assert not notifier.enabled
    assert notifier.watchdog_interval is None


def test_a_deaf_manager_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    notifier = Notifier(str(tmp_path / "nobody"))
    notifier.ready("serving")
    notifier.watchdog()
    assert [record.getMessage() for record in caplog.records] == ["cannot notify the service manager"]


def test_a_full_queue_does_not_block(manager: Manager) -> None:
    notifier = Notifier(manager.address)
    for _ in range(2000):
        notifier.watchdog()
    assert manager.receive() == "WATCHDOG=1"


@pytest.mark.parametrize(
    ("environ", "interval"),
    [
        ({"NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "30000000"}, 15.0),
        ({"NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}, 15.0),
        ({"NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, None),
        ({"NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "soon"}, None),
        ({"NOTIFY_SOCKET": "@x"}, None),
        ({"WATCHDOG_USEC": "30000000"}, None),
        ({"NOTIFY_SOCKET": "", "WATCHDOG_USEC": "30000000"}, None),
    ],
)
def test_the_watchdog_interval_is_half_the_limit(environ: dict[str, str], interval: float | None) -> None:
    assert notifier_from_environment(environ).watchdog_interval == interval


async def test_the_watchdog_is_fed_while_the_probe_answers(manager: Manager) -> None:
    probed = asyncio.Event()

    async def probe() -> None:
        probed.set()

    runner = asyncio.get_running_loop().create_task(Watchdog(Notifier(manager.address), probe, 60).run())
    await probed.wait()
    assert await asyncio.to_thread(manager.receive) == "WATCHDOG=1"
    runner.cancel()


@pytest.mark.parametrize(
    "failure", [GatewayError(ErrorKind.CONFLICT, "cannot use the database"), ConnectionResetError("gone")]
)
async def test_a_failed_probe_is_not_fed(
    failure: Exception, manager: Manager, caplog: pytest.LogCaptureFixture
) -> None:
    async def probe() -> None:
        raise failure

    assert not await Watchdog(Notifier(manager.address), probe, 60).beat()
    assert not manager.pending()
    assert vars(caplog.records[0])["error"] == str(failure)


async def test_an_outage_is_fed(manager: Manager, caplog: pytest.LogCaptureFixture) -> None:
    async def probe() -> None:
        raise GatewayError(ErrorKind.UNAVAILABLE, "cannot reach the database")

    assert await Watchdog(Notifier(manager.address), probe, 60).beat()
    assert manager.pending()
    assert not caplog.records


async def test_a_silent_probe_is_not_fed(manager: Manager, caplog: pytest.LogCaptureFixture) -> None:
    async def probe() -> None:
        await asyncio.Event().wait()

    assert not await Watchdog(Notifier(manager.address), probe, 60, deadline=0.01).beat()
    assert not manager.pending()
    assert vars(caplog.records[0])["error"] == "no answer within 0.01 s"


# Activated sockets -------------------------------------------------------------------------------------


def listening(family: socket.AddressFamily, address: object) -> socket.socket:
    channel = socket.socket(family, socket.SOCK_STREAM)
    channel.bind(address)  # type: ignore[arg-type]
    channel.listen()
    return channel


def handed_over(*channels: socket.socket, names: str) -> tuple[dict[str, str], int]:
    """Move `channels` to consecutive descriptors, return the environment and the first."""
    first = 900
    for offset, channel in enumerate(channels):
        os.dup2(channel.fileno(), first + offset, inheritable=True)
        channel.close()
    environ = {"LISTEN_PID": "77", "LISTEN_FDS": str(len(channels)), "LISTEN_FDNAMES": names}
    return environ, first


def test_sockets_come_by_name(tmp_path: Path) -> None:
    environ, first = handed_over(
        listening(socket.AF_INET, ("127.0.0.1", 0)),
        listening(socket.AF_UNIX, str(tmp_path / "control.sock")),
        listening(socket.AF_INET, ("127.0.0.1", 0)),
        names="http:control:http",
    )
    sockets = activated_sockets(environ, 77, first)
    assert [channel.family for channel in sockets.http] == [socket.AF_INET, socket.AF_INET]
    assert sockets.control is not None
    for channel in (*sockets.http, sockets.control):
        assert not os.get_inheritable(channel.fileno())
        assert not channel.getblocking()
        channel.close()


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"LISTEN_PID": "78", "LISTEN_FDS": "1", "LISTEN_FDNAMES": "http"},
        {"LISTEN_PID": "77", "LISTEN_FDS": "0"},
        {"LISTEN_PID": "77", "LISTEN_FDS": "-1"},
        {"LISTEN_PID": "77"},
    ],
)
def test_sockets_for_somebody_else_are_left_alone(environ: dict[str, str]) -> None:
    sockets = activated_sockets(environ, 77)
    assert sockets.http == ()
    assert sockets.control is None


@pytest.mark.parametrize("names", ["web", "", "http.socket"])
def test_an_unknown_name_is_refused(names: str) -> None:
    environ, first = handed_over(listening(socket.AF_INET, ("127.0.0.1", 0)), names=names)
    with pytest.raises(GatewayError, match=r"'http' or 'control'") as caught:
        activated_sockets(environ, 77, first)
    assert caught.value.kind is ErrorKind.NOT_CONFIGURED
    os.close(first)


def test_a_wrong_family_is_refused() -> None:
    environ, first = handed_over(listening(socket.AF_INET, ("127.0.0.1", 0)), names="control")
    with pytest.raises(GatewayError, match=r"'control': its address family is AF_INET"):
        activated_sockets(environ, 77, first)


def test_a_socket_that_does_not_listen_is_refused() -> None:
    environ, first = handed_over(socket.socket(socket.AF_INET, socket.SOCK_STREAM), names="http")
    with pytest.raises(GatewayError, match="not a listening stream socket"):
        activated_sockets(environ, 77, first)


def test_two_control_sockets_are_refused(tmp_path: Path) -> None:
    environ, first = handed_over(
        listening(socket.AF_UNIX, str(tmp_path / "a.sock")),
        listening(socket.AF_UNIX, str(tmp_path / "b.sock")),
        names="control:control",
    )
    with pytest.raises(GatewayError, match="two activated sockets named 'control'"):
        activated_sockets(environ, 77, first)
    for descriptor in (first, first + 1):
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)


ACTIVATED = """
import json, os
from gatewayd.observe.systemd import activated_sockets
sockets = activated_sockets(os.environ, os.getpid())
connection = sockets.http[0]
connection.setblocking(True)
accepted, _ = connection.accept()
accepted.sendall(json.dumps([sockets.http[0].fileno(), sockets.control is not None]).encode())
accepted.close()
"""


@pytest.mark.real("systemd-socket-activate")
@pytest.mark.process
def test_sockets_of_the_real_activator_are_taken(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    activator = subprocess.Popen(
        [
            *("systemd-socket-activate", "-l", f"127.0.0.1:{port}", "-l", str(tmp_path / "control.sock")),
            *(
                "--fdname=http:control",
                "-E",
                f"PYTHONPATH={Path(__file__).parents[3]}",
                sys.executable,
                "-c",
                ACTIVATED,
            ),
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert activator.stderr is not None
    try:
        while "Listening on" not in (line := activator.stderr.readline()) or "control.sock" not in line:
            assert line, "the activator ended before it listened"
        with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
            answer = client.makefile("rb").read()
        assert json.loads(answer) == [3, True]
    finally:
        activator.send_signal(signal.SIGTERM)
        activator.wait(10)
        activator.stderr.close()
