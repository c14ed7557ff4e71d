"""A gateway with one document, which is asked one question through every dialect."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson

from gatewayd.accounts.records import Role
from gatewayd.completions.records import CompletionChunk
from gatewayd.http.public.completions.chat import ChatRoutes
from gatewayd.http.public.completions.messages import MessageRoutes
from gatewayd.http.public.model_runtimes.conversion import RuntimeConversion
from gatewayd.http.public.model_runtimes.routes import RuntimeRoutes
from gatewayd.http.routes import RouteAccess
from gatewayd.pipeline.documents.attachments import AttachmentOptions, DocumentAttachments
from gatewayd.pipeline.embeddings import EmbeddingService
from gatewayd.pipeline.filters.inputs import InputFilters
from gatewayd.pipeline.pipeline import NoFilters, NoTools, Pipeline
from tests.fakes.daemons.runtime_site import two_runtimes
from tests.fakes.documents.collections import World, person
from tests.fakes.http.public_app import Client, bearer, serving
from tests.fakes.providers.catalog import local_counts
from tests.fakes.providers.models import FakeSource, make_model
from tests.fakes.providers.upstream import openai_chunk
from tests.fakes.storage.chat_runs import make_plain_runs

ANN = person("ann", role=Role.ADMIN)
TEXT = "ssh opens a shell on another machine"
QUESTION = "what opens a shell?"
FILES = [{"type": "file", "id": "f1"}, {"type": "file", "id": "gone"}]
MESSAGES = [{"role": "user", "content": QUESTION}]
WHOLE = [
    CompletionChunk(events=[openai_chunk(content="ssh")]),
    CompletionChunk(events=[openai_chunk(finish_reason="stop")]),
]

REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "openai": ("/api/chat/completions", {"messages": MESSAGES}),
    "messages": ("/v1/messages", {"messages": MESSAGES, "max_tokens": 9}),
    "chat": ("/ollama/api/chat", {"messages": MESSAGES}),
    "generate": ("/ollama/api/generate", {"prompt": QUESTION}),
}


class Place:
    """A gateway with one document, and what its provider was asked."""

    def __init__(self, client: Client, source: FakeSource, near: Any) -> None:
        self.client, self.source, self.near = client, source, near

    async def ask(self, dialect: str, *, stream: bool, model: str = "m", **more: Any) -> list[Any]:
        """Return the objects of an answer; the header with warnings is the last."""
        path, body = REQUESTS[dialect]
        asked = {"model": model, "files": FILES, **body, **more, "stream": stream}
        reply = await self.client.post(path, json=asked, headers=bearer("ann"))
        raw = await reply.read()
        assert reply.status == 200, raw
        lines = raw.splitlines() if not stream or path.startswith("/ollama") else _data(raw)
        return [*map(orjson.loads, lines), reply.headers.get("X-Gateway-Warning", "")]


def _data(raw: bytes) -> list[bytes]:
    found = [line.removeprefix(b"data: ") for line in raw.splitlines() if line.startswith(b"data: ")]
    return [line for line in found if line != b"[DONE]"]


@asynccontextmanager
async def gateway(world: World) -> AsyncIterator[Place]:
    source = FakeSource("acme", [make_model("m")], script=lambda _: WHOLE)
    async with two_runtimes(source) as scene:
        attachments = DocumentAttachments(world.documents, AttachmentOptions())
        pipeline = Pipeline(scene.catalog, NoFilters(), attachments, NoTools())
        conversion = RuntimeConversion(pipeline, EmbeddingService(scene.catalog, NoFilters()))
        runs = make_plain_runs(scene.catalog, pipeline, scene.tasks)
        inputs = InputFilters(scene.catalog, NoFilters())
        rows = [
            *ChatRoutes(runs, body_limit=100_000).routes(),
            *MessageRoutes(pipeline, local_counts(scene.catalog), body_limit=100_000).routes(),
            *RuntimeRoutes(scene.runtimes, conversion, inputs, body_limit=100_000).routes(),
        ]
        asked = [row for row in rows if row.access is RouteAccess.VERIFIED]
        async with serving(asked, {"ann": ANN}) as client:
            yield Place(client, source, scene.near)


def sources_of(answer: dict[str, Any]) -> Any:
    """Return the sources, wherever a dialect's first object has them."""
    return answer.get("sources") or answer.get("message", {}).get("sources")
