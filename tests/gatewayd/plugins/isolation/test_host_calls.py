import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.plugins.isolation.host_calls import (
    MAX_OVER_CALLS,
    MAX_REQUEST_ID,
    MAX_STREAMS,
    PluginQuestions,
    QuestionParts,
)
from gatewayd.plugins.isolation.messages import PipeData
from gatewayd.plugins.runtime.arguments import CallServices
from gatewayd.plugins.runtime.call_context import current_asker
from gatewayd.plugins.runtime.call_depth import at_depth, current_depth
from gatewayd.plugins.source.check import make_host
from tests.fakes.plugins.memory import MemoryUserValves, NotedEvents, plugin_of, scope_of

TARGET = {"user_id": "u1", "chat_id": "c1", "message_id": "m1", "session_id": "s1"}


class Users:
    """Tells who is asked for, and how deep."""

    async def find(self, user_id: str) -> Any:
        actor = current_asker.get()
        return {"id": user_id, "for": None if actor is None else actor.user_id, "depth": current_depth.get()}


class Completions:
    def __init__(self) -> None:
        self.closed = 0

    async def run(self, user_id: str, body: Any, *, whole_pipeline: bool, scope: Any) -> Any:
        if not body.get("stream"):
            return {"user": user_id, "chat": None if scope is None else scope.target.chat_id}
        return self._frames()

    async def _frames(self) -> AsyncIterator[bytes]:
        try:
            yield b"data: 1\n\n"
            yield b"data: 2\n\n"
        finally:
            self.closed += 1


class OtherPlugins:
    async def tools(self, tool_ids: Any, scope: Any) -> Any:
        async def call(**arguments: Any) -> Any:
            return [tool_ids, arguments]

        return {"t": {"callable": call, "spec": {"name": "t"}}}


@pytest.fixture
def events() -> NotedEvents:
    return NotedEvents(answers=["yes"])


@pytest.fixture
async def questions(tmp_path: Path, events: NotedEvents) -> AsyncIterator[PluginQuestions]:
    parts: Any = {"users": Users(), "completions": Completions(), "plugins": OtherPlugins()}
    host = replace(make_host({"A": 1}, tmp_path), **parts)
    around = CallServices(asyncio.get_running_loop(), events, MemoryUserValves())
    made = PluginQuestions(plugin_of("p", "class Pipe: ..."), QuestionParts(around, lambda: host))
    yield made
    await made.close()


@asynccontextmanager
async def refused(kind: ErrorKind) -> AsyncIterator[None]:
    with pytest.raises(GatewayError) as caught:
        yield
    assert caught.value.kind is kind


def host(part: str, method: str, call: int = 0) -> dict[str, Any]:
    return {"do": "host", "part": part, "method": method, "call": call}


async def test_events_go_to_their_target(questions: PluginQuestions, events: NotedEvents) -> None:
    target = {**TARGET, "request_id": "r" * 100}
    event = {"target": target, "event": {"type": "status", "data": {"description": "x"}}}
    assert (await questions.answer({"do": "emit"}, PipeData(event))).value is True
    assert (await questions.answer({"do": "call"}, PipeData(event))).value == "yes"
    assert events.texts() == ["x"]
    assert events.asked[0][0] == scope_of().target
    assert events.asked[0][0].request_id == "r" * MAX_REQUEST_ID


@pytest.mark.parametrize(
    "told",
    [
        None,
        [],
        {},
        {"target": {}, "event": 1},
        {"target": {**TARGET, "request_id": 1}, "event": 1},
        {"target": {**TARGET, "chat_id": 1}, "event": 1},
    ],
)
async def test_an_event_without_a_target_is_refused(questions: PluginQuestions, told: Any) -> None:
    async with refused(ErrorKind.INVALID_REQUEST):
        await questions.answer({"do": "emit"}, PipeData(told))


