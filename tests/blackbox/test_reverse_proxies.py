"""Reverse proxies with the samples of config/proxies in front of the daemon's unix socket."""

import contextlib
import http.client
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.conftest import missing
from tests.fakes.daemons.daemon import Daemon, free_port, running_daemon
from tests.fakes.daemons.failing_provider_site import make_key
from tests.fakes.http.certificates import write_certificate
from tests.fakes.http.public_app import bearer
from tests.fakes.providers.background_upstream import Provider, background_upstream
from tests.fakes.providers.upstream import SILENCE, Reply, openai_chunk, sse

SAMPLES = Path(__file__).parents[2] / "config" / "proxies"
START_SECONDS = 20.0
FILES = {"nginx": "nginx.conf", "haproxy": "haproxy.cfg", "caddy": "Caddyfile"}
UPLOAD_BYTES = 3 * 1024 * 1024

HAPROXY = "global\n    log stderr format raw local0\n"
NGINX = """daemon off;
{user}
pid {folder}/pid;
error_log stderr warn;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
{sample}
}}
"""
CADDY = (
    "{{\n\tadmin off\n\tauto_https disable_redirects\n\tskip_install_trust\n\tgrace_period 1s\n}}\n{sample}\n"
)

pytestmark = pytest.mark.process


@dataclass(frozen=True)
class Front:
    """A proxy, and the daemon behind it."""

    url: str
    daemon: Daemon
    provider: Provider
    key: str


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Daemon, Provider, str]]:
    """A daemon on a unix socket, which others may reach on TCP too."""
    folder = tmp_path_factory.mktemp("g")
    with (
        background_upstream() as provider,
        running_daemon(
            folder,
            HTTP_SOCKET=str(folder / "http.sock"),
            OPENAI_API_BASE_URLS=f"{provider.url}/v1",
            OPENAI_API_KEYS="sk-provider",
            ENABLE_API_KEYS="true",
        ) as daemon,
    ):
        yield daemon, provider, make_key(daemon)


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=pytest.mark.real(name)) for name in ("nginx", "haproxy", "caddy")],
)
def front(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    behind: tuple[Daemon, Provider, str],
) -> Iterator[Front]:
    daemon, provider, key = behind
    name: str = request.param
    program = shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin")
    if program is None:
        missing(name, f"the program {name} is not installed")
    folder, port = tmp_path_factory.mktemp("p"), free_port()
    sample = _sample(name, folder, port, daemon.state / "http.sock")
    command = [program, *_arguments(name, folder, sample)]
    process = subprocess.Popen(command, env={"HOME": str(folder), "PATH": "/usr/bin"})
    try:
        _wait_open(port, process)
        yield Front(f"https://127.0.0.1:{port}", daemon, provider, key)
    finally:
        process.terminate()
        process.wait(timeout=60)


def _sample(name: str, folder: Path, port: int, path: Path) -> str:
    """Return a sample with the addresses of the test in place of its own."""
    files = write_certificate(folder, "proxy")
    both = folder / "both.pem"
    both.write_bytes(b"".join(file.read_bytes() for file in files))
    text = (
        SAMPLES / {"nginx": "nginx.conf", "haproxy": "haproxy.cfg", "caddy": "Caddyfile"}[name]
    ).read_text()
    for place, value in {
        "/run/gatewayd/http.sock": str(path),
        "/etc/ssl/ai.example.org.pem": str(files[0]),
        "/etc/ssl/ai.example.org.key": str(files[1]),
        "/etc/haproxy/ai.example.org.pem": str(both),
        "listen 443 ": f"listen 127.0.0.1:{port} ",
        "bind :443 ": f"bind 127.0.0.1:{port} ",
        "ai.example.org {": f"https://127.0.0.1:{port} {{\n\ttls {files[0]} {files[1]}",
    }.items():
        text = text.replace(place, value)
    assert str(port) in text
    assert str(path) in text
    return text


def _arguments(name: str, folder: Path, sample: str) -> list[str]:
    written = folder / "configuration"
    match name:
        case "nginx":
            # Otherwise its workers are another user, who may not open the socket.
            user = "user root;" if os.geteuid() == 0 else ""
            written.write_text(NGINX.format(user=user, folder=folder, sample=sample))
            return ["-p", str(folder), "-c", str(written), "-e", "stderr"]
        case "haproxy":
            written.write_text(HAPROXY + sample)
            return ["-f", str(written)]
        case _:
            written.write_text(CADDY.format(sample=sample))
            return ["run", "--config", str(written), "--adapter", "caddyfile"]


