"""Interfaces of storage, extractors, embedding models and indexes that ingestion uses.

A change is committed when its method returns, or at the end of the enclosing `transactions.Transactor` block.
Stores create no ids and no timestamps. `find` returns None when no row matches.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Final, Protocol

from gatewayd.accounts.records import Actor
from gatewayd.ingest.records import (
    BlobContent,
    EmbeddingPurpose,
    EmbeddingSpace,
    ExtractionResult,
    File,
    FileStatus,
    IngestJob,
    ReceivedBytes,
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
        """Return the existing ones of these files, by id."""
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
        """Return one page of files, newest first, and the total count.

        `user_id` None selects all owners, `orphaned` the files whose owner's account is removed. `pattern`
        matches whole names, case-insensitively, with `*` for any text and `?` for any character; an empty
        pattern matches all.
        """
        ...

    async def change(self, file: File) -> bool:
        """Write every field of a file; False when it does not exist."""
        ...

    async def remove(self, file_id: str) -> bool:
        """Delete a file with its job, links, text, passages, vectors and lexical entries."""
        ...

    def ids(self) -> AsyncIterator[str]:
        """Yield the ids of all files."""
        ...

    def blob_keys(self) -> AsyncIterator[str]:
        """Yield the keys of the bytes of all files."""
        ...

    async def collections_of(self, file_id: str) -> Sequence[str]:
        """Return the ids of the collections that contain a file."""
        ...


class JobStore(Protocol):
    """The queue of files to process."""

    async def put(self, job: IngestJob) -> None:
        """Insert the job of a file, or replace it except for its fence."""
        ...

    async def find(self, file_id: str) -> IngestJob | None:
        """Return the job of a file."""
        ...

    async def waiting(self, now: int, limit: int) -> Sequence[tuple[QueueKey, str]]:
        """Return the due and free jobs, up to `limit` of each key, as (key, file id), oldest first per key.

        When a size class has very many jobs, the later ones of each owner may be missing.
        """
        ...

    async def lease(
        self, owner: str, file_ids: Sequence[str], *, now: int, until: int
    ) -> Sequence[IngestJob]:
        """Lease the due and free jobs among those of the given files to `owner`, and count an attempt.

        Two callers never get the same job. Returns the leased jobs after the change, oldest first.
        """
        ...

    async def renew(self, file_id: str, owner: str, until: int) -> bool:
        """Extend a lease; False when `owner` no longer holds it."""
        ...

    async def hold(self, job: IngestJob) -> bool:
        """Lock a job for the caller's transaction; False when its owner or its fence is another one now."""
        ...

    async def list_abandoned(self) -> Sequence[IngestJob]:
        """Return the leased jobs of dead nodes, and those whose lease is over, locked for the transaction.

        Jobs that are locked already are left out. Only for PostgreSQL, whose clock decides.
        """
        ...

    async def release(self, owner: str) -> None:
        """Release all leases of an owner and uncount their attempts.

        A clean stop does this; a start after a crash does not.
        """
        ...

    async def remove(self, file_id: str) -> bool:
        """Delete the job of a file that is completed or failed."""
        ...

    async def hasten(self, attempts: int, latest: int) -> None:
        """Set `not_before` of the free jobs with this number of attempts to `latest` where it is later."""
        ...

    async def list(self, *, leased: bool = False) -> Sequence[IngestJob]:
        """Return all jobs, or only the `leased` ones, oldest first."""
        ...

    async def count(self, *, leased: bool = False) -> int:
        """Return the number of jobs, or of the `leased` ones."""
        ...

    async def next_due(self, now: int) -> int | None:
        """Return the earliest time after `now` at which another job becomes due or free, None without one."""
        ...


class VectorReader(Protocol):
    """Reads the published vectors for the vector indexes."""

    def load(self, space: str, scope: SearchScope) -> AsyncIterator[VectorBatch]:
        """Yield the vectors of a scope by ascending passage id, independent of the order of linking."""
        ...

    async def load_file(self, space: str, scope: SearchScope, file_id: str) -> Sequence[VectorBatch]:
        """Return the batches of one file in a scope.

        Empty when the file is not in the scope, is not completed or has no vectors.
        """
        ...

    def load_ids(self, space: str, scope: SearchScope) -> AsyncIterator[tuple[str, bytes]]:
        """Yield the file id and the `ids` of each batch of `load`, without reading the vectors."""
        ...

    async def count_vectors(self, space: str, scope: SearchScope) -> int:
        """Return the number of vectors of a scope."""
        ...


