"""Tests for gatewayd.chats.run_writer."""

from typing import Any

import pytest

from gatewayd.chats.json_limits import MAX_VALUES
from gatewayd.chats.message_merge import new_chat
from gatewayd.chats.parser import read_document, read_node
from gatewayd.chats.records import ChatChange, Message, MessageState
from gatewayd.chats.renderer import render_message
from gatewayd.chats.run_writer import RESTARTED, RunMessageWriter
from gatewayd.errors import ErrorKind, GatewayError
from tests.fakes.accounts.memory_stores import Memory
from tests.fakes.storage.chats_site import document, node
from tests.fakes.storage.memory_chats import ChatState, MemoryChats, MemoryMessages


class Trial:
    def __init__(self) -> None:
        state = ChatState()
        self.chats, self.messages = MemoryChats(state), MemoryMessages(state)
        self.answers = RunMessageWriter(self.messages, self.chats, Memory(), lambda: 70)
        self.chat_id = ""

    async def open(self, **more: Any) -> None:
        chat, messages = await new_chat("u", await read_document(document(**more)), 10)
        self.chat_id = chat.id
        await self.chats.add(chat, messages)

    async def message(self, message_id: str) -> Message:
        found = await self.messages.find(self.chat_id, message_id)
        assert found is not None
        return found

    async def changed_at(self) -> int:
        chat = await self.chats.find(self.chat_id)
        assert chat is not None
        return chat.updated_at

    async def current(self) -> str | None:
        chat = await self.chats.find(self.chat_id)
        assert chat is not None
        return chat.current_id


@pytest.fixture
async def trial() -> Trial:
    made = Trial()
    await made.open()
    return made


async def test_a_new_turn(trial: Trial) -> None:
    asked = {"id": "q2", "content": "And now?", "files": [{"id": "f"}], "models": ["m"]}
    answer = await trial.answers.begin(trial.chat_id, "a2", None, "m", asked)
    question = await trial.message("q2")
    assert (question.role, question.parent_id, question.content) == ("user", "a1", "And now?")
    assert question.items == {"files": [{"id": "f"}]}
    assert answer == Message(
        "a2",
        "q2",
        "assistant",
        done=False,
        state=MessageState.RUNNING,
        attributes={"model": "m"},
        timestamp=70,
    )
    assert await trial.message("a2") == answer
    assert await trial.current() == "a2"


async def test_the_end_of_an_answer_is_a_change_of_its_chat(trial: Trial) -> None:
    await trial.answers.save(trial.chat_id, "a1", "so far")
    assert await trial.changed_at() == 10
    assert await trial.answers.finish(trial.chat_id, "a1")
    assert await trial.changed_at() == 70


async def test_an_answer_that_is_there_keeps_its_place(trial: Trial) -> None:
    before = {"error": {"content": "no"}, "sources": [{"source": {"name": "of another answer"}}]}
    await trial.answers.finish(trial.chat_id, "a1", attributes=before)
    answer = await trial.answers.begin(trial.chat_id, "a1", "elsewhere", "n")
    assert answer == await trial.message("a1")
    assert (answer.parent_id, answer.content, answer.state) == ("q1", "", MessageState.RUNNING)
    assert (answer.done, answer.attributes, answer.items) == (False, {"model": "n"}, {})


async def test_a_root_stays_one_unless_told(trial: Trial) -> None:
    await trial.messages.put(trial.chat_id, [Message("x", None, "assistant")])
    assert (await trial.answers.begin(trial.chat_id, "x", None, "m")).parent_id is None
    assert (await trial.answers.begin(trial.chat_id, "x", "q1", "m")).parent_id == "q1"


@pytest.mark.parametrize(("parent_id", "found"), [("q1", "q1"), (None, "a1")])
async def test_without_a_question(trial: Trial, parent_id: str | None, found: str) -> None:
    assert (await trial.answers.begin(trial.chat_id, "a2", parent_id, "m")).parent_id == found


async def test_a_question_that_is_there_is_merged(trial: Trial) -> None:
    await trial.answers.begin(trial.chat_id, "a2", "q1", "m", {"id": "q1", "favorite": True})
    question = await trial.message("q1")
    assert (question.content, question.attributes) == ("What stands in the water?", {"favorite": True})


