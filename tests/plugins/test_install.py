"""Each plugin of the corpus is installed over HTTP as it is, and removed again."""

import json
from pathlib import Path

import pytest

from tests.fakes.daemons.plugin_site import CORPUS, Site

FILES = sorted(CORPUS.glob("*.py"))


def family_of(path: Path) -> str:
    return "tools" if "\nclass Tools" in path.read_text() else "functions"


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_a_plugin_is_installed_and_removed(site: Site, path: Path) -> None:
    family, plugin_id = family_of(path), f"my_{path.stem}"
    form = {"id": plugin_id, "name": path.stem, "content": path.read_text(), "meta": {"description": "d"}}
    made = site.good("POST", f"/api/v1/{family}/create", form)
    assert made["id"] == plugin_id
    assert made["meta"]["manifest"]["author"] == "gateway tests"
    if family == "functions":
        assert f"class {made['type'].capitalize()}" in form["content"]
        assert (made["is_active"], made["is_global"]) == (False, False)
        assert site.good("POST", f"/api/v1/functions/id/{plugin_id}/toggle")["is_active"] is True
    else:
        assert made["specs"]
    assert site.good("GET", f"/api/v1/{family}/id/{plugin_id}")["content"] == form["content"]
    assert site.good("DELETE", f"/api/v1/{family}/id/{plugin_id}/delete") is True
    assert site.call("GET", f"/api/v1/{family}/id/{plugin_id}")[0] == 404


def test_all_are_listed_with_what_they_are(site: Site) -> None:
    listed = {one["id"]: one for one in site.good("GET", "/api/v1/functions/")}
    tools = {one["id"]: one for one in site.good("GET", "/api/v1/tools/")}
    for path in FILES:
        found = (tools if family_of(path) == "tools" else listed)[path.stem]
        assert found["meta"]["manifest"]["title"] == found["name"]
        assert "content" not in found or family_of(path) == "tools"


def test_missing_names_are_told(site: Site) -> None:
    shown = site.good("GET", "/api/v1/functions/id/probing")
    assert shown["missing"] == ["open_webui.models.channels_of_tomorrow.Channels"]


def test_a_file_is_not_changed_over_http(site: Site) -> None:
    form = {"id": "echo", "name": "Echo", "content": "class Pipe: pass", "meta": {"description": ""}}
    status, reply = site.call("POST", "/api/v1/functions/id/echo/update", form)
    assert status == 409
    assert "echo.py" in reply["detail"]
    assert json.loads(site.say("echo", "x"))["model"] == "echo"
