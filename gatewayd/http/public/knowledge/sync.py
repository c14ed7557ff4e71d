"""Routes that synchronise a collection with a tree of files: directories, diff and cleanup."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from aiohttp import web
from pydantic import FailFast

from gatewayd.http.audit import note_change
from gatewayd.http.body import RequestBody, json_reply, large_reply, read_each, read_members, read_model
from gatewayd.http.context import actor
from gatewayd.http.public.files.owners import RenderedDocument
from gatewayd.http.public.knowledge.replies import CollectionReplies
from gatewayd.http.public.query_parameters import PAGE_QUERY, parse_flag, parse_number, parse_page
from gatewayd.http.reply_schemas import documents, service
from gatewayd.http.routes import Route, RouteAccess, RouteGroup
from gatewayd.http.schemas import TRUE, answers
from gatewayd.ingest.records import File
from gatewayd.json_decoder import BULK_LIMITS, JsonMembers, UndecodedMember
from gatewayd.knowledge.directories import DirectoryChange, DirectoryService
from gatewayd.knowledge.members import CollectionMembers
from gatewayd.knowledge.paths import ancestor_directories
from gatewayd.knowledge.records import CollectionDirectory, CollectionLink
from gatewayd.knowledge.sync import CollectionSync, ManifestEntry, TreeDiff

PREFIX: Final = "/api/v1/knowledge"
PAGE_SIZE: Final = 30
MAX_MANIFEST_BYTES: Final = 32 * 2**20
MANIFEST: Final = UndecodedMember("manifest", 250_000)
SMALL_MANIFEST_ENTRIES: Final = 5_000
FILES_QUERY: Final = {
    **PAGE_QUERY,
    "query": "Part of the name.",
    "directory_id": "Id of the one directory to list.",
    "in_root": "With true, only files in no directory are listed.",
    "limit": "Files of a page, 1 to 1000, 30 by default; only for administrators.",
}
REMOVAL_QUERY: Final = {"move_files": "With false, the files are removed from the collection."}
_row = RouteGroup(PREFIX, "knowledge").row


class EntryBody(RequestBody):
    """A file of a tree."""

    filename: str
    checksum: str
    path: str = ""


class ManifestBody(RequestBody):
    """All files of a tree."""

    manifest: list[EntryBody]


class CleanupBody(RequestBody):
    """Files and directories to remove from a collection."""

    file_ids: Annotated[list[str], FailFast()]
    dir_ids: Annotated[list[str] | None, FailFast()] = None


class DirectoryBody(RequestBody):
    """A new directory."""

    name: str
    parent_id: str | None = None


class DirectoryChangeBody(RequestBody):
    """A change of a directory; `parent_id` null moves it to the root."""

    name: str | None = None
    parent_id: str | None = None


class MoveBody(RequestBody):
    """The new directory of a file; null is the root."""

    file_id: str
    directory_id: str | None = None


class KnowledgeSyncRoutes:
    """Routes of the directories of a collection and of its synchronisation."""

    def __init__(
        self,
        members: CollectionMembers,
        directories: DirectoryService,
        sync: CollectionSync,
        replies: CollectionReplies,
    ) -> None:
        self._members = members
        self._directories = directories
        self._sync = sync
        self._replies = replies
        self._large = asyncio.Lock()

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        access = RouteAccess.VERIFIED
        directory = "/{id}/dirs/{directory_id}"
        return [
            _row("GET", "/{id}/files", self.list_files, access, "List the files of a collection"),
            _row(
                "POST",
                "/{id}/sync/diff",
                self.diff,
                access,
                "Compare a collection with a tree of files",
                ManifestBody,
                asks=True,
            ),
            _row(
                "POST",
                "/{id}/sync/cleanup",
                self.cleanup,
                access,
                "Remove files and directories from a collection",
                CleanupBody,
            ),
            _row("POST", "/{id}/dirs/create", self.create, access, "Create a directory", DirectoryBody),
            _row(
                "POST", f"{directory}/update", self.change, access, "Change a directory", DirectoryChangeBody
            ),
            _row("DELETE", f"{directory}/delete", self.remove, access, "Remove a directory"),
            _row("POST", "/{id}/file/move", self.move, access, "Move a file to a directory", MoveBody),
        ]

    @answers(documents.member_files, query=FILES_QUERY)
    async def list_files(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"items": [File + user], "directories", "breadcrumbs", "total"}`, 30 a page.

        All files unless `?directory_id=` names a directory, or `?in_root=true` leaves out those in
        directories; `?query=` is part of the name. `directories` are its direct children, `breadcrumbs` its
        ancestors and itself, the highest first. Administrators may ask for up to 1000 a page with `?limit=`.
        """
        caller, directory_id = actor(request), request.query.get("directory_id") or None
        offset, limit = parse_page(request.query, _page_size(request))
        query = request.query.get("query", "")
        # The store takes an empty id for the root.
        place = "" if parse_flag(request.query, "in_root", default=False) else directory_id
        known = await self._directories.list(caller, _id(request))
        found, total = await self._members.list(
            caller, _id(request), query=query, directory_id=place, offset=offset, limit=limit
        )
        shown = {
            "items": await self._show_files(found),
            "directories": [render_directory(each) for each in known if each.parent_id == directory_id],
            "breadcrumbs": [render_directory(each) for each in ancestor_directories(known, directory_id)],
            "total": total,
        }
        return json_reply(shown)

    async def _show_files(self, found: Sequence[tuple[CollectionLink, File]]) -> list[RenderedDocument]:
        items = await self._replies.files(file for _, file in found)
        return [
            {**item, "directory_id": link.directory_id} for item, (link, _) in zip(items, found, strict=True)
        ]

    @answers(documents.tree_diff)
    async def diff(self, request: web.Request) -> web.StreamResponse:
        """`{"manifest": [{"filename", "path", "checksum", "size"}]}` -> the steps that synchronise the
        collection.

        `{"added": [entry], "modified": [entry + stale_file_id], "deleted": [{"file_id", "filename"}],
        "mkdir": [path], "rmdir": [directory id], "unmodified_count", "directory_map": {path: directory id}}`.
        """
        form, members = await read_members(request, ManifestBody, MAX_MANIFEST_BYTES, MANIFEST)
        if members is None or len(members) <= SMALL_MANIFEST_ENTRIES:
            return await self._compared(request, form, members)
        # A large manifest takes many times its size in memory.
        async with self._large:
            return await self._compared(request, form, members)

    async def _compared(
        self, request: web.Request, form: ManifestBody, members: JsonMembers | None
    ) -> web.StreamResponse:
        entries = [_entry(item) for item in form.manifest]
        if members is not None:
            entries = [_entry(item) async for item in read_each(members, EntryBody, MANIFEST.name)]
        diff = await self._sync.diff(actor(request), _id(request), entries)
        return await large_reply(await asyncio.to_thread(render_diff, diff))

    @answers(service.status)
    async def cleanup(self, request: web.Request) -> web.StreamResponse:
        """`{"file_ids", "dir_ids"?}` -> `{"status": true}`; unknown ids are ignored."""
        form = await read_model(request, CleanupBody, MAX_MANIFEST_BYTES, BULK_LIMITS)
        await self._sync.cleanup(actor(request), _id(request), form.file_ids, form.dir_ids or ())
        removed = {"removed": form.file_ids, "removed_directories": form.dir_ids}
        note_change(request, f"collection {_id(request)}", removed)
        return json_reply({"status": True})

    @answers(documents.directory)
    async def create(self, request: web.Request) -> web.StreamResponse:
        """`{"name", "parent_id"?}` -> Directory; 409 for a name in use in the parent."""
        form = await read_model(request, DirectoryBody)
        made = await self._directories.create(actor(request), _id(request), form.name, form.parent_id or None)
        return json_reply(render_directory(made))

    @answers(documents.directory)
    async def change(self, request: web.Request) -> web.StreamResponse:
        """`{"name"?, "parent_id"?}` -> Directory; its files move with it."""
        form = await read_model(request, DirectoryChangeBody)
        moves = "parent_id" in form.model_fields_set
        change = DirectoryChange(form.name, form.parent_id or None, moves=moves)
        changed = await self._directories.change(actor(request), _id(request), _directory(request), change)
        return json_reply(render_directory(changed))

    @answers(TRUE, query=REMOVAL_QUERY)
    async def remove(self, request: web.Request) -> web.StreamResponse:
        """Remove a directory and those below it; answers true.

        Its files move to the parent, or leave the collection with `?move_files=false`.
        """
        move = parse_flag(request.query, "move_files", default=True)
        await self._directories.remove(actor(request), _id(request), _directory(request), move_files=move)
        return json_reply(data=True)

    @answers(service.status)
    async def move(self, request: web.Request) -> web.StreamResponse:
        """`{"file_id", "directory_id"}` -> `{"status": true}`."""
        form = await read_model(request, MoveBody)
        await self._directories.move_file(
            actor(request), _id(request), form.file_id, form.directory_id or None
        )
        return json_reply({"status": True})


