"""Implementation of `HostCompletions`: chat requests and embeddings for plugins."""

import sys
from array import array
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Protocol

from gatewayd import ids
from gatewayd.accounts.records import Actor
from gatewayd.catalog.interfaces import ChunkStream
from gatewayd.catalog.records import Model, ModelRecord
from gatewayd.catalog.service import Catalog
from gatewayd.completions.json_access import as_mapping, as_text
from gatewayd.completions.records import DONE, Completion
from gatewayd.errors import ErrorKind, GatewayError, not_found
from gatewayd.ingest.records import EmbeddingPurpose
from gatewayd.knowledge.retrieval import QuerySpaces
from gatewayd.metering.service_calls import NOBODY, paid_by
from gatewayd.pipeline.documents.plugin_context import make_scope
from gatewayd.pipeline.interfaces import ChatFilters
from gatewayd.pipeline.pipeline import NoDocuments, NoFilters, NoTools, Pipeline
from gatewayd.pipeline.records import ChatAnswer, ChatRequest
from gatewayd.plugin_host.actors import PluginActors
from gatewayd.plugins.interfaces import Record
from gatewayd.plugins.runtime.call_context import current_asker
from gatewayd.plugins.runtime.call_depth import at_depth, next_depth
from gatewayd.plugins.runtime.context import CallScope

ChatOwners = Callable[[str], Awaitable[str | None]]
"""Returns the id of the owner of a chat; None when the chat is absent."""


class CompletionDialect(Protocol):
    """Parser of requests and renderer of replies; the module `dialects.openai` is one."""

    def parse_request(self, value: Mapping[str, Any]) -> ChatRequest:
        """Return the request of a body; invalid_request names the faulty field."""
        ...

    def wants_usage(self, body: Mapping[str, Any]) -> bool:
        """Whether a body asks for a usage frame at the end of its stream."""
        ...

    def render_sources(
        self, sources: list[dict[str, Any]], model: str, request_id: str, created: int
    ) -> bytes:
        """Return the frame that carries the sources, the first of a stream."""
        ...

    def render_completion(self, completion: Completion, *, include_usage: bool = False) -> list[bytes]:
        """Return a finished completion as frames."""
        ...


@dataclass(frozen=True, slots=True)
class CompletionServices:
    """Services that answer a request."""

    catalog: Catalog
    pipeline: Pipeline
    filters: ChatFilters
    dialect: CompletionDialect
    chat_owners: ChatOwners


