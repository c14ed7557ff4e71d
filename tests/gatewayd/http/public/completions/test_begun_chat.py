"""Tests for gatewayd.http.public.completions.begun_chat: messages on the fast path and on the general way."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest

from gatewayd import json_encoder
from gatewayd.completions.reasoning_memory import signature_key
from gatewayd.http.responses.streams import AnswerStreams
from gatewayd.metering.records import CallOutcome
from gatewayd.upstream.sources.config import UpstreamTimeouts
from tests.fakes.http.streaming_site import SOON, StreamedReply, StreamingSite, streaming_site
from tests.fakes.providers.upstream import (
    CUT,
    SILENCE,
    Reply,
    anthropic_events,
    anthropic_message,
    anthropic_stream,
    json_reply,
    openai_chunk,
    openai_completion,
    openai_stream,
    sse,
)

NATIVE: Final = "a.m"
CONVERTED: Final = "m"
MODELS: Final = (NATIVE, CONVERTED)
"""A model of the messages dialect, and one of the OpenAI dialect."""

IMPATIENT: Final = UpstreamTimeouts(connect=20.0, first_byte=1.0, idle=1.0)
HI: Final[list[Any]] = [{"role": "user", "content": "hi"}]
VERSION: Final = {"anthropic-version": "2023-06-01"}
MADE_ID: Final = re.compile(rb"(?:msg|toolu|srvtoolu)_[0-9a-f]{32}")
"""An id that the gateway has made."""


def messages(
    fields: Mapping[str, Any] | bytes, headers: Mapping[str, str] | None = None, path: str = "/v1/messages"
) -> bytes:
    """Return the bytes of a request for messages."""
    body = {"model": NATIVE, "max_tokens": 9, "messages": HI}
    data = fields if isinstance(fields, bytes) else json.dumps({**body, **fields}).encode()
    sent = {"Host": "a", "x-api-key": "key", "Content-Type": "application/json"}
    sent |= {"Content-Length": str(len(data)), **(VERSION if headers is None else headers)}
    lines = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
    return f"POST {path} HTTP/1.1\r\n{lines}\r\n".encode("utf-8", "surrogateescape") + data


class Both:
    """The same gateway with the fast path and without it."""

    def __init__(self, fast: StreamingSite, general: StreamingSite) -> None:
        self.fast = fast
        self.general = general

    async def compare(
        self, name: str, sent: bytes, is_fast: bool, reply: Reply | None = None, model: str = NATIVE
    ) -> StreamedReply:
        """Compare what both do with a request, and return the reply."""
        sites = self.fast, self.general
        found = await asyncio.gather(*(self._done(site, sent, reply, model) for site in sites))
        counts = [one.pop() for one in found]
        for fast, general in zip(*found, strict=True):
            assert fast == general, name
        assert counts == [is_fast, False], name
        answered = found[0][0]
        assert isinstance(answered, StreamedReply)
        return answered

    async def _done(self, site: StreamingSite, sent: bytes, reply: Reply | None, model: str) -> list[Any]:
        """Return what one of them does, and how many requests its fast path has answered."""
        warm = await site.connect()
        # A failure may have closed the connection to the provider.
        warm.writer.write(messages({"model": model}))
        assert (await warm.read()).status == 200
        await site.settled()
        for seen in (site.provider.requests, site.calls.ended, site.served.all):
            seen.clear()
        site.metrics.fast = 0
        if reply is not None:
            site.provider.script(reply)
        client = await site.connect()
        client.writer.write(sent)
        answered = await client.read()
        await site.settled()
        asked = [
            (one.path, one.query, {**one.headers, "Host": ""}, one.body) for one in site.provider.requests
        ]
        account, count = site.account(), site.metrics.fast
        site.provider.release.set()
        is_open = await client.is_open()
        site.provider.release.clear()
        assert len(set(answered.ids)) == 1
        answered.body = MADE_ID.sub(b"made", answered.body.replace(answered.ids[0].encode(), b"ID"))
        return [answered, len(answered.ids), asked, account, is_open, count]


@asynccontextmanager
async def both(**options: Any) -> AsyncIterator[Both]:
    async with (
        streaming_site(is_fast=True, has_messages=True, **options) as fast,
        streaming_site(is_fast=False, has_messages=True, **options) as general,
    ):
        yield Both(fast, general)


def text(words: str, **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **fields}


CACHE: Final = {"cache_control": {"type": "ephemeral"}}
TOOLS: Final[list[Any]] = [{"name": "f", "description": "d", "input_schema": {"type": "object"}}]
USE: Final = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}}
RESULT: Final = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "1"}
CALLED: Final = [*HI, {"role": "assistant", "content": [USE]}, {"role": "user", "content": [RESULT]}]

ANSWERED: Final[dict[str, dict[str, Any]]] = {
    "plain": {},
    "blocks": {"messages": [{"role": "user", "content": [text("übergrößen 🎉\u0000"), text("b", **CACHE)]}]},
    "system": {"system": "be kind"},
    "blocks of a system prompt": {"system": [text("be kind"), text("always", **CACHE)]},
    "history": {"messages": [*HI, {"role": "assistant", "content": "a"}, *HI]},
    "tools": {"tools": TOOLS, "tool_choice": {"type": "auto"}},
    "tool calls": {"messages": CALLED, "tools": TOOLS},
    "sampling": {"temperature": 0.5, "top_k": 3, "stop_sequences": ["x"], "metadata": {"user_id": "u"}},
    "thinking": {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2000},
    "unknown field": {"unknown_field": {"a": [1]}},
    "server blocks": {"messages": [{"role": "user", "content": [text("a"), {"type": "tool_reference"}]}]},
    "no stream": {"stream": False},
    "null stream": {"stream": None},
    "60 messages": {"messages": HI * 60},
    "60 KB": {"messages": [{"role": "user", "content": "x" * 60_000}]},
}
"""Requests that the fast path answers, for models of both dialects."""

NATIVE_ONLY: Final[dict[str, dict[str, Any]]] = {
    "thinking without a signature": {
        "messages": [
            *HI,
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "t"}, USE]},
            {"role": "user", "content": [RESULT]},
        ],
        "thinking": {"type": "enabled", "budget_tokens": 1024},
    },
    "a call of another form": {
        "messages": json.loads(json.dumps(CALLED).replace("toolu_1", "call:1")),
    },
    "betas in the body": {"betas": ["effort-2025-11-24"], "output_config": {"effort": "low"}},
    "former format": {"output_format": {"type": "json_schema", "schema": {}}},
    "unknown role": {"messages": [{"role": "god", "content": "hi"}]},
    "unknown block": {"messages": [{"role": "user", "content": [{"type": "riddle"}]}]},
    "no limit": {"max_tokens": None},
    "options of streams": {"stream_options": {"include_usage": True}},
    "document by address": {
        "messages": [
            {"role": "user", "content": [{"type": "document", "source": {"type": "url", "url": "http://a"}}]}
        ]
    },
}
"""Requests that the fast path answers for a model of the messages dialect alone."""

GENERAL: Final[dict[str, dict[str, Any] | bytes]] = {
    "no JSON": b"{",
    "empty": b"",
    "no object": b"[]",
    "deep": b'{"model":' + b"[" * 3000 + b"]" * 3000 + b"}",
    "upper case": {"Model": "x"},
    "unknown model": {"model": "nobody"},
    "no model": {"model": None},
    "no messages": {"messages": []},
    "messages of another type": {"messages": "hi"},
    "stream of another type": {"stream": "yes"},
    "lone surrogate": rb'{"model":"a.m","max_tokens":1,"messages":[{"role":"user","content":"\ud800"}]}',
    "huge integer": {"seed": 10**30},
    "time": {"system": "it is {{CURRENT_TIMEZONE}}"},
    "time in a part": {"system": [text("it is {{CURRENT_TIMEZONE}}", **CACHE)]},
    "files": {"files": [{"type": "file", "id": "x"}]},
    "tools of the gateway": {"tool_ids": ["x"]},
    "65 messages": {"messages": HI * 65},
    "over 64 KiB": {"messages": [{"role": "user", "content": "x" * 70_000}]},
    "over the limit": {"messages": [{"role": "user", "content": "x" * 120_000}]},
}
"""Requests that the handler answers."""


def streamed(fields: Mapping[str, Any], is_stream: bool) -> dict[str, Any]:
    return {"stream": True, **fields} if is_stream else dict(fields)


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("model", MODELS)
async def test_answered_requests_are_the_same_on_both_ways(model: str, is_stream: bool) -> None:
    async with both() as sites:
        for name, fields in ANSWERED.items():
            sent = messages({"model": model, **streamed(fields, is_stream)})
            reply = await sites.compare(name, sent, True, model=model)
            assert (reply.status, reply.is_whole) == (200, True), name
            assert ("x-gateway-warning" in reply.headers) == (
                model == CONVERTED and name in {"unknown field", "server blocks"}
            ), name


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "streamed"])
async def test_what_only_the_provider_checks_is_sent_alike(is_stream: bool) -> None:
    async with both() as sites:
        for name, fields in NATIVE_ONLY.items():
            await sites.compare(name, messages(streamed(fields, is_stream)), True)
            if name not in {"betas in the body", "former format", "options of streams"}:
                sent = messages({"model": CONVERTED, **streamed(fields, is_stream)})
                is_answered = name in {"thinking without a signature", "a call of another form"}
                reply = await sites.compare(name, sent, name == "a call of another form", model=CONVERTED)
                assert (reply.status == 200) == is_answered, name


async def test_a_warning_of_the_provider_is_told_alike() -> None:
    async with both() as sites:
        fields = NATIVE_ONLY["thinking without a signature"]
        reply = await sites.compare("thinking", messages(fields), True)
        assert "left out thinking" in reply.headers["x-gateway-warning"]
        sent = json.loads(sites.fast.provider.requests[0].body)
        assert "thinking" not in sent


@pytest.mark.parametrize("model", MODELS)
async def test_other_requests_are_left_to_the_handler(model: str) -> None:
    async with both() as sites:
        for name, fields in GENERAL.items():
            given = fields if isinstance(fields, bytes) else {"model": model, **fields}
            await sites.compare(name, messages(given), False, model=model)
        filled = {"system": [text("I am {{USER_NAME}}")]}
        reply = await sites.compare(
            "name", messages({"model": model, **filled}), model == CONVERTED, model=model
        )
        assert reply.status == 200
        assert b"{{" not in sites.fast.provider.requests[0].body


async def test_a_request_that_its_placeholders_make_long_is_left_to_the_handler(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(json_encoder, "MAX_STEP_WEIGHT", 3)
    async with both() as sites:
        for system, is_fast in (("I am {{USER_NAME}}", False), ("I am it", True)):
            sent = messages({"model": CONVERTED, "system": system})
            await sites.compare(system, sent, is_fast, model=CONVERTED)


HEADERS: Final[dict[str, tuple[dict[str, str], bool]]] = {
    "none of the protocol": ({}, True),
    "version": (VERSION, True),
    "own version and betas": ({"anthropic-version": "2099-01-01", "Anthropic-Beta": "a-1, b-2,a-1"}, True),
    "other headers of the protocol": (
        {"anthropic-user-profile-id": "p", "anthropic-dangerous": "true"},
        True,
    ),
    "no printable text": ({"anthropic-beta": "ü"}, False),
    "too many": ({f"anthropic-{number}": "x" for number in range(33)}, False),
    "bearer": ({"x-api-key": "", "Authorization": "Bearer key"}, True),
    "unknown key": ({"x-api-key": "other"}, False),
    "no key": ({"x-api-key": ""}, False),
    "own id": ({"X-Request-Id": "mine"}, True),
    "client": ({"x-claude-code-session-id": "s1", "User-Agent": "claude-cli/2"}, True),
    "page": ({"Origin": "https://evil.example.org"}, False),
    "compressed": ({"Content-Encoding": "gzip"}, False),
    "form": ({"Content-Type": "text/plain"}, False),
    "last": ({"Connection": "close"}, False),
}
"""Headers of requests, and whether the fast path answers them."""


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "streamed"])
async def test_headers_lead_to_the_same_reply(is_stream: bool) -> None:
    async with both() as sites:
        for model in MODELS:
            for name, (headers, is_fast) in HEADERS.items():
                sent = messages({"model": model, "stream": is_stream}, headers)
                await sites.compare(name, sent, is_fast, model=model)


async def test_every_path_of_messages_is_served() -> None:
    async with both() as sites:
        for path in ("/v1/messages", "/api/v1/messages", "/api/message", "/ollama/v1/messages"):
            for end, is_fast in (("", True), ("/", True), ("?beta=true", True), ("?beta=1", False)):
                reply = await sites.compare(path + end, messages({}, path=path + end), is_fast)
                assert reply.status == 200
        await sites.compare("count", messages({}, path="/v1/messages/count_tokens"), False)


ERROR: Final = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}
START: Final = b"".join(anthropic_stream(["Hel"])[:4])
WORDS: Final = b"".join(anthropic_stream(["Hel", "lo"]))
SIGNED: Final = {"type": "thinking", "thinking": "hm", "signature": "s" * 60}

REPLIES: Final[dict[str, tuple[Reply, bool]]] = {
    "tool calls": (json_reply(anthropic_message("", content=[USE], stop_reason="tool_use")), True),
    "thinking": (json_reply(anthropic_message("", content=[SIGNED, text("a")])), True),
    "limits": (json_reply(anthropic_message("a"), anthropic_ratelimit_requests_remaining="9"), True),
    "no usage": (json_reply(anthropic_message("a", usage=None)), True),
    "an event": (json_reply(anthropic_message("a", event={"type": "status"})), True),
    "long": (json_reply(anthropic_message("y" * 300_000)), False),
    "no content": (json_reply({"id": "1"}), False),
    "a list": (json_reply([1]), False),
    "error": (json_reply(ERROR, 529, Retry_After="7"), False),
    "error with status 200": (json_reply(ERROR), False),
    "key": (json_reply({"error": {"message": "bad key"}}, 401), False),
    "own words": (
        json_reply({"error": {"message": "no", "type": "invalid_request_error"}, "x": 1}, 400),
        False,
    ),
    "page": (Reply(content_type="text/html", steps=[b"<html>"]), False),
    "no JSON": (Reply(content_type="application/json", steps=[b"{"]), False),
    "cut before the head": (Reply(before=CUT), False),
    "cut": (Reply(content_type="application/json", steps=[b'{"content"', CUT]), False),
    "events": (Reply(steps=[WORDS]), False),
}
"""Whole answers of a provider of messages, and whether the fast path passes them on."""

STREAMS: Final[dict[str, tuple[Reply, bool]]] = {
    "words": (Reply(steps=anthropic_stream(["Hel", "lo", " ü🎉"])), True),
    "one read": (Reply(steps=[WORDS]), True),
    "bytes": (Reply(steps=[bytes([byte]) for byte in WORDS[:700]] + [WORDS[700:]]), True),
    "no names of events": (Reply(steps=[WORDS.replace(b"event: ", b": ")]), True),
    "carriage returns": (Reply(steps=[WORDS.replace(b"\n", b"\r\n")]), True),
    "no end": (Reply(steps=[WORDS.partition(b"event: message_stop")[0]]), True),
    "more behind the end": (Reply(steps=[WORDS, START]), True),
    "silence behind the end": (Reply(steps=[WORDS, SILENCE]), True),
    "error event": (Reply(steps=[START, anthropic_events(ERROR)]), True),
    "cut": (Reply(steps=[START, CUT]), True),
    "not finished": (Reply(steps=[START]), True),
    "stray text": (Reply(steps=[START, b"data: {nonsense\n\n"]), True),
    "unknown event": (Reply(steps=[START, anthropic_events({"type": "riddle"}), WORDS]), True),
    "thinking": (
        Reply(
            steps=[
                START,
                anthropic_events(
                    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta"} | SIGNED}
                ),
                WORDS.partition(b"event: content_block_stop")[2].join((b"event: content_block_stop", b"")),
            ]
        ),
        True,
    ),
    "limits": (Reply(200, {"anthropic-ratelimit-requests-remaining": "9"}, [WORDS]), True),
    "error at first": (Reply(steps=[anthropic_events(ERROR)]), False),
    "nothing": (Reply(steps=[]), False),
    "block before the start": (
        Reply(steps=[anthropic_events({"type": "content_block_stop", "index": 0})]),
        False,
    ),
    "whole": (json_reply(anthropic_message("whole")), False),
    "refused": (json_reply(ERROR, 529), False),
    "page": (Reply(content_type="text/html", steps=[b"<html>"]), False),
    "cut before the head": (Reply(before=CUT), False),
    "cut in the first event": (Reply(steps=[b'event: message_start\ndata: {"ty', CUT]), False),
}
"""Streams of a provider of messages, and whether the fast path forwards them."""

USAGE: Final = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
CALL: Final = [{"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
CHUNK: Final = sse(openai_chunk(content="a"))

CONVERTED_REPLIES: Final[dict[str, tuple[Reply, bool]]] = {
    "tool calls": (json_reply(openai_completion("", tool_calls=CALL)), True),
    "reasoning": (json_reply(openai_completion("x", reasoning_content="thought")), True),
    "no usage": (json_reply({**openai_completion("x"), "usage": None}), True),
    "limits": (json_reply(openai_completion("x"), x_ratelimit_remaining_requests="9"), True),
    "no choice": (json_reply({"choices": []}), False),
    "no choices": (json_reply({"id": "1"}), False),
    "refused": (json_reply({"error": {"message": "bad"}}, 400), False),
    "busy": (json_reply({"error": {"message": "slow"}}, 429, Retry_After="7"), False),
    "cut": (Reply(content_type="application/json", steps=[b'{"choices"', CUT]), False),
}
CONVERTED_STREAMS: Final[dict[str, tuple[Reply, bool]]] = {
    "words": (Reply(steps=openai_stream(["Hel", "lo", " ü🎉"])), True),
    "usage": (
        Reply(steps=[CHUNK, sse({**openai_chunk(), "choices": [], "usage": USAGE}), sse(b"[DONE]")]),
        True,
    ),
    "tool calls": (
        Reply(
            steps=[sse(openai_chunk(tool_calls=CALL)), sse(openai_chunk(None, "tool_calls")), sse(b"[DONE]")]
        ),
        True,
    ),
    "reasoning": (Reply(steps=[sse(openai_chunk(reasoning_content="hm")), *openai_stream(["a"])]), True),
    "cut": (Reply(steps=[CHUNK, b'data: {"choi', CUT]), True),
    "error event": (Reply(steps=[CHUNK, sse({"error": {"message": "overloaded", "code": 503}})]), True),
    "error at first": (Reply(steps=[sse({"error": {"message": "no"}})]), False),
    "whole": (json_reply(openai_completion("whole")), False),
    "refused": (json_reply({"error": {"message": "bad"}}, 400), False),
}
"""The same of a provider of the OpenAI protocol, for callers of messages."""

SCRIPTED: Final[dict[str, tuple[str, bool, Mapping[str, tuple[Reply, bool]]]]] = {
    "whole": (NATIVE, False, REPLIES),
    "streamed": (NATIVE, True, STREAMS),
    "converted": (CONVERTED, False, CONVERTED_REPLIES),
    "converted and streamed": (CONVERTED, True, CONVERTED_STREAMS),
}


@pytest.mark.parametrize("group", SCRIPTED)
async def test_answers_of_the_provider_are_passed_on_alike(group: str) -> None:
    model, is_stream, replies = SCRIPTED[group]
    sent = messages({"model": model, "stream": is_stream})
    async with both() as sites:
        for name, (reply, is_fast) in replies.items():
            await sites.compare(name, sent, is_fast, reply, model)
            calls = [one for one in sites.fast.provider.requests if one.path != "/v1/models"]
            # A connection that was lost before the answer is the one case in which a request is repeated.
            assert len(calls) == 2 + (reply.before is CUT), name
            if name == "thinking":
                known = [
                    site.memory.find_origin("u1", signature_key(SIGNED["signature"]))
                    for site in (sites.fast, sites.general)
                ]
                assert known[0]
                assert known[0] == known[1]


@pytest.mark.parametrize("model", MODELS)
async def test_a_provider_that_falls_silent_is_given_up_alike(model: str) -> None:
    begun = Reply(steps=[START if model == NATIVE else CHUNK, SILENCE])
    async with both(timeouts=IMPATIENT) as sites:
        for is_stream, reply, is_fast in (
            (False, Reply(before=SILENCE), False),
            (True, Reply(before=SILENCE), False),
            (True, begun, True),
        ):
            sent = messages({"model": model, "stream": is_stream})
            await sites.compare("silent", sent, is_fast, reply, model)


@pytest.mark.parametrize("model", MODELS)
async def test_pipelined_requests_are_answered_in_their_order(model: str) -> None:
    async with both() as sites:
        await sites.compare("warm", messages({"model": model}), True, model=model)
        client = await sites.fast.connect()
        for number in range(10):
            fields = {"model": model, "stream": number % 2 == 0}
            client.writer.write(messages(fields, {"X-Request-Id": f"r{number}"}))
        found = [await client.read() for _ in range(10)]
        assert [one.ids for one in found] == [(f"r{number}",) * 2 for number in range(10)]


@pytest.mark.parametrize("is_fast", [True, False])
async def test_a_client_that_leaves_ends_its_call(is_fast: bool) -> None:
    async with streaming_site(is_fast=is_fast, has_messages=True) as site:
        for is_stream in (False, True):
            warm = await site.connect()
            warm.writer.write(messages({}))
            assert (await warm.read()).status == 200
            await site.settled()
            site.calls.ended.clear()
            site.served.all.clear()
            site.provider.closed.clear()
            site.provider.script(Reply(steps=[START, SILENCE]) if is_stream else Reply(before=SILENCE))
            client = await site.connect()
            client.writer.write(messages({"stream": is_stream}))
            async with asyncio.timeout(SOON):
                await (client.reader.readuntil(b'"Hel"') if is_stream else site.provider.silent.wait())
                client.writer.close()
                await site.provider.closed.wait()
            await site.settled()
            assert [call.outcome for call in site.calls.ended] == [CallOutcome.CANCELLED]
            assert [one.status for one in site.served.all] == [499]


@pytest.mark.parametrize("model", MODELS)
async def test_a_silent_provider_has_pings(model: str) -> None:
    streams = AnswerStreams(seconds=0.02, head_seconds=0.02)
    steps: Sequence[Any] = (
        [START, SILENCE, WORDS] if model == NATIVE else [CHUNK, SILENCE, *openai_stream([])]
    )
    async with streaming_site(is_fast=True, has_messages=True, streams=streams) as site:
        warm = await site.connect()
        warm.writer.write(messages({"model": model}))
        assert (await warm.read()).status == 200
        site.provider.script(Reply(steps=steps))
        client = await site.connect()
        client.writer.write(messages({"model": model, "stream": True}))
        async with asyncio.timeout(SOON):
            for _ in range(4):
                await client.reader.readuntil(b"event: ping\n")
            site.provider.release.set()
            await client.reader.readuntil(b"message_stop")
        await site.settled()
        assert site.metrics.fast == 2
