"""Files and collections as clients of this API family see them (2.6, 2.7; peer-compatible keys)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gatewayd.accounts.records import User
from gatewayd.accounts.users import Users
from gatewayd.catalog.records import Grant
from gatewayd.ingest.records import File, FileStatus
from gatewayd.knowledge.citations import passage_metadata
from gatewayd.knowledge.records import Collection
from gatewayd.knowledge.retrieval import Found

Shown = dict[str, Any]


def show_file(file: File, text: str | None = None) -> Shown:
    """Return a file; `data` says how far it is and, where a `text` is given, holds that."""
    data: Shown = {} if file.status is FileStatus.STORED else show_status(file)
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


def show_metadata(file: File) -> Shown:
    """Return what a collection tells of a file in it."""
    return {
        "id": file.id,
        "hash": file.text_hash,
        "meta": _meta(file),
        "created_at": file.created_at,
        "updated_at": file.updated_at,
    }


def show_status(file: File) -> Shown:
    """Return the status object (2.6); what is only stored counts as pending."""
    status = FileStatus.PENDING if file.status is FileStatus.STORED else file.status
    shown: Shown = {"status": status.value}
    if file.status is FileStatus.FAILED:
        shown["error"] = file.error
    return shown


def show_collection(collection: Collection) -> Shown:
    """Return a collection without its files."""
    return {
        "id": collection.id,
        "user_id": collection.user_id,
        "name": collection.name,
        "description": collection.description,
        "meta": dict(collection.meta) or None,
        "access_grants": [show_grant(grant, collection.id) for grant in collection.grants],
        "created_at": collection.created_at,
        "updated_at": collection.updated_at,
    }


def show_grant(grant: Grant, collection_id: str) -> Shown:
    """Return one row of an access list (6.6)."""
    return {
        "principal_type": grant.principal_type,
        "principal_id": grant.principal_id,
        "permission": grant.permission,
        "resource_type": "knowledge",
        "resource_id": collection_id,
    }


def show_owner(user: User) -> Shown:
    """Return what lists tell of an owner."""
    return {"id": user.id, "name": user.name, "role": user.shown_role.value, "email": user.email}


def show_found(found: Found) -> Shown:
    """Return what a search found in the shape of 1.10: one list in each list, best first.

    `warnings` stands only where something could not be done.
    """
    passages = found.passages
    shown: Shown = {
        "ids": [[str(each.stored.id) for each in passages]],
        "documents": [[each.stored.text for each in passages]],
        "metadatas": [[passage_metadata(each, found.space) for each in passages]],
        "distances": [[each.score for each in passages]],
    }
    if found.warnings:
        shown["warnings"] = list(found.warnings)
    return shown


@dataclass(frozen=True, slots=True)
class Owners:
    """Finds the owners of what a page lists; a deleted one is None."""

    users: Users

    async def shown(self, ids: Iterable[str]) -> Mapping[str, Shown | None]:
        """Return the owners by id."""
        found = {user_id: await self.users.find(user_id) for user_id in dict.fromkeys(ids)}
        return {user_id: None if user is None else show_owner(user) for user_id, user in found.items()}


def _meta(file: File) -> Shown:
    return {
        "name": file.name,
        "content_type": file.content_type,
        "size": file.size,
        "file_hash": file.checksum,
        "data": dict(file.data),
    }