async def test_the_gateway_is_asked_for_the_user_of_the_call(questions: PluginQuestions) -> None:
    with at_depth(3):
        call = questions.begin(scope_of())
    asked = host("users", "find", call.number)
    answer = await questions.answer(asked, PipeData({"user_id": "x"}))
    assert answer.value == {"id": "x", "for": "u1", "depth": 3}
    outside = await questions.answer(host("users", "find"), PipeData({"user_id": "x"}))
    assert outside.value == {"id": "x", "for": None, "depth": 0}
    body = {"user_id": "u", "body": {}, "whole_pipeline": True}
    answer = await questions.answer(host("completions", "run", call.number), PipeData(body))
    assert answer.value == {"user": "u", "chat": "c1"}


@pytest.mark.parametrize(
    "asked", [{}, {"do": 1}, host("users", "other"), host("none", "find"), host("users", "find")]
)
async def test_other_questions_are_refused(questions: PluginQuestions, asked: dict[str, Any]) -> None:
    with pytest.raises(GatewayError):
        await questions.answer(asked, PipeData(["nonsense"]))


async def test_calls_are_known_for_a_while_after_their_end(questions: PluginQuestions) -> None:
    first = questions.begin(scope_of())
    questions.end(first)
    asked = host("users", "find", first.number)
    assert (await questions.answer(asked, PipeData({"user_id": "x"}))).value["for"] == "u1"
    for _ in range(MAX_OVER_CALLS):
        questions.end(questions.begin(scope_of()))
    assert (await questions.answer(asked, PipeData({"user_id": "x"}))).value["for"] is None


async def test_tools_are_called_by_their_numbers(questions: PluginQuestions) -> None:
    call = questions.begin(scope_of())
    given = await questions.answer(host("plugins", "tools", call.number), PipeData({"tool_ids": ["a"]}))
    assert given.value == {"t": {"callable": 0, "spec": {"name": "t"}}}
    run = {"do": "tool", "call": call.number}
    answer = await questions.answer(run, PipeData({"number": 0, "arguments": {"x": 1}}))
    assert answer.value == {"is": "value", "value": [["a"], {"x": 1}]}
    for told in (None, {"number": 1, "arguments": {}}, {"number": -1, "arguments": {}}, {"number": 0}):
        async with refused(ErrorKind.INVALID_REQUEST):
            await questions.answer(run, PipeData(told))
    async with refused(ErrorKind.INVALID_REQUEST):
        await questions.answer({"do": "tool", "call": 99}, PipeData({"number": 0, "arguments": {}}))
    async with refused(ErrorKind.INVALID_REQUEST):
        await questions.answer(host("plugins", "tools"), PipeData({"tool_ids": ["a"]}))


async def test_frames_are_pulled_and_dropped(questions: PluginQuestions) -> None:
    asked = host("completions", "run")
    told = PipeData({"user_id": "u", "body": {"stream": True}, "whole_pipeline": False})
    number = (await questions.answer(asked, told)).value["frames"]
    read = [await questions.answer({"do": "frame", "frames": number}, PipeData()) for _ in range(4)]
    assert [one.attachment for one in read] == [b"data: 1\n\n", b"data: 2\n\n", b"", b""]
    assert [one.value["is_over"] for one in read] == [False, False, True, True]
    for _ in range(MAX_STREAMS):
        number = (await questions.answer(asked, told)).value["frames"]
    async with refused(ErrorKind.RATE_LIMITED):
        await questions.answer(asked, told)
    await questions.answer({"do": "drop", "frames": number}, PipeData())
    assert (await questions.answer({"do": "frame", "frames": number}, PipeData())).value["is_over"]
    assert await questions.answer({"do": "drop", "frames": []}, PipeData()) == PipeData()
    answer = await questions.answer(asked, told)
    await questions.drop(PipeData(answer.value))
    assert not (await questions.answer({"do": "frame", **answer.value}, PipeData())).value["is_over"]
    await questions.drop(answer)
    assert (await questions.answer({"do": "frame", **answer.value}, PipeData())).value["is_over"]
