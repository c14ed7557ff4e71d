"""Tests for gatewayd.pipeline.runs.message_updates."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from gatewayd.chats.json_limits import MAX_VALUES
from gatewayd.chats.records import Chat, Message
from gatewayd.deferred_writes import DeferredWrites
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.events.records import EventTarget
from gatewayd.pipeline.runs.message_updates import MessageUpdates, messages_of
from gatewayd.tasks import TaskRegistry
from tests.fakes.providers.models import make_actor
from tests.fakes.storage.memory_chats import ChatState, MemoryChats, MemoryMessages

OWNER = make_actor("u1")
TARGET = EventTarget("u1", "c1", "a", request_id="r1")


@dataclass
class World:
    """One chat of u1 with a question and an answer."""

    state: ChatState = field(default_factory=ChatState)

    @property
    def rewriting(self) -> MessageUpdates:
        return MessageUpdates(MemoryChats(self.state), MemoryMessages(self.state))

    def message(self, message_id: str) -> Message:
        found = self.state.message("c1", message_id)
        assert found is not None
        return found


@pytest.fixture
async def world() -> World:
    made = World()
    messages = [Message("q", None, "user", "hi"), Message("a", "q", "assistant", "hello", done=True)]
    await MemoryChats(made.state).add(Chat("c1", "u1", "Chat"), messages)
    return made


async def test_an_own_chat_is_stored_and_an_unknown_one_is_not(world: World) -> None:
    assert await world.rewriting.is_stored(OWNER, "c1")
    for unknown in ("", "c2", "local:abc", "a\0b", "x" * 300):
        assert not await world.rewriting.is_stored(OWNER, unknown)


async def test_a_foreign_chat_is_not_found_even_by_administrators(world: World) -> None:
    with pytest.raises(GatewayError) as caught:
        await world.rewriting.is_stored(make_actor("u2"), "c1")
    assert caught.value.kind is ErrorKind.NOT_FOUND


async def test_changed_contents_are_kept_with_the_original(world: World) -> None:
    before = [{"id": "q", "content": "hi"}, {"id": "a", "content": "hello"}]
    after = [{"id": "q", "content": "hi"}, {"id": "a", "content": "HELLO"}]
    await world.rewriting.keep_contents(TARGET, before, after)
    assert world.message("a").content == "HELLO"
    assert world.message("a").attributes == {"originalContent": "hello"}
    assert world.message("q").attributes == {}


@pytest.mark.parametrize(
    "after",
    [
        [{"content": "x"}],
        [{"id": "new", "content": "x"}],
        [{"id": "a"}],
        [{"id": "a", "content": 7}],
        [{"id": "a", "content": [{"type": "text"}] * MAX_VALUES}],
        [{"id": "a\0", "content": "x"}],
        ["x", None],
    ],
)
async def test_nothing_else_is_written(world: World, after: list[Any]) -> None:
    before = [{"id": "a", "content": "hello"}, {"id": "a\0", "content": "y"}]
    await world.rewriting.keep_contents(TARGET, before, after)
    assert world.message("a").content == "hello"
    assert set(world.state.messages["c1"]) == {"q", "a"}


async def test_a_content_of_parts_is_kept_as_parts(world: World) -> None:
    parts = [{"type": "text", "text": "x"}]
    await world.rewriting.keep_contents(
        TARGET, [{"id": "a", "content": "hello"}], [{"id": "a", "content": parts}]
    )
    assert world.message("a").parts == parts


async def test_members_of_messages_that_differ_are_kept(world: World) -> None:
    sent = [{"id": "q", "content": "stale"}, {"id": "a", "content": "hello", "role": "assistant"}]
    given = [
        {"id": "q", "content": "stale"},
        {"id": "a", "content": "better", "role": "assistant", "rating": 1, "statusHistory": [{"done": True}]},
        {"id": "unknown", "content": "x"},
    ]
    await world.rewriting.keep_messages(TARGET, sent, given)
    kept = world.message("a")
    assert (kept.content, kept.attributes, kept.done) == ("better", {"rating": 1}, True)
    assert kept.items == {"statusHistory": [{"done": True}]}
    assert world.message("q").content == "hi"
    assert set(world.state.messages["c1"]) == {"q", "a"}


async def test_a_message_that_cannot_be_kept_keeps_the_others(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    given = [{"id": "q", "content": 7}, {"id": "a", "content": "better"}]
    await world.rewriting.keep_messages(TARGET, [], given)
    assert world.message("a").content == "better"
    assert world.message("q").content == "hi"
    assert "not stored" in caplog.text


def test_the_last_message_has_the_id_of_the_body() -> None:
    body = {"id": "a", "messages": [{"id": "q"}, {"content": "x"}]}
    assert messages_of(body) == [{"id": "q"}, {"content": "x", "id": "a"}]
    assert messages_of({"id": "a", "messages": [{"id": "b"}]}) == [{"id": "b"}]
    assert messages_of({"messages": "x"}) == []


@pytest.mark.parametrize("is_edited", [False, True])
async def test_a_run_keeps_changed_contents_that_the_database_cannot_take_now(
    world: World, is_edited: bool
) -> None:
    deferred = DeferredWrites(TaskRegistry())
    rewriting = MessageUpdates(MemoryChats(world.state), MemoryMessages(world.state), deferred)
    world.state.outage = GatewayError(ErrorKind.UNAVAILABLE, "cannot write: it is away")
    before, after = [{"id": "a", "content": "hello"}], [{"id": "a", "content": "***"}]
    with pytest.raises(GatewayError, match="away"):
        # Whoever asks for it can ask again.
        await world.rewriting.keep_contents(TARGET, before, after)
    await rewriting.keep_contents(TARGET, before, after)
    world.state.outage = None
    if is_edited:
        deferred.supersede(("c1", "a"))
    await deferred.close(5)
    assert world.message("a").content == ("hello" if is_edited else "***")


@pytest.mark.parametrize("is_edited", [False, True])
async def test_an_action_keeps_changed_messages_that_the_database_cannot_take_now(
    world: World, is_edited: bool
) -> None:
    deferred = DeferredWrites(TaskRegistry())
    rewriting = MessageUpdates(MemoryChats(world.state), MemoryMessages(world.state), deferred)
    world.state.outage = GatewayError(ErrorKind.UNAVAILABLE, "cannot write: it is away")
    given = [{"id": "a", "content": "better", "rating": 1}, {"id": "no", "x": 1}]
    await rewriting.keep_messages(TARGET, [], given)
    world.state.outage = None
    if is_edited:
        deferred.supersede(("c1", "a"))
    await deferred.close(5)
    kept = world.message("a")
    assert (kept.content, kept.attributes) == ("hello" if is_edited else "better", {"rating": 1})
    assert set(world.state.messages["c1"]) == {"q", "a"}
