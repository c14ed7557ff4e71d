"""Tests for gatewayd.http.web.assets."""

import asyncio
import gzip
import hashlib

import pytest

from gatewayd.http.responses.content_codings import encode
from gatewayd.http.web.assets import (
    COMMENT,
    AssetEncoder,
    PageAssets,
    make_asset,
    ordered,
    read_page,
    split_texts,
    suffix_of,
    without_comments,
)
from gatewayd.tasks import TaskRegistry

SOURCES = {
    "app/main.js": b"start();",
    "styles/chat.css": b"b {}",
    "styles/base.css": b"a {}",
    "icons/a.png": b"picture",
    "index.html": b"<p>",
    "service-worker.js": b"work();",
    "vendor/x/LICENSE": b"text",
}


def test_what_is_served_and_what_is_a_template() -> None:
    assets = PageAssets(SOURCES)
    assert [asset.name for asset in assets.all] == ["app/main.js", "icons/a.png", "styles/page.css"]
    assert assets.asset("styles/page.css").data == b"a {}\nb {}"
    assert assets.text("index.html") == "<p>"
    assert assets.names("styles") == ["styles/base.css", "styles/chat.css"]


def test_addresses_have_the_hash_of_the_content() -> None:
    assets = PageAssets(SOURCES)
    asset = assets.asset("app/main.js")
    digest = hashlib.sha256(b"start();").hexdigest()[:12]
    assert asset.address == f"/static/{digest}/app/main.js"
    assert assets.find(digest, "app/main.js") is asset
    for other in (("0" * 12, "app/main.js"), (digest, "app/other.js"), (digest, "../index.html"), ("", "")):
        assert assets.find(*other) is None


def test_a_changed_file_is_another_release() -> None:
    changed = PageAssets({**SOURCES, "app/main.js": b"start(1);"})
    assert changed.release != PageAssets(SOURCES).release
    assert changed.asset("icons/a.png").address == PageAssets(SOURCES).asset("icons/a.png").address


async def test_a_file_is_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asset, encoder = make_asset("a.js", b"x" * 100), AssetEncoder(TaskRegistry())
    first, second = await asyncio.gather(*(encoder.content(asset, "gzip") for _ in range(2)))
    assert gzip.decompress(first) == asset.data
    assert second is first
    monkeypatch.setattr(asyncio, "to_thread", None)
    assert await encoder.content(asset, "gzip") is first
    assert await encoder.content(asset, "identity") is asset.data
    assert await encoder.content(make_asset("a.png", b"picture"), "br") == b"picture"


async def test_the_first_reader_does_not_wait_for_the_best_coding() -> None:
    tasks, data = TaskRegistry(), b"".join(b"const value%d = %d;" % (n, n * n) for n in range(500))
    encoder, assets = AssetEncoder(tasks, pause=0.01), [make_asset(f"{n}.js", data) for n in range(2)]
    quick = [await encoder.content(asset, "br") for asset in assets]
    assert quick[0] == encode(data, "br", is_quick=True)
    while any(asset.encoded["br"] in quick for asset in assets):
        await asyncio.sleep(0.005)
    assert [await encoder.content(asset, "br") for asset in assets] == [encode(data, "br")] * 2
    assert len(encode(data, "br")) < len(quick[0])
    await tasks.close()


def test_texts_of_later_views_are_a_file_of_their_own() -> None:
    words = b'{"common": {"a": "\xc3\xa4"}, "admin": {"b": "c"}, "errors": {}}'
    assert split_texts("languages/de.json", words) == {
        "languages/de.json": '{"common":{"a":"ä"},"errors":{}}'.encode(),
        "languages/de.more.json": b'{"admin":{"b":"c"}}',
    }
    assert [asset.name for asset in PageAssets({"languages/de.json": words}).all] == [
        *("languages/de.json", "languages/de.more.json", "styles/page.css")
    ]


def test_own_code_is_served_without_comments_and_with_its_lines() -> None:
    source = b"/**\n * What it holds.\n */\nstart(); // here\n  // alone\nend(/* what */ 1);\n/* a */\n"
    served = b"\n\n\nstart(); // here\n\nend(/* what */ 1);\n\n"
    assert without_comments(source) == served
    sheet = b"/* of\n all */\na {}"
    assets = PageAssets(
        {"app/a.js": source, "own/module.js": source, "vendor/a.js": source, "styles/a.css": sheet}
    )
    assert assets.asset("app/a.js").data == served
    assert assets.asset("styles/page.css").data == b"\n\na {}"
    assert [assets.asset(name).data for name in ("own/module.js", "vendor/a.js")] == [source, source]


def test_comments_of_the_page_stand_between_statements_and_not_in_templates() -> None:
    for name, data in read_page().items():
        if name.startswith("app/"):
            text = data.decode()
            for found in COMMENT.finditer(text):
                before = COMMENT.sub("", text[: found.start()]).rstrip()
                assert not before or before[-1] in ";{}(,[", (name, found[0])


def test_order_and_suffixes() -> None:
    assert ordered(["styles/a.css", "styles/base.css", "styles/b.css"])[0] == "styles/base.css"
    assert [suffix_of(name) for name in ("a.min.js", "LICENSE")] == [".js", ""]


def test_the_page_of_the_package_is_read() -> None:
    page = read_page()
    assert b"importmap" in page["index.html"]
    assert "vendor/manifest.json" in page
