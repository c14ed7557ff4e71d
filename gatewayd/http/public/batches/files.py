"""Routes of the files of batches, in the OpenAI dialect."""

from collections.abc import Sequence
from functools import partial
from typing import Final

import orjson
from aiohttp import web

from gatewayd.batches.files import MAX_FILE_BYTES, MAX_LIFE_SECONDS, BatchFiles, FileWishes
from gatewayd.batches.service import Batches
from gatewayd.errors import invalid
from gatewayd.http.body import json_reply
from gatewayd.http.connections.request_uses import RequestUse
from gatewayd.http.context import actor
from gatewayd.http.idempotency import IdempotentWrites, fingerprint
from gatewayd.http.idempotent_uploads import ContentHash, hashed_stream, read_content, upload_once
from gatewayd.http.public.batches.serializers import render_file
from gatewayd.http.public.query_parameters import parse_number
from gatewayd.http.responses.file_content import file_reply
from gatewayd.http.routes import FORM_BODY, JSON_BODY, Handler, Route, RouteAccess, RouteDialect
from gatewayd.http.schemas import ANY_MEDIA_TYPE, OBJECT, answers
from gatewayd.http.uploads import UploadForm, least_size, read_form

BATCH_BASES: Final = ("/v1", "/openai/v1")
"""Base paths of files and batches; below `/api/v1` the path of files belongs to documents."""

TAG: Final = "batches"
LINES_TYPE: Final = "application/jsonl"
MAX_PAGE_SIZE: Final = 10_000
LIST_QUERY: Final = {
    "after": "Id of the last file of the page before.",
    "limit": "Maximum number of files, 1 to 10000, 10000 by default.",
    "purpose": "Only files with this purpose.",
}


class BatchFileRoutes:
    """Routes of files with the purpose batch."""

    def __init__(self, batches: Batches, writes: IdempotentWrites | None = None) -> None:
        self._batches = batches
        self._writes = writes
        self._files: BatchFiles = batches.files

    def routes(self) -> Sequence[Route]:
        """Return the rows for each base path."""
        return [
            row
            for base in BATCH_BASES
            for row in (
                _row("POST", f"{base}/files", self.upload, "Upload a file of requests"),
                _row("GET", f"{base}/files", self.list, "List files of batches"),
                _row("GET", f"{base}/files/{{id}}", self.show, "Show a file of a batch"),
                _row("GET", f"{base}/files/{{id}}/content", self.content, "Download a file of a batch"),
                _row("DELETE", f"{base}/files/{{id}}", self.remove, "Delete a file of a batch"),
            )
        ]

    @answers(OBJECT)
    async def upload(self, request: web.Request) -> web.StreamResponse:
        """Take a form with `file` and, before or after it, `purpose` (batch) and `expires_after` -> file.

        A repeated Idempotency-Key gets the first reply again.
        """
        return await upload_once(
            self._writes, request, partial(self._accept, request), partial(_read_form, request)
        )

    async def _accept(self, request: web.Request, content: ContentHash | None) -> tuple[web.Response, str]:
        await self._files.check_room(actor(request).user_id, least_size(request))
        form = await read_form(request, MAX_FILE_BYTES)
        file = await self._files.upload(
            actor(request).user_id, form.name, hashed_stream(form, content), lambda: _wishes(form)
        )
        return json_reply(render_file(file)), "" if content is None else _fingerprint(form, content)

    @answers(OBJECT, query=LIST_QUERY)
    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"object": "list", "data", "has_more"}`, the newest files first."""
        query = request.query
        limit = parse_number(query, "limit", MAX_PAGE_SIZE, 1, MAX_PAGE_SIZE)
        found = await self._files.list(
            actor(request).user_id, query.get("purpose"), after=query.get("after"), limit=limit + 1
        )
        data = [render_file(file) for file in found[:limit]]
        return json_reply(page_of(data, has_more=len(found) > limit))

    @answers(OBJECT)
    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer a file; 404 for a file of another user."""
        return json_reply(render_file(await self._files.get(actor(request).user_id, file_id(request))))

    @answers(None, ANY_MEDIA_TYPE)
    async def content(self, request: web.Request) -> web.StreamResponse:
        """Answer the bytes of a file."""
        file = await self._files.get(actor(request).user_id, file_id(request))
        content = await self._files.content(file)
        return file_reply(content, file.name, LINES_TYPE, attachment=True)

    @answers(OBJECT)
    async def remove(self, request: web.Request) -> web.StreamResponse:
        """Delete a file -> `{"id", "object": "file", "deleted": true}`; 409 while a batch reads it."""
        name = file_id(request)
        await self._batches.remove_file(actor(request), name)
        return json_reply({"id": name, "object": "file", "deleted": True})


def file_id(request: web.Request) -> str:
    """Return the id in the path of a request."""
    return request.match_info["id"]


def page_of(data: Sequence[dict[str, object]], *, has_more: bool) -> dict[str, object]:
    """Return a page of a list of OpenAI."""
    ends = {"first_id": data[0]["id"], "last_id": data[-1]["id"]} if data else {}
    return {"object": "list", "data": data, "has_more": has_more, "first_id": None, "last_id": None, **ends}


async def _read_form(request: web.Request) -> str:
    """Read an upload without storing it; return its fingerprint."""
    form = await read_form(request, MAX_FILE_BYTES)
    return _fingerprint(form, await read_content(form, MAX_FILE_BYTES))


def _fingerprint(form: UploadForm, content: ContentHash) -> str:
    facts = orjson.dumps([form.name, form.fields], option=orjson.OPT_SORT_KEYS)
    return fingerprint("batch file", facts, content.digest())


def _wishes(form: UploadForm) -> FileWishes:
    seconds = form.fields.get("expires_after[seconds]", str(MAX_LIFE_SECONDS))
    anchor = form.fields.get("expires_after[anchor]", "created_at")
    if anchor != "created_at" or not (seconds.isascii() and seconds.isdigit() and len(seconds) < 12):
        raise invalid(
            "cannot accept expires_after: expected anchor created_at and seconds", param="expires_after"
        )
    return FileWishes(form.fields.get("purpose", ""), int(seconds))


def _row(method: str, path: str, handler: Handler, summary: str) -> Route:
    is_upload, is_content = method == "POST", path.endswith("/content")
    use = RequestUse.UPLOAD if is_upload else RequestUse.DOWNLOAD if is_content else RequestUse.REQUEST
    return Route(
        method,
        path,
        handler,
        RouteAccess.VERIFIED,
        summary,
        dialect=RouteDialect.OPENAI,
        tag=TAG,
        invites=is_upload,
        takes=FORM_BODY if is_upload else JSON_BODY,
        use=use,
    )
