"""A gateway over two scripted runtimes, for tests of the runtime API."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from gatewayd.accounts.records import Role
from gatewayd.catalog.interfaces import ModelSource
from gatewayd.catalog.records import Grant
from gatewayd.catalog.runtimes import ModelRuntimes
from gatewayd.catalog.service import Catalog, CatalogOptions
from gatewayd.http.public.model_runtimes.admin import RuntimeAdminRoutes
from gatewayd.http.public.model_runtimes.conversion import RuntimeConversion
from gatewayd.http.public.model_runtimes.routes import RuntimeRoutes
from gatewayd.http.public.model_runtimes.unknown_paths import RuntimeOthersRoutes
from gatewayd.pipeline.embeddings import EmbeddingService
from gatewayd.pipeline.filters.inputs import InputFilters
from gatewayd.pipeline.interfaces import ChatFilters
from gatewayd.pipeline.pipeline import NoFilters, NoTools, Pipeline
from gatewayd.tasks import TaskRegistry
from gatewayd.upstream.sources.config import ProviderConfig, SourceKind, UpstreamTimeouts
from gatewayd.upstream.sources.ollama import OllamaSource
from tests.fakes.documents.no_documents import NoAttachments
from tests.fakes.http.public_app import Client, serving
from tests.fakes.providers.models import FakeRecords, make_actor
from tests.fakes.providers.upstream import FakeUpstream

ADMIN = make_actor()
USER = make_actor("u", Role.USER)
ACTORS = {"admin": ADMIN, "user": USER, "pending": make_actor("p", Role.PENDING)}
BODY_LIMIT = 100_000
TIMEOUTS = UpstreamTimeouts(connect=2.0, first_byte=30.0, idle=30.0)


@dataclass
class Scene:
    """Two runtimes: `near` has shared:latest and near:1b, `far` (prefix `far.`) what it calls lone:latest.

    Both have a model with the id `shared:latest` only if the prefix of `far` is empty.
    """

    near: FakeUpstream
    far: FakeUpstream
    catalog: Catalog
    runtimes: ModelRuntimes
    tasks: TaskRegistry

    async def let(self, *model_ids: str) -> None:
        """Permit the models to everybody."""
        for model_id in model_ids:
            await self.catalog.grant(model_id, [Grant("user", "*", "read")], by="u1")


@asynccontextmanager
async def two_runtimes(*others: ModelSource, prefix: str = "far.") -> AsyncIterator[Scene]:
    tasks = TaskRegistry()
    async with AsyncExitStack() as stack:
        near = await stack.enter_async_context(FakeUpstream(["shared:latest", "near:1b"]))
        far = await stack.enter_async_context(FakeUpstream(["lone:latest", "shared:latest"]))
        stack.push_async_callback(tasks.close)
        sources = [_source("near", near, 0), _source("far", far, 1, prefix)]
        for source in sources:
            stack.push_async_callback(source.close)
        catalog = Catalog(FakeRecords(), tasks, CatalogOptions())
        catalog.use([*others, *sources])
        await catalog.list_all()
        near.requests.clear()
        far.requests.clear()
        yield Scene(near, far, catalog, ModelRuntimes(catalog), tasks)


@asynccontextmanager
async def serving_runtimes(scene: Scene, filters: ChatFilters | None = None) -> AsyncIterator[Client]:
    pipeline = Pipeline(scene.catalog, NoFilters(), NoAttachments(), NoTools())
    inputs = InputFilters(scene.catalog, filters or NoFilters())
    conversion = RuntimeConversion(pipeline, EmbeddingService(scene.catalog, NoFilters()))
    rows = [
        *RuntimeRoutes(scene.runtimes, conversion, inputs, body_limit=BODY_LIMIT).routes(),
        *RuntimeAdminRoutes(scene.runtimes, body_limit=BODY_LIMIT).routes(),
        *RuntimeOthersRoutes(scene.runtimes, inputs, body_limit=BODY_LIMIT).routes(),
    ]
    async with serving(rows, ACTORS) as client:
        yield client


def paths(fake: FakeUpstream) -> Sequence[tuple[str, str]]:
    """Return method and path of each request that a runtime got."""
    return [(request.method, request.path) for request in fake.requests]


def _source(name: str, fake: FakeUpstream, index: int, prefix: str = "") -> OllamaSource:
    config = ProviderConfig(
        name, SourceKind.OLLAMA, fake.base_url, prefix=prefix, index=index, timeouts=TIMEOUTS
    )
    return OllamaSource(config)
