"""Conversion of native runtime requests for models of other sources: hosted ones, and the built-in one."""

import time
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial

import orjson
from aiohttp import web

from gatewayd import ids
from gatewayd.catalog.records import Model
from gatewayd.catalog.runtimes import RuntimeModel
from gatewayd.completions.records import Body
from gatewayd.dialects.ollama import dialect as ollama
from gatewayd.dialects.ollama.dialect import ReplyTiming
from gatewayd.dialects.ollama.stream import ChatLines
from gatewayd.errors import ErrorKind, GatewayError, not_found
from gatewayd.http import body
from gatewayd.http.body import warning_headers
from gatewayd.http.context import actor, facts_of, request_id
from gatewayd.http.responses.ndjson import CONTENT_TYPE, failure_line, open_lines, send_failure, send_lines
from gatewayd.http.responses.provider_headers import reply_headers
from gatewayd.http.responses.sse import send_frames
from gatewayd.http.responses.streams import AnswerStreams
from gatewayd.http.routes import RouteDialect
from gatewayd.pipeline.embeddings import EmbeddingService
from gatewayd.pipeline.filters.inputs import RequestCaller
from gatewayd.pipeline.pipeline import Pipeline
from gatewayd.pipeline.records import ChatAnswer, ChatRequest

Nanoseconds = Callable[[], int]
"""A monotonic clock in nanoseconds."""


@dataclass(slots=True)
class _Watch:
    """Timing of one answer."""

    clock: ids.Clock
    nanoseconds: Nanoseconds
    started: int
    first: int = 0

    def note_first(self) -> None:
        """Record the time of the first chunk."""
        self.first = self.nanoseconds() - self.started

    def timing(self) -> ReplyTiming:
        """Return the measured durations up to now."""
        return ReplyTiming(self.clock(), self.nanoseconds() - self.started, self.first)


