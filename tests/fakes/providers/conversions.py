"""What providers of each kind get of a request that came in some dialect, through the whole pipeline."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from gatewayd.catalog.service import Catalog, CatalogOptions
from gatewayd.dialects import openai
from gatewayd.dialects.anthropic import dialect as anthropic
from gatewayd.dialects.ollama import dialect as ollama
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.pipeline.pipeline import NoFilters, NoTools, Pipeline
from gatewayd.pipeline.records import ChatRequest
from gatewayd.tasks import TaskRegistry
from gatewayd.upstream.sources.config import ProviderConfig, SourceKind
from gatewayd.upstream.sources.factory import open_source
from tests.fakes.documents.no_documents import NoAttachments
from tests.fakes.providers import fields_messages, fields_openai, fields_runtime
from tests.fakes.providers.fields import Json, Sample
from tests.fakes.providers.models import FakeRecords, make_actor
from tests.fakes.providers.upstream import FakeUpstream

KINDS: Final = ("openai", "anthropic", "ollama")


@dataclass(frozen=True)
class Table:
    """A table of the page: how its requests are parsed, the least of them, and its rows."""

    parse: Callable[[Mapping[str, Any]], ChatRequest]
    base: Json
    samples: Mapping[str, Sample]


RUNTIME: Final = (ollama.parse_chat, fields_runtime.BASE)

TABLES: Final[dict[str, Table]] = {
    "OpenAI messages": Table(openai.parse_request, fields_openai.BASE, fields_openai.MESSAGES),
    "OpenAI fields": Table(openai.parse_request, fields_openai.BASE, fields_openai.FIELDS),
    "Anthropic messages": Table(anthropic.parse_request, fields_messages.BASE, fields_messages.MESSAGES),
    "Anthropic fields": Table(anthropic.parse_request, fields_messages.BASE, fields_messages.FIELDS),
    "Ollama messages": Table(*RUNTIME, fields_runtime.MESSAGES),
    "Ollama prompts": Table(ollama.parse_generate, fields_runtime.GENERATE_BASE, fields_runtime.GENERATE),
    "Ollama fields": Table(*RUNTIME, fields_runtime.FIELDS),
}


class Conversions:
    """A provider of each kind behind one pipeline; `outcome` tells what became of a sample."""

    def __init__(self, upstream: FakeUpstream, catalog: Catalog) -> None:
        self._upstream = upstream
        self._pipeline = Pipeline(catalog, NoFilters(), NoAttachments(), NoTools())

    async def outcome(self, table: Table, sample: Sample, kind: str) -> str:
        """Return "same", "converted", "left out" or "refused"."""
        before = await self._sent(table, sample.without, kind)
        try:
            after = await self._sent(table, sample.request, kind)
        except GatewayError as error:
            if error.kind is not ErrorKind.INVALID_REQUEST:
                raise
            return "refused"
        if after == before:
            return "left out"
        return "same" if _holds(after, sample.piece, is_deep=sample.is_deep) else "converted"

    async def _sent(self, table: Table, request: Json, kind: str) -> Json:
        """Return what the provider gets, but for the name of the model."""
        chat = table.parse({"model": f"{kind}.m", **table.base, **request})
        answer = await self._pipeline.run(chat, make_actor())
        if answer.chunks is not None:
            await answer.chunks.aclose()
        sent: Json = self._upstream.requests[-1].json
        assert sent.pop("model") == "m"
        return sent


@asynccontextmanager
async def converting() -> AsyncIterator[Conversions]:
    """Start a provider of each kind."""
    async with AsyncExitStack() as stack:
        upstream = await stack.enter_async_context(FakeUpstream())
        tasks = TaskRegistry()
        stack.push_async_callback(tasks.close)
        urls = {"openai": upstream.openai_url, "anthropic": upstream.base_url, "ollama": upstream.base_url}
        sources = [
            open_source(ProviderConfig(kind, SourceKind(kind), urls[kind], prefix=f"{kind}."))
            for kind in KINDS
        ]
        for source in sources:
            stack.push_async_callback(source.close)
        catalog = Catalog(FakeRecords(), tasks, CatalogOptions())
        catalog.use(sources)
        await catalog.list_all()
        yield Conversions(upstream, catalog)


def _holds(value: object, piece: Json, *, is_deep: bool) -> bool:
    if isinstance(value, dict) and piece.items() <= value.items():
        return True
    if not is_deep:
        return False
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(_holds(item, piece, is_deep=True) for item in inner)
