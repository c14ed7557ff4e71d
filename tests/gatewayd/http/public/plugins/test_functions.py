"""Tests for gatewayd.http.public.plugins.functions."""

import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gatewayd.plugins.records import PluginFamily, PluginProblem
from gatewayd.plugins.registry import PluginSources
from tests.fakes.accounts.services import check_access
from tests.fakes.plugins.memory import plugin_of
from tests.fakes.plugins.site import FUNCTIONS, serving_plugins

pytestmark = pytest.mark.timeout(60)

FILTER = '''"""
title: Seen
description: Sees
version: 1.0
"""
class Filter:
    toggle = True
    def inlet(self, body):
        return body
'''
PIPE = "class Pipe:\n    def pipe(self, body):\n        return 'hello'\n"


def form(plugin_id: str, content: str = FILTER, **more: Any) -> dict[str, Any]:
    return {"id": plugin_id, "name": plugin_id.title(), "content": content, "meta": {}, **more}


async def test_each_row_refuses_whom_it_must() -> None:
    async with serving_plugins() as site:
        functions = [row for row in site.rows if row.path.startswith(FUNCTIONS)]
        assert await check_access(site.site, functions) == len(functions) == 16


async def test_a_function_is_installed_inactive_shown_and_removed() -> None:
    async with serving_plugins() as site:
        meta = {"description": "Mine", "manifest": {"title": "forged"}, "more": 1}
        made = await site.ok("POST", f"{FUNCTIONS}/create", body=form("Seen", meta=meta))
        assert "content" not in made
        assert made == {
            "id": "seen",
            "user_id": site.admin.id,
            "name": "Seen",
            "type": "filter",
            "meta": {
                "description": "Mine",
                "manifest": {"title": "Seen", "description": "Sees", "version": "1.0"},
                "more": 1,
                "toggle": True,
            },
            "is_active": False,
            "is_global": False,
            "origin": "database",
            "path": None,
            "error": None,
            "missing": [],
            "left_behind": 0,
            "loaded": True,
            "updated_at": made["created_at"],
            "created_at": made["created_at"],
        }
        shown = await site.ok("GET", f"{FUNCTIONS}/id/seen")
        assert shown == {**made, "content": FILTER, "revision": shown["revision"]}
        assert await site.ok("GET", f"{FUNCTIONS}/") == [made]
        assert await site.ok("GET", FUNCTIONS) == [made]
        [owned] = await site.ok("GET", f"{FUNCTIONS}/list")
        assert owned["user"]["email"] == site.admin.email
        assert await site.ok("DELETE", f"{FUNCTIONS}/id/seen/delete") is True
        assert await site.ok("GET", f"{FUNCTIONS}/") == []
        assert await site.refused(404, "GET", f"{FUNCTIONS}/id/seen") == "cannot find function 'seen'"
        await site.refused(404, "DELETE", f"{FUNCTIONS}/id/seen/delete")


async def test_users_see_what_there_is_and_not_how_it_does() -> None:
    problem = PluginProblem(7, "inlet", "filter f: ValueError: a secret")
    async with serving_plugins(plugin_of("f", FILTER, problem=problem)) as site:
        [seen] = await site.ok("GET", f"{FUNCTIONS}/", site.user)
        assert (seen["id"], seen["origin"]) == ("f", "database")
        assert not {"content", "error", "path", "missing", "left_behind"} & set(seen)


