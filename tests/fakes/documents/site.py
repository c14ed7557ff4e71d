"""The rows of files, collections and retrieval over the services in memory; the bytes are on disk."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any

from gatewayd.accounts.records import PermissionTree, Role, User
from gatewayd.http.idempotency import IdempotentWrites
from gatewayd.http.public.files.on_demand import FileProcessing
from gatewayd.http.public.files.owners import OwnerFinder
from gatewayd.http.public.files.routes import FileRoutes
from gatewayd.http.public.files.status import StatusStreams
from gatewayd.http.public.files.upload import FileUploads
from gatewayd.http.public.knowledge.replies import CollectionReplies
from gatewayd.http.public.knowledge.retrieval import RetrievalRoutes
from gatewayd.http.public.knowledge.routes import KnowledgeRoutes
from gatewayd.http.public.knowledge.sync import KnowledgeSyncRoutes
from gatewayd.http.routes import Route
from gatewayd.ingest.blobs import LocalBlobs
from gatewayd.ingest.embedding_spaces import EmbeddingSpaces, SpaceModels, SpaceStores
from gatewayd.ingest.file_notifications import FileWatch
from gatewayd.ingest.files import FileService
from gatewayd.ingest.processor import FileProcessor
from gatewayd.ingest.queue import IngestQueue, QueueOptions
from gatewayd.ingest.updates import FileRemoval, IndexUpdates, IngestStores
from gatewayd.ingest.upload import UploadRules, UploadService
from gatewayd.knowledge.access import CollectionAccess
from gatewayd.knowledge.collections import CollectionService
from gatewayd.knowledge.directories import DirectoryService
from gatewayd.knowledge.index_updates import IndexNotifier
from gatewayd.knowledge.members import CollectionMembers, CollectionServices
from gatewayd.knowledge.retrieval import RetrievalService, SearchOptions
from gatewayd.knowledge.retrieval import SearchBackends as SearchedLibrary
from gatewayd.knowledge.scopes import ScopeResolver
from gatewayd.knowledge.sync import CollectionSync
from gatewayd.knowledge.uploads import DocumentUploads
from gatewayd.resumption.idempotency import IdempotentReplies
from gatewayd.tasks import TaskRegistry
from tests.fakes.accounts.services import Accounts, Site, serving_accounts
from tests.fakes.documents.collections import KnowledgeLibrary, MemoryCollections
from tests.fakes.documents.memory_stores import (
    ExactIndex,
    HashEmbedder,
    MemoryFiles,
    MemoryJobs,
    MemoryPassages,
    MemorySpaces,
    MemoryWords,
    PlainExtractor,
)
from tests.fakes.http.multipart_forms import FORM, field, file_part, form
from tests.fakes.http.public_app import bearer
from tests.fakes.storage.streams import MemoryReplies

FILES, KNOWLEDGE, RETRIEVAL = "/api/v1/files", "/api/v1/knowledge", "/api/v1/retrieval"
LIMIT = 1_000_000
USUAL: PermissionTree = {"workspace": {"knowledge": True}, "chat": {"file_upload": True}}


class DocumentServices:
    """The services, each made when it is first asked for. Files are processed once the queue is started."""

    def __init__(self, folder: Path, rules: UploadRules | None = None) -> None:
        self.library = KnowledgeLibrary()
        self.accounts = Accounts(memory=self.library, configured_permissions=USUAL)
        self.folder = folder
        self.rules = rules or UploadRules(LIMIT, 0, frozenset())
        self.tasks = TaskRegistry()
        self.embedder = HashEmbedder()
        self.extractor = PlainExtractor()
        self.store = MemoryCollections(self.library)
        self.passages = MemoryPassages(self.library)
        self.index = ExactIndex(self.passages)
        self.access = CollectionAccess(self.store)
        self.freshness = IndexNotifier(self.index, self.tasks)

    @cached_property
    def stores(self) -> IngestStores:
        return IngestStores(
            self.accounts.commits,
            MemoryFiles(self.library),
            MemoryJobs(self.library),
            self.passages,
            LocalBlobs(self.folder),
        )

    @cached_property
    def updates(self) -> IndexUpdates:
        return IndexUpdates(self.index, self.stores.blobs, FileWatch())

    @cached_property
    def spaces(self) -> EmbeddingSpaces:
        stores = SpaceStores(MemorySpaces(self.library), self.passages, self.stores.files)
        return EmbeddingSpaces(stores, SpaceModels(self.embedder, lambda _: None), self.updates)

    @cached_property
    def processor(self) -> FileProcessor:
        return FileProcessor(self.stores, self.extractor, self.spaces, self.updates)

    @cached_property
    def queue(self) -> IngestQueue:
        return IngestQueue(self.stores, self.processor, self.tasks, QueueOptions(attempts=1))

    @cached_property
    def files(self) -> FileService:
        intake = UploadService(self.stores, self.rules, self.queue.wake)
        return FileService(self.stores, intake, self.access, self.processor, self.updates)

    @cached_property
    def collections(self) -> CollectionService:
        return CollectionService(self.store, self.access, self.accounts.commits, self.freshness)

    @cached_property
    def holdings(self) -> CollectionServices:
        return CollectionServices(
            self.collections,
            self.store,
            self.files,
            FileRemoval(self.stores, self.updates),
            self.access,
            self.accounts.commits,
            self.freshness,
        )

    @cached_property
    def members(self) -> CollectionMembers:
        return CollectionMembers(self.holdings)

    @cached_property
    def uploads(self) -> DocumentUploads:
        return DocumentUploads(self.holdings)

    @cached_property
    def retrieval(self) -> RetrievalService:
        words = MemoryWords(self.library)
        library = SearchedLibrary(self.index, words, self.passages, self.stores.files, self.store)
        return RetrievalService(library, self.spaces)

    def rows(self) -> list[Route]:
        """Return every row about documents."""
        writes = IdempotentWrites(IdempotentReplies(MemoryReplies(), self.tasks))
        uploads = FileUploads(self.files, self.uploads, max_size=self.rules.max_size, writes=writes)
        replies = CollectionReplies(self.collections, self.members, OwnerFinder(self.accounts.users))
        directories = DirectoryService(self.holdings, self.members)
        sync = CollectionSync(self.holdings, self.members, directories)
        processing = FileProcessing(self.files, self.members, self.uploads, text_limit=LIMIT)
        statuses = StatusStreams(seconds=0.05)
        return [
            *FileRoutes(self.files, uploads, text_limit=LIMIT, statuses=statuses).routes(),
            *KnowledgeRoutes(self.collections, self.members, replies).routes(),
            *KnowledgeSyncRoutes(self.members, directories, sync, replies).routes(),
            *RetrievalRoutes(
                self.retrieval, ScopeResolver(self.files, self.collections), SearchOptions(), processing
            ).routes(),
        ]


@dataclass
class DocumentsSite:
    """A served gateway, with an account of each role and a second user, `other`."""

    services: DocumentServices
    site: Site
    other: User

    @property
    def admin(self) -> User:
        return self.site.admin

    @property
    def user(self) -> User:
        return self.site.user

    async def call(self, method: str, path: str, who: User | None, body: Any = None) -> Any:
        """Send a request and return status and JSON."""
        return await self.site.call(method, path, who, body)

    async def ok(self, method: str, path: str, who: User | None = None, body: Any = None) -> Any:
        """Send a request that must succeed, as the user unless told otherwise, and return the JSON."""
        status, answer = await self.call(method, path, who or self.user, body)
        assert status == 200, answer
        return answer

    async def post_form(
        self,
        content: bytes,
        who: User | None = None,
        query: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Send a whole form as an upload and return status and JSON."""
        sent = {
            **bearer(await self.services.accounts.session(who or self.user)),
            "Content-Type": FORM,
            **(headers or {}),
        }
        path = f"{FILES}/{query}"
        async with self.site.client.post(path, data=BytesIO(content), headers=sent) as reply:
            return reply.status, await reply.json()

    async def upload(
        self,
        content: bytes,
        who: User | None = None,
        name: str = "a.txt",
        query: str = "",
        metadata: str = "",
    ) -> Any:
        """Upload a file and return its record."""
        fields = [field("metadata", metadata)] if metadata else []
        status, answer = await self.post_form(form(*fields, file_part(content, name)), who, query)
        assert status == 200, answer
        return answer

    async def processed(self, content: bytes, who: User | None = None, name: str = "a.txt") -> Any:
        """Upload a file and return its record once it is processed."""
        return await self.upload(content, who, name, "?process_in_background=false")

    async def collection(self, who: User | None = None, **fields: Any) -> Any:
        """Make a collection and return it."""
        form = {"name": "papers", "description": "", **fields}
        return await self.ok("POST", f"{KNOWLEDGE}/create", who, form)

    def stored(self) -> list[str]:
        """Return the names of everything on disk."""
        return sorted(path.name for path in self.services.folder.rglob("*") if path.is_file())


@asynccontextmanager
async def serving_documents(
    folder: Path, rules: UploadRules | None = None, *, works: bool = True
) -> AsyncIterator[DocumentsSite]:
    """Serve the rows; without `works` nothing is processed until the queue is started."""
    services = DocumentServices(folder, rules)
    await services.spaces.open()
    async with serving_accounts(services.accounts, services.rows()) as site:
        if works:
            services.queue.start()
        other = await services.accounts.add_user("other", Role.USER)
        yield DocumentsSite(services, site, other)
        await services.queue.close()
        await services.tasks.close()
