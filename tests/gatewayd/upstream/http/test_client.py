import asyncio
import errno
import gzip
import socket
import ssl
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from gatewayd.errors import ErrorKind
from gatewayd.upstream.http.client import HttpClient, TransportError
from gatewayd.upstream.sources.config import UpstreamTimeouts
from tests.fakes.providers.upstream import CUT, SILENCE, FakeUpstream, Reply

LONG = UpstreamTimeouts(connect=5.0, first_byte=30.0, idle=30.0)


@asynccontextmanager
async def client_of(timeouts=LONG, **options):
    client = HttpClient(timeouts, **options)
    try:
        yield client
    finally:
        await client.close()


@asynccontextmanager
async def raw_server(answer: bytes):
    """Answer every connection with these bytes and close it."""

    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def self_signed(path: Path) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + timedelta(days=1))
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    certificate = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    path.write_bytes(certificate + key.private_bytes(*form))
    return path


async def failure_of(client, url, method="GET") -> TransportError:
    with pytest.raises(TransportError) as caught:
        await (await client.request(method, url, {})).read(1000)
    return caught.value


async def test_sends_only_what_it_is_told(fake, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    fake.script(Reply(headers={"Set-Cookie": "a=b", "X-Odd": "1"}, steps=[b"hi"]))
    async with client_of() as client:
        response = await client.request("POST", f"{fake.base_url}/x?a=%2F", {"X-A": "b"}, b"body")
        assert response.status == 200
        assert response.headers["x-odd"] == "1"
        assert await response.read(2) == b"hi"
        await (await client.request("GET", f"{fake.base_url}/x", {})).read(1000)
    first, second = fake.requests
    assert (first.method, first.path, first.query, first.body) == ("POST", "/x", {"a": "/"}, b"body")
    sent = {name.lower(): value for name, value in first.headers.items()}
    assert sent.pop("user-agent").startswith("gatewayd/")
    assert sent.pop("host") == fake.base_url.removeprefix("http://")
    assert sent.pop("content-type", "") in {"", "application/octet-stream"}
    assert sent == {"x-a": "b", "accept": "*/*", "accept-encoding": "identity", "content-length": "4"}
    assert "Cookie" not in second.headers


async def test_redirects_are_not_followed(fake):
    fake.script(Reply(307, {"Location": "/other"}, [b""]))
    async with client_of() as client:
        response = await client.request("GET", f"{fake.base_url}/x", {})
        assert response.status == 307
        response.close()
    assert [request.path for request in fake.requests] == ["/x"]


async def test_nobody_listens():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        async with client_of() as client:
            error = await failure_of(client, f"http://127.0.0.1:{free.getsockname()[1]}/")
    assert error.kind is ErrorKind.UPSTREAM_UNREACHABLE
    assert "127.0.0.1" not in error.sentence
    assert "refused" in error.sentence


async def test_no_route(monkeypatch):
    async def connect(*_, **__):
        raise OSError(errno.EHOSTUNREACH, "Connect call failed ('10.0.0.1', 80)")

    monkeypatch.setattr(asyncio.get_running_loop(), "sock_connect", connect)
    async with client_of() as client:
        error = await failure_of(client, "http://127.0.0.1:9/")
    assert (error.kind, error.sentence) == (
        ErrorKind.UPSTREAM_UNREACHABLE,
        "no connection (no route to host)",
    )


async def test_certificate_that_nobody_signed(tmp_path):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(self_signed(tmp_path / "cert.pem"))
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=context)
    async with server, client_of() as client:
        error = await failure_of(client, f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
    assert error.kind is ErrorKind.UPSTREAM_UNREACHABLE
    assert error.sentence == "its certificate or TLS failed (self-signed certificate)"


async def test_unknown_host(monkeypatch):
    async def resolve(*_, **__):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve)
    async with client_of() as client:
        error = await failure_of(client, "http://acme.invalid/")
    assert (error.kind, error.sentence) == (ErrorKind.UPSTREAM_UNREACHABLE, "its host name is not known")


async def test_all_connections_are_taken(fake):
    fake.script(Reply(steps=[b"a", SILENCE]))
    async with client_of(UpstreamTimeouts(connect=0.1), connections=1) as client:
        busy = await client.request("GET", f"{fake.base_url}/x", {})
        error = await failure_of(client, f"{fake.base_url}/x")
        busy.close()
    assert (error.kind, error.sentence) == (ErrorKind.UPSTREAM_UNREACHABLE, "no connection within 0.1 s")


async def test_silence_before_the_status_line(fake):
    fake.script(Reply(before=SILENCE))
    async with client_of(UpstreamTimeouts(connect=0.1, first_byte=0.1)) as client:
        error = await failure_of(client, f"{fake.base_url}/x")
        assert (error.kind, error.sentence) == (ErrorKind.TIMEOUT, "no first byte within 0.1 s")
        await asyncio.wait_for(fake.closed.wait(), 5)


