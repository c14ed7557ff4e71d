"""Files for plugins: what they store goes through the door of all uploads."""

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from gatewayd.accounts.records import Actor
from gatewayd.accounts.texts import clean_object
from gatewayd.errors import ErrorKind, GatewayError, invalid, not_found
from gatewayd.ingest.files import FileService
from gatewayd.ingest.records import File
from gatewayd.ingest.serializers import render_file
from gatewayd.ingest.upload import NewFile
from gatewayd.knowledge.process_now import SynchronousProcessing, parse_collection_name
from gatewayd.knowledge.uploads import DocumentUploads
from gatewayd.plugin_host.actors import PluginActors
from gatewayd.plugin_host.not_found import none_if_not_found
from gatewayd.plugins.interfaces import HostUpload, Record

PLUGIN_META_KEY: Final = "plugins"
"""Where the client's metadata of a file keeps what plugins add: `{"data": {...}, "meta": {...}}`."""

STATUS_FIELDS: Final = frozenset({"status", "error"})
"""Members of `data` that tell how far the gateway is with a file: nobody else sets them."""

MEASURED_FIELDS: Final = frozenset({"size", "file_hash", "content_type"})
"""Members of `meta` that are what the upload was."""


class FilesForPlugins:
    """A `plugins.interfaces.HostFiles`. Whoever names no user may read and change the files of everybody."""

    def __init__(
        self,
        files: FileService,
        uploads: DocumentUploads,
        readying: SynchronousProcessing,
        actors: PluginActors,
    ) -> None:
        self._files = files
        self._uploads = uploads
        self._readying = readying
        self._actors = actors

    async def find(self, file_id: str) -> Record | None:
        """Return a file with its text as `data.content`."""
        file = await self._find(file_id)
        return None if file is None else await self._whole(file)

    async def list(self, user_id: str | None) -> Sequence[Record]:
        """Return the files of a user, or of everybody, newest first, without their texts."""
        files, _ = await self._files.list(self._everybody, owner_id=user_id)
        return [_shown(file, None) for file in files]

    async def store(self, user_id: str, upload: HostUpload) -> Record:
        """Keep a file as one of the user's.

        Raises what an upload of the user's raises: forbidden without the permission chat.file_upload,
        too_large, invalid_request, and conflict for an id that is taken.
        """
        actor = await self._actors.verified(user_id)
        asked = NewFile(
            name=upload.name,
            content_type=upload.content_type,
            user_id=user_id,
            data=clean_object(upload.meta or {}, "metadata"),
            process=upload.process,
            is_unlimited=actor.is_admin,
            id=upload.id,
        )
        return _shown(await self._uploads.accept(actor, asked, _once(upload.content)), None)

    async def path(self, file_id: str) -> Path | None:
        """Return where this machine has the content of a file."""
        found = await none_if_not_found(self._files.content(self._everybody, file_id))
        return None if found is None else found[1]

    async def set_data(self, file_id: str, data: Record) -> Record | None:
        """Merge into the data of a file; `content` becomes its text.

        How far the gateway is with it (`status`, `error`) stays what it is. Raises empty_content for a blank
        text, conflict while the file is being processed.
        """
        file = await self._find(file_id)
        if file is None:
            return None
        if "content" in data:
            file = await self._files.set_text(self._everybody, file_id, _text(data["content"]))
        further = {
            name: value for name, value in data.items() if name != "content" and name not in STATUS_FIELDS
        }
        if further:
            file = await self._add(file, "data", further)
        return await self._whole(file)

    async def set_meta(self, file_id: str, meta: Record) -> Record | None:
        """Merge into what is kept beside a file: `name` renames it, `data` is the client's metadata.

        What was measured (`size`, `file_hash`, `content_type`) stays what it is.
        """
        file = await self._find(file_id)
        if file is None:
            return None
        if isinstance(meta.get("name"), str) and meta["name"] != file.name:
            file = await self._files.rename(self._everybody, file_id, meta["name"])
        if isinstance(meta.get("data"), Mapping):
            file = await self._files.set_data(self._everybody, file_id, {**file.data, **meta["data"]})
        known = MEASURED_FIELDS | {"name", "data"}
        further = {name: value for name, value in meta.items() if name not in known}
        if further:
            file = await self._add(file, "meta", further)
        return await self._whole(file)

    async def process(self, file_id: str, collection_id: str | None) -> Record | None:
        """Make the text and vectors of a file, in a collection when one is named, and wait for the end.

        The owner of the file needs the right to change the collection. Raises empty_content with the reason
        when it cannot be read, timeout after five minutes.
        """
        file = await self._find(file_id)
        if file is None:
            return None
        owner = await self._actors.owner(file.user_id)
        if owner is None:
            raise not_found("the owner of file", file_id)
        collection = parse_collection_name(collection_id)
        return await self._whole(await self._readying.process(owner, file_id, collection=collection))

    async def remove(self, file_id: str) -> bool:
        """Delete a file with its content."""
        return await none_if_not_found(self._removed(file_id)) is not None

    @property
    def _everybody(self) -> Actor:
        return self._actors.everybody()

    async def _find(self, file_id: str) -> File | None:
        return await none_if_not_found(self._files.get(self._everybody, file_id))

    async def _whole(self, file: File) -> Record:
        return _shown(file, await self._files.text(self._everybody, file.id))

    async def _add(self, file: File, part: str, values: Mapping[str, Any]) -> File:
        own = _own(file)
        added = {**own, part: {**own.get(part, {}), **values}}
        return await self._files.set_data(self._everybody, file.id, {**file.data, PLUGIN_META_KEY: added})

    async def _removed(self, file_id: str) -> bool:
        await self._files.remove(self._everybody, file_id)
        return True


def _shown(file: File, text: str | None) -> dict[str, Any]:
    """Return a file as clients see it, with what plugins added in its place."""
    shown = render_file(file, text)
    own = _own(file)
    shown["data"] = {**own.get("data", {}), **shown["data"]}
    shown["meta"] = {**own.get("meta", {}), **shown["meta"]}
    shown["meta"]["data"] = {name: value for name, value in file.data.items() if name != PLUGIN_META_KEY}
    return shown


def _own(file: File) -> Mapping[str, Mapping[str, Any]]:
    """Return what plugins added to a file; nothing when a client keeps something else in that place."""
    own = file.data.get(PLUGIN_META_KEY)
    if not isinstance(own, Mapping):
        return {}
    return {part: own[part] for part in ("data", "meta") if isinstance(own.get(part), Mapping)}


def _text(content: Any) -> str:
    if content is None:
        raise GatewayError(ErrorKind.EMPTY_CONTENT, "cannot use content: it is empty", param="content")
    if not isinstance(content, str):
        raise invalid("cannot use content: expected text", param="content")
    return content


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content
