"""Uploads of documents, on their own or straight into a collection."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from gatewayd.accounts.permissions import require
from gatewayd.accounts.records import Actor
from gatewayd.accounts.texts import is_plain
from gatewayd.errors import invalid
from gatewayd.ingest.records import File
from gatewayd.ingest.upload import Upload
from gatewayd.knowledge.members import Holdings, get_line
from gatewayd.knowledge.paths import LONGEST_PATH, joined, normal_path, paths_of
from gatewayd.knowledge.records import Link


@dataclass(frozen=True, slots=True)
class Place:
    """Where an upload goes; see `records.Link`."""

    collection_id: str
    origin: str = ""
    path: str = ""
    directory_id: str | None = None


class Uploads:
    """The door for new files.

    Errors, all before anything is kept: forbidden without the permission chat.file_upload or the right to
    change the collection, not_found for a collection or directory that is none, invalid_request naming the
    field, and those of `ingest.intake.Intake.keep`.
    """

    def __init__(self, holdings: Holdings) -> None:
        self._holdings = holdings

    def check(self, actor: Actor) -> None:
        """Raise forbidden when an actor may not upload: what is known before anything is received."""
        if not actor.is_admin:
            require(actor, "chat", "file_upload")

    async def accept(
        self, actor: Actor, upload: Upload, stream: AsyncIterator[bytes], place: Place | None = None
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

    async def _check(self, actor: Actor, place: Place) -> None:
        await self._holdings.collections.get_writable(actor, place.collection_id)
        if place.directory_id is not None:
            await get_line(self._holdings.store, place.collection_id, place.directory_id)
        if len(place.origin) > LONGEST_PATH or not is_plain(place.origin):
            raise invalid("cannot accept origin: it is too long or has control characters", param="origin")
        if bool(place.origin) != bool(normal_path(place.path, "path")):
            raise invalid("cannot accept the place: origin and path belong together", param="path")


class _Linking:
    """Puts a new file into its place, inside the transaction that adds it."""

    def __init__(self, holdings: Holdings, actor: Actor, upload: Upload, place: Place | None) -> None:
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
            await get_line(store, place.collection_id, place.directory_id)
        link = Link(
            place.collection_id,
            file.id,
            self._actor.user_id,
            origin=place.origin,
            path=path,
            directory_id=place.directory_id,
            created_at=file.created_at,
        )
        await store.link(link)

    async def _path(self, file: File, place: Place) -> str:
        """Return the path that a sync client knows the file by: it takes the place of its last version."""
        store = self._holdings.store
        if place.directory_id is None:
            return file.name
        line = await get_line(store, place.collection_id, place.directory_id)
        return joined(paths_of(line)[place.directory_id], file.name)


def _told_place(upload: Upload) -> Place | None:
    collection_id = upload.knowledge_id
    return Place(collection_id, directory_id=upload.directory_id or None) if collection_id else None
