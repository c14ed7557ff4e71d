"""The configured reranker of documents as a model: only for reranking."""

from collections.abc import Sequence
from typing import Final

from gatewayd.catalog.failover import UNSUPPORTED_ENDPOINT_CODE
from gatewayd.catalog.interfaces import CallContext, ChunkStream
from gatewayd.catalog.records import Model
from gatewayd.completions.records import Body, Completion
from gatewayd.errors import ErrorKind, GatewayError, invalid
from gatewayd.knowledge.interfaces import Reranker
from gatewayd.metering.service_calls import EnclosingCall, paid_by

SOURCE_NAME: Final = "reranker"

MAX_RERANKED_DOCUMENTS: Final = 1000
"""Maximum number of documents of one request to the gateway's own reranker."""


class RerankerSource:
    """A `catalog.interfaces.RerankSource` over the reranker of the settings; its owner closes the
    reranker."""

    def __init__(self, reranker: Reranker, model: str) -> None:
        self._reranker = reranker
        self._model = model or SOURCE_NAME

    @property
    def name(self) -> str:
        """The name in messages and logs."""
        return SOURCE_NAME

    async def list_models(self) -> Sequence[Model]:
        """Return the one model."""
        return [
            Model(
                id=self._model,
                name=self._model,
                owned_by="gatewayd",
                source=SOURCE_NAME,
                upstream_id=self._model,
                connection_type="local",
            )
        ]

    async def complete(self, body: Body, model: Model, context: CallContext) -> Completion:
        """Raise not_found: a reranker writes no text."""
        raise _no_text(model)

    def stream(self, body: Body, model: Model, context: CallContext) -> ChunkStream:
        """Raise not_found: a reranker writes no text."""
        raise _no_text(model)

    async def rerank(self, body: Body, model: Model, context: CallContext) -> Body:
        """Return a score from 0 to 1 for each document."""
        documents = body["documents"]
        if len(documents) > MAX_RERANKED_DOCUMENTS:
            raise invalid(
                f"cannot accept documents: it has {len(documents)} elements, the reranker takes"
                f" {MAX_RERANKED_DOCUMENTS}",
                param="documents",
            )
        told = EnclosingCall()
        with paid_by(told):
            scores = await self._reranker.rerank(body["query"], documents)
        results = [{"index": index, "relevance_score": score} for index, score in enumerate(scores)]
        usage = {
            name: answer[name] for answer in told.answers for name in ("usage", "meta") if name in answer
        }
        return {"results": results, **usage}

    async def close(self) -> None:
        """Do nothing: the documents close their reranker."""


def _no_text(model: Model) -> GatewayError:
    return GatewayError(
        ErrorKind.NOT_FOUND,
        f"cannot use chats with model {model.id!r}: {SOURCE_NAME!r} only reranks documents",
        param="model",
        code=UNSUPPORTED_ENDPOINT_CODE,
    )
