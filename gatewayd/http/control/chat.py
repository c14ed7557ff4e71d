"""`/v1/chat`: ask a model from the terminal."""

import logging
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any, Final, Protocol

import orjson
from aiohttp import web

from gatewayctl.wire import chat as wire
from gatewayd.accounts.records import Actor
from gatewayd.catalog.interfaces import Viewer
from gatewayd.catalog.records import Model
from gatewayd.catalog.replies import DONE
from gatewayd.chat.records import Answer, ChatRequest
from gatewayd.dialects import openai
from gatewayd.errors import GatewayError, Kind
from gatewayd.http.body import read_model
from gatewayd.http.context import request_id
from gatewayd.http.control.peer import PEER
from gatewayd.http.control.viewers import Viewers
from gatewayd.http.errors import body_of
from gatewayd.http.routes import Access, Dialect, Route
from gatewayd.http.sse import open_stream, send

log = logging.getLogger(__name__)

BODY_LIMIT: Final = 16 * 1024 * 1024


class Answers(Protocol):
    """What answers; the chat pipeline is one."""

    async def run(self, request: ChatRequest, actor: Actor) -> Answer:
        """Answer a request; a failure before the first chunk raises, one after it raises from `chunks`."""
        ...


class Models(Protocol):
    """What knows the models; the catalogue is one."""

    async def list(self, viewer: Viewer, *, refresh: bool = False) -> Sequence[Model]:
        """Return the models that the viewer may use, by name."""
        ...


class ControlChatRoutes:
    """Questions on the control socket."""

    def __init__(self, answers: Answers, models: Models, viewers: Viewers) -> None:
        self._answers = answers
        self._models = models
        self._viewers = viewers

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [
            Route(
                "POST",
                "/v1/chat",
                self.ask,
                Access.CONTROL,
                "Ask a model",
                Dialect.CONTROL,
                interruptible=True,
            ),
        ]

    async def ask(self, request: web.Request) -> web.StreamResponse:
        """Take `Chat`, answer an OpenAI chat completion, or its chunks when `stream` is true."""
        wanted = await read_model(request, wire.Chat, BODY_LIMIT)
        actor = await self._viewers.choose(wanted.user, request[PEER])
        body: dict[str, Any] = wanted.model_dump(exclude={"user"}, exclude_none=True)
        body["stream"] = wanted.stream
        body["model"] = wanted.model or await self._first_model(actor)
        chat = openai.parse_request(body)
        chat.request_id = request_id(request)
        answer = await self._answers.run(chat, actor)
        if answer.completion is not None and not chat.stream:
            return web.Response(body=answer.completion.raw, content_type="application/json")
        return await _stream(request, answer)

    async def _first_model(self, actor: Actor) -> str:
        found = await self._models.list(actor)
        if not found:
            raise GatewayError(Kind.NOT_FOUND, "cannot ask: there is no model", param="model")
        return found[0].id


async def _stream(request: web.Request, answer: Answer) -> web.StreamResponse:
    if answer.chunks is None:
        reply = await open_stream(request, {})
        for frame in openai.render_completion(answer.completion) if answer.completion else ():
            await send(request, reply, frame)
        await send(request, reply, DONE)
        return reply
    async with aclosing(answer.chunks) as chunks:
        reply = await open_stream(request, {})
        try:
            async for chunk in chunks:
                await send(request, reply, chunk.raw)
        except GatewayError as error:
            log.warning("stream broke: %s", error.message, extra={"request_id": request_id(request)})
            failure = orjson.dumps(body_of(error, Dialect.CONTROL))
            await send(request, reply, b"data: " + failure + b"\n\n")
        else:
            await send(request, reply, DONE)
    return reply
