"""The real control application on a unix socket, over services in memory and a scripted model source."""

import asyncio
import io
import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from gatewayctl.client import ControlClient
from gatewayctl.main import main
from gatewayctl.transport import Transport
from gatewayd.catalog.providers.service import ManagedProviders
from gatewayd.catalog.service import Catalog, CatalogOptions
from gatewayd.completions.records import Body, CompletionChunk
from gatewayd.doctor.findings import DoctorFinding
from gatewayd.errors import GatewayError, not_found
from gatewayd.http.app import build_application
from gatewayd.http.control.accounts.grantees import GranteeFinder
from gatewayd.http.control.accounts.groups import ControlGroupRoutes
from gatewayd.http.control.accounts.identities import ControlIdentityRoutes
from gatewayd.http.control.accounts.invitations import ControlInvitationRoutes
from gatewayd.http.control.accounts.keys import ControlKeyRoutes
from gatewayd.http.control.accounts.links import LinkRoutes
from gatewayd.http.control.accounts.permissions import ControlPermissionRoutes
from gatewayd.http.control.accounts.scim import ScimStateRoutes
from gatewayd.http.control.accounts.scim_tokens import ScimTokenRoutes
from gatewayd.http.control.accounts.sessions import ControlSessionRoutes
from gatewayd.http.control.accounts.setup import SetupRoutes
from gatewayd.http.control.accounts.users import ControlUserRoutes
from gatewayd.http.control.audit import ControlAuditRoutes
from gatewayd.http.control.chat import ControlChatRoutes
from gatewayd.http.control.database import ControlDatabaseRoutes
from gatewayd.http.control.doctor import ControlDoctorRoutes
from gatewayd.http.control.documents.collection_files import CollectionFileRoutes
from gatewayd.http.control.documents.collection_search import CollectionSearchRoutes
from gatewayd.http.control.documents.collections import CollectionRoutes
from gatewayd.http.control.documents.files import ControlFileRoutes, FileReceiver
from gatewayd.http.control.documents.queue import QueueRoutes
from gatewayd.http.control.documents.reindex import ReindexRoutes
from gatewayd.http.control.documents.serializers import DocumentViews
from gatewayd.http.control.garbage import ControlGarbageRoutes
from gatewayd.http.control.health import ControlHealthRoutes, DaemonFacts
from gatewayd.http.control.impersonation import ControlActors
from gatewayd.http.control.limits import ControlLimitRoutes
from gatewayd.http.control.logs import ControlLogRoutes
from gatewayd.http.control.metrics import ControlMetricsRoutes
from gatewayd.http.control.middleware import ControlEdge
from gatewayd.http.control.models.models import ControlModelRoutes
from gatewayd.http.control.models.providers import ControlProviderRoutes
from gatewayd.http.control.nodes import ControlNodeRoutes
from gatewayd.http.control.peer import PeerRules
from gatewayd.http.control.privacy import ControlPrivacyRoutes
from gatewayd.http.control.settings import SettingRoutes
from gatewayd.http.control.transactions import WriteTransactions
from gatewayd.http.control.usage import ControlUsageRoutes, QueueDepth
from gatewayd.http.limit_fields import LimitTargets
from gatewayd.http.responses.resumable import ResumableAnswers
from gatewayd.http.responses.streams import AnswerStreams
from gatewayd.http.routes import Route
from gatewayd.ingest.reindex import ReindexRunner
from gatewayd.knowledge.checks import IndexChecks
from gatewayd.knowledge.directories import DirectoryService
from gatewayd.knowledge.full_text import FullTextReader
from gatewayd.knowledge.retrieval import SearchOptions
from gatewayd.knowledge.scopes import ScopeResolver
from gatewayd.knowledge.sync import CollectionSync
from gatewayd.metering.load import LoadWatch
from gatewayd.nodes.service import NodeAdministration
from gatewayd.observe.level_changes import LevelChanges
from gatewayd.pipeline.documents.attachments import AttachmentOptions, DocumentAttachments
from gatewayd.pipeline.documents.attachments import ReferenceServices as AttachedDocuments
from gatewayd.pipeline.pipeline import NoFilters, NoTools, Pipeline
from gatewayd.privacy.erasure import ErasureReport
from gatewayd.resumption.service import ResumableStreams
from gatewayd.scim.links import ProviderLinks
from gatewayd.scim.request_log import ScimRequestLog
from gatewayd.scim.tokens.rotation import ScimTokenKeeper, TokenSource
from gatewayd.storage.limits.usage import TortoiseUsage
from gatewayd.tasks import TaskRegistry
from tests.fakes.accounts.directory import MemoryDirectory
from tests.fakes.accounts.memory_scim_tokens import MemoryScimTokens
from tests.fakes.accounts.memory_stores import Memory
from tests.fakes.accounts.services import Accounts
from tests.fakes.daemons.control_audit import AuditHouse, make_audit
from tests.fakes.daemons.control_chats import LiveServices
from tests.fakes.daemons.control_plugins import PluginHouse, make_house
from tests.fakes.daemons.control_state import make_providers, state_rows
from tests.fakes.documents.garbage import make_garbage
from tests.fakes.documents.memory_stores import MemorySpaces, MemoryWords
from tests.fakes.documents.site import DocumentServices
from tests.fakes.limits.bench import LimitBench
from tests.fakes.providers.models import FakeRecords, FakeSource, make_model
from tests.fakes.storage.nodes import MemoryNodes
from tests.fakes.storage.small_export import SmallRecords, small_export
from tests.fakes.storage.streams import CountingLimiter, MemoryStreams

