"""Tests for gatewayctl.service.assets."""

import re
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

from gatewayctl.service import assets

ROOT = Path(__file__).parents[3]


def test_units_start_the_programs_of_this_installation() -> None:
    found = {asset.target: asset.content.decode() for asset in assets.own_assets(ROOT, Path("/opt/x/bin"))}
    units = {target.name: text for target, text in found.items() if target.parent == assets.UNITS}
    assert units.keys() == {path.name for path in (ROOT / "systemd").iterdir() if path.is_file()}
    assert "\nExecStart=/opt/x/bin/gatewayd\n" in units["gatewayd.service"]
    assert "\nExecStart=/opt/x/bin/gatewayctl ingest " in units["gatewayd-ingest@.service"]
    assert not [name for name, text in units.items() if "/usr/bin" in text]


def test_every_page_has_its_place() -> None:
    pages = {
        str(asset.target.relative_to(assets.PAGES))
        for asset in assets.own_assets(ROOT, Path("/opt/x/bin"))
        if asset.target.is_relative_to(assets.PAGES)
    }
    assert pages == {f"man{path.suffix[1:]}/{path.name}" for path in (ROOT / "man").iterdir()}


def test_the_pages_are_found_where_pip_puts_them(tmp_path: Path) -> None:
    folder = tmp_path / "share" / "gatewayd"
    for name in ("systemd/sysusers.d/gatewayd.conf", "systemd/tmpfiles.d/gatewayd.conf"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    page = tmp_path / "share" / "man" / "man8" / "gatewayd.8"
    page.parent.mkdir(parents=True)
    page.write_text("the page")
    page.with_name("other.8").touch()
    found = {asset.target: asset.content for asset in assets.own_assets(folder, Path("/opt/x/bin"))}
    assert found[assets.PAGES / "man8" / "gatewayd.8"] == b"the page"
    assert len(found) == 3


def test_the_wheel_has_every_file_that_is_installed() -> None:
    rows = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["data-files"]
    # A package and an image are built from the source tree.
    recipes = (ROOT / "config" / "debian", ROOT / "config" / "image")
    for name in ("config", "systemd"):
        for path in (path for path in (ROOT / name).rglob("*") if path.is_file()):
            if path.is_relative_to(recipes[0]) or path.is_relative_to(recipes[1]):
                continue
            place = path.relative_to(ROOT)
            patterns = rows.get(f"share/gatewayd/{place.parent}", [])
            assert any(fnmatch(str(place), pattern) for pattern in patterns), place


def test_the_files_of_the_wheel_come_before_the_source_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert assets.shipped() == ROOT
    unit = tmp_path / "share" / "gatewayd" / "systemd" / "gatewayd.service"
    unit.parent.mkdir(parents=True)
    unit.touch()
    assert assets.shipped() == tmp_path / "share" / "gatewayd"


def test_a_program_without_its_files_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(assets, "__file__", str(tmp_path / "a" / "b" / "c.py"))
    with pytest.raises(assets.AssetError, match=re.escape(str(tmp_path / "share" / "gatewayd"))):
        assets.shipped()
