"""Tests for gatewayd.assembly.tool_servers."""

from contextlib import AsyncExitStack
from pathlib import Path

from gatewayd.assembly.tool_servers import identity_headers, make_servers
from gatewayd.events.records import EventTarget
from gatewayd.plugins.runtime.context import CallScope
from gatewayd.settings import load
from gatewayd.tasks import TaskRegistry
from tests.fakes.accounts.memory_stores import Memory
from tests.fakes.providers.models import make_actor


def test_nobody_is_told_who_asks_unless_it_is_set(state: Path) -> None:
    assert identity_headers(load(None, {"DATA_DIR": str(state)})) is None
    made = identity_headers(load(None, {"DATA_DIR": str(state), "ENABLE_FORWARD_USER_INFO_HEADERS": "true"}))
    assert made is not None
    told = {name.lower(): value for name, value in made.for_tool(scope()).items()}
    assert (told["x-service-chat-id"], told["x-openwebui-chat-id"]) == ("c1", "c1")
    assert told["x-service-message-id"] == "m1"


def test_a_name_that_is_set_stands_alone(state: Path) -> None:
    names = {"ENABLE_FORWARD_USER_INFO_HEADERS": "true", "FORWARD_SESSION_INFO_HEADER_CHAT_ID": "X-Chat"}
    made = identity_headers(load(None, {"DATA_DIR": str(state), **names}))
    assert made is not None
    told = {name.lower(): value for name, value in made.for_tool(scope()).items()}
    assert told["x-chat"] == "c1"
    assert "x-openwebui-chat-id" not in told


async def test_servers_of_the_settings_are_known(state: Path) -> None:
    text = '[{"url": "http://127.0.0.1:1", "type": "openapi", "info": {"id": "s", "name": "S"}}]'
    settings = load(None, {"DATA_DIR": str(state), "TOOL_SERVER_CONNECTIONS": text})
    async with AsyncExitStack() as stack:
        made = make_servers(settings, TaskRegistry(), stack, Memory())
        assert made.service.known.problems == ()


def scope() -> CallScope:
    return CallScope(make_actor(), EventTarget("u", "c1", "m1"))
