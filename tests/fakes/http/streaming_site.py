"""A gateway over one provider, with or without its fast path, for streams that are read as bytes."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

from gatewayd.accounts.records import Actor
from gatewayd.catalog.interfaces import ModelSource
from gatewayd.catalog.service import Catalog, CatalogOptions
from gatewayd.completions.reasoning_memory import ReasoningMemory
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.access_revocation import AccessRevocation
from gatewayd.http.app import build_application
from gatewayd.http.fast_path import FastRows
from gatewayd.http.middleware import EdgeOptions, EdgeServices, PublicEdge
from gatewayd.http.observation import ObservedRequest, RequestObservation
from gatewayd.http.public.completions.chat import ChatRoutes
from gatewayd.http.public.completions.messages import MessageRoutes
from gatewayd.http.responses.streams import AnswerStreams
from gatewayd.http.scim_auth import ScimAuthenticator
from gatewayd.http.server import HttpServer
from gatewayd.measurement.request_notes import RequestNotes, ServedRequest
from gatewayd.metering.interfaces import CallObserver, ignore_call
from gatewayd.metering.meter import CallMeter
from gatewayd.metering.records import MeteredCall
from gatewayd.observe.call_notes import CallNotes
from gatewayd.observe.metrics.requests import RequestMetrics
from gatewayd.pipeline.fast_path import FastChats
from gatewayd.pipeline.pipeline import NoFilters, NoTools, Pipeline
from gatewayd.scim.request_log import ScimRequestLog
from gatewayd.scim.tokens.credential import ScimTokens
from gatewayd.tasks import TaskRegistry
from gatewayd.upstream.sources.anthropic import AnthropicSource
from gatewayd.upstream.sources.config import ProviderConfig, SourceKind, UpstreamTimeouts
from gatewayd.upstream.sources.openai import OpenAiSource
from tests.fakes.documents.no_documents import NoAttachments
from tests.fakes.providers.catalog import local_counts
from tests.fakes.providers.models import FakeRecords, make_actor
from tests.fakes.providers.upstream import FakeUpstream
from tests.fakes.storage.chat_runs import make_plain_runs

PATH: Final = "/v1/chat/completions"
SOON: Final = 20.0
PASSING: Final = ("x-request-id", "request-id", "date", "x-process-time")
"""Headers that differ between two replies to the same request."""


class Accounts:
    """Knows one actor, at once."""

    def __init__(self, actor: Actor) -> None:
        self._actor = actor

    def find(self, credential: str, method: str, path: str, digest: str = "") -> Actor | None:
        if credential != "key":
            raise GatewayError(ErrorKind.UNAUTHENTICATED, "cannot accept the credential")
        return self._actor

    async def authenticate(self, credential: str, method: str, path: str) -> Actor:
        self.find(credential, method, path)
        return self._actor


class EndedCalls(CallObserver):
    """Remembers ended calls."""

    begun = first = ignore_call

    def __init__(self) -> None:
        self.ended: list[MeteredCall] = []

    def finished(self, call: MeteredCall) -> None:
        self.ended.append(call)


class ServedRequests:
    """Remembers ended requests."""

    is_on = True
    watches_begin = False

    def __init__(self) -> None:
        self.all: list[ServedRequest] = []

    def begun(self, notes: RequestNotes, request: ObservedRequest) -> None:
        """Do nothing."""

    def served(self, served: ServedRequest) -> None:
        self.all.append(served)


@dataclass
class StreamedReply:
    """What came of one reply: `body` without its framing; `is_whole` tells whether it had an end."""

    status: int
    headers: dict[str, str]
    body: bytes
    is_whole: bool
    ids: tuple[str, ...] = field(default=(), compare=False)
    """The ids of the request in its headers, of every client and of those of messages."""


@dataclass
class StreamingSite:
    """A gateway over one provider."""

    provider: FakeUpstream
    calls: EndedCalls
    served: ServedRequests
    metrics: RequestMetrics
    revocation: AccessRevocation
    streams: AnswerStreams
    server: HttpServer
    meter: CallMeter
    memory: ReasoningMemory
    place: tuple[str, int]
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def connect(self) -> "StreamingClient":
        """Open a connection whose task waits for a request; it is closed with the site."""
        reader, writer = await asyncio.open_connection(*self.place)
        self.writers.append(writer)
        await asyncio.sleep(0.01)
        return StreamingClient(reader, writer)

    async def settled(self) -> None:
        """Wait until no request is in flight."""
        async with asyncio.timeout(SOON):
            while self.metrics.in_flight:
                await asyncio.sleep(0.002)

    def account(self) -> list[Any]:
        """Return what the calls and the access log tell, without times and sizes."""
        calls = [
            (call.outcome, call.usage, call.is_estimated, call.is_stream, call.characters, call.error_kind)
            for call in self.calls.ended
        ]
        served = [
            (one.status, one.route, one.notes.model, one.notes.completion, bool(one.notes.first_seconds))
            for one in self.served.all
        ]
        return [calls, served, len(self.meter.calls), self.metrics.in_flight, self.revocation.running()]


@dataclass
class StreamingClient:
    """A connection of a client."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def ask(self, **fields: Any) -> None:
        """Send a streamed request."""
        self.writer.write(chat(**fields))

    async def read(self) -> StreamedReply:
        """Return a reply up to its end, or up to that of the connection."""
        async with asyncio.timeout(SOON):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
            status, *lines = head.strip().split("\r\n")
            fields = {line.partition(": ")[0].lower(): line.partition(": ")[2] for line in lines}
            headers = {name: value for name, value in fields.items() if name not in PASSING}
            body, is_whole = await self._body(headers)
            ids = tuple(fields[name] for name in PASSING[:2] if name in fields)
            return StreamedReply(int(status.split()[1]), headers, body, is_whole, ids)

    async def _body(self, headers: dict[str, str]) -> tuple[bytes, bool]:
        if "content-length" in headers:
            return await self.reader.readexactly(int(headers["content-length"])), True
        parts: list[bytes] = []
        try:
            while size := int(await self.reader.readuntil(b"\r\n"), 16):
                parts.append((await self.reader.readexactly(size + 2))[:-2])
            await self.reader.readexactly(2)
        except (asyncio.IncompleteReadError, ConnectionResetError):
            return b"".join(parts), False
        return b"".join(parts), True

    async def read_end(self) -> bytes:
        """Return everything up to the end of a stream that has begun."""
        found = bytearray()
        async with asyncio.timeout(SOON):
            while not found.endswith(b"0\r\n\r\n"):
                part = await self.reader.read(2**20)
                assert part, f"the stream has no end: {found[-200:]!r}"
                found += part
        return bytes(found)

    async def is_open(self) -> bool:
        """Return whether the connection answers another request."""
        self.ask(stream=False)
        try:
            return (await self.read()).status == 200
        except (asyncio.IncompleteReadError, ConnectionResetError):
            return False


