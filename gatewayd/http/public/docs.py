"""Routes of the API documentation, served only when ENV is dev."""

from collections.abc import Iterable, Sequence
from functools import cached_property, partial
from importlib.resources import files
from typing import Any, Final

from aiohttp import web

from gatewayd.http.body import json_reply
from gatewayd.http.openapi import describe_routes
from gatewayd.http.routes import Route, RouteAccess
from gatewayd.http.schemas import OBJECT, Reply, answers

ASSETS: Final = {
    "index.html": "text/html",
    "start.js": "text/javascript",
    "swagger-ui-bundle.js": "text/javascript",
    "swagger-ui.css": "text/css",
}
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; frame-ancestors 'none'"
)


class DocsRoutes:
    """Routes of the description of rows and its viewer, whose files are part of the package."""

    def __init__(self, rows: Iterable[Route], *, title: str, version: str) -> None:
        self._rows = tuple(rows)
        self._title, self._version = title, version

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        document = Route(
            "GET",
            "/openapi.json",
            self.document,
            RouteAccess.PUBLIC,
            "Show the OpenAPI description",
            tag="documentation",
        )
        page = Route(
            "GET",
            "/docs",
            partial(self.asset, name="index.html"),
            RouteAccess.PUBLIC,
            "Show the documentation of the API",
            tag="documentation",
            reply=Reply(None, ("text/html",)),
        )
        others = [
            Route(
                "GET",
                f"/docs/{name}",
                partial(self.asset, name=name),
                RouteAccess.PUBLIC,
                f"Serve {name}",
                tag="documentation",
                reply=Reply(None, (media_type,)),
            )
            for name, media_type in ASSETS.items()
            if name != "index.html"
        ]
        return [document, page, *others]

    @cached_property
    def _document(self) -> dict[str, Any]:
        # Generated at the first request, as most gateways get none.
        return describe_routes(self._rows, title=self._title, version=self._version)

    @answers(OBJECT)
    async def document(self, request: web.Request) -> web.StreamResponse:
        """Answer the OpenAPI 3.1 document."""
        return json_reply(self._document)

    async def asset(self, request: web.Request, name: str) -> web.StreamResponse:
        """Answer one file of the viewer."""
        data = files("gatewayd").joinpath("web", "docs", name).read_bytes()
        return web.Response(body=data, content_type=ASSETS[name], headers={"Content-Security-Policy": POLICY})
