"""Routes of `/api/v1/chats` for lists of stored chats and their tags."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from aiohttp import web

from gatewayd.chats.overview import render_favourite
from gatewayd.chats.records import ChatQuery
from gatewayd.chats.renderer import render_list_item
from gatewayd.chats.search_query import read_search
from gatewayd.chats.service import SORT_FIELDS
from gatewayd.chats.service_bundle import ChatServices
from gatewayd.chats.tags import render_tag
from gatewayd.http.body import large_reply, read_model
from gatewayd.http.context import actor
from gatewayd.http.public.chats.bodies import TaggedBody
from gatewayd.http.public.chats.routes import PREFIX
from gatewayd.http.public.query_parameters import (
    PAGE_QUERY,
    TEXT_QUERY,
    invalid_parameter,
    parse_flag,
    parse_page,
)
from gatewayd.http.reply_schemas import chats as replies
from gatewayd.http.responses.json_parts import send_records
from gatewayd.http.responses.packed_json import packed
from gatewayd.http.routes import Route, RouteAccess, RouteGroup
from gatewayd.http.schemas import answers, listed

PAGE_SIZE: Final = 60
ORDER_QUERY: Final = {
    "page": "Number of the page, from 1; a page has 60 chats. Without it all chats are listed.",
    "sort_by": "updated_at (the default), created_at or title.",
    "sort_dir": "asc or desc (the default).",
}
PINNED_QUERY: Final = {
    "include_pinned": "With true, the list includes pinned chats.",
    "include_folders": "With true, the list includes chats in folders.",
}
SEARCH_QUERY: Final = {
    "text": (
        "Text to search; tag:NAME, folder:NAME, pinned:true, archived:true and shared:true filter the chats."
    ),
    **PAGE_QUERY,
}
_row = RouteGroup(PREFIX, "chats").row


class ChatListRoutes:
    """Routes that list chats in pages or export them as whole records."""

    def __init__(self, services: ChatServices) -> None:
        self._chats = services.chats
        self._tags = services.tags
        self._transfer = services.transfer
        self._overview = services.overview

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        access = RouteAccess.VERIFIED
        return [
            _row("GET", "/", self.list, access, "List chats"),
            _row("GET", "/list", self.list, access, "List chats"),
            _row("GET", "/search", self.search, access, "Search chats"),
            _row("GET", "/favorites", self.list_favourites, access, "List favourite messages"),
            _row("GET", "/pinned", self.list_pinned, access, "List pinned chats"),
            _row("GET", "/archived", self.list_archived, access, "List archived chats"),
            _row("GET", "/shared", self.list_shared, access, "List shared chats"),
            _row("GET", "/list/user/{user_id}", self.list_of, RouteAccess.ADMIN, "List the chats of a user"),
            _row("GET", "/all", self.give_all, access, "Export all chats of the caller"),
            _row(
                "GET", "/all/archived", self.give_archived, access, "Export the archived chats of the caller"
            ),
            _row("GET", "/all/db", self.give_everything, RouteAccess.ADMIN, "Export the chats of all users"),
            _row("GET", "/all/tags", self.list_tags, access, "List the tags of the caller's chats"),
            _row(
                "POST", "/tags", self.list_tagged, access, "List the chats with a tag", TaggedBody, asks=True
            ),
        ]

    @answers(listed(replies.chat_element), query={**ORDER_QUERY, **PINNED_QUERY})
    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer `[{"id", "title", "updated_at", "created_at", "last_read_at"}]`, latest change first.

        `?page=` counts from 1, with 60 chats a page; all without it. Pinned chats are included with
        `?include_pinned=true`, chats in folders with `?include_folders=true`, archived ones never.
        `?sort_by=` updated_at, created_at or title, `?sort_dir=` asc or desc.
        """
        pinned = None if parse_flag(request.query, "include_pinned", default=False) else False
        is_loose = not parse_flag(request.query, "include_folders", default=False)
        return await self._listed(request, ChatQuery(archived=False, pinned=pinned, is_loose=is_loose))

    @answers(listed(replies.found_element), query=SEARCH_QUERY)
    async def search(self, request: web.Request) -> web.StreamResponse:
        """Search `?text=` in titles and messages -> list elements with `message_id` and `snippet`, 60 a page.

        Both name the newest message that contains the text, and are null when only the title does.
        `tag:NAME`, `folder:NAME`, `pinned:true`, `archived:true` and `shared:true` in the text filter the
        chats; a name has `_` for blanks.
        """
        query = read_search(request.query.get("text", ""))
        offset, limit = parse_page(request.query, PAGE_SIZE)
        query = replace(query, offset=offset, limit=limit)
        return await large_reply(await self._overview.search(actor(request), query))

    @answers(listed(replies.favourite), query=PAGE_QUERY)
    async def list_favourites(self, request: web.Request) -> web.StreamResponse:
        """Answer the messages with the member `favorite` of all chats of the caller, the newest first, 60 a
        page.

        `content` is the beginning of the message, 600 characters at most.
        """
        found = await self._overview.favourites(actor(request), *parse_page(request.query, PAGE_SIZE))
        return await large_reply(list(map(render_favourite, found)))

    @answers(listed(replies.chat_element), query=ORDER_QUERY)
    async def list_pinned(self, request: web.Request) -> web.StreamResponse:
        """Answer the pinned chats as list elements."""
        return await self._listed(request, ChatQuery(archived=False, pinned=True))

    @answers(listed(replies.chat_element), query={**ORDER_QUERY, **TEXT_QUERY})
    async def list_archived(self, request: web.Request) -> web.StreamResponse:
        """Answer the archived chats as list elements; `?query=` is part of title or text."""
        return await self._listed(request, ChatQuery(archived=True, text=request.query.get("query", "")))

    @answers(listed(replies.shared_element), query={**ORDER_QUERY, **TEXT_QUERY})
    async def list_shared(self, request: web.Request) -> web.StreamResponse:
        """Answer the shared chats as list elements with `share_id`."""
        query = paged(request.query, ChatQuery(shared=True, text=request.query.get("query", "")))
        found, _ = await self._chats.find(actor(request), query)
        return await large_reply([{**render_list_item(chat), "share_id": chat.share_id} for chat in found])

    @answers(listed(replies.chat_element), query={**ORDER_QUERY, **TEXT_QUERY})
    async def list_of(self, request: web.Request) -> web.StreamResponse:
        """Answer the chats of a user as list elements; 403 unless ENABLE_ADMIN_CHAT_ACCESS is set."""
        query = paged(request.query, ChatQuery(text=request.query.get("query", "")))
        found, _ = await self._chats.list_of(actor(request), request.match_info["user_id"], query)
        return await large_reply(found)

    @answers(listed(replies.chat))
    async def give_all(self, request: web.Request) -> web.StreamResponse:
        """Answer `[record]` as a stream; 403 without the permission chat.export."""
        return await send_records(request, await self._transfer.give_all(actor(request), ChatQuery()))

    @answers(listed(replies.chat))
    async def give_archived(self, request: web.Request) -> web.StreamResponse:
        """Answer `[record]` of the archived chats; 403 without the permission chat.export."""
        query = ChatQuery(archived=True)
        return await send_records(request, await self._transfer.give_all(actor(request), query))

    @answers(listed(replies.chat))
    async def give_everything(self, request: web.Request) -> web.StreamResponse:
        """Answer `[record]` of every user; 403 unless ENABLE_ADMIN_CHAT_ACCESS is set."""
        return await send_records(request, await self._transfer.give_everything(actor(request)))

    @answers(listed(replies.tag))
    async def list_tags(self, request: web.Request) -> web.StreamResponse:
        """Answer `[{"id", "name", "user_id", "meta"}]`."""
        return await large_reply(list(map(render_tag, await self._tags.all(actor(request)))))

    @answers(listed(replies.chat_element))
    async def list_tagged(self, request: web.Request) -> web.StreamResponse:
        """`{"name", "skip"?, "limit"?}` -> list elements."""
        form = await read_model(request, TaggedBody)
        found = await self._tags.chats(actor(request), form.name, form.skip, form.limit)
        return await large_reply(list(map(render_list_item, found)))

    async def _listed(self, request: web.Request, query: ChatQuery) -> web.StreamResponse:
        found, _ = await self._chats.list(actor(request), paged(request.query, query))
        return await packed(request, await large_reply(found))


def paged(sent: Mapping[str, str], query: ChatQuery) -> ChatQuery:
    """Return a query with the page and order of the request."""
    sort_by = sent.get("sort_by", sent.get("order_by", SORT_FIELDS[0]))
    if sort_by not in SORT_FIELDS:
        raise invalid_parameter("sort_by", f"expected {', '.join(SORT_FIELDS)}")
    direction = sent.get("sort_dir", sent.get("direction", "desc"))
    if direction not in {"asc", "desc"}:
        raise invalid_parameter("sort_dir", "expected asc or desc")
    query = replace(query, sort_by=sort_by, descending=direction == "desc")
    if "page" not in sent:
        return query
    offset, limit = parse_page(sent, PAGE_SIZE)
    return replace(query, offset=offset, limit=limit)