PROVIDER = "okta"


@dataclass
class FakeHealth:
    """A database that answers, or does not, and a loop that turns."""

    problem: GatewayError | None = None
    stalls: tuple[int, float] = (0, 0.0)
    degraded: Sequence[str] = ()

    async def database_problem(self) -> GatewayError | None:
        return self.problem


VECTOR_CACHE = {"size_bytes": 300 << 20, "limit_bytes": 512 << 20, "reloads": 0, "problem": None}


@dataclass
class FakeCheck:
    """A check of a database that finds what it is told."""

    problems: Sequence[str] = ()
    failure: GatewayError | None = None
    asked: list[float] = field(default_factory=list)

    async def run(self, seconds: float) -> Sequence[str]:
        self.asked.append(seconds)
        if self.failure is not None:
            raise self.failure
        return self.problems


@dataclass
class FakeTokens:
    """Remembers the digests of the SCIM tokens that are in force."""

    enabled: bool = False
    digests: Sequence[str] = ()

    def replace(self, enabled: bool, digests: Sequence[str]) -> None:
        self.enabled, self.digests = enabled, tuple(digests)


class FakeErasure:
    """An erasure of people who have two chats each; `erased` are their references."""

    def __init__(self) -> None:
        self.erased: list[str] = []

    async def count(self, ref: str) -> ErasureReport:
        if ref in self.erased:
            raise not_found("user", ref)
        return ErasureReport(f"id-of-{ref}", {"chats": 2, "accounts": 1})

    async def erase(self, ref: str) -> ErasureReport:
        report = await self.count(ref)
        self.erased.append(ref)
        return report


