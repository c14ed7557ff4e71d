"""Synchronous processing of files for clients that wait for the result."""

from gatewayd.accounts.records import Actor
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.files import FileService
from gatewayd.ingest.records import File, FileStatus
from gatewayd.knowledge.members import MAX_WAIT_SECONDS, CollectionMembers
from gatewayd.knowledge.scopes import FILE_PREFIX


class SynchronousProcessing:
    """Processes files and waits up to five minutes; the processing continues after that."""

    def __init__(self, files: FileService, members: CollectionMembers) -> None:
        self._files = files
        self._members = members

    async def process(
        self, actor: Actor, file_id: str, text: str | None = None, collection: str | None = None
    ) -> File:
        """Process a file, add it to a collection if one is named, and return it completed.

        `text` replaces the text of the file. Without it the file is processed again, except a completed one
        that is to be added to a collection; a pending one is only waited for. Raises empty_content with the
        reason when the processing fails, timeout when it takes too long, and the errors of `FileService` and
        `CollectionMembers`.
        """
        file = await self._files.get_writable(actor, file_id)
        if text is not None:
            file = await self._files.set_text(actor, file.id, text)
        elif _needs_work(file, collection):
            file = await self._files.retry(actor, file.id)
        file = await self.finished(file)
        if collection is not None:
            await self._members.add(actor, collection, file.id)
        return file

    async def finished(self, file: File) -> File:
        """Return a file once it is completed; raises the errors of `process`."""
        file = await self._files.finished(file.id, MAX_WAIT_SECONDS)
        match file.status:
            case FileStatus.COMPLETED:
                return file
            case FileStatus.FAILED:
                raise GatewayError(ErrorKind.EMPTY_CONTENT, f"cannot process file {file.id!r}: {file.error}")
            case FileStatus.PENDING | FileStatus.STORED:
                raise GatewayError(
                    ErrorKind.TIMEOUT,
                    f"cannot wait any longer for file {file.id!r}: it is still being processed",
                )


def parse_collection_name(name: str | None) -> str | None:
    """Return the collection id in a collection name, None for the name of a file's own scope
    (`file-<id>`)."""
    return None if name is None or name.startswith(FILE_PREFIX) else name


def _needs_work(file: File, collection: str | None) -> bool:
    if file.status is FileStatus.COMPLETED:
        return collection is None
    return file.status is not FileStatus.PENDING
