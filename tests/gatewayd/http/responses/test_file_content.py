"""Tests for gatewayd.http.responses.file_content."""

from collections.abc import AsyncGenerator, AsyncIterator
from functools import partial
from pathlib import Path

import pytest
from aiohttp import web

from gatewayd.http.responses.file_content import disposition, file_reply, headers_of, safe_media_type
from gatewayd.http.routes import Route, RouteAccess
from gatewayd.ingest.records import BlobContent
from tests.fakes.http.public_app import Client, serving

DATA = bytes(range(200))
POLICY = "sandbox; default-src 'none'"


@pytest.mark.parametrize(
    ("declared", "shown"),
    [
        (None, "application/octet-stream"),
        ("", "application/octet-stream"),
        ("nonsense", "application/octet-stream"),
        ("a/b\r\nX: y", "application/octet-stream"),
        ("text/plain", "text/plain"),
        ("TEXT/Plain; charset=utf-8", "text/plain; charset=utf-8"),
        ("text/plain; charset=\r\nX: y", "text/plain"),
        ("text/html; charset=latin-1", "text/plain; charset=latin-1"),
        ("application/xhtml+xml", "text/plain"),
        ("image/svg+xml", "text/plain"),
        ("text/xml", "text/plain"),
        ("application/atom+xml", "text/plain"),
        ("application/xml-dtd", "text/plain"),
        ("text/xsl", "text/plain"),
        ("text/javascript", "text/plain"),
        ("application/x-javascript", "text/plain"),
        ("application/ecmascript", "text/plain"),
        ("text/css", "text/plain"),
        ("multipart/related", "text/plain"),
        ("message/rfc822", "text/plain"),
        ("text/markdown", "text/markdown"),
        ("application/pdf", "application/pdf"),
        ("application/json", "application/json"),
        ("application/postscript", "application/postscript"),
        ("image/png", "image/png"),
        (
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        ),
    ],
)
def test_types(declared: str | None, shown: str) -> None:
    assert safe_media_type(declared) == shown


@pytest.mark.parametrize(
    ("declared", "attachment", "expected"),
    [
        ("application/pdf", False, "inline; filename=\"a.x\"; filename*=UTF-8''a.x"),
        ("application/pdf", True, "attachment; filename=\"a.x\"; filename*=UTF-8''a.x"),
        ("text/plain; charset=utf-8", False, None),
        ("text/plain", True, "attachment; filename=\"a.x\"; filename*=UTF-8''a.x"),
        ("text/html", False, "attachment; filename=\"a.x\"; filename*=UTF-8''a.x"),
        ("image/svg+xml", False, "attachment; filename=\"a.x\"; filename*=UTF-8''a.x"),
        ("image/png", False, "attachment; filename=\"a.x\"; filename*=UTF-8''a.x"),
        (None, False, "attachment; filename=\"a.x\"; filename*=UTF-8''a.x"),
    ],
)
def test_dispositions(declared: str | None, attachment: bool, expected: str | None) -> None:
    headers = headers_of("a.x", declared, attachment=attachment)
    assert headers.get("Content-Disposition") == expected
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert ("sandbox" in headers["Content-Security-Policy"]) == (declared != "application/pdf")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a b.txt", "attachment; filename=\"a b.txt\"; filename*=UTF-8''a%20b.txt"),
        ('a"b\\c.txt', "attachment; filename=\"a_b_c.txt\"; filename*=UTF-8''a%22b%5Cc.txt"),
        ("€ 1.txt", "attachment; filename=\"_ 1.txt\"; filename*=UTF-8''%E2%82%AC%201.txt"),
        ("a'b%41;c", "attachment; filename=\"a_b_41_c\"; filename*=UTF-8''a%27b%2541%3Bc"),
        ("a\r\nX: y", "attachment; filename=\"a__X_ y\"; filename*=UTF-8''a%0D%0AX%3A%20y"),
    ],
)
def test_names(name: str, expected: str) -> None:
    assert disposition("attachment", name) == expected


async def read(path: Path, start: int, end: int) -> AsyncGenerator[bytes, None]:
    data = path.read_bytes()
    for at in range(start, end, 64):
        yield data[at : min(at + 64, end)]


@pytest.fixture(params=["file", "object"])
async def client(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    is_file = request.param == "file"
    stored = tmp_path / "stored"
    stored.write_bytes(DATA)
    (tmp_path / "empty").write_bytes(b"")

    async def show(request: web.Request) -> web.StreamResponse:
        path = tmp_path / request.match_info["name"]
        content = BlobContent(
            path.stat().st_size, 1e9, path.name, partial(read, path), path if is_file else None
        )
        return file_reply(content, "ä.html", "text/html")

    async with serving([Route("GET", "/{name}", show, RouteAccess.PUBLIC, "-")]) as made:
        yield made


async def test_the_whole(client: Client) -> None:
    async with client.get("/stored") as reply:
        assert (reply.status, await reply.read()) == (200, DATA)
        assert reply.headers["Content-Type"] == "text/plain"
        assert reply.headers["Content-Security-Policy"] == POLICY
        assert reply.headers["Accept-Ranges"] == "bytes"
        assert "X-Request-Id" in reply.headers
        tag = reply.headers["ETag"]
    async with client.get("/stored", headers={"If-None-Match": tag}) as reply:
        assert (reply.status, await reply.read()) == (304, b"")
    async with client.head("/stored") as reply:
        assert (reply.status, reply.headers["Content-Length"]) == (200, "200")
    async with client.get("/empty") as reply:
        assert (reply.status, await reply.read()) == (200, b"")


@pytest.mark.parametrize(
    ("wanted", "content", "told"),
    [
        ("bytes=0-9", DATA[:10], "bytes 0-9/200"),
        ("bytes=190-", DATA[190:], "bytes 190-199/200"),
        ("bytes=-10", DATA[190:], "bytes 190-199/200"),
        ("bytes=0-999", DATA, "bytes 0-199/200"),
    ],
)
async def test_ranges(client: Client, wanted: str, content: bytes, told: str) -> None:
    async with client.get("/stored", headers={"Range": wanted}) as reply:
        assert (reply.status, reply.headers["Content-Range"]) == (206, told)
        assert await reply.read() == content


@pytest.mark.parametrize("wanted", ["bytes=200-", "bytes=500-600", "bytes=x"])
async def test_what_is_no_range(client: Client, wanted: str) -> None:
    async with client.get("/stored", headers={"Range": wanted}) as reply:
        assert (reply.status, reply.headers["Content-Range"]) == (416, "bytes */200")