@pytest.mark.parametrize(
    ("steps", "timeouts"),
    [
        ([SILENCE], UpstreamTimeouts(first_byte=0.1)),
        ([b"a", SILENCE], UpstreamTimeouts(idle=0.1)),
        ([b"a", SILENCE], UpstreamTimeouts(first_byte=0.1, idle=0.2)),
        ([b"a", SILENCE], UpstreamTimeouts(total=0.1)),
    ],
)
async def test_silence_in_the_body(fake, steps, timeouts):
    fake.script(Reply(steps=steps))
    async with client_of(timeouts) as client:
        error = await failure_of(client, f"{fake.base_url}/x")
        assert error.kind is ErrorKind.TIMEOUT
        await asyncio.wait_for(fake.closed.wait(), 5)


async def test_total_ends_an_answer_before_its_status_line(fake):
    fake.script(Reply(before=SILENCE))
    async with client_of(UpstreamTimeouts(total=0.1)) as client:
        assert (await failure_of(client, f"{fake.base_url}/x")).kind is ErrorKind.TIMEOUT


async def test_a_slow_caller_is_no_silent_upstream(fake):
    fake.script(Reply(steps=[b"a", SILENCE, b"b"]))
    async with client_of(UpstreamTimeouts(idle=0.1)) as client:
        response = await client.request("GET", f"{fake.base_url}/x", {})
        assert await response.read_some() == b"a"
        await asyncio.sleep(0.3)  # longer than the idle limit: this is what must not count
        fake.release.set()
        assert await response.read(1000) == b"b"


async def test_cut_in_the_body(fake):
    fake.script(Reply(steps=[b"a", CUT]))
    async with client_of() as client:
        error = await failure_of(client, f"{fake.base_url}/x")
    assert error.kind is ErrorKind.UPSTREAM_FAILED
    assert "broke off" in error.sentence


async def test_cut_before_the_status_line(fake):
    fake.script(Reply(before=CUT))
    async with client_of() as client:
        error = await failure_of(client, f"{fake.base_url}/x", "POST")
    assert error.kind is ErrorKind.UPSTREAM_FAILED
    assert "closed the connection without an answer" in error.sentence


async def test_answer_that_is_not_http():
    async with raw_server(b"220 smtp ready\r\n\r\n") as url, client_of() as client:
        error = await failure_of(client, url)
    assert (error.kind, error.sentence) == (ErrorKind.UPSTREAM_FAILED, "its answer is not HTTP")


async def test_short_body():
    async with raw_server(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc") as url, client_of() as client:
        error = await failure_of(client, url)
    assert error.kind is ErrorKind.UPSTREAM_FAILED


async def test_body_over_the_limit(fake):
    fake.script(Reply(steps=[b"x" * 600, b"x" * 600]))
    async with client_of() as client:
        error = await failure_of(client, f"{fake.base_url}/x")
    assert (error.kind, error.sentence) == (ErrorKind.UPSTREAM_FAILED, "its answer is over 1000 bytes")


async def test_compressed_in_spite_of_being_asked_not_to(fake):
    fake.script(Reply(401, {"Content-Encoding": "gzip"}, steps=[gzip.compress(b"hi")]))
    async with client_of() as client:
        response = await client.request("GET", f"{fake.base_url}/x", {})
        assert response.status == 401
        with pytest.raises(
            TransportError, match="its answer is compressed, although the request accepts only identity"
        ):
            await response.read(1000)


async def test_close_is_seen_at_once_while_the_upstream_is_silent(fake):
    fake.script(Reply(steps=[b"a", SILENCE]))
    async with client_of() as client:
        response = await client.request("GET", f"{fake.base_url}/x", {})
        assert await response.read_some() == b"a"
        response.close()
        response.close()
        await asyncio.wait_for(fake.closed.wait(), 5)


async def test_finish_keeps_a_connection_whose_answer_ends(fake):
    async with client_of() as client:
        for _ in range(3):
            fake.script(Reply(steps=[b"a", b"b"]))
            response = await client.request("GET", f"{fake.base_url}/x", {})
            assert await response.read_some()
            await response.finish()
    assert len({request.peer for request in fake.requests}) == 1


async def test_finish_closes_a_connection_whose_answer_does_not_end(fake):
    fake.script(Reply(steps=[b"a", SILENCE]))
    async with client_of() as client:
        response = await client.request("GET", f"{fake.base_url}/x", {})
        assert await response.read_some() == b"a"
        await response.finish()
        await asyncio.wait_for(fake.closed.wait(), 5)


async def test_unix_socket(tmp_path):
    fake = FakeUpstream()
    await fake.start(str(tmp_path / "s"))
    try:
        async with client_of(socket_path=str(tmp_path / "s")) as client:
            response = await client.request("GET", "http://localhost/v1/models", {})
            assert b'"m"' in await response.read(1000)
    finally:
        await fake.stop()


async def test_no_unix_socket(tmp_path):
    async with client_of(socket_path=str(tmp_path / "none")) as client:
        error = await failure_of(client, "http://localhost/")
    assert error.kind is ErrorKind.UPSTREAM_UNREACHABLE
    assert "no such file" in error.sentence
