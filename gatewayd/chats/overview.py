"""Overview of chats: favourite messages, and searches that name the matching message."""

from collections.abc import Sequence
from typing import Any

from gatewayd.accounts.records import Actor
from gatewayd.chats.interfaces import MessageSearch
from gatewayd.chats.records import ChatQuery, FavouriteMessage
from gatewayd.chats.renderer import render_list_item
from gatewayd.chats.service import Chats


class ChatOverview:
    """Finds messages in all chats of a user."""

    def __init__(self, chats: Chats, search: MessageSearch) -> None:
        self._chats = chats
        self._search = search

    async def favourites(self, actor: Actor, offset: int, limit: int) -> Sequence[FavouriteMessage]:
        """Return a page of the actor's favourite messages, the newest first."""
        return await self._search.favourites(actor.user_id, offset, limit)

    async def search(self, actor: Actor, query: ChatQuery) -> Sequence[dict[str, Any]]:
        """Return a page of the actor's chats as list elements.

        Each has `message_id` and `snippet` of its newest message that contains the text, null without one.
        """
        found, _ = await self._chats.find(actor, query)
        matches = await self._search.matches([chat.id for chat in found], query.text)
        matched = {match.chat_id: match for match in matches}
        return [
            {
                **render_list_item(chat),
                "message_id": matched[chat.id].message_id if chat.id in matched else None,
                "snippet": matched[chat.id].snippet if chat.id in matched else None,
            }
            for chat in found
        ]


def render_favourite(message: FavouriteMessage) -> dict[str, Any]:
    """Render a favourite message for clients."""
    return {
        "chat_id": message.chat_id,
        "title": message.title,
        "folder_id": message.folder_id,
        "message_id": message.message_id,
        "role": message.role,
        "model": message.model,
        "content": message.text,
        "timestamp": message.timestamp,
    }
