"""Routes of chat completions in the OpenAI dialect."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import orjson
from aiohttp import web

from gatewayd import ids
from gatewayd.accounts.records import Actor
from gatewayd.dialects import openai
from gatewayd.http import body
from gatewayd.http.connections.request_uses import RequestUse
from gatewayd.http.context import actor
from gatewayd.http.errors import log_broken
from gatewayd.http.public.completions import deployments
from gatewayd.http.public.completions.begun_chat import ChatBeginning
from gatewayd.http.public.completions.begun_reply import with_request
from gatewayd.http.public.completions.deployments import with_deployment
from gatewayd.http.reply_schemas import dialects
from gatewayd.http.responses.provider_headers import reply_headers
from gatewayd.http.responses.repeatable import UNSTREAMED, RepeatableAnswers, stored
from gatewayd.http.responses.resumable import RenderedAnswer, StreamedRequest
from gatewayd.http.responses.streams import AnswerStreams, OpenAiFrames, openai_frames, send_whole
from gatewayd.http.routes import BASES, FastHandler, Route, RouteAccess, RouteDialect
from gatewayd.http.schemas import EVENT_STREAM, answers
from gatewayd.json_decoder import LARGE_LIMITS
from gatewayd.pipeline.fast_path import FastChats
from gatewayd.pipeline.records import ChatAnswer, ChatRequest
from gatewayd.pipeline.runs.service import RunService, StartedRun
from gatewayd.resumption.records import StoredReply

PATHS: Final = tuple(f"{base}/chat/completions" for base in (*BASES, deployments.BASE))

PROTOCOL: Final = RouteDialect.OPENAI.value
"""Name of the protocol of the frames of these routes, in resumable streams."""


class ChatRoutes:
    """Routes of chat completions, whole or streamed."""

    def __init__(
        self,
        runs: RunService,
        *,
        body_limit: int,
        streams: AnswerStreams | None = None,
        repeatable: RepeatableAnswers | None = None,
        clock: ids.Clock = ids.now,
        fast: FastChats | None = None,
    ) -> None:
        self._runs = runs
        self._body_limit = body_limit
        self._clock = clock
        self._streams = streams or AnswerStreams()
        self._repeatable = repeatable
        self._begin: FastHandler | None = None
        if fast is not None:
            dialect = RouteDialect.OPENAI, _begun, lambda *_: OpenAiFrames()
            self._begin = ChatBeginning(fast, self._streams, repeatable, body_limit, *dialect).begin

    def routes(self) -> Sequence[Route]:
        """Return the rows, one for each base path of OpenAI clients, and that of Azure."""
        return [
            Route(
                "POST",
                path,
                self.complete,
                RouteAccess.VERIFIED,
                "Answer a chat request",
                dialect=RouteDialect.OPENAI,
                tag="chat",
                interruptible=True,
                use=RequestUse.ANSWER,
                slashes=path.startswith(deployments.BASE),
                begin=self._begin,
            )
            for path in PATHS
        ]

    @answers(dialects.chat_answer, EVENT_STREAM)
    async def complete(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"model", "messages", ...}` with a completion, or with chunks when `stream` is true.

        With `chat_id` and `session_id` the answer is `{"status": true, "task_ids", "task_id", "chat_id",
        "message_ids"}`, at once: events report the answer, and the chat stores it.
        """
        if self._repeatable is not None and self._repeatable.wants(request):
            return await self._repeat(request, self._repeatable)
        chat = _parsed(request, await body.read_object(request, self._body_limit, LARGE_LIMITS))
        asked = self._runs.answer(chat, actor(request))
        if chat.stream and not chat.options.get("session_id"):
            return await self._streams.begin(
                request, asked, OpenAiFrames(), partial(self._send, request, chat)
            )
        answer = await asked
        if isinstance(answer, ChatAnswer) and answer.completion is not None and not chat.stream:
            return body.raw_reply(request, answer.completion.raw, reply_headers(answer, RouteDialect.OPENAI))
        return await self._send(request, chat, answer)

    async def _repeat(self, request: web.Request, repeatable: RepeatableAnswers) -> web.StreamResponse:
        """Answer with a stream that can be resumed, or with the reply of an earlier request of the same
        key."""
        what = f"chat completion {request.match_info.get('id', '')}".rstrip()
        wanted = await repeatable.read(request, what, self._body_limit)
        chat = _parsed(request, wanted.value)
        caller = actor(request)
        if chat.stream and not chat.options.get("session_id"):
            asked = StreamedRequest(
                caller.user_id,
                PROTOCOL,
                OpenAiFrames(),
                lambda: self._runs.answer(chat, caller),
                partial(self._rendered, chat),
                partial(log_broken, request),
            )
            return await repeatable.stream(request, asked, wanted.key)
        if wanted.is_resumable:
            chat.warnings.append(UNSTREAMED)
        if wanted.key is None:
            return await self._send(request, chat, await self._runs.answer(chat, caller))
        return await repeatable.whole(request, wanted.key, partial(self._whole, chat, caller))

    def _rendered(self, chat: ChatRequest, answer: ChatAnswer | StartedRun, _: str) -> RenderedAnswer:
        if isinstance(answer, StartedRun):
            raise TypeError("a run of a session is not streamed")
        headers, frames = reply_headers(answer, RouteDialect.OPENAI), OpenAiFrames()
        if answer.chunks is None:
            return RenderedAnswer(frames, openai_frames(answer, chat), None, headers)
        return RenderedAnswer(frames, self._first(chat, answer), answer.chunks, headers)

    async def _whole(self, chat: ChatRequest, caller: Actor) -> StoredReply:
        answer = await self._runs.answer(chat, caller)
        if isinstance(answer, StartedRun):
            return stored(orjson.dumps(_show_started(answer)), {})
        if answer.completion is None:
            raise ValueError("an answer without a stream has a completion")
        return stored(answer.completion.raw, reply_headers(answer, RouteDialect.OPENAI))

    def _first(self, chat: ChatRequest, answer: ChatAnswer) -> bytes:
        if not answer.sources:
            return b""
        return openai.render_sources(answer.sources, chat.model, chat.request_id, self._clock())

    async def _send(
        self,
        request: web.Request,
        chat: ChatRequest,
        answer: ChatAnswer | StartedRun,
        begun: web.StreamResponse | None = None,
    ) -> web.StreamResponse:
        if isinstance(answer, StartedRun):
            return body.json_reply(_show_started(answer))
        headers = reply_headers(answer, RouteDialect.OPENAI)
        if answer.chunks is None:
            return await send_whole(request, openai_frames(answer, chat), headers, begun)
        first = self._first(chat, answer)
        return await self._streams.send(request, answer.chunks, OpenAiFrames(), headers, first, begun)


def _parsed(request: web.Request, value: dict[str, Any]) -> ChatRequest:
    return with_request(openai.parse_request(with_deployment(request, value)), request)


def _begun(request: web.Request, value: dict[str, Any]) -> ChatRequest:
    # No path of the fast path has a deployment.
    return with_request(openai.parse_request(value), request)


def _show_started(started: StartedRun) -> dict[str, Any]:
    return {
        "status": True,
        "task_ids": started.task_ids,
        "task_id": started.task_ids[0],
        "chat_id": started.chat_id,
        "message_ids": started.message_ids,
    }
