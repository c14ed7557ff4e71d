"""Receivers of the audit log: syslog over each transport, and signed webhooks."""

import asyncio
import hashlib
import hmac
import json
import re
import socket
from base64 import b64encode
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from gatewayd.audit.chain import link
from gatewayd.audit.records import GATEWAY_ACTOR, AuditEntry, AuditResult, ChainHead
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.upstream.audit import syslog
from gatewayd.upstream.audit.syslog import SyslogAddress, SyslogReceiver, message_of
from gatewayd.upstream.audit.webhook import WebhookReceiver

ROWS = link(
    [
        (1_700_000_000_123_456, AuditEntry("user set", GATEWAY_ACTOR, after={"role": "admin"})),
        (1_700_000_001_000_000, AuditEntry("sign-in", GATEWAY_ACTOR, result=AuditResult.REFUSED)),
    ],
    ChainHead(),
)
HEADER = re.compile(rb"<(\d+)>1 (\S+) box gatewayd 7 audit - (\{.*\})")


def test_a_message_has_the_form_of_the_rfc() -> None:
    found = [HEADER.fullmatch(message_of(row, "box gatewayd 7 audit -")) for row in ROWS]
    assert [match[1] for match in found if match] == [b"85", b"84"]
    assert found[0] is not None
    assert found[0][2] == b"2023-11-14T22:13:20.123456Z"
    assert json.loads(found[0][3]) == asdict(ROWS[0])


@pytest.mark.parametrize("scheme", ["unix", "udp"])
async def test_datagrams(tmp_path: Path, scheme: str) -> None:
    family = socket.AF_UNIX if scheme == "unix" else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as server:
        server.settimeout(5)
        path = str(tmp_path / "log")
        server.bind(path if scheme == "unix" else ("127.0.0.1", 0))
        port = 0 if scheme == "unix" else server.getsockname()[1]
        address = SyslogAddress(scheme, "127.0.0.1", port, path if scheme == "unix" else "")
        receiver = SyslogReceiver(address, "box", 7)
        await receiver.send(ROWS)
        assert [HEADER.fullmatch(server.recv(65536)) is not None for _ in ROWS] == [True, True]
        await receiver.close()


async def test_a_stream_counts_octets_and_is_opened_again() -> None:
    got: asyncio.Queue[bytes] = asyncio.Queue()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in ROWS:
            length = int(await reader.readuntil(b" "))
            await got.put(await reader.readexactly(length))
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        receiver = SyslogReceiver(SyslogAddress("tcp", "127.0.0.1", port), "box", 7)
        for _ in range(2):
            await receiver.send(ROWS)
            for _ in ROWS:
                assert HEADER.fullmatch(await asyncio.wait_for(got.get(), 5))
            await asyncio.sleep(0.02)
        await receiver.close()


@pytest.mark.parametrize("scheme", ["unix", "tcp", "tls"])
async def test_an_absent_server_is_unavailable(tmp_path: Path, scheme: str) -> None:
    address = SyslogAddress(scheme, "127.0.0.1", 1, str(tmp_path / "none") if scheme == "unix" else "")
    with pytest.raises(GatewayError, match="cannot send to the syslog server") as refused:
        await SyslogReceiver(address, "box", 7).send(ROWS)
    assert refused.value.kind is ErrorKind.UNAVAILABLE


@pytest.mark.parametrize("scheme", ["udp", "tcp", "tls"])
async def test_a_name_that_no_host_can_have_is_unavailable(scheme: str) -> None:
    receiver = SyslogReceiver(SyslogAddress(scheme, f"{'a' * 64}.example", 1), "box", 7)
    with pytest.raises(GatewayError, match="cannot send to the syslog server"):
        await receiver.send(ROWS)


async def test_a_server_that_does_not_read_keeps_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syslog, "SEND_SECONDS", 0.05)
    opened: list[asyncio.StreamWriter] = []
    connect = asyncio.open_connection

    async def record(*args: Any, **options: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        found = await connect(*args, **options)
        opened.append(found[1])
        return found

    monkeypatch.setattr(asyncio, "open_connection", record)
    with socket.create_server(("127.0.0.1", 0)) as server:
        receiver = SyslogReceiver(SyslogAddress("tcp", *server.getsockname()), "box", 7)
        with pytest.raises(GatewayError, match="it did not answer in time"):
            for _ in range(1000):
                await receiver.send(ROWS * 1000)
        [writer] = opened
        assert writer.transport.get_write_buffer_size() == 0
        await asyncio.sleep(0)


async def test_a_webhook_gets_signed_rows() -> None:
    seen: list[tuple[str, str, bytes]] = []
    status = [204]
    accounts: list[str | None] = []

    async def take(request: web.Request) -> web.Response:
        names = ("X-Gatewayd-Timestamp", "X-Gatewayd-Signature")
        at, signature = (request.headers.get(name, "") for name in names)
        seen.append((at, signature, await request.read()))
        accounts.append(request.headers.get("Authorization"))
        return web.Response(status=status[0])

    app = web.Application()
    app.router.add_post("/hook", take)
    async with TestServer(app) as server:
        url = str(server.make_url("/hook"))
        await WebhookReceiver(url, "hush", lambda: 1234).send(ROWS)
        [(at, signature, body)] = seen
        expected = hmac.new(b"hush", b"1234." + body, hashlib.sha256).hexdigest()
        assert (at, signature) == ("1234", f"sha256={expected}")
        assert json.loads(body) == {"rows": [asdict(row) for row in ROWS]}
        status[0] = 500
        with pytest.raises(GatewayError, match="it answered 500"):
            await WebhookReceiver(url, "").send(ROWS)
        assert seen[-1][:2] == ("", "")
        status[0] = 204
        own = url.replace("://", "://siem:p%40ss@")
        await WebhookReceiver(own, "").send(ROWS)
        assert accounts == [None, None, f"Basic {b64encode(b'siem:p@ss').decode()}"]
    for absent in (url, own):
        with pytest.raises(GatewayError, match="cannot send to the webhook") as refused:
            await WebhookReceiver(absent, "").send(ROWS)
        assert "siem" not in refused.value.full_message
