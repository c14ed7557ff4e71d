"""Endpoints that the gateway does not convert: passed on to the model's source, when that has them."""

from typing import Final

from gatewayd.accounts.records import Actor
from gatewayd.catalog.interfaces import Forwarded, ForwardingSource, ModelSource, RuntimeSource
from gatewayd.catalog.records import Model
from gatewayd.catalog.replies import Body
from gatewayd.catalog.service import Catalog
from gatewayd.chat.endpoints import endpoint_not_found, model_of
from gatewayd.errors import GatewayError, Kind

RUNTIME_PREFIX: Final = "/v1"
"""Where a local runtime has its OpenAI-style endpoints, beside its native ones."""


class Forwarding:
    """Sends a request as it is to the source of its model; only the model's name is replaced."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    async def run(self, path: str, body: Body, actor: Actor) -> Forwarded:
        """Return the source's answer to `path`, for example `/completions`; the caller closes it.

        Raises not_found (code endpoint_not_found) when the source has no such path, and what it raises else.
        """
        candidates = await self._catalog.candidates(model_of(body), actor)
        return await self._catalog.failover.ask(
            candidates, lambda model, source: self._forward(path, body, model, source)
        )

    async def _forward(self, path: str, body: Body, model: Model, source: ModelSource) -> Forwarded:
        model_id = model.id
        if not isinstance(source, ForwardingSource):
            raise endpoint_not_found(path, model_id, f"{source.name!r} has no such endpoint")
        place = RUNTIME_PREFIX + path if isinstance(source, RuntimeSource) else path
        try:
            answer = await source.forward("POST", place, {**body, "model": model.upstream_id})
        except GatewayError as error:
            if error.kind is Kind.NOT_FOUND:
                raise endpoint_not_found(path, model_id, error.message) from error
            raise
        if answer.content_type.partition(";")[0].strip().lower() == "text/html":
            # A site that answers every path with its own page.
            await answer.aclose()
            raise endpoint_not_found(path, model_id, f"{source.name!r} answers it with an HTML page")
        return answer
