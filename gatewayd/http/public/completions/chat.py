"""Routes of chat completions in the OpenAI dialect."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from aiohttp import web

from gatewayd import ids
from gatewayd.dialects import openai
from gatewayd.http import body
from gatewayd.http.connections.request_uses import RequestUse
from gatewayd.http.context import actor, facts_of, request_id
from gatewayd.http.public.completions import deployments
from gatewayd.http.public.completions.deployments import with_deployment
from gatewayd.http.reply_schemas import dialects
from gatewayd.http.responses.provider_headers import reply_headers
from gatewayd.http.responses.streams import AnswerStreams, OpenAiFrames, openai_frames, send_whole
from gatewayd.http.routes import BASES, Route, RouteAccess, RouteDialect
from gatewayd.http.schemas import EVENT_STREAM, answers
from gatewayd.json_decoder import LARGE_LIMITS
from gatewayd.pipeline.records import ChatAnswer, ChatRequest
from gatewayd.pipeline.runs.service import RunService, StartedRun

PATHS: Final = tuple(f"{base}/chat/completions" for base in (*BASES, deployments.BASE))


class ChatRoutes:
    """Routes of chat completions, whole or streamed."""

    def __init__(
        self,
        runs: RunService,
        *,
        body_limit: int,
        streams: AnswerStreams | None = None,
        clock: ids.Clock = ids.now,
    ) -> None:
        self._runs = runs
        self._body_limit = body_limit
        self._clock = clock
        self._streams = streams or AnswerStreams()

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
            )
            for path in PATHS
        ]

    @answers(dialects.chat_answer, EVENT_STREAM)
    async def complete(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"model", "messages", ...}` with a completion, or with chunks when `stream` is true.

        With `chat_id` and `session_id` the answer is `{"status": true, "task_ids", "task_id", "chat_id",
        "message_ids"}`, at once: events report the answer, and the chat stores it.
        """
        given = await body.read_object(request, self._body_limit, LARGE_LIMITS)
        chat = openai.parse_request(with_deployment(request, given))
        chat.request_id = request_id(request)
        chat.facts = partial(facts_of, request)
        asked = self._runs.answer(chat, actor(request))
        if chat.stream and not chat.options.get("session_id"):
            return await self._streams.begin(
                request, asked, OpenAiFrames(), partial(self._send, request, chat)
            )
        answer = await asked
        if isinstance(answer, ChatAnswer) and answer.completion is not None and not chat.stream:
            return body.raw_reply(request, answer.completion.raw, reply_headers(answer, RouteDialect.OPENAI))
        return await self._send(request, chat, answer)

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
        first = b""
        if answer.sources:
            first = openai.render_sources(answer.sources, chat.model, chat.request_id, self._clock())
        return await self._streams.send(request, answer.chunks, OpenAiFrames(), headers, first, begun)


def _show_started(started: StartedRun) -> dict[str, Any]:
    return {
        "status": True,
        "task_ids": started.task_ids,
        "task_id": started.task_ids[0],
        "chat_id": started.chat_id,
        "message_ids": started.message_ids,
    }