async def test_switches_and_changes() -> None:
    async with serving_plugins() as site:
        await site.ok("POST", f"{FUNCTIONS}/create", body=form("f"))
        on = await site.ok("POST", f"{FUNCTIONS}/id/f/toggle")
        assert (on["is_active"], on["is_global"]) == (True, False)
        both = await site.ok("POST", f"{FUNCTIONS}/id/f/toggle/global")
        assert (both["is_active"], both["is_global"]) == (True, True)
        off = await site.ok("POST", f"{FUNCTIONS}/id/f/toggle")
        assert (off["is_active"], off["is_global"]) == (False, True)
        changed = await site.ok("POST", f"{FUNCTIONS}/id/f/update", body=form("other", PIPE, name="New"))
        assert (changed["id"], changed["type"], changed["name"]) == ("f", "pipe", "New")
        assert changed["content"] == PIPE
        renamed = await site.ok("POST", f"{FUNCTIONS}/id/f/update", body={"name": "Again"})
        assert (renamed["name"], renamed["content"]) == ("Again", PIPE)
        await site.ok("POST", f"{FUNCTIONS}/id/f/toggle")
        mine = {"name": "Mine", "revision": changed["revision"]}
        assert "has changed since it was read" in await site.refused(
            409, "POST", f"{FUNCTIONS}/id/f/update", body=mine
        )
        assert (await site.ok("GET", f"{FUNCTIONS}/id/f"))["name"] == "Again"
        mine["revision"] = renamed["revision"]
        assert (await site.ok("POST", f"{FUNCTIONS}/id/f/update", body=mine))["name"] == "Mine"
        for action in ("update", "toggle", "toggle/global"):
            await site.refused(404, "POST", f"{FUNCTIONS}/id/none/{action}", body={})


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        (form("no-name"), 400, "expected letters, digits and underscores"),
        (form(""), 400, "expected letters, digits and underscores"),
        (
            form("x", "class Filter:\n    a = missing\n"),
            400,
            "NameError: name 'missing' is not defined (line 2)",
        ),
        (form("x", "class Filter:\n  def"), 400, "SyntaxError in line 2"),
        (form("x", "import nothing_like_it\nclass Filter: pass"), 400, "nothing_like_it"),
        (form("x", "class Pipeline:\n    pass"), 400, "Pipelines server"),
        (form("x", "class Tools:\n    pass"), 400, "it is a tool and not a function"),
        (form("x", ""), 400, "it has no class"),
        (form("TAKEN"), 409, "the id is taken"),
        ({"name": "x", "content": FILTER}, 422, "cannot accept id"),
        ({"id": "x"}, 422, "cannot accept content"),
        (form("x", meta="text"), 422, "cannot accept meta"),
        (form("x", 7), 422, "cannot accept content"),  # type: ignore[arg-type]
        ([], 422, "cannot accept body"),
    ],
)
async def test_what_cannot_be_installed_is_refused_and_leaves_nothing(
    body: Any, status: int, sentence: str
) -> None:
    async with serving_plugins(plugin_of("taken", FILTER)) as site:
        assert sentence in await site.refused(status, "POST", f"{FUNCTIONS}/create", body=body)
        assert [one["id"] for one in await site.ok("GET", f"{FUNCTIONS}/")] == ["taken"]


async def test_a_change_that_does_not_load_is_refused_and_changes_nothing() -> None:
    async with serving_plugins(plugin_of("f", PIPE)) as site:
        broken = form("f", PIPE + "raise RuntimeError('too early')\n")
        sentence = await site.refused(400, "POST", f"{FUNCTIONS}/id/f/update", body=broken)
        assert "RuntimeError: too early (line 4)" in sentence
        shown = await site.ok("GET", f"{FUNCTIONS}/id/f")
        assert (shown["content"], shown["error"]) == (PIPE, None)


async def test_one_that_does_not_load_says_why_beside_the_others() -> None:
    broken = plugin_of("b", "class Filter:\n    a = missing\n", is_active=False)
    async with serving_plugins(broken, plugin_of("f", FILTER)) as site:
        on = await site.ok("POST", f"{FUNCTIONS}/id/b/toggle")
        assert (on["is_active"], on["loaded"]) == (True, False)
        assert on["error"]["doing"] == "load"
        assert "NameError" in on["error"]["message"]
        await site.plugged.registry.loaded(PluginFamily.FUNCTION, "f")
        listed = {one["id"]: one for one in await site.ok("GET", f"{FUNCTIONS}/")}
        assert listed["b"]["error"] == on["error"]
        assert (listed["f"]["error"], listed["f"]["loaded"]) == (None, True)


async def test_what_comes_from_a_file_is_shown_switched_and_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "seen.py"
    path.write_text(FILTER)
    async with serving_plugins(directory=tmp_path) as site:
        shown = await site.ok("GET", f"{FUNCTIONS}/id/seen")
        assert (shown["origin"], shown["path"], shown["content"]) == ("file", str(path), FILTER)
        off = await site.ok("POST", f"{FUNCTIONS}/id/seen/toggle")
        assert not off["is_active"]
        assert "switches" not in off["meta"]
        where = f"it comes from the file {path}"
        for method, name, body in (
            ("POST", "update", form("seen", PIPE)),
            ("POST", "update", {"name": "x"}),
            ("DELETE", "delete", None),
        ):
            assert where in await site.refused(409, method, f"{FUNCTIONS}/id/seen/{name}", body=body)
        assert where in await site.refused(409, "POST", f"{FUNCTIONS}/create", body=form("seen"))
        assert await site.ok("GET", f"{FUNCTIONS}/export") == []
        assert where in await site.refused(
            409, "POST", f"{FUNCTIONS}/sync", body={"functions": [form("seen")]}
        )


