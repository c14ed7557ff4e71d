"""The sums in the store are those that a provider of every protocol told, on every path and dialect."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from gatewayd.catalog.runtimes import ModelRuntimes
from gatewayd.catalog.service import Catalog, CatalogOptions
from gatewayd.deferred_writes import DeferredWrites
from gatewayd.dialects import openai
from gatewayd.dialects.anthropic import dialect as anthropic
from gatewayd.dialects.ollama import dialect as ollama
from gatewayd.metering.meter import CallMeter
from gatewayd.metering.recorder import UsageRecorder
from gatewayd.metering.usage_records import UsageKey, UsageLine, UsageQuery, UsageSums
from gatewayd.pipeline.embeddings import EmbeddingService
from gatewayd.pipeline.endpoints import context_of
from gatewayd.pipeline.filters.inputs import RequestCaller
from gatewayd.pipeline.media.endpoints import IMAGE_GENERATION, MODERATION, RERANK
from gatewayd.pipeline.media.rerank import RerankService
from gatewayd.pipeline.media.service import MediaService
from gatewayd.pipeline.passthrough import RequestForwarder
from gatewayd.pipeline.pipeline import NoFilters, NoTools, Pipeline
from gatewayd.pipeline.responses.ids import ResponseIds
from gatewayd.tasks import TaskRegistry
from gatewayd.upstream.sources.config import ProviderConfig, SourceKind
from gatewayd.upstream.sources.factory import open_source
from tests.fakes.documents.no_documents import NoAttachments
from tests.fakes.metering.telling_provider import MODEL, TellingProvider
from tests.fakes.providers.models import FakeRecords, make_actor
from tests.gatewayd.pipeline.test_passthrough import MemoryResponseIds

ROUNDS = 4
KINDS = {
    "openai": (SourceKind.OPENAI, "/v1", {}),
    "upstream": (SourceKind.OPENAI, "/v1", {"upstream": "responses", "maker": "openai"}),
    "messages": (SourceKind.ANTHROPIC, "/v1", {}),
    "gemini": (SourceKind.GEMINI, "/v1beta", {"models": (MODEL,), "model_list": "replace"}),
    "azure": (SourceKind.AZURE, "", {"models": (MODEL,)}),
    "runtime": (SourceKind.OLLAMA, "", {}),
}
ACTOR = make_actor()
TURNS = [{"role": "user", "content": "hi"}]


class Sums:
    """A store of the sums of all rows."""

    def __init__(self) -> None:
        self.all = UsageSums()
        self.rows: dict[UsageKey, UsageSums] = {}

    async def add(self, rows: dict[UsageKey, UsageSums]) -> None:
        for key, sums in rows.items():
            self.all.add(sums)
            self.rows.setdefault(key, UsageSums()).add(sums)

    async def report(self, query: UsageQuery) -> Sequence[UsageLine]:
        return []


class Bench:
    """All services that reach models, over one provider in every protocol."""

    def __init__(self, url: str) -> None:
        self.tasks, self.store = TaskRegistry(), Sums()
        self.recorder = UsageRecorder(self.store)
        self.meter = CallMeter([self.recorder])
        self.catalog = Catalog(FakeRecords(), self.tasks, CatalogOptions(), meter=self.meter)
        self.sources = [
            open_source(ProviderConfig(name, kind, url + path, "sk-telling", f"{name}.", **more))
            for name, (kind, path, more) in KINDS.items()
        ]
        self.catalog.use(self.sources)
        self.pipeline = Pipeline(self.catalog, NoFilters(), NoAttachments(), NoTools())
        writes = DeferredWrites(self.tasks)
        ids = ResponseIds(MemoryResponseIds(), writes)
        self.forwarder = RequestForwarder(self.catalog, NoFilters(), ids)
        self.media = MediaService(self.catalog, NoFilters())

    async def close(self) -> None:
        for source in self.sources:
            await source.close()
        await self.tasks.close()

    async def chat(self, request: Any) -> None:
        asks = "stream_options" in request.body
        answer = await self.pipeline.run(request, ACTOR)
        if answer.chunks is None:
            return
        chunks = [chunk async for chunk in answer.chunks]
        await answer.chunks.aclose()
        if not answer.is_native:
            # The usage that the gateway asks for is not shown to a caller who did not.
            events = [event for chunk in chunks for event in chunk.events]
            assert any(not event["choices"] for event in events) == asks

    async def read(self, reply: Any) -> None:
        _ = [part async for part in reply]
        await reply.aclose()

    async def chats(self, model: str, *, stream: bool) -> None:
        asked = {"model": model, "messages": TURNS, "stream": stream, "max_tokens": 99}
        await self.chat(openai.parse_request(asked))
        await self.chat(anthropic.parse_request(asked))
        await self.chat(ollama.parse_chat({"model": model, "messages": TURNS, "stream": stream}))
        if stream:
            await self.chat(openai.parse_request({**asked, "stream_options": {"include_usage": True}}))

    async def other_paths(self, *, stream: bool) -> None:
        caller = RequestCaller(ACTOR)
        model = f"openai.{MODEL}"
        await self.read(
            await self.forwarder.run(
                "/completions", {"model": model, "prompt": "hi", "stream": stream}, caller
            )
        )
        await self.read(
            await self.forwarder.run("/responses", {"model": model, "input": "hi", "stream": stream}, caller)
        )
        for embedder in (model, f"runtime.{MODEL}:latest"):
            body = {"model": embedder, "input": ["text"] * 130}
            await EmbeddingService(self.catalog, NoFilters()).run(body, caller)
        await self.read(await self.media.run(IMAGE_GENERATION, {"model": model, "prompt": "cat"}, caller))
        await self.read(await self.media.run(MODERATION, {"model": model, "input": "hi"}, caller))
        ranked = {"model": model, "query": "q", "documents": ["d"]}
        await RerankService(self.catalog, NoFilters()).run(ranked, caller)
        assert RERANK.path == "/rerank"
        runtimes = ModelRuntimes(self.catalog)
        found = await runtimes.find(f"runtime.{MODEL}", ACTOR)
        for path in ("/api/chat", "/api/generate", "/api/embed"):
            body = {"model": MODEL, "messages": TURNS, "prompt": "hi", "input": ["a"], "stream": stream}
            if path == "/api/embed":
                del body["stream"]
            _, reply = await runtimes.forward(found, path, body, context_of(ACTOR, "r"), ACTOR)
            await self.read(reply)


@pytest.fixture
async def provider() -> AsyncIterator[TellingProvider]:
    async with TellingProvider(7).running() as running:
        yield running


async def test_every_path_and_dialect_counts_to_the_token(provider: TellingProvider) -> None:
    bench = Bench(provider.url)
    await bench.catalog.list_all()
    for _ in range(ROUNDS):
        for stream in (False, True):
            for name in KINDS:
                await bench.chats(f"{name}.{MODEL}{':latest' if name == 'runtime' else ''}", stream=stream)
            await bench.other_paths(stream=stream)
    await bench.recorder.flush()
    await bench.close()
    sums, told = bench.store.all, provider.told
    assert provider.requests > 200
    assert not bench.meter.calls
    found = (sums.prompt, sums.cached, sums.cache_written, sums.completion, sums.reasoning)
    assert found == tuple(told.values())
    assert (sums.failures, sums.estimated) == (0, 0)
    assert {key.provider for key in bench.store.rows} == set(KINDS)
