"""Tests for gatewayd.http.responses.forwarder: the same streams on the fast path and on the general way."""

import asyncio
import gc
import json
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

import pytest

from gatewayd.accounts.change_notifier import AccountChange
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.fast_path import LEFT
from gatewayd.http.responses.forwarder import StreamForwarder
from gatewayd.http.responses.streams import AnswerStreams
from gatewayd.metering.meter import CallMeter
from gatewayd.metering.records import CallOutcome, MeteredCall
from gatewayd.pipeline.begun_stream import BegunChatStream
from gatewayd.upstream.sources.config import UpstreamTimeouts
from gatewayd.upstream.streams.sse import ChunkReader
from tests.fakes.http.streaming_site import SOON, StreamedReply, StreamingSite, chat, streaming_site
from tests.fakes.providers.upstream import (
    CUT,
    SILENCE,
    Reply,
    Step,
    json_reply,
    openai_chunk,
    openai_completion,
    openai_stream,
    sse,
)

USAGE: Final = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
USAGE_EVENT: Final = sse({**openai_chunk(), "choices": [], "usage": USAGE})
CALL: Final = [{"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
WORDS: Final = b"".join(openai_stream(["Hel", "lo"]))
TIMEOUTS: Final = UpstreamTimeouts(connect=5.0, first_byte=20.0, idle=0.3)

Answer = Sequence[bytes | Step]

FAST: Final[dict[str, Answer]] = {
    "words": openai_stream(["Hel", "lo", " übergrößen 🎉"]),
    "one read": [WORDS],
    "usage alone is hidden": [*openai_stream(["a"])[:-1], USAGE_EVENT, sse(b"[DONE]")],
    "usage first": [USAGE_EVENT, WORDS],
    "usage with text": [sse({**openai_chunk(content="a"), "usage": USAGE}), WORDS],
    "comments": [b": one\n\n", sse(openai_chunk(content="a")), b": two\n\n", WORDS],
    "carriage returns": [WORDS.replace(b"\n", b"\r\n")],
    "tool calls": [sse(openai_chunk(tool_calls=CALL)), sse(openai_chunk(None, "tool_calls")), sse(b"[DONE]")],
    "reasoning": [sse(openai_chunk(reasoning_content="hm")), WORDS],
    "an event of the gateway": [sse({**openai_chunk(content="a"), "event": {"type": "status"}}), WORDS],
    "no end word": openai_stream(["a"])[:-1],
    "more behind the end": [WORDS, sse(openai_chunk(content="late"))],
    "silence behind the end": [WORDS, SILENCE],
    "long": [sse(openai_chunk(content=f"{number:06}" * 20)) for number in range(400)] + [WORDS],
    "long in one write": [b"".join(sse(openai_chunk(content=f"{n:05}")) for n in range(3000)) + WORDS],
    "cut in a chunk": [sse(openai_chunk(content="a")), b'data: {"choi', CUT],
    "cut between chunks": [sse(openai_chunk(content="a")), CUT],
    "not finished": [sse(openai_chunk(content="a"))],
    "silent": [sse(openai_chunk(content="a")), SILENCE],
    "error event": [sse(openai_chunk(content="a")), sse({"error": {"message": "overloaded", "code": 503}})],
    "no JSON": [sse(openai_chunk(content="a")), b"data: {nonsense\n\n"],
    "text": [sse(openai_chunk(content="a")), b'{"error": {"message": "stray"}}\n'],
    "stray text at the end": [sse(openai_chunk(content="a")), b"no event"],
}
"""Answers that the fast path forwards."""

GENERAL: Final[dict[str, Reply]] = {
    "error at first": Reply(steps=[sse({"error": {"message": "no"}})]),
    "error behind hidden usage": Reply(steps=[USAGE_EVENT, sse({"error": {"message": "no"}})]),
    "nothing": Reply(steps=[]),
    "the end alone": Reply(steps=[sse(b"[DONE]")]),
    "comments alone": Reply(steps=[b": x\n\n", b": y\n\n"]),
    "many comments": Reply(steps=[b": " + b"x" * 5000 + b"\n\n"] * 20 + [WORDS]),
    "whole": json_reply(openai_completion("whole")),
    "page": Reply(content_type="text/html", steps=[b"<html>"]),
    "refused": json_reply({"error": {"message": "bad"}}, 400),
    "broken": json_reply({"error": {"message": "broken"}}, 500),
    "cut before the head": Reply(before=CUT),
    "cut behind the head": Reply(steps=[CUT]),
    "cut in the first chunk": Reply(steps=[b'data: {"choi', CUT]),
    "silent behind the head": Reply(steps=[b'data: {"choi', SILENCE]),
}
"""Answers that the fast path leaves to the handler."""


def site(*, is_fast: bool, **options: Any) -> AbstractAsyncContextManager[StreamingSite]:
    return streaming_site(is_fast=is_fast, **{"timeouts": TIMEOUTS, **options})


async def told(reply: Reply, *, is_fast: bool, **fields: Any) -> tuple[StreamedReply, list[Any], bool, int]:
    """Return a reply, what was counted, whether the connection stays open, and the count of fast requests."""
    async with site(is_fast=is_fast) as found:
        found.provider.script(reply)
        client = await found.connect()
        client.ask(**fields)
        streamed = await client.read()
        await found.settled()
        account, fast = found.account(), found.metrics.fast
        found.provider.release.set()
        is_open = await client.is_open()
        assert len([one for one in found.provider.requests if one.method == "POST"]) >= 2
        return streamed, account, is_open, fast


@pytest.mark.parametrize("fields", [{}, {"stream_options": {"include_usage": True}}], ids=["", "usage"])
@pytest.mark.parametrize("name", FAST)
async def test_streams_are_the_same_on_both_ways(name: str, fields: dict[str, Any]) -> None:
    reply = Reply(steps=FAST[name])
    *found, count = await told(reply, is_fast=True, **fields)
    *general, _ = await told(reply, is_fast=False, **fields)
    assert found == general
    assert count == 1


@pytest.mark.parametrize("name", GENERAL)
async def test_answers_that_begin_oddly_are_left_to_the_handler(name: str) -> None:
    *found, count = await told(GENERAL[name], is_fast=True)
    *general, _ = await told(GENERAL[name], is_fast=False)
    assert found == general
    assert count == 0


async def test_a_stream_may_be_split_at_every_byte() -> None:
    short = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "ü🎉"}}]}
    data = sse(short) + b": x\r\n\r\n" + sse(b"[DONE]")
    whole, *_ = await told(Reply(steps=[data]), is_fast=False)
    async with site(is_fast=True) as found:
        client = await found.connect()
        for place in range(1, len(data)):
            found.provider.script(Reply(steps=[data[:place], data[place:]]))
            client.ask()
            assert await client.read() == whole
            await asyncio.sleep(0)
        found.provider.script(Reply(steps=[bytes([byte]) for byte in data]))
        client.ask()
        assert await client.read() == whole
        await found.settled()
        assert found.metrics.fast > len(data) * 0.9
        assert {call.outcome for call in found.calls.ended} == {CallOutcome.ANSWERED}


