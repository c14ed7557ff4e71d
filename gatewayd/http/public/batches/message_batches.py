"""Routes of batches in the messages dialect."""

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

import orjson
from aiohttp import web
from pydantic import BaseModel

from gatewayd.batches.lines import MAX_LINES, parse_message_request
from gatewayd.batches.records import Batch, BatchDialect
from gatewayd.batches.service import Batches
from gatewayd.errors import invalid, not_found, shorten
from gatewayd.http.body import RequestBody, json_reply, read_members
from gatewayd.http.connections.request_uses import RequestUse
from gatewayd.http.context import actor, base_url
from gatewayd.http.public.batches.serializers import render_message_batch
from gatewayd.http.public.query_parameters import parse_number
from gatewayd.http.responses.file_content import file_reply
from gatewayd.http.routes import Handler, Route, RouteAccess, RouteDialect
from gatewayd.http.schemas import ANY_MEDIA_TYPE, OBJECT, answers
from gatewayd.json_decoder import LARGE_LIMITS, JsonMembers, UndecodedMember

PATHS: Final = ("/v1/messages/batches", "/api/v1/messages/batches")
MAX_PAGE_SIZE: Final = 1000
REQUESTS: Final = UndecodedMember("requests", MAX_LINES)
RESULTS_TYPE: Final = "application/x-jsonl"
LIST_QUERY: Final = {
    "after_id": "Id of the last batch of the page before.",
    "before_id": "Id of the first batch of the page after.",
    "limit": "Maximum number of batches, 1 to 1000, 20 by default.",
}


class NewMessageBatchBody(RequestBody):
    """A batch of messages to create."""

    requests: list[dict[str, Any]]


class MessageBatchRoutes:
    """Routes of batches of messages."""

    def __init__(self, batches: Batches, *, body_limit: int) -> None:
        self._batches = batches
        self._body_limit = body_limit

    def routes(self) -> Sequence[Route]:
        """Return the rows for each path."""
        return [
            row
            for path in PATHS
            for row in (
                _row("POST", path, self.create, "Create a batch of messages", NewMessageBatchBody),
                _row("GET", path, self.list, "List batches of messages"),
                _row("GET", f"{path}/{{id}}", self.show, "Show a batch of messages"),
                _row("DELETE", f"{path}/{{id}}", self.remove, "Delete a batch of messages"),
                _row("POST", f"{path}/{{id}}/cancel", self.cancel, "Cancel a batch of messages"),
                _row("GET", f"{path}/{{id}}/results", self.results, "Download the results of a batch"),
            )
        ]

    @answers(OBJECT)
    async def create(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"requests": [{"custom_id", "params"}]}` with the batch.

        400 with code `mixed_providers` for models of several providers, one of which runs batches itself.
        """
        _, members = await read_members(
            request, NewMessageBatchBody, self._body_limit, REQUESTS, LARGE_LIMITS
        )
        if members is None or not len(members):
            raise invalid("cannot accept requests: expected a list of requests", param="requests")
        batch = await self._batches.create_messages(actor(request), _lines(members), len(members))
        return self._reply(request, batch)

    @answers(OBJECT, query=LIST_QUERY)
    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"data", "has_more", "first_id", "last_id"}`, the newest batches first."""
        query = request.query
        limit = parse_number(query, "limit", 20, 1, MAX_PAGE_SIZE)
        before = query.get("before_id")
        found = await self._batches.list(
            actor(request).user_id,
            BatchDialect.ANTHROPIC,
            after=query.get("after_id"),
            before=before,
            limit=limit + 1,
        )
        kept = found[-limit:] if before is not None else found[:limit]
        data = [render_message_batch(batch, _address(request)) for batch in kept]
        ends = {"first_id": data[0]["id"], "last_id": data[-1]["id"]} if data else {}
        page = {"data": data, "has_more": len(found) > limit, "first_id": None, "last_id": None}
        return json_reply({**page, **ends})

    @answers(OBJECT)
    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer a batch; 404 for a batch of another user."""
        return self._reply(request, await self._found(request))

    @answers(OBJECT)
    async def cancel(self, request: web.Request) -> web.StreamResponse:
        """Cancel a batch and answer it; 409 if it has ended."""
        return self._reply(request, await self._batches.cancel(await self._found(request)))

    @answers(OBJECT)
    async def remove(self, request: web.Request) -> web.StreamResponse:
        """Delete an ended batch -> `{"id", "type": "message_batch_deleted"}`; 409 for another."""
        batch = await self._found(request)
        await self._batches.remove(batch)
        return json_reply({"id": batch.id, "type": "message_batch_deleted"})

    @answers(None, ANY_MEDIA_TYPE)
    async def results(self, request: web.Request) -> web.StreamResponse:
        """Answer the results as JSON lines, in any order; 404 before the batch has ended."""
        batch = await self._found(request)
        if batch.output_file_id is None:
            raise not_found("results of batch", batch.id)
        file = await self._batches.files.get(batch.user_id, batch.output_file_id)
        content = await self._batches.files.content(file)
        return file_reply(content, file.name, RESULTS_TYPE, attachment=True)

    async def _found(self, request: web.Request) -> Batch:
        return await self._batches.get(actor(request), request.match_info["id"], BatchDialect.ANTHROPIC)

    def _reply(self, request: web.Request, batch: Batch) -> web.StreamResponse:
        return json_reply(render_message_batch(batch, _address(request)))


async def _lines(members: JsonMembers) -> AsyncIterator[bytes]:
    """Yield the requests as lines; raises invalid_request for a bad one."""
    seen: set[str] = set()
    async for value in members.each():
        if not isinstance(value, dict):
            raise invalid("cannot accept requests: expected a list of objects", param="requests")
        custom_id = parse_message_request(value).custom_id
        if custom_id in seen:
            raise invalid(
                f"cannot accept custom_id {shorten(custom_id)!r}: two requests have it",
                param="requests.custom_id",
            )
        seen.add(custom_id)
        yield orjson.dumps({"custom_id": custom_id, "params": value["params"]}) + b"\n"


def _address(request: web.Request) -> str:
    path = next(path for path in PATHS if request.path.startswith(path))
    return base_url(request) + path


def _row(
    method: str, path: str, handler: Handler, summary: str, body: type[BaseModel] | None = None
) -> Route:
    return Route(
        method,
        path,
        handler,
        RouteAccess.VERIFIED,
        summary,
        RouteDialect.ANTHROPIC,
        body,
        tag="batches",
        use=RequestUse.DOWNLOAD if path.endswith("/results") else RequestUse.REQUEST,
    )
