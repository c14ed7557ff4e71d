"""Routes of the messages dialect, and the probes of its clients."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import orjson
from aiohttp import web

from gatewayd import ids
from gatewayd.catalog.interfaces import NativeProtocol, NativeRefusalError
from gatewayd.completions.call_ids import call_ids_in
from gatewayd.completions.reasoning_marks import mark_of
from gatewayd.completions.records import Completion, CompletionChunk
from gatewayd.dialects.anthropic import dialect as anthropic
from gatewayd.dialects.anthropic.stream import MessageStream
from gatewayd.dialects.token_estimate import count_tokens
from gatewayd.errors import GatewayError, invalid
from gatewayd.http import body
from gatewayd.http.context import actor, request_id
from gatewayd.http.errors import log_broken, type_of
from gatewayd.http.public.completions.begun_chat import ChatBeginning
from gatewayd.http.public.completions.begun_reply import with_request
from gatewayd.http.reply_schemas import dialects, service
from gatewayd.http.responses.frames import FrameRenderer
from gatewayd.http.responses.provider_headers import reply_headers
from gatewayd.http.responses.repeatable import UNSTREAMED, RepeatableAnswers, stored
from gatewayd.http.responses.resumable import RenderedAnswer, StreamedRequest
from gatewayd.http.responses.streams import AnswerStreams, send_whole
from gatewayd.http.routes import FastHandler, Route, RouteAccess, RouteDialect, answer_row
from gatewayd.http.schemas import EVENT_STREAM, answers
from gatewayd.json_decoder import LARGE_LIMITS
from gatewayd.pipeline.endpoints import context_of, model_of
from gatewayd.pipeline.fast_path import ChatConversion, FastChats
from gatewayd.pipeline.pipeline import Pipeline
from gatewayd.pipeline.records import ChatAnswer, ChatRequest
from gatewayd.pipeline.token_counts import CountCaller, TokenCounts
from gatewayd.resumption.records import StoredReply

PATHS: Final = ("/api/v1/messages", "/api/message", "/v1/messages", "/ollama/v1/messages")

PROTOCOL: Final = RouteDialect.ANTHROPIC.value
"""Name of the protocol of the frames of these routes, in resumable streams."""

PROTOCOL_PREFIX: Final = "anthropic-"
MAX_PROTOCOL_HEADERS: Final = 32
"""Maximum number of headers of this protocol in one request."""

COUNT_HEADER: Final = "X-Gateway-Token-Count"
"""Says who counted tokens: provider, tokenizer or estimate."""

PING: Final = b'event: ping\ndata: {"type":"ping"}\n\n'


class MessageErrors:
    """Error frames of a stream in this dialect."""

    content_type: str | None = None

    def fail(self, error: GatewayError) -> bytes:
        """Return an `error` event, in the words of a provider of this protocol."""
        if isinstance(error, NativeRefusalError) and error.answer.protocol is NativeProtocol.ANTHROPIC:
            lines = error.answer.body.splitlines() or [b"{}"]
            return b"event: error\n" + b"".join(b"data: %b\n" % line for line in lines) + b"\n"
        return anthropic.render_error_event(error, type_of(error, RouteDialect.ANTHROPIC))


class NativeMessageFrames(MessageErrors):
    """Frames of a source with the same dialect, forwarded with its pings."""

    def feed(self, chunk: CompletionChunk) -> bytes:
        """Return the chunk's bytes."""
        return chunk.raw

    def ping(self) -> bytes:
        """Return a ping."""
        return PING

    def finish(self) -> bytes:
        """Return nothing: the source has ended its message."""
        return b""


class ConvertedMessageFrames(MessageErrors):
    """Frames rendered from the chunks of another dialect."""

    def __init__(self, chat: ChatRequest, answer: ChatAnswer) -> None:
        self._message = MessageStream(
            chat.model,
            count_tokens(chat.native or {}),
            ids.new_id,
            stop_sequences=_stops(chat),
            sources=answer.sources,
            mark=mark_of(answer.origin) if answer.origin else "",
            used_ids=call_ids_in(chat.body),
        )
        self._has_begun = False

    def feed(self, chunk: CompletionChunk) -> bytes:
        """Return the events of a chunk; the first ones include a ping, as clients expect it early."""
        frames = self._message.feed(chunk.events)
        if frames and not self._has_begun:
            self._has_begun = True
            frames += self._message.ping()
        return frames

    def ping(self) -> bytes:
        """Return a ping."""
        self._has_begun = True
        return self._message.ping()

    def finish(self) -> bytes:
        """Return the events that end the message."""
        return self._message.finish()


