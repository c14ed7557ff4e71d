"""Tests for gatewayd.chats.message_merge."""

from collections.abc import Sequence
from typing import Any

import pytest

from gatewayd.chats.message_merge import MessageMerger, new_chat
from gatewayd.chats.parser import read_document, read_node
from gatewayd.chats.records import Chat, Message, MessageChange
from gatewayd.errors import ErrorKind, GatewayError
from tests.fakes.storage.chats_site import document, node
from tests.fakes.storage.memory_chats import ChatState, MemoryChats, MemoryMessages


class Noted(MemoryMessages):
    """Notes what is written."""

    def __init__(self, state: ChatState) -> None:
        super().__init__(state)
        self.written: list[Any] = []

    async def put(self, chat_id: str, messages: Sequence[Message]) -> None:
        self.written.append([message.id for message in messages])
        await super().put(chat_id, messages)

    async def change(self, chat_id: str, message_id: str, change: MessageChange) -> bool:
        self.written.append(change)
        return await super().change(chat_id, message_id, change)


class Trial:
    def __init__(self) -> None:
        state = ChatState()
        self.store, self.messages = MemoryChats(state), Noted(state)
        self.merging = MessageMerger(self.messages)

    async def open(self, **more: Any) -> Chat:
        chat, messages = await new_chat("u", await read_document(document(**more)), 10)
        await self.store.add(chat, messages)
        return chat


@pytest.fixture
def trial() -> Trial:
    return Trial()


async def test_a_new_chat() -> None:
    chat, messages = await new_chat("u", await read_document(document(history={"messages": {"m": {}}})), 10)
    assert (chat.user_id, chat.title, chat.current_id, chat.updated_at) == ("u", "Birds", "m", 10)
    assert messages == [Message("m", None, "user", timestamp=10)]
    assert (await new_chat("u", await read_document({}), 10))[0].current_id is None


@pytest.mark.parametrize(
    ("form", "written"),
    [
        ({"childrenIds": ["x"], "content": "A heron."}, []),
        ({"content": "two"}, [MessageChange(content="two")]),
        ({"content": [{"a": 1}]}, [MessageChange(parts=[{"a": 1}])]),
        ({"done": False, "role": "system"}, [MessageChange(done=False, role="system")]),
        ({"favorite": True, "model": "m"}, [MessageChange(attributes={"favorite": True})]),
        ({"files": [1], "sources": []}, [MessageChange(items={"files": [1]})]),
        ({"parentId": None}, [["a1"]]),
        ({"timestamp": 9}, [["a1"]]),
        ({"error": None}, [["a1"]]),
        ({"done": None}, [["a1"]]),
    ],
)
async def test_only_what_differs_is_written(trial: Trial, form: Any, written: list[Any]) -> None:
    chat = await trial.open()
    known = await trial.messages.find(chat.id, "a1")
    assert known is not None
    made = await trial.merging.rewrite(chat.id, known, await read_node(form, "message", "a1"))
    assert trial.messages.written == written
    assert await trial.messages.find(chat.id, "a1") == made


async def test_text_takes_the_place_of_parts(trial: Trial) -> None:
    parts = node("m", None, content=[{"a": 1}])
    chat = await trial.open(history={"messages": {"m": parts}})
    known = await trial.messages.find(chat.id, "m")
    assert known is not None
    await trial.merging.rewrite(chat.id, known, await read_node({"content": ""}, "message", "m"))
    assert trial.messages.written == [MessageChange(content="")]


async def test_merging_writes_new_messages_at_once(trial: Trial) -> None:
    chat = await trial.open()
    nodes = {"a1": {"favorite": True}, "q2": node("q2", "a1"), "a2": node("a2", "q2")}
    read = await read_document({"history": {"messages": nodes, "currentId": "a2"}})
    assert await trial.merging.merge(chat, read, 20) == "a2"
    assert trial.messages.written == [["q2", "a2"], MessageChange(attributes={"favorite": True})]
    assert (
        await trial.merging.merge(chat, await read_document({"history": {"currentId": "gone"}}), 20) is None
    )


async def test_a_message_is_added_after_the_current_one(trial: Trial) -> None:
    chat = await trial.open()
    made = await trial.merging.add(chat, await read_node({"content": "x"}, "message", "m"), 20)
    assert made == Message("m", "a1", "user", "x", timestamp=20)
    made = await trial.merging.add(chat, await read_node({"parentId": "q1"}, "message", "n"), 20)
    assert (made.parent_id, made.role) == ("q1", "assistant")


async def test_a_chat_that_holds_too_much_takes_nothing_more(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = await trial.open(history={"messages": {"m": {"content": "x" * 100}}})
    same = await read_document({"history": {"messages": {"m": {"content": "x" * 100}}, "currentId": "m"}})
    more = await read_document({"history": {"messages": {"n": {"content": "y"}}}})
    longer = await read_document({"history": {"messages": {"m": {"content": "z"}}}})
    monkeypatch.setattr("gatewayd.chats.message_merge.MAX_CHAT_BYTES", 99)
    assert await trial.merging.merge(chat, same, 11) == "m"
    for document_ in (more, longer):
        with pytest.raises(GatewayError, match="its messages hold over") as caught:
            await trial.merging.merge(chat, document_, 11)
        assert (caught.value.kind, caught.value.param) == (ErrorKind.TOO_LARGE, "messages")
    with pytest.raises(GatewayError, match="its messages hold over"):
        await trial.merging.add(chat, await read_node({"content": "y"}, "message"), 11)
    [known] = await trial.messages.list(chat.id)
    with pytest.raises(GatewayError, match="its messages hold over"):
        await trial.merging.rewrite(chat.id, known, await read_node({"content": "y"}, "message"))
    assert trial.messages.written == []
