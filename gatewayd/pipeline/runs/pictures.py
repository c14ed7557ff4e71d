"""Puts pictures that are files of the gateway into the messages of a run, as data addresses."""

import asyncio
import base64
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from gatewayd.accounts.records import Actor
from gatewayd.completions.json_access import as_mapping, as_sequence, as_text
from gatewayd.errors import ErrorKind, GatewayError, shorten
from gatewayd.ingest.records import BlobContent, File

MAX_PICTURES: Final = 16
"""Maximum number of pictures of the gateway's files in one request; the newest are sent."""

MAX_PICTURE_BYTES: Final = 8 * 2**20

PICTURE_TYPES: Final = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})

_OWN: Final = re.compile(r"/api/v1/files/([\w-]{1,64})/content")


class PictureSource(Protocol):
    """The files of the gateway: `ingest.files.FileService`."""

    async def content(self, actor: Actor, file_id: str) -> tuple[File, BlobContent]:
        """Return a file that the actor may read, and its bytes; raises not_found."""
        ...


class StoredPictures:
    """Replaces the addresses of pictures in stored messages by their bytes, for models that see them."""

    def __init__(self, files: PictureSource) -> None:
        self._files = files

    async def fill(
        self, actor: Actor, stored: Sequence[Mapping[str, Any]], warnings: list[str]
    ) -> Sequence[Mapping[str, Any]]:
        """Return the messages with data addresses; `warnings` gets a sentence for each picture left out."""
        left = MAX_PICTURES
        filled: list[Mapping[str, Any]] = []
        for message in reversed(stored):
            files = list(as_sequence(message.get("files"))) if message.get("role") == "user" else []
            for place in reversed(range(len(files))):
                found = _OWN.fullmatch(as_text(as_mapping(files[place]).get("url")))
                if found is None or as_mapping(files[place]).get("type") != "image":
                    continue
                left -= 1
                if left >= 0:
                    files[place] = await self._filled(actor, files[place], found[1], warnings)
            filled.append({**message, "files": files} if files else message)
        if left < 0:
            warnings.append(f"only the newest {MAX_PICTURES} pictures are sent to the model")
        return filled[::-1]

    async def _filled(
        self, actor: Actor, reference: Mapping[str, Any], file_id: str, warnings: list[str]
    ) -> Mapping[str, Any]:
        try:
            file, content = await self._files.content(actor, file_id)
        except GatewayError as error:
            if error.kind is not ErrorKind.NOT_FOUND:
                raise
            warnings.append(f"cannot send a picture to the model: {error.message}")
            return reference
        if file.content_type not in PICTURE_TYPES or file.size > MAX_PICTURE_BYTES:
            name = shorten(file.name)
            warnings.append(
                f"cannot send {name!r} to the model: expected a PNG, JPEG, WebP or GIF picture"
                f" of at most {MAX_PICTURE_BYTES} bytes"
            )
            return reference
        data = b"".join([piece async for piece in content.read(0, content.size)])
        encoded = await asyncio.to_thread(_encoded, data)
        return {**reference, "url": f"data:{file.content_type};base64,{encoded}"}


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()
