"""Collections in memory, over the stores of documents.memory_stores, and the services around them."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from gatewayd import ids
from gatewayd.accounts.records import Actor, CredentialKind, PermissionTree, Role, User
from gatewayd.catalog.records import Grant
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.blobs import LocalBlobs
from gatewayd.ingest.file_notifications import FileWatch
from gatewayd.ingest.files import FileService
from gatewayd.ingest.interfaces import Embedder
from gatewayd.ingest.processor import FileProcessor
from gatewayd.ingest.records import (
    EmbeddingPurpose,
    EmbeddingSpace,
    ExtractionResult,
    File,
    FileStatus,
    VectorBatch,
)
from gatewayd.ingest.updates import FileRemoval, IndexUpdates, IngestStores
from gatewayd.ingest.upload import UploadRules, UploadService
from gatewayd.knowledge.access import CollectionAccess
from gatewayd.knowledge.collections import CollectionService, NewCollection
from gatewayd.knowledge.directories import DirectoryService
from gatewayd.knowledge.full_text import FullTextReader
from gatewayd.knowledge.index_updates import IndexNotifier
from gatewayd.knowledge.interfaces import CollectionStore
from gatewayd.knowledge.members import CollectionMembers, CollectionServices
from gatewayd.knowledge.paths import ancestor_directories
from gatewayd.knowledge.records import Collection, CollectionDirectory, CollectionLink
from gatewayd.knowledge.retrieval import RetrievalService
from gatewayd.knowledge.retrieval import SearchBackends as SearchedLibrary
from gatewayd.knowledge.scopes import ScopeResolver
from gatewayd.knowledge.sync import CollectionSync
from gatewayd.knowledge.uploads import DocumentUploads
from gatewayd.pipeline.documents.attachments import ReferenceServices as Documents_
from gatewayd.tasks import TaskRegistry
from gatewayd.transactions import CallbackTransactor
from tests.fakes.documents.memory_stores import (
    Documents,
    ExactIndex,
    HashEmbedder,
    Library,
    MemoryFiles,
    MemoryJobs,
    MemoryPassages,
    MemoryWords,
    extraction_of,
)


@dataclass
class Shelves(Documents):
    """Everything that is stored about collections; links stand in `Documents`."""

    collections: dict[str, Collection] = field(default_factory=dict)
    directories: dict[str, CollectionDirectory] = field(default_factory=dict)


class KnowledgeLibrary(Library):
    """A database of one writer that holds accounts, documents and collections."""

    tables: Shelves

    def __init__(self) -> None:
        super().__init__()
        self.tables = Shelves()


class MemoryCollections:
    """The contract of CollectionStore."""

    def __init__(self, library: KnowledgeLibrary) -> None:
        self._library = library

    async def add(self, collection: Collection) -> None:
        async with self._library.transaction():
            self._library.tables.collections[collection.id] = collection

    async def find(self, collection_id: str) -> Collection | None:
        return self._library.tables.collections.get(collection_id)

    async def find_by_name(self, name: str) -> Sequence[Collection]:
        found = [each for each in self._library.tables.collections.values() if each.name == name]
        return sorted(found, key=lambda each: (each.created_at, each.id))

    async def list(
        self,
        *,
        reader: tuple[str, Sequence[str]] | None = None,
        orphaned: bool = False,
        query: str = "",
        offset: int = 0,
        limit: int | None = None,
    ) -> tuple[Sequence[Collection], int]:
        found = [
            self._counted(each)
            for each in self._library.tables.collections.values()
            if (reader is None or self._reads(each, *reader))
            and not (orphaned and each.user_id in self._library.tables.users)
            and query.casefold() in f"{each.name}\n{each.description}".casefold()
        ]
        found.sort(key=lambda each: (each.updated_at, each.id), reverse=True)
        return found[offset : None if limit is None else offset + limit], len(found)

    async def holding(self, file_ids: Sequence[str]) -> Mapping[str, Sequence[Collection]]:
        tables = self._library.tables
        found: dict[str, list[Collection]] = {}
        for collection_id, file_id in tables.links:
            if file_id in file_ids:
                found.setdefault(file_id, []).append(tables.collections[collection_id])
        return found

    async def count_files(self, collection_id: str) -> int:
        return self._count(collection_id)

    async def has_files(self, collection_id: str) -> bool:
        return self._count(collection_id) > 0

    async def change(self, collection: Collection) -> bool:
        async with self._library.transaction():
            if collection.id not in self._library.tables.collections:
                return False
            self._library.tables.collections[collection.id] = replace(collection, file_count=None)
            return True

    async def remove(self, collection_id: str) -> bool:
        async with self._library.transaction():
            tables = self._library.tables
            tables.links = {key: link for key, link in tables.links.items() if key[0] != collection_id}
            return tables.collections.pop(collection_id, None) is not None

    async def link(self, link: CollectionLink) -> bool:
        async with self._library.transaction():
            tables = self._library.tables
            if link.collection_id not in tables.collections or link.file_id not in tables.files:
                raise GatewayError(ErrorKind.CONFLICT, "cannot link: the collection or the file is gone")
            known = tables.links.get((link.collection_id, link.file_id))
            if known is not None:
                link = replace(known, path=link.path, origin=link.origin, directory_id=link.directory_id)
            tables.links[link.collection_id, link.file_id] = link
            return known is None

    async def unlink(self, collection_id: str, file_ids: Sequence[str]) -> Sequence[str]:
        async with self._library.transaction():
            links = self._library.tables.links
            return [file_id for file_id in file_ids if links.pop((collection_id, file_id), None)]

    async def find_links(self, collection_id: str, file_ids: Sequence[str]) -> Mapping[str, CollectionLink]:
        links = self._library.tables.links
        found = {file_id: links.get((collection_id, file_id)) for file_id in file_ids}
        return {file_id: link for file_id, link in found.items() if link is not None}

    async def list_files(
        self,
        collection_id: str,
        *,
        origin: str | None = None,
        directory_id: str | None = None,
        query: str = "",
        offset: int = 0,
        limit: int | None = None,
    ) -> tuple[Sequence[tuple[CollectionLink, File]], int]:
        tables = self._library.tables
        found = [
            (link, tables.files[link.file_id])
            for link in tables.links.values()
            if link.collection_id == collection_id
            and origin in (None, link.origin)
            and directory_id in (None, link.directory_id or "")
            and query.casefold() in tables.files[link.file_id].name.casefold()
        ]
        return found[offset : None if limit is None else offset + limit], len(found)

    async def find_same_text(self, collection_id: str, text_hash: str, *, but: str) -> str | None:
        for link, file in (await self.list_files(collection_id))[0]:
            if file.text_hash == text_hash and file.id != but and not link.path:
                return file.id
        return None

    async def add_directory(self, directory: CollectionDirectory) -> None:
        async with self._library.transaction():
            known = await self.list_directories(directory.collection_id)
            if directory.parent_id is not None and all(each.id != directory.parent_id for each in known):
                raise GatewayError(ErrorKind.NOT_FOUND, f"cannot find directory {directory.parent_id!r}")
            if any((each.parent_id, each.name) == (directory.parent_id, directory.name) for each in known):
                raise GatewayError(ErrorKind.CONFLICT, "cannot store the directory: the name is taken")
            self._library.tables.directories[directory.id] = directory

    async def list_directories(self, collection_id: str) -> Sequence[CollectionDirectory]:
        found = self._library.tables.directories.values()
        return [each for each in found if each.collection_id == collection_id]

    async def count_directories(self, collection_id: str) -> int:
        return len(await self.list_directories(collection_id))

    async def find_ancestors(self, collection_id: str, directory_id: str) -> Sequence[CollectionDirectory]:
        try:
            return ancestor_directories(await self.list_directories(collection_id), directory_id)
        except GatewayError:
            return []

    async def move_files(
        self, collection_id: str, file_ids: Sequence[str], directory_id: str | None
    ) -> Sequence[str]:
        found = await self.find_links(collection_id, file_ids)
        for link in found.values():
            await self.link(replace(link, directory_id=directory_id, path=link.path if link.origin else ""))
        return list(found)

    async def clear_paths(self, collection_id: str, directory_ids: Sequence[str]) -> None:
        for link in list(self._library.tables.links.values()):
            if link.collection_id == collection_id and link.directory_id in directory_ids:
                await self.move_files(collection_id, [link.file_id], link.directory_id)

    async def change_directory(self, directory: CollectionDirectory) -> bool:
        async with self._library.transaction():
            known = directory.id in self._library.tables.directories
            self._library.tables.directories[directory.id] = directory
            return known

    async def remove_directories(self, collection_id: str, directory_ids: Sequence[str]) -> Sequence[str]:
        async with self._library.transaction():
            tables = self._library.tables
            gone = set(directory_ids)
            while below := {key for key, each in tables.directories.items() if each.parent_id in gone} - gone:
                gone |= below
            for key in gone:
                tables.directories.pop(key, None)
            moved = [key for key, link in tables.links.items() if link.directory_id in gone]
            for key in moved:
                tables.links[key] = replace(tables.links[key], directory_id=None)
            return [file_id for _, file_id in moved]

    def _counted(self, collection: Collection) -> Collection:
        return replace(collection, file_count=self._count(collection.id))

    def _count(self, collection_id: str) -> int:
        tables = self._library.tables
        files = [tables.files[file_id] for key, file_id in tables.links if key == collection_id]
        return sum(file.status is FileStatus.COMPLETED for file in files)

    def _reads(self, collection: Collection, user_id: str, group_ids: Sequence[str]) -> bool:
        if collection.user_id == user_id:
            return True
        return any(
            grant.principal_id in group_ids
            if grant.principal_type == "group"
            else grant.principal_id in {"*", user_id}
            for grant in collection.grants
        )


@dataclass(frozen=True)
class World:
    """The services of collections over one database in memory, with a model that hashes words."""

    library: KnowledgeLibrary
    embedder: HashEmbedder
    space: "OneSpace"
    index: ExactIndex
    holdings: CollectionServices
    members: CollectionMembers
    directories: DirectoryService
    sync: CollectionSync
    uploads: DocumentUploads
    retrieval: RetrievalService
    documents: Documents_
    watch: "Watch"

    @property
    def collections(self) -> CollectionService:
        return self.holdings.collections

    @property
    def store(self) -> CollectionStore:
        return self.holdings.store

    async def shelve(
        self, file: File, text: str | ExtractionResult, *collection_ids: str, **place: str
    ) -> File:
        """Keep a completed file with its passages and vectors, in some collections."""
        kept = await shelve(self.library, file, text, self.embedder)
        for collection_id in collection_ids:
            await self.store.link(CollectionLink(collection_id, file.id, file.user_id, created_at=1, **place))
        return kept

    async def collection(self, actor: Actor, name: str = "docs", *grants: Grant) -> str:
        """Make a collection and return its id."""
        made = await self.collections.create(actor, NewCollection(name))
        await self.store.change(replace(made, grants=grants))
        return made.id


def build_world(folder: Path, *, bypass_admins: bool = True, clock: ids.Clock = lambda: 100) -> World:
    """Return services over an empty database; blobs are kept in `folder`."""
    library, embedder = KnowledgeLibrary(), HashEmbedder()
    transactor = CallbackTransactor(library)
    passages, files_store, store = MemoryPassages(library), MemoryFiles(library), MemoryCollections(library)
    blobs = LocalBlobs(folder)
    stores = IngestStores(transactor, files_store, MemoryJobs(library), passages, blobs)
    index = ExactIndex(passages)
    watch = Watch()
    updates = IndexUpdates(index, blobs, watch)
    access = CollectionAccess(store, bypass_admins=bypass_admins)
    rules = UploadRules(max_size=1000, max_count=0, extensions=frozenset())
    intake = UploadService(stores, rules, lambda: None, clock)
    files = FileService(stores, intake, access, cast(FileProcessor, None), updates, clock)
    freshness = IndexNotifier(index, TaskRegistry())
    collections = CollectionService(store, access, transactor, freshness, clock)
    removal = FileRemoval(stores, updates)
    holdings = CollectionServices(collections, store, files, removal, access, transactor, freshness, clock)
    members = CollectionMembers(holdings)
    directories = DirectoryService(holdings, members)
    space = OneSpace(embedder)
    searched = SearchedLibrary(index, MemoryWords(library), passages, files_store, store)
    retrieval = RetrievalService(searched, space)
    documents = Documents_(
        files, collections, ScopeResolver(files, collections), retrieval, FullTextReader(passages, store)
    )
    return World(
        library,
        embedder,
        space,
        index,
        holdings,
        members,
        directories,
        CollectionSync(holdings, members, directories),
        DocumentUploads(holdings),
        retrieval,
        documents,
        watch,
    )


class Watch(FileWatch):
    """A FileWatch that tells who waits."""

    def is_watched(self, file_id: str) -> bool:
        return file_id in self._waiting


class OneSpace:
    """Knows one model; None is none."""

    def __init__(self, embedder: Embedder | None) -> None:
        self.embedder = embedder
        self.asked = 0

    async def query(self) -> tuple[EmbeddingSpace, Embedder] | None:
        self.asked += 1
        return None if self.embedder is None else (await self.embedder.space(), self.embedder)


def person(
    user_id: str,
    *,
    role: Role = Role.USER,
    groups: tuple[str, ...] = (),
    permissions: PermissionTree | None = None,
    kind: CredentialKind = CredentialKind.KEY,
) -> Actor:
    """Return an actor with the permissions to make collections and upload files, unless told otherwise."""
    user = User(id=user_id, email=f"{user_id}@example.org", name=user_id, role=role)
    usual = {"workspace": {"knowledge": True}, "chat": {"file_upload": True}}
    return Actor(
        user=user, kind=kind, group_ids=groups, permissions=usual if permissions is None else permissions
    )


async def shelve(
    library: KnowledgeLibrary,
    file: File,
    text: str | ExtractionResult,
    embedder: HashEmbedder | None = None,
) -> File:
    """Keep a completed file with its passages, and their vectors when there is a model; may be repeated."""
    passages = MemoryPassages(library)
    library.tables.files.pop(file.id, None)
    await MemoryFiles(library).add(replace(file, status=FileStatus.PENDING))
    await passages.stage(file.id, extraction_of(text) if isinstance(text, str) else text)
    if embedder is not None:
        space = await embedder.space()
        library.tables.spaces.setdefault(space.name, space)
        missing = await passages.missing(file.id, space.name, 10_000)
        vectors = await embedder.embed([each for _, each in missing], EmbeddingPurpose.PASSAGE)
        ids = b"".join(key.to_bytes(8, "little") for key, _ in missing)
        await passages.add_vectors(space.name, VectorBatch(file.id, ids, vectors))
        embedder.texts.clear()
    finished = replace(file, status=FileStatus.COMPLETED)
    await passages.publish(finished)
    return finished


def a_file(file_id: str, user_id: str = "ann", **values: object) -> File:
    """Return a pending file; `values` are other fields."""
    fields = {
        "name": f"{file_id}.txt",
        "size": 1,
        "digest": file_id,
        "checksum": file_id,
        "status": FileStatus.PENDING,
        "text_hash": f"text of {file_id}",
        "created_at": 1,
    }
    return File(id=file_id, user_id=user_id, **{**fields, **values})  # type: ignore[arg-type]


async def once(data: bytes) -> AsyncIterator[bytes]:
    """Yield bytes as a body does."""
    yield data
