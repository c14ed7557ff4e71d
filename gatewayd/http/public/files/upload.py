"""Route of file uploads."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import orjson
from aiohttp import web

from gatewayd import json_decoder
from gatewayd.accounts.texts import clean_object
from gatewayd.errors import GatewayError, invalid
from gatewayd.http.body import json_reply
from gatewayd.http.connections.request_uses import RequestUse
from gatewayd.http.context import actor
from gatewayd.http.idempotency import IdempotentWrites, fingerprint
from gatewayd.http.idempotent_uploads import ContentHash, hashed_stream, read_content, upload_once
from gatewayd.http.public.query_parameters import parse_flag
from gatewayd.http.reply_schemas import documents
from gatewayd.http.routes import FORM_BODY, Route, RouteAccess
from gatewayd.http.schemas import answers
from gatewayd.http.uploads import UploadForm, least_size, read_form
from gatewayd.ingest.files import FileService
from gatewayd.ingest.records import File, FileStatus
from gatewayd.ingest.serializers import JsonObject, render_file
from gatewayd.ingest.upload import NewFile
from gatewayd.knowledge.uploads import DocumentUploads

PATH: Final = "/api/v1/files/"
MAX_WAIT_SECONDS: Final = 3600.0
"""Longest wait of an upload with `process_in_background=false`, in seconds."""

UPLOAD_QUERY: Final = {
    "process": "With false, the file is only stored.",
    "process_in_background": "With false, the reply waits for the end of processing, at most an hour.",
}


class FileUploads:
    """Route of uploads; `max_size` is the largest file in bytes."""

    def __init__(
        self,
        files: FileService,
        uploads: DocumentUploads,
        *,
        max_size: int,
        writes: IdempotentWrites | None = None,
    ) -> None:
        self._files = files
        self._uploads = uploads
        self._max_size = max_size
        self._writes = writes

    def route(self) -> Route:
        """Return the row of the upload.

        The handler runs to its end after the body is read. A client that leaves earlier ends it, as the read
        fails.
        """
        return Route(
            "POST",
            PATH,
            self.upload,
            RouteAccess.VERIFIED,
            "Upload a file",
            tag="files",
            invites=True,
            takes=FORM_BODY,
            use=RequestUse.UPLOAD,
        )

    @answers(documents.uploaded_file, query=UPLOAD_QUERY)
    async def upload(self, request: web.Request) -> web.StreamResponse:
        """Take a form with the part `file` and, before or after it, `metadata` (a JSON object) -> File.

        `?process=false` only stores it; otherwise `status` is true. `?process_in_background=false` answers
        when the file is completed or failed (200 for both), or after an hour. `metadata` may have
        `knowledge_id` and `directory_id`: the file joins that collection when it is completed. `file_hash` is
        the client's name of this version. A repeated Idempotency-Key gets the first reply again.
        """
        query = UploadQuery(
            parse_flag(request.query, "process", default=True),
            parse_flag(request.query, "process_in_background", default=True),
        )
        self._uploads.check(actor(request))
        return await upload_once(
            self._writes,
            request,
            partial(self._accept, request, query),
            partial(self._sent, request, query),
        )

    async def _accept(
        self, request: web.Request, query: "UploadQuery", content: ContentHash | None
    ) -> tuple[web.Response, str]:
        """Store a file; return the reply, and the fingerprint of the upload, "" without a hash."""
        caller = actor(request)
        await self._uploads.check_room(caller.user_id, least_size(request))
        form = await read_form(request, self._max_size)
        data = metadata_of(form)
        upload = NewFile(
            form.name,
            form.content_type,
            caller.user_id,
            data,
            process=query.process,
            is_unlimited=caller.is_admin,
        )
        file = await self._uploads.accept(caller, upload, stream_file(form, data, content))
        if query.process and not query.in_background:
            file = await self._files.finished(file.id, MAX_WAIT_SECONDS)
        found = "" if content is None else _fingerprint(form, query, content)
        return json_reply(render_upload(file)), found

    async def _sent(self, request: web.Request, query: "UploadQuery") -> str:
        """Read an upload without storing it; return its fingerprint."""
        form = await read_form(request, self._max_size)
        return _fingerprint(form, query, await read_content(form, self._max_size))


@dataclass(frozen=True, slots=True)
class UploadQuery:
    """The parameters of an upload."""

    process: bool
    in_background: bool


def _fingerprint(form: UploadForm, query: UploadQuery, content: ContentHash) -> str:
    """Return the digest of an upload; the boundary of its form is another one in each request."""
    fields = orjson.dumps(form.fields, option=orjson.OPT_SORT_KEYS)
    facts = orjson.dumps([form.name, form.content_type, query.process, query.in_background])
    return fingerprint("file", facts, fields, content.digest())


async def stream_file(
    form: UploadForm, data: dict[str, Any], content: ContentHash | None = None
) -> AsyncIterator[bytes]:
    """Yield the bytes of the file, which `content` gets, too; at its end `data` has the fields after it."""
    async for piece in hashed_stream(form, content):
        yield piece
    data.update(metadata_of(form))


def metadata_of(form: UploadForm) -> dict[str, Any]:
    """Return the metadata of the client; invalid_request when it is no JSON object."""
    text = form.fields.get("metadata", "").strip()
    if not text:
        return {}
    try:
        value = json_decoder.decode_at_once(text.encode())
    except GatewayError as error:
        if error.code != "json_invalid":
            raise
        value = text
    if value is not None and not isinstance(value, dict):
        raise invalid("cannot accept metadata: expected a JSON object", param="metadata")
    return clean_object(value or {}, "metadata")


def render_upload(file: File) -> JsonObject:
    """Return the reply to the upload of a file."""
    shown = render_file(file)
    return shown if file.status is FileStatus.STORED else {"status": True, **shown}
