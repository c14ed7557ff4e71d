"""Tests for gatewayd.upstream.tools.servers: real servers, found by name and called by a model."""

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from gatewayd.accounts.records import Role
from gatewayd.catalog.records import Grant
from gatewayd.catalog.service import Catalog, CatalogOptions
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.pipeline.pipeline import NoFilters, Pipeline
from gatewayd.pipeline.records import ChatAnswer, ChatRequest
from gatewayd.pipeline.tasks.models import TaskModels
from gatewayd.pipeline.tools.calls import ToolEffects
from gatewayd.pipeline.tools.plugin_tools import PluginTools
from gatewayd.pipeline.tools.toolbox import PluginToolBox
from gatewayd.plugins.servers.records import ServerOrigin, ToolServer
from gatewayd.tasks import TaskRegistry
from gatewayd.upstream.tools.identity import IdentityHeaders
from gatewayd.upstream.tools.servers import ServerName, ServerTools, parse_tool_id
from tests.fakes.documents.no_documents import NoAttachments
from tests.fakes.http.tool_servers import FakeMcp, api, make_scope, mcp_server, serving
from tests.fakes.providers.models import FakeRecords, make_actor, make_model
from tests.fakes.providers.tool_calls import FakeEvents, FakeRegistry, Say, ScriptedModel, make_call

ADMIN = make_actor()
USER = make_actor("u2", Role.USER)
EVERYBODY = (Grant("user", "*", "read"),)


@pytest.fixture(scope="module")
def notes() -> Iterator[FakeMcp]:
    with mcp_server() as server:
        yield server


async def names(servers: ServerTools, *asked: str, actor: Any = ADMIN) -> list[str]:
    return [tool.name for tool in await servers.tools(asked, actor, make_scope(actor))]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("server:a", ServerName("a")),
        ("server:mcp:a", ServerName("a", True)),
        ("server:a|f, g,", ServerName("a", False, ("f", "g"))),
        ("server:mcp:a|f", ServerName("a", True, ("f",))),
        ("server:", ServerName("")),
        ("a", None),
    ],
)
def test_names_of_servers(name: str, expected: ServerName | None) -> None:
    assert parse_tool_id(name) == expected


async def test_tools_are_found_by_server_and_function(notes: FakeMcp) -> None:
    async with api() as fake, serving(fake.server(), notes.server()) as servers:
        assert len(await names(servers, "server:tickets")) == 11
        assert await names(servers, "server:tickets|get_ticket,none") == ["get_ticket"]
        assert await names(servers, "server:mcp:notes|add,notes_fail") == ["notes_add", "notes_fail"]
        both = await names(servers, "server:tickets|read_text", "server:mcp:notes|add")
        assert both == ["read_text", "notes_add"]
        # The kind is part of the name.
        assert await names(servers, "server:notes", "server:mcp:tickets", "server:none", "tickets") == []


async def test_access_is_by_grants() -> None:
    async with api() as fake:
        shared = fake.server("shared", grants=EVERYBODY)
        off = fake.server("off", grants=EVERYBODY, is_active=False)
        fixed = fake.server("fixed", origin=ServerOrigin.SETTINGS)
        async with serving(fake.server("private"), shared, off, configured=[fixed]) as servers:
            for server_id, user, admin in (
                ("private", 0, 11),
                ("shared", 11, 11),
                ("off", 0, 0),
                ("fixed", 0, 11),
            ):
                assert len(await names(servers, f"server:{server_id}", actor=USER)) == user
                assert len(await names(servers, f"server:{server_id}")) == admin


async def test_checks_say_what_is_offered(notes: FakeMcp) -> None:
    async with api() as fake, serving() as servers:
        offer = await servers.check(fake.server(functions=("read_text",)), ADMIN)
        assert (offer.title, offer.version) == ("Tickets", "7")
        assert [spec["name"] for spec in offer.specs] == ["read_text"]
        offer = await servers.check(notes.server(functions=("add",)), ADMIN)
        assert [spec["name"] for spec in offer.specs] == ["notes_add"]
        with pytest.raises(GatewayError, match="'down'") as caught:
            await servers.check(ToolServer("down", "down", "http://127.0.0.1:1"), ADMIN)
        assert caught.value.kind is ErrorKind.UPSTREAM_UNREACHABLE


