"""What a collection is made of, and what a search in it finds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gatewayd.catalog.records import Grant


@dataclass(frozen=True, slots=True)
class Collection:
    """A named set of files (2.7). Timestamps are epoch seconds; `file_count` counts completed files, None
    where nobody counted."""

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

    `path` is where the file lies for the client that keeps the collection in step (for example
    `guide/install.md`), empty when nobody does; `origin` tells such clients apart: "" for those of 11.4, the
    directory for `gatewayctl ingest`.
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
    """A directory of a collection, as sync clients make them (11.4)."""

    id: str
    collection_id: str
    parent_id: str | None
    name: str
    user_id: str
    updated_at: int = 0
    created_at: int = 0


@dataclass(frozen=True, slots=True)
class StoredPassage:
    """A passage as it is kept."""

    id: int
    file_id: str
    number: int
    text: str
    start: int
    page: int | None = None
    heading: str | None = None


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage that was found; `score` is 0 to 1 and orders one search.

    `similarity` is (cosine + 1) / 2, None without a vector. Ranks count from 1, None where that search did
    not find it. `dense` is the cosine and `lexical` the raw word score behind the ranks. `path` is where the
    file lies in the collection that was searched, "" where nobody said.
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
