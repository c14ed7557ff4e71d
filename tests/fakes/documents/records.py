"""Records of files and collections with everything filled in that a test does not care about."""

from typing import Any

from gatewayd.ingest.records import File, IngestJob
from gatewayd.knowledge.records import Collection, CollectionDirectory, CollectionLink


def file(file_id: str, **fields: Any) -> File:
    """Return a stored file that differs from others by its id."""
    values = {
        "user_id": "owner",
        "name": f"{file_id}.txt",
        "size": 1,
        "digest": f"digest of {file_id}",
        "checksum": f"digest of {file_id}",
    }
    return File(file_id, **{**values, **fields})


def job(file_id: str, **fields: Any) -> IngestJob:
    """Return a job that is free and due."""
    return IngestJob(file_id, **fields)


def collection(collection_id: str, **fields: Any) -> Collection:
    """Return a collection that differs from others by its id."""
    return Collection(collection_id, **{"user_id": "owner", "name": f"Collection {collection_id}", **fields})


def link(collection_id: str, file_id: str, **fields: Any) -> CollectionLink:
    """Return a link at no path."""
    return CollectionLink(collection_id, file_id, **{"user_id": "owner", **fields})


def directory(directory_id: str, parent_id: str | None = None, **fields: Any) -> CollectionDirectory:
    """Return a directory of the collection c1."""
    values = {"collection_id": "c1", "name": directory_id, "user_id": "owner", **fields}
    return CollectionDirectory(directory_id, parent_id=parent_id, **values)
