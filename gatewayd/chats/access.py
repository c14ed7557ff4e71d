"""Who may do what with a stored chat; a foreign one does not exist."""

from gatewayd.accounts.permissions import require
from gatewayd.accounts.records import Actor
from gatewayd.accounts.texts import is_plain
from gatewayd.chats.interfaces import ChatStore
from gatewayd.chats.parser import MAX_ID_CHARACTERS
from gatewayd.chats.records import Chat, SharedChat
from gatewayd.errors import ErrorKind, GatewayError, not_found


class ChatAccess:
    """Finds chats for an actor; with `admin_access` administrators may read, stop and delete all of them."""

    def __init__(self, store: ChatStore, *, admin_access: bool) -> None:
        self._store = store
        self._admin_access = admin_access

    def sees_all(self, actor: Actor) -> bool:
        """Tell whether an actor may read the chats of others."""
        return actor.is_admin and self._admin_access

    def require_all(self, actor: Actor) -> None:
        """Raise forbidden unless the actor may read the chats of others."""
        if not self.sees_all(actor):
            raise GatewayError(
                ErrorKind.FORBIDDEN,
                "cannot show the chats of others: it takes an administrator, and ENABLE_ADMIN_CHAT_ACCESS",
            )

    async def owned(self, actor: Actor, chat_id: str) -> Chat:
        """Return a chat of the actor's own, or any that it may read as an administrator; else not_found."""
        chat = await self._store.find(chat_id) if _may_be_id(chat_id) else None
        if chat is None or (chat.user_id != actor.user_id and not self.sees_all(actor)):
            raise not_found("chat", chat_id)
        return chat

    async def get_changeable(self, actor: Actor, chat_id: str) -> Chat:
        """Return a chat of the actor's own; forbidden for one that it may only read."""
        chat = await self.owned(actor, chat_id)
        if chat.user_id != actor.user_id:
            raise GatewayError(ErrorKind.FORBIDDEN, f"cannot change chat {chat_id!r}: it is another user's")
        return chat

    async def shared(self, share_id: str) -> SharedChat:
        """Return what was shared under an id, which every verified account may read; else not_found."""
        shared = await self._store.find_shared(share_id) if _may_be_id(share_id) else None
        if shared is None:
            raise not_found("shared chat", share_id)
        return shared


def require_chat(actor: Actor, leaf: str) -> None:
    """Raise forbidden unless the actor is an administrator, or has a permission of the section `chat`."""
    if not actor.is_admin:
        require(actor, "chat", leaf)


def _may_be_id(chat_id: str) -> bool:
    return 0 < len(chat_id) <= MAX_ID_CHARACTERS and is_plain(chat_id)
