"""Search scopes by name: a collection id, or `file-<id>` for a file."""

from typing import Final

from gatewayd.accounts.records import Actor
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.files import FileService
from gatewayd.ingest.records import File, FileStatus, ScopeKind, SearchScope
from gatewayd.knowledge.collections import CollectionService

FILE_PREFIX: Final = "file-"


class ScopeResolver:
    """Resolves names to scopes that the actor may read; not_found for all others."""

    def __init__(self, files: FileService, collections: CollectionService) -> None:
        self._files = files
        self._collections = collections

    async def named(self, actor: Actor, name: str) -> SearchScope:
        """Return the scope of a collection id or `file-<id>`; empty_content for an unfinished file."""
        if name.startswith(FILE_PREFIX):
            file = await self._files.get(actor, name.removeprefix(FILE_PREFIX))
            return file_scope(file)
        collection = await self._collections.get(actor, name)
        return SearchScope(ScopeKind.COLLECTION, collection.id)


def file_scope(file: File) -> SearchScope:
    """Return the scope of a completed file; raises empty_content with the reason for any other."""
    problem = unfinished_reason(file)
    if problem:
        raise GatewayError(ErrorKind.EMPTY_CONTENT, f"cannot use file {file.id!r}: {problem}")
    return SearchScope(ScopeKind.FILE, file.id)


def unfinished_reason(file: File) -> str:
    """Return the reason why a file is not searchable, "" for a completed one."""
    match file.status:
        case FileStatus.COMPLETED:
            return ""
        case FileStatus.PENDING:
            return "its content is empty: text or data must be present (processing is not finished)"
        case FileStatus.STORED:
            return "its content is empty: text or data must be present (it was uploaded without processing)"
        case FileStatus.FAILED:
            return f"its content is empty: processing failed: {file.error}"
