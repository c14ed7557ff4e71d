"""Routes of `/api/v1/chats/{id}/branch`: a branch in pages, changes without a long reply, and removal."""

from collections.abc import Sequence
from typing import Final

from aiohttp import web

from gatewayd.chats.branches import DEFAULT_PAGE_MESSAGES, MAX_PAGE_MESSAGES, BranchQuery, Still
from gatewayd.chats.service_bundle import ChatServices
from gatewayd.http.body import json_reply, large_reply, read_model
from gatewayd.http.context import actor
from gatewayd.http.public.chats.bodies import ChatBody
from gatewayd.http.public.chats.routes import (
    MAX_CHAT_BYTES,
    PREFIX,
    Notify,
    announce_chats,
    announce_messages,
    has_messages,
)
from gatewayd.http.public.query_parameters import parse_number
from gatewayd.http.reply_schemas import chats as replies
from gatewayd.http.routes import Route, RouteAccess, RouteGroup
from gatewayd.http.schemas import TRUE, answers
from gatewayd.json_decoder import CHAT_LIMITS

PAGE_QUERY: Final = {
    "through": "Id of a message of the branch, the current message by default.",
    "before": "Id of the message of the branch before which the page ends.",
    "limit": f"Maximum number of messages, 1 to {MAX_PAGE_MESSAGES}, {DEFAULT_PAGE_MESSAGES} by default.",
}
_row = RouteGroup(PREFIX, "chats").row


class ChatBranchRoutes:
    """Routes of branches; `still` keeps messages from changing while they are read."""

    def __init__(self, services: ChatServices, still: Still, notify: Notify) -> None:
        self._chats = services.chats
        self._branches = services.branches
        self._still = still
        self._notify = notify

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        access = RouteAccess.VERIFIED
        return [
            _row("GET", "/{id}/branch", self.page, access, "Show a page of a branch of a chat"),
            _row(
                "POST",
                "/{id}/branch",
                self.change,
                access,
                "Change a chat, with a short reply",
                ChatBody,
            ),
            _row(
                "DELETE",
                "/{id}/branch/{message_id}",
                self.remove,
                access,
                "Delete a message and all messages below it",
            ),
        ]

    @answers(replies.branch_page, query=PAGE_QUERY)
    async def page(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"chat", "messages", "leaf_id", "has_earlier", "count", "event_id"}`, oldest message first.

        The branch leads from the first message to the current one or, if `?through=` is elsewhere, through
        that message and its newest descendants. The page holds the last messages of it, or those before
        `?before=`. Messages have `siblingIds` and `descendantCount`. They have the effects of the events up
        to `event_id` and of no later one. 404 for an unknown chat or message.
        """
        query = request.query
        limit = parse_number(query, "limit", DEFAULT_PAGE_MESSAGES, 1, MAX_PAGE_MESSAGES)
        wanted = BranchQuery(query.get("through", ""), query.get("before", ""), limit)
        chat_id = request.match_info["id"]
        return await large_reply(await self._branches.page(actor(request), chat_id, wanted, self._still))

    @answers(TRUE)
    async def change(self, request: web.Request) -> web.StreamResponse:
        """`{"chat": {...}}` -> true; changes the chat as `POST /api/v1/chats/{id}` does."""
        form = await read_model(request, ChatBody, MAX_CHAT_BYTES, CHAT_LIMITS)
        chat_id = request.match_info["id"]
        await self._chats.merge(actor(request), chat_id, form.chat)
        # Only the owner of a chat may change it.
        if has_messages(form.chat):
            await announce_messages(self._notify, actor(request).user_id, chat_id)
        await announce_chats(self._notify, actor(request).user_id, chat_id)
        return json_reply(data=True)

    @answers(replies.removed_branch)
    async def remove(self, request: web.Request) -> web.StreamResponse:
        """Delete a message with its descendants -> `{"removed"}`, their number.

        403 without the permission chat.delete_message.
        """
        chat_id, message_id = request.match_info["id"], request.match_info["message_id"]
        removed = await self._branches.remove(actor(request), chat_id, message_id)
        await announce_messages(self._notify, actor(request).user_id, chat_id)
        return json_reply({"removed": removed})