def chat(**fields: Any) -> bytes:
    """Return the bytes of a request, streamed unless the fields tell otherwise."""
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True, **fields}
    data = json.dumps(body).encode()
    return (
        f"POST {PATH} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer key\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    ).encode() + data


@asynccontextmanager
async def streaming_site(
    *,
    is_fast: bool,
    timeouts: UpstreamTimeouts | None = None,
    streams: AnswerStreams | None = None,
    idle_connections: int = 1,
    has_messages: bool = False,
) -> AsyncIterator[StreamingSite]:
    """Run a gateway that has so many idle connections to its provider.

    With `has_messages` it has a second provider, at the same address, whose models `a.` are of the messages
    dialect; no connection to it is idle.
    """
    tasks, admin, streams = TaskRegistry(), make_actor(), streams or AnswerStreams()
    calls, served, metrics, revocation = EndedCalls(), ServedRequests(), RequestMetrics(), AccessRevocation()
    async with FakeUpstream() as provider:
        config = ProviderConfig(
            "o", SourceKind.OPENAI, provider.openai_url, key="k", timeouts=timeouts or UpstreamTimeouts()
        )
        sources: list[ModelSource] = [OpenAiSource(config)]
        if has_messages:
            named = {"name": "a", "prefix": "a.", "base_url": provider.base_url}
            sources.append(AnthropicSource(replace(config, kind=SourceKind.ANTHROPIC, **named)))
        meter = CallMeter([calls, CallNotes()])
        catalog = Catalog(FakeRecords(), tasks, CatalogOptions(), meter=meter)
        catalog.use(sources)
        await catalog.list(admin)
        pipeline = Pipeline(catalog, NoFilters(), NoAttachments(), NoTools())
        fast = FastChats(catalog, NoFilters(), pipeline.reasoning)
        runs = make_plain_runs(catalog, pipeline, tasks)
        routes = ChatRoutes(runs, body_limit=100_000, streams=streams, fast=fast).routes()
        if has_messages:
            counts = local_counts(catalog)
            messages = MessageRoutes(pipeline, counts, body_limit=100_000, streams=streams, fast=fast)
            routes = [*routes, *messages.routes()]
        scim = ScimAuthenticator(ScimTokens(False, ()), ScimRequestLog(), "")
        edge = PublicEdge(EdgeServices(Accounts(admin), scim, revocation), tasks, EdgeOptions())
        observation = RequestObservation(metrics, (served,))
        rows = FastRows(edge, observation) if is_fast else None
        server = HttpServer(
            build_application(edge, routes, body_limit=100_000, observation=observation, fast_rows=rows)
        )
        await server.open()
        host, _, port = (await server.listen_tcp("127.0.0.1", 0)).rpartition(":")
        memory, place = pipeline.reasoning.memory, (host, int(port))
        site = StreamingSite(
            provider, calls, served, metrics, revocation, streams, server, meter, memory, place
        )
        await _warm(site, idle_connections)
        yield site
        for writer in site.writers:
            writer.close()
        await server.close()
        for source in sources:
            await source.close()
    await tasks.close()


async def _warm(site: StreamingSite, idle_connections: int) -> None:
    """Open connections to the provider, which the fast path needs."""
    clients: Sequence[StreamingClient] = [await site.connect() for _ in range(idle_connections)]
    for client in clients:
        client.ask(stream=False)
    for client in clients:
        assert (await client.read()).status == 200
    await site.settled()
    site.calls.ended.clear()
    site.served.all.clear()
    site.metrics.fast = 0
    site.provider.requests.clear()