@dataclass
class Control:
    """A running control socket and what stands behind it; `okta` is the provider of SCIM."""

    socket: Path
    documents: DocumentServices
    accounts: Accounts
    catalog: Catalog
    source: FakeSource
    health: FakeHealth
    tokens: FakeTokens
    keeper: ScimTokenKeeper
    live: LiveServices
    plugins: PluginHouse
    streams: ResumableStreams
    audit: AuditHouse
    activity: ScimRequestLog = field(default_factory=ScimRequestLog)
    limits: LimitBench = field(default_factory=LimitBench)
    check: FakeCheck = field(default_factory=FakeCheck)
    erasure: FakeErasure = field(default_factory=FakeErasure)
    exported: SmallRecords = field(default_factory=SmallRecords)
    nodes: MemoryNodes = field(default_factory=MemoryNodes)
    vector_cache: dict[str, object] = field(default_factory=lambda: dict(VECTOR_CACHE))

    findings: Sequence[DoctorFinding] = ()
    providers: ManagedProviders = field(default_factory=make_providers)

    async def examine(self) -> Sequence[DoctorFinding]:
        """Return the findings that a test has set."""
        return self.findings

    @property
    def client(self) -> ControlClient:
        return ControlClient(Transport(self.socket))

    async def call(self, method: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """Run a client method, which blocks, beside the server."""
        return await asyncio.to_thread(method, *args, **named)


def say(*texts: str) -> Callable[[Body], Sequence[CompletionChunk | Exception]]:
    """Return the script of a source that answers with these pieces."""

    def script(body: Body) -> Sequence[CompletionChunk | Exception]:
        return [
            CompletionChunk(events=[{"id": "c1", "choices": [{"index": 0, "delta": {"content": text}}]}])
            for text in texts
        ]

    return script


async def no_queues() -> Sequence[QueueDepth]:
    """Return no queue."""
    return []


async def render_metrics() -> bytes:
    return b"gatewayd_ready 1.0\n"


def rows(control: Control, pipeline: Pipeline) -> Sequence[Route]:
    accounts = control.accounts
    writes = WriteTransactions(accounts.commits)
    viewers = ControlActors(accounts.users, accounts.rules, accounts.permissions)
    directory = MemoryDirectory(accounts.memory)
    links = ProviderLinks(
        accounts.users, accounts.groups, directory, accounts.identities_store, accounts.commits, PROVIDER
    )
    return [
        *SetupRoutes(accounts.setup, writes).routes(),
        *ControlUserRoutes(accounts.users, accounts.groups, writes, control.limits.quotas).routes(),
        *ControlSessionRoutes(accounts.sessions, accounts.users, accounts.groups, writes).routes(),
        *ControlIdentityRoutes(
            accounts.identity_links, accounts.sessions, accounts.users, accounts.groups, writes
        ).routes(),
        *ControlInvitationRoutes(
            accounts.invitations,
            accounts.sign_in_links,
            accounts.users,
            accounts.groups,
            writes,
            lambda: "https://ai.example.org",
        ).routes(),
        *ControlGroupRoutes(accounts.groups, accounts.users, writes).routes(),
        *LinkRoutes(links, accounts.users, accounts.groups, writes).routes(),
        *ScimTokenRoutes(control.keeper).routes(),
        *ScimStateRoutes(control.keeper, directory, control.activity, PROVIDER).routes(),
        *ControlPermissionRoutes(accounts.permissions, accounts.groups, accounts.users, writes).routes(),
        *ControlKeyRoutes(accounts.keys, accounts.users, writes, accounts.clock).routes(),
        *ControlModelRoutes(control.catalog, viewers, accounts.users, accounts.groups, writes).routes(),
        *ControlLimitRoutes(
            control.limits.limits, LimitTargets(accounts.users, accounts.groups, accounts.keys), writes
        ).routes(),
        *ControlUsageRoutes(
            TortoiseUsage(),
            control.catalog.meter,
            LoadWatch(),
            accounts.users,
            accounts.groups,
            no_queues,
        ).routes(),
        *ControlProviderRoutes(control.providers).routes(),
        *SettingRoutes(accounts.runtime, writes).routes(),
        *ControlHealthRoutes(
            control.health,
            control.catalog,
            "1.2.3",
            DaemonFacts("full", "hnsw", lambda: (0.9621, 1111), lambda: control.vector_cache),
            accounts.clock,
        ).routes(),
        *ControlLogRoutes(LevelChanges()).routes(),
        *ControlMetricsRoutes(render_metrics).routes(),
        *ControlDatabaseRoutes(control.check).routes(),
        *ControlAuditRoutes(control.audit.store, control.audit.keeper).routes(),
        *ControlDoctorRoutes(control.examine).routes(),
        *ControlPrivacyRoutes(
            small_export(accounts.users, control.socket.parent / "exported", control.exported),
            control.erasure,  # type: ignore[arg-type]
        ).routes(),
        *ControlGarbageRoutes(make_garbage(control.documents, accounts.commits)).routes(),
        *state_rows(control, viewers),
        *ControlNodeRoutes(NodeAdministration(control.nodes), writes).routes(),
        *ControlChatRoutes(
            pipeline,
            control.catalog,
            control.documents.collections,
            viewers,
            ResumableAnswers(control.streams, AnswerStreams()),
        ).routes(),
        *document_rows(control, viewers, writes),
        *control.live.rows(viewers),
        *control.plugins.rows(accounts, viewers),
        *control.plugins.server_rows(accounts, viewers),
        *control.plugins.model_rows(
            control.catalog, control.documents.collections, accounts, viewers, writes
        ),
    ]


def document_rows(control: Control, viewers: ControlActors, writes: WriteTransactions) -> Sequence[Route]:
    accounts, documents = control.accounts, control.documents
    principals = GranteeFinder(accounts.users, accounts.groups)
    collections, members = documents.collections, documents.members
    views = DocumentViews(collections, principals)
    receiver = FileReceiver(documents.uploads, collections, principals, max_size=documents.rules.max_size)
    sync = CollectionSync(documents.holdings, members, DirectoryService(documents.holdings, members))
    words = MemoryWords(documents.library)
    checks = IndexChecks(collections, documents.passages, words, documents.index, documents.spaces)
    reindexing = ReindexRunner(documents.spaces, MemorySpaces(documents.library), documents.tasks)
    return [
        *ControlFileRoutes(documents.files, receiver, views, principals, viewers, writes).routes(),
        *QueueRoutes(documents.queue).routes(),
        *CollectionRoutes(collections, views, principals, viewers, writes).routes(),
        *CollectionFileRoutes(collections, members, sync, views, viewers).routes(),
        *CollectionSearchRoutes(collections, documents.retrieval, SearchOptions(), checks, viewers).routes(),
        *ReindexRoutes(reindexing).routes(),
    ]


def attachments(documents: DocumentServices) -> DocumentAttachments:
    scopes = ScopeResolver(documents.files, documents.collections)
    wholes = FullTextReader(documents.passages, documents.store)
    attached = AttachedDocuments(documents.files, documents.collections, scopes, documents.retrieval, wholes)
    return DocumentAttachments(attached, AttachmentOptions())


@asynccontextmanager
async def control_socket(
    folder: Path, *, owner_uid: int | None = None, works: bool = True
) -> AsyncIterator[Control]:
    """Serve the control application on `control.sock` in a folder.

    Documents are kept in `documents` there; without `works` none is processed until the queue is started.
    """
    tasks = TaskRegistry()
    control = make_control(folder, tasks)
    documents = control.documents
    pipeline = Pipeline(control.catalog, NoFilters(), attachments(documents), NoTools())
    owner = os.geteuid() if owner_uid is None else owner_uid
    edge = ControlEdge(PeerRules("", owner), tasks)
    app = build_application(edge, rows(control, pipeline), body_limit=1024 * 1024, trail=control.audit.trail)
    tasks.spawn("audit log", control.audit.trail.run())
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=1)
    await runner.setup()
    await documents.spaces.open()
    await control.providers.load()
    if works:
        documents.queue.start()
    await web.UnixSite(runner, control.socket).start()
    try:
        async with control.plugins.plugged:
            yield control
    finally:
        await control.live.close()
        await runner.cleanup()
        await documents.queue.close()
        await documents.tasks.close()
        await tasks.close()


