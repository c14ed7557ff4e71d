"""Serializers of files, with the keys that clients of Open WebUI expect."""

from typing import Any

from gatewayd.ingest.records import File, FileStatus

JsonObject = dict[str, Any]


def render_file(file: File, text: str | None = None) -> JsonObject:
    """Return the JSON of a file; `data` contains its status and, if a `text` is passed, its content."""
    data: JsonObject = {} if file.status is FileStatus.STORED else render_status(file)
    if text is not None:
        data["content"] = text
    return {
        "id": file.id,
        "user_id": file.user_id,
        "hash": file.text_hash,
        "filename": file.name,
        "data": data,
        "meta": _meta(file),
        "created_at": file.created_at,
        "updated_at": file.updated_at,
    }


def render_metadata(file: File) -> JsonObject:
    """Return the JSON of a file inside a collection."""
    return {
        "id": file.id,
        "hash": file.text_hash,
        "meta": _meta(file),
        "created_at": file.created_at,
        "updated_at": file.updated_at,
    }


def render_status(file: File) -> JsonObject:
    """Return the status object of a file; a stored file has the status pending."""
    status = FileStatus.PENDING if file.status is FileStatus.STORED else file.status
    rendered: JsonObject = {"status": status.value}
    if file.status is FileStatus.FAILED:
        rendered["error"] = file.error
    return rendered


def file_warning(file: File) -> str | None:
    """Return a warning about pages of a file without text, None without such pages."""
    if not file.blank_pages:
        return None
    return f"{file.blank_pages} of its {file.pages} pages have no text (scanned?)"


def _meta(file: File) -> JsonObject:
    meta = {
        "name": file.name,
        "content_type": file.content_type,
        "size": file.size,
        "file_hash": file.checksum,
        "data": dict(file.data),
    }
    return {**meta, "pages": file.pages, "blank_pages": file.blank_pages} if file.blank_pages else meta
