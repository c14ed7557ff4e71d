"""The routes of files, collections and the search in them, on both sockets."""

from collections.abc import Sequence

from gatewayd.assembly.accounts import AccountServices
from gatewayd.assembly.documents import DocumentServices
from gatewayd.http.control.accounts.grantees import GranteeFinder
from gatewayd.http.control.documents import collections as control_collections
from gatewayd.http.control.documents import files as control_files
from gatewayd.http.control.documents.collection_files import CollectionFileRoutes
from gatewayd.http.control.documents.collection_search import CollectionSearchRoutes
from gatewayd.http.control.documents.queue import QueueRoutes
from gatewayd.http.control.documents.reindex import ReindexRoutes
from gatewayd.http.control.documents.serializers import DocumentViews
from gatewayd.http.control.impersonation import ControlActors
from gatewayd.http.control.transactions import WriteTransactions
from gatewayd.http.idempotency import IdempotentWrites
from gatewayd.http.public.files.on_demand import FileProcessing
from gatewayd.http.public.files.owners import OwnerFinder
from gatewayd.http.public.files.routes import FileRoutes
from gatewayd.http.public.files.upload import FileUploads
from gatewayd.http.public.knowledge.replies import CollectionReplies
from gatewayd.http.public.knowledge.retrieval import RetrievalRoutes
from gatewayd.http.public.knowledge.routes import KnowledgeRoutes
from gatewayd.http.public.knowledge.sync import KnowledgeSyncRoutes
from gatewayd.http.routes import Route
from gatewayd.settings import Settings


def public_document_rows(
    settings: Settings, accounts: AccountServices, documents: DocumentServices, writes: IdempotentWrites
) -> Sequence[Route]:
    """Return the rows of files, collections and search."""
    text_limit = settings.ingest_text_limit
    files, members, collections = documents.files, documents.members, documents.collections
    uploads = FileUploads(files, documents.uploads, max_size=settings.rag_file_max_size, writes=writes)
    replies = CollectionReplies(collections, members, OwnerFinder(accounts.users))
    processing = FileProcessing(files, members, documents.uploads, text_limit=text_limit)
    return [
        *FileRoutes(files, uploads, text_limit=text_limit).routes(),
        *KnowledgeRoutes(collections, members, replies).routes(),
        *KnowledgeSyncRoutes(members, documents.directories, documents.sync, replies).routes(),
        *RetrievalRoutes(documents.retrieval, documents.scopes, documents.search, processing).routes(),
    ]


def control_document_rows(
    settings: Settings,
    documents: DocumentServices,
    accounts: AccountServices,
    viewers: ControlActors,
    writes: WriteTransactions,
) -> Sequence[Route]:
    """Return the rows of the nouns file, queue and collection of the control socket."""
    collections, files = documents.collections, documents.files
    principals = GranteeFinder(accounts.users, accounts.groups)
    views = DocumentViews(collections, principals)
    receiver = control_files.FileReceiver(
        documents.uploads, collections, principals, max_size=settings.rag_file_max_size
    )
    search, checks = documents.search, documents.checks
    return [
        *control_files.ControlFileRoutes(files, receiver, views, principals, viewers, writes).routes(),
        *QueueRoutes(documents.queue).routes(),
        *control_collections.CollectionRoutes(collections, views, principals, viewers, writes).routes(),
        *CollectionFileRoutes(collections, documents.members, documents.sync, views, viewers).routes(),
        *CollectionSearchRoutes(collections, documents.retrieval, search, checks, viewers).routes(),
        *ReindexRoutes(documents.reindexing).routes(),
    ]
