"""Route of unknown paths of the native runtime API, for administrators."""

import re
from collections.abc import Sequence
from typing import Final

from aiohttp import web

from gatewayd.catalog.runtimes import ModelRuntimes, with_model_name
from gatewayd.completions.records import Body
from gatewayd.http.connections.request_uses import RequestUse
from gatewayd.http.context import actor, request_id
from gatewayd.http.public.model_runtimes.requests import PREFIX, TAG, read_runtime_body
from gatewayd.http.responses.ndjson import pass_bytes
from gatewayd.http.routes import Route, RouteAccess, RouteDialect
from gatewayd.http.schemas import ANY_MEDIA_TYPE, answers
from gatewayd.pipeline.endpoints import context_of
from gatewayd.pipeline.filters.conversions import unsupported_parameter
from gatewayd.pipeline.filters.inputs import InputFilters

KNOWN_OPERATIONS: Final = (
    *("blobs", "chat", "copy", "create", "delete", "embed", "embeddings", "generate"),
    *("ps", "pull", "push", "show", "tags", "unload", "version"),
)
"""First segments of the paths of other rows, which this route excludes for every method."""

OTHER_PATHS: Final = f"{PREFIX}/api/{{path:(?!(?:{'|'.join(KNOWN_OPERATIONS)})(?:/|$)).+}}"

METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")

INDEXED_PATH: Final = re.compile(r"(?P<path>/.*[^/])/(?P<index>[0-9]{1,3})")


class RuntimeOthersRoutes:
    """Route that forwards to the runtime of the path, to that of the model in the body, or to the first
    one."""

    def __init__(self, runtimes: ModelRuntimes, inputs: InputFilters, *, body_limit: int) -> None:
        self._runtimes = runtimes
        self._inputs = inputs
        self._body_limit = body_limit

    def routes(self) -> Sequence[Route]:
        """Return the rows, which follow those of known paths."""
        return [
            Route(
                method,
                OTHER_PATHS,
                self.forward,
                RouteAccess.ADMIN,
                "Forward an unknown request to a runtime",
                dialect=RouteDialect.OLLAMA,
                tag=TAG,
                interruptible=True,
                use=RequestUse.ANSWER,
            )
            for method in METHODS
        ]

    @answers(None, ANY_MEDIA_TYPE)
    async def forward(self, request: web.Request) -> web.StreamResponse:
        """Answer as the runtime does.

        Refuses requests for a model with a record or filters, which cannot read unknown requests.
        """
        method = "GET" if request.method == "HEAD" else request.method
        form = await read_runtime_body(request, self._body_limit) if request.body_exists else None
        path, index = _placed(request.rel_url.raw_path.removeprefix(PREFIX).rstrip("/"))
        name = _name_in(form)
        if method != "GET" and await self._inputs.alters_requests(name):
            reason = "its record or filters alter requests and cannot read unknown ones"
            raise unsupported_parameter(path, "model", reason)
        runtime = await self._runtimes.place(name, index)
        asked = form if form is None or not name else with_model_name(form, runtime.own_name(name))
        query = request.rel_url.raw_query_string
        context = context_of(actor(request), request_id(request))
        target = f"{path}?{query}" if query else path
        return await pass_bytes(request, await runtime.source.forward(method, target, asked, context))


def _placed(path: str) -> tuple[str, int | None]:
    """Return a path without the index of a runtime, and that index."""
    found = INDEXED_PATH.fullmatch(path)
    return (path, None) if found is None else (found["path"], int(found["index"]))


def _name_in(form: Body | None) -> str:
    """Return the model name in a body, "" without one."""
    named = ((form or {}).get(field) for field in ("model", "name"))
    return next((name for name in named if isinstance(name, str) and name), "")