class World:
    """A model that calls tools of servers in a stored chat."""

    def __init__(self, servers: ServerTools, *answers: Say) -> None:
        self.source = ScriptedModel(models=[make_model("m")], answers=answers)
        self.catalog = Catalog(FakeRecords(), TaskRegistry(), CatalogOptions(bypass_all=True))
        self.catalog.use([self.source])
        self.events = FakeEvents()
        tools = PluginTools(FakeRegistry())
        self.kept: list[Any] = []
        effects, models = ToolEffects(self.events, self.keep), TaskModels(self.catalog, NoFilters())
        self.box = PluginToolBox(tools, servers, self.catalog, effects, models)

    async def keep(self, actor: Any, media: Any) -> dict[str, Any]:
        self.kept.append(media)
        return {"type": media.type, "url": "/f1"}

    async def run(self, *tool_ids: str) -> ChatAnswer:
        await self.catalog.list(ADMIN)
        body: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Please."}]}
        options = {"tool_ids": list(tool_ids), "chat_id": "c1", "id": "m1"}
        self.request = ChatRequest("m", body, stream=False, options=options, request_id="r1")
        pipeline = Pipeline(self.catalog, NoFilters(), NoAttachments(), self.box)
        return await pipeline.run(self.request, ADMIN)

    def said(self) -> list[str]:
        """Return what the model was told that the tools returned."""
        return [one["content"] for one in self.source.asked[-1]["messages"] if one["role"] == "tool"]


async def test_a_model_calls_tools_of_both_kinds(notes: FakeMcp) -> None:
    calls = [
        make_call("get_ticket", {"ticket": "7", "nonsense": 1}, "a"),
        make_call("show_page", {}, "b"),
        make_call("break_down", {}, "c"),
        make_call("notes_add", {"a": "1", "b": 2}, "d"),
        make_call("notes_draw", {}, "e"),
        make_call("notes_fail", {}, "f"),
    ]
    async with api() as fake, serving(fake.server(), notes.server(), identity=IdentityHeaders()) as servers:
        world = World(servers, Say("", calls), Say("Done."))
        answer = await world.run("server:tickets", "server:mcp:notes")
        assert fake.seen[0].headers["X-Service-Chat-Id"] == "c1"
        assert fake.seen[0].headers["X-OpenWebUI-Message-Id"] == "m1"
    assert answer.completion is not None
    assert answer.completion.body["choices"][0]["message"]["content"] == "Done."
    ticket, page, broken, added, drawn, failed = world.said()
    assert orjson.loads(ticket) == {"path": "/tickets/7", "method": "GET"}
    assert orjson.loads(page)["status"] == "success"
    assert broken.startswith("HTTP error 422: no way")
    assert (added, drawn) == ("3", "a picture")
    assert failed == "Error executing tool fail: nothing to see"
    assert [media.content_type for media in world.kept] == ["image/png"]
    kinds = [event["type"] for event in world.events.events]
    assert (kinds.count("embeds"), kinds.count("files")) == (1, 1)
    names_of_sources = {
        event["data"]["source"]["name"] for event in world.events.events if event["type"] == "source"
    }
    assert {"server:tickets/get_ticket", "server:mcp:notes/notes_add"} <= names_of_sources


async def test_a_server_that_is_down_is_a_warning_and_the_others_work() -> None:
    down = ToolServer("down", "down", "http://127.0.0.1:1")
    async with api() as fake, serving(fake.server(), down) as servers:
        world = World(servers, Say("Done."))
        await world.run("server:down", "server:tickets", "server:mcp:none")
    assert len(world.source.asked[0]["tools"]) == 11
    one, other = world.request.warnings
    assert "cannot use tool server 'down': no connection" in one
    assert "there is no such tool" in other
