"""Routes of `/api/v1/knowledge`: collections and their files."""

from collections.abc import Sequence
from typing import Final

from aiohttp import web

from gatewayd.http.audit import note_change, note_grants
from gatewayd.http.body import json_reply, read_model
from gatewayd.http.context import actor
from gatewayd.http.public.knowledge.bodies import (
    AdditionBody,
    BatchBody,
    CollectionBody,
    CollectionChangeBody,
    MemberBody,
    ShareBody,
)
from gatewayd.http.public.knowledge.replies import MAX_FILES_SHOWN, CollectionReplies
from gatewayd.http.public.query_parameters import PAGE_QUERY, TEXT_QUERY, parse_flag, parse_number, parse_page
from gatewayd.http.reply_schemas import documents
from gatewayd.http.routes import Route, RouteAccess, RouteGroup
from gatewayd.http.schemas import TRUE, answers, listed
from gatewayd.ingest.records import FileStatus
from gatewayd.knowledge.collections import CollectionChange, CollectionService, NewCollection
from gatewayd.knowledge.members import MAX_WAIT_SECONDS, CollectionMembers, FileAddition, MemberResult
from gatewayd.knowledge.serializers import render_collection

PREFIX: Final = "/api/v1/knowledge"
PAGE_SIZE: Final = 30
MAX_BATCH_BYTES: Final = 8 * 2**20
WAIT_QUERY: Final = {"wait": "Seconds to wait for a file that is being processed, 300 at most."}
REMOVAL_QUERY: Final = {"delete_file": "With false, the file itself is not deleted."}
SHOW_QUERY: Final = {"files": "With false, files is null unless the collection is empty."}
RESET_QUERY: Final = {"include_directories": "With false, the directories are not removed."}
_row = RouteGroup(PREFIX, "knowledge").row


