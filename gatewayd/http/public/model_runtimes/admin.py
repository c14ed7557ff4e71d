"""Routes of the native runtime API that manage models, for administrators."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final

from aiohttp import web

from gatewayd.catalog.runtimes import ModelRuntime, ModelRuntimes, with_model_name
from gatewayd.completions.records import Body
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.context import actor, request_id
from gatewayd.http.public.model_runtimes.requests import (
    PREFIX,
    TAG,
    name_of,
    read_runtime_body,
    runtime_index,
    runtime_rows,
)
from gatewayd.http.responses.ndjson import AnswerEnding, pass_lines, pass_whole
from gatewayd.http.routes import Route, RouteAccess, RouteDialect
from gatewayd.http.schemas import ANY_MEDIA_TYPE, LINES, OBJECT, answers
from gatewayd.pipeline.endpoints import context_of

STREAMED: Final = frozenset({"/api/pull", "/api/push", "/api/create"})

TRANSFER: Final = ("status", "error")
"""Field of the last line of a transfer."""


class RuntimeAdminRoutes:
    """Routes that forward administration to the runtime of the path, or to one with the model.

    After each answer the model list of that runtime is refreshed.
    """

    def __init__(self, runtimes: ModelRuntimes, *, body_limit: int) -> None:
        self._runtimes = runtimes
        self._body_limit = body_limit

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        pull, push = partial(self.transfer, "/api/pull"), partial(self.transfer, "/api/push")
        return [
            *runtime_rows("POST", "/api/pull", pull, RouteAccess.ADMIN, "Pull a model", interruptible=True),
            *runtime_rows("POST", "/api/push", push, RouteAccess.ADMIN, "Push a model", interruptible=True),
            *runtime_rows("DELETE", "/api/push", push, RouteAccess.ADMIN, "Push a model", interruptible=True),
            *runtime_rows(
                "POST", "/api/create", self.create, RouteAccess.ADMIN, "Create a model", interruptible=True
            ),
            *runtime_rows("POST", "/api/copy", self.copy, RouteAccess.ADMIN, "Copy a model"),
            *runtime_rows("DELETE", "/api/delete", self.delete, RouteAccess.ADMIN, "Delete a model"),
            *runtime_rows("POST", "/api/unload", self.unload, RouteAccess.ADMIN, "Unload a model"),
            *(self._blob(method) for method in ("POST", "HEAD")),
        ]

    @answers(OBJECT, LINES)
    async def transfer(self, path: str, request: web.Request) -> web.StreamResponse:
        """Pull or push `{"model", "insecure"?, "stream"?}`; answers `{"status", "total"?, ...}` lines."""
        form = await read_runtime_body(request, self._body_limit)
        name = name_of(form, "model", "name")
        runtime = await self._runtimes.place(name, runtime_index(request))
        return await self._pass(request, runtime, path, with_model_name(form, runtime.own_name(name)))

    @answers(OBJECT, LINES)
    async def create(self, request: web.Request) -> web.StreamResponse:
        """Create `{"model", "from"?, "system"?, ...}` on the runtime that has the model `from`."""
        form = await read_runtime_body(request, self._body_limit)
        name = name_of(form, "model", "name")
        base = form.get("from")
        runtime = await self._runtimes.place(
            base if isinstance(base, str) and base else name, runtime_index(request)
        )
        made = with_model_name(form, runtime.own_name(name))
        if isinstance(base, str):
            made["from"] = runtime.own_name(base)
        return await self._pass(request, runtime, "/api/create", made)

    @answers(None, ANY_MEDIA_TYPE)
    async def copy(self, request: web.Request) -> web.StreamResponse:
        """Copy `{"source", "destination"}` within a runtime; answers an empty body."""
        form = await read_runtime_body(request, self._body_limit)
        source, destination = name_of(form, "source"), name_of(form, "destination")
        runtime = await self._runtimes.place(source, runtime_index(request))
        names = {"source": runtime.own_name(source), "destination": runtime.own_name(destination)}
        return await self._pass(request, runtime, "/api/copy", {**form, **names})

    @answers(None, ANY_MEDIA_TYPE)
    async def delete(self, request: web.Request) -> web.StreamResponse:
        """Delete `{"model"}` (or `name`); answers an empty body."""
        form = await read_runtime_body(request, self._body_limit)
        name = name_of(form, "model", "name")
        runtime = await self._runtimes.place(name, runtime_index(request))
        return await self._pass(
            request, runtime, "/api/delete", with_model_name(form, runtime.own_name(name))
        )

    @answers(OBJECT)
    async def unload(self, request: web.Request) -> web.StreamResponse:
        """Unload `{"model"}` from the memory of a runtime; answers as an empty generation."""
        form = await read_runtime_body(request, self._body_limit)
        name = name_of(form, "model", "name")
        runtime = await self._runtimes.place(name, runtime_index(request))
        asked = {"model": runtime.own_name(name), "keep_alive": 0, "stream": False}
        context = context_of(actor(request), request_id(request))
        return await pass_whole(
            request, await runtime.source.forward("POST", "/api/generate", asked, context)
        )

    async def refuse_blob(self, request: web.Request) -> web.StreamResponse:
        """Answer 404: the gateway accepts no files for runtimes."""
        raise GatewayError(
            ErrorKind.NOT_FOUND, "cannot find blobs: the gateway forwards no files to model runtimes"
        )

    def _blob(self, method: str) -> Route:
        path = f"{PREFIX}/api/blobs/{{digest}}"
        summary = "Refuse a file for a runtime"
        return Route(
            method,
            path,
            self.refuse_blob,
            RouteAccess.ADMIN,
            summary,
            dialect=RouteDialect.OLLAMA,
            tag=TAG,
            takes=(),
            statuses=(),
        )

    async def _pass(
        self, request: web.Request, runtime: ModelRuntime, path: str, form: Body
    ) -> web.StreamResponse:
        method = "DELETE" if path == "/api/delete" else "POST"
        context = context_of(actor(request), request_id(request))
        answer = await runtime.source.forward(method, path, form, context)
        refresh = partial(self._runtimes.refresh, runtime)
        try:
            if path in STREAMED and form.get("stream") is not False:
                return await pass_lines(request, answer, AnswerEnding(runtime.source.name, TRANSFER), refresh)
            return await pass_whole(request, answer, refresh)
        except (asyncio.CancelledError, ConnectionError):
            # The client has left, but the request may have changed the models.
            await refresh()
            raise
