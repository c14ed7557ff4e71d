"""Sharing of chats: a share id gives read access to a snapshot, not to later changes."""

from typing import Any

from gatewayd import ids
from gatewayd.accounts.records import Actor
from gatewayd.chats.access import require_chat
from gatewayd.chats.interfaces import ChatStore
from gatewayd.chats.records import SharedChat
from gatewayd.chats.service import Chats, Record


class ChatSharing:
    """Creates, reads and deletes the shared snapshots of chats."""

    def __init__(self, chats: Chats, store: ChatStore, clock: ids.Clock = ids.now) -> None:
        self._chats = chats
        self._store = store
        self._clock = clock

    async def share(self, actor: Actor, chat_id: str) -> Record:
        """Share a snapshot of a chat and return the chat's record; a chat keeps its share id.

        Needs the permission chat.share.
        """
        require_chat(actor, "share")
        chat = await self._chats.access.get_changeable(actor, chat_id)
        share_id = chat.share_id or ids.new_id()
        document = snapshot_of(await self._chats.record(chat_id), share_id)
        await self._store.share(SharedChat(share_id, chat_id, chat.user_id, document, self._clock()))
        return await self._chats.record(chat_id)

    async def unshare(self, actor: Actor, chat_id: str) -> bool:
        """Delete the shared snapshot of a chat; return False if there is none."""
        await self._chats.access.get_changeable(actor, chat_id)
        return await self._store.unshare(chat_id)

    async def get(self, share_id: str) -> Record:
        """Return a shared snapshot; every verified account may read it."""
        return (await self._chats.access.shared(share_id)).document


def snapshot_of(record: Record, share_id: str) -> dict[str, Any]:
    """Return the record without the owner's private fields."""
    private: Record = {"folder_id": None, "pinned": False, "archived": False, "last_read_at": None}
    return {**record, **private, "id": share_id, "share_id": share_id, "meta": {}}
