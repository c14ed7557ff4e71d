"""The services of collections over both databases: what they ask of the stores is what the stores do."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import pytest

from gatewayd.catalog.records import Grant
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.blobs import LocalBlobs
from gatewayd.ingest.file_notifications import FileWatch
from gatewayd.ingest.files import FileService
from gatewayd.ingest.processor import FileProcessor
from gatewayd.ingest.records import (
    EmbeddingPurpose,
    FileStatus,
    ScopeKind,
    SearchScope,
    VectorBatch,
    pack_ids,
)
from gatewayd.ingest.updates import FileRemoval, IndexUpdates, IngestStores
from gatewayd.ingest.upload import NewFile, UploadRules, UploadService
from gatewayd.knowledge.access import CollectionAccess
from gatewayd.knowledge.collections import CollectionService, NewCollection
from gatewayd.knowledge.directories import DirectoryChange, DirectoryService
from gatewayd.knowledge.index_updates import IndexNotifier
from gatewayd.knowledge.members import CollectionMembers, CollectionServices, FileAddition
from gatewayd.knowledge.retrieval import RetrievalService, SearchBackends, SearchOptions
from gatewayd.knowledge.sync import CollectionSync, ManifestEntry
from gatewayd.knowledge.uploads import DocumentUploads, UploadDestination
from gatewayd.storage.engine.database import Database
from gatewayd.storage.jobs import TortoiseJobs
from gatewayd.storage.search.embedding_spaces import TortoiseSpaces
from gatewayd.tasks import TaskRegistry
from gatewayd.transactions import CallbackTransactor
from tests.fakes.documents.collections import OneSpace, once, person
from tests.fakes.documents.memory_stores import ExactIndex, HashEmbedder, MemoryPassages, extraction_of
from tests.fakes.storage.passages import Shelf, open_shelf

ANN, BOB = person("ann"), person("bob")


@dataclass(frozen=True)
class Services:
    """The services over one database, and a model that hashes words."""

    shelf: Shelf
    embedder: HashEmbedder
    holdings: CollectionServices
    members: CollectionMembers
    directories: DirectoryService
    sync: CollectionSync
    uploads: DocumentUploads
    retrieval: RetrievalService

    async def upload(
        self, text: str, name: str, place: UploadDestination | None = None, checksum: str = "1"
    ) -> str:
        upload = NewFile(name, "text/plain", "ann", {}, checksum)
        file = await self.uploads.accept(ANN, upload, once(text.encode()), place)
        await self.publish(file.id, text)
        return file.id

    async def publish(self, file_id: str, text: str) -> None:
        passages = self.shelf.passages
        await passages.stage(file_id, extraction_of(text))
        space = await self.embedder.space()
        missing = await passages.missing(file_id, space.name, 99)
        vectors = await self.embedder.embed([each for _, each in missing], EmbeddingPurpose.PASSAGE)
        ids = pack_ids([key for key, _ in missing])
        await passages.add_vectors(space.name, VectorBatch(file_id, ids, vectors))
        file = await self.holdings.files.get(ANN, file_id)
        done = replace(file, status=FileStatus.COMPLETED, text_hash=f"hash of {text}")
        await passages.publish(done)

    async def find(self, query: str, *scopes: SearchScope) -> list[str]:
        found = await self.retrieval.search(scopes, query, SearchOptions(k=3))
        assert found.warnings == []
        return [each.stored.text for each in found.passages]


@pytest.fixture
async def made(database: Database, tmp_path: Path) -> AsyncIterator[Services]:
    transactor, tasks, embedder = CallbackTransactor(database), TaskRegistry(), HashEmbedder()
    async with open_shelf(database) as shelf:
        await TortoiseSpaces(shelf.reader).add(await embedder.space())
        blobs = LocalBlobs(tmp_path / "files")
        stores = IngestStores(transactor, shelf.files, TortoiseJobs(), shelf.passages, blobs)
        index = ExactIndex(cast(MemoryPassages, shelf.passages))
        updates = IndexUpdates(index, blobs, FileWatch())
        access = CollectionAccess(shelf.collections)
        intake = UploadService(stores, UploadRules(1000, 0, frozenset()), lambda: None)
        files = FileService(stores, intake, access, cast(FileProcessor, None), updates)
        freshness = IndexNotifier(index, tasks)
        collections = CollectionService(shelf.collections, access, transactor, freshness)
        removal = FileRemoval(stores, updates)
        holdings = CollectionServices(
            collections, shelf.collections, files, removal, access, transactor, freshness
        )
        members = CollectionMembers(holdings)
        directories = DirectoryService(holdings, members)
        library = SearchBackends(index, shelf.words, shelf.passages, shelf.files, shelf.collections)
        yield Services(
            shelf,
            embedder,
            holdings,
            members,
            directories,
            CollectionSync(holdings, members, directories),
            DocumentUploads(holdings),
            RetrievalService(library, OneSpace(embedder)),
        )


async def collection(made: Services, name: str = "docs", *grants: Grant) -> SearchScope:
    created = await made.holdings.collections.create(ANN, NewCollection(name))
    await made.shelf.collections.change(replace(created, grants=grants))
    return SearchScope(ScopeKind.COLLECTION, created.id)


async def test_from_upload_to_answer(made: Services) -> None:
    docs, other = await collection(made), await collection(made, "other")
    ssh = await made.upload("ssh opens a shell", "ssh.txt")
    await made.upload("tar keeps many files", "tar.txt", UploadDestination(docs.id))
    await made.members.add(ANN, docs.id, ssh)
    await made.members.add(ANN, docs.id, ssh)
    assert await made.shelf.collections.count_files(docs.id) == 2
    assert await made.find("who opens a shell", docs) == ["ssh opens a shell", "tar keeps many files"]
    assert await made.find("many files", other, SearchScope(ScopeKind.FILE, ssh)) == ["ssh opens a shell"]
    await made.members.remove_file(ANN, docs.id, ssh)
    assert await made.find("who opens a shell", docs) == ["tar keeps many files"]
    assert await made.shelf.files.find(ssh) is None


async def test_a_changed_file_takes_the_place_of_its_last_version(made: Services) -> None:
    docs = await collection(made)
    place = UploadDestination(docs.id, "/srv", "guide/a.txt")
    await made.upload("old words about cron", "a.txt", place)
    new = await made.upload("new words about cron", "a.txt", place, checksum="2")
    assert await made.find("cron", docs) == ["new words about cron"]
    found = await made.sync.compare(ANN, docs.id, "/srv", [ManifestEntry("", "2", "guide/a.txt")])
    assert list(found.unmodified) == ["guide/a.txt"]
    found = await made.sync.compare(ANN, docs.id, "/srv", [])
    assert [file.id for _, file in found.deleted] == [new]


async def test_a_tree_is_kept_in_step(made: Services) -> None:
    docs = await collection(made)
    entries = [ManifestEntry("a.txt", "1", "guide/deep"), ManifestEntry("b.txt", "1")]
    diff = await made.sync.diff(ANN, docs.id, entries)
    assert list(diff.mkdir) == ["guide", "guide/deep"]
    guide = await made.directories.create(ANN, docs.id, "guide")
    deep = await made.directories.create(ANN, docs.id, "deep", guide.id)
    one = await made.upload("text a", "a.txt", UploadDestination(docs.id, directory_id=deep.id))
    two = await made.upload("text b", "b.txt", UploadDestination(docs.id))
    diff = await made.sync.diff(ANN, docs.id, entries)
    assert (diff.unmodified, list(diff.added), list(diff.mkdir)) == (2, [], [])
    await made.directories.change(ANN, docs.id, guide.id, DirectoryChange(name="book"))
    diff = await made.sync.diff(ANN, docs.id, entries)
    assert [file.id for file in diff.deleted] == [one]
    assert await made.sync.cleanup(ANN, docs.id, [one, "gone"], [guide.id]) == 1
    assert [file.id for file in await made.members.completed(ANN, docs.id, 9) or ()] == [two]
    assert list(await made.directories.list(ANN, docs.id)) == []
    await made.members.reset(ANN, docs.id)
    assert await made.find("text", docs) == []


async def test_what_is_foreign_stays_closed(made: Services) -> None:
    docs, mine = await collection(made), await made.holdings.collections.create(BOB, NewCollection("mine"))
    secret = await made.upload("a secret", "secret.txt", UploadDestination(docs.id))
    assert [each.id for each in (await made.holdings.collections.list(BOB))[0]] == [mine.id]
    _, results = await made.members.add_many(
        BOB, mine.id, [FileAddition(secret), FileAddition("\0"), FileAddition("")]
    )
    assert [each.error and each.error.kind for each in results] == [ErrorKind.NOT_FOUND] * 3
    for work in (made.holdings.collections.get(BOB, docs.id), made.sync.diff(BOB, docs.id, [])):
        with pytest.raises(GatewayError) as caught:
            await work
        assert caught.value.kind is ErrorKind.NOT_FOUND
    await made.holdings.collections.set_grants(person("ann"), docs.id, [])
    shared = await collection(made, "shared", Grant("user", "bob", "read"))
    await made.members.add(ANN, shared.id, secret)
    assert (await made.holdings.files.get(BOB, secret)).id == secret


async def test_a_text_is_refused_twice(made: Services) -> None:
    docs = await collection(made)
    keys = [await made.upload("the same", name) for name in ("a.txt", "b.txt")]
    await made.members.add(ANN, docs.id, keys[0])
    with pytest.raises(GatewayError) as caught:
        await made.members.add(ANN, docs.id, keys[1])
    assert caught.value.code == "duplicate_content"
