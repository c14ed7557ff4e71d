"""Document services over the account services: files, queue, collections, search, attachments."""

import asyncio
import logging
import os
import shutil
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Final

from gatewayd.assembly.accounts import AccountServices
from gatewayd.assembly.embeddings import ConfiguredEmbedders, make_embedding, word_weight
from gatewayd.assembly.file_store import FileStores, open_file_stores
from gatewayd.assembly.indexes import open_index
from gatewayd.assembly.upkeep.nodes import ClusterServices
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.extract.pool import ExtractorPool, PoolOptions
from gatewayd.ingest.chunker import ChunkRules
from gatewayd.ingest.embedding_spaces import EmbeddingSpaces, SpaceModels, SpaceStores
from gatewayd.ingest.file_notifications import FileWatch
from gatewayd.ingest.files import FileService
from gatewayd.ingest.interfaces import BlobStore, Extractor, LexicalIndex, VectorIndex
from gatewayd.ingest.job_leases import wait_for_leases
from gatewayd.ingest.processor import FileProcessor
from gatewayd.ingest.queue import IngestQueue, QueueOptions
from gatewayd.ingest.reindex import ReindexRunner
from gatewayd.ingest.storage_room import StorageLimiter
from gatewayd.ingest.updates import FileRemoval, IndexUpdates, IngestStores
from gatewayd.ingest.upload import UploadRules, UploadService
from gatewayd.knowledge.access import CollectionAccess
from gatewayd.knowledge.checks import IndexChecks
from gatewayd.knowledge.collections import CollectionService
from gatewayd.knowledge.directories import DirectoryService
from gatewayd.knowledge.full_text import FullTextReader
from gatewayd.knowledge.fusion import FusionMethod
from gatewayd.knowledge.index_updates import IndexNotifier
from gatewayd.knowledge.members import CollectionMembers, CollectionServices
from gatewayd.knowledge.retrieval import RetrievalService, SearchBackends, SearchOptions
from gatewayd.knowledge.scopes import ScopeResolver
from gatewayd.knowledge.sync import CollectionSync
from gatewayd.knowledge.uploads import DocumentUploads
from gatewayd.metering.service_calls import ServiceCalls
from gatewayd.pipeline.documents.attachments import AttachmentOptions, DocumentAttachments
from gatewayd.pipeline.documents.attachments import ReferenceServices as AttachedDocuments
from gatewayd.sandbox import confinement
from gatewayd.sandbox.confinement import SandboxMode
from gatewayd.settings import Settings
from gatewayd.storage.collections import TortoiseCollections
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.readers import open_reader
from gatewayd.storage.files import TortoiseFiles
from gatewayd.storage.jobs import TortoiseJobs
from gatewayd.storage.search.embedding_spaces import TortoiseSpaces
from gatewayd.storage.search.lexical import open_lexical
from gatewayd.storage.search.passage_removal import StaleSweeper
from gatewayd.storage.search.passages import TortoisePassages
from gatewayd.tasks import TaskRegistry
from gatewayd.upstream.services.client import ServiceOptions
from gatewayd.upstream.services.extractor import ExternalExtractor, ExtractorOptions

READERS_FOLDER: Final = "readers"

