"""Routes of `/v1/files`: uploads, states and texts of files."""

import asyncio
from collections.abc import Sequence
from typing import Final

from aiohttp import web
from pydantic import ValidationError

from gatewayctl.wire import files as wire
from gatewayctl.wire import routes
from gatewayctl.wire.base import Outcome
from gatewayd.accounts.records import Actor
from gatewayd.errors import ErrorKind, GatewayError, invalid
from gatewayd.http.audit import note_change
from gatewayd.http.body import check_media_type, read_model, validation_failure
from gatewayd.http.connections.request_uses import RequestUse
from gatewayd.http.control.accounts.grantees import GranteeFinder
from gatewayd.http.control.documents.serializers import DocumentViews
from gatewayd.http.control.impersonation import ControlActors
from gatewayd.http.control.peer import PEER
from gatewayd.http.control.rows import serve
from gatewayd.http.control.transactions import WriteTransactions, audit, control_reply, find_page, is_set
from gatewayd.http.routes import Route
from gatewayd.http.uploads import read_stream
from gatewayd.ingest.files import FileService
from gatewayd.ingest.records import File, FileStatus
from gatewayd.ingest.upload import NewFile
from gatewayd.knowledge.collections import CollectionService
from gatewayd.knowledge.uploads import DocumentUploads, UploadDestination

BINARY_TYPE: Final = "application/octet-stream"
MAX_WAIT_SECONDS: Final = 30
MAX_AWAITED_FILES: Final = 1000


class ControlFileRoutes:
    """Routes of files on the control socket."""

    def __init__(
        self,
        files: FileService,
        receiver: "FileReceiver",
        views: DocumentViews,
        principals: GranteeFinder,
        viewers: ControlActors,
        writes: WriteTransactions,
    ) -> None:
        self._files = files
        self._receiver = receiver
        self._views = views
        self._principals = principals
        self._viewers = viewers
        self._writes = writes

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [
            serve(routes.LIST_FILES, self.list),
            serve(routes.ADD_FILE, self.add, invites=True, use=RequestUse.UPLOAD),
            serve(routes.WAIT_FOR_FILES, self.wait, interruptible=True),
            serve(routes.GET_FILE, self.show),
            serve(routes.REMOVE_FILE, self.remove),
            serve(routes.GET_FILE_TEXT, self.text),
            serve(routes.RETRY_FILE, self.retry),
            serve(routes.GIVE_FILE, self.give),
        ]

    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer `FileList`, a page of at most 1000.

        `?user=` limits it to the files of one user, `?orphaned=` to those of removed users, `?status=` to
        those in a status, `?query=` to names that match the pattern, where `*` stands for any text and `?`
        for any character.
        """
        ref = request.query.get("user")
        offset, limit = find_page(request)
        found, total = await self._files.list(
            self._operator(request),
            owner_id=None if ref is None else (await self._principals.owner(ref)).id,
            orphaned=is_set(request, "orphaned"),
            pattern=request.query.get("query", ""),
            status=_status(request),
            offset=offset,
            limit=limit,
        )
        return control_reply(wire.FileList(files=await self._views.files(found), total=total))

    async def add(self, request: web.Request) -> web.StreamResponse:
        """Take the bytes of a file as the body and `NewFile` as the query, answer `FileWritten`."""
        file = await self._receiver.receive(request, self._operator(request))
        note_change(request, file.name, {"user_id": file.user_id})
        audit(request, "file add", file.id)
        return await self._written(file, Outcome.CREATED, dry_run=False)

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer `File`."""
        file = await self._files.get(self._operator(request), request.match_info["id"])
        return control_reply(await self._views.file(file))

    async def text(self, request: web.Request) -> web.StreamResponse:
        """Answer `FileText`."""
        file_id = request.match_info["id"]
        return control_reply(
            wire.FileText(id=file_id, text=await self._files.text(self._operator(request), file_id))
        )

    async def retry(self, request: web.Request) -> web.StreamResponse:
        """Answer `FileWritten`; conflict while the file is being processed."""
        file_id = request.match_info["id"]
        async with self._writes.block(request, "file retry", file_id) as dry_run:
            file = await self._files.retry(self._operator(request), file_id)
        return await self._written(file, Outcome.CHANGED, dry_run=dry_run)

    async def give(self, request: web.Request) -> web.StreamResponse:
        """Take `Gift`, answer `FileWritten`: changed, or unchanged when the user owns it already."""
        file_id, actor = request.match_info["id"], self._operator(request)
        wanted = await read_model(request, wire.Gift)
        async with self._writes.block(request, "file give", file_id) as dry_run:
            owner = await self._principals.owner(wanted.user)
            file = await self._files.get(actor, file_id)
            outcome = Outcome.UNCHANGED if file.user_id == owner.id else Outcome.CHANGED
            if outcome is Outcome.CHANGED:
                file = await self._files.give(actor, file_id, owner.id)
            note_change(request, file.name, {"user": owner.email})
        return await self._written(file, outcome, dry_run=dry_run)

    async def remove(self, request: web.Request) -> web.StreamResponse:
        """Answer `FileWritten` with the file before its removal."""
        file_id, actor = request.match_info["id"], self._operator(request)
        dry_run = is_set(request, "dry_run")
        file = await self._views.file(await self._files.get_writable(actor, file_id))
        if not dry_run:
            # Not in a transaction block: the deletion of bytes cannot be rolled back.
            await self._files.remove(actor, file_id)
            note_change(request, file.name, {"user_id": file.user_id})
            audit(request, "file remove", file_id)
        return control_reply(wire.FileWritten(**file.model_dump(), outcome=Outcome.REMOVED, dry_run=dry_run))

    async def wait(self, request: web.Request) -> web.StreamResponse:
        """Take `Wait`, answer `Waited` when no file is pending or the time is over."""
        wanted = await read_model(request, wire.Wait)
        if not 1 <= wanted.seconds <= MAX_WAIT_SECONDS:
            raise invalid(f"cannot wait: seconds must be 1 to {MAX_WAIT_SECONDS}", param="seconds")
        if len(wanted.ids) > MAX_AWAITED_FILES:
            raise invalid(f"cannot wait for more than {MAX_AWAITED_FILES} files at once", param="ids")
        now = asyncio.get_running_loop().time
        deadline = now() + wanted.seconds
        # One after the other, as the reply needs all of them.
        found = [await self._finished(file_id, deadline - now()) for file_id in dict.fromkeys(wanted.ids)]
        files = [file for file in found if file is not None]
        is_done = all(file.status is not FileStatus.PENDING for file in files)
        return control_reply(wire.Waited(files=await self._views.files(files), is_done=is_done))

    async def _finished(self, file_id: str, seconds: float) -> File | None:
        try:
            return await self._files.finished(file_id, max(seconds, 0))
        except GatewayError as error:
            if error.kind is not ErrorKind.NOT_FOUND:
                raise
            return None

    async def _written(self, file: File, outcome: Outcome, *, dry_run: bool) -> web.Response:
        shown = (await self._views.file(file)).model_dump()
        return control_reply(wire.FileWritten(**shown, outcome=outcome, dry_run=dry_run))

    def _operator(self, request: web.Request) -> Actor:
        return self._viewers.operator(request[PEER])


