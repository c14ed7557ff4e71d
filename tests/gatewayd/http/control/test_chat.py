"""`/v1/chat`."""

import asyncio

import pytest
from pydantic import ValidationError

from gatewayctl.failures import CommandError
from gatewayctl.wire import routes
from gatewayctl.wire.chat import Chat, Message
from gatewayd.completions.records import CompletionChunk
from gatewayd.errors import ErrorKind, GatewayError
from tests.fakes.daemons.control_socket import Control

QUESTION = [Message(role="user", content="hi")]


async def test_whole_and_streamed(control: Control) -> None:
    whole = await control.call(control.client.ask, Chat(model="alpha", messages=QUESTION))
    assert whole["choices"][0]["message"]["content"] == "hello"
    events = await asyncio.to_thread(
        lambda: list(control.client.stream(routes.CHAT, Chat(messages=QUESTION)))
    )
    assert [event["choices"][0]["delta"]["content"] for event in events] == ["hel", "lo"]
    asked = control.source.asked[-1]
    assert set(asked) == {"model", "messages", "stream", "stream_options"}
    assert asked["stream_options"] == {"include_usage": True}
    assert (asked["model"], asked["stream"]) == ("up-alpha", True)
    context = control.source.contexts[-1]
    assert context.user_id.startswith("control:")
    assert context.request_id


async def test_a_failure_in_the_stream_keeps_its_kind(control: Control) -> None:
    part = CompletionChunk(events=[{"choices": []}])
    control.source.script = lambda body: [part, GatewayError(ErrorKind.TIMEOUT, "cannot wait longer")]
    with pytest.raises(CommandError, match="cannot wait longer") as caught:
        await asyncio.to_thread(
            lambda: list(control.client.stream(routes.CHAT, Chat(model="alpha", messages=QUESTION)))
        )
    assert caught.value.kind == "timeout"
    assert control.source.closed_streams == 1


async def test_leaving_closes_the_source(control: Control) -> None:
    endless = [CompletionChunk(events=[{"choices": []}])] * 100_000
    control.source.script = lambda body: endless

    def leave() -> None:
        events = control.client.stream(routes.CHAT, Chat(model="alpha", messages=QUESTION))
        next(events)
        events.close()

    await asyncio.to_thread(leave)
    async with asyncio.timeout(10):
        while not control.source.closed_streams:
            await asyncio.sleep(0)


async def test_without_any_model(control: Control) -> None:
    control.source.models = []
    await control.call(control.client.call, routes.LIST_MODELS, refresh=True)
    with pytest.raises(CommandError) as caught:
        await control.call(control.client.ask, Chat(messages=QUESTION))
    assert (caught.value.kind, caught.value.param) == ("not_found", "model")


@pytest.mark.parametrize("member", ["messages", "files"])
def test_of_many_bad_members_one_is_told(member: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Chat.model_validate({"messages": [], member: [7] * 1000})
    assert caught.value.error_count() == 1
