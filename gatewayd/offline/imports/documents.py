"""Import of collections with their directories, and of files, which the daemon then reads and embeds."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from gatewayd.errors import invalid
from gatewayd.imports.documents import ForeignFile, read_collection, read_directory, read_file
from gatewayd.imports.records import ImportKind
from gatewayd.imports.rows import ForeignRow
from gatewayd.imports.trees import mend_tree, roots_first
from gatewayd.ingest.records import File
from gatewayd.ingest.upload import NewFile, UploadRules, UploadService, file_extension
from gatewayd.knowledge.records import Collection, CollectionDirectory, CollectionLink
from gatewayd.offline.imports.run import NO_OWNER, ImportRun
from gatewayd.offline.imports.uploads import read_bytes


@dataclass(frozen=True, slots=True)
class ForeignLink:
    """A file in a collection, with the ids there of its directory and of who added it."""

    collection_id: str
    file_id: str
    directory_id: str | None
    user_id: str
    created_at: int


class DocumentImport:
    """Imports collections and files. `extensions` are the types of files with text, empty for all.

    Collections come first, so that each file is stored together with its places in them.
    """

    def __init__(self, run: ImportRun, extensions: frozenset[str]) -> None:
        self._run = run
        self._stores = run.stores
        self._rules = UploadRules(max_size=0, max_count=0, extensions=extensions)
        self._links: list[ForeignLink] = []
        self._by_file: dict[str, list[ForeignLink]] = {}
        self._directories: dict[str, list[CollectionDirectory]] = {}
        self._collections: dict[str, set[str]] = {}
        """The ids of the directories of each collection that is here."""

    async def load(self) -> None:
        """Read the directories of collections and the places of files."""
        async for values in self._run.source.rows("knowledge_file", order_by=("created_at", "id")):
            row = ForeignRow(values)
            self._links.append(
                ForeignLink(
                    row.text("knowledge_id"),
                    row.text("file_id"),
                    row.text("directory_id") or None,
                    row.text("user_id"),
                    row.moment("created_at", self._run.now),
                )
            )
        async for values in self._run.source.rows("knowledge_directory"):
            row = ForeignRow(values)
            with self._run.record(ImportKind.DIRECTORY, row.text("id"), row.text("name")):
                owner = self._run.known.users.get(row.text("user_id"), self._run.fallback_owner)
                found = read_directory(row, owner, self._run.now)
                self._directories.setdefault(found.collection_id, []).append(found)

    async def import_collections(self) -> None:
        """Store the new collections, with those of their files that are here already."""
        async for values in self._run.source.rows("knowledge"):
            row = ForeignRow(values)
            with self._run.record(ImportKind.COLLECTION, row.text("id"), row.text("name")):
                await self._import_collection(row)
        for link in self._links:
            self._by_file.setdefault(link.file_id, []).append(link)

    async def import_files(self) -> None:
        """Store the bytes of new files, each with its job for the daemon and its places in collections."""
        async for values in self._run.source.rows("file"):
            row = ForeignRow(values)
            with self._run.record(ImportKind.FILE, row.text("id"), row.text("filename")):
                await self._import_file(row)

    async def _import_collection(self, row: ForeignRow) -> None:
        changes: list[str] = []
        owner = self._run.owner_of(row, changes)
        if not owner:
            raise invalid(NO_OWNER)
        found = read_collection(row, owner, self._run.now)
        collection_id = found.collection.id
        known = {(link.collection_id, link.file_id) for link in self._links}
        for file_id in found.file_ids:
            if (collection_id, file_id) not in known:
                self._links.append(ForeignLink(collection_id, file_id, None, "", self._run.now))
        directories = _mended(self._directories.get(collection_id, ()))
        if await self._stores.collections.find(collection_id) is not None:
            here = await self._stores.collections.list_directories(collection_id)
            self._collections[collection_id] = {each.id for each in here}
            self._run.ledger.present(ImportKind.COLLECTION)
            for each in directories:
                self._note_directory(each, is_here=each.id in self._collections[collection_id])
            return
        grants = self._run.lists.of("knowledge", row, self._run.known, changes)
        self._collections[collection_id] = {each.id for each in directories}
        if not self._run.dry_run:
            await self._store(replace(found.collection, grants=grants), directories)
        self._run.ledger.imported(ImportKind.COLLECTION)
        for _ in directories:
            self._run.ledger.imported(ImportKind.DIRECTORY)
        self._run.ledger.remark(
            ImportKind.COLLECTION, collection_id, found.collection.name, [*found.changes, *changes]
        )

    def _note_directory(self, directory: CollectionDirectory, *, is_here: bool) -> None:
        if is_here:
            self._run.ledger.present(ImportKind.DIRECTORY)
        else:
            reason = "its collection was here before"
            self._run.ledger.leave_out(ImportKind.DIRECTORY, directory.id, directory.name, reason)

    async def _store(self, collection: Collection, directories: Sequence[CollectionDirectory]) -> None:
        links = [link for link in self._links if link.collection_id == collection.id]
        present = await self._stores.ingest.files.find_many([link.file_id for link in links])
        async with self._stores.transactor.transaction():
            await self._stores.collections.add(collection)
            for directory in directories:
                await self._stores.collections.add_directory(directory)
            for link in links:
                if link.file_id in present:
                    await self._link(link, collection.user_id)

    async def _link(self, link: ForeignLink, owner_id: str) -> None:
        has_directory = link.directory_id in self._collections[link.collection_id]
        await self._stores.collections.link(
            CollectionLink(
                link.collection_id,
                link.file_id,
                self._run.known.users.get(link.user_id, owner_id),
                directory_id=link.directory_id if has_directory else None,
                created_at=link.created_at,
            )
        )

    async def _import_file(self, row: ForeignRow) -> None:
        links = [
            link for link in self._by_file.get(row.text("id"), ()) if link.collection_id in self._collections
        ]
        changes: list[str] = []
        owner = (
            self._run.owner_of(row, changes) if links else self._run.known.users.get(row.text("user_id"), "")
        )
        if not owner:
            raise invalid(NO_OWNER)
        found = read_file(row, owner, self._run.now)
        if await self._stores.ingest.files.find(found.id) is not None:
            self._run.ledger.present(ImportKind.FILE)
            return
        if self._run.uploads is None:
            raise invalid("its bytes are not at hand: there is no directory of uploads")
        descriptor = self._run.uploads.open(found.stored_names)
        try:
            if not self._run.dry_run:
                await self._keep(found, descriptor, links)
        finally:
            os.close(descriptor)
        self._run.ledger.imported(ImportKind.FILE)
        self._run.ledger.remark(ImportKind.FILE, found.id, found.name, [*found.changes, *changes])

    async def _keep(self, found: ForeignFile, descriptor: int, links: Sequence[ForeignLink]) -> None:
        async def place(file: File) -> None:
            for link in links:
                await self._link(link, file.user_id)

        # The clock of each upload is the time of the file there.
        service = UploadService(
            self._stores.ingest, self._rules, lambda: None, partial(int, found.created_at)
        )
        allowed = self._rules.extensions
        has_text = found.process and (not allowed or file_extension(found.name) in allowed)
        new = NewFile(
            name=found.name,
            content_type=found.content_type,
            user_id=found.user_id,
            data=found.data,
            checksum=found.checksum,
            process=has_text,
            is_unlimited=True,
            id=found.id,
        )
        await service.keep(new, read_bytes(descriptor), place)


def _mended(directories: Sequence[CollectionDirectory]) -> Sequence[CollectionDirectory]:
    """Return the directories of a collection so that each comes after its parent."""
    by_id = {each.id: each for each in directories}
    parents, _ = mend_tree({each.id: each.parent_id for each in directories})
    return [replace(by_id[each], parent_id=parents[each]) for each in roots_first(parents)]
