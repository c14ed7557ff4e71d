"""Implementation of `open_webui.routers.files` and `open_webui.routers.images`: uploads."""

import asyncio
import base64
import binascii
import json
import mimetypes
from collections.abc import Mapping
from typing import Any, Final

from pydantic import Field

from gatewayd.plugins.interfaces import HostUpload
from gatewayd.plugins.open_webui.awaitable_records import AnswerRecord, AnswerText, AnswerTuple, MappedRecord
from gatewayd.plugins.open_webui.host_bridge import HostBridge, blocking
from gatewayd.plugins.open_webui.modules.app import ROUTES
from gatewayd.plugins.open_webui.modules.files import FileModel, find_file_for
from gatewayd.plugins.open_webui.modules.users import id_of
from gatewayd.plugins.open_webui.placeholders import load_web_module, raise_not_provided

IMAGES: Final = "open_webui.routers.images"

FETCH_TIMEOUT: Final = 60
"""Seconds without data after which fetching an image fails."""


class UploadedFile(MappedRecord, FileModel):
    """A stored file, readable by attributes or as a mapping, as some releases return it."""


class GenerateImageForm(AnswerRecord):
    """A request for an image."""

    prompt: str = ""
    model: str | None = None
    size: str | None = None
    n: int = 1
    negative_prompt: str | None = None


class EditImageForm(AnswerRecord):
    """A request to edit images."""

    image: str | list[str] = Field(default_factory=list)
    prompt: str = ""
    model: str | None = None
    size: str | None = None
    n: int | None = None


class UploadFunctions:
    """The functions that store and return files of a user."""

    def __init__(self, bridge: HostBridge) -> None:
        self._bridge = bridge

    async def upload_file_handler(
        self,
        request: Any,
        file: Any,
        metadata: Mapping[str, Any] | str | None = None,
        process: bool = True,
        process_in_background: bool = True,
        user: Any = None,
        **_: Any,
    ) -> UploadedFile:
        """Store an UploadFile as a file of the user, and extract and embed it with `process`.

        Without `process_in_background` wait until it is processed.
        """
        del request
        if user is None:
            raise TypeError("cannot store a file: the user is missing")
        content = await asyncio.to_thread(file.file.read)
        meta = json.loads(metadata) if isinstance(metadata, str) else dict(metadata or {})
        kind = file.content_type or mimetypes.guess_type(file.filename or "")[0]
        wait = process and not process_in_background
        upload = HostUpload(file.filename or "file", content, kind, meta or None, process and not wait)
        stored = await self._bridge.reach(self._store, id_of(user), upload, wait)
        return UploadedFile.model_validate(dict(stored))

    async def _store(self, user_id: str, upload: HostUpload, wait: bool) -> Mapping[str, Any]:
        files = self._bridge.host.files
        stored = await files.store(user_id, upload)
        processed = await files.process(str(stored["id"]), None) if wait else None
        return processed or stored

    async def get_file_by_id(self, id: str, user: Any = None, **_: Any) -> FileModel:
        """Return a file that the user may read; HTTPException 404 otherwise."""
        found = await self._bridge.reach(find_file_for, self._bridge.host, id, user)
        if found is None:
            raise load_web_module("fastapi").HTTPException(404, f"cannot find file {id!r}")
        return found

    async def get_file_content_by_id(self, id: str, user: Any = None, **_: Any) -> Any:
        """Return the content of a file as a FileResponse; HTTPException 404 as for the file."""
        found = await self.get_file_by_id(id, user)
        kind = (found.meta or {}).get("content_type")
        return load_web_module("starlette.responses").FileResponse(
            found.path, media_type=kind, filename=found.filename
        )

    @blocking
    async def upload_image(
        self,
        request: Any,
        image_data: bytes,
        content_type: str,
        metadata: Mapping[str, Any] | None = None,
        user: Any = None,
        **_: Any,
    ) -> AnswerText:
        """Store an image as a file of the user and return the URL path of its content."""
        del request
        suffix = mimetypes.guess_extension(content_type) or ""
        upload = HostUpload(f"generated-image{suffix}", image_data, content_type, dict(metadata or {}))
        stored = await self._store(id_of(user), upload, False)
        return AnswerText(ROUTES["get_file_content_by_id"].format(id=stored["id"]))


def load_b64_image_data(b64_str: str) -> AnswerTuple | None:
    """Return content and type of a base64 image, with or without `data:`; None when not base64."""
    head, comma, text = b64_str.partition(",")
    kind = head.removeprefix("data:").partition(";")[0] if comma else "image/png"
    try:
        return AnswerTuple((base64.b64decode(text if comma else head, validate=True), kind))
    except binascii.Error:
        return None


def load_url_image_data(url: str, headers: Mapping[str, str] | None = None) -> AnswerTuple:
    """Fetch an image, blocking this thread; return content and type. ValueError for another type."""
    reply = load_web_module("httpx").get(
        url, headers=dict(headers or {}), follow_redirects=True, timeout=FETCH_TIMEOUT
    )
    reply.raise_for_status()
    kind = str(reply.headers.get("content-type", "")).partition(";")[0]
    if not kind.startswith("image/"):
        raise ValueError(f"cannot use {url!r} as an image: its content type is {kind or 'missing'}")
    return AnswerTuple((reply.content, kind))


def get_image_data(data: str, headers: Mapping[str, str] | None = None) -> AnswerTuple | None:
    """Return content and type of an image given by URL or as base64."""
    if data.startswith(("http://", "https://")):
        return load_url_image_data(data, headers)
    return load_b64_image_data(data)


async def image_generations(*_: Any, **__: Any) -> Any:
    """Raise NotProvidedError: there is no image generation."""
    raise_not_provided(f"{IMAGES}.image_generations")


async def image_edits(*_: Any, **__: Any) -> Any:
    """Raise NotProvidedError: there is no image generation."""
    raise_not_provided(f"{IMAGES}.image_edits")


def make_file_routes(bridge: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.routers.files`."""
    uploads = UploadFunctions(bridge)
    return {
        "upload_file_handler": uploads.upload_file_handler,
        "upload_file": uploads.upload_file_handler,
        "get_file_by_id": uploads.get_file_by_id,
        "get_file_content_by_id": uploads.get_file_content_by_id,
    }


def make_image_routes(bridge: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.routers.images`."""
    return {
        "upload_image": UploadFunctions(bridge).upload_image,
        "load_b64_image_data": load_b64_image_data,
        "load_url_image_data": load_url_image_data,
        "get_image_data": get_image_data,
        "image_generations": image_generations,
        "image_edits": image_edits,
        "GenerateImageForm": GenerateImageForm,
        "CreateImageForm": GenerateImageForm,
        "EditImageForm": EditImageForm,
    }
