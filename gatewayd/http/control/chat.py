"""Route of `/v1/chat`: chat completions for the terminal."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, Protocol

import orjson
from aiohttp import web

from gatewayctl.wire import chat as wire
from gatewayctl.wire import routes
from gatewayd.accounts.records import Actor
from gatewayd.catalog.interfaces import Viewer
from gatewayd.catalog.records import Model
from gatewayd.dialects import openai
from gatewayd.errors import ErrorKind, GatewayError, not_found
from gatewayd.http.body import json_reply, read_model
from gatewayd.http.context import request_id
from gatewayd.http.control.impersonation import ControlActors
from gatewayd.http.control.peer import PEER
from gatewayd.http.control.rows import serve
from gatewayd.http.errors import body_of, log_broken
from gatewayd.http.responses.resumable import RenderedAnswer, ResumableAnswers, StreamedRequest
from gatewayd.http.responses.streams import AnswerStreams, OpenAiFrames, openai_frames, send_whole
from gatewayd.http.routes import Route, RouteDialect
from gatewayd.json_decoder import LARGE_LIMITS
from gatewayd.knowledge.records import Collection
from gatewayd.pipeline.records import ChatAnswer, ChatRequest

PROTOCOL: Final = RouteDialect.CONTROL.value
READABLE: Final = frozenset({PROTOCOL, RouteDialect.OPENAI.value})
"""Names of the protocol of these routes in resumable streams, and of those that the command line reads."""

MAX_BODY_BYTES: Final = 16 * 1024 * 1024


class ChatCompleter(Protocol):
    """Answers chat requests; implemented by the chat pipeline."""

    async def run(self, request: ChatRequest, actor: Actor) -> ChatAnswer:
        """Answer a request; a failure before the first chunk raises, one after it raises from `chunks`."""
        ...


class ModelLister(Protocol):
    """Lists models; implemented by the catalogue."""

    async def list(self, viewer: Viewer, *, refresh: bool = False) -> Sequence[Model]:
        """Return the models that the viewer may use, by name."""
        ...


class CollectionResolver(Protocol):
    """Resolves names of collections."""

    async def resolve(self, actor: Actor, ref: str) -> Collection:
        """Return the readable collection with this id, or with exactly this name."""
        ...


class ControlFrames(OpenAiFrames):
    """OpenAI frames with failures in the format of the control protocol."""

    def fail(self, error: GatewayError) -> bytes:
        """Return the error frame."""
        return b"data: " + orjson.dumps(body_of(error, RouteDialect.CONTROL)) + b"\n\n"


class ControlChatRoutes:
    """Route of chat requests on the control socket."""

    def __init__(
        self,
        answers: ChatCompleter,
        models: ModelLister,
        collections: CollectionResolver,
        viewers: ControlActors,
        resumable: ResumableAnswers,
    ) -> None:
        self._answers = answers
        self._models = models
        self._collections = collections
        self._viewers = viewers
        self._streams = AnswerStreams()
        self._resumable = resumable

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [
            serve(routes.CHAT, self.ask, interruptible=True),
            serve(routes.RESUME_ANSWER, self.resume),
            serve(routes.STOP_ANSWER, self.stop),
        ]

    async def ask(self, request: web.Request) -> web.StreamResponse:
        """Take `Chat`, answer an OpenAI chat completion, or its chunks when `stream` is true.

        Both may have `sources` and `warnings`. A stream has them in a first chunk without choices. A
        `resumable` one goes on without its client, and has a `stream` with its id there.
        """
        wanted = await read_model(request, wire.Chat, MAX_BODY_BYTES, LARGE_LIMITS)
        actor = await self._viewers.choose(wanted.user, request[PEER])
        body: dict[str, Any] = wanted.model_dump(exclude={"user", "resumable"}, exclude_none=True)
        body["stream"] = wanted.stream
        body["model"] = wanted.model or await self._first_model(actor)
        body["files"] = [await self._found(actor, reference) for reference in wanted.files]
        chat = openai.parse_request(body)
        chat.request_id = request_id(request)
        if wanted.resumable and chat.stream:
            asked = StreamedRequest(
                actor.user_id,
                PROTOCOL,
                ControlFrames(),
                lambda: self._answers.run(chat, actor),
                partial(_rendered, chat),
                partial(log_broken, request),
            )
            return await self._resumable.serve(request, asked)
        answer = await self._answers.run(chat, actor)
        if answer.completion is not None and not chat.stream:
            if answer.warnings:
                answer.completion.body["warnings"] = answer.warnings
            return web.Response(body=answer.completion.raw, content_type="application/json")
        first = _first_frame(answer)
        if answer.chunks is not None:
            return await self._streams.send(request, answer.chunks, ControlFrames(), {}, first)
        return await send_whole(request, first + openai_frames(answer, chat), {})

    async def resume(self, request: web.Request) -> web.StreamResponse:
        """Answer the stream of an answer of the same caller from its beginning."""
        stream_id = request.match_info["id"]
        actor = await self._viewers.choose(request.query.get("user"), request[PEER])
        reader = await self._resumable.streams.open(stream_id, actor.user_id)
        if reader.record.protocol not in READABLE:
            raise not_found("stream", stream_id)
        return await self._resumable.follow(request, reader, ControlFrames())

    async def stop(self, request: web.Request) -> web.StreamResponse:
        """Stop an answer of the same caller, delete its stream and answer `AnswerStopped`."""
        stream_id = request.match_info["id"]
        actor = await self._viewers.choose(request.query.get("user"), request[PEER])
        await self._resumable.streams.stop(stream_id, actor.user_id)
        return json_reply({"id": stream_id})

    async def _found(self, actor: Actor, reference: wire.Reference) -> dict[str, str]:
        if reference.type == "file":
            return {"type": "file", "id": reference.id}
        collection = await self._collections.resolve(actor, reference.id)
        return {"type": "collection", "id": collection.id, "name": collection.name}

    async def _first_model(self, actor: Actor) -> str:
        found = await self._models.list(actor)
        if not found:
            raise GatewayError(ErrorKind.NOT_FOUND, "cannot choose a model: there is none", param="model")
        return found[0].id


def _rendered(chat: ChatRequest, answer: ChatAnswer, stream_id: str) -> RenderedAnswer:
    first = _first_frame(answer, stream={"id": stream_id})
    if answer.chunks is None:
        return RenderedAnswer(ControlFrames(), first + openai_frames(answer, chat))
    return RenderedAnswer(ControlFrames(), first, answer.chunks)


def _first_frame(answer: ChatAnswer, **extra: Any) -> bytes:
    # A completion has its sources itself, which its frames repeat.
    if answer.sources and answer.chunks:
        extra["sources"] = answer.sources
    if answer.warnings:
        extra["warnings"] = answer.warnings
    return b"data: " + orjson.dumps({"choices": [], **extra}) + b"\n\n" if extra else b""
