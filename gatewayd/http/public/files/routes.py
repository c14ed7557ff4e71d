"""Routes of `/api/v1/files`: files."""

from collections.abc import Sequence
from typing import Final

from aiohttp import web

from gatewayd.errors import invalid, not_found
from gatewayd.http.audit import note_change
from gatewayd.http.body import RequestBody, json_reply, read_model
from gatewayd.http.connections.request_uses import RequestUse
from gatewayd.http.context import actor
from gatewayd.http.public.files.status import StatusStreams
from gatewayd.http.public.files.upload import FileUploads
from gatewayd.http.public.query_parameters import (
    MAX_PAGE_NUMBER,
    PAGE_QUERY,
    parse_flag,
    parse_number,
    parse_page,
)
from gatewayd.http.reply_schemas import documents
from gatewayd.http.responses.file_content import file_reply
from gatewayd.http.routes import Route, RouteAccess, RouteGroup
from gatewayd.http.schemas import ANY_MEDIA_TYPE, EVENT_STREAM, INTEGER, answers, listed
from gatewayd.ingest.files import FileService
from gatewayd.ingest.serializers import render_file, render_status

PREFIX: Final = "/api/v1/files"
PAGE_SIZE: Final = 50
MAX_FILES_FOUND: Final = 1000
SEARCH_QUERY: Final = {
    "filename": "Pattern of the name; * stands for any text, ? for any character.",
    "skip": "Number of files to skip.",
    "limit": "Maximum number of files, 1 to 1000, 100 by default.",
}
STATUS_QUERY: Final = {"stream": "With true, the reply is an event stream of the changes."}
CONTENT_QUERY: Final = {"attachment": "With true, browsers save the file instead of showing it."}
_row = RouteGroup(PREFIX, "files").row


class ContentBody(RequestBody):
    """The text of a file."""

    content: str


class NameBody(RequestBody):
    """The name of a file."""

    filename: str


