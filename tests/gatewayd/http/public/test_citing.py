"""One question about documents through every dialect: the same context, sources and warnings."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from gatewayd.accounts.records import Role
from gatewayd.catalog.replies import Chunk
from gatewayd.chat.attachments import AttachmentOptions, DocumentAttachments
from gatewayd.chat.embeddings import Embeddings
from gatewayd.chat.pipeline import NoFilters, NoTools, Pipeline
from gatewayd.http.public.chat import ChatRoutes
from gatewayd.http.public.messages import MessageRoutes
from gatewayd.http.public.runtime import RuntimeRoutes
from gatewayd.http.public.runtime_conversion import RuntimeConversion
from gatewayd.http.routes import Access
from tests.fakes.edge import Client, bearer, serving
from tests.fakes.knowledge import World, a_file, build_world, person
from tests.fakes.models import FakeSource, make_model
from tests.fakes.runtimes import two_runtimes
from tests.fakes.upstream import json_reply, ollama_reply, openai_chunk

ANN = person("ann", role=Role.ADMIN)
TEXT = "ssh opens a shell on another machine"
QUESTION = "what opens a shell?"
FILES = [{"type": "file", "id": "f1"}, {"type": "file", "id": "gone"}]
MESSAGES = [{"role": "user", "content": QUESTION}]
WHOLE = [Chunk(events=[openai_chunk(content="ssh")]), Chunk(events=[openai_chunk(finish_reason="stop")])]

REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "openai": ("/api/chat/completions", {"messages": MESSAGES}),
    "messages": ("/v1/messages", {"messages": MESSAGES, "max_tokens": 9}),
    "chat": ("/ollama/api/chat", {"messages": MESSAGES}),
    "generate": ("/ollama/api/generate", {"prompt": QUESTION}),
}
each_dialect = pytest.mark.parametrize("dialect", REQUESTS)


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
        conversion = RuntimeConversion(pipeline, Embeddings(scene.catalog))
        rows = [
            *ChatRoutes(pipeline, body_limit=100_000).routes(),
            *MessageRoutes(pipeline, body_limit=100_000).routes(),
            *RuntimeRoutes(scene.runtimes, conversion, body_limit=100_000).routes(),
        ]
        asked = [row for row in rows if row.access is Access.VERIFIED]
        async with serving(asked, {"ann": ANN}) as client:
            yield Place(client, source, scene.near)


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    world = build_world(tmp_path)
    await world.shelve(a_file("f1", name="ssh.txt"), TEXT)
    async with gateway(world) as made:
        yield made


def sources_of(answer: dict[str, Any]) -> Any:
    """Return the sources, wherever a dialect's first object has them."""
    return answer.get("sources") or answer.get("message", {}).get("sources")


def check(place: Place, sources: Any, warning: str) -> None:
    [source] = sources
    assert source["source"] == {"type": "file", "id": "f1", "name": "ssh.txt"}
    assert source["document"] == [TEXT]
    assert source["metadata"][0]["source"] == "ssh.txt"
    assert source["distances"] == [1.0]
    assert "'gone'" in warning
    said = str(place.source.asked[-1]["messages"])
    assert f">{TEXT}</source>" in said
    assert QUESTION in said
    assert "files" not in place.source.asked[-1]


@each_dialect
async def test_a_whole_answer_has_the_sources(place: Place, dialect: str) -> None:
    answer, warning = await place.ask(dialect, stream=False)
    assert "sources" in answer
    check(place, answer["sources"], warning)


@each_dialect
async def test_a_stream_has_them_in_its_first_object(place: Place, dialect: str) -> None:
    first, *rest, warning = await place.ask(dialect, stream=True)
    check(place, sources_of(first), warning)
    assert rest
    assert not any(sources_of(each) for each in rest)
    if dialect == "openai":
        assert first["choices"] == []
    if dialect == "messages":
        assert first["type"] == "message_start"


async def test_sources_stand_first_in_a_completion(place: Place) -> None:
    answer, _ = await place.ask("openai", stream=False)
    assert next(iter(answer)) == "sources"


@each_dialect
@pytest.mark.parametrize("stream", [False, True])
async def test_without_anything_found_there_are_none(place: Place, dialect: str, stream: bool) -> None:
    first, *_, warning = await place.ask(dialect, stream=stream, files=[FILES[1]])
    assert "'gone'" in warning
    assert "sources" not in str(first)
    assert TEXT not in str(place.source.asked[-1])


async def test_a_runtime_s_own_model_gets_the_documents_too(place: Place) -> None:
    place.near.script(json_reply(ollama_reply("ssh")))
    answer, warning = await place.ask("chat", stream=False, model="near:1b")
    assert answer["message"]["content"] == "ssh"
    assert answer["sources"][0]["document"] == [TEXT]
    assert "'gone'" in warning
    assert TEXT in str(place.near.requests[-1])