_row = partial(answer_row, dialect=RouteDialect.ANTHROPIC, tag="chat")


class MessageRoutes:
    """Routes of messages, whole or streamed, and of token counts."""

    def __init__(
        self,
        pipeline: Pipeline,
        counts: TokenCounts,
        *,
        body_limit: int,
        streams: AnswerStreams | None = None,
        repeatable: RepeatableAnswers | None = None,
        fast: FastChats | None = None,
    ) -> None:
        self._pipeline = pipeline
        self._counts = counts
        self._body_limit = body_limit
        self._streams = streams or AnswerStreams()
        self._repeatable = repeatable
        self._begin: FastHandler | None = None
        if fast is not None:
            dialect = RouteDialect.ANTHROPIC, _begun, _frames, CONVERSION
            self._begin = ChatBeginning(fast, self._streams, repeatable, body_limit, *dialect).begin

    def routes(self) -> Sequence[Route]:
        """Return the rows with the aliases and probes of clients."""
        return [
            *(_row(path, self.answer, "Answer a messages request", begin=self._begin) for path in PATHS),
            *(_row(f"{path}/count_tokens", self.count, "Count the tokens of a request") for path in PATHS),
            Route("GET", "/api", self.probe, RouteAccess.PUBLIC, "Answer the probe of a client", tag="chat"),
        ]

    @answers(service.status)
    async def probe(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"status": true}`."""
        return body.json_reply({"status": True})

    @answers(dialects.token_count)
    async def count(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"input_tokens": n}`; the header X-Gateway-Token-Count says who counted."""
        value = await body.read_object(request, self._body_limit, LARGE_LIMITS)
        _check(value)
        context = context_of(actor(request), request_id(request), client_headers=protocol_headers(request))
        found = await self._counts.count(value, CountCaller(actor(request), context))
        return body.json_reply({"input_tokens": found.tokens}, headers={COUNT_HEADER: found.method.value})

    @answers(dialects.messages_answer, EVENT_STREAM)
    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"model", "max_tokens", "messages", ...}` with a message, or with its events if streamed.

        Headers `anthropic-*` reach a provider of the same protocol; query parameters are ignored.
        """
        if self._repeatable is not None and self._repeatable.wants(request):
            return await self._repeat(request, self._repeatable)
        chat = _parsed(request, await body.read_object(request, self._body_limit, LARGE_LIMITS))
        asked = self._pipeline.run(chat, actor(request))
        if chat.stream:
            # A ping may come before the message starts.
            return await self._streams.begin(
                request, asked, NativeMessageFrames(), partial(self._send, request, chat)
            )
        return await self._send(request, chat, await asked)

    async def _repeat(self, request: web.Request, repeatable: RepeatableAnswers) -> web.StreamResponse:
        """Answer with a stream that can be resumed, or with the reply of an earlier request of the same
        key."""
        wanted = await repeatable.read(request, "message", self._body_limit)
        chat = _parsed(request, wanted.value)
        caller = actor(request)
        if chat.stream:
            asked = StreamedRequest(
                caller.user_id,
                PROTOCOL,
                NativeMessageFrames(),
                lambda: self._pipeline.run(chat, caller),
                partial(_rendered, chat),
                partial(log_broken, request),
            )
            return await repeatable.stream(request, asked, wanted.key)
        if wanted.is_resumable:
            chat.warnings.append(UNSTREAMED)
        if wanted.key is None:
            return await self._send(request, chat, await self._pipeline.run(chat, caller))

        async def whole() -> StoredReply:
            answer = await self._pipeline.run(chat, caller)
            return stored(_whole(chat, answer), reply_headers(answer, RouteDialect.ANTHROPIC))

        return await repeatable.whole(request, wanted.key, whole)

    async def _send(
        self,
        request: web.Request,
        chat: ChatRequest,
        answer: ChatAnswer,
        begun: web.StreamResponse | None = None,
    ) -> web.StreamResponse:
        headers = reply_headers(answer, RouteDialect.ANTHROPIC)
        if answer.chunks is not None:
            frames = _frames(chat, answer)
            return await self._streams.send(request, answer.chunks, frames, headers, begun=begun)
        if chat.stream:
            return await send_whole(request, _whole_frames(chat, answer), headers, begun)
        return body.raw_reply(request, _whole(chat, answer), headers)


