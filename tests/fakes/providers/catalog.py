"""A catalogue over one scripted provider that speaks all three protocols, and routes over that catalogue."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from gatewayd.accounts.records import Role
from gatewayd.catalog.interfaces import ModelSource
from gatewayd.catalog.service import Catalog, CatalogOptions
from gatewayd.dialects.tokenizers import count_locally
from gatewayd.http.routes import Route
from gatewayd.pipeline.filters.inputs import InputFilters
from gatewayd.pipeline.pipeline import NoFilters
from gatewayd.pipeline.token_counts import TokenCounts
from gatewayd.tasks import TaskRegistry
from gatewayd.upstream.sources.config import ProviderConfig, SourceKind
from gatewayd.upstream.sources.factory import open_source
from tests.fakes.http.public_app import Client, serving
from tests.fakes.providers.models import FakeRecords, make_actor
from tests.fakes.providers.upstream import FakeUpstream

ADMIN = make_actor()
ACTORS = {"admin": ADMIN, "user": make_actor("u", Role.USER), "pending": make_actor("p", Role.PENDING)}


def local_counts(catalog: Catalog) -> TokenCounts:
    """Return what counts tokens, of models without filters."""
    return TokenCounts(catalog, InputFilters(catalog, NoFilters()), count_locally)


@asynccontextmanager
async def three_providers(
    rows: Callable[[Catalog], Sequence[Route]], more: Sequence[ModelSource] = ()
) -> AsyncIterator[tuple[FakeUpstream, Client]]:
    """Serve routes; the model `m` is there as `acme.m` (OpenAI), `claude.m` (Anthropic), `local.m` (Ollama).

    `more` are further sources. The credentials are the names of ACTORS; nothing is granted.
    """
    tasks = TaskRegistry()
    async with FakeUpstream() as fake:
        sources: list[ModelSource] = [
            open_source(ProviderConfig("acme", SourceKind.OPENAI, fake.openai_url, prefix="acme.")),
            open_source(ProviderConfig("claude", SourceKind.ANTHROPIC, fake.base_url, prefix="claude.")),
            open_source(ProviderConfig("local", SourceKind.OLLAMA, fake.base_url, prefix="local.")),
            *more,
        ]
        catalog = Catalog(FakeRecords(), tasks, CatalogOptions())
        catalog.use(sources)
        await catalog.list(ADMIN)
        fake.requests.clear()
        async with serving(rows(catalog), ACTORS) as client:
            yield fake, client
        for source in sources:
            await source.close()
    await tasks.close()