POLL_SECONDS: Final = 2.0
"""Interval at which a node looks again at a file that somebody waits for: another node may process it."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DocumentStores:
    """The stores of documents."""

    files: TortoiseFiles
    jobs: TortoiseJobs
    passages: TortoisePassages
    spaces: TortoiseSpaces
    collections: TortoiseCollections
    blobs: BlobStore


@dataclass(frozen=True, slots=True)
class SearchEngines:
    """The search engines and the embedding models."""

    index: VectorIndex
    words: LexicalIndex
    embedding: ConfiguredEmbedders


@dataclass(frozen=True, slots=True)
class DocumentServices:
    """The services of documents."""

    stores: DocumentStores
    file_stores: FileStores
    engines: SearchEngines
    files: FileService
    queue: IngestQueue
    spaces: EmbeddingSpaces
    collections: CollectionService
    members: CollectionMembers
    directories: DirectoryService
    sync: CollectionSync
    removal: FileRemoval
    uploads: DocumentUploads
    scopes: ScopeResolver
    retrieval: RetrievalService
    search: SearchOptions
    attachments: DocumentAttachments
    checks: IndexChecks
    reindexing: ReindexRunner
    extractor: Extractor
    confinement: str | None

    async def start(self) -> None:
        """Start the queue; load the embedding model if there is something to search.

        Without documents the default model is neither built nor loaded: its process takes more memory than
        the gateway. A model named in the settings is checked at once, so that an error in its name is logged.
        """
        self.queue.start()
        try:
            is_used = await self._holds_something()
            if is_used or self.engines.embedding.is_chosen:
                await self.spaces.open()
            if is_used and await self.stores.spaces.find_active() is not None:
                await self.engines.embedding.warm()
        except GatewayError as error:
            log.warning("the embedding model is not ready: %s", error.full_message)

    async def _holds_something(self) -> bool:
        async for _ in self.stores.files.ids():
            return True
        return False


async def open_documents(
    settings: Settings,
    accounts: AccountServices,
    database: Database,
    quotas: StorageLimiter,
    cluster: ClusterServices,
    calls: ServiceCalls,
    tasks: TaskRegistry,
    stack: AsyncExitStack,
) -> DocumentServices:
    """Return the services; `stack` closes them.

    Unless this is a node, unfinished uploads of an earlier run are removed first.
    """
    reader = await stack.enter_async_context(open_reader(database.location))
    node_id = "" if cluster.member is None else cluster.member.id
    file_stores = await open_file_stores(settings, node_id)
    blobs = file_stores.documents
    sweeper = StaleSweeper()
    stores = DocumentStores(
        files=TortoiseFiles(sweeper.wake),
        jobs=TortoiseJobs(),
        passages=TortoisePassages(reader, sweeper.wake),
        spaces=TortoiseSpaces(reader),
        collections=TortoiseCollections(sweeper.wake),
        blobs=blobs,
    )
    # Nobody finds them, so the start does not wait for their removal.
    tasks.spawn("removal of stale passages", sweeper.run())
    # What looks left over may be an upload that another node receives.
    swept = 0 if node_id else await blobs.sweep(stores.files.blob_keys())
    if swept:
        log.info("removed what unfinished uploads left", extra={"files": swept})
    await asyncio.to_thread(shutil.rmtree, settings.data_dir / READERS_FOLDER, ignore_errors=True)
    engines = SearchEngines(
        index=await open_index(settings, database, stores.passages, tasks, stack),
        words=await stack.enter_async_context(open_lexical(reader, tasks)),
        embedding=make_embedding(settings, tasks, calls),
    )
    stack.push_async_callback(engines.embedding.close)
    extractor = make_extractor(settings, tasks, stack)
    documents = _Builder(settings, accounts, stores, engines, tasks, cluster).build(
        extractor, quotas, file_stores
    )
    # The first to be closed: what it works on uses all the others.
    stack.push_async_callback(documents.queue.close)
    return documents


class _Builder:
    """Builds the services from the bottom up."""

    def __init__(
        self,
        settings: Settings,
        accounts: AccountServices,
        stores: DocumentStores,
        engines: SearchEngines,
        tasks: TaskRegistry,
        cluster: ClusterServices,
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._stores = stores
        self._engines = engines
        self._tasks = tasks
        self._commits = accounts.commits
        self._access = CollectionAccess(
            stores.collections, bypass_admins=settings.bypass_admin_access_control
        )
        self._ingest = IngestStores(
            transactor=accounts.commits,
            files=stores.files,
            jobs=stores.jobs,
            passages=stores.passages,
            blobs=stores.blobs,
        )
        watch = FileWatch() if cluster.member is None else FileWatch(POLL_SECONDS)
        self._updates = IndexUpdates(engines.index, stores.blobs, watch)

    def build(
        self, extractor: Extractor, quotas: StorageLimiter, file_stores: FileStores
    ) -> DocumentServices:
        """Return the services."""
        settings, stores, engines = self._settings, self._stores, self._engines
        spaces = EmbeddingSpaces(
            SpaceStores(stores.spaces, stores.passages, stores.files),
            SpaceModels(engines.embedding.configured, engines.embedding.open_space),
            self._updates,
            None if self._cluster.member is None else partial(wait_for_leases, stores.jobs),
        )
        processor = FileProcessor(self._ingest, extractor, spaces, self._updates, chunk_rules(settings))
        queue = IngestQueue(
            self._ingest, processor, self._tasks, queue_options(settings), node=self._cluster.member
        )
        intake = UploadService(self._ingest, upload_rules(settings), queue.wake, quotas=quotas)
        holdings = self._holdings(FileService(self._ingest, intake, self._access, processor, self._updates))
        members = CollectionMembers(holdings)
        directories = DirectoryService(holdings, members)
        retrieval = RetrievalService(self._library(), spaces, engines.embedding.reranker)
        scopes = ScopeResolver(holdings.files, holdings.collections)
        return DocumentServices(
            stores=stores,
            file_stores=file_stores,
            engines=engines,
            files=holdings.files,
            queue=queue,
            spaces=spaces,
            collections=holdings.collections,
            members=members,
            directories=directories,
            sync=CollectionSync(holdings, members, directories),
            removal=holdings.removal,
            uploads=DocumentUploads(holdings),
            scopes=scopes,
            retrieval=retrieval,
            search=search_options(settings),
            attachments=self._attachments(holdings, scopes, retrieval),
            checks=self._checks(holdings, spaces),
            reindexing=ReindexRunner(spaces, stores.spaces, self._tasks, self._cluster.duties),
            extractor=extractor,
            confinement=find_confinement(settings),
        )

    def _library(self) -> SearchBackends:
        stores, engines = self._stores, self._engines
        return SearchBackends(engines.index, engines.words, stores.passages, stores.files, stores.collections)

    def _checks(self, holdings: CollectionServices, spaces: EmbeddingSpaces) -> IndexChecks:
        engines = self._engines
        return IndexChecks(holdings.collections, self._stores.passages, engines.words, engines.index, spaces)

    def _attachments(
        self, holdings: CollectionServices, scopes: ScopeResolver, retrieval: RetrievalService
    ) -> DocumentAttachments:
        wholes = FullTextReader(self._stores.passages, self._stores.collections)
        attached = AttachedDocuments(holdings.files, holdings.collections, scopes, retrieval, wholes)
        return DocumentAttachments(attached, attachment_options(self._settings))

    def _holdings(self, files: FileService) -> CollectionServices:
        freshness = IndexNotifier(self._engines.index, self._tasks)
        store = self._stores.collections
        return CollectionServices(
            collections=CollectionService(store, self._access, self._commits, freshness),
            store=store,
            files=files,
            removal=FileRemoval(self._ingest, self._updates),
            access=self._access,
            transactor=self._commits,
            notifier=freshness,
        )


def make_extractor(settings: Settings, tasks: TaskRegistry, stack: AsyncExitStack) -> Extractor:
    """Return the extractor: our own processes, or the configured service."""
    rules = chunk_rules(settings)
    if settings.content_extraction_engine == "external":
        key = settings.external_document_loader_api_key.get_secret_value()
        url = settings.external_document_loader_url
        at_once = queue_options(settings)
        # One owner's documents never hold all connections.
        connections = at_once.workers + at_once.others
        service = ServiceOptions(url, key or None, settings.ingest_timeout, connections)
        external = ExternalExtractor(
            ExtractorOptions(service, rules, settings.rag_file_max_size, settings.ingest_text_limit)
        )
        stack.push_async_callback(external.close)
        return external
    options = PoolOptions(
        folder=settings.data_dir / READERS_FOLDER,
        sandbox=SandboxMode(settings.ingest_sandbox),
        workers=extraction_workers(settings),
        memory=settings.ingest_memory_limit,
        seconds=settings.ingest_timeout,
        text_limit=settings.ingest_text_limit,
        rules=rules,
    )
    pool = ExtractorPool(options, tasks)
    stack.push_async_callback(pool.close)
    return pool


def find_confinement(settings: Settings) -> str | None:
    """Return how the processes are confined that read documents, None when there are none: full, off or what
    it is without.

    Raises not_configured when less is possible than the settings require.
    """
    if settings.content_extraction_engine == "external":
        return None
    sandbox = SandboxMode(settings.ingest_sandbox)
    if sandbox is SandboxMode.OFF:
        return sandbox
    missing = " and ".join(confinement.missing_features())
    if missing and sandbox is SandboxMode.REQUIRE:
        sentence = f'cannot have ingest_sandbox = "require": the kernel lacks or does not permit {missing}'
        raise GatewayError(ErrorKind.NOT_CONFIGURED, sentence)
    if missing:
        log.warning("processes that read documents are confined without %s: the kernel lacks it", missing)
    return f"without {missing}" if missing else "full"


def extraction_workers(settings: Settings) -> int:
    """Return the number of documents extracted at a time."""
    return settings.ingest_workers or len(os.sched_getaffinity(0))


def queue_options(settings: Settings) -> QueueOptions:
    """Return the number of files processed at a time and the number of attempts."""
    # One more than are extracted at a time, so that none waits while another is embedded.
    return QueueOptions(workers=extraction_workers(settings) + 1, attempts=settings.ingest_attempts)


def chunk_rules(settings: Settings) -> ChunkRules:
    """Return the rules of chunking."""
    return ChunkRules(size=settings.chunk_size, overlap=settings.chunk_overlap)


def upload_rules(settings: Settings) -> UploadRules:
    """Return the rules of uploads: size, extensions, limits."""
    return UploadRules(
        max_size=settings.rag_file_max_size,
        max_count=settings.rag_file_max_count,
        extensions=frozenset(settings.rag_allowed_file_extensions),
    )


def search_options(settings: Settings) -> SearchOptions:
    """Return the default search options."""
    return SearchOptions(
        k=settings.rag_top_k,
        threshold=settings.rag_relevance_threshold,
        hybrid=settings.enable_rag_hybrid_search,
        weight=word_weight(settings),
        fusion=FusionMethod(settings.rag_fusion),
        k_reranker=settings.rag_top_k_reranker,
    )


def attachment_options(settings: Settings) -> AttachmentOptions:
    """Return the options that turn references of chat requests into context."""
    return AttachmentOptions(
        search=search_options(settings),
        full_context=settings.rag_full_context,
        full_context_limit=settings.full_context_limit,
        system_context=settings.rag_system_context,
        template=settings.rag_template,
    )
