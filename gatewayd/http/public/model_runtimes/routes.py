"""Routes of the native API of local model runtimes, for users of their models."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from aiohttp import web

from gatewayd.catalog.runtimes import ModelRuntimes
from gatewayd.http import body
from gatewayd.http.connections.request_uses import RequestUse
from gatewayd.http.context import actor, request_id
from gatewayd.http.public.model_runtimes.conversion import RuntimeConversion
from gatewayd.http.public.model_runtimes.requests import (
    PREFIX,
    TAG,
    name_of,
    read_runtime_body,
    runtime_index,
    runtime_rows,
)
from gatewayd.http.reply_schemas import dialects, service
from gatewayd.http.responses.ndjson import AnswerEnding, pass_lines, pass_whole
from gatewayd.http.responses.provider_headers import answer_headers
from gatewayd.http.routes import Route, RouteAccess, RouteDialect
from gatewayd.http.schemas import LINES, OBJECT, Reply, answers
from gatewayd.pipeline.endpoints import context_of
from gatewayd.pipeline.filters.inputs import InputFilters

PROTOCOL_VERSION: Final = "0.12.0"
"""Reported version of the runtime protocol without a runtime."""

STREAMED: Final = frozenset({"/api/generate", "/api/chat"})

ANSWER_OPERATIONS: Final = (
    ("/api/generate", "Complete a prompt"),
    ("/api/chat", "Answer a chat request"),
    ("/api/embed", "Embed texts"),
    ("/api/embeddings", "Embed one text"),
    ("/api/show", "Show the details of a model"),
)

REPLIES: Final = {
    "/api/generate": Reply(dialects.runtime_generation, (LINES,)),
    "/api/chat": Reply(dialects.runtime_chat, (LINES,)),
    "/api/embed": Reply(dialects.runtime_embeddings),
    "/api/embeddings": Reply(dialects.runtime_embedding),
    "/api/show": Reply(OBJECT),
}


SHOW_PATH: Final = "/api/show"

TEXT_FIELDS: Final = {
    "/api/generate": ("prompt", "suffix"),
    "/api/chat": ("messages",),
    "/api/embed": ("input",),
    "/api/embeddings": ("prompt",),
}
"""Text fields of each path. A request with none of them only loads or unloads its model."""

LOADING_FIELDS: Final = frozenset({"model", "name", "keep_alive", "options", "stream"})
"""Fields of a request that only loads or unloads its model."""


class RuntimeRoutes:
    """Routes that forward requests to the runtimes.

    The conversion answers requests for models of other sources, and for models whose record or filters alter
    requests.
    """

    def __init__(
        self, runtimes: ModelRuntimes, conversion: RuntimeConversion, inputs: InputFilters, *, body_limit: int
    ) -> None:
        self._runtimes = runtimes
        self._conversion = conversion
        self._inputs = inputs
        self._body_limit = body_limit

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        probe = Route(
            "GET",
            PREFIX,
            self.probe,
            RouteAccess.PUBLIC,
            "Answer the probe of a runtime client",
            dialect=RouteDialect.OLLAMA,
            tag=TAG,
        )
        asked = [
            row
            for path, summary in ANSWER_OPERATIONS
            for row in runtime_rows(
                "POST",
                path,
                partial(self.ask, path),
                RouteAccess.VERIFIED,
                summary,
                interruptible=True,
                use=RequestUse.EMBEDDINGS if path == "/api/embed" else RequestUse.ANSWER,
                reply=REPLIES[path],
            )
        ]
        return [
            probe,
            *runtime_rows("GET", "/api/tags", self.tags, RouteAccess.VERIFIED, "List the models"),
            *runtime_rows("GET", "/api/ps", self.loaded, RouteAccess.VERIFIED, "List the loaded models"),
            *runtime_rows(
                "GET",
                "/api/version",
                self.version,
                RouteAccess.VERIFIED,
                "Show the lowest version of the runtimes",
            ),
            *asked,
        ]

    @answers(service.status)
    async def probe(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"status": true}`."""
        return body.json_reply({"status": True})

    @answers(dialects.runtime_models)
    async def tags(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"models": [{"name", "model", "modified_at", "size", "digest", "urls", ...}]}`."""
        viewer, place = actor(request), runtime_index(request)
        models = list(await self._runtimes.tags(viewer, place))
        if place is None:
            models += self._conversion.tags(await self._runtimes.locals(viewer))
        return body.json_reply({"models": models})

    @answers(dialects.runtime_models)
    async def loaded(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"models": [{"name", "model", "size", "expires_at", ..., "urls"}]}`."""
        return body.json_reply(
            {"models": await self._runtimes.loaded(actor(request), runtime_index(request))}
        )

    @answers(dialects.runtime_version)
    async def version(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"version": "0.12.3"}`."""
        return body.json_reply(
            {"version": await self._runtimes.version(runtime_index(request)) or PROTOCOL_VERSION}
        )

    async def ask(self, path: str, request: web.Request) -> web.StreamResponse:
        """Answer a request for a `model` (or `name`) as its runtime does, streamed or whole."""
        form = await read_runtime_body(request, self._body_limit)
        name = name_of(form, "model", "name")
        found = await self._runtimes.find(name, actor(request), runtime_index(request))
        if not found.hosts or (path in STREAMED and form.get("files")):
            # Runtimes have no access to the documents of the gateway.
            return await self._conversion.answer(path, request, form, found)
        if path != SHOW_PATH and await self._inputs.alters_requests(found.model.id):
            if any(form.get(field) for field in TEXT_FIELDS[path]):
                return await self._conversion.answer(path, request, form, found)
            # Without a text the request only loads or unloads the model.
            form = {field: value for field, value in form.items() if field in LOADING_FIELDS}
        context = context_of(actor(request), request_id(request))
        provider, answer = await self._runtimes.forward(found, path, form, context, actor(request))
        headers = answer_headers(context.reply_headers, RouteDialect.OLLAMA)
        if path in STREAMED and form.get("stream") is not False:
            return await pass_lines(request, answer, AnswerEnding(provider), headers=headers)
        return await pass_whole(request, answer, headers=headers)
