"""HAProxy that passes on connections with a header of the PROXY protocol, with and without TLS behind it."""

import contextlib
import http.client
import json
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.blackbox.test_reverse_proxies import HAPROXY, SAMPLES, refused_addresses
from tests.conftest import missing
from tests.fakes.daemons.daemon import Daemon, free_port, running_daemon
from tests.fakes.http.certificates import write_certificate

SAMPLE = SAMPLES / "haproxy-tcp.cfg"
START_SECONDS = 30.0
CHECK_SECONDS = 0.2
CLIENT = "127.0.0.9"
SENT = {"X-Forwarded-For": "192.0.2.99", "Content-Type": "application/json"}

pytestmark = [pytest.mark.process, pytest.mark.real("haproxy")]


@dataclass(frozen=True)
class Passed:
    """A proxy that passes connections on, and the daemon behind it."""

    port: int
    daemon: Daemon
    uses_tls: bool
    told: Path
    """What HAProxy has logged."""

    def connect(self, port: int | None = None) -> http.client.HTTPConnection:
        place = ("127.0.0.1", port or self.port)
        if not self.uses_tls:
            return http.client.HTTPConnection(*place, timeout=15, source_address=(CLIENT, 0))
        trusting = ssl.create_default_context()
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        return http.client.HTTPSConnection(*place, timeout=15, context=trusting, source_address=(CLIENT, 0))

    def answers(self) -> bool:
        """Whether HAProxy has found the daemon by its check, and a request passes."""
        with contextlib.closing(self.connect()) as channel:
            try:
                channel.request("GET", "/readyz")
                return channel.getresponse().status == 200
            except OSError:
                return False


@pytest.fixture(scope="module", params=["send-proxy-v2 TLS", "send-proxy TLS", "send-proxy", "send-proxy-v2"])
def passed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Passed]:
    option, _, tls = request.param.partition(" ")
    program = shutil.which("haproxy", path="/usr/sbin:/usr/bin:/sbin:/bin")
    if program is None:
        missing("haproxy", "the program haproxy is not installed")
    folder, inner, outer = tmp_path_factory.mktemp("h"), free_port(), free_port()
    certificate, key = write_certificate(folder, "gateway")
    settings = {"TLS_CERTIFICATE": str(certificate), "TLS_KEY": str(key)} if tls else {}
    given = {"PROXY_PROTOCOL": "true", "TRUSTED_PROXIES": "127.0.0.1", "PORT": str(inner), **settings}
    with running_daemon(tmp_path_factory.mktemp("g"), ready=False, **given) as daemon:
        daemon.wait_for("ready")
        told = folder / "told"
        path = written(folder, inner, outer, option, bool(tls))
        with told.open("wb") as output:
            process = subprocess.Popen([program, "-f", str(path)], stdout=output, stderr=output)
        try:
            found = Passed(outer, daemon, bool(tls), told)
            deadline = time.monotonic() + START_SECONDS
            while not found.answers():
                assert time.monotonic() < deadline, "".join(daemon.log)
                time.sleep(0.1)
            yield found
        finally:
            process.terminate()
            process.wait(timeout=60)


def written(folder: Path, inner: int, outer: int, option: str, uses_tls: bool) -> Path:
    """Write the sample with the addresses of the test in place of its own."""
    text = SAMPLE.read_text()
    for place, value in {
        "bind :443": f"bind 127.0.0.1:{outer}",
        "127.0.0.1:8080": f"127.0.0.1:{inner}",
        "send-proxy-v2 check check-ssl verify none": f"{option} check inter 200ms "
        + ("check-ssl verify none" if uses_tls else ""),
    }.items():
        assert place in text
        text = text.replace(place, value)
    path = folder / "haproxy.cfg"
    path.write_text(HAPROXY + text)
    return path


def test_the_client_is_the_one_that_connected_to_the_proxy(passed: Passed) -> None:
    """Whatever it sends: its header is no address, as its own address is no proxy."""
    email = "nobody@example.org"
    form = json.dumps({"email": email, "password": "wrong-password"})
    with contextlib.closing(passed.connect()) as channel:
        # Twice on one connection, which has one header.
        for _ in range(2):
            channel.request("POST", "/api/v1/auths/signin", form, SENT)
            reply = channel.getresponse()
            assert reply.status == 400, reply.read()
            reply.read()
    assert refused_addresses(passed.daemon, email) == [CLIENT, CLIENT]


def test_the_check_of_the_proxy_finds_the_daemon(passed: Passed) -> None:
    # Three checks that fail would be enough.
    time.sleep(5 * CHECK_SECONDS)
    assert passed.answers()
    assert "DOWN" not in passed.told.read_text()


def test_nobody_passes_the_proxy_by(passed: Passed) -> None:
    port = int(passed.daemon.base_url.rpartition(":")[2])
    with contextlib.closing(passed.connect(port)) as channel, pytest.raises(OSError):
        channel.request("GET", "/readyz")
        channel.getresponse()
    # Neither with a header of their own.
    with socket.create_connection(("127.0.0.1", port), 15, (CLIENT, 0)) as plain:
        with contextlib.suppress(OSError):
            plain.sendall(
                b"PROXY TCP4 192.0.2.7 127.0.0.1 50000 443\r\nGET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"
            )
        try:
            assert plain.recv(65536) == b""
        except ConnectionResetError:
            return
