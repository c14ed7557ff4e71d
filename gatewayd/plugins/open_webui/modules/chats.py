"""Implementation of `open_webui.models.chats`."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

from pydantic import Field

from gatewayd.plugins.interfaces import Record
from gatewayd.plugins.open_webui.awaitable_records import AnswerDict, AnswerList, AnswerRecord, Item
from gatewayd.plugins.open_webui.host_bridge import HostBridge, HostTable, blocking


class ChatModel(AnswerRecord):
    """A stored chat; `chat` holds its title, models and history."""

    id: str
    user_id: str = ""
    title: str = ""
    chat: dict[str, Any] = Field(default_factory=dict)
    created_at: int = 0
    updated_at: int = 0
    share_id: str | None = None
    archived: bool = False
    pinned: bool | None = False
    meta: dict[str, Any] = Field(default_factory=dict)
    folder_id: str | None = None


class ChatTitleIdResponse(AnswerRecord):
    """A chat in lists: id, title and times."""

    id: str
    title: str = ""
    updated_at: int = 0
    created_at: int = 0


class TagModel(AnswerRecord):
    """A tag of chats."""

    id: str
    name: str = ""
    user_id: str = ""
    meta: dict[str, Any] | None = None


class ChatList(AnswerList[Item]):
    """A list of chats with `items` and `total`, as newer releases of Open WebUI return it."""

    @property
    def items(self) -> Self:
        """The chats."""
        return self

    @property
    def total(self) -> int:
        """The number of chats in the list."""
        return len(self)


class ChatForm(AnswerRecord):
    """A chat to insert."""

    chat: dict[str, Any]
    folder_id: str | None = None


def messages_of(chat: Record | None) -> dict[str, Any]:
    """Return the messages of a chat record by id."""
    history = ((chat or {}).get("chat") or {}).get("history") or {}
    return dict(history.get("messages") or {})


class ChatsTable(HostTable):
    """The class of `Chats`."""

    @blocking
    async def get_chat_by_id(self, id: str) -> ChatModel | None:
        """Return a chat; None when absent."""
        return ChatModel.of(await self._host.chats.find(id, None))

    @blocking
    async def get_chat_by_id_and_user_id(self, id: str, user_id: str) -> ChatModel | None:
        """Return a chat of a user; None when absent or owned by another user."""
        return ChatModel.of(await self._host.chats.find(id, user_id))

    @blocking
    async def is_chat_owner(self, id: str, user_id: str) -> bool:
        """Whether a user owns a chat."""
        return await self._host.chats.find(id, user_id) is not None

    @blocking
    async def get_chat_title_by_id(self, id: str) -> str | None:
        """Return the title of a chat."""
        chat = ChatModel.of(await self._host.chats.find(id, None))
        return None if chat is None else chat.title

    @blocking
    async def get_chats_by_user_id(
        self,
        user_id: str,
        filter: Mapping[str, Any] | None = None,
        skip: int | None = None,
        limit: int | None = None,
    ) -> ChatList[ChatModel]:
        """Return the chats of a user with their messages; `filter` is ignored."""
        del filter
        listed = await self._host.chats.list(user_id, skip or 0, limit)
        found = [await self._host.chats.find(str(chat["id"]), user_id) for chat in listed]
        return ChatList(ChatModel.each(chat for chat in found if chat is not None))

    @blocking
    async def get_chat_list_by_user_id(
        self,
        user_id: str,
        include_archived: bool = False,
        filter: Mapping[str, Any] | None = None,
        skip: int = 0,
        limit: int | None = 50,
    ) -> ChatList[ChatTitleIdResponse]:
        """Return the unarchived chats of a user without their messages."""
        del include_archived, filter
        return ChatList(ChatTitleIdResponse.each(await self._host.chats.list(user_id, skip, limit)))

    @blocking
    async def get_chat_title_id_list_by_user_id(
        self,
        user_id: str,
        include_archived: bool = False,
        skip: int | None = None,
        limit: int | None = None,
        **_: Any,
    ) -> ChatList[ChatTitleIdResponse]:
        """Return ids, titles and times of the chats of a user."""
        del include_archived
        return ChatList(ChatTitleIdResponse.each(await self._host.chats.list(user_id, skip or 0, limit)))

    @blocking
    async def get_messages_map_by_chat_id(self, id: str) -> AnswerDict[str, Any] | None:
        """Return the messages of a chat by their ids."""
        chat = await self._host.chats.find(id, None)
        return None if chat is None else AnswerDict(messages_of(chat))

    get_messages_by_chat_id = get_messages_map_by_chat_id
    """The name in older releases."""

    @blocking
    async def get_message_by_id_and_message_id(self, id: str, message_id: str) -> AnswerDict[str, Any] | None:
        """Return one message."""
        message = await self._host.chats.find_message(id, message_id)
        return None if message is None else AnswerDict(message)

    @blocking
    async def upsert_message_to_chat_by_id_and_message_id(
        self, id: str, message_id: str, message: Mapping[str, Any]
    ) -> ChatModel | None:
        """Merge the fields of a message or add it; return the chat, None when absent."""
        if not await self._host.chats.put_message(id, message_id, message):
            return None
        return ChatModel.of(await self._host.chats.find(id, None))

    @blocking
    async def add_message_files_by_id_and_message_id(
        self, id: str, message_id: str, files: Sequence[Any]
    ) -> AnswerList[Any] | None:
        """Add files to a message; return all its files, None when the message is absent."""
        return _listed(await self._host.chats.append_items(id, message_id, "files", files))

    @blocking
    async def add_message_status_to_chat_by_id_and_message_id(
        self, id: str, message_id: str, status: Mapping[str, Any]
    ) -> ChatModel | None:
        """Add to the status history of a message; return the chat, None when absent."""
        if await self._host.chats.append_items(id, message_id, "statusHistory", [dict(status)]) is None:
            return None
        return ChatModel.of(await self._host.chats.find(id, None))

    @blocking
    async def insert_chat_files(
        self, chat_id: str, message_id: str, file_ids: Sequence[str], user_id: str
    ) -> AnswerList[Any]:
        """Do nothing: the file list of a message is the only link between a chat and a file."""
        del chat_id, message_id, file_ids, user_id
        return AnswerList()

    @blocking
    async def insert_new_chat(self, user_id: str, form_data: ChatForm, *more: Any) -> ChatModel | None:
        """Store a new chat; an id, the first argument in newer releases, is ignored."""
        if more:
            user_id, form_data = str(form_data), more[0]
        return ChatModel.of(await self._host.chats.create(user_id, form_data.chat))

    @blocking
    async def update_chat_by_id(self, id: str, chat: Mapping[str, Any]) -> ChatModel | None:
        """Merge into the `chat` object; return the chat, None when absent."""
        return ChatModel.of(await self._host.chats.change(id, chat))

    @blocking
    async def update_chat_title_by_id(self, id: str, title: str) -> ChatModel | None:
        """Set the title of a chat; return the chat, None when absent."""
        return ChatModel.of(await self._host.chats.change(id, {"title": title}))

    @blocking
    async def delete_chat_by_id(self, id: str) -> bool:
        """Delete a chat; False when absent."""
        return await self._host.chats.remove(id, None)

    @blocking
    async def delete_chat_by_id_and_user_id(self, id: str, user_id: str) -> bool:
        """Delete a chat of a user; False when absent or owned by another user."""
        return await self._host.chats.remove(id, user_id)

    @blocking
    async def get_chat_tags_by_id_and_user_id(self, id: str, user_id: str) -> AnswerList[TagModel]:
        """Return the tags of a chat of a user."""
        if await self._host.chats.find(id, user_id) is None:
            return AnswerList()
        return TagModel.each(await self._host.chats.tags(id))


def _listed(values: Sequence[Any] | None) -> AnswerList[Any] | None:
    return None if values is None else AnswerList(values)


def make_chats(bridge: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.models.chats`."""
    return {
        "Chats": ChatsTable(bridge, "open_webui.models.chats.Chats"),
        "ChatModel": ChatModel,
        "Chat": ChatModel,
        "ChatResponse": ChatModel,
        "ChatForm": ChatForm,
        "ChatTitleIdResponse": ChatTitleIdResponse,
    }
