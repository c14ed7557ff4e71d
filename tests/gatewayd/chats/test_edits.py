"""Tests for gatewayd.chats.edits."""

from collections.abc import AsyncIterator

import pytest

from gatewayd.chats.edits import EditedChats, EditedMessages
from gatewayd.chats.records import (
    Chat,
    ChatChange,
    ChatQuery,
    Message,
    MessageChange,
    NewChat,
    SharedChat,
    Tag,
)
from gatewayd.deferred_writes import DeferredWrites
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.tasks import TaskRegistry
from gatewayd.transactions import CallbackTransactor
from gatewayd.write_attempt import CHAT_ITSELF_ID, DeferredWrite, Key
from tests.fakes.accounts.memory_stores import Memory
from tests.fakes.storage.memory_chats import ChatState, MemoryChats, MemoryMessages

KEY = ("c", "a")


class Trial:
    """One message, whose write waits for a database that is away."""

    def __init__(self) -> None:
        self.state = ChatState(
            chats={"c": Chat("c", "u", "Chat")}, messages={"c": {"a": Message("a", None, "x")}}
        )
        self.deferred = DeferredWrites(TaskRegistry())
        self.chats = EditedChats(MemoryChats(self.state), self.deferred)
        self.messages = EditedMessages(MemoryMessages(self.state), self.deferred)

    async def open(self) -> None:
        self.write, self.of_chat = await self._kept(KEY), await self._kept(("c", CHAT_ITSELF_ID))

    async def _kept(self, key: Key) -> DeferredWrite:
        async def work(_: bool) -> None:
            raise GatewayError(ErrorKind.UNAVAILABLE, "cannot write")

        write = await self.deferred.write(key, work, "x", owner="u1")
        assert write is not None
        return write

    async def close(self) -> None:
        await self.deferred.close(0)


@pytest.fixture
async def trial() -> Trial:
    made = Trial()
    await made.open()
    return made


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (MessageChange(content="mine"), True),
        (MessageChange(content=""), True),
        (MessageChange(parts=[]), True),
        (MessageChange(attributes={"favorite": True}), False),
    ],
)
async def test_a_changed_content_stays(trial: Trial, change: MessageChange, expected: bool) -> None:
    assert await trial.messages.change("c", "other", change) is False
    assert not trial.write.is_superseded
    assert await trial.messages.change("c", "a", change) is True
    assert trial.write.is_superseded is expected
    await trial.close()


async def test_a_replaced_message_stays(trial: Trial) -> None:
    await trial.messages.put("c", [Message("b", None, "user"), Message("a", None, "assistant")])
    assert trial.write.is_superseded
    await trial.close()


async def test_nothing_is_written_to_a_message_that_is_gone(trial: Trial) -> None:
    assert await trial.messages.remove("c", "a")
    assert trial.write.over.is_set()
    await trial.close()


async def test_a_change_that_is_rolled_back_was_none(trial: Trial) -> None:
    commits = CallbackTransactor(Memory())
    async with commits.rehearsal():
        await trial.messages.change("c", "a", MessageChange(content="mine"))
        await trial.messages.remove("c", "a")
    assert not trial.write.is_superseded
    assert not trial.write.over.is_set()
    async with commits.transaction():
        await trial.messages.put("c", [Message("a", None, "assistant", content="mine")])
        assert not trial.write.is_superseded
    assert trial.write.is_superseded
    await trial.close()


async def test_reading_is_that_of_the_store(trial: Trial) -> None:
    assert await trial.messages.count("c") == len(await trial.messages.list("c")) == 1
    assert await trial.messages.find("c", "a") == (await trial.messages.branch("c", "a"))[0]
    assert await trial.messages.size("c")
    assert await trial.messages.end_running({}) == 0
    await trial.close()


async def test_a_title_that_a_user_gives_stays(trial: Trial) -> None:
    assert await trial.chats.change("c", ChatChange(pinned=True), 1)
    assert not trial.of_chat.is_superseded
    assert await trial.chats.change("c", ChatChange(title="Mine"), 2)
    assert trial.of_chat.is_superseded
    assert not trial.write.is_superseded
    await trial.close()


@pytest.mark.parametrize("is_all", [True, False])
async def test_nothing_is_written_to_a_chat_that_is_gone(trial: Trial, is_all: bool) -> None:
    if is_all:
        assert await trial.chats.hide_all("u") == ["c"]
    else:
        assert await trial.chats.hide("c")
    assert trial.of_chat.over.is_set()
    await trial.close()


async def test_what_else_is_done_with_chats_is_that_of_the_store(trial: Trial) -> None:
    async def others() -> AsyncIterator[NewChat]:
        yield NewChat(Chat("e", "u", "Third"), [])

    chats = trial.chats
    await chats.check([])
    await chats.add(Chat("d", "u", "Other"), [])
    await chats.add_all(others())
    assert await chats.touch("d", 5)
    found, total = await chats.list(ChatQuery(user_id="u"))
    assert {chat.id for chat in found} == {"c", "d", "e"}
    assert total == 3
    await chats.archive_all("u", archived=True)
    chat = await chats.find("d")
    assert chat is not None
    assert chat.archived
    await chats.add_tag("d", Tag("t", "T", "u"))
    assert [tag.id for tag in await chats.tags(chat_id="d")] == ["t"]
    await chats.remove_tags("d")
    assert not await chats.tags(user_id="u")
    await chats.share(SharedChat("s", "d", "u", {}, 1))
    assert await chats.find_shared("s")
    assert await chats.unshare("d")
    assert await chats.hide("e")
    await chats.purge(await chats.list_unfinished() or ["e"])
    assert await chats.find("e") is None
    await trial.close()
