"""Tests for gatewayd.http.public.plugins.serializers."""

import asyncio

import pytest

from gatewayd.accounts.records import Role
from gatewayd.http.public.plugins.serializers import PluginSerializer, render_server
from gatewayd.plugins.records import PluginFamily, PluginKind, PluginOrigin, PluginProblem
from gatewayd.plugins.servers.records import ServerType, ToolServer
from tests.fakes.accounts.services import Accounts
from tests.fakes.plugins.memory import Plugged, actor_of, make_registry, plugin_of, readable_by, scope_of
from tests.fakes.plugins.site import make_services

pytestmark = pytest.mark.timeout(30)

ADMIN = actor_of("u-admin", Role.ADMIN)
USER = actor_of("u1")
TOOL = "class Tools:\n    def run(self):\n        return 1\n"
WITH_USER_VALVES = "class Tools:\n    class UserValves:\n        pass\n"
MENTIONING = "class Tools:\n    '''Has no\n    UserValves class.'''\n"
FILTER = "class Filter:\n    toggle = {}\n    def inlet(self, body): return body\n"


def shapes(plugged: Plugged) -> PluginSerializer:
    accounts = Accounts()
    return make_services(plugged.registry, plugged.store, plugged.user_valves, accounts).shapes


@pytest.mark.parametrize(("content", "has_some"), [(WITH_USER_VALVES, True), (MENTIONING, False)])
async def test_user_valves_are_known_without_loading(content: str, has_some: bool) -> None:
    async with make_registry(plugin_of("t", content, is_active=False)) as plugged:
        found = plugged.registry.find(PluginFamily.TOOL, "t")
        for is_loaded in (False, True):
            shown = shapes(plugged).shown(ADMIN, found)
            assert (shown["loaded"], shown["has_user_valves"]) == (is_loaded, has_some)
            assert shown["meta"]["has_user_valves"] is has_some
            await plugged.registry.loaded(PluginFamily.TOOL, "t")


@pytest.mark.parametrize(("toggle", "meta"), [(True, {"toggle": True}), (False, {})])
async def test_a_filter_with_a_toggle_says_so_once_it_is_loaded(toggle: bool, meta: dict[str, bool]) -> None:
    async with make_registry(plugin_of("f", FILTER.format(toggle), is_active=False)) as plugged:
        plain = {"description": "", "manifest": {}}
        found = plugged.registry.find(PluginFamily.FUNCTION, "f")
        assert shapes(plugged).shown(ADMIN, found)["meta"] == plain
        await plugged.registry.loaded(PluginFamily.FUNCTION, "f")
        assert shapes(plugged).shown(ADMIN, found)["meta"] == {**plain, **meta}


async def test_how_a_plugin_does_is_for_who_may_change_it() -> None:
    tool = plugin_of(
        "t",
        TOOL,
        grants=readable_by("u1"),
        origin=PluginOrigin.FILE,
        path="/etc/t.py",
        missing=("open_webui.x",),
        problem=PluginProblem(7, "run", "tool t: ValueError: no"),
        meta={"switches": {"is_active": True}, "more": 1},
        is_active=False,
    )
    async with make_registry(tool) as plugged:
        shown = shapes(plugged).shown(ADMIN, tool)
        details = {
            "path": "/etc/t.py",
            "error": {"at": 7, "doing": "run", "message": "tool t: ValueError: no"},
            "missing": ["open_webui.x"],
            "left_behind": 0,
        }
        assert {name: shown[name] for name in details} == details
        assert (shown["origin"], shown["write_access"]) == ("file", True)
        assert shown["meta"] == {"more": 1, "description": "", "manifest": {}, "has_user_valves": False}
        read = shapes(plugged).shown(USER, tool, has_source=False)
        assert set(shown) - set(read) == {"content", "revision", *details}
        assert read["write_access"] is False


async def test_calls_that_were_left_behind_are_counted() -> None:
    content = """
        import threading
        STARTED, GO = threading.Event(), threading.Event()
        class Tools:
            def run(self):
                STARTED.set()
                GO.wait(20)
    """
    async with make_registry(plugin_of("t", content)) as plugged:
        loaded = await plugged.registry.loaded(PluginFamily.TOOL, "t")
        call = asyncio.ensure_future(loaded.call("run", scope_of(), {}))
        assert await asyncio.to_thread(loaded.value("STARTED").wait, 10)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        try:
            found = plugged.registry.find(PluginFamily.TOOL, "t")
            assert shapes(plugged).shown(ADMIN, found)["left_behind"] == 1
        finally:
            loaded.value("GO").set()


async def test_lists_have_no_sources_and_name_owners_that_are_there() -> None:
    accounts = Accounts()
    owner = await accounts.add_user("owner")
    tools = [plugin_of("a", TOOL, user_id=owner.id), plugin_of("b", TOOL, user_id="gone")]
    async with make_registry(*tools) as plugged:
        services = make_services(plugged.registry, plugged.store, plugged.user_valves, accounts)
        listed = await services.shapes.listed(ADMIN, tools, has_owner=True)
        assert [(one["id"], one["user"] and one["user"]["name"]) for one in listed] == [
            ("a", "owner"),
            ("b", None),
        ]
        assert not any("content" in one for one in listed)
        assert "user" not in (await services.shapes.listed(ADMIN, tools))[0]


async def test_what_is_locked_is_not_loaded() -> None:
    locked = plugin_of("f", FILTER.format(True), locked="cannot read", kind=PluginKind.FILTER)
    async with make_registry(locked) as plugged:
        shown = shapes(plugged).shown(ADMIN, locked)
        assert (shown["loaded"], "toggle" in shown["meta"]) == (False, False)


def test_a_server_has_the_id_that_requests_name_and_no_secret() -> None:
    server = ToolServer(
        "n",
        "Notes",
        "http://x",
        type=ServerType.MCP,
        key="secret",
        headers={"a": "secret"},
        grants=readable_by("u1"),
        updated_at=4,
    )
    shown = render_server(server)
    assert (shown["id"], shown["name"], shown["updated_at"]) == ("server:mcp:n", "Notes", 4)
    assert shown["access_grants"] == [{"principal_type": "user", "principal_id": "u1", "permission": "read"}]
    assert "secret" not in repr(shown)
    assert "http://x" not in repr(shown)
