"""Tests for gatewayd.http.web.modules, and of the vendored libraries."""

import hashlib
import json
import re

import pytest

from gatewayd.http.web.assets import PageAssets, read_page
from gatewayd.http.web.modules import MAIN, STATIC_IMPORT, import_map, import_names, needed_files

SOURCES = read_page()
ASSETS = PageAssets(SOURCES)
NAMES = import_names(ASSETS)
MODULES = [name for name in SOURCES if name.startswith("app/")]
DYNAMIC_IMPORT = re.compile(r"""import\(\s*["']([^"']+)["']""")


def test_names_of_modules_libraries_and_files() -> None:
    assert NAMES["#app/core/api"] == "app/core/api.js"
    assert NAMES["preact/hooks"] == "vendor/preact/hooks.mjs"
    assert NAMES["#language/de"] == "languages/de.json"
    assert NAMES["#icons/sprite.svg"] == "icons/sprite.svg"
    imports = json.loads(import_map(ASSETS, NAMES))["imports"]
    assert imports["#app/core/api"] == ASSETS.asset("app/core/api.js").address


def test_what_a_view_needs_at_once() -> None:
    needed = needed_files(ASSETS, NAMES, [MAIN, "#app/absent"])
    assert needed[0] == "app/main.js"
    assert {"app/core/api.js", "vendor/preact/preact.mjs", "vendor/htm/htm.mjs"} <= set(needed)
    assert len(needed) == len(set(needed))
    assert not any(name.startswith(("vendor/temml", "vendor/highlight", "app/account")) for name in needed)


def test_imports_are_told_from_other_words() -> None:
    source = """/** import the "#app/comment" of others */
import { a,
  b } from "#app/a";
export { c } from '#app/c';
import "#app/only";var x=1;import{d}from"preact/hooks";export{e}from"@preact/signals";
import * as all from "marked";
const key = t("sidebar.import"), other = "from", y = import("#app/later");
menu({ label: t("sidebar.import") && { label: t("sidebar.export") } });
"""
    assert STATIC_IMPORT.findall(source) == [
        *("#app/a", "#app/c", "#app/only", "preact/hooks", "@preact/signals", "marked")
    ]
    scripts = [file for file in NAMES.values() if file.endswith(("js", "mjs"))]
    everywhere = {name for file in scripts for name in STATIC_IMPORT.findall(ASSETS.text(file))}
    assert {"preact", "preact/hooks", "@preact/signals-core", "#app/core/html"} <= everywhere


@pytest.mark.parametrize("module", MODULES)
def test_modules_import_what_exists_by_name(module: str) -> None:
    text = SOURCES[module].decode()
    for name in [*STATIC_IMPORT.findall(text), *DYNAMIC_IMPORT.findall(text)]:
        assert name in {*NAMES, "#own/module"}, f"{module} imports {name}"


def test_vendored_files_are_the_published_ones() -> None:
    packages = json.loads(SOURCES["vendor/manifest.json"])["packages"]
    listed = {}
    for package in packages:
        assert {"name", "version", "licence", "files"} == set(package)
        assert any("LICENSE" in row["file"] for row in package["files"]), package["name"]
        for row in package["files"]:
            listed[f"vendor/{row['file']}"] = row["sha256"]
    present = {name for name in SOURCES if name.startswith("vendor/")} - {"vendor/manifest.json"}
    assert set(listed) == present
    for name, digest in listed.items():
        assert hashlib.sha256(SOURCES[name]).hexdigest() == digest, name
