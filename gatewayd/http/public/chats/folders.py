"""Routes of `/api/v1/folders`, and of the folders of chats below `/api/v1/chats`."""

from collections.abc import Sequence
from typing import Any, Final

from aiohttp import web

from gatewayd.chats.folders import FolderFields
from gatewayd.chats.records import ChatFolder, ChatQuery
from gatewayd.chats.service_bundle import ChatServices
from gatewayd.http.body import json_reply, large_reply, read_model
from gatewayd.http.context import actor
from gatewayd.http.public.chats.bodies import (
    ChatFolderBody,
    FolderBody,
    FolderChangeBody,
    FolderExpandedBody,
    FolderParentBody,
)
from gatewayd.http.public.chats.lists import ORDER_QUERY, paged
from gatewayd.http.public.chats.routes import PREFIX as CHATS
from gatewayd.http.public.chats.routes import Notify, announce_chats
from gatewayd.http.public.query_parameters import parse_flag
from gatewayd.http.reply_schemas import chats as replies
from gatewayd.http.responses.json_parts import send_records
from gatewayd.http.responses.packed_json import packed
from gatewayd.http.routes import Route, RouteAccess, RouteGroup
from gatewayd.http.schemas import TRUE, answers, listed

PREFIX: Final = "/api/v1/folders"
REMOVAL_QUERY: Final = {
    "delete_contents": "With false, the chats of the folder are kept, outside folders; true by default."
}
_row = RouteGroup(PREFIX, "folders").row
_chat_row = RouteGroup(CHATS, "folders").row


class FolderRoutes:
    """Routes of folders; their changes are announced to the subscribers of their user."""

    def __init__(self, services: ChatServices, notify: Notify) -> None:
        self._folders = services.folders
        self._chats = services.chats
        self._transfer = services.transfer
        self._notify = notify

    def routes(self) -> Sequence[Route]:
        """Return the rows, which stand before those of `/api/v1/chats/{id}`."""
        access = RouteAccess.VERIFIED
        return [
            _row("GET", "/", self.list, access, "List folders"),
            _row("POST", "/", self.create, access, "Create a folder", FolderBody),
            _row("GET", "/{id}", self.show, access, "Show a folder"),
            _row("POST", "/{id}/update", self.change, access, "Change a folder", FolderChangeBody),
            _row("POST", "/{id}/update/parent", self.move, access, "Move a folder", FolderParentBody),
            _row(
                "POST",
                "/{id}/update/expanded",
                self.expand,
                access,
                "Store whether a folder is expanded",
                FolderExpandedBody,
            ),
            _row("DELETE", "/{id}", self.remove, access, "Delete a folder"),
            _chat_row("GET", "/folder/{folder_id}", self.give_chats, access, "Export the chats of a folder"),
            _chat_row(
                "GET", "/folder/{folder_id}/list", self.list_chats, access, "List the chats of a folder"
            ),
            _chat_row("POST", "/{id}/folder", self.place, access, "Move a chat to a folder", ChatFolderBody),
        ]

    @answers(listed(replies.folder_element))
    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer `[{"id", "name", "parent_id", "is_expanded", "meta", "created_at", "updated_at"}]` by name.

        403 without the permission features.folders, as of every row of folders.
        """
        found = await self._folders.list(actor(request))
        return await packed(request, await large_reply(list(map(_element, found))))

    @answers(replies.folder)
    async def create(self, request: web.Request) -> web.StreamResponse:
        """`{"name", "parent_id"?, "meta"?, "data"?}` -> the folder.

        409 when there is a folder of this name in the same place, in any case of letters; 413 for more than
        1000 folders; 400 below 16 folders.
        """
        form = await read_model(request, FolderBody)
        fields = FolderFields(form.name, form.parent_id, form.meta, form.data)
        return await self._changed(await self._folders.create(actor(request), fields))

    @answers(replies.folder)
    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer the folder with its `data`; 404 for one of another user."""
        return json_reply(_folder(await self._folders.get(actor(request), _id(request))))

    @answers(replies.folder)
    async def change(self, request: web.Request) -> web.StreamResponse:
        """`{"name"?, "meta"?, "data"?}` -> the folder; members of `meta` and `data` are merged."""
        form = await read_model(request, FolderChangeBody)
        fields = FolderFields(form.name, None, form.meta, form.data)
        return await self._changed(await self._folders.change(actor(request), _id(request), fields))

    @answers(replies.folder)
    async def move(self, request: web.Request) -> web.StreamResponse:
        """`{"parent_id"}` -> the folder below this one, at the top for null; 409 below itself."""
        form = await read_model(request, FolderParentBody)
        return await self._changed(await self._folders.move(actor(request), _id(request), form.parent_id))

    @answers(replies.folder)
    async def expand(self, request: web.Request) -> web.StreamResponse:
        """`{"is_expanded"}` -> the folder."""
        form = await read_model(request, FolderExpandedBody)
        folder = await self._folders.expand(actor(request), _id(request), is_expanded=form.is_expanded)
        return json_reply(_folder(folder))

    @answers(TRUE, query=REMOVAL_QUERY)
    async def remove(self, request: web.Request) -> web.StreamResponse:
        """Delete a folder, the folders below it and their chats; answers true.

        With `?delete_contents=false` the chats stay, outside folders. 403 for chats without the permission
        chat.delete.
        """
        delete = parse_flag(request.query, "delete_contents", default=True)
        caller = actor(request)
        await self._folders.remove(caller, _id(request), delete_contents=delete)
        await announce_chats(self._notify, caller.user_id, None, _id(request))
        return json_reply(data=True)

    @answers(listed(replies.chat))
    async def give_chats(self, request: web.Request) -> web.StreamResponse:
        """Answer `[record]` of a folder and the folders below it; 403 without the permission chat.export."""
        caller = actor(request)
        folders = await self._folders.subtree(caller, request.match_info["folder_id"])
        found = await self._transfer.give_all(caller, ChatQuery(folder_ids=folders, archived=False))
        return await send_records(request, found)

    @answers(listed(replies.chat_element), query=ORDER_QUERY)
    async def list_chats(self, request: web.Request) -> web.StreamResponse:
        """Answer the chats of a folder as list elements, without archived ones."""
        caller = actor(request)
        folder = await self._folders.get(caller, request.match_info["folder_id"])
        query = paged(request.query, ChatQuery(folder_ids=(folder.id,), archived=False))
        found, _ = await self._chats.list(caller, query)
        return await large_reply(found)

    @answers(replies.chat)
    async def place(self, request: web.Request) -> web.StreamResponse:
        """`{"folder_id"}` -> the record of the chat in this folder, in none for null."""
        form = await read_model(request, ChatFolderBody)
        record = await self._folders.place(actor(request), _id(request), form.folder_id)
        await announce_chats(self._notify, record["user_id"], record["id"], record["folder_id"])
        return await large_reply(record)

    async def _changed(self, folder: ChatFolder) -> web.StreamResponse:
        await announce_chats(self._notify, folder.user_id, None, folder.id)
        return json_reply(_folder(folder))


def _element(folder: ChatFolder) -> dict[str, Any]:
    return {
        "id": folder.id,
        "name": folder.name,
        "parent_id": folder.parent_id,
        "is_expanded": folder.is_expanded,
        "meta": folder.meta,
        "created_at": folder.created_at,
        "updated_at": folder.updated_at,
    }


def _folder(folder: ChatFolder) -> dict[str, Any]:
    return {**_element(folder), "user_id": folder.user_id, "data": folder.data}


def _id(request: web.Request) -> str:
    return request.match_info["id"]
