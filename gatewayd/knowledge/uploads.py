"""Uploads of documents, alone or directly into a collection."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from gatewayd.accounts.permissions import require
from gatewayd.accounts.records import Actor
from gatewayd.accounts.texts import is_plain
from gatewayd.errors import invalid
from gatewayd.ingest.records import File
from gatewayd.ingest.upload import NewFile
from gatewayd.knowledge.members import CollectionServices, get_ancestors
from gatewayd.knowledge.paths import MAX_PATH_CHARACTERS, directory_paths, join_path, normalise_path
from gatewayd.knowledge.records import CollectionLink


@dataclass(frozen=True, slots=True)
class UploadDestination:
    """Destination of an upload; the fields are those of `records.CollectionLink`."""

    collection_id: str
    origin: str = ""
    path: str = ""
    directory_id: str | None = None


class DocumentUploads:
    """Accepts new files.

    Errors, all before a byte is stored: forbidden without the permission chat.file_upload or write access to
    the collection, not_found for an unknown collection or directory, invalid_request naming the field, and
    the errors of `ingest.upload.UploadService.keep`.
    """

    def __init__(self, services: CollectionServices) -> None:
        self._services = services

    def check(self, actor: Actor) -> None:
        """Raise forbidden when an actor may not upload; call it before the body is read."""
        if not actor.is_admin:
            require(actor, "chat", "file_upload")

    async def check_room(self, user_id: str, size: int) -> None:
        """Raise too_large if the quotas of a user have no room for a file of at least a size in bytes."""
        await self._services.files.uploads.check_room(user_id, size)

    async def accept(
        self,
        actor: Actor,
        upload: NewFile,
        stream: AsyncIterator[bytes],
        place: UploadDestination | None = None,
    ) -> File:
        """Store a file and, in the same transaction, link it to its destination.

        Without a `place` the client's metadata (`upload.data`) may contain one: `knowledge_id`,
        `directory_id` and, from sync clients, `file_hash`, which becomes the file's checksum. The metadata
        may follow the file in the request, so it is read again at the end of the stream.
        """
        self.check(actor)
        known = place or _destination_in(upload)
        if known is not None:
            await self._check(actor, known)
        linking = _LinkOnAdd(self._services, actor, upload, place)
        return await self._services.files.uploads.keep(upload, stream, linking)

    async def _check(self, actor: Actor, place: UploadDestination) -> None:
        await self._services.collections.get_writable(actor, place.collection_id)
        if place.directory_id is not None:
            await get_ancestors(self._services.store, place.collection_id, place.directory_id)
        if len(place.origin) > MAX_PATH_CHARACTERS or not is_plain(place.origin):
            raise invalid(
                "cannot accept origin: it is too long or contains control characters", param="origin"
            )
        if bool(place.origin) != bool(normalise_path(place.path, "path")):
            raise invalid("cannot accept path: origin and path need each other", param="path")


class _LinkOnAdd:
    """Links a new file to its destination, inside the transaction that adds it."""

    def __init__(
        self, services: CollectionServices, actor: Actor, upload: NewFile, place: UploadDestination | None
    ) -> None:
        self._services = services
        self._actor = actor
        self._upload = upload
        self._place = place

    async def __call__(self, file: File) -> None:
        """Link the file, if it has a destination; repeats the checks, because the upload took time."""
        place, store = self._place or _destination_in(self._upload), self._services.store
        if place is None:
            return
        await self._services.collections.get_writable(self._actor, place.collection_id)
        path = place.path
        if not place.origin and self._upload.file_hash:
            path = await self._path(file, place)
        elif place.directory_id is not None:
            await get_ancestors(store, place.collection_id, place.directory_id)
        link = CollectionLink(
            place.collection_id,
            file.id,
            self._actor.user_id,
            origin=place.origin,
            path=path,
            directory_id=place.directory_id,
            created_at=file.created_at,
        )
        await store.link(link)

    async def _path(self, file: File, place: UploadDestination) -> str:
        """Return the path of the file in the tree of a sync client; it replaces the last version there."""
        store = self._services.store
        if place.directory_id is None:
            return file.name
        ancestors = await get_ancestors(store, place.collection_id, place.directory_id)
        return join_path(directory_paths(ancestors)[place.directory_id], file.name)


def _destination_in(upload: NewFile) -> UploadDestination | None:
    collection_id = upload.knowledge_id
    return (
        UploadDestination(collection_id, directory_id=upload.directory_id or None) if collection_id else None
    )
