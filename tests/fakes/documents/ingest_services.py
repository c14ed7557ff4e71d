"""Every ingestion service over the stores in memory, with a clock that tests turn."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gatewayd.accounts.records import Actor, CredentialKind, Role, User
from gatewayd.ingest.blobs import LocalBlobs
from gatewayd.ingest.chunker import ChunkRules
from gatewayd.ingest.embedding_spaces import EmbeddingSpaces, SpaceModels, SpaceStores
from gatewayd.ingest.file_notifications import FileWatch
from gatewayd.ingest.files import FileService
from gatewayd.ingest.interfaces import Embedder
from gatewayd.ingest.processor import FileProcessor
from gatewayd.ingest.queue import IngestQueue, QueueOptions
from gatewayd.ingest.records import File, ScopeKind, SearchScope
from gatewayd.ingest.updates import IndexUpdates, IngestStores
from gatewayd.ingest.upload import NewFile, UploadRules, UploadService
from gatewayd.knowledge.records import CollectionLink
from gatewayd.nodes.interfaces import NodeMembership
from gatewayd.tasks import TaskRegistry
from gatewayd.transactions import CallbackTransactor, Transactor
from tests.fakes.documents.memory_stores import (
    ExactIndex,
    HashEmbedder,
    Library,
    MemoryFiles,
    MemoryJobs,
    MemoryPassages,
    MemorySpaces,
    MemoryWords,
    NoGrants,
    PlainExtractor,
)

NOON = 1_700_000_000
RULES = ChunkRules(size=200, overlap=20)


def actor(user_id: str = "owner", role: Role = Role.USER) -> Actor:
    """Return somebody who asks."""
    user = User(id=user_id, name=user_id, email=f"{user_id}@example.org", role=role)
    return Actor(user, CredentialKind.SESSION, (), {})


async def stream(*pieces: bytes) -> AsyncIterator[bytes]:
    """Yield pieces as a client sends them."""
    for piece in pieces:
        await asyncio.sleep(0)
        yield piece


@dataclass
class Ingest:
    """The services, and the stores below them. `wrap` puts something around each store that they use."""

    folder: Path
    tasks: TaskRegistry
    library: Library = field(default_factory=Library)
    rules: UploadRules = field(default_factory=lambda: UploadRules(1 << 20, 0, frozenset()))
    options: QueueOptions = field(default_factory=lambda: QueueOptions(pause=0))
    configured: Embedder | None = field(default_factory=HashEmbedder)
    others: dict[str, Embedder] = field(default_factory=dict)
    wrap: Callable[[Any], Any] = lambda store: store
    transactor: Transactor | None = None
    time: int = NOON
    node: NodeMembership | None = None

    def __post_init__(self) -> None:
        self.extractor = PlainExtractor(RULES)
        self.grants = NoGrants()
        self.watch = FileWatch()
        self.files_store = MemoryFiles(self.library)
        self.jobs = MemoryJobs(self.library)
        self.passages = MemoryPassages(self.library)
        self.spaces_store = MemorySpaces(self.library)
        self.index = ExactIndex(self.passages)
        self.words = MemoryWords(self.library)
        self.blobs = LocalBlobs(self.folder)
        files, passages = self.wrap(self.files_store), self.wrap(self.passages)
        self.stores = IngestStores(
            CallbackTransactor(self.transactor or self.library),
            files,
            self.wrap(self.jobs),
            passages,
            self.blobs,
        )
        self.updates = IndexUpdates(self.index, self.blobs, self.watch)
        self.spaces = EmbeddingSpaces(
            SpaceStores(self.wrap(self.spaces_store), passages, files),
            SpaceModels(self.configured, self.others.get),
            self.updates,
        )
        self.processor = FileProcessor(
            self.stores, self.extractor, self.spaces, self.updates, RULES, self.clock
        )
        self.queue = IngestQueue(
            self.stores, self.processor, self.tasks, self.options, self.clock, lambda: 0.5, self.node
        )
        self.intake = UploadService(self.stores, self.rules, self.queue.wake, self.clock)
        self.files = FileService(
            self.stores, self.intake, self.grants, self.processor, self.updates, self.clock
        )

    def clock(self) -> int:
        return self.time

    async def upload(self, name: str, text: str | bytes, **named: Any) -> File:
        """Accept a file of `owner`."""
        data = text.encode() if isinstance(text, str) else text
        fields = {"content_type": None, "user_id": "owner", "data": {}} | named
        return await self.files.uploads.keep(NewFile(name=name, **fields), stream(data))

    async def completed(self, name: str, text: str | bytes, **named: Any) -> File:
        """Accept a file and wait until it is processed."""
        file = await self.upload(name, text, **named)
        return await self.files.finished(file.id, 10)

    async def link(self, collection_id: str, file_id: str, path: str = "") -> None:
        async with self.library.transaction():
            self.library.tables.links[collection_id, file_id] = CollectionLink(
                collection_id, file_id, "owner", path=path
            )

    def texts(self, file_id: str) -> list[str]:
        """Return the published passages of a file."""
        return [row.passage.text for _, row in self.library.tables.rows(file_id, staged=False)]

    async def vectors(self, file_id: str, space: str = "test:hash:1") -> int:
        """Return how many passages of a file have a vector that can be searched."""
        return await self.passages.count_vectors(space, SearchScope(ScopeKind.FILE, file_id))


@asynccontextmanager
async def ingesting(folder: Path, **named: Any) -> AsyncIterator[Ingest]:
    """Run the services, with the queue at work."""
    tasks = TaskRegistry()
    ingest = Ingest(folder, tasks, **named)
    await ingest.spaces.open()
    ingest.queue.start()
    try:
        yield ingest
    finally:
        await ingest.queue.close()
        await tasks.close()
