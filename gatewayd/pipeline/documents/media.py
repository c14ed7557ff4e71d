"""Stores the media of tool results (images, audio and other data) as files of the user."""

import mimetypes
from collections.abc import AsyncIterator
from typing import Any

from gatewayd.accounts.records import Actor
from gatewayd.ingest.files import FileService
from gatewayd.ingest.upload import NewFile
from gatewayd.plugins.tool_results import ResultMedia


class MediaFiles:
    """A `pipeline.tools.calls.KeepMedia` over the file service; the user needs no upload permission."""

    def __init__(self, files: FileService) -> None:
        self._files = files

    async def keep(self, actor: Actor, media: ResultMedia) -> dict[str, Any]:
        """Store bytes as a file that is not indexed, and return a reference to it.

        Raises too_large.
        """
        extension = mimetypes.guess_extension(media.content_type, strict=False) or ""
        name = f"{media.type}{extension}"
        upload = NewFile(
            name=name,
            content_type=media.content_type,
            user_id=actor.user_id,
            data={},
            process=False,
            is_unlimited=actor.is_admin,
        )
        file = await self._files.uploads.keep(upload, _once(media.content))
        return {
            "type": media.type,
            "id": file.id,
            "name": name,
            "url": f"/api/v1/files/{file.id}/content",
            "content_type": media.content_type,
        }


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content