class CompletionsForPlugins:
    """A `plugins.interfaces.HostCompletions` over the pipeline."""

    def __init__(
        self,
        services: CompletionServices,
        spaces: QuerySpaces,
        actors: PluginActors,
        clock: ids.Clock = ids.now,
    ) -> None:
        self._services = services
        self._spaces = spaces
        self._actors = actors
        self._clock = clock

    async def run(
        self, user_id: str, body: Record, *, whole_pipeline: bool, scope: CallScope | None
    ) -> Record | AsyncIterator[bytes]:
        """Answer a chat request for a user: a completion, or `data:` frames when `stream` is true.

        Without `whole_pipeline` the gateway adds no documents and no tools. It applies the record of the
        model and the filters that have not yet run on the request of the call (`scope`); a function model
        then sends its events to the chat of the call. Without a `scope` no filter runs. A failure after the
        first frame is raised by the iterator. Raises GatewayError; invalid_request when plugins call each
        other more deeply than allowed.
        """
        level = next_depth(0 if scope is None else scope.level)
        actor = await self._actor(user_id, scope)
        given = as_mapping(body.get("metadata"))
        request = self._services.dialect.parse_request(
            {name: value for name, value in body.items() if name != "metadata"}
        )
        await self._check_chat(request, actor)
        if scope is not None and scope.call is not None:
            scope.call.hold_calls()
        request.request_id = ids.new_id()
        request.facts = None if scope is None else lambda: scope.facts
        pipeline = self._services.pipeline
        if not whole_pipeline:
            request.files = []
            outer = scope if scope is not None and scope.actor.user_id == user_id else None
            scopes = _InnerScopes(outer, given, set() if scope is None else scope.filtered)
            filters = NoFilters() if scope is None else self._services.filters
            pipeline = Pipeline(self._services.catalog, filters, NoDocuments(), NoTools(), scopes)
        with at_depth(level):
            answer = await pipeline.run(request, actor)
        if not request.stream:
            return _body(answer)
        return self._frames(request, answer, level)

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return one vector for each text, made by the embedding model of searches.

        Raises not_configured when no embedding model is set up, and the errors of the model.
        """
        if not texts:
            return []
        found = await self._spaces.query()
        if found is None:
            raise GatewayError(ErrorKind.NOT_CONFIGURED, "cannot embed texts: no embedding model is set up")
        space, embedder = found
        numbers = array("f")
        with paid_by(current_asker.get() or NOBODY):
            numbers.frombytes(await embedder.embed(texts, EmbeddingPurpose.PASSAGE))
        if sys.byteorder == "big":
            numbers.byteswap()
        size = space.dimension
        return [numbers[start : start + size].tolist() for start in range(0, len(numbers), size)]

    async def _actor(self, user_id: str, scope: CallScope | None) -> Actor:
        if scope is not None and scope.actor.user_id == user_id:
            return scope.actor
        return await self._actors.reader(user_id)

    async def _check_chat(self, request: ChatRequest, actor: Actor) -> None:
        """Raise not_found when the request names a stored chat of another user."""
        chat_id = as_text(request.options.get("chat_id"))
        if chat_id and await self._services.chat_owners(chat_id) not in (None, actor.user_id):
            raise not_found("chat", chat_id)

    def _frames(self, request: ChatRequest, answer: ChatAnswer, level: int) -> AsyncIterator[bytes]:
        dialect, usage = self._services.dialect, self._services.dialect.wants_usage(request.body)
        if answer.completion is not None:
            return AnswerFrames(
                dialect.render_completion(answer.completion, include_usage=usage), None, level
            )
        first: list[bytes] = []
        if answer.sources:
            first = [dialect.render_sources(answer.sources, request.model, request.request_id, self._clock())]
        return AnswerFrames(first, answer.chunks, level)


class AnswerFrames:
    """Iterator over the frames of one answer, ending in `[DONE]`; closing it closes the source at once."""

    def __init__(self, first: Sequence[bytes], chunks: ChunkStream | None, level: int) -> None:
        self._ready = list(first)
        self._chunks = chunks
        self._level = level
        self._is_done = False

    def __aiter__(self) -> "AnswerFrames":
        return self

    async def __anext__(self) -> bytes:
        """Return the next frame; the source runs at the call depth of the request."""
        if self._ready:
            return self._ready.pop(0)
        while self._chunks is not None:
            try:
                with at_depth(self._level):
                    raw = (await self._chunks.__anext__()).raw
            except StopAsyncIteration:
                await self._release()
                break
            if raw:
                return raw
        if self._is_done:
            raise StopAsyncIteration
        self._is_done = True
        return DONE

    async def aclose(self) -> None:
        """Drop the remaining frames and close the source."""
        self._ready, self._is_done = [], True
        await self._release()

    async def _release(self) -> None:
        chunks, self._chunks = self._chunks, None
        if chunks is not None:
            await chunks.aclose()


class _InnerScopes:
    """Makes the scope of a request that a plugin sends, from the scope of the call that the plugin serves."""

    def __init__(self, outer: CallScope | None, given: Mapping[str, Any], filtered: Set[str]) -> None:
        self._outer = outer
        self._given = given
        self._filtered = filtered

    def __call__(
        self, request: ChatRequest, model: Model, record: ModelRecord | None, actor: Actor
    ) -> CallScope:
        """Return the scope of the inner request; the task in the metadata of the plugin is adopted."""
        scope = make_scope(request, model, record, actor)
        scope.filtered = set(self._filtered)
        task = as_text(self._given.get("task"))
        if task:
            scope.task = task
            scope.task_body = dict(as_mapping(self._given.get("task_body"))) or dict(request.body)
        if self._outer is None:
            return scope
        model_facts = {"model": scope.metadata["model"], "model_id": scope.metadata["model_id"]}
        scope.metadata = {**scope.metadata, **self._outer.metadata, **model_facts}
        scope.target = self._outer.target
        return scope


def _body(answer: ChatAnswer) -> dict[str, Any]:
    if answer.completion is None:
        raise RuntimeError("an answer that is not streamed has a completion")
    return answer.completion.body
