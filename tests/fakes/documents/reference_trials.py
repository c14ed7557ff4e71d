"""References of chat requests, and trials that make each warning; @ stands for what differs."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.knowledge.retrieval import SearchOptions
from gatewayd.pipeline.documents.attachments import AttachmentOptions, DocumentAttachments
from gatewayd.pipeline.records import ChatRequest
from tests.fakes.documents.collections import World, person

ANN = person("ann")
QUESTION = "who opens a shell on another machine?"
SSH = "ssh opens a shell on another machine"
REFERENCES: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("file", "id"): {"type": "file", "id": "f1"},
    ("collection", "id"): {"type": "collection", "id": "@"},
    ("text", "content, name"): {"type": "text", "content": SSH, "name": "notes"},
    ("-", "docs"): {"docs": [{"content": SSH, "metadata": {}}]},
}


async def ask(
    world: World,
    reference: Mapping[str, Any],
    text: str = QUESTION,
    *,
    is_of_model: bool = False,
    **options: Any,
) -> Any:
    """Return the sources and the warnings for a reference; the id @ is that of the collection."""
    found, _ = await world.collections.list(ANN)
    given = {**reference, "id": found[0].id} if reference.get("id") == "@" else dict(reference)
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    request = ChatRequest("m", body, stream=False, files=[given], model_files=[given] if is_of_model else [])
    sources = await DocumentAttachments(world.documents, AttachmentOptions(**options)).attach(request, ANN)
    return sources, request.warnings


async def empty_collection(world: World) -> Any:
    made = await world.collection(ANN, "empty")
    return await ask(world, {"type": "collection", "id": made})


async def without_model(world: World) -> Any:
    world.space.embedder = None
    return await ask(world, REFERENCES["file", "id"])


class Broken:
    """A reranker that is away."""

    async def rerank(self, query: str, texts: Any) -> Any:
        raise GatewayError(ErrorKind.UNAVAILABLE, "cannot reach it")


async def without_reranker(world: World) -> Any:
    world.retrieval._reranker = Broken()
    return await ask(world, REFERENCES["file", "id"])


A_FILE = REFERENCES["file", "id"]
WARNINGS: Mapping[str, Callable[[World], Awaitable[Any]]] = {
    "cannot use file @: @": lambda world: ask(world, {"type": "file", "id": "gone"}),
    "cannot use a document of the model: it is not there, or not for the caller": lambda world: ask(
        world, {"type": "file", "id": "gone"}, is_of_model=True
    ),
    "cannot use collection @: it has no completed files": empty_collection,
    "cannot use file @: nothing in it answers the question": lambda world: ask(
        world, A_FILE, "bread", search=SearchOptions(threshold=0.99)
    ),
    "cannot use @ @: this gateway knows references of the types file, collection and text": lambda world: ask(
        world, {"type": "web_search", "id": "w"}
    ),
    "cannot use text: it has no content": lambda world: ask(world, {"type": "text"}),
    "cannot use file @ whole: @ had room in the context": lambda world: ask(
        world, {**A_FILE, "context": "full"}, full_context_limit=9
    ),
    "cannot use the files of this request: no user message has a text": lambda world: ask(
        world, A_FILE, text=""
    ),
    "cannot search by meaning, passages were found by their words alone: @": without_model,
    "cannot rerank the passages: @": without_reranker,
}