def _entry(item: EntryBody) -> ManifestEntry:
    return ManifestEntry(item.filename, item.checksum, item.path)


def render_directory(directory: CollectionDirectory) -> RenderedDocument:
    """Return a directory as JSON."""
    return {
        "id": directory.id,
        "knowledge_id": directory.collection_id,
        "parent_id": directory.parent_id,
        "name": directory.name,
        "user_id": directory.user_id,
        "created_at": directory.created_at,
        "updated_at": directory.updated_at,
    }


def render_diff(diff: TreeDiff) -> RenderedDocument:
    """Return the reply of `sync/diff`."""
    return {
        "added": [_show_entry(entry) for entry in diff.added],
        "modified": [{**_show_entry(entry), "stale_file_id": file.id} for entry, file in diff.modified],
        "deleted": [_show_deleted(file) for file in diff.deleted],
        "mkdir": list(diff.mkdir),
        "rmdir": list(diff.rmdir),
        "unmodified_count": diff.unmodified,
        "directory_map": dict(diff.directories),
    }


def _show_entry(entry: ManifestEntry) -> dict[str, Any]:
    return {"filename": entry.filename, "path": entry.path, "checksum": entry.checksum}


def _show_deleted(file: File) -> Mapping[str, str]:
    return {"file_id": file.id, "filename": file.name}


def _page_size(request: web.Request) -> int:
    """Return the page size, which administrators may choose."""
    return parse_number(request.query, "limit", PAGE_SIZE, 1, 1000) if actor(request).is_admin else PAGE_SIZE


def _id(request: web.Request) -> str:
    return request.match_info["id"]


def _directory(request: web.Request) -> str:
    return request.match_info["directory_id"]
