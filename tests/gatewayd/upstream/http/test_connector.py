import asyncio
import errno
import socket
import ssl

import pytest

from gatewayd.errors import ErrorKind
from gatewayd.upstream.http import connector
from gatewayd.upstream.http.client import HttpClient, TransportError
from gatewayd.upstream.http.connector import (
    ConnectionDialer,
    UrlOrigin,
    default_tls_context,
    unreachable_reason,
)
from gatewayd.upstream.sources.config import UpstreamTimeouts
from tests.fakes.http.byte_server import RawServer, on_both_loops
from tests.fakes.http.certificates import Authority

HI = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


async def repeat(peer):
    while await peer.request():
        await peer.send(HI)


async def fetch(url, timeouts=None, **options):
    client = HttpClient(timeouts or UpstreamTimeouts(), **options)
    try:
        return await (await client.request("GET", url, {})).read(10_000_000)
    finally:
        await client.close()


async def failure_of(url, **options) -> TransportError:
    with pytest.raises(TransportError) as caught:
        await fetch(url, **options)
    assert caught.value.kind is ErrorKind.UPSTREAM_UNREACHABLE
    return caught.value


def answer_names(monkeypatch, *addresses):
    """Let every host name stand for these addresses; returns the names that were asked for."""
    asked = []

    async def getaddrinfo(host, port, **_):
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)
    return asked


async def test_the_descriptors_of_the_control_socket_are_not_taken(monkeypatch):
    monkeypatch.setattr(connector, "has_spare_files", lambda: False)
    assert "too many open files" in str(await failure_of("http://127.0.0.1:1/")).lower()


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path)


@on_both_loops
async def test_tls(authority):
    seen = []

    async def talk(peer):
        seen.append(peer.writer.get_extra_info("ssl_object"))
        await repeat(peer)

    served = authority.serve("127.0.0.1")
    served.set_alpn_protocols(["h2", "http/1.1"])
    trusted = authority.trust()
    trusted.set_alpn_protocols(["http/1.1"])
    async with RawServer(talk, tls=served) as server:
        client = HttpClient(UpstreamTimeouts(), tls=lambda: trusted)
        for _ in range(3):
            assert await (await client.request("GET", server.url, {})).read(100) == b"hi"
        await client.close()
    assert [peer.selected_alpn_protocol() for peer in seen] == ["http/1.1"]


@on_both_loops
async def test_tls_with_large_bodies_both_ways(authority):
    size = 5_000_000

    async def talk(peer):
        while await peer.request():
            await peer.send(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * size)
            peer.close()

    async with RawServer(talk, tls=authority.serve("127.0.0.1")) as server:
        client = HttpClient(UpstreamTimeouts(), tls=authority.trust)
        response = await client.request("POST", server.url, {}, b"y" * size)
        assert await response.read(size) == b"x" * size
        assert server.requests[0].endswith(b"\r\n\r\n" + b"y" * size)
        await client.close()


@on_both_loops
async def test_tls_sends_the_host_name(authority, monkeypatch):
    names = []
    served = authority.serve("acme.test")
    served.sni_callback = lambda _, name, __: names.append(name)
    asked = answer_names(monkeypatch, "127.0.0.1")
    async with RawServer(repeat, tls=served) as server:
        url = f"https://acme.test.:{server.port}/"
        assert await fetch(url, tls=authority.trust) == b"hi"
    assert (names, asked) == (["acme.test"], ["acme.test."])


@on_both_loops
async def test_certificate_for_another_host(authority):
    async with RawServer(repeat, tls=authority.serve("other.test", "10.0.0.1")) as server:
        error = await failure_of(server.url, tls=authority.trust)
    assert "its certificate or TLS failed (IP address mismatch" in error.sentence


@on_both_loops
async def test_certificate_of_an_unknown_authority(authority, tmp_path):
    folder = tmp_path / "other"
    folder.mkdir()
    async with RawServer(repeat, tls=Authority(folder).serve("127.0.0.1")) as server:
        error = await failure_of(server.url, tls=authority.trust)
    assert error.sentence == "its certificate or TLS failed (unable to get local issuer certificate)"


@on_both_loops
async def test_tls_with_a_server_that_has_none(authority):
    async def talk(peer):
        await peer.reader.read(10)
        await peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with RawServer(talk) as server:
        error = await failure_of(server.url.replace("http:", "https:"), tls=authority.trust)
    assert error.sentence == "its certificate or TLS failed (wrong version number)"


@on_both_loops
async def test_server_that_leaves_the_handshake(authority):
    async def talk(peer):
        await peer.reader.read(10)

    async with RawServer(talk) as server:
        error = await failure_of(server.url.replace("http:", "https:"), tls=authority.trust)
    assert error.sentence.startswith("no connection (")
    assert "Error" not in error.sentence


