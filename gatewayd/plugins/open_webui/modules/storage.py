"""Implementation of `open_webui.storage.provider`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from gatewayd import ids
from gatewayd.plugins.interfaces import PluginHost
from gatewayd.plugins.open_webui.awaitable_records import AnswerTuple
from gatewayd.plugins.open_webui.host_bridge import HostBridge, HostTable
from gatewayd.plugins.open_webui.placeholders import raise_not_provided


def uploads_directory(host: PluginHost) -> Path:
    """Return the directory of uploaded contents that are not stored as files yet."""
    return host.data_dir / "uploads"


class StorageTable(HostTable):
    """`Storage`: contents as paths on this machine.

    An upload stays in the directory of plugins until `Files.insert_new_file` stores it as a file.
    """

    def upload_file(
        self, file: BinaryIO, filename: str, tags: Mapping[str, str] | None = None
    ) -> AnswerTuple:
        """Store the rest of a binary stream; return `(content, path)`. ValueError when it is empty."""
        del tags
        content = file.read()
        if not content:
            raise ValueError(f"cannot store {filename!r}: it is empty")
        uploads = uploads_directory(self._host)
        uploads.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = uploads / f"{ids.new_id()}_{Path(filename).name}"
        path.write_bytes(content)
        return AnswerTuple((content, str(path)))

    def get_file(self, file_path: str) -> str:
        """Return the path of a content, given by path or file id; raises FileNotFoundError."""
        if Path(file_path).is_file():
            return file_path
        found = self._bridge.wait(self._host.files.path, file_path)
        if found is None:
            raise FileNotFoundError(f"cannot find the content {file_path!r}")
        return str(found)

    def delete_file(self, file_path: str) -> None:
        """Delete an uploaded content; the content of a file is deleted only with the file."""
        path = Path(file_path).resolve()
        if path.parent != uploads_directory(self._host).resolve():
            raise_not_provided(f"{self._name}.delete_file of the content of a file")
        path.unlink(missing_ok=True)


def make_storage(bridge: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.storage.provider`."""
    return {"Storage": StorageTable(bridge, "open_webui.storage.provider.Storage")}