class PassageStore(VectorReader, Protocol):
    """Texts, passages (chunks with an id) and their vectors.

    Staged passages of a file are invisible until `publish` replaces the published ones with them.
    """

    async def stage(
        self, file_id: str, extraction: ExtractionResult, check: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """Stage a text and its chunks for a file, replacing earlier staged ones; conflict without the file.

        A call that fails or is cancelled stages nothing. On PostgreSQL `check` runs first in the transaction.
        """
        ...

    async def is_staged(self, file_id: str) -> bool:
        """Return whether a text is staged for a file."""
        ...

    async def missing(self, file_id: str, space: str, limit: int) -> Sequence[tuple[int, str]]:
        """Return the ids and texts of up to `limit` passages without a vector, in order.

        These are the staged passages of the file if there are any, else the published ones.
        """
        ...

    async def add_vectors(self, space: str, batch: VectorBatch) -> None:
        """Store vectors of passages that have none in this space; those of removed files are dropped."""
        ...

    async def find_replaced(self, file_id: str) -> Sequence[tuple[str, str]]:
        """Return the links (collection id, file id) that publishing a file removes.

        A removed link has the same collection, origin and path as a link of the file.
        """
        ...

    async def prepare(self, file_id: str) -> None:
        """Do the slow work of a later `publish` in advance, outside of a transaction; search is unchanged."""
        ...

    async def publish(self, file: File) -> Sequence[str]:
        """Replace the passages of a file by the staged ones and write its record; return collection ids.

        The same transaction adds the passages to the lexical index of every collection that contains the
        file (their ids are returned), removes the links of `find_replaced`, and removes the job of the file.
        """
        ...

    async def unstage(self, file_id: str) -> None:
        """Delete the staged text and passages of a file."""
        ...

    async def find_text(self, file_id: str) -> str | None:
        """Return the published text of a file."""
        ...

    async def count(self, scope: SearchScope) -> int:
        """Return the number of published passages of a scope, with or without vectors."""
        ...

    async def find_twin(self, text_hash: str, space: str) -> str | None:
        """Return a completed file with this text hash whose passages all have vectors in the space."""
        ...

    async def copy_vectors(self, source_id: str, file_id: str, space: str) -> bool:
        """Copy the vectors of another file's passages to the staged passages of a file.

        Returns False and changes nothing unless both have passages with the same numbers, offsets and texts.
        """
        ...


class SpaceStore(Protocol):
    """The embedding spaces, one of which is active."""

    async def add(self, space: EmbeddingSpace) -> None:
        """Insert a space unless it exists."""
        ...

    async def list(self) -> Sequence[EmbeddingSpace]:
        """Return all spaces."""
        ...

    async def find_active(self) -> EmbeddingSpace | None:
        """Return the space that is searched, None before the first `activate`."""
        ...

    async def activate(self, name: str) -> None:
        """Make a space the one that is searched."""
        ...

    async def remove(self, name: str) -> None:
        """Delete a space and its vectors, in batches."""
        ...

    async def behind(self, name: str, limit: int) -> Sequence[str]:
        """Return the ids of up to `limit` completed files with passages that lack vectors in a space."""
        ...

    async def counts(self, name: str) -> tuple[int, int]:
        """Return the number of published passages with a vector in a space, and the number of all."""
        ...


WORKER_DIED: Final = "worker_died"
"""Error code of a document that killed the worker process reading it."""

OUT_OF_TIME: Final = "out_of_time"
"""Error code of a document whose extraction exceeded the time limit."""


class Extractor(Protocol):
    """Extracts text and chunks from a document, outside of the event loop.

    Raises GatewayError: invalid_request with a sentence about the document when a retry is useless (wrong
    type, encrypted, no text, a decompression bomb, over a limit), unavailable or upstream_unreachable when a
    retry may help (with the code WORKER_DIED when the worker process died), timeout with the code OUT_OF_TIME
    at the time limit.
    """

    async def extract(
        self, path: Path, name: str, content_type: str | None, key: QueueKey
    ) -> ExtractionResult:
        """Return the text of the document at `path`; `name` and `content_type` are hints.

        Waiting documents are scheduled fairly by `key`.
        """
        ...


class Embedder(Protocol):
    """Embeds texts.

    Raises GatewayError: not_configured when the model is not installed, unavailable, upstream_unreachable,
    rate_limited or timeout when a retry may help, upstream_failed for an invalid reply.
    """

    async def space(self) -> EmbeddingSpace:
        """Return the space of the vectors; the first call may send a request to the model."""
        ...

    async def embed(
        self, texts: Sequence[str], purpose: EmbeddingPurpose, key: QueueKey = OTHER_WORK
    ) -> bytes:
        """Return a vector of length 1 for each text, in order, as little-endian float32.

        Queries take precedence over passages. Passages are scheduled fairly by `key`, in batches.
        """
        ...


class VectorIndex(Protocol):
    """Nearest-neighbour search in a scope. The index is a cache of the database.

    All implementations pass the same conformance suite.
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
        """Return the cosines of the passages that are in the scope and have a vector in the space."""
        ...

    async def refresh(self, scope: SearchScope, file_id: str) -> None:
        """Reload the passages of a file in a scope after they were added, changed or removed; idempotent."""
        ...

    async def forget(self, scope: SearchScope) -> None:
        """Drop the index of a removed scope."""
        ...

    async def check(self, space: EmbeddingSpace, scope: SearchScope) -> Sequence[str]:
        """Compare with the database, repair differences, and return a sentence for each one."""
        ...


class LexicalIndex(Protocol):
    """Full-text search of passages; the database maintains it, so it is always current."""

    async def search(self, scope: SearchScope, query: str, limit: int) -> Sequence[SearchHit]:
        """Return the passages that match any word of a text, best first; every text is a valid query."""
        ...

    async def check(self, scope: SearchScope) -> Sequence[str]:
        """Compare a collection's full-text index with its passages, repair it, return a sentence for each
        difference."""
        ...


class BlobStore(Protocol):
    """The bytes of files, by key, in a folder or in an object store. A key is used once.

    Raises unavailable when the store cannot be reached. All implementations pass the same conformance suite.
    """

    is_shared: bool
    """Whether other daemons may use the store, so that bytes without a row may be theirs."""

    async def receive(self, key: str, stream: AsyncIterator[bytes], limit: int) -> ReceivedBytes:
        """Store the bytes of a stream; when this returns, they survive a power failure.

        Raises too_large after more than `limit` bytes (0 for no limit). Nothing is stored when this raises
        or is cancelled, or when the stream raises. A few mebibytes are in memory.
        """
        ...

    async def find(self, key: str) -> BlobContent | None:
        """Return the bytes of a key."""
        ...

    def local(self, key: str, digest: str = "") -> AbstractAsyncContextManager[Path]:
        """Lend a path of the bytes on this machine for the length of the block.

        A copy is compared with the digest, unless that is empty, and deleted afterwards.
        """
        ...

    async def keep_copy(self, key: str, digest: str = "") -> Path:
        """Return a path of the bytes on this machine; a copy is deleted after some dozens of others."""
        ...

    async def missing(self, keys: Iterable[str]) -> Sequence[str]:
        """Return the keys without bytes."""
        ...

    async def remove(self, keys: Iterable[str]) -> None:
        """Delete the bytes of keys; missing ones are ignored."""
        ...

    async def sweep(self, known: AsyncIterator[str]) -> int:
        """Delete the bytes that belong to no known key, unless the store is shared; return how many.

        Only for the start, before any upload.
        """
        ...

    async def sweep_old(self, known: AsyncIterator[str], before: int) -> int:
        """Delete the bytes from before a time that belong to no known key; return how many.

        At any time, if the row of an upload follows its bytes earlier than that.
        """
        ...

    async def find_orphans(self, known: AsyncIterator[str], before: int) -> Sequence[tuple[str, int]]:
        """Return the keys and sizes of the bytes from before a time that belong to no known key."""
        ...

    async def remove_orphan(self, key: str, before: int) -> Sequence[int]:
        """Delete bytes if they are still from before a time; return their size, nothing for newer ones."""
        ...

    async def find_abandoned(self, before: int) -> Sequence[int]:
        """Return the sizes of the unfinished uploads that were not written to since a time."""
        ...

    async def remove_abandoned(self, before: int) -> Sequence[int]:
        """Delete the unfinished uploads that were not written to since a time; return their sizes."""
        ...


class FileGrants(Protocol):
    """Access decisions for files: owners, exempt actors, and other actors through collections."""

    def is_exempt(self, actor: Actor) -> bool:
        """Return whether an actor has every permission on every file."""
        ...

    async def may(self, actor: Actor, file: File, permission: str) -> bool:
        """Return whether an actor has the permission (`read` or `write`) on a file."""
        ...
