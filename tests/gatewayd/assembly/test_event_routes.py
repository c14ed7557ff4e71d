"""Tests for gatewayd.assembly.event_routes."""

from contextlib import AsyncExitStack
from pathlib import Path

from gatewayd.assembly.event_routes import public_live_rows
from gatewayd.assembly.gateway import assemble
from gatewayd.settings import load


async def test_lists_of_chats_come_before_chats_with_an_id(state: Path) -> None:
    settings = load(None, {"DATA_DIR": str(state), "ENABLE_BUILTIN_MODEL": "false"})
    async with AsyncExitStack() as stack:
        made = await assemble(settings, stack)
        rows = public_live_rows(
            made.services.live,
            made.streaming.events,
            made.services.extensions,
            made.services.answering,
            body_limit=1000,
        )
    gets = [row.path for row in rows if row.method == "GET" and row.path.startswith("/api/v1/chats/")]
    assert gets.index("/api/v1/chats/pinned") < gets.index("/api/v1/chats/{id}")
    paths = {(row.method, row.path) for row in rows}
    assert {
        ("POST", "/api/chat/completed"),
        ("POST", "/api/tasks/stop/{task_id}"),
        ("POST", "/api/v1/chats/{chat_id}/messages/{message_id}/event"),
        ("GET", "/api/v1/events"),
    } <= paths
