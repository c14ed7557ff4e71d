"""Records of ingestion: files, jobs, chunks, embedding spaces, vectors and search hits."""

import hashlib
import sys
from array import array
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

ID_BYTES: Final = 8
MARK_CHARACTERS: Final = 12


class FileStatus(StrEnum):
    """Status of a file (gatewayd-documents(7), STATES)."""

    # Stored only: uploaded with `process=false`.
    STORED = "stored"
    # Waiting for a worker, or being processed.
    PENDING = "pending"
    # Its passages are searchable.
    COMPLETED = "completed"
    # It has no passages; `File.error` is the reason.
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class File:
    """A document. Timestamps are epoch seconds, `size` bytes.

    `name` is for display and never a path. `digest` is the SHA-256 of the bytes in hexadecimal; `checksum` is
    the client's identifier of the version, by default the digest. `text_hash` is the SHA-256 of the extracted
    text, None before the extraction. `data` is the client's own metadata. `error` is a sentence for the
    owner, set exactly when the status is failed. `blank_pages` is the number of pages or slides without text.
    `blob` is the key of the bytes, "" if it is the id.
    """

    id: str
    user_id: str
    name: str
    size: int
    digest: str
    checksum: str
    content_type: str | None = None
    status: FileStatus = FileStatus.STORED
    error: str | None = None
    text_hash: str | None = None
    characters: int = 0
    chunks: int = 0
    pages: int | None = None
    blank_pages: int = 0
    data: Mapping[str, Any] = field(default_factory=dict)
    blob: str = ""
    updated_at: int = 0
    created_at: int = 0

    @property
    def blob_key(self) -> str:
        """The key under which the blob store has the bytes."""
        return self.blob or self.id


@dataclass(frozen=True, slots=True)
class ReceivedBytes:
    """Size of a blob that survives a power failure, and its SHA-256 in hexadecimal."""

    size: int
    digest: str


@dataclass(frozen=True, slots=True)
class BlobContent:
    """The bytes of a key. `modified_at` is in epoch seconds; bytes with the same `tag` are equal.

    `read` yields the bytes from the first position to before the second one; it raises unavailable. `path`
    is where they are on this machine, None if they are elsewhere.
    """

    size: int
    modified_at: float
    tag: str
    read: Callable[[int, int], AsyncGenerator[bytes, None]]
    path: Path | None = None


def make_blob_key(file_id: str, attempt: str) -> str:
    """Return the key of the bytes that one attempt to store a file of this id writes."""
    return f"{file_id}.{attempt}"


def file_id_of(blob_key: str) -> str:
    """Return the id of the file whose bytes a key may name; ids have no dot."""
    return blob_key.partition(".")[0]


@dataclass(frozen=True, slots=True)
class IngestJob:
    """The job of processing a file; a file has at most one.

    It is free when `lease_until` is past, and due from `not_before` on (epoch seconds). `attempts` counts all
    leases so far, finished or not. `error` is the error of the last attempt. `fence` rises with each lease,
    and only leases change it.
    """

    file_id: str
    attempts: int = 0
    not_before: int = 0
    lease_owner: str = ""
    lease_until: int = 0
    error: str | None = None
    created_at: int = 0
    fence: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class TextPart:
    """A part of an extracted text whose borders no chunk crosses: a page, a slide, a sheet, a chapter.

    `start` and `end` are offsets in characters. `page` counts from 1 where the document has pages or slides.
    `label` is the name of a sheet or chapter. With `is_markdown`, lines of the text that begin with # are
    headings. `columns` is the span of the column names of a table, None without them.
    """

    start: int
    end: int
    page: int | None = None
    label: str | None = None
    is_markdown: bool = False
    columns: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class TextChunk:
    """A chunk of a file's text, `text[start:end]`, small enough to embed; `number` counts from 0.

    `heading` is the path of headings above it, or its sheet or chapter, joined by " > ". `columns` is the
    span of the column names for table rows that do not contain them.
    """

    number: int
    start: int
    end: int
    page: int | None = None
    heading: str | None = None
    columns: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class ExtractionResult:
    """The text of a document and its chunks; `text` contains no NUL and is never empty or blank."""

    text: str
    chunks: tuple[TextChunk, ...]
    pages: int | None = None
    title: str | None = None
    blank_pages: int = 0

    def passage(self, chunk: TextChunk) -> str:
        """Return the text of a chunk, preceded by its column names if it has some."""
        text = self.text[chunk.start : chunk.end]
        return text if chunk.columns is None else f"{self.text[slice(*chunk.columns)]}\n{text}"


@dataclass(frozen=True, slots=True)
class EmbeddingSpace:
    """An embedding space: vectors of one model, which are comparable with each other only.

    `name` identifies everything that the vectors depend on: the kind of model, its name, its revision and the
    prefixes, for example `builtin:minilm:q8f-1`. `dimension` is the number of components of a vector; vectors
    have length 1.
    """

    name: str
    dimension: int


class EmbeddingPurpose(StrEnum):
    """Purpose of an embedded text: some models embed queries and passages differently."""

    PASSAGE = "passage"
    QUERY = "query"


@dataclass(frozen=True, slots=True)
class EmbeddingPrefixes:
    """Texts that a model expects in front of each query and of each passage."""

    query: str = ""
    passage: str = ""

    def before(self, purpose: EmbeddingPurpose) -> str:
        """Return the prefix for the texts of a purpose."""
        return self.query if purpose is EmbeddingPurpose.QUERY else self.passage

    def mark(self, own: "EmbeddingPrefixes | None" = None) -> str:
        """Return a suffix for the name of a space, "" for the model's `own` prefixes.

        Different prefixes make incompatible vectors, so each pair of prefixes needs a space of its own.
        """
        if self == (own or EmbeddingPrefixes()):
            return ""
        return ":" + hashlib.sha256(f"{self.query}\0{self.passage}".encode()).hexdigest()[:MARK_CHARACTERS]


class ScopeKind(StrEnum):
    """Kind of a search scope."""

    COLLECTION = "collection"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class SearchScope:
    """The passages of the completed files of a collection, or of one completed file."""

    kind: ScopeKind
    id: str


@dataclass(frozen=True, slots=True)
class VectorBatch:
    """Vectors of passages of one file: `ids` as little-endian int64, `vectors` as rows of little-endian
    float32."""

    file_id: str
    ids: bytes
    vectors: bytes


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A found passage; scores are comparable within one search, higher is better."""

    passage_id: int
    score: float


def pack_ids(ids: Sequence[int]) -> bytes:
    """Return passage ids as little-endian int64, the form of `VectorBatch.ids`."""
    numbers = array("q", ids)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def unpack_ids(ids: bytes) -> Sequence[int]:
    """Return the passage ids of a result of `pack_ids`."""
    numbers = array("q")
    numbers.frombytes(ids)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
