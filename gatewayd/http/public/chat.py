"""Chat completions (interface specification 4.2)."""

import logging
from collections.abc import Sequence
from contextlib import aclosing
from typing import Final

from aiohttp import web

from gatewayd import ids
from gatewayd.catalog.replies import DONE
from gatewayd.chat.pipeline import Pipeline
from gatewayd.chat.records import Answer, ChatRequest
from gatewayd.dialects import openai
from gatewayd.errors import GatewayError
from gatewayd.http import body
from gatewayd.http.context import actor, request_id
from gatewayd.http.errors import STATUSES
from gatewayd.http.public.bases import BASES
from gatewayd.http.routes import Access, Dialect, Route
from gatewayd.http.sse import open_stream, send
from gatewayd.http.warnings import warning_headers

log = logging.getLogger(__name__)

PATHS: Final = tuple(f"{base}/chat/completions" for base in BASES)


class ChatRoutes:
    """Answers chat completions, whole or streamed."""

    def __init__(self, pipeline: Pipeline, *, body_limit: int, clock: ids.Clock = ids.now) -> None:
        self._pipeline = pipeline
        self._body_limit = body_limit
        self._clock = clock

    def routes(self) -> Sequence[Route]:
        """Return the rows of 4.2 with the aliases that OpenAI clients use."""
        return [
            Route(
                "POST",
                path,
                self.complete,
                Access.VERIFIED,
                "Answer a chat request",
                dialect=Dialect.OPENAI,
                tag="chat",
                interruptible=True,
            )
            for path in PATHS
        ]

    async def complete(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"model", "messages", ...}` with a completion, or with chunks when `stream` is true."""
        chat = openai.parse_request(await body.read_object(request, self._body_limit))
        chat.request_id = request_id(request)
        answer = await self._pipeline.run(chat, actor(request))
        headers = warning_headers(answer.warnings)
        if answer.completion is not None and not chat.stream:
            headers["Content-Type"] = "application/json"
            return web.Response(body=answer.completion.raw, headers=headers)
        return await self._stream(request, chat, answer, headers)

    async def _stream(
        self, request: web.Request, chat: ChatRequest, answer: Answer, headers: dict[str, str]
    ) -> web.StreamResponse:
        if answer.chunks is None:
            return await self._replay(request, chat, answer, headers)
        async with aclosing(answer.chunks) as chunks:
            reply = await open_stream(request, headers)
            if answer.sources:
                frame = openai.render_sources(answer.sources, chat.model, chat.request_id, self._clock())
                await send(request, reply, frame)
            try:
                async for chunk in chunks:
                    await send(request, reply, chunk.raw)
            except GatewayError as error:
                log.warning(
                    "stream broke: %s",
                    error.message,
                    extra={"request_id": chat.request_id, "kind": error.kind.value},
                )
                await send(request, reply, openai.render_error(error, STATUSES[error.kind][1]))
            else:
                await send(request, reply, DONE)
            await reply.write_eof()
        return reply

    async def _replay(
        self, request: web.Request, chat: ChatRequest, answer: Answer, headers: dict[str, str]
    ) -> web.StreamResponse:
        reply = await open_stream(request, headers)
        if answer.completion is not None:
            include_usage = openai.wants_usage(chat.body)
            for frame in openai.render_completion(answer.completion, include_usage=include_usage):
                await send(request, reply, frame)
        await send(request, reply, DONE)
        await reply.write_eof()
        return reply
