"""Tests for gatewayd.http.public.docs."""

import hashlib
import re
from importlib.resources import files

from gatewayd.http.public.docs import ASSETS, DocsRoutes
from tests.fakes.http.public_app import serving


async def test_document_and_viewer_are_served_from_the_package() -> None:
    docs = DocsRoutes([], title="gatewayd", version="1.2")
    async with serving(docs.routes()) as client:
        assert (await (await client.get("/openapi.json")).json())["info"]["version"] == "1.2"
        page = await client.get("/docs")
        text = await page.text()
        assert "default-src 'none'" in page.headers["Content-Security-Policy"]
        links = re.findall(r'(?:src|href)="([^"]+)"', text)
        assert len(links) == len(ASSETS) - 1
        for link in links:
            assert link.startswith("/docs/")
            assert (await client.get(link)).status == 200


def test_third_party_files_are_the_ones_that_are_named() -> None:
    folder = files("gatewayd").joinpath("web", "docs")
    listed = re.findall(r"^([0-9a-f]{64})  (\S+)$", folder.joinpath("VERSIONS").read_text(), re.MULTILINE)
    assert {name for _, name in listed} == {"swagger-ui-bundle.js", "swagger-ui.css"}
    for checksum, name in listed:
        assert hashlib.sha256(folder.joinpath(name).read_bytes()).hexdigest() == checksum
