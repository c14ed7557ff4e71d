"""Uploaded files, collections of them, and the directories of collections."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from gatewayd.accounts.texts import MAX_NAME, clean, clean_object
from gatewayd.errors import GatewayError
from gatewayd.imports.accounts import MAX_DESCRIPTION_CHARACTERS, check_id
from gatewayd.imports.rows import ForeignRow, plain_text, try_read
from gatewayd.ingest.upload import MAX_NAME_CHARACTERS, clean_name, last_component
from gatewayd.knowledge.records import Collection, CollectionDirectory

IMAGES: Final = "image/"
UNNAMED: Final = "file"
MAX_NAME_BYTES: Final = 255


@dataclass(frozen=True, slots=True)
class ForeignFile:
    """An uploaded file.

    `stored_names` are the names that its bytes may have in the directory of uploads, without directories.
    `process` is whether it has text to search.
    """

    id: str
    user_id: str
    name: str
    content_type: str | None
    stored_names: tuple[str, ...]
    data: dict[str, Any]
    checksum: str | None
    process: bool
    created_at: int
    changes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ForeignCollection:
    """A collection without its access list; older versions keep the ids of its files in its row."""

    collection: Collection
    file_ids: tuple[str, ...]
    changes: tuple[str, ...]


def read_file(row: ForeignRow, owner_id: str, now: int) -> ForeignFile:
    """Return a file; raise invalid_request without a usable id."""
    changes: list[str] = []
    file_id = check_id(row.text("id"))
    meta = row.optional("meta", changes)
    given = row.text("filename") or plain_text(meta.get("name"))
    content_type = meta.get("content_type")
    data = meta.get("data")
    stored = [last_component(row.text("path")), f"{file_id}_{given}"]
    name: str = try_read(lambda: clean_name(given[-MAX_NAME_CHARACTERS:]), changes, UNNAMED)
    kind = content_type if isinstance(content_type, str) else None
    return ForeignFile(
        id=file_id,
        user_id=owner_id,
        name=name,
        content_type=kind,
        stored_names=tuple(dict.fromkeys(each for each in stored if is_file_name(each))),
        data=try_read(lambda: clean_object(data, "data"), changes, {}) if isinstance(data, dict) else {},
        checksum=(plain_text(meta.get("file_hash")) or row.text("hash"))[:MAX_NAME_CHARACTERS] or None,
        process=not (kind or "").startswith(IMAGES),
        created_at=row.moment("created_at", now),
        changes=tuple(changes),
    )


def is_file_name(name: str) -> bool:
    """Tell whether a text names an entry of a directory, and nothing outside of it."""
    is_entry = name not in {"", ".", ".."} and "/" not in name and "\0" not in name
    return is_entry and len(name.encode("utf-8", "replace")) <= MAX_NAME_BYTES


def read_collection(row: ForeignRow, owner_id: str, now: int) -> ForeignCollection:
    """Return a collection; raise invalid_request without a usable id or name."""
    changes: list[str] = []
    created_at = row.moment("created_at", now)
    collection = Collection(
        id=check_id(row.text("id")),
        user_id=owner_id,
        name=clean(row.text("name")[:MAX_NAME], "name"),
        description=row.text("description").strip()[:MAX_DESCRIPTION_CHARACTERS],
        meta=try_read(lambda: clean_object(row.object("meta"), "meta"), changes, {}),
        updated_at=row.moment("updated_at", created_at),
        created_at=created_at,
    )
    return ForeignCollection(collection, _listed_files(row, changes), tuple(changes))


def read_directory(row: ForeignRow, owner_id: str, now: int) -> CollectionDirectory:
    """Return a directory of a collection; raise invalid_request without a usable id or name."""
    created_at = row.moment("created_at", now)
    return CollectionDirectory(
        id=check_id(row.text("id")),
        collection_id=row.text("knowledge_id"),
        parent_id=row.text("parent_id") or None,
        name=clean_name(row.text("name"), param="name"),
        user_id=owner_id,
        updated_at=row.moment("updated_at", created_at),
        created_at=created_at,
    )


def _listed_files(row: ForeignRow, changes: list[str]) -> tuple[str, ...]:
    try:
        listed: Sequence[Any] = row.object("data").get("file_ids") or ()
    except GatewayError as error:
        changes.append(error.message)
        return ()
    return tuple(dict.fromkeys(each for each in listed if isinstance(each, str)))
