"""What ingestion needs from storage, extractors, embedding models and indexes.

All changes are committed when a method returns, or, inside a block of `commits.Transactor`, when it ends.
Stores make no ids and no timestamps. `find` returns None when there is nothing.
"""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

from gatewayd.accounts.records import Actor
from gatewayd.ingest.records import (
    EmbeddingPurpose,
    EmbeddingSpace,
    ExtractionResult,
    File,
    FileStatus,
    IngestJob,
    SearchHit,
    SearchScope,
    VectorBatch,
)
from gatewayd.ingest.size_classes import OTHER_WORK, QueueKey


class FileStore(Protocol):
    """Files, without their bytes and passages."""

    async def add(self, file: File) -> None:
        """Insert a file."""
        ...

    async def find(self, file_id: str) -> File | None:
        """Return the file with this id."""
        ...

    async def find_many(self, file_ids: Sequence[str]) -> Mapping[str, File]:
        """Return those of the files that exist, by id."""
        ...

    async def list(
        self,
        *,
        user_id: str | None = None,
        orphaned: bool = False,
        pattern: str = "",
        status: FileStatus | None = None,
        offset: int = 0,
        limit: int | None = None,
    ) -> tuple[Sequence[File], int]:
        """Return one page of files, newest first, and the count of all.

        `user_id` None means everybody's, `orphaned` those whose owner's account is gone. `pattern` matches
        whole names in any case, `*` for any text and `?` for any character; all when it is empty.
        """
        ...

    async def change(self, file: File) -> bool:
        """Write every field of a file; False when it is gone."""
        ...

    async def remove(self, file_id: str) -> bool:
        """Delete a file with its job, links, text, passages, vectors and words."""
        ...

    def ids(self) -> AsyncIterator[str]:
        """Yield the ids of all files."""
        ...

    async def collections_of(self, file_id: str) -> Sequence[str]:
        """Return the ids of the collections that hold a file."""
        ...


class JobStore(Protocol):
    """The queue of files to process."""

    async def put(self, job: IngestJob) -> None:
        """Insert the job of a file, or replace it."""
        ...

    async def find(self, file_id: str) -> IngestJob | None:
        """Return the job of a file."""
        ...

    async def waiting(self, now: int, limit: int) -> Sequence[tuple[QueueKey, str]]:
        """Return the due and free jobs, up to `limit` of each key, as (key, file), those of one key oldest
        first.

        When there are very many of a size class, the later ones of each owner may be left out.
        """
        ...

    async def lease(
        self, owner: str, file_ids: Sequence[str], *, now: int, until: int
    ) -> Sequence[IngestJob]:
        """Take those jobs of some files that are due and free for `owner`, counting an attempt; no two
        callers get one.

        Returns them as they are afterwards, oldest first.
        """
        ...

    async def renew(self, file_id: str, owner: str, until: int) -> bool:
        """Hold a lease for longer; False when it is no longer the owner's."""
        ...

    async def release(self, owner: str) -> None:
        """Free all jobs of an owner and take back the attempt: what a clean stop does, and a start after a
        crash not."""
        ...

    async def remove(self, file_id: str) -> bool:
        """Delete a job: its file is completed or failed."""
        ...

    async def hasten(self, attempts: int, latest: int) -> None:
        """Let the free jobs of so many attempts be due at `latest` that would be due later."""
        ...

    async def list(self, *, leased: bool = False) -> Sequence[IngestJob]:
        """Return all jobs, or those that are `leased` to anybody, oldest first."""
        ...

    async def count(self) -> int:
        """Return how many jobs there are."""
        ...

    async def next_due(self, now: int) -> int | None:
        """Return when the next of the jobs can be leased that cannot be now, None when there is none."""
        ...


class VectorReader(Protocol):
    """The published vectors, as the indexes read them."""

    def load(self, space: str, scope: SearchScope) -> AsyncIterator[VectorBatch]:
        """Yield the vectors of a scope, the same for all of its files however they were linked; oldest ids
        first."""
        ...

    async def load_file(self, space: str, scope: SearchScope, file_id: str) -> Sequence[VectorBatch]:
        """Return what `load` yields of one file; empty when it is not in the scope, not completed or has no
        vectors."""
        ...

    def load_ids(self, space: str, scope: SearchScope) -> AsyncIterator[tuple[str, bytes]]:
        """Yield what `load` does without reading the vectors: the file and the `ids` of each batch."""
        ...

    async def count_vectors(self, space: str, scope: SearchScope) -> int:
        """Return how many vectors a scope has."""
        ...


class PassageStore(VectorReader, Protocol):
    """Texts, passages (chunks with an id) and their vectors.

    What is staged for a file is invisible until `publish` puts it in the place of what was published before.
    """

    async def stage(self, file_id: str, extraction: ExtractionResult) -> None:
        """Keep a text and its chunks for a file, instead of what was staged for it; conflict when it is gone.

        A call that breaks off has staged nothing.
        """
        ...

    async def is_staged(self, file_id: str) -> bool:
        """Tell whether a text is staged for a file."""
        ...

    async def missing(self, file_id: str, space: str, limit: int) -> Sequence[tuple[int, str]]:
        """Return the ids and texts of up to `limit` passages, staged if any are, that lack a vector, in
        order."""
        ...

    async def add_vectors(self, space: str, batch: VectorBatch) -> None:
        """Keep vectors for passages that have none in this space; what a removed file leaves is dropped
        silently."""
        ...

    async def find_replaced(self, file_id: str) -> Sequence[tuple[str, str]]:
        """Return the links that publishing a file removes, because it takes over their places: (collection,
        file)."""
        ...

    async def prepare(self, file_id: str) -> None:
        """Make a `publish` that follows short; not inside a transaction. Nothing that is found changes."""
        ...

    async def publish(self, file: File) -> Sequence[str]:
        """Make what is staged the passages of a file, drop the former ones, and write the record.

        In the same transaction the words of the passages enter every collection that holds the file, those
        collections are returned (ids), and links whose place (collection, origin, path) the file takes over
        are removed. So is the job of the file.
        """
        ...

    async def unstage(self, file_id: str) -> None:
        """Drop what is staged for a file."""
        ...

    async def find_text(self, file_id: str) -> str | None:
        """Return the published text of a file."""
        ...

    async def count(self, scope: SearchScope) -> int:
        """Return how many published passages a scope has, with vectors or without."""
        ...

    async def find_twin(self, text_hash: str, space: str) -> str | None:
        """Return a completed file with this text hash whose passages all have vectors in the space."""
        ...

    async def copy_vectors(self, source_id: str, file_id: str, space: str) -> bool:
        """Give the staged passages of a file the vectors of a twin's; False, changing nothing, when they do
        not match.

        They match when the passages have the same numbers, offsets and texts.
        """
        ...