def _wait_open(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError("the proxy did not start, see its messages")


@contextlib.contextmanager
def connected(base: str) -> Iterator[http.client.HTTPConnection]:
    """Open a connection that trusts every certificate."""
    address = urlsplit(base)
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    made = (
        http.client.HTTPSConnection(address.netloc, timeout=15, context=trusting)
        if address.scheme == "https"
        else http.client.HTTPConnection(address.netloc, timeout=15)
    )
    with contextlib.closing(made):
        yield made


def ask(
    channel: http.client.HTTPConnection, path: str, body: bytes, headers: Mapping[str, str]
) -> http.client.HTTPResponse:
    channel.request("POST", path, body, {"Content-Type": "application/json", **headers})
    return channel.getresponse()


def begin_stream(channel: http.client.HTTPConnection, front: Front) -> http.client.HTTPResponse:
    """Ask for a stream and read its first event, while the provider is silent."""
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "?"}]}
    reply = ask(channel, "/api/chat/completions", json.dumps(body).encode(), bearer(front.key))
    first = reply.readline()
    assert json.loads(first[6:])["choices"][0]["delta"]["content"] == "now"
    return reply


def test_a_stream_passes_as_it_comes(front: Front) -> None:
    end = sse(openai_chunk(finish_reason="stop"), b"[DONE]")
    front.provider.script(Reply(steps=[sse(openai_chunk(content="now")), SILENCE, end]))
    with connected(front.url) as channel:
        reply = begin_stream(channel, front)
        front.provider.release()
        assert reply.read().endswith(b"data: [DONE]\n\n")


# HAProxy notices it with the next bytes of the gateway only.
@pytest.mark.parametrize("front", ["nginx", "caddy"], indirect=True)
def test_a_client_that_leaves_ends_the_request_of_the_provider(front: Front) -> None:
    front.provider.script(Reply(steps=[sse(openai_chunk(content="now")), SILENCE]))
    with connected(front.url) as channel:
        begin_stream(channel, front).close()
    front.provider.wait_closed(10)


def test_a_websocket_passes(front: Front) -> None:
    head = "GET /ws/socket.io/?EIO=4&transport=websocket HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    head += "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    head += "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    with connected(front.url) as channel:
        channel.connect()
        assert channel.sock is not None
        channel.sock.sendall(head.encode())
        came = b""
        # A text frame of the server, and the opening packet of Engine.IO in it (RFC 6455, section 5.2).
        while not re.search(rb"\r\n\r\n\x81.{1,3}0\{", came, re.DOTALL):
            part = channel.sock.recv(4096)
            assert part, came
            came += part
        assert came.startswith(b"HTTP/1.1 101 ")


def test_an_upload_passes(front: Front) -> None:
    name = b'Content-Disposition: form-data; name="file"; filename="large.txt"'
    head = b"--x\r\n" + name + b"\r\nContent-Type: text/plain\r\n\r\n"
    headers = {**bearer(front.key), "Content-Type": "multipart/form-data; boundary=x"}
    with connected(front.url) as channel:
        body = head + b"x" * UPLOAD_BYTES + b"\r\n--x--\r\n"
        reply = ask(channel, "/api/v1/files/?process=false", body, headers)
        text = reply.read()
    assert reply.status == 200, text
    assert json.loads(text)["meta"]["size"] == UPLOAD_BYTES


def refused_addresses(daemon: Daemon, email: str) -> list[str]:
    """Return the addresses of two refused sign-ins of an account, once both are in the audit log."""
    rows: list[dict[str, str]] = []
    deadline = time.monotonic() + START_SECONDS
    while len(rows) < 2 and time.monotonic() < deadline:
        done = daemon.run_ctl("audit", "search", "--action", "sign-in refused", "--who", email, "-o", "jsonl")
        assert done.returncode == 0, done.stderr
        rows = [json.loads(line) for line in done.stdout.splitlines()]
    return [row["address"] for row in rows]


def test_the_address_of_the_client_is_that_of_the_connection(front: Front) -> None:
    """A client cannot choose its address by a header, through the proxy or past it."""
    email = f"nobody-{urlsplit(front.url).port}@example.org"
    form = json.dumps({"email": email, "password": "wrong-password"}).encode()
    for base in (front.url, front.daemon.base_url):
        with connected(base) as channel:
            reply = ask(channel, "/api/v1/auths/signin", form, {"X-Forwarded-For": "192.0.2.99"})
            assert reply.status == 400, reply.read()
    assert refused_addresses(front.daemon, email) == ["127.0.0.1", "127.0.0.1"]
