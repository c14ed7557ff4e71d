"""Tests for gatewayd.http.web.routes."""

import asyncio
import gzip
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import brotli
import pytest
from aiohttp import ClientSession, DummyCookieJar
from aiohttp.test_utils import TestClient

from gatewayd.http.web.assets import MAX_MODULE_BYTES
from gatewayd.http.web.policies import PageRules
from gatewayd.http.web.routes import VIEWS, PageRoutes, wants_html
from gatewayd.tasks import TaskRegistry
from tests.fakes.http.public_app import serving

HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
PATHS = [path.replace("{id}", "a").replace("{rest:.+}", "a/b") for path, _ in VIEWS]
STRICT = ("default-src 'none'", "require-trusted-types-for 'script'", "frame-ancestors 'none'")


@pytest.fixture
async def client() -> AsyncIterator[TestClient]:  # type: ignore[type-arg]
    tasks = TaskRegistry()
    async with serving(PageRoutes("gatewayd", PageRules(), tasks).routes()) as opened:
        yield opened
    await tasks.close()


@pytest.mark.parametrize("path", PATHS)
async def test_browsers_get_the_page_and_others_what_they_always_got(
    client: ClientSession, path: str
) -> None:
    page = await client.get(path, headers=HTML)
    assert page.status == 200
    assert page.content_type == "text/html"
    assert all(part in page.headers["Content-Security-Policy"] for part in STRICT)
    for accept in ("application/json", "*/*", "text/html;q=0"):
        other = await client.get(path, headers={"Accept": accept})
        assert other.status == 404
        assert (await other.json())["detail"] == "Not Found"


async def test_the_root_is_the_page_and_answers_the_probes_of_clients(client: ClientSession) -> None:
    page = await client.get("/", headers=HTML)
    assert page.content_type == "text/html"
    probe = await client.get("/", headers={"Accept": "*/*"})
    assert await probe.json() == {"status": True}
    assert (await client.head("/", headers={"Accept": "*/*"})).status == 200


async def test_headers_of_the_page(client: ClientSession) -> None:
    page = await client.get("/", headers=HTML)
    assert page.headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert page.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert page.headers["X-Content-Type-Options"] == "nosniff"
    assert page.headers["Referrer-Policy"] == "no-referrer"
    assert "camera=()" in page.headers["Permissions-Policy"]
    assert page.headers["Cache-Control"] == "no-cache"
    assert {"Accept", "Accept-Encoding", "Accept-Language", "Cookie"} <= set(page.headers["Vary"].split(", "))


async def test_the_server_chooses_language_and_theme(client: ClientSession) -> None:
    german = await client.get("/", headers={**HTML, "Accept-Language": "de-AT,de;q=0.9"})
    assert '<html lang="de" dir="ltr" data-theme="auto"' in await german.text()
    chosen = await client.get("/", headers={**HTML, "Cookie": "language=ar; theme=dark"})
    assert '<html lang="ar" dir="rtl" data-theme="dark"' in await chosen.text()
    hostile = await client.get("/", headers={**HTML, "Cookie": 'language="><script>; theme=x'})
    assert '<html lang="en" dir="ltr" data-theme="auto"' in await hostile.text()


async def test_a_browser_that_has_the_page_gets_304(client: ClientSession) -> None:
    first = await client.get("/", headers=HTML)
    tag = first.headers["ETag"]
    again = await client.get("/", headers={**HTML, "If-None-Match": f'"other", {tag}'})
    assert again.status == 304
    assert await again.read() == b""
    assert again.headers["ETag"] == tag
    plain = await client.get("/", headers={**HTML, "Accept-Encoding": "identity", "If-None-Match": tag})
    assert plain.status == 200


async def test_files_are_encoded_and_never_change(client: ClientSession) -> None:
    text = await (await client.get("/", headers=HTML)).text()
    (address,) = re.findall(r'rel="stylesheet" href="([^"]+)"', text)
    plain = await client.get(address, headers={"Accept-Encoding": "identity"})
    assert plain.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert plain.headers["Vary"] == "Accept-Encoding"
    assert plain.content_type == "text/css"
    data = await plain.read()
    async with ClientSession(auto_decompress=False, cookie_jar=DummyCookieJar()) as raw:
        for coding, unpack in (("br", brotli.decompress), ("gzip", gzip.decompress)):
            url = client.make_url(address)  # type: ignore[attr-defined]
            reply = await raw.get(url, headers={"Accept-Encoding": coding})
            assert reply.headers["Content-Encoding"] == coding
            assert unpack(await reply.read()) == data


