"""Replies with bytes of an object store: conditions, and a store that fails before and within the bytes."""

from collections.abc import AsyncGenerator, AsyncIterator
from email.utils import formatdate

import aiohttp
import pytest
from aiohttp import web

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.responses.stored_bytes import StoredBytesReply
from gatewayd.http.routes import Route, RouteAccess
from gatewayd.ingest.records import BlobContent
from tests.fakes.http.public_app import Client, serving

DATA = bytes(range(200))
CHANGED = 1_000_000_000


async def whole(start: int, end: int) -> AsyncGenerator[bytes, None]:
    if start < end:
        yield DATA[start:end]


async def failing(start: int, end: int) -> AsyncGenerator[bytes, None]:
    raise GatewayError(ErrorKind.UNAVAILABLE, "cannot reach the object store")
    yield b""


async def breaking(start: int, end: int) -> AsyncGenerator[bytes, None]:
    yield DATA[:50]
    raise GatewayError(ErrorKind.UNAVAILABLE, "cannot reach the object store")


READERS = {"whole": whole, "failing": failing, "breaking": breaking}


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async def show(request: web.Request) -> web.StreamResponse:
        content = BlobContent(len(DATA), CHANGED + 0.5, "key", READERS[request.match_info["name"]])
        return StoredBytesReply(content, {"Content-Type": "text/plain"})

    async with serving([Route("GET", "/{name}", show, RouteAccess.PUBLIC, "-")]) as made:
        yield made


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"If-Match": '"key"'}, 200),
        ({"If-Match": "*"}, 200),
        ({"If-Match": '"other"'}, 412),
        ({"If-None-Match": '"key"'}, 304),
        ({"If-None-Match": '"other"'}, 200),
        ({"If-Modified-Since": formatdate(CHANGED, usegmt=True)}, 304),
        ({"If-Modified-Since": formatdate(CHANGED - 1, usegmt=True)}, 200),
        ({"If-Unmodified-Since": formatdate(CHANGED - 1, usegmt=True)}, 412),
        ({"If-Unmodified-Since": formatdate(CHANGED, usegmt=True)}, 200),
        ({"Range": "bytes=1-2", "If-Range": '"key"'}, 206),
        ({"Range": "bytes=1-2", "If-Range": '"other"'}, 200),
        ({"Range": "bytes=1-2", "If-Range": formatdate(CHANGED, usegmt=True)}, 206),
        ({"Range": "bytes=1-2", "If-Range": formatdate(CHANGED - 9, usegmt=True)}, 200),
    ],
)
async def test_conditions(client: Client, headers: dict[str, str], status: int) -> None:
    async with client.get("/whole", headers=headers) as reply:
        expected = {200: DATA, 206: DATA[1:3]}.get(status, b"")
        assert (reply.status, await reply.read()) == (status, expected)
        assert reply.headers["ETag"] == '"key"'


async def test_a_store_that_fails_at_once_is_unavailable(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    async with client.get("/failing", headers={"Range": "bytes=0-5"}) as reply:
        assert (reply.status, await reply.read()) == (503, b"")
        assert "Content-Range" not in reply.headers
    assert "cannot send a stored file: cannot reach the object store" in caplog.text


async def test_a_store_that_fails_later_ends_the_connection(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(aiohttp.ClientError):
        async with client.get("/breaking") as reply:
            assert reply.status == 200
            await reply.read()
    assert "cannot send the rest of a stored file" in caplog.text
