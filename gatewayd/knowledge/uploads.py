"""Uploads of documents, on their own or straight into a collection."""

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
    """Where an upload goes; see `records.Link`."""

    collection_id: str
    origin: str = ""
    path: str = ""
    directory_id: str | None = None


class DocumentUploads:
    """The door for new files.

    Errors, all before anything is kept: forbidden without the permission chat.file_upload or the right to
    change the collection, not_found for a collection or directory that is none, invalid_request naming the
    field, and those of `ingest.intake.Intake.keep`.
    """

    def __init__(self, holdings: CollectionServices) -> None:
        self._holdings = holdings

    def check(self, actor: Actor) -> None:
        """Raise forbidden when an actor may not upload: what is known before anything is received."""
        if not actor.is_admin:
            require(actor, "chat", "file_upload")

    async def accept(
        self,
        actor: Actor,
        upload: NewFile,
        stream: AsyncIterator[bytes],
        place: UploadDestination | None = None,
    ) -> File:
        """Keep a file and, in the same transaction, put it into its place; it shows there once completed.

        Without a `place` the client's metadata (`upload.data`) may name one: `knowledge_id`, `directory_id`
        and, from clients that keep a tree in step, `file_hash`, which becomes the file's checksum. The
        metadata may come behind the file, and is read again when the stream has ended.
        """
        self.check(actor)
        known = place or _told_place(upload)
        if known is not None:
            await self._check(actor, known)
        linking = _Linking(self._holdings, actor, upload, place)
        return await self._holdings.files.intake.keep(upload, stream, linking)

    async def _check(self, actor: Actor, place: UploadDestination) -> None:
        await self._holdings.collections.get_writable(actor, place.collection_id)
        if place.directory_id is not None:
            await get_ancestors(self._holdings.store, place.collection_id, place.directory_id)
        if len(place.origin) > MAX_PATH_CHARACTERS or not is_plain(place.origin):
            raise invalid("cannot accept origin: it is too long or has control characters", param="origin")
        if bool(place.origin) != bool(normalise_path(place.path, "path")):
            raise invalid("cannot accept the place: origin and path belong together", param="path")


class _Linking:
    """Puts a new file into its place, inside the transaction that adds it."""

    def __init__(
        self, holdings: CollectionServices, actor: Actor, upload: NewFile, place: UploadDestination | None
    ) -> None:
        self._holdings = holdings
        self._actor = actor
        self._upload = upload
        self._place = place

    async def __call__(self, file: File) -> None:
        """Link the file, if it has a place; what may have changed while it was received is checked again."""
        place, store = self._place or _told_place(self._upload), self._holdings.store
        if place is None:
            return
        await self._holdings.collections.get_writable(self._actor, place.collection_id)
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
        """Return the path that a sync client knows the file by: it takes the place of its last version."""
        store = self._holdings.store
        if place.directory_id is None:
            return file.name
        line = await get_ancestors(store, place.collection_id, place.directory_id)
        return join_path(directory_paths(line)[place.directory_id], file.name)


def _told_place(upload: NewFile) -> UploadDestination | None:
    collection_id = upload.knowledge_id
    return (
        UploadDestination(collection_id, directory_id=upload.directory_id or None) if collection_id else None
    )
