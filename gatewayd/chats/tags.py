"""The tags of stored chats."""

from collections.abc import Sequence
from typing import Any, Final

from gatewayd.accounts.records import Actor
from gatewayd.accounts.texts import clean
from gatewayd.chats.access import ChatAccess
from gatewayd.chats.interfaces import ChatStore
from gatewayd.chats.records import Chat, ChatQuery, Tag

MAX_TAG_CHARACTERS: Final = 255


def tag_id(name: str) -> str:
    """Return the id of a tag: its name in lower case with `_` for blanks."""
    return name.strip().lower().replace(" ", "_")[:MAX_TAG_CHARACTERS]


def make_tag(user_id: str, name: str) -> Tag:
    """Return a tag with this name; raise invalid_request for an empty, too long or unprintable name."""
    cleaned = clean(name, "name", longest=MAX_TAG_CHARACTERS)
    return Tag(tag_id(cleaned), cleaned, user_id)


def render_tag(tag: Tag) -> dict[str, Any]:
    """Render a tag for clients."""
    return {"id": tag.id, "name": tag.name, "user_id": tag.user_id, "meta": None}


class ChatTags:
    """Adds tags to chats, removes them, and finds chats by tag."""

    def __init__(self, store: ChatStore, access: ChatAccess) -> None:
        self._store = store
        self._access = access

    async def all(self, actor: Actor) -> Sequence[Tag]:
        """Return the tags of all chats of the actor."""
        return await self._store.tags(user_id=actor.user_id)

    async def list(self, actor: Actor, chat_id: str) -> Sequence[Tag]:
        """Return the tags of a chat."""
        await self._access.owned(actor, chat_id)
        return await self._store.tags(chat_id=chat_id)

    async def add(self, actor: Actor, chat_id: str, name: str) -> Sequence[Tag]:
        """Add a tag to a chat and return all its tags."""
        chat = await self._access.get_changeable(actor, chat_id)
        await self._store.add_tag(chat_id, make_tag(chat.user_id, name))
        return await self._store.tags(chat_id=chat_id)

    async def remove(self, actor: Actor, chat_id: str, name: str | None = None) -> Sequence[Tag]:
        """Remove one tag, by name or id, or all tags from a chat; return the remaining ones."""
        await self._access.get_changeable(actor, chat_id)
        tag_ids = None if name is None else [tag_id(clean(name, "name", longest=MAX_TAG_CHARACTERS))]
        await self._store.remove_tags(chat_id, tag_ids)
        return await self._store.tags(chat_id=chat_id)

    async def chats(self, actor: Actor, name: str, offset: int, limit: int | None) -> Sequence[Chat]:
        """Return the actor's chats with a tag, the most recently changed first."""
        wanted = (tag_id(clean(name, "name", longest=MAX_TAG_CHARACTERS)),)
        query = ChatQuery(actor.user_id, tags=wanted, offset=offset, limit=limit)
        return (await self._store.list(query))[0]
