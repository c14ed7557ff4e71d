"""Tests for gatewayd.http.public.plugins.tools."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from gatewayd.accounts.records import NewGroup, User
from gatewayd.catalog.records import Grant
from gatewayd.plugins.records import PluginFamily
from gatewayd.plugins.servers.records import ServerType, ToolServer
from tests.fakes.accounts.services import check_access
from tests.fakes.http.public_app import bearer
from tests.fakes.plugins.memory import plugin_of, readable_by
from tests.fakes.plugins.site import TOOLS, PluginSite, serving_plugins

pytestmark = pytest.mark.timeout(60)

TOOL = '''
class Tools:
    def add(self, a: int, b: int = 1) -> int:
        """Adds.

        :param a: the first
        """
        return a + b
'''
SPEC = {
    "name": "add",
    "description": "Adds.",
    "parameters": {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "description": "the first"},
            "b": {"type": "integer", "default": 1},
        },
        "required": ["a"],
    },
}
WITH_VALVES = f"""from pydantic import BaseModel
{TOOL}
    class Valves(BaseModel):
        limit: int = 1
"""
PUBLIC = {"principal_type": "user", "principal_id": "*", "permission": "read"}


def form(plugin_id: str, content: str = TOOL, **more: Any) -> dict[str, Any]:
    return {"id": plugin_id, "name": plugin_id.title(), "content": content, "meta": {}, **more}


async def permit(site: PluginSite, who: User, *leaves: str) -> None:
    """Give an account permissions of the workspace."""
    group, _ = await site.site.accounts.groups.ensure(
        NewGroup(f"may {leaves}", permissions={"workspace": dict.fromkeys(leaves, True)})
    )
    await site.site.accounts.groups.add_members(group.id, [who.id])


async def test_each_row_refuses_whom_it_must() -> None:
    async with serving_plugins() as site:
        tools = [row for row in site.rows if row.path.startswith(TOOLS)]
        assert await check_access(site.site, tools) == len(tools) == 14


async def test_an_administrator_installs_a_tool() -> None:
    async with serving_plugins() as site:
        made = await site.ok("POST", f"{TOOLS}/create", body=form("Adder", meta={"description": "Sums"}))
        assert made == {
            "id": "adder",
            "user_id": site.admin.id,
            "name": "Adder",
            "meta": {"description": "Sums", "manifest": {}, "has_user_valves": False},
            "specs": [SPEC],
            "access_grants": [],
            "is_active": True,
            "has_user_valves": False,
            "write_access": True,
            "origin": "database",
            "path": None,
            "error": None,
            "missing": [],
            "left_behind": 0,
            "loaded": True,
            "updated_at": made["created_at"],
            "created_at": made["created_at"],
        }
        shown = await site.ok("GET", f"{TOOLS}/id/adder")
        assert shown == {**made, "content": TOOL, "revision": shown["revision"]}
        assert await site.ok("GET", f"{TOOLS}/") == [made]
        [owned] = await site.ok("GET", f"{TOOLS}/list")
        assert owned["user"]["id"] == site.admin.id
        changed = await site.ok(
            "POST", f"{TOOLS}/id/adder/update", body=form("adder", TOOL.replace("add", "sum"))
        )
        assert [spec["name"] for spec in changed["specs"]] == ["sum"]
        assert await site.ok("DELETE", f"{TOOLS}/id/adder/delete") is True
        assert await site.refused(404, "GET", f"{TOOLS}/id/adder") == "cannot find tool 'adder'"


async def test_users_install_tools_with_the_permission() -> None:
    async with serving_plugins() as site:
        sentence = await site.refused(403, "POST", f"{TOOLS}/create", site.user, form("mine"))
        assert "workspace.tools is missing" in sentence
        await permit(site, site.user, "tools")
        made = await site.ok("POST", f"{TOOLS}/create", site.user, form("mine", access_grants=[PUBLIC]))
        # Who may not share with everybody does not.
        assert (made["user_id"], made["access_grants"], made["write_access"]) == (site.user.id, [], True)
        assert await site.ok("GET", f"{TOOLS}/", site.other) == []
        await site.ok("POST", f"{TOOLS}/id/mine/update", site.user, {"name": "New"})
        assert await site.ok("DELETE", f"{TOOLS}/id/mine/delete", site.user) is True


async def test_others_do_not_know_a_tool_that_is_not_theirs() -> None:
    async with serving_plugins(plugin_of("t", TOOL)) as site:
        unknown = [
            await site.refused(404, method, f"{TOOLS}/id/{name}{path}", site.user, body)
            for name in ("t", "u")
            for method, path, body in (
                ("GET", "", None),
                ("POST", "/update", {"name": "x"}),
                ("POST", "/access/update", {"access_grants": [PUBLIC]}),
                ("DELETE", "/delete", None),
                ("GET", "/valves", None),
                ("GET", "/valves/spec", None),
                ("POST", "/valves/update", {}),
                ("GET", "/valves/user", None),
                ("GET", "/valves/user/spec", None),
                ("POST", "/valves/user/update", {}),
            )
        ]
        assert {sentence.replace("'u'", "'t'") for sentence in unknown} == {"cannot find tool 't'"}


async def test_a_reader_uses_a_tool_and_does_not_change_it() -> None:
    async with serving_plugins(plugin_of("t", TOOL)) as site:
        grant = {"principal_type": "user", "principal_id": site.user.id, "permission": "read"}
        shared = await site.ok("POST", f"{TOOLS}/id/t/access/update", body={"access_grants": [grant]})
        assert shared["access_grants"] == [grant]
        [seen] = await site.ok("GET", f"{TOOLS}/", site.user)
        assert (seen["id"], seen["write_access"]) == ("t", False)
        assert not {"content", "error", "path", "missing"} & set(seen)
        assert (await site.ok("GET", f"{TOOLS}/id/t", site.user))["content"] == TOOL.lstrip("\n")
        assert await site.ok("GET", f"{TOOLS}/", site.other) == []
        for method, path, body in (
            ("POST", "update", {"name": "x"}),
            ("POST", "access/update", {"access_grants": []}),
            ("DELETE", "delete", None),
            ("GET", "valves", None),
            ("GET", "valves/spec", None),
            ("POST", "valves/update", {}),
        ):
            await site.refused(403, method, f"{TOOLS}/id/t/{path}", site.user, body)
        writer = {**grant, "permission": "write"}
        await site.ok("POST", f"{TOOLS}/id/t/access/update", body={"access_grants": [writer]})
        changed = await site.ok("POST", f"{TOOLS}/id/t/update", site.user, {"name": "Theirs"})
        assert (changed["name"], changed["write_access"]) == ("Theirs", True)


async def test_who_lost_the_permission_changes_no_source_and_makes_no_writers() -> None:
    async with serving_plugins() as site:
        await permit(site, site.user, "tools")
        await site.ok("POST", f"{TOOLS}/create", site.user, form("mine", WITH_VALVES))
        writer = {"principal_type": "user", "principal_id": site.other.id, "permission": "write"}
        shared = await site.ok(
            "POST", f"{TOOLS}/id/mine/access/update", site.user, {"access_grants": [writer]}
        )
        assert shared["access_grants"] == [writer]
        group = (await site.site.accounts.groups.list())[0]
        await site.site.accounts.groups.remove_members(group.id, [site.user.id])
        other_source = {"content": WITH_VALVES.replace("add", "sum")}
        # The owner of yesterday, and who holds a write grant of that time.
        for who in (site.user, site.other):
            sentence = await site.refused(403, "POST", f"{TOOLS}/id/mine/update", who, other_source)
            assert "workspace.tools is missing" in sentence
            everybody = [writer, {**PUBLIC, "permission": "write"}, {**writer, "principal_type": "group"}]
            for path in ("access/update", "update"):
                kept = await site.ok("POST", f"{TOOLS}/id/mine/{path}", who, {"access_grants": everybody})
                assert kept["access_grants"] == [writer]
            named = await site.ok(
                "POST", f"{TOOLS}/id/mine/update", who, {"name": "N", "content": WITH_VALVES}
            )
            assert (named["name"], named["specs"]) == ("N", [SPEC])
            await site.ok("POST", f"{TOOLS}/id/mine/valves/update", who, {"limit": 2})
        await site.site.accounts.groups.add_members(group.id, [site.other.id])
        await site.ok("POST", f"{TOOLS}/id/mine/update", site.other, other_source)


async def test_a_permission_that_goes_while_the_body_comes_is_gone() -> None:
    async with serving_plugins() as site:
        await permit(site, site.user, "tools")
        [group] = await site.site.accounts.groups.list()
        seen = site.site.accounts.authenticator._seen_users
        assert not seen

        async def slowly() -> AsyncIterator[bytes]:
            yield b'{"id": "late", "name": "x", "meta": {}, '
            while site.user.id not in seen:
                await asyncio.sleep(0)
            await site.site.accounts.groups.remove_members(group.id, [site.user.id])
            yield orjson.dumps({"content": TOOL})[1:]

        headers = bearer(await site.site.accounts.session(site.user)) | {"Content-Type": "application/json"}
        sent = site.site.client.request("POST", f"{TOOLS}/create", headers=headers, data=slowly())
        async with sent as reply:
            assert (reply.status, "workspace.tools" in await reply.text()) == (403, True)
        assert await site.ok("GET", f"{TOOLS}/") == []


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ({"access_grants": "all"}, 400),
        ({"access_grants": [{"principal_type": "robot", "principal_id": "x", "permission": "read"}]}, 400),
        ({"access_grants": [{"principal_id": "x"}]}, 400),
    ],
)
async def test_access_lists_are_checked(body: Any, status: int) -> None:
    async with serving_plugins(plugin_of("t", TOOL, grants=readable_by("u9"))) as site:
        await site.refused(status, "POST", f"{TOOLS}/id/t/access/update", body=body)
        assert site.plugged.store.rows[PluginFamily.TOOL, "t"].grants == (Grant("user", "u9", "read"),)


async def test_a_tool_that_is_off_is_listed_for_who_may_switch_it_on() -> None:
    shared = plugin_of("t", TOOL, is_active=False, grants=(Grant("user", "*", "read"),))
    async with serving_plugins(shared) as site:
        assert [one["is_active"] for one in await site.ok("GET", f"{TOOLS}/")] == [False]
        assert await site.ok("GET", f"{TOOLS}/", site.user) == []


async def test_export_needs_its_permission() -> None:
    everybody = (Grant("user", "*", "read"),)
    async with serving_plugins(plugin_of("t", TOOL, grants=everybody), plugin_of("u", TOOL)) as site:
        assert [one["id"] for one in await site.ok("GET", f"{TOOLS}/export")] == ["t", "u"]
        assert "tools_export" in await site.refused(403, "GET", f"{TOOLS}/export", site.user)
        await permit(site, site.user, "tools_export")
        [exported] = await site.ok("GET", f"{TOOLS}/export", site.user)
        assert (exported["id"], exported["content"]) == ("t", TOOL.lstrip("\n"))


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        (form("1x"), 400, "expected letters, digits and underscores"),
        (
            form("x", "class Tools:\n    a = missing\n"),
            400,
            "NameError: name 'missing' is not defined (line 2)",
        ),
        (form("x", "class Filter: pass"), 400, "it is a function and not a tool"),
        (form("t"), 409, "the id is taken"),
        (form("x", access_grants=7), 400, "access_grants"),
        ({"id": "x"}, 422, "content"),
    ],
)
async def test_what_cannot_be_installed_is_refused(body: Any, status: int, sentence: str) -> None:
    async with serving_plugins(plugin_of("t", TOOL)) as site:
        assert sentence in await site.refused(status, "POST", f"{TOOLS}/create", body=body)
        assert len(await site.ok("GET", f"{TOOLS}/")) == 1


async def test_servers_are_listed_behind_the_tools() -> None:
    servers = [
        ToolServer("maps", "Maps", "http://127.0.0.1:1", description="Ways", key="secret", created_at=3),
        ToolServer("notes", "Notes", "http://127.0.0.1:2", type=ServerType.MCP),
    ]
    async with serving_plugins(plugin_of("t", TOOL), servers=servers) as site:
        listed = await site.ok("GET", f"{TOOLS}/")
        assert [one["id"] for one in listed] == ["t", "server:maps", "server:mcp:notes"]
        assert listed[1] == {
            "id": "server:maps",
            "user_id": "server:maps",
            "name": "Maps",
            "meta": {"description": "Ways"},
            "access_grants": [],
            "updated_at": 0,
            "created_at": 3,
            "has_user_valves": False,
            "write_access": False,
        }
        assert [one["id"] for one in await site.ok("GET", f"{TOOLS}/list")] == ["t"]
