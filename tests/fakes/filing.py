"""Records of files and collections with everything filled in that a test does not care about."""

from typing import Any

from gatewayd.ingest.records import File, Job
from gatewayd.knowledge.records import Collection, Directory, Link


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


def job(file_id: str, **fields: Any) -> Job:
    """Return a job that is free and due."""
    return Job(file_id, **fields)


def collection(collection_id: str, **fields: Any) -> Collection:
    """Return a collection that differs from others by its id."""
    return Collection(collection_id, **{"user_id": "owner", "name": f"Collection {collection_id}", **fields})


def link(collection_id: str, file_id: str, **fields: Any) -> Link:
    """Return a link at no path."""
    return Link(collection_id, file_id, **{"user_id": "owner", **fields})


def directory(directory_id: str, parent_id: str | None = None, **fields: Any) -> Directory:
    """Return a directory of the collection c1."""
    values = {"collection_id": "c1", "name": directory_id, "user_id": "owner", **fields}
    return Directory(directory_id, parent_id=parent_id, **values)