async def test_a_file_of_another_release_is_absent(client: ClientSession) -> None:
    for path in ("/static/00000000000000000000/app/main.js", "/static/x/%2e%2e/index.html", "/static/a/b"):
        reply = await client.get(path)
        assert reply.status == 404
        assert reply.content_type == "application/json"


async def test_many_first_requests_read_the_files_once(monkeypatch: pytest.MonkeyPatch) -> None:
    routes, count = PageRoutes("gatewayd", PageRules(), TaskRegistry()), 0
    opened = routes._open

    def open_slowly() -> object:
        nonlocal count
        count += 1
        return opened()

    monkeypatch.setattr(routes, "_open", open_slowly)
    async with serving(routes.routes()) as client:
        replies = await asyncio.gather(*(client.get("/", headers=HTML) for _ in range(8)))
    assert {reply.status for reply in replies} == {200}
    assert count == 1


async def test_embeds_have_a_document_of_their_own_policy(client: ClientSession) -> None:
    frame = await client.get("/frame.html", headers={"Sec-Fetch-Dest": "iframe"})
    assert frame.headers["Content-Security-Policy"].startswith("sandbox allow-scripts ")
    assert (await client.get("/frame.html", headers={"Sec-Fetch-Dest": "document"})).status == 404


async def test_a_picture_of_another_host_has_a_document_of_its_own_policy(client: ClientSession) -> None:
    picture = await client.get("/picture.html", headers={"Sec-Fetch-Dest": "iframe"})
    policy = picture.headers["Content-Security-Policy"].split("; ")
    assert policy[:2] == ["sandbox allow-scripts", "default-src 'none'"]
    assert "img-src https: http:" in policy
    assert (await client.get("/picture.html", headers={"Sec-Fetch-Dest": "document"})).status == 404


async def test_what_installs_the_page(client: ClientSession) -> None:
    worker = await client.get("/service-worker.js")
    assert worker.content_type == "text/javascript"
    assert worker.headers["Content-Security-Policy"] == "default-src 'none'; connect-src 'self'"
    assert worker.headers["Cache-Control"] == "no-cache"
    manifest = await client.get("/manifest.webmanifest")
    assert manifest.content_type == "application/manifest+json"
    for icon in json.loads(await manifest.read())["icons"]:
        assert (await client.get(icon["src"])).content_type == "image/png"
    offline = await client.get("/offline.html", headers={"Accept-Language": "de"})
    assert "Keine Verbindung" in await offline.text()
    assert all(part in offline.headers["Content-Security-Policy"] for part in STRICT)


def test_who_asks_for_html() -> None:
    assert wants_html("text/html")
    assert wants_html("application/json, image/*, Text/HTML;q=0.1")
    assert not wants_html("")
    assert not wants_html("text/*, */*")


async def test_of_long_lists_the_begin_is_read(client: ClientSession) -> None:
    many = [(name, "x;q=0.1," * 900) for name in ("Accept-Language", "Accept-Encoding", "If-None-Match")] * 5
    page = await client.get("/", headers=[("Accept", HTML["Accept"]), ("Accept-Language", "de"), *many])
    assert 'lang="de"' in await page.text()
    last = await client.get("/", headers=[("Accept", "x," * 1000), ("Accept", "text/html")])
    assert await last.json() == {"status": True}


async def test_administrators_add_a_module(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    module = tmp_path / "module.js"
    module.write_text("register();")
    async with serving(PageRoutes("gatewayd", PageRules(), TaskRegistry(), module).routes()) as client:
        text = await (await client.get("/", headers=HTML)).text()
        assert 'data-own-module="true"' in text
        (address,) = re.findall(r'"#own/module":"([^"]+)"', text)
        assert await (await client.get(address)).text() == "register();"
    for broken in (tmp_path / "absent.js", tmp_path, module):
        module.write_bytes(b" " * (MAX_MODULE_BYTES + 1))
        async with serving(PageRoutes("gatewayd", PageRules(), TaskRegistry(), broken).routes()) as client:
            text = await (await client.get("/", headers=HTML)).text()
            assert 'data-own-module="false"' in text
        assert f"the page goes without page_module = {broken}: " in caplog.text
