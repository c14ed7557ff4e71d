"""Interfaces of storage and rerankers that collections and retrieval use.

The rules of `ingest.interfaces` apply here, too.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from gatewayd.ingest.records import File
from gatewayd.knowledge.records import Collection, CollectionDirectory, CollectionLink, StoredPassage


class CollectionStore(Protocol):
    """Collections with their access lists, links and directories."""

    async def add(self, collection: Collection) -> None:
        """Insert a collection with its grants and an empty lexical index."""
        ...

    async def find(self, collection_id: str) -> Collection | None:
        """Return the collection with this id and its grants; `file_count` is None."""
        ...

    async def find_by_name(self, name: str) -> Sequence[Collection]:
        """Return the collections of exactly this name, oldest first; `file_count` is None."""
        ...

    async def list(
        self,
        *,
        reader: tuple[str, Sequence[str]] | None = None,
        orphaned: bool = False,
        query: str = "",
        offset: int = 0,
        limit: int | None = None,
    ) -> tuple[Sequence[Collection], int]:
        """Return one page of collections with `file_count`, last changed first, and the total count.

        `reader` (user id, group ids) selects the collections that the user owns or has any grant on; None
        selects all. `orphaned` selects those whose owner's account is removed. `query` is a part of the name
        or description, case-insensitive.
        """
        ...

    async def holding(self, file_ids: Sequence[str]) -> Mapping[str, Sequence[Collection]]:
        """Return the collections that contain each of the files, oldest link first; `file_count` is None."""
        ...

    async def count_files(self, collection_id: str) -> int:
        """Return the number of completed files of a collection; slow when many are not completed."""
        ...

    async def has_files(self, collection_id: str) -> bool:
        """Return whether a collection has a completed file."""
        ...

    async def change(self, collection: Collection) -> bool:
        """Write owner, name, description, meta, grants and updated_at; False when it does not exist."""
        ...

    async def remove(self, collection_id: str) -> bool:
        """Delete a collection with its grants, links, directories and lexical index, but not its files."""
        ...

    async def link(self, link: CollectionLink) -> bool:
        """Link a file to a collection, and index its words when it is completed; False when it was linked.

        An existing link takes over path, origin and directory, including empty ones. Raises not_found without
        the collection.
        """
        ...

    async def unlink(self, collection_id: str, file_ids: Sequence[str]) -> Sequence[str]:
        """Unlink files and remove their words from the index; return the ids of those that were linked."""
        ...

    async def find_links(self, collection_id: str, file_ids: Sequence[str]) -> Mapping[str, CollectionLink]:
        """Return the links of the given files in the collection, by file id."""
        ...

    async def list_files(
        self,
        collection_id: str,
        *,
        origin: str | None = None,
        directory_id: str | None = None,
        query: str = "",
        offset: int = 0,
        limit: int | None = None,
    ) -> tuple[Sequence[tuple[CollectionLink, File]], int]:
        """Return one page of files in any status, in the order of linking, and the total count.

        `origin` and `directory_id` restrict the files where not None; an empty `directory_id` selects those
        in no directory. `query` is a part of the name, case-insensitive.
        """
        ...

    async def find_same_text(self, collection_id: str, text_hash: str, *, but: str) -> str | None:
        """Return a file other than `but` in the collection that has this text and no path, None without."""
        ...

    async def add_directory(self, directory: CollectionDirectory) -> None:
        """Insert a directory; conflict when its parent has one of this name, not_found without the parent."""
        ...

    async def list_directories(self, collection_id: str) -> Sequence[CollectionDirectory]:
        """Return the directories of a collection by id: parents come first, since ids are ordered by time."""
        ...

    async def count_directories(self, collection_id: str) -> int:
        """Return the number of directories of a collection."""
        ...

    async def find_ancestors(self, collection_id: str, directory_id: str) -> Sequence[CollectionDirectory]:
        """Return a directory and its ancestors, the highest first; empty without the directory."""
        ...

    async def move_files(
        self, collection_id: str, file_ids: Sequence[str], directory_id: str | None
    ) -> Sequence[str]:
        """Move files of a collection into a directory (None: the root); return the ids of the moved ones.

        Files without an origin lose their paths, so that another file can take the path.
        """
        ...

    async def clear_paths(self, collection_id: str, directory_ids: Sequence[str]) -> None:
        """Clear the paths of the files without an origin in directories that were moved."""
        ...

    async def change_directory(self, directory: CollectionDirectory) -> bool:
        """Write name, parent and updated_at; False when the directory does not exist.

        Raises the errors of `add_directory`, and conflict when the directory would be inside itself.
        """
        ...

    async def remove_directories(self, collection_id: str, directory_ids: Sequence[str]) -> Sequence[str]:
        """Delete directories and all below them; return the ids of their files, which stay linked."""
        ...


class PassageReader(Protocol):
    """Reads passages by id."""

    async def read(self, passage_ids: Sequence[int]) -> Mapping[int, StoredPassage]:
        """Return the published ones of these passages, by id."""
        ...


class Reranker(Protocol):
    """Scores passages by relevance to a query; raises the errors of `ingest.interfaces.Embedder`."""

    async def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return a score from 0 to 1 for each text, in order."""
        ...
