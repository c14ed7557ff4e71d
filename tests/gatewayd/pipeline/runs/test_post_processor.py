"""Tests for gatewayd.pipeline.runs.post_processor."""

import logging
from typing import Any

import pytest

from gatewayd.accounts.records import Actor
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.pipeline.records import ChatRequest
from gatewayd.pipeline.runs.interfaces import LoadConversation
from tests.fakes.storage.chat_runs import OWNER, asking, running_world


class Shout:
    """Makes the last message loud, and remembers what it saw."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []

    async def run_for_run(
        self, request: ChatRequest, actor: Actor, conversation: LoadConversation
    ) -> list[dict[str, Any]] | None:
        messages = await conversation()
        self.seen = list(messages)
        last = messages[-1]
        return [*messages[:-1], {**last, "content": last["content"].upper()}]


class Broken:
    """Always fails."""

    async def run_for_run(
        self, request: ChatRequest, actor: Actor, conversation: LoadConversation
    ) -> list[dict[str, Any]] | None:
        raise GatewayError(ErrorKind.PLUGIN_FAILED, "filter x: ValueError: no")


async def test_changed_answer_is_kept_and_told() -> None:
    outlets = Shout()
    async with running_world(outlets) as world:
        await world.runs.start(asking(), OWNER)
        await world.ended()
        assert world.message().content == "HELLO"
        assert world.message().attributes["originalContent"] == "hello"
        assert "originalContent" not in world.message("q").attributes
        event = world.events.events("a", "chat:outlet")[0]
        assert event["data"]["messages"][-1]["content"] == "HELLO"
        assert [item["id"] for item in outlets.seen] == ["q", "a"]
        assert world.events.types("a")[-2:] == ["chat:outlet", "chat:active"]


async def test_answer_that_is_not_kept_is_filtered_too() -> None:
    outlets = Shout()
    async with running_world(outlets) as world:
        await world.runs.start(asking(chat_id="local:x"), OWNER)
        await world.ended()
        assert [item["content"] for item in outlets.seen] == ["What is it?", "hello"]
        event = world.events.events("a", "chat:outlet")[0]
        assert event["data"]["messages"][-1] == {"id": "a", "role": "assistant", "content": "HELLO"}


async def test_filter_that_fails_leaves_the_answer(caplog: pytest.LogCaptureFixture) -> None:
    async with running_world(Broken()) as world:
        with caplog.at_level(logging.WARNING):
            await world.runs.start(asking(), OWNER)
            await world.ended()
        assert world.message().content == "hello"
        assert "error" not in world.message().attributes
        assert "ValueError" in caplog.text
        assert "chat:outlet" not in world.events.types()