class KnowledgeRoutes:
    """Routes of collections and their files."""

    def __init__(
        self, collections: CollectionService, members: CollectionMembers, replies: CollectionReplies
    ) -> None:
        self._collections = collections
        self._members = members
        self._replies = replies

    def routes(self) -> Sequence[Route]:
        """Return the rows, without those of directories and synchronisation."""
        access = RouteAccess.VERIFIED
        return [
            _row("GET", "/", self.list, access, "List collections"),
            _row("GET", "/list", self.list_plain, access, "List all collections"),
            _row("GET", "/search", self.list, access, "Search collections"),
            _row("POST", "/create", self.create, access, "Create a collection", CollectionBody),
            _row("GET", "/{id}", self.show, access, "Show a collection"),
            _row("POST", "/{id}/update", self.change, access, "Change a collection", CollectionChangeBody),
            _row(
                "POST",
                "/{id}/access/update",
                self.share,
                access,
                "Change the access list of a collection",
                ShareBody,
            ),
            _row(
                "GET",
                "/{id}/files/pending",
                self.list_pending,
                access,
                "List the files of a collection that are being processed",
            ),
            _row("POST", "/{id}/file/add", self.add, access, "Add a file to a collection", AdditionBody),
            _row("POST", "/{id}/file/update", self.update, access, "Index a changed file again", MemberBody),
            _row(
                "POST",
                "/{id}/file/remove",
                self.remove_file,
                access,
                "Remove a file from a collection",
                MemberBody,
            ),
            _row(
                "POST", "/{id}/files/batch/add", self.add_many, access, "Add files to a collection", BatchBody
            ),
            _row("POST", "/{id}/reset", self.reset, access, "Remove all files from a collection"),
            _row("DELETE", "/{id}/delete", self.remove, access, "Delete a collection"),
        ]

    @answers(documents.collections, query={**PAGE_QUERY, **TEXT_QUERY})
    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"items": [Knowledge + user, file_count, write_access], "total"}`, 30 a page.

        `?page=` counts from 1; `?query=` is part of the name or description.
        """
        offset, limit = parse_page(request.query, PAGE_SIZE)
        query = request.query.get("query", "")
        caller = actor(request)
        found, total = await self._collections.list(caller, query=query, offset=offset, limit=limit)
        return json_reply({"items": await self._replies.listed(caller, found), "total": total})

    @answers(listed(documents.listed_collection))
    async def list_plain(self, request: web.Request) -> web.StreamResponse:
        """Answer `[Knowledge + user, file_count, write_access]`."""
        found, _ = await self._collections.list(actor(request))
        return json_reply(await self._replies.listed(actor(request), found))

    @answers(documents.collection)
    async def create(self, request: web.Request) -> web.StreamResponse:
        """`{"name", "description"?, "access_grants"?, "meta"?}` -> Knowledge.

        403 without the permission workspace.knowledge. Grants that the caller may not give are ignored.
        """
        form = await read_model(request, CollectionBody)
        new = NewCollection(form.name, form.description, form.meta or {}, form.grants() or ())
        made = await self._collections.create(actor(request), new)
        note_grants(request, made.name, made.grants, id=made.id)
        return json_reply(render_collection(made))

    @answers(documents.whole_collection, query=SHOW_QUERY)
    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer Knowledge with `files` and `write_access`; 404 for a collection that the caller may not
        read.

        `files` is null when there are over 10,000 or with `?files=false`, and in the replies to changes when
        there are over 1000: `/{id}/files` lists them.
        """
        caller = actor(request)
        found = await self._collections.get(caller, _id(request))
        with_files = parse_flag(request.query, "files", default=True)
        return await self._replies.whole(caller, found, limit=MAX_FILES_SHOWN if with_files else 0)

    @answers(documents.whole_collection)
    async def change(self, request: web.Request) -> web.StreamResponse:
        """`{"name"?, "description"?, "access_grants"?, "meta"?}` -> Knowledge with `files`."""
        form = await read_model(request, CollectionChangeBody)
        caller = actor(request)
        change = CollectionChange(form.name, form.description, form.meta, form.grants())
        changed = await self._collections.change(caller, _id(request), change)
        note_grants(request, changed.name, changed.grants, id=changed.id, description=form.description)
        return await self._replies.whole(caller, changed)

    @answers(documents.whole_collection)
    async def share(self, request: web.Request) -> web.StreamResponse:
        """`{"access_grants": [{"principal_type", "principal_id", "permission"}]}` -> Knowledge with
        `files`."""
        form = await read_model(request, ShareBody)
        caller = actor(request)
        collection = await self._collections.set_grants(caller, _id(request), form.grants() or ())
        note_grants(request, collection.name, collection.grants, id=collection.id)
        return await self._replies.whole(caller, collection)

    @answers(listed(documents.owned_file))
    async def list_pending(self, request: web.Request) -> web.StreamResponse:
        """Answer `[File]`: the files of the collection that are still being processed."""
        found, _ = await self._members.list(actor(request), _id(request))
        pending = [file for _, file in found if file.status is FileStatus.PENDING]
        return json_reply(await self._replies.files(pending))

    @answers(documents.whole_collection, query=WAIT_QUERY)
    async def add(self, request: web.Request) -> web.StreamResponse:
        """`{"file_id", "directory_id"?, "wait"?}` -> Knowledge with `files`; 200 for a member.

        400 for a file whose content is empty, or equals that of another file in the collection; 404 for a
        file that the caller may not read. `wait`, here or in the query, is the seconds (300 at most) to wait
        for a file that is being processed.
        """
        form = await read_model(request, AdditionBody)
        caller = actor(request)
        collection = await self._members.add(
            caller,
            _id(request),
            form.file_id,
            directory_id=form.directory_id,
            wait=form.wait or _wait(request),
        )
        note_change(request, collection.name, {"id": collection.id, "added": [form.file_id]})
        return await self._replies.whole(caller, collection)

    @answers(documents.whole_collection)
    async def update(self, request: web.Request) -> web.StreamResponse:
        """`{"file_id"}` -> Knowledge with `files`; 404 for a file outside of the collection."""
        form = await read_model(request, MemberBody)
        caller = actor(request)
        collection = await self._members.update_file(caller, _id(request), form.file_id)
        note_change(request, collection.name, {"id": collection.id, "updated": [form.file_id]})
        return await self._replies.whole(caller, collection)

    @answers(documents.whole_collection, query=REMOVAL_QUERY)
    async def remove_file(self, request: web.Request) -> web.StreamResponse:
        """`{"file_id"}` -> Knowledge with `files`; 404 for a file outside of the collection.

        The file itself is deleted too, when the caller may delete it and no other collection has it, unless
        `?delete_file=false`.
        """
        form = await read_model(request, MemberBody)
        caller = actor(request)
        delete = parse_flag(request.query, "delete_file", default=True)
        collection = await self._members.remove_file(caller, _id(request), form.file_id, delete_file=delete)
        note_change(request, collection.name, {"id": collection.id, "removed": [form.file_id]})
        return await self._replies.whole(caller, collection)

    @answers(documents.batch, query=WAIT_QUERY)
    async def add_many(self, request: web.Request) -> web.StreamResponse:
        """`[{"file_id", "directory_id"?}]` -> Knowledge with `files`, and a result for each file.

        `"results": [{"file_id", "status": "added" | "unchanged" | "failed", "error"?}]`, and `"warnings":
        {"message", "errors"}` when some failed; an error when all did.
        """
        form = await read_model(request, BatchBody, MAX_BATCH_BYTES)
        caller = actor(request)
        additions = [FileAddition(item.file_id, item.directory_id) for item in form.root]
        collection, results = await self._members.add_many(
            caller, _id(request), additions, wait=_wait(request)
        )
        note_change(request, collection.name, {"id": collection.id, "added": _changed(results)})
        return await self._replies.batch(caller, collection, results)

    @answers(documents.whole_collection, query=RESET_QUERY)
    async def reset(self, request: web.Request) -> web.StreamResponse:
        """Remove all files from the collection, without deletion, and its directories unless
        `?include_directories=false`; answers Knowledge with empty `files`."""
        directories = parse_flag(request.query, "include_directories", default=True)
        caller = actor(request)
        collection = await self._members.reset(caller, _id(request), directories=directories)
        note_change(request, collection.name, {"id": collection.id, "removed": "every file"})
        return await self._replies.whole(caller, collection)

    @answers(TRUE)
    async def remove(self, request: web.Request) -> web.StreamResponse:
        """Delete a collection, without its files; answers true."""
        removed = await self._collections.remove(actor(request), _id(request))
        note_change(request, removed.name, {"id": removed.id})
        return json_reply(data=True)


def _changed(results: Sequence[MemberResult]) -> list[str]:
    return [each.file_id for each in results if each.is_changed]


def _id(request: web.Request) -> str:
    return request.match_info["id"]


def _wait(request: web.Request) -> float:
    return float(parse_number(request.query, "wait", 0, 0, int(MAX_WAIT_SECONDS)))