class RuntimeConversion:
    """Answers by the pipeline and the embeddings service, in the dialect of runtimes."""

    def __init__(
        self,
        pipeline: Pipeline,
        embeddings: EmbeddingService,
        *,
        streams: AnswerStreams | None = None,
        clock: ids.Clock = ids.now,
        nanoseconds: Nanoseconds = time.perf_counter_ns,
    ) -> None:
        self._pipeline = pipeline
        self._embeddings = embeddings
        self._streams = streams or AnswerStreams()
        self._clock = clock
        self._nanoseconds = nanoseconds

    def tags(self, models: Sequence[Model]) -> Sequence[Body]:
        """Return the list entries of models from other sources."""
        rendered = ollama.render_tags(models)["models"]
        return [
            {**tag, "urls": [], "connection_type": model.connection_type}
            for tag, model in zip(rendered, models, strict=True)
        ]

    async def answer(
        self, path: str, request: web.Request, form: Body, found: RuntimeModel
    ) -> web.StreamResponse:
        """Answer a request of the native API for a model that the caller may use."""
        model = found.model
        named = {**form, "model": model.id}
        match path:
            case "/api/chat":
                chat = ollama.parse_chat(named, is_local=found.is_local)
                return await self._chat(request, chat, found, generate=False)
            case "/api/generate":
                chat = ollama.parse_generate(named, is_local=found.is_local)
                return await self._chat(request, chat, found, generate=True)
            case "/api/embed":
                watch = self._watch()
                asked = ollama.parse_embed(named, is_local=found.is_local)
                vectors = await self._embed(request, asked, found)
                return body.json_reply(ollama.render_embed(vectors, model.id, watch.timing()))
            case "/api/embeddings":
                asked = ollama.parse_embeddings(named, is_local=found.is_local)
                vectors = await self._embed(request, asked, found)
                return body.json_reply(ollama.render_embeddings(vectors))
            case "/api/show":
                return body.json_reply(ollama.render_show(model))
            case _:
                raise not_found("path", path)

    async def _embed(self, request: web.Request, asked: Body, found: RuntimeModel) -> Body:
        facts = partial(facts_of, request)
        caller = RequestCaller(actor(request), request_id(request), facts, found.source)
        return await self._embeddings.run(asked, caller)

    async def _chat(
        self, request: web.Request, chat: ChatRequest, found: RuntimeModel, *, generate: bool
    ) -> web.StreamResponse:
        watch = self._watch()
        reason = ollama.load_reason(chat)
        if reason is not None:
            loaded = ollama.render_load(chat.model, reason, self._clock(), generate=generate)
            return await _reply(request, loaded, chat, warning_headers(chat.warnings))
        model_id, chat.request_id = chat.model, request_id(request)
        chat.facts, chat.source = partial(facts_of, request), found.source
        asked = self._pipeline.run(chat, actor(request))
        send_answer = partial(self._send, request, _Asked(chat, model_id, watch, generate))
        if not chat.stream:
            return await send_answer(await asked)
        return await self._streams.begin(request, asked, LineStreamOpening(), send_answer)

    async def _send(
        self,
        request: web.Request,
        asked: "_Asked",
        answer: ChatAnswer,
        begun: web.StreamResponse | None = None,
    ) -> web.StreamResponse:
        if answer.completion is not None:
            render = ollama.render_generate if asked.generate else ollama.render_chat
            whole = render(answer.completion.body, asked.model_id, asked.watch.timing())
            if answer.sources:
                whole["sources"] = answer.sources
            headers = reply_headers(answer, RouteDialect.OLLAMA)
            return await _reply(request, whole, asked.chat, headers, begun)
        asked.watch.note_first()
        lines = ChatLines(asked.model_id, generate=asked.generate, clock=self._clock, sources=answer.sources)
        return await self._stream(request, answer, lines, asked.watch, begun)

    async def _stream(
        self,
        request: web.Request,
        answer: ChatAnswer,
        lines: ChatLines,
        watch: _Watch,
        begun: web.StreamResponse | None,
    ) -> web.StreamResponse:
        if answer.chunks is None:
            raise GatewayError(ErrorKind.INTERNAL, "cannot stream an answer without chunks")
        async with aclosing(answer.chunks) as chunks:
            reply = begun or await open_lines(request, headers=reply_headers(answer, RouteDialect.OLLAMA))
            try:
                async with self._streams.keep_alive(request, reply, LineStreamOpening().ping) as silence:
                    async for chunk in chunks:
                        ready = lines.feed(chunk.events)
                        if ready:
                            await send_frames(request, reply, ready)
                            silence.touch()
                        if lines.is_failed:
                            break
                await send_lines(request, reply, lines.finish(watch.timing()))
            except GatewayError as error:
                await send_failure(request, reply, error)
            await reply.write_eof()
        return reply

    def _watch(self) -> _Watch:
        return _Watch(self._clock, self._nanoseconds, self._nanoseconds())


@dataclass(frozen=True, slots=True)
class _Asked:
    """One request; `model_id` is the model as the caller named it."""

    chat: ChatRequest
    model_id: str
    watch: _Watch
    generate: bool


class LineStreamOpening:
    """Frames of a stream of lines before its answer has begun."""

    content_type: str | None = CONTENT_TYPE

    def ping(self) -> bytes:
        """Return a blank before the next line, which readers of JSON ignore."""
        return b" "

    def fail(self, error: GatewayError) -> bytes:
        """Return the error line."""
        return failure_line(error)


async def _reply(
    request: web.Request,
    whole: Body,
    chat: ChatRequest,
    headers: dict[str, str],
    begun: web.StreamResponse | None = None,
) -> web.StreamResponse:
    """Answer at once, as an object or as the only line of a requested stream."""
    if not chat.stream:
        return body.json_reply(whole, headers=headers)
    reply = begun or await open_lines(request, headers=headers)
    await send_frames(request, reply, orjson.dumps(whole) + b"\n")
    await reply.write_eof()
    return reply
