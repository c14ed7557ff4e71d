"""Routes that answer requests of the Responses protocol."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import orjson
from aiohttp import web

from gatewayd.accounts.records import Actor
from gatewayd.catalog.interfaces import ForwardedAnswer
from gatewayd.catalog.service import Catalog
from gatewayd.completions.records import Body
from gatewayd.completions.refusal_reasons import RefusalReason, reason_of
from gatewayd.dialects.responses.countable import countable
from gatewayd.dialects.responses.request import background_refusal
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http import body
from gatewayd.http.context import actor, caller_of, facts_of, request_id
from gatewayd.http.errors import log_broken
from gatewayd.http.public.completions.messages import COUNT_HEADER
from gatewayd.http.public.completions.passthrough import ForwardedOpening, open_forwarded, send_opened
from gatewayd.http.public.responses.background import PROTOCOL, BackgroundRequest, BackgroundResponses
from gatewayd.http.public.responses.compaction import ResponseCompaction
from gatewayd.http.public.responses.conversion import PreparedResponse, ResponseConversion
from gatewayd.http.public.responses.forwarded_frames import read_whole, render_forwarded
from gatewayd.http.public.responses.frames import ForwardedFrames, ResponseFrames, render_failure
from gatewayd.http.public.responses.native import NativeResponses
from gatewayd.http.reply_schemas import dialects
from gatewayd.http.responses.provider_headers import reply_headers
from gatewayd.http.responses.repeatable import UNSTREAMED, RepeatableAnswers, stored
from gatewayd.http.responses.resumable import RenderedAnswer, StreamedRequest
from gatewayd.http.responses.sse import open_stream, send_frames
from gatewayd.http.responses.streams import AnswerStreams, send_whole
from gatewayd.http.routes import BASES, Route, RouteAccess, RouteDialect, answer_row
from gatewayd.http.schemas import EVENT_STREAM, answers
from gatewayd.json_decoder import LARGE_LIMITS
from gatewayd.pipeline.documents.placeholders import fill_system_messages
from gatewayd.pipeline.filters.inputs import RequestCaller
from gatewayd.pipeline.local_counts import LocalCounts
from gatewayd.pipeline.pipeline import Pipeline
from gatewayd.pipeline.records import ChatAnswer
from gatewayd.resumption.records import StoredReply

UPGRADE_CODE: Final = "websocket_unsupported"


@dataclass(frozen=True, slots=True)
class ResponseServices:
    """What the routes of the Responses protocol use."""

    pipeline: Pipeline
    native: NativeResponses
    conversion: ResponseConversion
    compaction: ResponseCompaction
    background: BackgroundResponses | None
    catalog: Catalog
    counts: LocalCounts


_row = partial(answer_row, dialect=RouteDialect.OPENAI, tag="responses")


class ResponseRoutes:
    """Routes of answers, token counts and compactions."""

    def __init__(
        self,
        services: ResponseServices,
        *,
        body_limit: int,
        streams: AnswerStreams | None = None,
        repeatable: RepeatableAnswers | None = None,
    ) -> None:
        self._services = services
        self._repeatable = repeatable
        self._body_limit = body_limit
        self._streams = streams or AnswerStreams()

    def routes(self) -> Sequence[Route]:
        """Return the rows for each base path."""
        return [
            row
            for base in (f"{base}/responses" for base in BASES)
            for row in (
                _row(base, self.respond, "Answer a request of the Responses protocol"),
                _row(f"{base}/input_tokens", self.count, "Estimate the tokens of a request"),
                _row(f"{base}/compact", self.compact, "Shorten a conversation"),
                Route(
                    "GET",
                    base,
                    self.upgrade,
                    RouteAccess.VERIFIED,
                    "Refuse a WebSocket",
                    dialect=RouteDialect.OPENAI,
                    tag="responses",
                    statuses=(),
                ),
            )
        ]

    async def upgrade(self, request: web.Request) -> web.StreamResponse:
        """Answer 426, at which clients that open a WebSocket use POST at once."""
        raise GatewayError(
            ErrorKind.INVALID_REQUEST, "cannot open a WebSocket: send requests with POST", code=UPGRADE_CODE
        )

    @answers(dialects.response_answer, EVENT_STREAM)
    async def respond(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"model", "input", ...}` with a response, or with its events when `stream` is true."""
        if self._repeatable is not None and self._repeatable.wants(request):
            return await self._repeat(request, self._repeatable)
        asked = await body.read_object(request, self._body_limit, LARGE_LIMITS)
        if asked.get("stream") is True:
            return await self._stream(request, asked, caller_of(request))
        return await self._send_whole(request, asked, caller_of(request))

    async def _repeat(self, request: web.Request, repeatable: RepeatableAnswers) -> web.StreamResponse:
        """Answer with a stream that can be resumed, or with the reply of an earlier request of the same
        key."""
        wanted = await repeatable.read(request, "response", self._body_limit)
        asked, caller = wanted.value, caller_of(request)
        if asked.get("stream") is True:
            if asked.get("background") is True and not await self._services.native.is_native(
                asked, caller.actor
            ):
                start = partial(self._start_stream, request, asked, caller)
                return await repeatable.started(
                    request, start, caller.actor.user_id, ForwardedFrames(), wanted.key
                )
            return await repeatable.stream(
                request, self._resumable_request(request, asked, caller), wanted.key
            )
        if wanted.is_resumable:
            caller.warnings.append(UNSTREAMED)
        if wanted.key is None:
            return await self._send_whole(request, asked, caller)
        return await repeatable.whole(request, wanted.key, partial(self._stored, request, asked, caller))

    async def _send_whole(
        self, request: web.Request, asked: Body, caller: RequestCaller
    ) -> web.StreamResponse:
        forwarded = await self._forward(asked, caller)
        if forwarded is not None:
            return await send_opened(request, forwarded, render_failure=render_failure)
        data, headers = await self._converted(request, asked, caller)
        return body.raw_reply(request, data, headers)

    async def _stored(self, request: web.Request, asked: Body, caller: RequestCaller) -> StoredReply:
        """Return a whole answer as a reply that can be repeated."""
        forwarded = await self._forward(asked, caller)
        if forwarded is not None:
            return stored(await read_whole(forwarded), forwarded.headers)
        return stored(*await self._converted(request, asked, caller))

    @answers(dialects.response_token_count)
    async def count(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"object": "response.input_tokens", "input_tokens"}`, counted or estimated."""
        asked = await body.read_object(request, self._body_limit, LARGE_LIMITS)
        forwarded = await self._forward(asked, caller_of(request), "/input_tokens")
        if forwarded is not None:
            return await send_opened(request, forwarded)
        services = self._services
        prepared = await services.conversion.prepare(asked, actor(request))
        fill_system_messages(prepared.chat, actor(request))
        model, _ = await services.catalog.get(prepared.chat.model, actor(request))
        family = model.family or model.upstream_id
        found = await services.counts.count(countable(prepared.chat.body), family, actor(request).user_id)
        return body.json_reply(
            {"object": "response.input_tokens", "input_tokens": found.tokens},
            headers={COUNT_HEADER: found.method.value},
        )

    @answers(dialects.response_compaction)
    async def compact(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"model", "input", ...}` with the user's messages and an encrypted summary.

        The reply is `{"id", "object": "response.compaction", "created_at", "output": [...], "usage"}`.
        """
        asked = await body.read_object(request, self._body_limit, LARGE_LIMITS)
        caller = caller_of(request)
        forwarded = await self._forward(asked, caller, "/compact")
        if forwarded is not None:
            return await send_opened(request, forwarded)
        made, answer = await self._services.compaction.run(asked, caller)
        return body.raw_reply(request, orjson.dumps(made), reply_headers(answer, RouteDialect.OPENAI))

    async def _forward(self, asked: Body, caller: RequestCaller, below: str = "") -> ForwardedOpening | None:
        answer = await self._services.native.pass_on(asked, caller, below)
        return None if answer is None else await open_forwarded(_ready(answer), caller)

    async def _converted(
        self, request: web.Request, asked: Body, caller: RequestCaller
    ) -> tuple[bytes, dict[str, str]]:
        """Return the whole answer to a converted request, with its headers."""
        prepared = await self._services.conversion.prepare(asked, caller.actor)
        prepared.chat.warnings += caller.warnings
        if prepared.request.is_background:
            queued, _ = await self._begin(request, prepared)
            return orjson.dumps(queued), body.warning_headers(prepared.chat.warnings)
        answer = await self._ask(request, prepared)
        stream = prepared.stream
        stream.sources, stream.origin = answer.sources, answer.origin
        stream.feed_whole({} if answer.completion is None else answer.completion.body)
        stream.finish()
        is_stored = await self._services.conversion.keep(prepared, actor(request), request_id(request))
        whole = {**stream.response, "store": is_stored}
        return orjson.dumps(whole), reply_headers(answer, RouteDialect.OPENAI)

    async def _stream(self, request: web.Request, asked: Body, caller: RequestCaller) -> web.StreamResponse:
        """Answer with events; a request that is converted has its own events from the first moment."""
        if not await self._services.native.is_native(asked, caller.actor):
            return await self._stream_converted(request, asked, caller.actor)
        opening = self._forward(asked, caller)

        async def follow(
            opened: ForwardedOpening | None, begun: web.StreamResponse | None
        ) -> web.StreamResponse:
            if opened is None:
                return await self._stream_converted(request, asked, caller.actor, begun)
            return await send_opened(request, opened, begun, render_failure=render_failure)

        return await self._streams.begin(request, opening, ForwardedFrames(), follow)

    async def _stream_converted(
        self, request: web.Request, asked: Body, caller: Actor, begun: web.StreamResponse | None = None
    ) -> web.StreamResponse:
        conversion = self._services.conversion
        prepared = await conversion.prepare(asked, caller)
        if prepared.request.is_background:
            background = self._background()
            _, stream_id = await self._begin(request, prepared)
            return await background.send(request, stream_id, caller.user_id, begun)
        frames = ResponseFrames(
            prepared.stream, partial(conversion.keep, prepared, caller, request_id(request))
        )
        send = partial(self._send, request, prepared, frames)
        asking = self._ask_streamed(request, prepared)
        if begun is None:
            return await self._streams.begin(request, asking, frames, send)
        try:
            answer = await asking
        except GatewayError as error:
            answer = error
        return await send(answer, begun)

    async def _start_stream(self, request: web.Request, asked: Body, caller: RequestCaller) -> str:
        """Begin a streamed response in the background; return the id of its stream."""
        prepared = await self._services.conversion.prepare(asked, caller.actor)
        return (await self._begin(request, prepared))[1]

    async def _begin(self, request: web.Request, prepared: PreparedResponse) -> tuple[Body, str]:
        """Begin a response in the background; return it as it is now, with the id of its stream."""
        made = BackgroundRequest(
            prepared,
            partial(self._ask, request, prepared),
            partial(self._services.conversion.record, prepared, actor(request)),
            partial(log_broken, request),
            request_id(request),
        )
        return await self._background().begin(made)

    def _background(self) -> BackgroundResponses:
        if self._services.background is None:
            raise background_refusal()
        return self._services.background

    async def _send(
        self,
        request: web.Request,
        prepared: PreparedResponse,
        frames: ResponseFrames,
        answer: ChatAnswer | GatewayError,
        begun: web.StreamResponse | None,
    ) -> web.StreamResponse:
        if isinstance(answer, GatewayError):
            log_broken(request, answer)
            return await send_whole(request, frames.fail(answer), {}, begun)
        prepared.stream.sources, prepared.stream.origin = answer.sources, answer.origin
        headers = reply_headers(answer, RouteDialect.OPENAI)
        if answer.chunks is not None:
            return await self._streams.send(
                request, answer.chunks, frames, headers, begun=begun, ending=frames.end
            )
        prepared.stream.feed_whole({} if answer.completion is None else answer.completion.body)
        reply = begun or await open_stream(request, headers)
        await send_frames(request, reply, frames.finish())
        await send_frames(request, reply, await frames.end())
        await reply.write_eof()
        return reply

    def _resumable_request(
        self, request: web.Request, asked: Body, caller: RequestCaller
    ) -> StreamedRequest[RenderedAnswer]:
        return StreamedRequest(
            caller.actor.user_id,
            PROTOCOL,
            ForwardedFrames(),
            partial(self._render, request, asked, caller),
            lambda rendered, _: rendered,
            partial(log_broken, request),
        )

    async def _render(self, request: web.Request, asked: Body, caller: RequestCaller) -> RenderedAnswer:
        """Return the answer to a streamed request as frames, forwarded or converted."""
        conversion = self._services.conversion
        if await self._services.native.is_native(asked, caller.actor):
            opened = await self._forward(asked, caller)
            if opened is not None:
                return await render_forwarded(opened, render_failure)
        prepared = await conversion.prepare(asked, caller.actor)
        frames = ResponseFrames(
            prepared.stream, partial(conversion.keep, prepared, caller.actor, request_id(request))
        )
        answer = await self._ask_streamed(request, prepared)
        if isinstance(answer, GatewayError):
            log_broken(request, answer)
            return RenderedAnswer(frames, frames.fail(answer))
        prepared.stream.sources, prepared.stream.origin = answer.sources, answer.origin
        headers = reply_headers(answer, RouteDialect.OPENAI)
        if answer.chunks is not None:
            return RenderedAnswer(frames, b"", answer.chunks, headers, frames.end)
        prepared.stream.feed_whole({} if answer.completion is None else answer.completion.body)
        return RenderedAnswer(frames, frames.finish(), None, headers, frames.end)

    async def _ask_streamed(
        self, request: web.Request, prepared: PreparedResponse
    ) -> ChatAnswer | GatewayError:
        """Return the answer, or the failure of a too long request, which clients expect in the stream.

        Codex shortens the conversation after such an event, and gives up after a status.
        """
        try:
            return await self._ask(request, prepared)
        except GatewayError as error:
            if reason_of(error.provider_code) is not RefusalReason.TOO_LONG:
                raise
            return error

    async def _ask(self, request: web.Request, prepared: PreparedResponse) -> ChatAnswer:
        chat = prepared.chat
        chat.request_id = request_id(request)
        chat.facts = partial(facts_of, request)
        return await self._services.pipeline.run(chat, actor(request))


async def _ready(answer: ForwardedAnswer) -> ForwardedAnswer:
    return answer