@pytest.mark.parametrize("is_fast", [True, False])
async def test_a_client_that_leaves_in_mid_stream_ends_the_call(is_fast: bool) -> None:
    async with site(is_fast=is_fast, timeouts=UpstreamTimeouts()) as found:
        found.provider.script(Reply(steps=[sse(openai_chunk(content="a")), SILENCE]))
        client = await found.connect()
        client.ask()
        await client.reader.readuntil(b'"a"')
        client.writer.close()
        async with asyncio.timeout(SOON):
            await found.provider.closed.wait()
        await found.settled()
        assert [call.outcome for call in found.calls.ended] == [CallOutcome.CANCELLED]
        assert [one.status for one in found.served.all] == [499]
        assert not found.meter.calls
        assert not found.revocation.running()


@pytest.mark.parametrize("is_fast", [True, False])
async def test_a_slow_reader_gets_everything_and_holds_the_provider(
    is_fast: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    holds: list[object] = []
    hold = StreamForwarder._hold
    monkeypatch.setattr(StreamForwarder, "_hold", lambda one: [holds.append(one), hold(one)])
    event = sse(openai_chunk(content="x" * 10_000))
    timeouts = UpstreamTimeouts(idle=1.0)
    async with site(is_fast=is_fast, timeouts=timeouts) as found:
        found.provider.script(Reply(steps=[event] * 600 + openai_stream(["a"])))
        client = await found.connect()
        client.ask()
        await client.reader.readuntil(b'"x')
        async with asyncio.timeout(SOON):
            while is_fast and not holds:
                await asyncio.sleep(0.005)
        # The time that the client does not read is none of a silent provider.
        await asyncio.sleep(1.2 * timeouts.idle)
        assert (await client.read_end()).endswith(b"[DONE]\n\n\r\n0\r\n\r\n")
        await found.settled()
        assert found.calls.ended[0].outcome is CallOutcome.ANSWERED
        assert found.calls.ended[0].characters == 600 * 10_000 + 1
        assert found.metrics.fast == is_fast
        assert await client.is_open()


@pytest.mark.parametrize("is_fast", [True, False])
async def test_a_silent_provider_has_keep_alives(is_fast: bool) -> None:
    streams = AnswerStreams(seconds=0.02, head_seconds=0.02)
    async with site(is_fast=is_fast, streams=streams, timeouts=UpstreamTimeouts()) as found:
        found.provider.script(Reply(steps=[sse(openai_chunk(content="a")), SILENCE, WORDS]))
        client = await found.connect()
        client.ask()
        async with asyncio.timeout(SOON):
            await client.reader.readuntil(b'"a"')
            for _ in range(3):
                await client.reader.readuntil(b": keep-alive\n\n")
            found.provider.release.set()
            await client.reader.readuntil(b"[DONE]\n\n\r\n0\r\n\r\n")


async def test_a_late_first_chunk_has_an_early_head_by_the_handler() -> None:
    streams = AnswerStreams(seconds=0.02, head_seconds=0.05)
    async with site(is_fast=True, streams=streams, timeouts=UpstreamTimeouts()) as found:
        found.provider.script(Reply(before=SILENCE, steps=[WORDS]))
        client = await found.connect()
        client.ask()
        async with asyncio.timeout(SOON):
            await client.reader.readuntil(b": keep-alive\n\n")
            assert streams.is_waiting
            found.provider.release.set()
            await client.reader.readuntil(b"[DONE]\n\n\r\n0\r\n\r\n")
        await found.settled()
        assert found.metrics.fast == 0
        assert [call.attempts for call in found.calls.ended] == [1]
        assert len([one for one in found.provider.requests if one.method == "POST"]) == 1


@pytest.mark.parametrize("is_fast", [True, False])
async def test_a_stop_fails_what_has_no_first_chunk(is_fast: bool) -> None:
    async with site(is_fast=is_fast, timeouts=UpstreamTimeouts()) as found:
        found.provider.script(Reply(before=SILENCE))
        client = await found.connect()
        client.ask()
        async with asyncio.timeout(SOON):
            await found.provider.silent.wait()
        assert found.streams.is_waiting
        await found.server.stop_listening()
        found.streams.stop()
        reply = await client.read()
        assert reply.status == 503
        assert json.loads(reply.body)["error"]["message"] == "cannot get an answer: the gateway stops"
        await found.settled()
        assert [call.outcome for call in found.calls.ended] == [CallOutcome.CANCELLED]
        assert not found.streams.is_waiting


@pytest.mark.parametrize("is_fast", [True, False])
async def test_a_stream_that_is_asked_for_after_a_stop_fails_at_once(is_fast: bool) -> None:
    async with site(is_fast=is_fast, timeouts=UpstreamTimeouts()) as found:
        client = await found.connect()
        found.streams.stop()
        client.ask()
        reply = await client.read()
        assert reply.status == 503
        assert json.loads(reply.body)["error"]["message"] == "cannot get an answer: the gateway stops"
        assert not found.streams.is_waiting
        assert not [one for one in found.provider.requests if one.method == "POST"]


@pytest.mark.parametrize("is_fast", [True, False])
async def test_a_failure_within_the_gateway_is_told_and_logged(
    is_fast: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    error = GatewayError(ErrorKind.INTERNAL, "cannot go on")

    def fail(reader: ChunkReader, read: bytes) -> None:
        raise error

    async with site(is_fast=is_fast, timeouts=UpstreamTimeouts()) as found:
        found.provider.script(Reply(steps=[sse(openai_chunk(content="a")), SILENCE, WORDS]))
        client = await found.connect()
        client.ask()
        await client.reader.readuntil(b'"a"')
        monkeypatch.setattr(ChunkReader, "feed", fail)
        found.provider.release.set()
        assert b"cannot go on" in await client.read_end()
        await found.settled()
        assert [call.outcome for call in found.calls.ended] == [CallOutcome.CUT]
        assert "stream broke: cannot go on" in caplog.messages


async def test_an_ended_stream_waits_for_no_garbage_collector() -> None:
    async with site(is_fast=True, timeouts=UpstreamTimeouts()) as found:
        client = await found.connect()
        client.ask()
        await client.read()
        await found.settled()
        gc.collect()
        gc.disable()
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            client.ask()
            await client.read()
            await found.settled()
            gc.collect()
            left = {type(one).__name__ for one in gc.garbage}
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()
        assert found.metrics.fast == 2
        assert not left & {"PlainRequest", "ChatRequest", "StreamForwarder", "ProviderResponse"}


@pytest.mark.parametrize("is_fast", [True, False])
async def test_a_drain_lets_a_stream_end(is_fast: bool) -> None:
    async with site(is_fast=is_fast, timeouts=UpstreamTimeouts()) as found:
        found.provider.script(Reply(steps=[sse(openai_chunk(content="a")), SILENCE, WORDS]))
        client = await found.connect()
        client.ask()
        await client.reader.readuntil(b'"a"')
        await found.server.stop_listening()
        assert found.server.unanswered == 1
        found.provider.release.set()
        async with asyncio.timeout(SOON):
            await client.reader.readuntil(b"[DONE]\n\n\r\n0\r\n\r\n")
            while found.server.look(listeners=False):
                await asyncio.sleep(0.01)
        assert await client.reader.read() == b""
        assert found.calls.ended[0].outcome is CallOutcome.ANSWERED


@pytest.mark.parametrize("is_fast", [True, False])
async def test_a_drain_before_the_first_chunk_makes_the_stream_the_last(is_fast: bool) -> None:
    async with site(is_fast=is_fast, timeouts=UpstreamTimeouts()) as found:
        found.provider.script(Reply(before=SILENCE, steps=[WORDS]))
        client = await found.connect()
        client.ask()
        await found.provider.silent.wait()
        await found.server.stop_listening()
        found.provider.release.set()
        reply = await client.read()
        assert reply.is_whole
        assert reply.headers["connection"] == "close"
        assert await client.reader.read() == b""


@pytest.mark.parametrize("is_fast", [True, False])
async def test_the_close_of_the_server_cuts_a_stream(is_fast: bool) -> None:
    async with site(is_fast=is_fast, timeouts=UpstreamTimeouts()) as found:
        found.provider.script(Reply(steps=[sse(openai_chunk(content="a")), SILENCE]))
        client = await found.connect()
        client.ask()
        await client.reader.readuntil(b'"a"')
        async with asyncio.timeout(SOON):
            await found.server.close()
        assert b"DONE" not in await client.reader.read()
        assert found.calls.ended[0].outcome is CallOutcome.CANCELLED


@pytest.mark.parametrize("is_fast", [True, False])
async def test_a_lost_access_cuts_a_stream(is_fast: bool) -> None:
    async with site(is_fast=is_fast, timeouts=UpstreamTimeouts()) as found:
        found.provider.script(Reply(steps=[sse(openai_chunk(content="a")), SILENCE]))
        client = await found.connect()
        client.ask()
        await client.reader.readuntil(b'"a"')
        found.revocation.on_change(AccountChange("u1", is_out=True))
        async with asyncio.timeout(SOON):
            with pytest.raises((asyncio.IncompleteReadError, ConnectionResetError)):
                await client.reader.readuntil(b"0\r\n\r\n")
            await found.provider.closed.wait()
        await found.settled()
        assert [call.outcome for call in found.calls.ended] == [CallOutcome.CANCELLED]
        assert [one.status for one in found.served.all] == [200]
        assert not found.revocation.running()


async def test_a_lost_access_before_the_first_chunk_is_refused_by_the_handler() -> None:
    async with site(is_fast=True, timeouts=UpstreamTimeouts()) as found:
        found.provider.script(Reply(before=SILENCE))
        client = await found.connect()
        client.ask()
        await found.provider.silent.wait()
        found.revocation.on_change(AccountChange("u1", is_out=True))
        # The account of this test is still known: a real one is refused now.
        assert (await client.read()).status == 200
        await found.settled()
        outcomes = [call.outcome for call in found.calls.ended]
        assert outcomes == [CallOutcome.CANCELLED, CallOutcome.ANSWERED]


async def test_requests_behind_a_stream_are_answered_in_turn() -> None:
    async with site(is_fast=True, timeouts=UpstreamTimeouts()) as found:
        found.provider.script(Reply(steps=[sse(openai_chunk(content="a")), SILENCE, WORDS]))
        client = await found.connect()
        client.ask()
        await client.reader.readuntil(b'"a"')
        client.writer.write(chat() + chat(stream=False))
        await asyncio.sleep(0.01)
        found.provider.release.set()
        async with asyncio.timeout(SOON):
            await client.reader.readuntil(b"[DONE]\n\n\r\n0\r\n\r\n")
        assert (await client.read()).body.endswith(b"[DONE]\n\n")
        assert (await client.read()).headers["content-type"].startswith("application/json")
        for _ in range(3):
            client.ask()
            assert (await client.read()).is_whole
        await found.settled()
        assert len(found.calls.ended) == 6


async def test_many_streams_at_once_keep_their_content() -> None:
    count = 200

    async def follow(found: StreamingSite, number: int) -> None:
        client = await found.connect()
        client.ask(messages=[{"role": "user", "content": f"<{number}>"}])
        text = (await client.read()).body.decode()
        said = [json.loads(line[6:]) for line in text.split("\n\n") if line.startswith("data: {")]
        words = [one["choices"][0]["delta"].get("content", "") for one in said]
        assert "".join(words) == f"<{number}>" * 20

    async with site(is_fast=True, timeouts=UpstreamTimeouts(), idle_connections=60) as found:
        default = found.provider._default

        def echo(request: Any) -> Reply:
            if request.method != "POST":
                return default(request)
            return Reply(steps=openai_stream([request.json["messages"][-1]["content"]] * 20))

        found.provider._default = echo  # type: ignore[method-assign]
        async with asyncio.timeout(3 * SOON):
            await asyncio.gather(*[follow(found, number) for number in range(count)])
        await found.settled()
        assert found.metrics.fast >= 50
        assert len(found.calls.ended) == count
        assert not found.meter.calls


async def test_a_defect_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, found: failures.append(found.get("exception")))
    async with site(is_fast=True, timeouts=UpstreamTimeouts()) as found:
        found.provider.script(Reply(steps=[sse(openai_chunk(content="a")), SILENCE, WORDS]))
        client = await found.connect()
        client.ask()
        await client.reader.readuntil(b'"a"')

        def fail(forwarder: StreamForwarder, chunk: object) -> None:
            raise ValueError("a defect")

        monkeypatch.setattr(StreamForwarder, "_forward", fail)
        found.provider.release.set()
        async with asyncio.timeout(SOON):
            assert b"DONE" not in await client.reader.read()
        await found.settled()
        assert [one.status for one in found.served.all] == [500]
        assert any(isinstance(one, ValueError) for one in failures)
        assert not found.meter.calls


async def test_a_defect_before_the_first_chunk_leaves_the_stream_to_the_handler(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(begun: BegunChatStream) -> None:
        raise ValueError("a defect")

    async with site(is_fast=True, timeouts=UpstreamTimeouts()) as found:
        monkeypatch.setattr(BegunChatStream, "take", fail)
        found.provider.script(Reply(steps=[sse(openai_chunk(content="a")), SILENCE, WORDS]))
        client = await found.connect()
        client.ask()
        await client.reader.readuntil(b'"a"')
        found.provider.release.set()
        assert b"[DONE]" in await client.read_end()
        await found.settled()
        assert [call.outcome for call in found.calls.ended] == [CallOutcome.ANSWERED]
        assert len([one for one in found.provider.requests if one.method == "POST"]) == 1
        assert LEFT in caplog.messages
        assert found.metrics.fast == 0


async def test_a_defect_at_the_begin_of_a_stream_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(forwarder: StreamForwarder, ended: object) -> None:
        raise ValueError("a defect")

    failures: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, found: failures.append(found.get("exception")))
    async with site(is_fast=True, timeouts=UpstreamTimeouts()) as found:
        monkeypatch.setattr(StreamForwarder, "begin", fail)
        found.provider.script(Reply(steps=[sse(openai_chunk(content="a")), SILENCE]))
        client = await found.connect()
        client.ask()
        async with asyncio.timeout(SOON):
            assert await client.reader.read() == b""
            await found.provider.closed.wait()
        await found.settled()
        assert [call.outcome for call in found.calls.ended] == [CallOutcome.CANCELLED]
        assert [one.status for one in found.served.all] == [500]
        assert any(isinstance(one, ValueError) for one in failures)
        assert not found.revocation.running()


@pytest.mark.parametrize("is_stream", [True, False])
async def test_a_defect_of_a_watcher_lets_the_connection_go_on(
    is_stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(served: object) -> None:
        raise ValueError("a defect")

    failures: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, found: failures.append(found.get("exception")))
    async with site(is_fast=True, timeouts=UpstreamTimeouts()) as found:
        client = await found.connect()
        monkeypatch.setattr(found.served, "served", fail)
        client.ask(stream=is_stream)
        assert (await client.read()).is_whole
        await found.settled()
        monkeypatch.undo()
        assert await client.is_open()
        assert any(isinstance(one, ValueError) for one in failures)
        assert not found.meter.calls


@pytest.mark.parametrize("is_stream", [True, False])
async def test_a_defect_of_an_observer_of_calls_leaves_no_request_at_the_provider(
    is_stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = CallMeter.start

    def fail(meter: CallMeter, call: MeteredCall) -> None:
        monkeypatch.setattr(CallMeter, "start", start)
        raise ValueError("a defect")

    async with site(is_fast=True, timeouts=UpstreamTimeouts()) as found:
        client = await found.connect()
        monkeypatch.setattr(CallMeter, "start", fail)
        client.ask(stream=is_stream)
        assert (await client.read()).status == 200
        await found.settled()
        assert [call.outcome for call in found.calls.ended] == [CallOutcome.CANCELLED, CallOutcome.ANSWERED]
        assert not found.meter.calls
