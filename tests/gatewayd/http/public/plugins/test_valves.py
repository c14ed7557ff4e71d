"""Tests for gatewayd.http.public.plugins.valves, over both families."""

from typing import Any

import pytest

from gatewayd.accounts.records import Role
from gatewayd.catalog.records import Grant
from gatewayd.plugins.records import PluginFamily
from tests.fakes.plugins.memory import plugin_of, scope_of
from tests.fakes.plugins.site import FUNCTIONS, TOOLS, OtherNode, serving_plugins

pytestmark = pytest.mark.timeout(60)

BODY = """
    class Valves(BaseModel):
        limit: int = Field(default=1, ge=0)
        color: str = Field(default="", json_schema_extra={"input": {"type": "select", "options": "colors"}})

        @classmethod
        def colors(cls, __user__=None):
            return ["red", __user__["role"]]

    class UserValves(BaseModel):
        wish: str = "none"

    def __init__(self):
        self.valves = self.Valves()
"""
HEAD = "from pydantic import BaseModel, Field\n"
FILTER = f"{HEAD}class Filter:{BODY}\n    def inlet(self, body, __user__): return self.valves.limit\n"
TOOL = f"{HEAD}class Tools:{BODY}\n    def limit(self): return self.valves.limit\n"
EVERYBODY = (Grant("user", "*", "read"),)

each_family = pytest.mark.parametrize(
    ("prefix", "content"), [(FUNCTIONS, FILTER), (TOOLS, TOOL)], ids=["function", "tool"]
)


def path_of(prefix: str) -> str:
    return f"{prefix}/id/P/valves"


@each_family
async def test_valves_are_shown_described_and_set(prefix: str, content: str) -> None:
    async with serving_plugins(plugin_of("p", content)) as site:
        path = path_of(prefix)
        assert await site.ok("GET", path) == {}
        spec = await site.ok("GET", f"{path}/spec")
        assert spec["properties"]["limit"]["minimum"] == 0
        assert spec["properties"]["color"]["input"]["options"] == ["red", Role.ADMIN.value]
        assert await site.ok("POST", f"{path}/update", body={"limit": 3}) == {"limit": 3}
        assert await site.ok("POST", f"{path}/update", body={"color": "red"}) == {"limit": 3, "color": "red"}
        assert await site.ok("GET", path) == {"limit": 3, "color": "red"}
        assert await site.ok("POST", f"{path}/update", body={"limit": None}) == {"color": "red"}


@each_family
async def test_what_another_node_has_made_is_shown_at_once(prefix: str, content: str) -> None:
    made = plugin_of("p", content)
    for path in ("", "/", "/list", "/export", "/id/p", "/id/p/valves", "/id/p/valves/spec"):
        async with serving_plugins(node=OtherNode([made])) as site:
            shown = await site.ok("GET", f"{prefix}{path}" if path else f"{prefix}/id/p/valves/user/spec")
            ids = {one["id"] for one in shown} if isinstance(shown, list) else {"p"}
            assert ids == {"p"}, path


async def test_what_is_set_is_in_effect_at_once() -> None:
    async with serving_plugins(plugin_of("p", FILTER)) as site:
        loaded = await site.plugged.registry.loaded(PluginFamily.FUNCTION, "p")
        assert await loaded.call("inlet", scope_of(), {"body": {}}) == 1
        await site.ok("POST", f"{path_of(FUNCTIONS)}/update", body={"limit": 9})
        assert await loaded.call("inlet", scope_of(), {"body": {}}) == 9


@each_family
@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"limit": "many"}, "'limit'"),
        ({"limit": -1}, "'limit'"),
        ([1], "expected a JSON object"),
        ("text", "expected a JSON object"),
    ],
)
async def test_what_does_not_fit_is_refused_by_name(
    prefix: str, content: str, values: Any, sentence: str
) -> None:
    async with serving_plugins(plugin_of("p", content, valves={"limit": 2})) as site:
        path = path_of(prefix)
        assert sentence in await site.refused(400, "POST", f"{path}/update", body=values)
        assert await site.ok("GET", path) == {"limit": 2}


@each_family
async def test_each_user_has_values_of_ones_own(prefix: str, content: str) -> None:
    async with serving_plugins(plugin_of("p", content, grants=EVERYBODY)) as site:
        path = f"{path_of(prefix)}/user"
        assert await site.ok("GET", path, site.user) == {}
        spec = await site.ok("GET", f"{path}/spec", site.user)
        assert spec["properties"]["wish"]["default"] == "none"
        assert await site.ok("POST", f"{path}/update", site.user, {"wish": "peace"}) == {"wish": "peace"}
        assert await site.ok("GET", path, site.user) == {"wish": "peace"}
        assert await site.ok("GET", path, site.other) == {}
        assert "'wish'" in await site.refused(400, "POST", f"{path}/update", site.user, {"wish": []})
        assert await site.ok("POST", f"{path}/update", site.user, {"wish": None}) == {}
        # What is the administrators' stays theirs.
        await site.refused(403, "GET", path_of(prefix), site.user)
        await site.refused(403, "POST", f"{path_of(prefix)}/update", site.user, {"limit": 7})


@each_family
async def test_a_plugin_without_valves_has_no_description_and_takes_none(prefix: str, content: str) -> None:
    bare = f"class {'Filter' if prefix == FUNCTIONS else 'Tools'}:\n    pass\n"
    async with serving_plugins(plugin_of("p", bare)) as site:
        path = path_of(prefix)
        for name in ("", "/user"):
            assert await site.ok("GET", f"{path}{name}/spec") is None
            assert "it has none" in await site.refused(400, "POST", f"{path}{name}/update", body={"a": 1})


@each_family
async def test_one_that_does_not_load_says_so_itself(prefix: str, content: str) -> None:
    async with serving_plugins(plugin_of("p", f"{content}\nraise RuntimeError('not yet')\n")) as site:
        path = path_of(prefix)
        for method, name in (
            ("GET", "spec"),
            ("POST", "update"),
            ("GET", "user/spec"),
            ("POST", "user/update"),
        ):
            body = {} if method == "POST" else None
            sentence = await site.refused(400, method, f"{path}/{name}", body=body)
            assert "RuntimeError: not yet" in sentence
        assert await site.ok("GET", path) == {}


@each_family
async def test_unknown_ones_are_not_found(prefix: str, content: str) -> None:
    async with serving_plugins() as site:
        path = f"{prefix}/id/none/valves"
        for name in ("", "/spec", "/user", "/user/spec"):
            await site.refused(404, "GET", f"{path}{name}")
        for name in ("/update", "/user/update"):
            await site.refused(404, "POST", f"{path}{name}", body={})
