"""Routes of batches in the OpenAI dialect."""

from collections.abc import Sequence
from typing import Any, Final

from aiohttp import web
from pydantic import BaseModel

from gatewayd.batches.records import BatchDialect
from gatewayd.batches.service import WINDOW, Batches
from gatewayd.http.body import RequestBody, json_reply, read_model
from gatewayd.http.context import actor
from gatewayd.http.public.batches.files import BATCH_BASES, TAG, page_of
from gatewayd.http.public.batches.serializers import render_batch
from gatewayd.http.public.query_parameters import parse_number
from gatewayd.http.routes import Handler, Route, RouteAccess, RouteDialect
from gatewayd.http.schemas import OBJECT, answers

MAX_PAGE_SIZE: Final = 100
LIST_QUERY: Final = {
    "after": "Id of the last batch of the page before.",
    "limit": "Maximum number of batches, 1 to 100, 20 by default.",
}


class NewBatchBody(RequestBody):
    """A batch to create."""

    input_file_id: str
    endpoint: str
    completion_window: str = WINDOW
    metadata: dict[str, Any] | None = None


class BatchRoutes:
    """Routes of batches."""

    def __init__(self, batches: Batches) -> None:
        self._batches = batches

    def routes(self) -> Sequence[Route]:
        """Return the rows for each base path."""
        return [
            row
            for base in BATCH_BASES
            for row in (
                _row("POST", f"{base}/batches", self.create, "Create a batch", NewBatchBody),
                _row("GET", f"{base}/batches", self.list, "List batches"),
                _row("GET", f"{base}/batches/{{id}}", self.show, "Show a batch"),
                _row("POST", f"{base}/batches/{{id}}/cancel", self.cancel, "Cancel a batch"),
            )
        ]

    @answers(OBJECT)
    async def create(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"input_file_id", "endpoint", "completion_window", "metadata"?}` with the batch.

        400 with code `mixed_providers` for models of several providers, one of which runs batches itself.
        """
        wanted = await read_model(request, NewBatchBody)
        batch = await self._batches.create(
            actor(request),
            wanted.input_file_id,
            wanted.endpoint,
            wanted.completion_window,
            wanted.metadata,
        )
        return json_reply(render_batch(batch))

    @answers(OBJECT, query=LIST_QUERY)
    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"object": "list", "data", "has_more"}`, the newest batches first."""
        limit = parse_number(request.query, "limit", 20, 1, MAX_PAGE_SIZE)
        found = await self._batches.list(
            actor(request).user_id, BatchDialect.OPENAI, after=request.query.get("after"), limit=limit + 1
        )
        data = [render_batch(batch) for batch in found[:limit]]
        return json_reply(page_of(data, has_more=len(found) > limit))

    @answers(OBJECT)
    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer a batch; 404 for a batch of another user."""
        batch = await self._batches.get(actor(request), request.match_info["id"], BatchDialect.OPENAI)
        return json_reply(render_batch(batch))

    @answers(OBJECT)
    async def cancel(self, request: web.Request) -> web.StreamResponse:
        """Cancel a batch and answer it; 409 if it has ended."""
        batch = await self._batches.get(actor(request), request.match_info["id"], BatchDialect.OPENAI)
        return json_reply(render_batch(await self._batches.cancel(batch)))


def _row(
    method: str, path: str, handler: Handler, summary: str, body: type[BaseModel] | None = None
) -> Route:
    return Route(
        method,
        path,
        handler,
        RouteAccess.VERIFIED,
        summary,
        RouteDialect.OPENAI,
        body,
        tag=TAG,
    )
