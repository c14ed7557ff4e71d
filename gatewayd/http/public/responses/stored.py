"""Routes of stored responses, each for the user who received it."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final
from urllib.parse import quote

import orjson
from aiohttp import web

from gatewayd.completions.json_access import as_sequence
from gatewayd.completions.records import Body
from gatewayd.dialects.responses.envelope import list_object
from gatewayd.dialects.responses.input_list import listed_item
from gatewayd.dialects.responses.replay import ResponseReplay
from gatewayd.dialects.responses.request import ENCRYPTED_REASONING
from gatewayd.errors import invalid
from gatewayd.http import body
from gatewayd.http.connections.request_uses import RequestUse
from gatewayd.http.context import actor, caller_of
from gatewayd.http.public.completions.passthrough import open_forwarded, send_opened
from gatewayd.http.public.query_parameters import invalid_parameter, parse_flag, parse_number
from gatewayd.http.public.responses.background import BackgroundResponses
from gatewayd.http.public.responses.frames import render_failure
from gatewayd.http.reply_schemas import dialects
from gatewayd.http.responses.sse import open_stream, send_frames
from gatewayd.http.routes import BASES, Route, RouteAccess, RouteDialect
from gatewayd.http.schemas import EVENT_STREAM, answers
from gatewayd.pipeline.passthrough import StoredForwarder
from gatewayd.pipeline.responses.archive import ResponseArchive, StoredResponse
from gatewayd.time_slices import LoopPacer

DEFAULT_PAGE: Final = 20
MAX_PAGE: Final = 100
MAX_EVENT_NUMBER: Final = 999_999_999

INCLUDE_QUERY: Final = {"include": "Fields to add, such as reasoning.encrypted_content; may be repeated."}
RESPONSE_QUERY: Final = {
    **INCLUDE_QUERY,
    "stream": "With true, the answer is the events of the response.",
    "starting_after": "With stream: number of the event before the first one sent.",
}
ITEMS_QUERY: Final = {
    **INCLUDE_QUERY,
    "limit": f"Number of items, 1 to {MAX_PAGE}.",
    "order": "asc or desc (default).",
    "after": "Id of the item before the page.",
}


class StoredResponseRoutes:
    """Routes that read, delete and cancel stored responses."""

    def __init__(
        self,
        archive: ResponseArchive,
        forwarder: StoredForwarder,
        background: BackgroundResponses | None = None,
    ) -> None:
        self._archive = archive
        self._forwarder = forwarder
        self._background = background

    def routes(self) -> Sequence[Route]:
        """Return the rows for each base path."""
        row = partial(Route, access=RouteAccess.VERIFIED, dialect=RouteDialect.OPENAI, tag="responses")
        return [
            each
            for base in (f"{base}/responses/{{id}}" for base in BASES)
            for each in (
                row("GET", base, self.read, summary="Return a stored response", use=RequestUse.ANSWER),
                row("DELETE", base, self.delete, summary="Delete a stored response"),
                row("POST", f"{base}/cancel", self.cancel, summary="Cancel a response in the background"),
                row("GET", f"{base}/input_items", self.list_items, summary="Return the input of a response"),
            )
        ]

    @answers(dialects.response_answer, EVENT_STREAM, query=RESPONSE_QUERY)
    async def read(self, request: web.Request) -> web.StreamResponse:
        """Answer the response, or its events with the numbers that they had."""
        query = request.query
        is_streamed = parse_flag(query, "stream", default=False)
        after = parse_number(query, "starting_after", -1, 0, MAX_EVENT_NUMBER)
        stored = await self._find(request)
        if stored.source:
            return await self._pass_on(request, "GET", stored)
        if is_streamed and self._background is not None:
            reply = await self._background.follow(request, stored, after)
            if reply is not None:
                return reply
        stored = await self._current(stored)
        shown = _shown(stored.response, request)
        if is_streamed:
            return await _send_replay(request, ResponseReplay(shown, stored.pieces, stored.pings), after)
        return body.raw_reply(request, orjson.dumps(shown), {})

    @answers(dialects.response_deletion)
    async def delete(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"id", "object": "response", "deleted": true}`; later requests cannot continue it.

        One that runs in the background is ended.
        """
        stored = await self._find(request)
        if stored.source:
            reply = await self._pass_on(request, "DELETE", stored)
            await self._archive.remove(stored.id, stored.user_id)
            return reply
        if self._background is not None:
            await self._background.stop(stored)
        await self._archive.remove(stored.id, stored.user_id)
        return body.json_reply({"id": stored.id, "object": "response", "deleted": True})

    @answers(dialects.response_answer)
    async def cancel(self, request: web.Request) -> web.StreamResponse:
        """Answer the response, which has ended: cancelled, or as it was before."""
        stored = await self._find(request)
        if stored.source:
            return await self._pass_on(request, "POST", stored, "/cancel")
        if self._background is None or not stored.response.get("background"):
            raise invalid(
                "cannot cancel the response: only responses in the background can be cancelled", param="id"
            )
        await self._background.cancel(stored)
        ended = await self._current(await self._find(request))
        return body.raw_reply(request, orjson.dumps(_shown(ended.response, request)), {})

    @answers(dialects.response_items, query=ITEMS_QUERY)
    async def list_items(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"object": "list", "data": [items], "first_id", "last_id", "has_more"}`."""
        query = request.query
        limit = parse_number(query, "limit", DEFAULT_PAGE, 1, MAX_PAGE)
        order = query.get("order", "desc")
        if order not in ("asc", "desc"):
            raise invalid_parameter("order", "expected asc or desc")
        stored = await self._find(request)
        if stored.source:
            return await self._pass_on(request, "GET", stored, "/input_items")
        items = stored.input if order == "asc" else stored.input[::-1]
        start = _place_after(items, query.get("after"))
        page = [listed_item(_item(item, request)) for item in items[start : start + limit]]
        return body.raw_reply(
            request, orjson.dumps(list_object(page, has_more=start + limit < len(items))), {}
        )

    async def _find(self, request: web.Request) -> StoredResponse:
        return await self._archive.find(request.match_info["id"], actor(request).user_id)

    async def _current(self, stored: StoredResponse) -> StoredResponse:
        return stored if self._background is None else await self._background.current(stored)

    async def _pass_on(
        self, request: web.Request, method: str, stored: StoredResponse, below: str = ""
    ) -> web.StreamResponse:
        caller = caller_of(request)
        query = f"?{request.query_string}" if request.query_string else ""
        path = f"/responses/{quote(stored.id, safe='')}{below}{query}"
        opened = await open_forwarded(self._forwarder.send(method, path, stored, caller), caller)
        return await send_opened(request, opened, render_failure=render_failure)


async def _send_replay(request: web.Request, replay: ResponseReplay, after: int) -> web.StreamResponse:
    reply = await open_stream(request, {})
    pace = LoopPacer()
    for frames in replay.frames(after):
        await send_frames(request, reply, frames)
        await pace.turn()
    await reply.write_eof()
    return reply


def _shows_sealed(request: web.Request) -> bool:
    names = (*request.query.getall("include", []), *request.query.getall("include[]", []))
    return ENCRYPTED_REASONING in names


def _shown(response: Mapping[str, Any], request: web.Request) -> Body:
    """Return a response, without the encrypted content of its items unless the caller asks for it."""
    output = [_item(item, request) for item in as_sequence(response.get("output"))]
    return {**response, "output": output}


def _item(item: Body, request: web.Request) -> Body:
    if item.get("type") != "reasoning" or _shows_sealed(request):
        return item
    return {name: value for name, value in item.items() if name != "encrypted_content"}


def _place_after(items: Sequence[Body], after: str | None) -> int:
    if not after:
        return 0
    for index, item in enumerate(items):
        if item["id"] == after:
            return index + 1
    raise invalid_parameter("after", f"no item has the id {after!r:.80}")
