"""What collections and retrieval need from storage and from rerankers.

The rules of `ingest.interfaces` hold here, too.
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
        """Return the collection with this id and its grants, its files not counted."""
        ...

    async def find_by_name(self, name: str) -> Sequence[Collection]:
        """Return the collections of exactly this name, oldest first, their files not counted."""
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
        """Return one page of collections with their files counted, last changed first, and the count of all.

        `reader` (user id, group ids) limits them to those the user owns or has any grant on, None to nothing.
        `orphaned` are those whose owner's account is gone. `query` is part of the name or description, in any
        case.
        """
        ...

    async def holding(self, file_ids: Sequence[str]) -> Mapping[str, Sequence[Collection]]:
        """Return the collections that hold each of the files, oldest link first, their files not counted."""
        ...

    async def count_files(self, collection_id: str) -> int:
        """Return how many completed files a collection has; slow where many are not completed."""
        ...

    async def has_files(self, collection_id: str) -> bool:
        """Tell whether a collection has a completed file."""
        ...

    async def change(self, collection: Collection) -> bool:
        """Write owner, name, description, meta, grants and updated_at; False when it is gone."""
        ...

    async def remove(self, collection_id: str) -> bool:
        """Delete a collection with its grants, links, directories and words; files stay."""
        ...

    async def link(self, link: CollectionLink) -> bool:
        """Put a file into a collection, with its words when it is completed; False when it is in already.

        A file that is in already keeps its link but takes over path, origin and directory, empty ones too.
        Not_found without the collection.
        """
        ...

    async def unlink(self, collection_id: str, file_ids: Sequence[str]) -> Sequence[str]:
        """Take files out, with their words; return those that were in."""
        ...

    async def find_links(self, collection_id: str, file_ids: Sequence[str]) -> Mapping[str, CollectionLink]:
        """Return the links of those of the files that are in the collection, by file id."""
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
        """Return one page of files in any status, in the order of linking, and the count of all.

        `origin` and `directory_id` limit them where not None, an empty `directory_id` to those in none;
        `query` is part of the name, in any case.
        """
        ...

    async def find_same_text(self, collection_id: str, text_hash: str, *, but: str) -> str | None:
        """Return another file than `but` in the collection that has this text, and lies at no path."""
        ...

    async def add_directory(self, directory: CollectionDirectory) -> None:
        """Insert a directory; conflict when its parent has one of this name, not_found without the parent."""
        ...

    async def list_directories(self, collection_id: str) -> Sequence[CollectionDirectory]:
        """Return the directories of a collection, parents before children where ids are ordered in time."""
        ...

    async def count_directories(self, collection_id: str) -> int:
        """Return how many directories a collection has."""
        ...

    async def find_line(self, collection_id: str, directory_id: str) -> Sequence[CollectionDirectory]:
        """Return a directory of a collection and those above it, the highest first; none without it."""
        ...

    async def move_files(
        self, collection_id: str, file_ids: Sequence[str], directory_id: str | None
    ) -> Sequence[str]:
        """Put files of a collection into a directory, None for none; return those that are in the collection.

        Files that belong to no origin lose their paths: another file may come there.
        """
        ...

    async def unplace(self, collection_id: str, directory_ids: Sequence[str]) -> None:
        """Take the paths of the files in directories that belong to no origin: the directories moved."""
        ...

    async def change_directory(self, directory: CollectionDirectory) -> bool:
        """Write name, parent and updated_at; False when it is gone.

        Raises as `add_directory` does, and conflict when it would be inside itself.
        """
        ...

    async def remove_directories(self, collection_id: str, directory_ids: Sequence[str]) -> Sequence[str]:
        """Delete directories with those below them; return the ids of the files in them, which stay
        linked."""
        ...


class PassageReader(Protocol):
    """Reads passages that were found."""

    async def read(self, passage_ids: Sequence[int]) -> Mapping[int, StoredPassage]:
        """Return those of the published passages that exist, by id."""
        ...


class Reranker(Protocol):
    """Orders passages by how well they answer; failures as in `ingest.interfaces.Embedder`."""

    async def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return a score from 0 to 1 for each text, in order."""
        ...
