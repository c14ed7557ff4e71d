import pytest

from gatewayd.catalog.interfaces import CallContext
from gatewayd.catalog.records import Model
from gatewayd.errors import GatewayError, Kind
from gatewayd.upstream.anthropic import MAX_PAGES, AnthropicSource
from gatewayd.upstream.config import ProviderConfig, SourceKind
from tests.fakes.upstream import (
    Reply,
    anthropic_events,
    anthropic_message,
    anthropic_stream,
    json_reply,
)

CONTEXT = CallContext("r1", "u1")
MODEL = Model("m", "m", "anthropic", "claude", "m")
BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture
async def source(fake, short):
    config = ProviderConfig(
        "claude", SourceKind.ANTHROPIC, fake.openai_url, "hunter2", prefix="c/", index=1, timeouts=short
    )
    opened = AnthropicSource(config)
    yield opened
    await opened.close()


async def collect(source, events):
    async for chunk in source.stream(BODY, MODEL, CONTEXT):
        events += chunk.events


async def test_models_page_by_page(source, fake):
    first = {"data": [{"id": "a", "display_name": "A"}], "has_more": True, "last_id": "a/1"}
    fake.script(json_reply(first), json_reply({"data": [{"id": "b"}], "has_more": False, "last_id": "b"}))
    one, two = await source.list_models()
    assert (one.id, one.name, one.owned_by, one.upstream_id) == ("c/a", "A", "anthropic", "a")
    assert one.detail == {"openai": {"id": "a", "display_name": "A", "name": "A"}, "urlIdx": 1}
    assert (two.id, two.name, two.connection_type) == ("c/b", "b", "external")
    assert [request.path for request in fake.requests] == ["/v1/models"] * 2
    assert fake.requests[1].query == {"limit": "1000", "after_id": "a/1"}
    assert fake.requests[0].headers["x-api-key"] == "hunter2"
    assert fake.requests[0].headers["anthropic-version"] == "2023-06-01"
    assert "Authorization" not in fake.requests[0].headers


async def test_an_endless_list_ends(source, fake):
    fake.script(*[json_reply({"data": [], "has_more": True, "last_id": "a"})] * MAX_PAGES)
    with pytest.raises(GatewayError, match="over 20 pages"):
        await source.list_models()


async def test_models_of_a_provider_without_a_list(fake, short):
    config = ProviderConfig("claude", SourceKind.ANTHROPIC, fake.base_url, models=("a",), timeouts=short)
    source = AnthropicSource(config)
    fake.script(json_reply({}, 404))
    assert [model.id for model in await source.list_models()] == ["a"]
    await source.close()


async def test_complete(source, fake):
    completion = await source.complete(BODY, MODEL, CONTEXT)
    assert completion.body["choices"][0]["message"]["content"] == "Hello from m"
    assert completion.body["usage"]["total_tokens"] == 5
    assert completion.body["created"] > 0
    (request,) = fake.requests
    assert request.path == "/v1/messages"
    assert request.json["max_tokens"] == 4096
    assert request.json["stream"] is False


async def test_complete_needs_content(source, fake):
    fake.script(json_reply({"type": "message"}))
    with pytest.raises(GatewayError, match="no 'content'"):
        await source.complete(BODY, MODEL, CONTEXT)


async def test_stream(source, fake):
    body = {**BODY, "stream_options": {"include_usage": True}}
    events = [event async for chunk in source.stream(body, MODEL, CONTEXT) for event in chunk.events]
    texts = [choice["delta"].get("content") for event in events for choice in event["choices"]]
    assert texts == ["", "Hello", " from ", "m", None]
    assert events[-2]["choices"][0]["finish_reason"] == "stop"
    assert events[-1]["usage"]["completion_tokens"] == 2
    assert fake.requests[0].json["stream"] is True


async def test_stream_error_event(source, fake):
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    fake.script(Reply(steps=[*anthropic_stream(["a"])[:4], anthropic_events(error)]))
    events = []
    with pytest.raises(GatewayError) as caught:
        await collect(source, events)
    assert events[-1]["choices"][0]["delta"] == {"content": "a"}
    assert caught.value.kind is Kind.UPSTREAM_UNREACHABLE


async def test_stream_that_ends_too_early(source, fake):
    fake.script(Reply(steps=anthropic_stream(["a"])[:4]))
    with pytest.raises(GatewayError, match="ended before it was complete"):
        [chunk async for chunk in source.stream(BODY, MODEL, CONTEXT)]


async def test_stream_that_comes_whole(source, fake):
    fake.script(json_reply(anthropic_message("hi")), json_reply({"id": "x"}))
    (chunk,) = [chunk async for chunk in source.stream(BODY, MODEL, CONTEXT)]
    assert chunk.events[0]["choices"][0]["delta"]["content"] == "hi"
    with pytest.raises(GatewayError, match="no 'content'"):
        await anext(source.stream(BODY, MODEL, CONTEXT))
