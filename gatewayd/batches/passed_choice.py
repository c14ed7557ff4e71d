"""Decides whether a batch is passed on to a provider, and makes the requests that the provider gets."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gatewayd.accounts.records import Actor
from gatewayd.batches.lines import MESSAGES_ENDPOINT, BatchLine, parse_line, read_lines
from gatewayd.batches.records import Batch
from gatewayd.catalog.interfaces import CallContext, ModelSource
from gatewayd.catalog.provider_batches import BatchSource
from gatewayd.catalog.records import Model
from gatewayd.catalog.service import Catalog
from gatewayd.completions.json_access import as_text
from gatewayd.completions.records import Body
from gatewayd.dialects import embeddings, openai
from gatewayd.dialects.anthropic import dialect as anthropic
from gatewayd.errors import ErrorKind, GatewayError, shorten
from gatewayd.pipeline.documents.placeholders import fill_system_messages
from gatewayd.pipeline.documents.plugin_context import CHAT_FIELDS
from gatewayd.pipeline.documents.presets import is_altering
from gatewayd.pipeline.endpoints import check_names, context_of
from gatewayd.pipeline.interfaces import ChatFilters
from gatewayd.pipeline.reasoning_keeper import ReasoningKeeper, has_answers
from gatewayd.pipeline.records import ChatRequest, Endpoint

MAX_MODELS: Final = 100
"""Maximum number of different models of a batch that is passed on."""

KINDS: Final[Mapping[str, Endpoint]] = {
    "/v1/chat/completions": Endpoint.CHAT,
    "/v1/completions": Endpoint.COMPLETIONS,
    "/v1/embeddings": Endpoint.EMBEDDINGS,
    MESSAGES_ENDPOINT: Endpoint.CHAT,
}
"""Endpoints whose batches can be passed on, and the kind of their requests."""


@dataclass(frozen=True, slots=True)
class PassedTarget:
    """The provider that gets a batch, and its models by the names in the lines."""

    source: BatchSource
    models: Mapping[str, Model]


class NotPassableError(Exception):
    """A request that only the gateway can answer: a filter, a record or a tool takes part in it."""


class PassedChoice:
    """Looks at the models of batches. A batch of which the gateway has to see the requests is not passed."""

    def __init__(self, catalog: Catalog, filters: ChatFilters, reasoning: ReasoningKeeper) -> None:
        self._catalog = catalog
        self._filters = filters
        self._reasoning = reasoning

    @property
    def is_wanted(self) -> bool:
        """Whether there is a provider to which batches are passed."""
        return any(_passes(item.source) for item in self._catalog.listings())

    def find_source(self, name: str) -> BatchSource | None:
        """Return the source of a name whose batches can be reached."""
        sources = (item.source for item in self._catalog.listings())
        return next(
            (
                each
                for each in sources
                if each.name == name and isinstance(each, BatchSource) and each.batches
            ),
            None,
        )

    async def find(self, models: Mapping[str, int], batch: Batch, actor: Actor) -> PassedTarget | None:
        """Return the target of a batch with these models, each with the number of its first line.

        None for a batch that the gateway runs. Names of models that do not exist, or that the actor may not
        use, do not count. Raises invalid_request if one model is of a provider that runs batches and another
        one is not of the same provider, and unavailable while a list of models is not known.
        """
        if batch.endpoint not in KINDS or not self.is_wanted or len(models) > MAX_MODELS:
            return None
        found: dict[str, tuple[Model, ModelSource]] = {}
        for name in models:
            try:
                found[name] = await self._catalog.get(name, actor)
            except GatewayError as error:
                if error.kind is not ErrorKind.NOT_FOUND:
                    raise
        passing = next((source for _, source in found.values() if _passes(source)), None)
        if not isinstance(passing, BatchSource):
            return None
        for name, (_, source) in found.items():
            if source.name != passing.name:
                raise _mixed(batch, models[name], name, passing.name, source.name)
        for model, _ in found.values():
            if await self._is_seen(model, batch, actor):
                return None
        return PassedTarget(passing, {name: model for name, (model, _) in found.items()})

    async def request_of(self, batch: Batch, line: BatchLine, target: PassedTarget, actor: Actor) -> Body:
        """Return the request of a line as the provider gets it.

        Raises NotPassableError, and the errors of the request itself: for a model that the actor may not use,
        or a bad field.
        """
        name = as_text(line.body.get("model"))
        model = target.models.get(name)
        if model is None:
            # The actor may use it since the models were looked at.
            model, source = await self._catalog.get(name, actor)
            if source.name != target.source.name:
                raise NotPassableError
        context = context_of(actor, batch.id)
        body = await self._prepared(batch, line.body, model, actor, context)
        request = await target.source.batch_request(batch.endpoint, body, model, context)
        if request is None:
            raise NotPassableError
        return request

    async def _is_seen(self, model: Model, batch: Batch, actor: Actor) -> bool:
        """Return whether a record or a filter takes part in the requests to a model, or in their answers."""
        if is_altering(self._catalog.find_record(model.id)):
            return True
        asked = ChatRequest(model.id, {"model": model.id}, stream=False, endpoint=KINDS[batch.endpoint])
        chain = await self._filters.choose(asked, model, actor)
        return bool(chain.inlets or chain.streams or chain.outlets)

    async def _prepared(
        self, batch: Batch, body: Body, model: Model, actor: Actor, context: CallContext
    ) -> Body:
        check_names(body)
        match batch.endpoint:
            case "/v1/chat/completions":
                own = {key: value for key, value in body.items() if key not in CHAT_FIELDS}
                chat = openai.parse_request(own)
                _fill(chat, actor)
                if has_answers(chat.body):
                    restored = await self._reasoning.restore(
                        chat.body, actor.user_id, model, is_converted=False
                    )
                    return _whole(restored)
                return _whole(chat.body)
            case endpoint if endpoint == MESSAGES_ENDPOINT:
                chat = anthropic.parse_request(body)
                _fill(chat, actor)
                return (await self._reasoning.restore_native(chat.native or {}, actor.user_id, model)).body
            case "/v1/embeddings":
                asked = embeddings.parse_request(body)
                return {**asked.body, "encoding_format": asked.encoding_format}
            case _:
                return body


def _fill(chat: ChatRequest, actor: Actor) -> None:
    if chat.options or chat.files:
        raise NotPassableError
    fill_system_messages(chat, actor)


def _whole(body: Body) -> Body:
    return {name: value for name, value in body.items() if name != "stream"}


def _passes(source: ModelSource) -> bool:
    return isinstance(source, BatchSource) and source.batches is not None


class MixedProvidersError(GatewayError):
    """The lines of a batch name models of several providers; `line` is the number of one of them."""

    def __init__(self, batch: Batch, line: int, sentence: str) -> None:
        place = "model" if batch.endpoint != MESSAGES_ENDPOINT else f"requests.{line - 1}.params.model"
        super().__init__(ErrorKind.INVALID_REQUEST, sentence, param=place, code="mixed_providers")
        self.line = line


def _mixed(batch: Batch, number: int, name: str, passing: str, other: str) -> MixedProvidersError:
    sentence = (
        f"cannot pass the batch to provider {passing!r}: line {number} names model {shorten(name)!r} of"
        f" {other!r}, and all models have to be of one provider"
    )
    return MixedProvidersError(batch, number, sentence)


def read_models(path: Path, batch: Batch) -> dict[str, int]:
    """Return the models of the lines of an input file, each with the number of its first line.

    Invalid lines are left out, and what follows MAX_MODELS models. Runs in a thread; raises OSError.
    """
    found: dict[str, int] = {}
    for number, raw in enumerate(read_lines(path), 1):
        try:
            name = parse_line(raw, batch).body.get("model")
        except GatewayError:
            continue
        if isinstance(name, str) and name:
            found.setdefault(name, number)
            if len(found) > MAX_MODELS:
                break
    return found
