"""Makes files ready to be searched while somebody waits for it."""

from gatewayd.accounts.records import Actor
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.files import FileService
from gatewayd.ingest.records import File, FileStatus
from gatewayd.knowledge.members import MAX_WAIT_SECONDS, CollectionMembers
from gatewayd.knowledge.scopes import FILE_PREFIX


class SynchronousProcessing:
    """Processes files and waits for up to five minutes; they go on being processed after that."""

    def __init__(self, files: FileService, members: CollectionMembers) -> None:
        self._files = files
        self._members = members

    async def process(
        self, actor: Actor, file_id: str, text: str | None = None, collection: str | None = None
    ) -> File:
        """Return a file of the actor's once it is completed, and in the collection when one is named.

        With `text` that becomes its text. Otherwise it is extracted, but not a finished one that is to be put
        into a collection; one that is being processed is waited for. Raises empty_content with the reason
        when that fails, timeout when it takes too long, and what `FileService` and `CollectionMembers` raise.
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
        """Return a file once it is completed; raises as `process` does."""
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
    """Return the collection that a name stands for: none for a file's own."""
    return None if name is None or name.startswith(FILE_PREFIX) else name


def _needs_work(file: File, collection: str | None) -> bool:
    if file.status is FileStatus.COMPLETED:
        return collection is None
    return file.status is not FileStatus.PENDING
