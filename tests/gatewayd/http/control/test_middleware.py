"""The edge of the control socket."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from gatewayctl.wire.base import HEADER, VERSION
from gatewayd.http.control.middleware import ControlEdge
from gatewayd.http.control.peer import PeerRules, SocketPeer
from gatewayd.http.routes import Route, RouteAccess
from gatewayd.tasks import TaskRegistry
from tests.fakes.daemons.control_socket import Control, control_socket


async def send(
    path: Path, target: str, headers: Mapping[str, str], *, method: str = "GET", body: bytes = b""
) -> tuple[int, dict[str, str], Any]:
    """Send one request as it is and return status, headers and JSON."""
    reader, writer = await asyncio.open_unix_connection(path)
    lines = [f"{name}: {value}" for name, value in headers.items()]
    head = "\r\n".join([f"{method} {target} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}", *lines])
    writer.write(f"{head}\r\nConnection: close\r\n\r\n".encode() + body)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    start, _, rest = answer.partition(b"\r\n\r\n")
    status, *fields = start.decode().split("\r\n")
    named = {name.lower(): value for name, _, value in (field.partition(": ") for field in fields)}
    return int(status.split()[1]), named, orjson.loads(rest)


GOOD = {HEADER: VERSION}


async def test_every_reply_has_protocol_and_request_id(control: Control) -> None:
    for target in ("/v1/health", "/v1/nothing"):
        _, headers, _ = await send(control.socket, target, {**GOOD, "X-Request-Id": "abc"})
        assert headers[HEADER.lower()] == VERSION
        assert headers["x-request-id"] == "abc"


@pytest.mark.parametrize("name", ["Origin", "Referer"])
async def test_browsers_are_refused(control: Control, name: str) -> None:
    status, _, body = await send(control.socket, "/v1/health", {**GOOD, name: "http://localhost"})
    assert (status, body["error"]["kind"], body["error"]["param"]) == (403, "forbidden", name)


@pytest.mark.parametrize("headers", [{}, {HEADER: "2"}])
async def test_another_protocol_is_refused(control: Control, headers: Mapping[str, str]) -> None:
    status, _, body = await send(control.socket, "/v1/health", headers)
    assert (status, body["error"]["code"]) == (400, "protocol_mismatch")


async def test_strangers_are_refused_before_anything_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stranger = SocketPeer(1, 4_000_000, 4_000_000)
    monkeypatch.setattr("gatewayd.http.control.peer.read_peer", lambda request: stranger)
    async with control_socket(tmp_path, owner_uid=1) as strange:
        status, _, body = await send(strange.socket, "/v1/nothing", {})
    assert (status, body["error"]["kind"]) == (403, "forbidden")


@pytest.mark.parametrize(
    ("method", "target", "body", "status", "kind"),
    [
        ("GET", "/v1/nothing", b"", 404, "not_found"),
        ("DELETE", "/v1/health", b"", 405, "invalid_request"),
        ("POST", "/v1/users", b"{", 400, "invalid_request"),
        ("POST", "/v1/users", b"[]", 422, "invalid_request"),
        ("POST", "/v1/users", b'{"email": "a@b.c", "rolle": "admin"}', 422, "invalid_request"),
        ("POST", "/v1/users", b'{"email": 1}', 422, "invalid_request"),
        ("POST", "/v1/users?dry_run=maybe", b'{"email": "a@b.c"}', 400, "invalid_request"),
        ("GET", "/v1/users?limit=-1", b"", 400, "invalid_request"),
        ("GET", "/v1/users/%00", b"", 404, "not_found"),
        ("GET", "/v1/users/%ff", b"", 404, "not_found"),
    ],
)
async def test_bad_requests(
    control: Control, method: str, target: str, body: bytes, status: int, kind: str
) -> None:
    found, _, answer = await send(control.socket, target, GOOD, method=method, body=body)
    assert (found, answer["error"]["kind"]) == (status, kind)
    assert await control.accounts.users.count() == 0


async def test_rows_of_other_applications_have_no_place_here() -> None:
    async def handler(request: Any) -> Any:
        raise AssertionError

    edge = ControlEdge(PeerRules("", 0), TaskRegistry())
    with pytest.raises(ValueError, match="no control route"):
        edge.wrap(Route("GET", "/x", handler, RouteAccess.PUBLIC, "x"))
