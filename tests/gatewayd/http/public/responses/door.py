"""The routes of the Responses protocol over sources of all three kinds and a function, for their tests."""

import platform
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from openai import AsyncOpenAI

from gatewayd.assembly.resumption import EDGES
from gatewayd.catalog.service import Catalog
from gatewayd.deferred_writes import DeferredWrites
from gatewayd.dialects.responses.sealed import SEAL_USE
from gatewayd.dialects.tokenizers import count_locally
from gatewayd.encryption import TextCipher
from gatewayd.http.public.completions.streams import StreamRoutes
from gatewayd.http.public.responses.background import BackgroundResponses
from gatewayd.http.public.responses.compaction import ResponseCompaction
from gatewayd.http.public.responses.conversion import ResponseConversion
from gatewayd.http.public.responses.native import NativeResponses
from gatewayd.http.public.responses.routes import ResponseRoutes, ResponseServices
from gatewayd.http.public.responses.stored import StoredResponseRoutes
from gatewayd.http.responses.repeatable import RepeatableAnswers
from gatewayd.http.responses.resumable import ResumableAnswers
from gatewayd.http.responses.streams import AnswerStreams
from gatewayd.http.routes import Route
from gatewayd.pipeline.interfaces import ChatFilters
from gatewayd.pipeline.local_counts import LocalCounts
from gatewayd.pipeline.passthrough import RequestForwarder, StoredForwarder
from gatewayd.pipeline.pipeline import NoFilters, NoTools, Pipeline
from gatewayd.pipeline.responses.archive import ArchiveBounds, ResponseArchive
from gatewayd.pipeline.responses.ids import ResponseIds
from gatewayd.pipeline.responses.pending_usage import BackgroundUsage
from gatewayd.pipeline.responses.router import MissingEndpoints, ResponseRouter
from gatewayd.resumption.idempotency import IdempotentReplies
from gatewayd.tasks import TaskRegistry
from tests.fakes.documents.no_documents import NoAttachments
from tests.fakes.http.public_app import Client, bearer
from tests.fakes.providers.catalog import three_providers
from tests.fakes.providers.models import FakeSource, make_model
from tests.fakes.providers.response_events import check, parse
from tests.fakes.providers.upstream import FakeUpstream
from tests.fakes.storage.memory_responses import MemoryResponses
from tests.fakes.storage.response_ids import MemoryResponseIds
from tests.fakes.storage.streams import MemoryReplies

# The official client asks a program for it once, which no unit test may.
platform.processor()

MODELS = ("acme.m", "claude.m", "local.m", "pipe")
PATH = "/v1/responses"


@dataclass
class Door:
    """The routes and what they use; `now` is the time of the stored responses."""

    fake: FakeUpstream
    client: Client
    pipe: FakeSource
    store: MemoryResponses
    clock: list[int] = field(default_factory=lambda: [1000])

    def sdk(self, key: str = "admin") -> AsyncOpenAI:
        """Return the official client; the caller closes it."""
        return AsyncOpenAI(api_key=key, base_url=str(self.client.make_url("/v1")), max_retries=0)

    async def post(self, body: Any, path: str = PATH, key: str = "admin") -> tuple[int, Any]:
        """Return status and JSON of an answer."""
        reply = await self.client.post(path, json=body, headers=bearer(key))
        return reply.status, await reply.json()

    async def get(self, path: str, key: str = "admin", method: str = "GET") -> tuple[int, Any]:
        """Return status and JSON of an answer about a stored response."""
        reply = await self.client.request(method, PATH + path, headers=bearer(key))
        return reply.status, await reply.json()

    async def ask(self, model: str = "pipe", **fields: Any) -> dict[str, Any]:
        """Return a whole response."""
        status, answer = await self.post({"model": model, "input": "hi", **fields})
        assert status == 200, answer
        found: dict[str, Any] = answer
        return found

    async def stream(self, model: str = "pipe", **fields: Any) -> list[dict[str, Any]]:
        """Return the checked events of a streamed response."""
        body = {"model": model, "input": "hi", "stream": True, **fields}
        reply = await self.client.post(PATH, json=body, headers=bearer("admin"))
        assert reply.status == 200, await reply.text()
        assert reply.headers["Content-Type"].startswith("text/event-stream")
        events = parse(await reply.read())
        check(events)
        return events


@asynccontextmanager
async def opened(
    filters: ChatFilters | None = None,
    streams: AnswerStreams | None = None,
    bounds: ArchiveBounds | None = None,
    resumable: ResumableAnswers | None = None,
    kept: MemoryResponses | None = None,
) -> AsyncIterator[Door]:
    store, clock, tasks = kept or MemoryResponses(), [1000], TaskRegistry()
    archive = ResponseArchive(store, bounds, lambda: clock[0])
    pipe = FakeSource("functions", [make_model("pipe", "functions", upstream_id="pipe")])

    background = None if resumable is None else BackgroundResponses(archive, resumable, lambda: clock[0])

    def rows(catalog: Catalog) -> Sequence[Route]:
        chosen, missing = filters or NoFilters(), MissingEndpoints()
        ids = ResponseIds(MemoryResponseIds(), DeferredWrites(TaskRegistry()))
        forwarding = RequestForwarder(catalog, chosen, ids, missing)
        pipeline = Pipeline(catalog, chosen, NoAttachments(), NoTools())
        conversion = ResponseConversion(archive, TextCipher(b"secret", SEAL_USE), lambda: clock[0])
        services = ResponseServices(
            pipeline,
            NativeResponses(ResponseRouter(catalog, missing), forwarding, archive, conversion),
            conversion,
            ResponseCompaction(pipeline, conversion),
            background,
            catalog,
            LocalCounts(count_locally),
        )
        usage = BackgroundUsage(archive, catalog.meter, tasks)
        repeatable = None
        if resumable is not None:
            repeatable = RepeatableAnswers(resumable, IdempotentReplies(MemoryReplies(), tasks))
        return [
            *ResponseRoutes(
                services, body_limit=2_000_000, streams=streams or AnswerStreams(), repeatable=repeatable
            ).routes(),
            *(StreamRoutes(resumable, EDGES).routes() if resumable is not None else ()),
            *StoredResponseRoutes(archive, StoredForwarder(catalog, usage), background).routes(),
        ]

    async with three_providers(rows, [pipe]) as (fake, client):
        yield Door(fake, client, pipe, store, clock)
    await tasks.close()
