"""Service of reranking: sorts documents by a query with the source of the model."""

from gatewayd.catalog.interfaces import CallContext, ModelSource, RerankSource
from gatewayd.catalog.records import Model
from gatewayd.catalog.service import Catalog
from gatewayd.completions.records import Body
from gatewayd.errors import GatewayError
from gatewayd.pipeline.endpoints import endpoint_not_supported, lacks_endpoint
from gatewayd.pipeline.filters.inputs import InputFilters, RequestCaller
from gatewayd.pipeline.interfaces import ChatFilters
from gatewayd.pipeline.media.endpoints import RERANK


class RerankService:
    """Scores documents with a provider's model or with the gateway's own reranker."""

    def __init__(self, catalog: Catalog, filters: ChatFilters) -> None:
        self._catalog = catalog
        self._inputs = InputFilters(catalog, filters)

    async def run(self, body: Body, caller: RequestCaller) -> Body:
        """Answer `{"model", "query", "documents": [text], ...}` as `RerankSource.rerank` does.

        Raises not_found (code endpoint_not_supported) if the source cannot rerank, the errors of
        `InputFilters.apply` and other errors of the source.
        """
        asked = await self._inputs.apply(RERANK, body, caller)
        question = asked.question(self._catalog, caller.actor, RERANK.endpoint)
        return await question.whole(lambda model, source: _rerank(asked.body, model, source, asked.context))


async def _rerank(body: Body, model: Model, source: ModelSource, context: CallContext) -> Body:
    if not isinstance(source, RerankSource):
        raise endpoint_not_supported(RERANK.path, model.id, f"{source.name!r} has no such endpoint")
    try:
        return await source.rerank({**body, "model": model.upstream_id}, model, context)
    except GatewayError as error:
        if lacks_endpoint(error):
            raise endpoint_not_supported(RERANK.path, model.id, error.message) from error
        raise
