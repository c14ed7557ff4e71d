"""Tests for gatewayd.http.tls: handshakes, new certificates, and files that cannot be used."""

import asyncio
import contextlib
import logging
import shutil
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from cryptography import x509

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.connections import arrivals
from gatewayd.http.connections.arrivals import ArrivalRules
from gatewayd.http.server import HttpServer
from gatewayd.http.tls import TlsCertificate
from tests.fakes.http.certificates import write_certificate


@contextlib.asynccontextmanager
async def serving(certificate: TlsCertificate) -> AsyncIterator[int]:
    """Serve the scheme of each request over TLS; yield the port."""
    app = web.Application()

    async def show(request: web.Request) -> web.StreamResponse:
        return web.Response(text=request.scheme)

    app.router.add_get("/", show)
    server = HttpServer(app)
    await server.open()
    try:
        yield int(
            (await server.listen_tcp("127.0.0.1", 0, ArrivalRules(certificate.context))).rpartition(":")[2]
        )
    finally:
        await server.close()


async def ask(port: int) -> tuple[str, str]:
    """Return the common name of the server's certificate, and the body of a reply."""
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting)
    shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    name = x509.load_der_x509_certificate(shown).subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    answer = await reader.read()
    writer.close()
    return str(name[0].value), answer.rpartition(b"\r\n\r\n")[2].decode()


async def test_a_changed_certificate_is_used_by_the_next_handshake(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = write_certificate(tmp_path, "old")
    certificate = TlsCertificate(*files)
    new = write_certificate(tmp_path, "new")
    async with serving(certificate) as port:
        assert await ask(port) == ("old", "https")
        shutil.copy(new[0], files[0])
        with caplog.at_level(logging.WARNING):
            await certificate.look()
        assert "the key does not belong to the certificate" in caplog.text
        assert await ask(port) == ("old", "https")
        shutil.copy(new[1], files[1])
        await certificate.look()
        assert await ask(port) == ("new", "https")


async def test_a_handshake_that_does_not_go_on_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "HANDSHAKE_SECONDS", 0.05)
    async with serving(TlsCertificate(*write_certificate(tmp_path, "slow"))) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"\x16\x03\x01")
        with contextlib.suppress(ConnectionResetError):
            assert await asyncio.wait_for(reader.read(), 5) == b""
        writer.close()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("absent", r"tls_certificate \S+absent.pem: no such file"),
        ("encrypted", r"tls_key \S+encrypted.key: it is encrypted"),
        ("foreign", "the key does not belong to the certificate"),
        ("text", "one of the files has no PEM block of its kind"),
    ],
)
def test_files_that_cannot_be_used_are_named(tmp_path: Path, name: str, reason: str) -> None:
    files = tmp_path / f"{name}.pem", tmp_path / f"{name}.key"
    if name != "absent":
        files = write_certificate(tmp_path, name, b"secret" if name == "encrypted" else b"")
    if name == "foreign":
        shutil.copy(write_certificate(tmp_path, "other")[1], files[1])
    if name == "text":
        files[0].write_text("no certificate")
    with pytest.raises(GatewayError, match=reason) as caught:
        TlsCertificate(*files)
    assert caught.value.kind is ErrorKind.NOT_CONFIGURED