async def test_saving_and_finishing(trial: Trial) -> None:
    await trial.answers.begin(trial.chat_id, "a2", "q1", "m")
    assert await trial.answers.save(trial.chat_id, "a2", "par\0t\ud800")
    message = await trial.message("a2")
    assert (message.content, message.done, message.state) == ("par\ufffdt\ufffd", False, MessageState.RUNNING)
    given = {"usage": {"n": float("inf")}, "sources": [{"a": 1}]}
    assert await trial.answers.finish(trial.chat_id, "a2", attributes=given)
    message = await trial.message("a2")
    assert (message.content, message.done, message.state) == ("par\ufffdt\ufffd", True, MessageState.IDLE)
    assert (message.attributes, message.items) == (
        {"model": "m", "usage": {"n": None}},
        {"sources": [{"a": 1}]},
    )
    await trial.answers.finish(trial.chat_id, "a2", content="whole")
    assert (await trial.message("a2")).content == "whole"
    chat = await trial.chats.find(trial.chat_id)
    assert chat is not None
    assert chat.updated_at == 70


async def test_an_answer_keeps_no_attributes_that_could_not_be_read_back(trial: Trial) -> None:
    await trial.answers.begin(trial.chat_id, "a2", "q1", "m")
    usage = {"n": [1] * (MAX_VALUES - 10)}
    given = {"output": [[1] * MAX_VALUES], "usage": usage, "error": {"content": "x"}, "sources": [usage] * 2}
    assert await trial.answers.finish(trial.chat_id, "a2", content="whole", attributes=given)
    message = await trial.message("a2")
    assert message.attributes == {"model": "m", "usage": usage, "error": {"content": "x"}}
    await read_node(render_message(message, None, []), "message")


async def test_what_is_gone(trial: Trial) -> None:
    assert not await trial.answers.save(trial.chat_id, "gone", "x")
    assert not await trial.answers.finish("gone", "a1", content="x")
    with pytest.raises(GatewayError) as caught:
        await trial.answers.begin("gone", "a1", None, "m")
    assert caught.value.kind is ErrorKind.NOT_FOUND


@pytest.mark.parametrize(
    ("message_id", "parent_id", "question", "param"),
    [
        ("", None, None, "id"),
        ("x" * 256, None, None, "id"),
        ("a2", "x" * 256, None, "parent_id"),
        ("a2", "a2", None, "parent_id"),
        ("a2", None, {"id": "a2"}, "user_message.id"),
        ("a2", None, {"content": 5}, "user_message.content"),
    ],
)
async def test_bad_beginnings(
    trial: Trial, message_id: str, parent_id: str | None, question: Any, param: str
) -> None:
    before = await trial.messages.list(trial.chat_id)
    with pytest.raises(GatewayError) as caught:
        await trial.answers.begin(trial.chat_id, message_id, parent_id, "m", question)
    assert caught.value.param == param
    assert await trial.messages.list(trial.chat_id) == before


async def test_answers_of_a_dead_process(trial: Trial) -> None:
    await trial.answers.begin(trial.chat_id, "a2", "q1", "m")
    assert await trial.answers.end_running() == 1
    message = await trial.message("a2")
    assert (message.done, message.state) == (True, MessageState.IDLE)
    assert message.attributes["error"] == {"content": RESTARTED}
    assert await trial.answers.end_running() == 0


async def test_the_first_answer_of_an_empty_chat() -> None:
    trial = Trial()
    await trial.open(history={"messages": {"q": node("q", None)}})
    await trial.chats.change(trial.chat_id, ChatChange(current_id="a"), 1)
    assert (await trial.answers.begin(trial.chat_id, "a", None, "m")).parent_id is None


async def test_what_the_user_said_is_not_answered_over(trial: Trial) -> None:
    with pytest.raises(GatewayError) as caught:
        await trial.answers.begin(trial.chat_id, "q1", None, "m")
    assert caught.value.param == "id"
    assert (await trial.message("q1")).content == "What stands in the water?"
    await trial.messages.put(trial.chat_id, [Message("empty", "q1", "user")])
    assert (await trial.answers.begin(trial.chat_id, "empty", None, "m")).role == "assistant"