def _parsed(request: web.Request, value: dict[str, Any]) -> ChatRequest:
    chat = _begun(request, value)
    anthropic.convert(chat)
    return chat


def _begun(request: web.Request, value: dict[str, Any]) -> ChatRequest:
    """Return a request that is to be converted before it goes to a source of another protocol."""
    chat = with_request(anthropic.parse_unconverted(value), request)
    chat.client_headers = protocol_headers(request)
    return chat


def _frames(chat: ChatRequest, answer: ChatAnswer) -> FrameRenderer:
    return NativeMessageFrames() if answer.is_native else ConvertedMessageFrames(chat, answer)


def _rendered(chat: ChatRequest, answer: ChatAnswer, _: str) -> RenderedAnswer:
    """Return a streamed answer as frames."""
    headers = reply_headers(answer, RouteDialect.ANTHROPIC)
    if answer.chunks is None:
        return RenderedAnswer(NativeMessageFrames(), _whole_frames(chat, answer), None, headers)
    return RenderedAnswer(_frames(chat, answer), b"", answer.chunks, headers)


def _whole_frames(chat: ChatRequest, answer: ChatAnswer) -> bytes:
    events = ConvertedMessageFrames(chat, answer)
    return events.feed(CompletionChunk(events=[_completion(answer).body])) + events.finish()


def _whole(chat: ChatRequest, answer: ChatAnswer) -> bytes:
    completion = _completion(answer)
    if answer.is_native:
        return completion.raw
    message = _message(completion, chat, answer.origin)
    if answer.sources:
        message["sources"] = answer.sources
    return orjson.dumps(message)


CONVERSION: Final = ChatConversion(anthropic.convert, _whole)


def protocol_headers(request: web.Request) -> dict[str, str]:
    """Return the `anthropic-*` headers of a request, with names in lower case.

    Raises invalid_request for over MAX_PROTOCOL_HEADERS of them, or one that is not printable ASCII.
    """
    found: dict[str, str] = {}
    for name, value in request.headers.items():
        name = name.lower()
        if not name.startswith(PROTOCOL_PREFIX):
            continue
        if not (value.isascii() and value.isprintable()):
            raise invalid(f"cannot accept header {name}: expected printable ASCII characters", param=name)
        # Several headers of one name are one list (RFC 9110, 5.3).
        found[name] = f"{found[name]},{value}" if name in found else value
        if len(found) > MAX_PROTOCOL_HEADERS:
            raise invalid(f"cannot accept over {MAX_PROTOCOL_HEADERS} headers {PROTOCOL_PREFIX}*", param=name)
    return found


def _check(value: dict[str, Any]) -> None:
    model_of(value)
    if not isinstance(value.get("messages"), list) or not value["messages"]:
        raise invalid("cannot accept messages: expected a list with one message at least", param="messages")


def _message(completion: Completion, chat: ChatRequest, origin: str) -> dict[str, Any]:
    converted = completion.body
    estimate = 0 if converted.get("usage") else count_tokens(chat.native or {})
    return anthropic.render_completion(
        converted,
        chat.model,
        ids.new_id,
        input_tokens=estimate,
        stop_sequences=_stops(chat),
        mark=mark_of(origin) if origin else "",
        used_ids=call_ids_in(chat.body),
    )


def _stops(chat: ChatRequest) -> list[str]:
    stops: list[str] = chat.body.get("stop") or []
    return stops


def _completion(answer: ChatAnswer) -> Completion:
    if answer.completion is None:
        raise ValueError("an answer has a completion or chunks")
    return answer.completion