@on_both_loops
async def test_server_that_hangs_in_the_handshake(authority):
    async def talk(peer):
        await peer.gone()

    async with RawServer(talk) as server:
        url = server.url.replace("http:", "https:")
        error = await failure_of(url, tls=authority.trust, timeouts=UpstreamTimeouts(connect=0.1))
        assert error.sentence == "no connection within 0.1 s"
        await asyncio.wait_for(server.peers[0].left.wait(), 5)


@on_both_loops
async def test_cancelled_in_the_handshake(authority):
    begun = asyncio.Event()

    async def talk(peer):
        begun.set()
        await peer.gone()

    async with RawServer(talk) as server:
        url = server.url.replace("http:", "https:")
        task = asyncio.create_task(fetch(url, tls=authority.trust))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.peers[0].left.wait(), 5)


def test_the_default_context_checks_all():
    context = default_tls_context()
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert default_tls_context() is context


@on_both_loops
async def test_unix_socket(tmp_path):
    path = str(tmp_path / "s")
    async with RawServer(repeat, socket_path=path) as server:
        client = HttpClient(UpstreamTimeouts(), socket_path=path)
        for _ in range(3):
            assert await (await client.request("GET", "http://model/x", {})).read(100) == b"hi"
        await client.close()
    assert server.requests[0].startswith(b"GET /x HTTP/1.1\r\nHost: model\r\n")
    assert len(server.peers) == 1


@on_both_loops
async def test_no_unix_socket(tmp_path):
    error = await failure_of("http://model/", socket_path=str(tmp_path / "none"))
    assert error.sentence == "no connection (no such file or directory)"


@on_both_loops
async def test_the_next_address_is_tried(monkeypatch):
    async with RawServer(repeat) as server:
        asked = answer_names(monkeypatch, "127.0.0.2", "127.0.0.2", "127.0.0.1")
        assert await fetch(f"http://acme.test:{server.port}/") == b"hi"
    assert asked == ["acme.test"]


@on_both_loops
async def test_no_address_answers(monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        answer_names(monkeypatch, "127.0.0.2", "127.0.0.1")
        error = await failure_of(f"http://acme.test:{free.getsockname()[1]}/")
    assert error.sentence == "no connection (connection refused)"


async def test_an_address_that_hangs_gets_its_share_of_the_time(monkeypatch):
    loop = asyncio.get_running_loop()
    connect = loop.sock_connect

    async def hang_on_the_first(own, address):
        if address[0] == "127.0.0.2":
            await loop.create_future()
        await connect(own, address)

    monkeypatch.setattr(loop, "sock_connect", hang_on_the_first)
    answer_names(monkeypatch, "127.0.0.2", "127.0.0.1")
    async with RawServer(repeat) as server:
        assert await fetch(f"http://acme.test:{server.port}/", UpstreamTimeouts(connect=0.3)) == b"hi"


@on_both_loops
async def test_a_failure_of_tls_is_no_reason_to_try_another_address(authority, monkeypatch):
    answer_names(monkeypatch, "127.0.0.1", "127.0.0.2")
    async with RawServer(repeat, tls=authority.serve("other.test")) as server:
        error = await failure_of(f"https://acme.test:{server.port}/", tls=authority.trust)
    assert "Hostname mismatch" in error.sentence


@on_both_loops
async def test_a_name_without_addresses(monkeypatch):
    answer_names(monkeypatch)
    assert (await failure_of("http://acme.test/")).sentence == "its host name is not known"


@on_both_loops
async def test_a_name_that_cannot_be_one():
    assert (await failure_of(f"http://{'a' * 70}.test/")).sentence == "its host name is not known"


async def test_a_literal_address_is_not_looked_up(monkeypatch):
    asked = answer_names(monkeypatch, "127.0.0.9")
    for host in ("127.0.0.1", "::1"):
        assert await ConnectionDialer(
            UrlOrigin(host, 1, is_tls=False), None, default_tls_context
        )._addresses() == [host]
    assert asked == []


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (socket.gaierror(-2, "x"), "its host name is not known"),
        (UnicodeError("x"), "its host name is not known"),
        (ssl.SSLError(1, "x"), "its certificate or TLS failed (SSLError)"),
        (ConnectionRefusedError(errno.ECONNREFUSED, "10.0.0.1"), "no connection (connection refused)"),
        (TimeoutError(errno.ETIMEDOUT, "x"), "no connection (connection timed out)"),
        (ConnectionResetError("to 10.0.0.1"), "no connection (connection closed)"),
        (OSError("Multiple exceptions: 10.0.0.1"), "no connection (OSError)"),
    ],
)
def test_why_there_is_no_connection(error, sentence):
    failure = unreachable_reason(error)
    assert (failure.kind, failure.sentence) == (ErrorKind.UPSTREAM_UNREACHABLE, sentence)
