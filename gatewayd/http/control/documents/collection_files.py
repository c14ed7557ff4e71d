"""Routes of `/v1/collections/{ref}/...`: files of a collection, and their comparison with a directory."""

from collections.abc import Callable, Sequence
from typing import Final

from aiohttp import web

from gatewayctl.wire import collections as wire
from gatewayctl.wire import routes
from gatewayd.accounts.records import Actor
from gatewayd.http.audit import note_change
from gatewayd.http.body import read_each, read_members, read_model
from gatewayd.http.control.documents.serializers import DocumentViews
from gatewayd.http.control.impersonation import ControlActors
from gatewayd.http.control.peer import PEER
from gatewayd.http.control.rows import serve
from gatewayd.http.control.transactions import audit, control_reply, find_page, is_set, large_control_reply
from gatewayd.http.routes import Route
from gatewayd.json_decoder import UndecodedMember
from gatewayd.knowledge.collections import CollectionService
from gatewayd.knowledge.members import CollectionMembers, FileAddition, MemberResult
from gatewayd.knowledge.records import Collection
from gatewayd.knowledge.sync import CollectionSync, LinkedFile, ManifestEntry

MAX_DIFF_BYTES: Final = 64 * 1024 * 1024
ENTRIES: Final = UndecodedMember("entries", 500_000)
ENTRIES_PER_BATCH: Final = 500


class CollectionFileRoutes:
    """Routes of the files of collections on the control socket."""

    def __init__(
        self,
        collections: CollectionService,
        members: CollectionMembers,
        sync: CollectionSync,
        views: DocumentViews,
        viewers: ControlActors,
    ) -> None:
        self._collections = collections
        self._members = members
        self._sync = sync
        self._views = views
        self._viewers = viewers

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [
            serve(routes.LIST_COLLECTION_FILES, self.list),
            serve(routes.ADD_TO_COLLECTION, self.add),
            serve(routes.REMOVE_FROM_COLLECTION, self.remove),
            serve(routes.COMPARE_COLLECTION, self.diff, interruptible=True),
        ]

    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer `CollectionFiles`, a page of at most 1000."""
        offset, limit = find_page(request)
        actor, collection = await self._resolve(request)
        found, total = await self._members.list(actor, collection.id, offset=offset, limit=limit)
        return control_reply(wire.CollectionFiles(files=await self._views.members(found), total=total))

    async def add(self, request: web.Request) -> web.StreamResponse:
        """Take `CollectionMembers`, answer `MembersWritten`; `delete` is ignored."""
        wanted = await read_model(request, wire.CollectionMembers)
        dry_run = is_set(request, "dry_run")
        actor, collection = await self._resolve(request)
        file_ids = list(dict.fromkeys(wanted.files))
        if dry_run:
            results = await self._members.preview_add(actor, collection.id, file_ids)
        else:
            additions = [FileAddition(file_id) for file_id in file_ids]
            _, results = await self._members.add_many(actor, collection.id, additions)
            note_change(request, collection.name, {"added": _changed(results)})
            audit(request, "collection add", collection.id)
        return _results(results, _added, dry_run=dry_run)

    async def remove(self, request: web.Request) -> web.StreamResponse:
        """Take `CollectionMembers`, answer `MembersWritten`; `delete` also deletes files that are in no other
        collection."""
        wanted = await read_model(request, wire.CollectionMembers)
        dry_run = is_set(request, "dry_run")
        actor, collection = await self._resolve(request)
        work = self._members.preview_remove if dry_run else self._members.remove_many
        results = await work(actor, collection.id, wanted.files, delete_files=wanted.delete)
        if not dry_run:
            note_change(request, collection.name, {"removed": _changed(results)})
            audit(request, "collection remove-file", collection.id)
        return _results(results, _removed, dry_run=dry_run)

    async def diff(self, request: web.Request) -> web.StreamResponse:
        """Take `CollectionSync`, answer `Difference`."""
        wanted, members = await read_members(request, wire.Sync, MAX_DIFF_BYTES, ENTRIES)
        entries = [_entry(each) for each in wanted.entries]
        if members is not None:
            entries = [_entry(each) async for each in read_each(members, wire.Entry, ENTRIES.name)]
        actor, collection = await self._resolve(request)
        found = await self._sync.compare(actor, collection.id, wanted.origin, entries)
        return await large_control_reply(
            wire.Difference(
                added=list(found.added),
                modified=list(found.modified),
                unmodified=list(found.unmodified),
                pending=await _render(self._views, found.pending),
                failed=await _render(self._views, found.failed),
                deleted=await _render(self._views, found.deleted),
            )
        )

    async def _resolve(self, request: web.Request) -> tuple[Actor, Collection]:
        actor = self._viewers.operator(request[PEER])
        return actor, await self._collections.resolve(actor, request.match_info["ref"])


async def _render(views: DocumentViews, held: Sequence[LinkedFile]) -> list[wire.CollectionFile]:
    shown: list[wire.CollectionFile] = []
    for start in range(0, len(held), ENTRIES_PER_BATCH):
        shown += await views.members(held[start : start + ENTRIES_PER_BATCH])
    return shown


def _entry(each: wire.Entry) -> ManifestEntry:
    return ManifestEntry(each.path, each.checksum, each.path)


def _results(
    results: Sequence[MemberResult], name: Callable[[MemberResult], str], *, dry_run: bool
) -> web.Response:
    shown = [
        wire.MemberResult(id=each.file_id, outcome="failed", error=each.error.message)
        if each.error is not None
        else wire.MemberResult(id=each.file_id, outcome=name(each))
        for each in results
    ]
    return control_reply(wire.MembersWritten(results=shown, dry_run=dry_run))


def _changed(results: Sequence[MemberResult]) -> list[str]:
    return [each.file_id for each in results if each.is_changed]


def _added(result: MemberResult) -> str:
    return "added" if result.is_changed else "unchanged"


def _removed(result: MemberResult) -> str:
    return "deleted" if result.is_deleted else "removed"
