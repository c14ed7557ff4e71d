"""Tests for gatewayd.assembly.events."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from gatewayd.assembly.events import event_limits
from gatewayd.assembly.gateway import assemble
from gatewayd.chats.records import Chat, Message, MessageState
from gatewayd.events.records import EventTarget
from gatewayd.settings import Settings, load
from gatewayd.storage import chat_slices
from gatewayd.storage.tables.chats import ChatRow


def settings_for(state: Path, **values: str) -> Settings:
    return load(None, {"DATA_DIR": str(state), "ENABLE_BUILTIN_MODEL": "false", **values})


async def test_an_answer_that_died_with_the_daemon_is_done_at_the_next_start(state: Path) -> None:
    async with AsyncExitStack() as stack:
        gateway = await assemble(settings_for(state), stack)
        user = (await gateway.services.accounts.setup.run("a@example.org", "A", "a password")).user
        dying = Message("m", None, "assistant", "so far", done=False, state=MessageState.RUNNING)
        await gateway.services.live.stores.chats.add(Chat("c", user.id, "A chat"), [dying])
    async with AsyncExitStack() as stack:
        gateway = await assemble(settings_for(state), stack)
        found = await gateway.services.live.stores.messages.find("c", "m")
        assert found is not None
        assert (found.content, found.done, found.state) == ("so far", True, MessageState.IDLE)
        assert "restarted" in found.attributes["error"]["content"]


async def test_a_chat_that_was_incomplete_when_the_daemon_died_is_deleted(state: Path) -> None:
    async with AsyncExitStack() as stack:
        gateway = await assemble(settings_for(state), stack)
        user = (await gateway.services.accounts.setup.run("a@example.org", "A", "a password")).user
        await gateway.services.live.stores.chats.add(
            Chat("c", user.id, "A chat"), [Message("m", None, "user", "x")]
        )
        await chat_slices.hide("id", "c")
    async with AsyncExitStack() as stack:
        chats = (await assemble(settings_for(state), stack)).services.live.stores.chats
        assert await chats.find("c") is None
        while await chats.list_unfinished():
            await asyncio.sleep(0)
        assert await ChatRow.all().count() == 0


async def test_an_event_is_heard(state: Path) -> None:
    async with AsyncExitStack() as stack:
        live = (await assemble(settings_for(state), stack)).services.live
        listener = live.hub.subscribe("u", last_id=None, chat_id=None)
        assert await live.events.emit(EventTarget("u"), {"type": "notification", "data": {"content": "x"}})
        assert b"notification" in await listener.next()


def test_what_is_kept_of_events_is_set(state: Path) -> None:
    limits = event_limits(settings_for(state, EVENT_REPLAY_FRAMES="7", EVENT_QUEUE_FRAMES="11"))
    assert (limits.replay_frames, limits.queue_frames) == (7, 11)
