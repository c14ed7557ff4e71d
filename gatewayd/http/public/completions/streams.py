"""Routes of resumable streams: read again, and stop."""

from collections.abc import Mapping, Sequence
from typing import Final

from aiohttp import web

from gatewayd.errors import not_found
from gatewayd.http.body import json_reply
from gatewayd.http.connections.request_uses import RequestUse
from gatewayd.http.context import actor
from gatewayd.http.reply_schemas import dialects
from gatewayd.http.responses.frames import StreamOpening
from gatewayd.http.responses.resumable import ResumableAnswers, last_event_id
from gatewayd.http.routes import BASES, Route, RouteAccess, RouteDialect
from gatewayd.http.schemas import EVENT_STREAM, answers

PATHS: Final = tuple(f"{base}/streams/{{id}}" for base in BASES)

QUERY: Final = {"last_event_id": "Number of the last event received, as the header Last-Event-ID has it."}


class StreamRoutes:
    """Routes of the streams of the caller; `edges` has the frames around an answer by protocol."""

    def __init__(self, answers: ResumableAnswers, edges: Mapping[str, StreamOpening]) -> None:
        self._answers = answers
        self._edges = edges

    def routes(self) -> Sequence[Route]:
        """Return the rows, for each base path of OpenAI clients."""
        return [
            *(
                Route(
                    "GET",
                    path,
                    self.follow,
                    RouteAccess.VERIFIED,
                    "Read a stream again",
                    dialect=RouteDialect.OPENAI,
                    tag="chat",
                    use=RequestUse.LISTENER,
                    statuses=(200, 204),
                )
                for path in PATHS
            ),
            *(
                Route(
                    "DELETE",
                    path,
                    self.stop,
                    RouteAccess.VERIFIED,
                    "Stop a stream and delete it",
                    dialect=RouteDialect.OPENAI,
                    tag="chat",
                )
                for path in PATHS
            ),
        ]

    @answers(None, EVENT_STREAM, query=QUERY)
    async def follow(self, request: web.Request) -> web.StreamResponse:
        """Answer the events behind Last-Event-ID, or `?last_event_id=`, then further ones as they come.

        204 if the stream has ended with that event, so that an EventSource does not ask again. 404 for the
        stream of another user.
        """
        stream_id = request.match_info["id"]
        reader = await self._answers.streams.open(stream_id, actor(request).user_id, last_event_id(request))
        edge = self._edges.get(reader.record.protocol)
        if edge is None:
            raise not_found("stream", stream_id)
        if reader.position and reader.is_at_end and not reader.is_interrupted:
            return web.Response(status=204)
        if request.method == "HEAD":
            return web.Response(content_type=EVENT_STREAM)
        return await self._answers.follow(request, reader, edge)

    @answers(dialects.deleted_stream)
    async def stop(self, request: web.Request) -> web.StreamResponse:
        """Stop the answer, delete its stream and answer `{"id", "object": "stream", "deleted": true}`."""
        stream_id = request.match_info["id"]
        await self._answers.streams.stop(stream_id, actor(request).user_id)
        return json_reply({"id": stream_id, "object": "stream", "deleted": True})
