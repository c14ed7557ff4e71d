"""Implementation of `open_webui.models.files`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from gatewayd.plugins.interfaces import HostUpload, PluginHost
from gatewayd.plugins.open_webui.awaitable_records import AnswerList, AnswerRecord
from gatewayd.plugins.open_webui.host_bridge import HostBridge, HostTable, blocking
from gatewayd.plugins.open_webui.modules.storage import uploads_directory
from gatewayd.plugins.open_webui.modules.users import id_of, is_admin


class FileModel(AnswerRecord):
    """A file; `path` is the path of its content on this machine."""

    id: str
    user_id: str = ""
    hash: str | None = None
    filename: str = ""
    path: str | None = None
    data: dict[str, Any] | None = None
    meta: dict[str, Any] | None = None
    created_at: int | None = 0
    updated_at: int | None = 0


class FileMetadataResponse(AnswerRecord):
    """The metadata of a file."""

    id: str
    hash: str | None = None
    meta: dict[str, Any] | None = None
    created_at: int | None = 0
    updated_at: int | None = 0


class FileForm(AnswerRecord):
    """A file to insert; its content is read from `path`, the result of `Storage.upload_file`."""

    id: str
    filename: str
    path: str
    hash: str | None = None
    data: dict[str, Any] = Field(default_factory=dict)
    meta: dict[str, Any] = Field(default_factory=dict)


async def find_file(host: PluginHost, file_id: str) -> FileModel | None:
    """Return a file with the path of its content, None when absent; runs on the loop of the daemon."""
    found = FileModel.of(await host.files.find(file_id))
    if found is not None:
        path = await host.files.path(file_id)
        found.path = None if path is None else str(path)
    return found


async def find_file_for(host: PluginHost, file_id: str, user: Any) -> FileModel | None:
    """Return a file that the user owns, or any file for an administrator; None otherwise."""
    found = await find_file(host, file_id)
    if found is None or found.user_id == id_of(user) or await is_admin(host, user):
        return found
    return None


class FilesTable(HostTable):
    """The class of `Files`."""

    @blocking
    async def get_file_by_id(self, id: str) -> FileModel | None:
        """Return a file; None when absent."""
        return await find_file(self._host, id)

    @blocking
    async def get_file_by_id_and_user_id(self, id: str, user_id: str) -> FileModel | None:
        """Return a file of a user; None when absent or owned by another user."""
        found = await find_file(self._host, id)
        return found if found is not None and found.user_id == user_id else None

    @blocking
    async def get_file_metadata_by_id(self, id: str) -> FileMetadataResponse | None:
        """Return the metadata of a file; None when absent."""
        return FileMetadataResponse.of(await self._host.files.find(id))

    @blocking
    async def get_files(self) -> AnswerList[FileModel]:
        """Return the files of all users, without their paths."""
        return FileModel.each(await self._host.files.list(None))

    @blocking
    async def get_files_by_user_id(self, user_id: str) -> AnswerList[FileModel]:
        """Return the files of a user, without their paths."""
        return FileModel.each(await self._host.files.list(user_id))

    @blocking
    async def get_files_by_ids(self, ids: Sequence[str]) -> AnswerList[FileModel]:
        """Return the existing files among `ids`, in that order."""
        found = [await find_file(self._host, file_id) for file_id in ids]
        return AnswerList(file for file in found if file is not None)

    @blocking
    async def get_file_metadatas_by_ids(self, ids: Sequence[str]) -> AnswerList[FileMetadataResponse]:
        """Return the metadata of the existing files among `ids`, in that order."""
        found = [FileMetadataResponse.of(await self._host.files.find(file_id)) for file_id in ids]
        return AnswerList(file for file in found if file is not None)

    @blocking
    async def update_file_data_by_id(self, id: str, data: Mapping[str, Any]) -> FileModel | None:
        """Merge into the data of a file; `content` replaces its text. None when absent."""
        return FileModel.of(await self._host.files.set_data(id, data))

    @blocking
    async def update_file_metadata_by_id(self, id: str, meta: Mapping[str, Any]) -> FileModel | None:
        """Merge into the metadata of a file; None when absent."""
        return FileModel.of(await self._host.files.set_meta(id, meta))

    @blocking
    async def delete_file_by_id(self, id: str) -> bool:
        """Delete a file with its content; False when absent."""
        return await self._host.files.remove(id)

    def insert_new_file(self, user_id: str, form_data: FileForm, db: Any = None) -> FileModel | None:
        """Store the content at the path of the form as a file with the id of the form."""
        del db
        path = Path(form_data.path)
        meta = dict(form_data.meta)
        upload = HostUpload(
            str(meta.pop("name", None) or form_data.filename),
            path.read_bytes(),
            meta.pop("content_type", None),
            meta.pop("data", None) or None,
            id=form_data.id,
        )
        stored = self._bridge.wait(self._store, user_id, upload, form_data.data)
        if path.parent == uploads_directory(self._host):
            path.unlink()
        return stored

    async def _store(self, user_id: str, upload: HostUpload, data: Mapping[str, Any]) -> FileModel | None:
        stored = await self._host.files.store(user_id, upload)
        if data:
            await self._host.files.set_data(str(stored["id"]), data)
        return await find_file(self._host, str(stored["id"]))


def make_files(bridge: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.models.files`."""
    return {
        "Files": FilesTable(bridge, "open_webui.models.files.Files"),
        "FileForm": FileForm,
        "FileModel": FileModel,
        "FileModelResponse": FileModel,
        "FileMetadataResponse": FileMetadataResponse,
    }
