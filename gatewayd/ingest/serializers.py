"""Files as clients of this API family see them (2.6; peer-compatible keys)."""

from typing import Any

from gatewayd.ingest.records import File, FileStatus

JsonObject = dict[str, Any]


def render_file(file: File, text: str | None = None) -> JsonObject:
    """Return a file; `data` says how far it is and, where a `text` is given, holds that."""
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
    """Return what a collection tells of a file in it."""
    return {
        "id": file.id,
        "hash": file.text_hash,
        "meta": _meta(file),
        "created_at": file.created_at,
        "updated_at": file.updated_at,
    }


def render_status(file: File) -> JsonObject:
    """Return the status object (2.6); what is only stored counts as pending."""
    status = FileStatus.PENDING if file.status is FileStatus.STORED else file.status
    shown: JsonObject = {"status": status.value}
    if file.status is FileStatus.FAILED:
        shown["error"] = file.error
    return shown


def file_warning(file: File) -> str | None:
    """Return a sentence about what of a file cannot be found, None when nothing is known to be missing."""
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
