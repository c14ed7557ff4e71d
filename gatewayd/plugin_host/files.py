"""Implementation of `HostFiles`: files for plugins, stored by the same service as uploads."""

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
from gatewayd.plugin_host.actors import PluginActors, none_if_not_found
from gatewayd.plugins.interfaces import HostUpload, Record

PLUGIN_META_KEY: Final = "plugins"
"""Key in the client metadata of a file for values of plugins: `{"data": {...}, "meta": {...}}`."""

STATUS_FIELDS: Final = frozenset({"status", "error"})
"""Members of `data` with the processing state of a file; only the gateway sets them."""

MEASURED_FIELDS: Final = frozenset({"size", "file_hash", "content_type"})
"""Members of `meta` measured during the upload; read-only."""


class FilesForPlugins:
    """A `plugins.interfaces.HostFiles`. Calls without a user reach the files of all users."""

    def __init__(
        self,
        files: FileService,
        uploads: DocumentUploads,
        processing: SynchronousProcessing,
        actors: PluginActors,
    ) -> None:
        self._files = files
        self._uploads = uploads
        self._processing = processing
        self._actors = actors

    async def find(self, file_id: str) -> Record | None:
        """Return a file with its text as `data.content`; None when absent."""
        file = await self._find(file_id)
        return None if file is None else await self._whole(file)

    async def list(self, user_id: str | None) -> Sequence[Record]:
        """Return the files of a user, or of all users, without their texts, newest first."""
        files, _ = await self._files.list(self._unrestricted, owner_id=user_id)
        return [_render(file, None) for file in files]

    async def store(self, user_id: str, upload: HostUpload) -> Record:
        """Store a file owned by the user and return it.

        Raises the errors of an upload: forbidden without the permission chat.file_upload, too_large,
        invalid_request, and conflict for an id that is taken.
        """
        actor = await self._actors.verified(user_id)
        new_file = NewFile(
            name=upload.name,
            content_type=upload.content_type,
            user_id=user_id,
            data=clean_object(upload.meta or {}, "metadata"),
            process=upload.process,
            is_unlimited=actor.is_admin,
            id=upload.id,
        )
        return _render(await self._uploads.accept(actor, new_file, _once(upload.content)), None)

    async def path(self, file_id: str) -> Path | None:
        """Return the path of the content on this machine; None when the file is absent."""
        return await none_if_not_found(self._files.local_copy(self._unrestricted, file_id))

    async def set_data(self, file_id: str, data: Record) -> Record | None:
        """Merge into the data of a file and return it; `content` replaces its text. None when absent.

        `status` and `error` are ignored. Raises empty_content for a blank text, conflict while the file is
        being processed.
        """
        file = await self._find(file_id)
        if file is None:
            return None
        if "content" in data:
            file = await self._files.set_text(self._unrestricted, file_id, _text(data["content"]))
        further = {
            name: value for name, value in data.items() if name != "content" and name not in STATUS_FIELDS
        }
        if further:
            file = await self._add(file, "data", further)
        return await self._whole(file)

    async def set_meta(self, file_id: str, meta: Record) -> Record | None:
        """Merge into the metadata of a file and return it. None when absent.

        `name` renames the file, `data` is merged into the client metadata. `size`, `file_hash` and
        `content_type` are ignored.
        """
        file = await self._find(file_id)
        if file is None:
            return None
        if isinstance(meta.get("name"), str) and meta["name"] != file.name:
            file = await self._files.rename(self._unrestricted, file_id, meta["name"])
        if isinstance(meta.get("data"), Mapping):
            file = await self._files.set_data(self._unrestricted, file_id, {**file.data, **meta["data"]})
        known = MEASURED_FIELDS | {"name", "data"}
        further = {name: value for name, value in meta.items() if name not in known}
        if further:
            file = await self._add(file, "meta", further)
        return await self._whole(file)

    async def process(self, file_id: str, collection_id: str | None) -> Record | None:
        """Extract and embed a file, optionally into a collection, and wait for the end. None when absent.

        The owner of the file needs write access to the collection. Raises empty_content with the reason
        when the file cannot be read, timeout after five minutes.
        """
        file = await self._find(file_id)
        if file is None:
            return None
        owner = await self._actors.owner(file.user_id)
        if owner is None:
            raise not_found("the owner of file", file_id)
        collection = parse_collection_name(collection_id)
        return await self._whole(await self._processing.process(owner, file_id, collection=collection))

    async def remove(self, file_id: str) -> bool:
        """Delete a file with its content; False when absent."""
        return await none_if_not_found(self._removed(file_id)) is not None

    @property
    def _unrestricted(self) -> Actor:
        return self._actors.unrestricted()

    async def _find(self, file_id: str) -> File | None:
        return await none_if_not_found(self._files.get(self._unrestricted, file_id))

    async def _whole(self, file: File) -> Record:
        return _render(file, await self._files.text(self._unrestricted, file.id))

    async def _add(self, file: File, part: str, values: Mapping[str, Any]) -> File:
        own = _plugin_values(file)
        added = {**own, part: {**own.get(part, {}), **values}}
        return await self._files.set_data(self._unrestricted, file.id, {**file.data, PLUGIN_META_KEY: added})

    async def _removed(self, file_id: str) -> bool:
        await self._files.remove(self._unrestricted, file_id)
        return True


def _render(file: File, text: str | None) -> dict[str, Any]:
    """Return the rendered file, with the values of plugins merged into `data` and `meta`."""
    rendered = render_file(file, text)
    own = _plugin_values(file)
    rendered["data"] = {**own.get("data", {}), **rendered["data"]}
    rendered["meta"] = {**own.get("meta", {}), **rendered["meta"]}
    rendered["meta"]["data"] = {name: value for name, value in file.data.items() if name != PLUGIN_META_KEY}
    return rendered


def _plugin_values(file: File) -> Mapping[str, Mapping[str, Any]]:
    """Return the values of plugins; empty when a client stored something else under the key."""
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
