"""What a document is made of on its way from an upload to passages."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class FileStatus(StrEnum):
    """How far a file is (3.1)."""

    # Stored only: uploaded with `process=false`.
    STORED = "stored"
    # Waiting for a worker, or being worked on.
    PENDING = "pending"
    # Its passages can be found.
    COMPLETED = "completed"
    # It has no passages; `File.error` says why.
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class File:
    """A document. Timestamps are epoch seconds, `size` bytes.

    `name` is for people and never a path. `digest` is the SHA-256 of the bytes in hexadecimal; `checksum` is
    what the client calls the version it sent, the digest where it says nothing. `text_hash` is the SHA-256 of
    the extracted text, None until there is one. `data` is the client's own metadata. `error` is a sentence
    for the owner, set exactly when the status is failed. `blank_pages` counts those of its pages or slides
    that have no text.
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
    updated_at: int = 0
    created_at: int = 0


@dataclass(frozen=True, slots=True)
class IngestJob:
    """A file that waits for its passages.

    At most one exists for a file. It is free when `lease_until` is past, and due from `not_before` on (epoch
    seconds). `attempts` counts the leases so far, whatever became of them. `error` is what ended the last
    one.
    """

    file_id: str
    attempts: int = 0
    not_before: int = 0
    lease_owner: str = ""
    lease_until: int = 0
    error: str | None = None
    created_at: int = 0


@dataclass(frozen=True, slots=True)
class TextPart:
    """A piece of an extracted text that no chunk crosses: a page, a slide, a sheet, a chapter.

    `start` and `end` are offsets in characters. `page` counts from 1 where the document has pages or slides.
    `label` is the name of a sheet or chapter. `is_markdown` tells that lines of the text that begin with #
    are headings. `columns` is where the names of the columns stand, when the part is a table that has them.
    """

    start: int
    end: int
    page: int | None = None
    label: str | None = None
    is_markdown: bool = False
    columns: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class TextChunk:
    """A stretch of a file's text, `text[start:end]`, small enough to be embedded; `number` counts from 0.

    `heading` is the path of headings, sheet or chapter it stands under, " > " between them. `columns` is
    where the names of its columns stand, when it is rows of a table without them.
    """

    number: int
    start: int
    end: int
    page: int | None = None
    heading: str | None = None
    columns: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class ExtractionResult:
    """A document's text and how it is cut; `text` holds no NUL and is never empty or blank."""

    text: str
    chunks: tuple[TextChunk, ...]
    pages: int | None = None
    title: str | None = None
    blank_pages: int = 0

    def passage(self, chunk: TextChunk) -> str:
        """Return the text of a chunk, below the names of its columns where it has some."""
        text = self.text[chunk.start : chunk.end]
        return text if chunk.columns is None else f"{self.text[slice(*chunk.columns)]}\n{text}"


@dataclass(frozen=True, slots=True)
class EmbeddingSpace:
    """The vectors of one embedding model, which compare with each other and with no others.

    `name` says everything that the vectors depend on: the kind of model, its name, its revision and the
    prefixes, for example `builtin:minilm:q8f-1`. `dimension` is how many numbers a vector has; vectors have
    the length 1.
    """

    name: str
    dimension: int


class EmbeddingPurpose(StrEnum):
    """What a text is embedded for: some models are told."""

    PASSAGE = "passage"
    QUERY = "query"


class ScopeKind(StrEnum):
    """What can be searched by itself."""

    COLLECTION = "collection"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class SearchScope:
    """The passages of the completed files of a collection, or of one completed file."""

    kind: ScopeKind
    id: str


@dataclass(frozen=True, slots=True)
class VectorBatch:
    """Passages of one file with their vectors: `ids` little-endian int64, `vectors` little-endian float32
    rows."""

    file_id: str
    ids: bytes
    vectors: bytes


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A passage that was found, with a score that compares within one search; more is better."""

    passage_id: int
    score: float