def make_control(folder: Path, tasks: TaskRegistry) -> Control:
    """Return what the socket of a folder stands on, with two models."""
    source = FakeSource(models=[make_model("alpha"), make_model("beta/b:1")], script=say("hel", "lo"))
    catalog = Catalog(FakeRecords(), tasks, CatalogOptions())
    catalog.use([source])
    tokens = FakeTokens()
    made, memory = TokenSource(True, folder / "scim-token"), Memory()
    documents = DocumentServices(folder / "documents")
    documents.accounts = Accounts(memory=documents.library)
    return Control(
        folder / "control.sock",
        documents,
        documents.accounts,
        catalog,
        source,
        FakeHealth(),
        tokens,
        ScimTokenKeeper(tokens, made, MemoryScimTokens(memory), memory),
        LiveServices(documents.accounts),
        make_house(folder),
        ResumableStreams(MemoryStreams(), tasks, CountingLimiter()),
        make_audit(folder),
    )


@dataclass
class Result:
    """What a command left behind."""

    code: int
    out: str
    err: str


class Terminal(io.StringIO):
    """A text stream that says that somebody looks at it."""

    def isatty(self) -> bool:
        return True


@dataclass
class Ctl:
    """Runs gatewayctl in this process against a socket."""

    socket: Path
    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]
    ran: list[tuple[str, ...]] = field(default_factory=list)

    async def __call__(self, *args: str, stdin: str | io.StringIO = "") -> Result:
        self.monkeypatch.setattr(sys, "stdin", io.StringIO(stdin) if isinstance(stdin, str) else stdin)
        self.capsys.readouterr()
        code = await asyncio.to_thread(main, ["--socket", str(self.socket), *args])
        captured = self.capsys.readouterr()
        self.ran.append(args)
        return Result(code, captured.out, captured.err)
