"""Tests for gatewayd.http.web.documents."""

import json
import re

import pytest

from gatewayd.http.web.assets import PageAssets, read_page
from gatewayd.http.web.documents import PageDocuments, PageVariant, ViewKind, document
from gatewayd.http.web.policies import PageRules, script_hash

ASSETS = PageAssets(read_page())


def documents(name: str = "gatewayd", **rules: object) -> PageDocuments:
    return PageDocuments(ASSETS, name=name, rules=PageRules(**rules))  # type: ignore[arg-type]


def test_html_has_language_direction_theme_and_name_from_the_server() -> None:
    made = documents('Ann & "Bob" <script>')
    text = made.index(PageVariant("ar", "dark", ViewKind.OTHER)).data.decode()
    assert '<html lang="ar" dir="rtl" data-theme="dark" data-execute="false"' in text
    assert '<meta name="color-scheme" content="dark">' in text
    assert "<title>Ann &amp; &quot;Bob&quot; &lt;script&gt;</title>" in text
    assert ASSETS.asset("languages/ar.json").address in text
    assert made.index(PageVariant("ar", "dark", ViewKind.OTHER)) is made.index(
        PageVariant("ar", "dark", ViewKind.OTHER)
    )


def test_the_one_inline_script_is_the_import_map_of_the_policy() -> None:
    made = documents()
    text = made.index(PageVariant("en", "auto", ViewKind.CHAT)).data.decode()
    early, main = (ASSETS.asset(f"app/{name}.js").address for name in ("core/early", "main"))
    assert re.findall(r'<script type="module" src="([^"]+)"', text) == [early, main]
    (inline,) = re.findall(r"<script(?! type=\"module\" src)[^>]*>(.+?)</script>", text, re.DOTALL)
    assert f"'sha256-{script_hash(inline)}'" in made.policy
    assert "#app/main" in json.loads(inline)["imports"]
    assert not re.search(r"\son\w+=|\sstyle=|javascript:", text)


@pytest.mark.parametrize("kind", ViewKind)
def test_the_first_view_is_preloaded_after_the_import_map(kind: ViewKind) -> None:
    text = documents().index(PageVariant("en", "auto", kind)).data.decode()
    preloads = re.findall(r'rel="modulepreload" href="([^"]+)"', text)
    assert ASSETS.asset("app/main.js").address in preloads
    assert ASSETS.asset("vendor/preact/preact.mjs").address in preloads
    assert f'<div class="first-frame for-{kind}" aria-hidden="true"><p>gatewayd</p></div>' in text
    assert text.index("importmap") < text.index("modulepreload")


def test_what_administrators_allow_is_told_to_the_page() -> None:
    made = documents(execute=True, embed_hosts=["a.example.org", "b.example.org"])
    text = made.index(PageVariant("en", "auto", ViewKind.CHAT)).data.decode()
    assert 'data-execute="true" data-embed-hosts="a.example.org b.example.org"' in text


def test_documents_beside_the_views() -> None:
    made = documents("A gateway with a long name")
    manifest = json.loads(made.manifest().data)
    assert manifest["name"] == "A gateway with a long name"
    assert {icon["sizes"] for icon in manifest["icons"]} == {"192x192", "512x512"}
    assert f'"page-{ASSETS.release}"' in made.service_worker().data.decode()
    assert 'lang="de"' in made.offline("de").data.decode()
    assert b"<body></body>" in made.frame().data
    assert document("a", "text/html").digest != document("b", "text/html").digest
    assert made.languages == ("ar", "de", "en")


def test_each_document_is_made_and_encoded_once() -> None:
    made = documents()
    for make in (made.frame, made.picture, made.service_worker, made.manifest):
        assert make() is make()
    assert made.offline("en") is made.offline("en")
    assert made.offline("en") is not made.offline("de")
