"""Records of collections, their links and directories, and of passages."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gatewayd.catalog.records import Grant


@dataclass(frozen=True, slots=True)
class Collection:
    """A named set of files. Timestamps are epoch seconds.

    `file_count` is the number of completed files, None where the store does not count them.
    """

    id: str
    user_id: str
    name: str
    description: str = ""
    meta: Mapping[str, Any] = field(default_factory=dict)
    grants: tuple[Grant, ...] = ()
    file_count: int | None = None
    updated_at: int = 0
    created_at: int = 0


@dataclass(frozen=True, slots=True)
class CollectionLink:
    """A file in a collection.

    `path` is the path of the file in the tree of the client that synchronises the collection (for example
    `guide/install.md`), empty without such a client. `origin` distinguishes these clients: "" for sync
    clients over HTTP, the directory for `gatewayctl ingest`.
    """

    collection_id: str
    file_id: str
    user_id: str
    origin: str = ""
    path: str = ""
    directory_id: str | None = None
    created_at: int = 0


@dataclass(frozen=True, slots=True)
class CollectionDirectory:
    """A directory of a collection, created by a sync client."""

    id: str
    collection_id: str
    parent_id: str | None
    name: str
    user_id: str
    updated_at: int = 0
    created_at: int = 0


@dataclass(frozen=True, slots=True)
class StoredPassage:
    """A stored passage; `start` is its offset in the text of the file, in characters."""

    id: int
    file_id: str
    number: int
    text: str
    start: int
    page: int | None = None
    heading: str | None = None


@dataclass(frozen=True, slots=True)
class Passage:
    """A found passage; `score` is 0 to 1 and comparable within one search.

    `similarity` is (cosine + 1) / 2, None without a vector. Ranks count from 1, None where that search did
    not find it. `dense` is the cosine and `lexical` the raw word score behind the ranks. `path` is the path
    of the file in the searched collection, "" without one.
    """

    stored: StoredPassage
    file_name: str
    file_hash: str
    owner_id: str
    score: float
    similarity: float | None = None
    dense: float | None = None
    lexical: float | None = None
    dense_rank: int | None = None
    lexical_rank: int | None = None
    path: str = ""