class FileReceiver:
    """Receiver of files of at most `max_size` bytes, as streams."""

    def __init__(
        self,
        uploads: DocumentUploads,
        collections: CollectionService,
        principals: GranteeFinder,
        *,
        max_size: int,
    ) -> None:
        self._uploads = uploads
        self._collections = collections
        self._principals = principals
        self._max_size = max_size

    async def receive(self, request: web.Request, actor: Actor) -> File:
        """Store the body of a request as a file, in the collection of its query."""
        wanted = _new_file(request)
        owner = await self._principals.owner(wanted.user)
        upload = NewFile(
            wanted.name, wanted.content_type, owner.id, {}, checksum=wanted.checksum, is_unlimited=True
        )
        place = await self._place(wanted, actor)
        await self._uploads.check_room(owner.id, request.content_length or 0)
        return await self._uploads.accept(actor, upload, read_stream(request, self._max_size), place)

    async def _place(self, wanted: wire.NewFile, actor: Actor) -> UploadDestination | None:
        if wanted.collection is None:
            if wanted.origin or wanted.path:
                raise invalid("cannot accept origin and path without a collection", param="collection")
            return None
        collection = await self._collections.resolve(actor, wanted.collection)
        return UploadDestination(collection.id, wanted.origin or "", wanted.path or "")


def _new_file(request: web.Request) -> wire.NewFile:
    if is_set(request, "dry_run"):
        raise invalid("cannot upload with dry_run: an upload has no dry run", param="dry_run")
    check_media_type(request, (BINARY_TYPE,))
    given = {name: value for name, value in request.query.items() if name != "dry_run"}
    try:
        return wire.NewFile.model_validate(given)
    except ValidationError as error:
        raise validation_failure(error) from None


def _status(request: web.Request) -> FileStatus | None:
    value = request.query.get("status")
    if value is None:
        return None
    if value not in set(FileStatus):
        raise invalid(f"cannot accept status: expected one of {', '.join(FileStatus)}", param="status")
    return FileStatus(value)