async def test_the_names_that_are_missing_are_told() -> None:
    content = "from open_webui.models.nothing import Nothing\n" + PIPE
    async with serving_plugins() as site:
        made = await site.ok("POST", f"{FUNCTIONS}/create", body=form("p", content))
        assert made["missing"] == ["open_webui.models.nothing.Nothing"]


async def test_without_plugins_lists_are_empty() -> None:
    async with serving_plugins(plugin_of("f", FILTER), sources=PluginSources(is_enabled=False)) as site:
        assert await site.ok("GET", f"{FUNCTIONS}/") == []
        assert await site.ok("GET", f"{FUNCTIONS}/export") == []
        sentence = await site.refused(500, "POST", f"{FUNCTIONS}/create", body=form("g"))
        assert sentence == "cannot use plugins: enable_plugins is off"


async def test_what_is_exported_can_be_synced_again() -> None:
    content = textwrap.dedent("""
        from pydantic import BaseModel
        class Pipe:
            class Valves(BaseModel):
                limit: int = 1
            def pipe(self, body):
                return ""
    """)
    first = plugin_of("a", content, valves={"limit": 5}, is_active=False)
    async with serving_plugins(first, plugin_of("f", FILTER, description="Sees")) as site:
        await site.plugged.registry.loaded(PluginFamily.FUNCTION, "f")
        plain = await site.ok("GET", f"{FUNCTIONS}/export")
        assert [one["content"] for one in plain] == [first.content, FILTER]
        assert not any("valves" in one for one in plain)
        exported = await site.ok("GET", f"{FUNCTIONS}/export?include_valves=true")
        assert [one["valves"] for one in exported] == [{"limit": 5}, {}]
        await site.refused(422, "GET", f"{FUNCTIONS}/export?include_valves=perhaps")
        before = dict(site.plugged.store.rows)
        synced = await site.ok("POST", f"{FUNCTIONS}/sync", body={"functions": exported})
        assert [(one["id"], one["is_active"], one["is_global"]) for one in synced] == [
            ("a", False, False),
            ("f", True, True),
        ]
        now = site.plugged.store.rows
        assert {key: replace(one, updated_at=0) for key, one in now.items()} == {
            key: replace(one, updated_at=0) for key, one in before.items()
        }
        assert await site.ok("POST", f"{FUNCTIONS}/sync", body={"functions": []}) == []
        assert await site.ok("GET", f"{FUNCTIONS}/") == []


async def test_a_sync_without_its_list_is_refused() -> None:
    async with serving_plugins(plugin_of("f", FILTER)) as site:
        assert "functions" in await site.refused(422, "POST", f"{FUNCTIONS}/sync", body={})
        assert len(await site.ok("GET", f"{FUNCTIONS}/")) == 1


async def test_valves_that_cannot_be_read_hide_nothing_and_can_be_set_anew() -> None:
    content = textwrap.dedent("""
        from pydantic import BaseModel
        class Filter:
            class Valves(BaseModel):
                limit: int = 1
            def __init__(self):
                self.valves = self.Valves()
    """)
    sentence = "cannot read the valves of function s: they are encrypted, and there is no secret key"
    locked = plugin_of("s", content, locked=sentence, problem=PluginProblem(3, "load", sentence))
    async with serving_plugins(locked, plugin_of("f", FILTER)) as site:
        await site.plugged.registry.loaded(PluginFamily.FUNCTION, "f")
        listed = {one["id"]: one for one in await site.ok("GET", f"{FUNCTIONS}/")}
        assert listed["f"]["loaded"]
        assert not listed["s"]["loaded"]
        assert listed["s"]["error"] == {"at": 3, "doing": "load", "message": sentence}
        valves = f"{FUNCTIONS}/id/s/valves"
        assert await site.refused(500, "GET", valves) == sentence
        assert sentence in await site.refused(400, "GET", f"{valves}/spec")
        exported = await site.ok("GET", f"{FUNCTIONS}/export?include_valves=true")
        assert [one["valves"] for one in exported] == [{}, None]
        renamed = await site.ok("POST", f"{FUNCTIONS}/id/s/update", body={"name": "Other"})
        assert (renamed["error"]["message"], renamed["loaded"]) == (sentence, False)
        assert site.plugged.store.rows[PluginFamily.FUNCTION, "s"].locked == sentence
        await site.refused(400, "POST", f"{valves}/update", body={"limit": "many"})
        assert await site.ok("POST", f"{valves}/update", body={"limit": 4}) == {"limit": 4}
        shown = await site.ok("GET", f"{FUNCTIONS}/id/s")
        assert (shown["loaded"], shown["error"], shown["name"]) == (True, None, "Other")
        assert await site.ok("GET", valves) == {"limit": 4}
