"""Service of images, audio and moderations: sends a request to the source of its model."""

from collections.abc import Callable

from gatewayd.accounts.permissions import require
from gatewayd.catalog.interfaces import (
    CallContext,
    ForwardedAnswer,
    MediaSource,
    ModelSource,
    RequestContent,
)
from gatewayd.catalog.records import Model
from gatewayd.catalog.service import Catalog
from gatewayd.completions.records import Body
from gatewayd.errors import GatewayError
from gatewayd.pipeline.endpoints import check_names, endpoint_not_supported, lacks_endpoint, model_of
from gatewayd.pipeline.filters.inputs import InputFilters, RequestCaller
from gatewayd.pipeline.interfaces import ChatFilters
from gatewayd.pipeline.media.endpoints import MediaEndpoint

ContentMaker = Callable[[Body], RequestContent]
"""Makes the body of a request, such as a form, from its fields."""


class MediaService:
    """Forwards requests to the endpoints of sources. Only the model's name changes without record and
    filters."""

    def __init__(self, catalog: Catalog, filters: ChatFilters) -> None:
        self._catalog = catalog
        self._inputs = InputFilters(catalog, filters)

    async def check(self, endpoint: MediaEndpoint, body: Body, caller: RequestCaller) -> bool:
        """Check the rights of a caller before their upload is read.

        Returns whether the request may be sent on while it arrives: its model is known, and no record or
        filter reads its fields. Raises forbidden, and not_found for a model that the caller may not use.
        """
        check_permission(endpoint, caller)
        check_names(body)
        if "model" not in body:
            return False
        model = model_of(body)
        await self._catalog.candidates(model, caller.actor)
        return not await self._inputs.alters_requests(model)

    async def run(
        self,
        endpoint: MediaEndpoint,
        body: Body,
        caller: RequestCaller,
        content: ContentMaker | None = None,
    ) -> ForwardedAnswer:
        """Answer a request with the answer of its source; the caller must close it.

        `content` makes the body for the source from the fields; without it they are sent as JSON. Raises
        forbidden without the permission of the endpoint, not_found (code endpoint_not_supported) if the
        source lacks the endpoint, the errors of `InputFilters.apply` and other errors of the source.
        """
        check_permission(endpoint, caller)
        asked = await self._inputs.apply(endpoint, body, caller)
        attempt = _Attempt(endpoint.path, asked.body, asked.context, content)
        return await asked.question(self._catalog, caller.actor, endpoint.endpoint).reply(attempt.ask)


class _Attempt:
    """The attempts to send one request; one whose content is spent is not sent again."""

    def __init__(self, path: str, body: Body, context: CallContext, content: ContentMaker | None) -> None:
        self._path = path
        self._body = body
        self._context = context
        self._make = content
        self._content: RequestContent | None = None
        self._failure: GatewayError | None = None

    async def ask(self, model: Model, source: ModelSource) -> ForwardedAnswer:
        """Return the answer of one source."""
        if self._failure is not None and self._content is not None and self._content.is_spent:
            raise self._failure
        try:
            return await self._ask(model, source)
        except GatewayError as error:
            self._failure = error
            raise

    async def _ask(self, model: Model, source: ModelSource) -> ForwardedAnswer:
        if not isinstance(source, MediaSource):
            raise endpoint_not_supported(self._path, model.id, f"{source.name!r} has no such endpoint")
        body: Body | RequestContent = {**self._body, "model": model.upstream_id}
        if self._make is not None:
            body = self._content = self._make({**self._body, "model": model.upstream_id})
        try:
            answer = await source.exchange(self._path, body, model, self._context)
        except GatewayError as error:
            if lacks_endpoint(error):
                raise endpoint_not_supported(self._path, model.id, error.message) from error
            raise
        if answer.content_type.partition(";")[0].strip().lower() == "text/html":
            # Some sites answer every path with their own HTML page.
            await answer.aclose()
            reason = f"{source.name!r} answers it with an HTML page"
            raise endpoint_not_supported(self._path, model.id, reason)
        return answer


def check_permission(endpoint: MediaEndpoint, caller: RequestCaller) -> None:
    """Raise forbidden if a caller lacks the permission of an endpoint."""
    if endpoint.permission is not None and not caller.actor.is_admin:
        require(caller.actor, *endpoint.permission)
