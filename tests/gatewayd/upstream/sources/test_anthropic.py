import asyncio
from dataclasses import replace

import pytest

from gatewayd.catalog.interfaces import CallContext, MessagesSource, NativeProtocol, NativeRefusalError
from gatewayd.catalog.records import Model
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.upstream.sources.anthropic import MAX_PAGES, AnthropicSource
from gatewayd.upstream.sources.config import ProviderConfig, SourceKind
from tests.fakes.providers.upstream import (
    CUT,
    SILENCE,
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
    assert caught.value.kind is ErrorKind.UPSTREAM_UNREACHABLE


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


OURS = Model("c/m", "m", "anthropic", "claude", "m")
NATIVE = {
    "model": "m",
    "max_tokens": 9,
    "messages": [{"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {}}]}],
}


async def test_it_speaks_messages(source):
    assert isinstance(source, MessagesSource)


async def test_complete_message(source, fake):
    betas = {"context_management": {}, "mcp_servers": [], "new": {"a": 1}, "max_tokens": 0}
    sent = {"anthropic-beta": "new-2030-01-01", "anthropic-version": "2030-01-01", "anthropic-odd": "x"}
    context = replace(CONTEXT, client_headers=sent)
    completion = await source.complete_message({**NATIVE, **betas, "stream": True}, OURS, context)
    assert completion.body == {**anthropic_message("Hello from m", "m"), "model": "c/m"}
    (request,) = fake.requests
    assert request.path == "/v1/messages"
    assert request.json == {**NATIVE, **betas, "stream": False}
    assert request.headers["x-api-key"] == "hunter2"
    assert {name: request.headers[name] for name in sent} == sent
    assert context.warnings == []


async def test_betas_of_other_hosts_become_the_header(source, fake):
    body = {**NATIVE, "betas": ["a-1"], "anthropic_beta": ["b-2", 5, "x\ny"], "anthropic_version": "v"}
    await source.complete_message(body, OURS, CONTEXT)
    (request,) = fake.requests
    assert request.json == {**NATIVE, "stream": False}
    assert request.headers["anthropic-beta"] == "a-1,b-2"
    assert request.headers["anthropic-version"] == "2023-06-01"


async def test_a_format_of_the_beta_moves_to_its_place(source, fake):
    form = {"type": "json_schema", "schema": {}}
    body = {**NATIVE, "output_format": form, "output_config": {"effort": "low"}}
    await source.complete_message(body, OURS, CONTEXT)
    assert fake.requests[0].json == {
        **NATIVE,
        "stream": False,
        "output_config": {"effort": "low", "format": form},
    }


async def test_complete_message_drops_events_and_needs_content(source, fake):
    fake.script(json_reply(anthropic_message("a", event={"type": "execute"})), json_reply({"id": "x"}))
    completion = await source.complete_message(NATIVE, OURS, CONTEXT)
    assert "event" not in completion.body
    with pytest.raises(GatewayError, match="no 'content'"):
        await source.complete_message(NATIVE, OURS, CONTEXT)


async def test_an_error_in_the_stream_keeps_its_words(source, fake):
    said = b'{"type": "error",  "error": {"type": "overloaded_error", "message": "near hunter2"}}'
    fake.script(Reply(steps=[*anthropic_stream(["a"])[:4], b"event: error\ndata: " + said + b"\n\n"]))
    with pytest.raises(NativeRefusalError) as caught:
        [chunk async for chunk in source.stream_message(NATIVE, OURS, CONTEXT)]
    assert (caught.value.kind, caught.value.provider_code) == (
        ErrorKind.UPSTREAM_UNREACHABLE,
        "server_is_overloaded",
    )
    answer = caught.value.answer
    assert (answer.status, answer.body) == (529, said.replace(b"hunter2", b"[redacted]"))


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        (json_reply({"type": "error", "error": {"type": "x", "message": "m"}}, 418), 418),
        (json_reply({"error": "a proxy says no"}, 400), 400),
        (json_reply({"type": "error", "error": {"type": "authentication_error"}}, 401), None),
        (json_reply({"type": "error", "error": {"type": "permission_error"}}, 403), None),
        (json_reply({"type": "error", "error": {"type": "rate_limit_error"}}, 401), None),
        (json_reply({"type": "error", "error": {"type": "billing_error"}}, 407), None),
        (Reply(400, steps=[b"plain"], content_type="text/plain"), None),
        (Reply(400, steps=[b"{" + b" " * 70_000], content_type="application/json"), None),
    ],
)
async def test_refusals_keep_their_words_unless_they_are_about_the_key(source, fake, reply, status):
    fake.script(reply, reply, reply)
    for asked in (
        source.complete_message(NATIVE, OURS, CONTEXT),
        anext(source.stream_message(NATIVE, OURS, CONTEXT)),
        source.complete(NATIVE, OURS, CONTEXT),
    ):
        with pytest.raises(GatewayError) as caught:
            await asked
        assert isinstance(caught.value, NativeRefusalError) is (status is not None)
        if status is not None:
            answer = caught.value.answer
            assert (answer.status, answer.body) == (status, b"".join(reply.steps))
            assert answer.protocol is NativeProtocol.ANTHROPIC


@pytest.mark.parametrize(
    ("reply", "kind", "sentence"),
    [
        (
            json_reply({"type": "error", "error": {"message": "slow"}}, 429),
            ErrorKind.RATE_LIMITED,
            "429 .slow",
        ),
        (
            json_reply({"type": "error", "error": {"message": "no"}}, 401),
            ErrorKind.UPSTREAM_FAILED,
            "401 .no",
        ),
        (
            Reply(503, steps=[b"<html>"], content_type="text/html"),
            ErrorKind.UPSTREAM_UNREACHABLE,
            "HTML page",
        ),
        (Reply(steps=[b"<html>"], content_type="text/html"), ErrorKind.UPSTREAM_FAILED, "HTML page"),
        (Reply(302, {"Location": "http://127.0.0.1:1/"}), ErrorKind.UPSTREAM_FAILED, "redirects"),
        (Reply(steps=[b"garbage"]), ErrorKind.UPSTREAM_FAILED, "no message_start"),
        (Reply(steps=[b"data: \xff\n\n"]), ErrorKind.UPSTREAM_FAILED, "not JSON"),
        (Reply(before=CUT), ErrorKind.UPSTREAM_FAILED, "without an answer"),
    ],
)
async def test_refusals_before_the_first_event(source, fake, reply, kind, sentence):
    fake.script(reply)
    with pytest.raises(GatewayError, match=sentence) as caught:
        await anext(source.stream_message(NATIVE, OURS, CONTEXT))
    assert caught.value.kind is kind
    assert "'claude'" in caught.value.message
    assert "hunter2" not in caught.value.message


async def test_stream_message(source, fake):
    raw = b"".join([chunk.raw async for chunk in source.stream_message(NATIVE, OURS, CONTEXT)])
    expected = b"".join(anthropic_stream(["Hello", " from ", "m"], "c/m"))
    assert raw == expected
    assert fake.requests[0].json == {**NATIVE, "stream": True}


async def test_stream_message_that_comes_whole(source, fake):
    fake.script(json_reply(anthropic_message("hi", "m")))
    (chunk,) = [chunk async for chunk in source.stream_message(NATIVE, OURS, CONTEXT)]
    assert chunk.raw.startswith(b"event: message_start\n")
    assert b'"c/m"' in chunk.raw
    assert chunk.raw.endswith(b'event: message_stop\ndata: {"type":"message_stop"}\n\n')


@pytest.mark.parametrize(
    ("steps", "kind"),
    [
        ([CUT], ErrorKind.UPSTREAM_FAILED),
        ([], ErrorKind.UPSTREAM_FAILED),
        (
            [anthropic_events({"type": "error", "error": {"type": "rate_limit_error"}})],
            ErrorKind.RATE_LIMITED,
        ),
        ([b"data: <html>\n\n"], ErrorKind.UPSTREAM_FAILED),
        ([SILENCE], ErrorKind.TIMEOUT),
    ],
)
async def test_stream_message_that_breaks(source, fake, steps, kind):
    fake.script(Reply(steps=[*anthropic_stream(["a"])[:4], *steps]))
    raw = b""
    with pytest.raises(GatewayError) as caught:
        async for chunk in source.stream_message(NATIVE, OURS, CONTEXT):
            raw += chunk.raw
    assert b"text_delta" in raw
    assert caught.value.kind is kind


async def test_closing_a_silent_message_stream_closes_the_connection(source, fake):
    fake.script(Reply(steps=[anthropic_stream(["a"])[0], SILENCE]))
    chunks = source.stream_message(NATIVE, OURS, CONTEXT)
    await anext(chunks)
    await chunks.aclose()
    await asyncio.wait_for(fake.closed.wait(), 1)


async def test_cached_blocks_in_results_count_in_the_limit(source, fake):
    cached = {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [
        {"role": "system", "content": [cached, cached]},
        {"role": "user", "content": [cached]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": [cached, cached]},
        {"role": "user", "content": [cached]},
    ]
    fake.script(json_reply(anthropic_message("x")))
    context = CallContext("r1", "u1")
    await source.complete({"model": "m", "messages": messages}, MODEL, context)
    sent = fake.requests[-1].json
    assert str(sent).count("cache_control") == 4
    assert "cache_control" not in str(sent["system"])
    assert context.warnings == ["left out cache_control of all but the last 4 blocks"]


@pytest.mark.parametrize(("maker", "is_demanded"), [("deepseek", True), ("kimi", True), ("anthropic", False)])
async def test_thinking_that_a_maker_demands_in_this_protocol(fake, short, maker, is_demanded):
    """Without a signature: none is ever invented, and these makers check none."""
    config = ProviderConfig("x", SourceKind.ANTHROPIC, fake.base_url, maker=maker, timeouts=short)
    opened = AnthropicSource(config)
    call = {"type": "tool_use", "id": "c", "name": "f", "input": {}}
    native = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "1"}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "own", "signature": "s"}, call]},
    ]
    fake.script(*[json_reply(anthropic_message("x"))] * 3)
    body = {"model": "m", "max_tokens": 9, "messages": native}
    await opened.complete_message(body, MODEL, CONTEXT)
    sent = fake.requests[-1].json["messages"]
    block = {"type": "thinking", "thinking": "unavailable"}
    assert sent == [
        native[0],
        {**native[1], "content": [block, call]} if is_demanded else native[1],
        *native[2:],
    ]
    await opened.complete_message({**body, "thinking": {"type": "disabled"}}, MODEL, CONTEXT)
    assert fake.requests[-1].json["messages"] == native
    made = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    chat = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": [made], "reasoning_content": "real"},
        {"role": "tool", "tool_call_id": "c", "content": "1"},
        {"role": "assistant", "content": None, "tool_calls": [made]},
        {"role": "tool", "tool_call_id": "c", "content": "1"},
    ]
    prepared = await opened.prepare({"model": "m", "messages": chat}, MODEL, CONTEXT)
    await opened.complete(prepared, MODEL, CONTEXT)
    turns = [turn["content"] for turn in fake.requests[-1].json["messages"] if turn["role"] == "assistant"]
    thoughts = [[each.get("thinking") for each in turn if each["type"] == "thinking"] for turn in turns]
    assert thoughts == ([["real"], ["unavailable"]] if is_demanded else [[], []])
    await opened.close()
