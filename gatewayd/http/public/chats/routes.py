"""Routes of `/api/v1/chats` for single stored chats and their messages."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from aiohttp import web

from gatewayd.chats.records import Tag
from gatewayd.chats.service_bundle import ChatServices
from gatewayd.chats.tags import render_tag
from gatewayd.chats.transfer import MAX_IMPORTED_CHATS
from gatewayd.events.records import EventTarget
from gatewayd.http.body import json_reply, large_reply, read_members, read_model
from gatewayd.http.context import actor
from gatewayd.http.public.chats.bodies import (
    ChatBody,
    CloneBody,
    ImportBody,
    MessageBody,
    NewChatBody,
    TagBody,
)
from gatewayd.http.reply_schemas import chats as replies
from gatewayd.http.responses.json_parts import send_records
from gatewayd.http.routes import Route, RouteAccess, RouteGroup
from gatewayd.http.schemas import BOOLEAN, TRUE, answers, listed
from gatewayd.json_decoder import CHAT_LIMITS, LARGE_LIMITS, UndecodedMember

PREFIX: Final = "/api/v1/chats"
MAX_CHAT_BYTES: Final = 32 * 2**20
MAX_IMPORT_BYTES: Final = 128 * 2**20
IMPORTED: Final = UndecodedMember("chats", MAX_IMPORTED_CHATS)
MESSAGE: Final = replace(LARGE_LIMITS, depth=CHAT_LIMITS.depth)
_row = RouteGroup(PREFIX, "chats").row

Notify = Callable[[EventTarget, Any], Awaitable[object]]
"""Sends an event about a message to the subscribers of a user: `events.service.Events.emit`."""


class StoredChatRoutes:
    """Routes of single chats and their messages."""

    def __init__(self, services: ChatServices, notify: Notify) -> None:
        self._chats = services.chats
        self._tags = services.tags
        self._sharing = services.sharing
        self._transfer = services.transfer
        self._folders = services.folders
        self._notify = notify

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        access = RouteAccess.VERIFIED
        return [
            _row("POST", "/new", self.create, access, "Create a chat", NewChatBody),
            _row("POST", "/import", self.import_all, access, "Import chats", ImportBody),
            _row("DELETE", "/", self.remove_all, access, "Delete all chats of the caller"),
            _row("POST", "/archive/all", self.archive_all, access, "Archive all chats of the caller"),
            _row(
                "POST",
                "/unarchive/all",
                self.unarchive_all,
                access,
                "Restore all archived chats of the caller",
            ),
            _row("GET", "/share/{share_id}", self.show_shared, access, "Show a shared chat"),
            _row("GET", "/{id}", self.show, access, "Show a chat"),
            _row("POST", "/{id}", self.change, access, "Change a chat", ChatBody),
            _row("DELETE", "/{id}", self.remove, access, "Delete a chat"),
            _row(
                "POST",
                "/{id}/messages/{message_id}",
                self.put_message,
                access,
                "Add or change a message",
                MessageBody,
            ),
            _row("DELETE", "/{id}/messages/{message_id}", self.remove_message, access, "Delete a message"),
            _row("GET", "/{id}/pinned", self.is_pinned, access, "Report whether a chat is pinned"),
            _row("POST", "/{id}/pin", self.pin, access, "Pin or unpin a chat"),
            _row("POST", "/{id}/archive", self.archive, access, "Archive or restore a chat"),
            _row("POST", "/{id}/clone", self.clone, access, "Copy a chat", CloneBody),
            _row("POST", "/{id}/clone/shared", self.clone_shared, access, "Copy a shared chat"),
            _row("POST", "/{id}/share", self.share, access, "Share a snapshot of a chat"),
            _row("DELETE", "/{id}/share", self.unshare, access, "Stop sharing a chat"),
            _row("GET", "/{id}/export", self.export, access, "Export a chat"),
            _row("GET", "/{id}/tags", self.list_tags, access, "List the tags of a chat"),
            _row("POST", "/{id}/tags", self.add_tag, access, "Add a tag to a chat", TagBody),
            _row("DELETE", "/{id}/tags", self.remove_tag, access, "Remove a tag from a chat", TagBody),
            _row("DELETE", "/{id}/tags/all", self.remove_tags, access, "Remove all tags from a chat"),
        ]

    @answers(replies.chat)
    async def create(self, request: web.Request) -> web.StreamResponse:
        """`{"chat": {"title"?, "models"?, "history"?, "messages"?, ...}}` -> the record.

        `history` is `{"messages": {id: message}, "currentId"}`; `messages` alone become a linear history. 404
        for a `folder_id` of another user.
        """
        form = await read_model(request, NewChatBody, MAX_CHAT_BYTES, CHAT_LIMITS)
        made = await self._folders.create_chat(actor(request), form.chat, form.folder_id)
        return await self._changed(made)

    @answers(listed(replies.chat))
    async def import_all(self, request: web.Request) -> web.StreamResponse:
        """`{"chats": [{"chat", "meta"?, "pinned"?, "created_at"?, "updated_at"?, ...}]}` -> `[record]`.

        All chats are imported, or none. 403 without the permission chat.import. A chat goes into the folder
        of its `folder_id`, or else of the names in `folder_path`, where missing folders are made; without
        the permission features.folders it is in none.
        """
        form, members = await read_members(request, ImportBody, MAX_IMPORT_BYTES, IMPORTED, CHAT_LIMITS)
        made = await self._transfer.take(actor(request), form.chats if members is None else members)
        for user_id in {chat.user_id for chat in made}:
            await announce_chats(self._notify, user_id)
        return await send_records(request, self._transfer.records(made))

    @answers(replies.chat)
    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer the record; 404 for an unknown chat or one of another user."""
        return await large_reply(await self._chats.get(actor(request), _id(request)))

    @answers(replies.chat)
    async def change(self, request: web.Request) -> web.StreamResponse:
        """`{"chat": {...}}` -> the record.

        Top-level members replace stored ones. `history.messages` is merged by message, and each message by
        member; absent ones stay.
        """
        form = await read_model(request, ChatBody, MAX_CHAT_BYTES, CHAT_LIMITS)
        record = await self._chats.change(actor(request), _id(request), form.chat)
        if has_messages(form.chat):
            await announce_messages(self._notify, record["user_id"], record["id"])
        return await self._changed(record)

    @answers(TRUE)
    async def remove(self, request: web.Request) -> web.StreamResponse:
        """Stop the tasks of a chat and delete it; answers true. 403 without the permission chat.delete."""
        caller = actor(request)
        chat = await self._chats.owned(caller, _id(request))
        await self._chats.remove(caller, chat.id)
        await announce_chats(self._notify, chat.user_id, chat.id, chat.folder_id)
        return json_reply(data=True)

    @answers(TRUE)
    async def remove_all(self, request: web.Request) -> web.StreamResponse:
        """Delete all chats of the caller; answers true. 403 without the permission chat.delete."""
        await self._chats.remove_all(actor(request))
        await announce_chats(self._notify, actor(request).user_id)
        return json_reply(data=True)

    @answers(replies.chat)
    async def put_message(self, request: web.Request) -> web.StreamResponse:
        """`{"content", ...}` -> the record; a new message follows the current one.

        The subscribers of the owner get `chat:message`.
        """
        form = await read_model(request, MessageBody, MAX_CHAT_BYTES, MESSAGE)
        chat_id = _id(request)
        made = await self._chats.put_message(
            actor(request), chat_id, request.match_info["message_id"], form.model_dump(exclude_unset=True)
        )
        record = await self._chats.record(chat_id)
        content = made.content if made.parts is None else made.parts
        data = {"chat_id": chat_id, "message_id": made.id, "content": content}
        target = EventTarget(record["user_id"], chat_id, made.id)
        await self._notify(target, {"type": "chat:message", "data": data})
        return await large_reply(record)

    @answers(replies.chat)
    async def remove_message(self, request: web.Request) -> web.StreamResponse:
        """Delete a message -> the record; its children move to its parent.

        403 without the permission chat.delete_message.
        """
        await self._chats.remove_message(actor(request), _id(request), request.match_info["message_id"])
        record = await self._chats.record(_id(request))
        await announce_messages(self._notify, record["user_id"], record["id"])
        return await large_reply(record)

    @answers(BOOLEAN)
    async def is_pinned(self, request: web.Request) -> web.StreamResponse:
        """Answer true or false."""
        return json_reply((await self._chats.owned(actor(request), _id(request))).pinned)

    @answers(replies.chat)
    async def pin(self, request: web.Request) -> web.StreamResponse:
        """Toggle whether a chat is pinned -> the record."""
        return await self._changed(await self._chats.toggle_pinned(actor(request), _id(request)))

    @answers(replies.chat)
    async def archive(self, request: web.Request) -> web.StreamResponse:
        """Toggle whether a chat is archived -> the record."""
        return await self._changed(await self._chats.toggle_archived(actor(request), _id(request)))

    @answers(TRUE)
    async def archive_all(self, request: web.Request) -> web.StreamResponse:
        """Archive all chats of the caller; answers true."""
        await self._chats.archive_all(actor(request), archived=True)
        await announce_chats(self._notify, actor(request).user_id)
        return json_reply(data=True)

    @answers(TRUE)
    async def unarchive_all(self, request: web.Request) -> web.StreamResponse:
        """Restore all archived chats of the caller; answers true."""
        await self._chats.archive_all(actor(request), archived=False)
        await announce_chats(self._notify, actor(request).user_id)
        return json_reply(data=True)

    @answers(replies.chat)
    async def clone(self, request: web.Request) -> web.StreamResponse:
        """`{"title"?}` -> the record of a copy."""
        form = await read_model(request, CloneBody)
        return await self._changed(await self._transfer.clone(actor(request), _id(request), form.title))

    @answers(replies.chat)
    async def clone_shared(self, request: web.Request) -> web.StreamResponse:
        """Copy a shared chat -> the record of the caller's copy."""
        return await self._changed(await self._transfer.clone_shared(actor(request), _id(request)))

    @answers(replies.chat)
    async def share(self, request: web.Request) -> web.StreamResponse:
        """Share a snapshot of a chat -> the record with `share_id`, which a later share keeps.

        403 without the permission chat.share.
        """
        return await large_reply(await self._sharing.share(actor(request), _id(request)))

    @answers(BOOLEAN)
    async def unshare(self, request: web.Request) -> web.StreamResponse:
        """Stop sharing a chat; answers false for a chat that was not shared."""
        return json_reply(await self._sharing.unshare(actor(request), _id(request)))

    @answers(replies.chat)
    async def show_shared(self, request: web.Request) -> web.StreamResponse:
        """Answer the shared snapshot of the record, to every verified account."""
        return await large_reply(await self._sharing.get(request.match_info["share_id"]))

    @answers(replies.chat)
    async def export(self, request: web.Request) -> web.StreamResponse:
        """Answer the record in the format of `/import`; 403 without the permission chat.export.

        `folder_path` has the names of its folders, the outermost first; it is absent without one.
        """
        return await large_reply(await self._transfer.give(actor(request), _id(request)))

    @answers(listed(replies.tag))
    async def list_tags(self, request: web.Request) -> web.StreamResponse:
        """Answer `[{"id", "name", "user_id", "meta"}]`."""
        return json_reply(list(map(render_tag, await self._tags.list(actor(request), _id(request)))))

    @answers(listed(replies.tag))
    async def add_tag(self, request: web.Request) -> web.StreamResponse:
        """`{"name"}` -> all tags of the chat."""
        form = await read_model(request, TagBody)
        tags = await self._tags.add(actor(request), _id(request), form.name)
        return await self._tagged(request, tags)

    @answers(listed(replies.tag))
    async def remove_tag(self, request: web.Request) -> web.StreamResponse:
        """`{"name"}` -> the remaining tags of the chat."""
        form = await read_model(request, TagBody)
        left = await self._tags.remove(actor(request), _id(request), form.name)
        return await self._tagged(request, left)

    @answers(TRUE)
    async def remove_tags(self, request: web.Request) -> web.StreamResponse:
        """Remove all tags of a chat; answers true."""
        await self._tags.remove(actor(request), _id(request))
        await announce_chats(self._notify, actor(request).user_id, _id(request))
        return json_reply(data=True)

    async def _tagged(self, request: web.Request, tags: Sequence[Tag]) -> web.StreamResponse:
        # Only the owner of a chat may change it.
        await announce_chats(self._notify, actor(request).user_id, _id(request))
        return json_reply(list(map(render_tag, tags)))

    async def _changed(self, record: dict[str, Any]) -> web.StreamResponse:
        """Announce a new or changed chat to its owner, and answer its record."""
        await announce_chats(self._notify, record["user_id"], record["id"], record["folder_id"])
        return await large_reply(record)


async def announce_chats(
    notify: Notify, user_id: str, chat_id: str | None = None, folder_id: str | None = None
) -> None:
    """Tell the subscribers of a user that their lists of chats changed, by the event `chat:list`.

    `chat_id` is None after a change of many chats.
    """
    data = {"chat_id": chat_id, "folder_id": folder_id}
    await notify(EventTarget(user_id, chat_id or ""), {"type": "chat:list", "data": data})


async def announce_messages(notify: Notify, user_id: str, chat_id: str) -> None:
    """Tell the subscribers of a user that messages of a chat were changed or removed, by `chat:reload`."""
    await notify(EventTarget(user_id, chat_id), {"type": "chat:reload", "data": {"chat_id": chat_id}})


def has_messages(chat: Any) -> bool:
    """Return whether a change of a chat is about its messages."""
    return isinstance(chat, Mapping) and not {"history", "messages"}.isdisjoint(chat)


def _id(request: web.Request) -> str:
    return request.match_info["id"]
