"""Tests for gatewayd.chats.edits."""

import pytest

from gatewayd.chats.edits import EditedMessages
from gatewayd.chats.records import Chat, Message, MessageChange
from gatewayd.commits import Commits
from gatewayd.deferred import DeferredWrites
from gatewayd.errors import GatewayError, Kind
from gatewayd.tasks import Tasks
from tests.fakes.chats import ChatState, MemoryMessages
from tests.fakes.stores import Memory

KEY = ("c", "a")


class Trial:
    """One message, whose write waits for a database that is away."""

    def __init__(self) -> None:
        self.state = ChatState(
            chats={"c": Chat("c", "u", "Chat")}, messages={"c": {"a": Message("a", None, "x")}}
        )
        self.deferred = DeferredWrites(Tasks())
        self.messages = EditedMessages(MemoryMessages(self.state), self.deferred)

    async def open(self) -> None:
        async def work(_: bool) -> None:
            raise GatewayError(Kind.UNAVAILABLE, "cannot write")

        write = await self.deferred.write(KEY, work, "x", owner="u1")
        assert write is not None
        self.write = write

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
    assert not trial.deferred.count
    await trial.close()


async def test_a_change_that_is_rolled_back_was_none(trial: Trial) -> None:
    commits = Commits(Memory())
    async with commits.rehearsal():
        await trial.messages.change("c", "a", MessageChange(content="mine"))
        await trial.messages.remove("c", "a")
    assert not trial.write.is_superseded
    assert trial.deferred.count == 1
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
