"""Access rules of stored chats: another user's chat is reported as not found."""

from gatewayd.accounts.permissions import require
from gatewayd.accounts.records import Actor
from gatewayd.accounts.texts import is_plain
from gatewayd.chats.interfaces import ChatStore
from gatewayd.chats.parser import MAX_ID_CHARACTERS
from gatewayd.chats.records import Chat, SharedChat
from gatewayd.errors import ErrorKind, GatewayError, not_found


class ChatAccess:
    """Finds chats for an actor; with `admin_access` administrators may read, stop and delete all chats."""

    def __init__(self, store: ChatStore, *, admin_access: bool) -> None:
        self._store = store
        self._admin_access = admin_access

    def sees_all(self, actor: Actor) -> bool:
        """Tell whether an actor may read the chats of other users."""
        return actor.is_admin and self._admin_access

    def require_all(self, actor: Actor) -> None:
        """Raise forbidden unless the actor may read the chats of other users."""
        if not self.sees_all(actor):
            raise GatewayError(
                ErrorKind.FORBIDDEN,
                "cannot show chats of other users: requires an administrator and ENABLE_ADMIN_CHAT_ACCESS",
            )

    async def owned(self, actor: Actor, chat_id: str) -> Chat:
        """Return a chat of the actor, or any chat if the actor may read all of them; else not_found."""
        chat = await self._store.find(chat_id) if _may_be_id(chat_id) else None
        if chat is None or (chat.user_id != actor.user_id and not self.sees_all(actor)):
            raise not_found("chat", chat_id)
        return chat

    async def get_changeable(self, actor: Actor, chat_id: str) -> Chat:
        """Return a chat of the actor; raise forbidden for a chat that the actor may only read."""
        chat = await self.owned(actor, chat_id)
        if chat.user_id != actor.user_id:
            raise GatewayError(
                ErrorKind.FORBIDDEN, f"cannot change chat {chat_id!r}: it belongs to another user"
            )
        return chat

    async def shared(self, share_id: str) -> SharedChat:
        """Return a shared snapshot by its share id; every verified account may read it. Else not_found."""
        shared = await self._store.find_shared(share_id) if _may_be_id(share_id) else None
        if shared is None:
            raise not_found("shared chat", share_id)
        return shared


def require_chat(actor: Actor, leaf: str) -> None:
    """Raise forbidden unless the actor is an administrator or has the permission `chat.<leaf>`."""
    if not actor.is_admin:
        require(actor, "chat", leaf)


def _may_be_id(chat_id: str) -> bool:
    return 0 < len(chat_id) <= MAX_ID_CHARACTERS and is_plain(chat_id)
