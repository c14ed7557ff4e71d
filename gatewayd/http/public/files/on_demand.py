"""Routes of `/api/v1/retrieval` that process files while the caller waits."""

from collections.abc import AsyncIterator
from typing import Annotated

from aiohttp import web
from pydantic import Field

from gatewayd.accounts.records import Actor
from gatewayd.http.audit import note_change
from gatewayd.http.body import RequestBody, json_reply, read_model
from gatewayd.http.context import actor
from gatewayd.http.reply_schemas import documents, service
from gatewayd.http.schemas import answers
from gatewayd.ingest.files import FileService
from gatewayd.ingest.records import File
from gatewayd.ingest.upload import NewFile
from gatewayd.knowledge.members import CollectionMembers, FileAddition, MemberResult
from gatewayd.knowledge.process_now import SynchronousProcessing, parse_collection_name
from gatewayd.knowledge.scopes import FILE_PREFIX
from gatewayd.knowledge.serializers import JsonObject
from gatewayd.knowledge.uploads import DocumentUploads, UploadDestination

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,128}$")]
"""A collection id, or `file-` and a file id."""


class ProcessFileBody(RequestBody):
    """A file to process: again, with another text, or for a collection."""

    file_id: str
    content: str | None = None
    collection_name: Name | None = None


class ProcessTextBody(RequestBody):
    """A text to store as a file."""

    name: str
    content: str
    collection_name: Name | None = None


class NamedFileBody(RequestBody):
    """A file of a batch, of which only the id is read."""

    id: str


class ProcessBatchBody(RequestBody):
    """Files to add to a collection."""

    files: list[NamedFileBody]
    collection_name: Name


class DeleteBody(RequestBody):
    """A file to remove from a collection."""

    collection_name: Name
    file_id: str


class FileProcessing:
    """Handlers that process files while the caller waits, at most five minutes (504; the work goes on)."""

    def __init__(
        self, files: FileService, members: CollectionMembers, uploads: DocumentUploads, *, text_limit: int
    ) -> None:
        self._files = files
        self._members = members
        self._uploads = uploads
        self._synchronous = SynchronousProcessing(files, members)
        self._body_limit = 2 * text_limit

    @answers(documents.processed_file)
    async def process_file(self, request: web.Request) -> web.StreamResponse:
        """`{"file_id", "content"?, "collection_name"?}` -> `{"status": true, "collection_name", "filename",
        "content"}`.

        `content` becomes the text of the file. Without it the text is extracted, unless the file is complete
        and only added to a collection. The handler waits for a file that is being processed. 400 with the
        reason of a failure. A complete file keeps its text until the new extraction ends.
        """
        form = await read_model(request, ProcessFileBody, self._body_limit)
        caller = actor(request)
        collection = parse_collection_name(form.collection_name)
        file = await self._synchronous.process(caller, form.file_id, form.content, collection)
        if collection is not None:
            note_change(request, f"collection {collection}", {"added": [file.id]})
        return json_reply(await self._render(caller, file, collection))

    @answers(documents.processed_text)
    async def process_text(self, request: web.Request) -> web.StreamResponse:
        """`{"name", "content", "collection_name"?}` -> `{"status": true, "collection_name", "file_id",
        "content"}`.

        The text is stored as a file of the caller. Without `collection_name` it is searched by the name in
        the reply.
        """
        form = await read_model(request, ProcessTextBody, self._body_limit)
        caller = actor(request)
        collection = parse_collection_name(form.collection_name)
        kind = "text/plain; charset=utf-8"
        upload = NewFile(form.name, kind, caller.user_id, {}, is_unlimited=caller.is_admin)
        place = None if collection is None else UploadDestination(collection)
        file = await self._uploads.accept(caller, upload, _stream(form.content), place)
        file = await self._synchronous.finished(file)
        return json_reply({**await self._render(caller, file, collection), "file_id": file.id})

    @answers(documents.processed_batch)
    async def process_batch(self, request: web.Request) -> web.StreamResponse:
        """`{"files": [{"id"}], "collection_name"}` -> `{"results": [{"file_id", "status", "error"?}],
        "errors": [..]}`: each file is added separately."""
        form = await read_model(request, ProcessBatchBody, self._body_limit)
        additions = [FileAddition(file.id) for file in form.files]
        collection, results = await self._members.add_many(actor(request), form.collection_name, additions)
        added = [each.file_id for each in results if each.is_changed]
        note_change(request, collection.name, {"id": collection.id, "added": added})
        shown = [_show_result(result) for result in results]
        return json_reply({"results": shown, "errors": [each for each in shown if "error" in each]})

    @answers(service.status)
    async def delete(self, request: web.Request) -> web.StreamResponse:
        """`{"collection_name", "file_id"}` -> `{"status": true}`; the file itself stays."""
        form = await read_model(request, DeleteBody)
        collection = await self._members.remove_file(
            actor(request), form.collection_name, form.file_id, delete_file=False
        )
        note_change(request, collection.name, {"id": collection.id, "removed": [form.file_id]})
        return json_reply({"status": True})

    async def _render(self, caller: Actor, file: File, collection: str | None) -> JsonObject:
        return {
            "status": True,
            "collection_name": collection or FILE_PREFIX + file.id,
            "filename": file.name,
            "content": await self._files.text(caller, file.id),
        }


async def _stream(text: str) -> AsyncIterator[bytes]:
    yield text.encode()


def _show_result(result: MemberResult) -> JsonObject:
    if result.error is not None:
        return {"file_id": result.file_id, "status": "failed", "error": result.error.message}
    return {"file_id": result.file_id, "status": "completed"}
