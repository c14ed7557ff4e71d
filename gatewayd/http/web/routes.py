"""Routes of the page: its views, its files and the documents beside them."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from aiohttp import hdrs, web

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.body import json_reply
from gatewayd.http.origins import FETCH_DESTINATION
from gatewayd.http.reply_schemas import service
from gatewayd.http.responses.content_codings import IDENTITY, choose_coding, weighted
from gatewayd.http.routes import Route, RouteAccess, RouteGroup
from gatewayd.http.schemas import answers
from gatewayd.http.web.assets import (
    ADDRESS,
    OWN_MODULE,
    AssetEncoder,
    PageAsset,
    PageAssets,
    read_module,
    read_page,
)
from gatewayd.http.web.documents import THEMES, PageDocuments, PageVariant, ViewKind
from gatewayd.http.web.languages import COOKIE, choose_language
from gatewayd.http.web.policies import (
    CONTENT_POLICY,
    DOCUMENT_HEADERS,
    FILE_HEADERS,
    FRAME_POLICY,
    PICTURE_POLICY,
    WORKER_POLICY,
    PageRules,
)
from gatewayd.tasks import TaskRegistry

log = logging.getLogger(__name__)

VIEWS: Final[tuple[tuple[str, str], ...]] = (
    ("/c/{id}", "Open a chat on the page"),
    ("/s/{id}", "Open a shared chat on the page"),
    ("/auth", "Open the sign-in on the page"),
    ("/overview", "Open the overview on the page"),
    ("/documents", "Open the collections on the page"),
    ("/documents/{rest:.+}", "Open a collection on the page"),
    ("/settings", "Open the settings on the page"),
    ("/settings/{rest:.+}", "Open one of the settings on the page"),
    ("/admin", "Open the administration on the page"),
    ("/admin/{rest:.+}", "Open a part of the administration on the page"),
)
"""Paths of the views. The page itself decides what to show, and asks the API for everything."""

KINDS: Final = {"/c/{id}": ViewKind.CHAT, "/auth": ViewKind.SIGN_IN}
IMMUTABLE: Final = "public, max-age=31536000, immutable"
REVALIDATED: Final = "no-cache"
VARYING: Final = "Accept, Accept-Encoding, Accept-Language, Cookie"
MAX_LIST_CHARACTERS: Final = 2000
"""Characters of a list header that are read; browsers send a tenth of it."""

THEME_COOKIE: Final = "theme"

_row = RouteGroup("", "page").row


class PageRoutes:
    """Routes of the page. Its files are read at the first request, in a thread.

    `module` is the file of the administrators that the page loads too.
    """

    def __init__(self, name: str, rules: PageRules, tasks: TaskRegistry, module: Path | None = None) -> None:
        self._name = name
        self._module = module
        self._rules = rules
        self._reading = asyncio.Lock()
        self._encoder = AssetEncoder(tasks)
        self._read: tuple[PageAssets, PageDocuments] | None = None

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        public = RouteAccess.PUBLIC
        views = [
            _row("GET", path, partial(self.view, kind=KINDS.get(path, ViewKind.OTHER)), public, summary)
            for path, summary in VIEWS
        ]
        return [
            _row("GET", "/", self.root, public, "Open the page, or answer the probe of a client"),
            *views,
            _row("GET", ADDRESS + "/{digest}/{name:.+}", self.asset, public, "Serve a file of the page"),
            _row("GET", "/frame.html", self.frame, public, "Serve the empty document of embeds"),
            _row(
                "GET",
                "/picture.html",
                self.picture,
                public,
                "Serve the document of a picture of another host",
            ),
            _row("GET", "/offline.html", self.offline, public, "Serve the notice of a missing connection"),
            _row("GET", "/service-worker.js", self.service_worker, public, "Serve the service worker"),
            _row("GET", "/manifest.webmanifest", self.manifest, public, "Serve the manifest of the page"),
        ]

    @answers(service.status, "text/html")
    async def root(self, request: web.Request) -> web.StreamResponse:
        """Answer the HTML of the page to a browser, `{"status": true}` to a client that asks for no HTML."""
        if wants_html(members_of(request, hdrs.ACCEPT)):
            return await self._view(request, ViewKind.CHAT)
        return json_reply({"status": True}, headers={hdrs.VARY: hdrs.ACCEPT})

    @answers(None, "text/html")
    async def view(self, request: web.Request, kind: ViewKind) -> web.StreamResponse:
        """Answer the HTML of the page to a browser; 404 to a client that does not ask for HTML."""
        if not wants_html(members_of(request, hdrs.ACCEPT)):
            raise absent()
        return await self._view(request, kind)

    async def _view(self, request: web.Request, kind: ViewKind) -> web.StreamResponse:
        _, documents = await self._files()
        theme = request.cookies.get(THEME_COOKIE, "")
        variant = PageVariant(language_of(request, documents), theme if theme in THEMES else THEMES[0], kind)
        return await self._document(request, documents.index(variant), documents.policy)

    @answers(None, "*/*")
    async def asset(self, request: web.Request) -> web.StreamResponse:
        """Answer a file, which never changes at its address; 404 for an address of another release."""
        assets, _ = await self._files()
        asset = assets.find(request.match_info["digest"], request.match_info["name"])
        if asset is None:
            raise absent()
        return await self._reply(
            request, asset, {hdrs.CACHE_CONTROL: IMMUTABLE, hdrs.VARY: hdrs.ACCEPT_ENCODING}
        )

    @answers(None, "text/html")
    async def frame(self, request: web.Request) -> web.StreamResponse:
        """Answer the document that holds an embed, in a frame only."""
        refuse_alone(request)
        _, documents = await self._files()
        return await self._document(request, documents.frame(), FRAME_POLICY)

    @answers(None, "text/html")
    async def picture(self, request: web.Request) -> web.StreamResponse:
        """Answer the document that shows a picture of another host, in a frame only."""
        refuse_alone(request)
        _, documents = await self._files()
        return await self._document(request, documents.picture(), PICTURE_POLICY)

    @answers(None, "text/html")
    async def offline(self, request: web.Request) -> web.StreamResponse:
        """Answer what the page shows without a connection."""
        _, documents = await self._files()
        return await self._document(
            request, documents.offline(language_of(request, documents)), documents.policy
        )

    @answers(None, "text/javascript")
    async def service_worker(self, request: web.Request) -> web.StreamResponse:
        """Answer the service worker."""
        _, documents = await self._files()
        return await self._document(request, documents.service_worker(), WORKER_POLICY)

    @answers(None, "application/manifest+json")
    async def manifest(self, request: web.Request) -> web.StreamResponse:
        """Answer the manifest of the installed page."""
        _, documents = await self._files()
        return await self._reply(request, documents.manifest(), {hdrs.CACHE_CONTROL: REVALIDATED})

    async def _files(self) -> tuple[PageAssets, PageDocuments]:
        if self._read is None:
            async with self._reading:
                if self._read is None:
                    self._read = await asyncio.to_thread(self._open)
        return self._read

    def _open(self) -> tuple[PageAssets, PageDocuments]:
        files = read_page()
        if self._module is not None:
            try:
                files[OWN_MODULE] = read_module(self._module)
            except (OSError, ValueError) as error:
                log.error("the page goes without page_module = %s: %s", self._module, error)
        assets = PageAssets(files)
        return assets, PageDocuments(assets, name=self._name, rules=self._rules)

    async def _document(self, request: web.Request, document: PageAsset, policy: str) -> web.StreamResponse:
        """Answer a document that browsers ask for again each time."""
        caching: dict[str, str] = {hdrs.CACHE_CONTROL: REVALIDATED, hdrs.VARY: VARYING}
        headers = {**DOCUMENT_HEADERS, **caching, CONTENT_POLICY: policy}
        return await self._reply(request, document, headers)

    async def _reply(
        self, request: web.Request, asset: PageAsset, headers: Mapping[str, str]
    ) -> web.StreamResponse:
        """Answer a file in the best coding, or 304 to a browser that has it (RFC 9110, 13.1.2)."""
        coding = choose_coding(members_of(request, hdrs.ACCEPT_ENCODING))
        content = await self._encoder.content(asset, coding)
        if content is asset.data:
            coding = IDENTITY
        # A proxy that changes the coding must not serve one form for the tag of the other.
        tag = f'"{asset.digest}-{coding}"'
        own = {**FILE_HEADERS, **headers, hdrs.ETAG: tag}
        if tag in [given.strip() for given in members_of(request, hdrs.IF_NONE_MATCH).split(",")]:
            return web.Response(status=304, headers=own)
        if coding != IDENTITY:
            own[hdrs.CONTENT_ENCODING] = coding
        return web.Response(body=content, content_type=asset.media_type, charset=_charset(asset), headers=own)


def refuse_alone(request: web.Request) -> None:
    """Raise not_found for a document of frames that is opened by itself (Fetch Metadata, 2.1)."""
    if request.headers.get(FETCH_DESTINATION, "iframe") not in {"iframe", "frame"}:
        raise absent()


def absent() -> GatewayError:
    """Return the failure of a path that nothing is served at."""
    return GatewayError(ErrorKind.NOT_FOUND, "Not Found", code="route_not_found")


def members_of(request: web.Request, name: str) -> str:
    """Return the value of a list header, its lines joined (RFC 9110, 5.3); of a longer one the begin."""
    return ",".join(request.headers.getall(name, ()))[:MAX_LIST_CHARACTERS]


def wants_html(accepted: str) -> bool:
    """Return whether the value of Accept names HTML; clients of the API send `*/*` or nothing."""
    ranges = [weighted(part) for part in accepted.lower().split(",")]
    return any(name == "text/html" and weight > 0 for name, weight in ranges)


def language_of(request: web.Request, documents: PageDocuments) -> str:
    """Return the language of the page for a request."""
    accepted = members_of(request, hdrs.ACCEPT_LANGUAGE)
    return choose_language(request.cookies.get(COOKIE, ""), accepted, documents.languages)


def _charset(asset: PageAsset) -> str | None:
    return "utf-8" if asset.media_type.startswith("text/") else None