class SpaceStore(Protocol):
    """Which embedding spaces there are, and which one is searched."""

    async def add(self, space: EmbeddingSpace) -> None:
        """Insert a space; nothing when it is known."""
        ...

    async def list(self) -> Sequence[EmbeddingSpace]:
        """Return all spaces."""
        ...

    async def find_active(self) -> EmbeddingSpace | None:
        """Return the space that is searched, None before the first."""
        ...

    async def activate(self, name: str) -> None:
        """Search in this space from now on."""
        ...

    async def remove(self, name: str) -> None:
        """Delete a space and its vectors, a few at a time."""
        ...

    async def behind(self, name: str, limit: int) -> Sequence[str]:
        """Return up to `limit` completed files with passages that lack vectors in a space."""
        ...

    async def counts(self, name: str) -> tuple[int, int]:
        """Return how many published passages have a vector in a space, and how many there are."""
        ...


WORKER_DIED: Final = "worker_died"
"""The code of the error for a document that ended the process which read it."""

OUT_OF_TIME: Final = "out_of_time"
"""The code of the error for a document whose reading took longer than it may."""


class Extractor(Protocol):
    """Turns a document into text and chunks, outside of the event loop.

    Raises GatewayError: invalid_request with a sentence about the document when another try cannot help
    (wrong type, encrypted, no text, a bomb, over a limit), unavailable or upstream_unreachable when it can
    (with the code WORKER_DIED when the worker ended), timeout with the code OUT_OF_TIME when the time limit
    was reached.
    """

    async def extract(
        self, path: Path, name: str, content_type: str | None, key: QueueKey
    ) -> ExtractionResult:
        """Return the text of the document at `path`; `name` and `content_type` are hints.

        Documents that wait for each other take turns by `key`.
        """
        ...


class Embedder(Protocol):
    """Turns texts into vectors.

    Raises GatewayError: not_configured when the model is not installed, unavailable, upstream_unreachable,
    rate_limited or timeout when another try may help, upstream_failed when the answer is no answer.
    """

    async def space(self) -> EmbeddingSpace:
        """Return the space of the vectors; may ask the model once."""
        ...

    async def embed(
        self, texts: Sequence[str], purpose: EmbeddingPurpose, key: QueueKey = OTHER_WORK
    ) -> bytes:
        """Return a vector of length 1 for each text, in order, as little-endian float32.

        Queries go first. Passages take turns by `key`, some texts at a time.
        """
        ...


class VectorIndex(Protocol):
    """Finds the nearest vectors in a scope. What it keeps is a cache of the database.

    Every implementation passes one conformance suite.
    """

    async def search(
        self, space: EmbeddingSpace, scope: SearchScope, vector: bytes, limit: int
    ) -> Sequence[SearchHit]:
        """Return the passages most similar to a vector of length 1, best first; scores are cosines, -1 to
        1."""
        ...

    async def similarities(
        self, space: EmbeddingSpace, scope: SearchScope, vector: bytes, passage_ids: Sequence[int]
    ) -> Mapping[int, float]:
        """Return the cosines of those of the passages that have a vector in the space and are in the
        scope."""
        ...

    async def refresh(self, scope: SearchScope, file_id: str) -> None:
        """Learn that a file's passages in a scope came, changed or went; idempotent."""
        ...

    async def forget(self, scope: SearchScope) -> None:
        """Drop everything about a scope: it is gone."""
        ...

    async def check(self, space: EmbeddingSpace, scope: SearchScope) -> Sequence[str]:
        """Compare with the database, mend what differs, and return a sentence for each difference."""
        ...


class LexicalIndex(Protocol):
    """Finds passages by their words; kept by the database itself, so never behind."""

    async def search(self, scope: SearchScope, query: str, limit: int) -> Sequence[SearchHit]:
        """Return the passages that match any word of a text, best first; any text is a good query."""
        ...

    async def check(self, scope: SearchScope) -> Sequence[str]:
        """Compare the words of a collection with its passages, mend, and return a sentence for each
        difference."""
        ...


class BlobStore(Protocol):
    """The bytes of files, by file id."""

    def path(self, file_id: str) -> Path:
        """Return where the bytes of a file are."""
        ...

    async def remove(self, file_ids: Iterable[str]) -> None:
        """Delete the bytes of files; what is not there is fine."""
        ...


class FileGrants(Protocol):
    """Who may use a file: its owner, those whom access lists do not bind, and others through collections."""

    def is_exempt(self, actor: Actor) -> bool:
        """Tell whether an actor may do everything with every file."""
        ...

    async def may(self, actor: Actor, file: File, permission: str) -> bool:
        """Tell whether an actor has the permission (`read` or `write`) on a file."""
        ...
