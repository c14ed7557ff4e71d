"""Embedding service: finds the model, sends the inputs in batches, and returns the vectors in order."""

import asyncio
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from gatewayd.catalog.interfaces import CallContext, EmbeddingSource, ModelSource
from gatewayd.catalog.records import Model
from gatewayd.catalog.service import Catalog
from gatewayd.completions.records import Body
from gatewayd.errors import ErrorKind, GatewayError, invalid
from gatewayd.metering.records import MAX_TOKENS
from gatewayd.pipeline.endpoints import endpoint_not_found, lacks_endpoint
from gatewayd.pipeline.filters.conversions import EmbeddingInputs
from gatewayd.pipeline.filters.inputs import InputFilters, RequestCaller
from gatewayd.pipeline.interfaces import ChatFilters

CONVERSION: Final = EmbeddingInputs()
ENDPOINT: Final = CONVERSION.path
USAGE_FIELDS: Final = ("prompt_tokens", "total_tokens")

MAX_BATCH: Final = 64
"""Maximum number of inputs of one request to a source."""

MAX_PARALLEL: Final = 4
"""Maximum number of concurrent batches of one request."""


class EmbeddingService:
    """Embeds texts; a source gets at most `batch` inputs per call, in at most `parallel` concurrent calls."""

    def __init__(
        self, catalog: Catalog, filters: ChatFilters, *, batch: int = MAX_BATCH, parallel: int = MAX_PARALLEL
    ) -> None:
        self._catalog = catalog
        self._inputs = InputFilters(catalog, filters)
        self._batch = batch
        self._parallel = parallel

    async def run(self, body: Body, caller: RequestCaller) -> Body:
        """Answer an OpenAI embeddings request with a list as `input`; the vectors are lists of floats.

        Raises not_found for a model that the actor may not use or whose source cannot embed, the errors of
        the source, and upstream_failed naming it for unusable vectors. One failed batch cancels the others.
        Records and filters apply as in `InputFilters.apply`.
        """
        asked = await self._inputs.apply(CONVERSION, body, caller)
        question = asked.question(self._catalog, caller.actor, CONVERSION.endpoint)
        answer = await question.whole(
            lambda model, source: self._embed(asked.body, model, source, asked.context)
        )
        return {**answer, "model": body["model"]}

    async def _embed(self, body: Body, model: Model, source: ModelSource, context: CallContext) -> Body:
        if not isinstance(source, EmbeddingSource):
            raise endpoint_not_found(ENDPOINT, model.id, f"{source.name!r} gives no embeddings")
        call = _Call(source, model, context, split(body, model, self._batch))
        return joined(await call.run(self._parallel), body, model)


class _Call:
    """The batches of one request to one source, with the answers so far."""

    def __init__(
        self, source: EmbeddingSource, model: Model, context: CallContext, bodies: Sequence[Body]
    ) -> None:
        self._source = source
        self._model = model
        self._context = context
        self._waiting = iter(enumerate(bodies))
        self._count = len(bodies)
        self._answers: dict[int, Body] = {}

    async def run(self, parallel: int) -> list[Body]:
        """Return the answers in the order of the bodies; the first failure cancels the other batches."""
        workers = min(parallel, self._count)
        if workers == 1:
            await self._work()
        else:
            try:
                async with asyncio.TaskGroup() as group:
                    for _ in range(workers):
                        group.create_task(self._work())
            except ExceptionGroup as failures:
                raise failures.exceptions[0] from failures
        return [self._answers[index] for index in range(self._count)]

    async def _work(self) -> None:
        for index, body in self._waiting:
            self._answers[index] = await self._ask(body)

    async def _ask(self, body: Body) -> Body:
        try:
            answer = await self._source.embed(body, self._model, self._context)
        except GatewayError as error:
            if lacks_endpoint(error):
                raise endpoint_not_found(ENDPOINT, self._model.id, error.message) from error
            raise
        check_answer(answer, len(body["input"]), self._model)
        return answer


def split(body: Body, model: Model, batch: int) -> list[Body]:
    """Return the requests for a source, with at most `batch` inputs each."""
    inputs, asked = body["input"], {**body, "model": model.upstream_id}
    return [{**asked, "input": inputs[start : start + batch]} for start in range(0, len(inputs), batch)]


def joined(answers: Sequence[Body], body: Body, model: Model) -> Body:
    """Return the answer to a request from the checked answers to its parts; raises upstream_failed or
    invalid_request for vectors of other lengths than the caller wants."""
    vectors = [item["embedding"] for answer in answers for item in answer["data"]]
    if len(set(map(len, vectors))) > 1:
        raise _broken(model, "its embeddings differ in length")
    _check_dimensions(body.get("dimensions"), vectors, model)
    data = [
        {"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(vectors)
    ]
    return {"object": "list", "data": data, "model": body["model"], "usage": _usage(answers)}


def check_answer(answer: Body, count: int, model: Model) -> None:
    """Raise upstream_failed for an answer without a vector for each of `count` inputs."""
    data = answer.get("data")
    if not isinstance(data, list):
        raise _broken(model, "its answer has no 'data'")
    if len(data) != count:
        raise _broken(model, f"it gave {len(data)} embeddings for {count} inputs")
    for item in data:
        if not (isinstance(item, dict) and _is_vector(item.get("embedding"))):
            raise _broken(model, "an embedding is not a list of numbers")


def _check_dimensions(wanted: object, vectors: Sequence[Sequence[float]], model: Model) -> None:
    """Raise invalid_request if the source ignored the length of vectors that the caller wants."""
    if type(wanted) is int and vectors and len(vectors[0]) != wanted:
        raise invalid(
            f"cannot use dimensions with model {model.id!r}: its source {model.source!r} gives vectors of"
            f" {len(vectors[0])} numbers",
            param="dimensions",
            code="unsupported_parameter",
        )


def _is_vector(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and set(map(type, value)) <= {float, int}
        and all(map(math.isfinite, value))
    )


def _usage(answers: Sequence[Body]) -> dict[str, int]:
    """Return the sums over the batches; missing and absurd counts are 0, because clients need both fields."""
    given = [usage for answer in answers if isinstance(usage := answer.get("usage"), Mapping)]
    return {name: sum(_count(usage.get(name)) for usage in given) for name in USAGE_FIELDS}


def _count(value: object) -> int:
    return value if type(value) is int and 0 <= value <= MAX_TOKENS else 0


def _broken(model: Model, sentence: str) -> GatewayError:
    return GatewayError(
        ErrorKind.UPSTREAM_FAILED, f"cannot get an answer from provider {model.source!r}: {sentence}"
    )