class FileRoutes:
    """Routes of files: upload, state, text and download."""

    def __init__(
        self,
        files: FileService,
        uploads: FileUploads,
        *,
        text_limit: int,
        statuses: StatusStreams | None = None,
    ) -> None:
        self._files = files
        self._uploads = uploads
        # In JSON a character may take six bytes, but less than one in ten does.
        self._body_limit = 2 * text_limit
        self._statuses = statuses or StatusStreams()

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        access = RouteAccess.VERIFIED
        return [
            self._uploads.route(),
            _row("GET", "/", self.list, access, "List files"),
            _row("GET", "/search", self.search, access, "Search files by name"),
            _row("GET", "/count", self.count, access, "Count files"),
            _row("DELETE", "/all", self.remove_all, RouteAccess.ADMIN, "Delete all files"),
            _row("GET", "/{id}", self.show, access, "Show a file"),
            _row(
                "GET",
                "/{id}/process/status",
                self.show_status,
                access,
                "Show the state of a file",
                use=RequestUse.LISTENER,
            ),
            _row("POST", "/{id}/process", self.retry, access, "Process a file again"),
            _row("GET", "/{id}/data/content", self.show_text, access, "Show the text of a file"),
            _row(
                "POST",
                "/{id}/data/content/update",
                self.change_text,
                access,
                "Change the text of a file",
                ContentBody,
            ),
            _row(
                "GET", "/{id}/content", self.show_content, access, "Download a file", use=RequestUse.DOWNLOAD
            ),
            # A path of Open WebUI: the name is for readers, and the reply is the same.
            _row(
                "GET",
                "/{id}/content/{name}",
                self.show_content,
                access,
                "Download a file",
                use=RequestUse.DOWNLOAD,
            ),
            _row("POST", "/{id}/rename", self.rename, access, "Rename a file", NameBody),
            _row("DELETE", "/{id}", self.remove, access, "Delete a file"),
        ]

    @answers(documents.files, query=PAGE_QUERY)
    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"items": [File], "total"}`, 50 a page, newest first: the caller's own files, or all files
        for administrators (unless access lists bind them)."""
        offset, limit = parse_page(request.query, PAGE_SIZE)
        found, total = await self._files.list(actor(request), offset=offset, limit=limit)
        return json_reply({"items": [render_file(file) for file in found], "total": total})

    @answers(listed(documents.file), query=SEARCH_QUERY)
    async def search(self, request: web.Request) -> web.StreamResponse:
        """`?filename=*.pdf&skip=0&limit=100` -> `[File]`; 404 when no name matches.

        `*` stands for any text, `?` for any character.
        """
        pattern = request.query.get("filename", "")
        if not pattern:
            raise invalid("cannot accept filename: expected a name", param="filename", code="validation")
        skip = parse_number(request.query, "skip", 0, 0, MAX_PAGE_NUMBER)
        limit = parse_number(request.query, "limit", 100, 1, MAX_FILES_FOUND)
        found, _ = await self._files.list(actor(request), pattern=pattern, offset=skip, limit=limit)
        if not found:
            raise not_found("a file named", pattern)
        return json_reply([render_file(file) for file in found])

    @answers(INTEGER)
    async def count(self, request: web.Request) -> web.StreamResponse:
        """Answer the number of files of `list`."""
        _, total = await self._files.list(actor(request), limit=1)
        return json_reply(total)

    @answers(documents.file)
    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer File, with its text as `data.content`; 404 for a file that the caller may not read."""
        caller = actor(request)
        file = await self._files.get(caller, _id(request))
        return json_reply(render_file(file, await self._files.text(caller, file.id)))

    @answers(documents.file_status, EVENT_STREAM, query=STATUS_QUERY)
    async def show_status(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"status": "pending" | "completed" | "failed", "error"?}`.

        With `?stream=true` an event stream of such objects, one for each change, until the state is final or
        the file is deleted (`{"status": "not_found"}`).
        """
        caller = actor(request)
        is_streamed = parse_flag(request.query, "stream", default=False) and request.method == "GET"
        if is_streamed:
            return await self._statuses.send(request, self._files.changes(caller, _id(request)))
        return json_reply(render_status(await self._files.get(caller, _id(request))))

    @answers(documents.file)
    async def retry(self, request: web.Request) -> web.StreamResponse:
        """Process a file again, or for the first time if it was only stored; answers File."""
        return json_reply(render_file(await self._files.retry(actor(request), _id(request))))

    @answers(documents.file_text)
    async def show_text(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"content"}`: the text of the file, empty until there is one."""
        return json_reply({"content": await self._files.text(actor(request), _id(request))})

    @answers(documents.file_text)
    async def change_text(self, request: web.Request) -> web.StreamResponse:
        """`{"content"}` -> `{"content"}`; searches find the new text afterwards. 409 while the file is
        processed."""
        form = await read_model(request, ContentBody, self._body_limit)
        await self._files.set_text(actor(request), _id(request), form.content)
        return json_reply({"content": form.content})

    @answers(None, ANY_MEDIA_TYPE, query=CONTENT_QUERY)
    async def show_content(self, request: web.Request) -> web.StreamResponse:
        """Answer the bytes, or the requested range.

        Browsers show PDF and plain text and save everything else; with `?attachment=true` they also save
        those.
        """
        attachment = parse_flag(request.query, "attachment", default=False)
        file, content = await self._files.content(actor(request), _id(request))
        return file_reply(content, file.name, file.content_type, attachment=attachment)

    @answers(documents.file)
    async def rename(self, request: web.Request) -> web.StreamResponse:
        """`{"filename"}` -> File."""
        form = await read_model(request, NameBody)
        return json_reply(render_file(await self._files.rename(actor(request), _id(request), form.filename)))

    @answers(documents.done)
    async def remove(self, request: web.Request) -> web.StreamResponse:
        """Delete a file, also from every collection; answers `{"message"}`."""
        file = await self._files.remove(actor(request), _id(request))
        note_change(request, file.name, {"id": file.id, "user_id": file.user_id})
        return json_reply({"message": "File deleted successfully"})

    @answers(documents.done)
    async def remove_all(self, request: web.Request) -> web.StreamResponse:
        """Delete all files of `list`; answers `{"message"}`."""
        # Files are deleted one after the other; a failure does not restore deleted ones.
        note_change(request, "all files")
        await self._files.remove_all(actor(request))
        return json_reply({"message": "All files deleted successfully"})


def _id(request: web.Request) -> str:
    return request.match_info["id"]
