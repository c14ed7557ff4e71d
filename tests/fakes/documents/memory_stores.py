"""The document stores in memory, a model that hashes words, and indexes that look at everything."""

import asyncio
import copy
import math
import zlib
from array import array
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path

from gatewayd.accounts.records import Actor
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.chunker import ChunkRules, split_text
from gatewayd.ingest.records import (
    EmbeddingPurpose,
    EmbeddingSpace,
    ExtractionResult,
    File,
    FileStatus,
    IngestJob,
    ScopeKind,
    SearchHit,
    SearchScope,
    TextPart,
    VectorBatch,
    pack_ids,
    unpack_ids,
)
from gatewayd.ingest.size_classes import OTHER_WORK, QueueKey, size_class_of
from gatewayd.knowledge.records import CollectionLink, StoredPassage
from tests.fakes.accounts.memory_stores import Memory, Tables

DIMENSION = 64


@dataclass(frozen=True)
class Row:
    """One stored passage."""

    passage: StoredPassage
    staged: bool


@dataclass
class Documents(Tables):
    """Everything that is stored about documents, beside the accounts; `links` by collection and file."""

    files: dict[str, File] = field(default_factory=dict)
    jobs: dict[str, IngestJob] = field(default_factory=dict)
    texts: dict[tuple[str, bool], str] = field(default_factory=dict)
    passages: dict[int, Row] = field(default_factory=dict)
    vectors: dict[tuple[str, int], bytes] = field(default_factory=dict)
    spaces: dict[str, EmbeddingSpace] = field(default_factory=dict)
    active: str | None = None
    links: dict[tuple[str, str], CollectionLink] = field(default_factory=dict)
    last_passage: int = 0

    def copied(self) -> "Documents":
        """Return a copy with the same records, which nothing changes."""
        copied = copy.copy(self)
        for name, value in vars(self).items():
            setattr(copied, name, dict(value) if isinstance(value, dict) else value)
        return copied

    def drop_passages(self, file_id: str, *, staged: bool) -> None:
        gone = [key for key, row in self.rows(file_id, staged=staged)]
        for key in gone:
            del self.passages[key]
        self.vectors = {key: value for key, value in self.vectors.items() if key[1] in self.passages}
        self.texts.pop((file_id, staged), None)

    def rows(self, file_id: str, *, staged: bool) -> list[tuple[int, Row]]:
        return [
            (key, row)
            for key, row in sorted(self.passages.items())
            if row.passage.file_id == file_id and row.staged == staged
        ]

    def files_in(self, scope: SearchScope) -> list[str]:
        """Return the completed files of a scope."""
        if scope.kind is ScopeKind.FILE:
            found = [scope.id]
        else:
            found = [file_id for collection_id, file_id in self.links if collection_id == scope.id]
        return [
            file_id
            for file_id in found
            if file_id in self.files and self.files[file_id].status is FileStatus.COMPLETED
        ]


class Library(Memory):
    """A database of one writer that holds accounts and documents."""

    tables: Documents

    def __init__(self) -> None:
        super().__init__()
        self.tables = Documents()


class MemoryFiles:
    """The contract of FileStore."""

    def __init__(self, library: Library) -> None:
        self._library = library

    async def add(self, file: File) -> None:
        async with self._library.transaction():
            if file.id in self._library.tables.files:
                raise GatewayError(ErrorKind.CONFLICT, "cannot add the file: its id is taken")
            self._library.tables.files[file.id] = file

    async def find(self, file_id: str) -> File | None:
        await asyncio.sleep(0)
        return self._library.tables.files.get(file_id)

    async def find_many(self, file_ids: Sequence[str]) -> Mapping[str, File]:
        files = self._library.tables.files
        return {file_id: files[file_id] for file_id in file_ids if file_id in files}

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
        found = [
            file
            for file in self._library.tables.files.values()
            if user_id in (None, file.user_id)
            and not (orphaned and file.user_id in self._library.tables.users)
            and status in (None, file.status)
            and (not pattern or fnmatch(file.name.casefold(), pattern.casefold().replace("[", "[[]")))
        ]
        found.sort(key=lambda file: (file.created_at, file.id), reverse=True)
        return found[offset : None if limit is None else offset + limit], len(found)

    async def change(self, file: File) -> bool:
        async with self._library.transaction():
            if file.id not in self._library.tables.files:
                return False
            self._library.tables.files[file.id] = file
            return True

    async def remove(self, file_id: str) -> bool:
        async with self._library.transaction():
            tables = self._library.tables
            for staged in (False, True):
                tables.drop_passages(file_id, staged=staged)
            tables.jobs.pop(file_id, None)
            tables.links = {key: link for key, link in tables.links.items() if key[1] != file_id}
            return tables.files.pop(file_id, None) is not None

    async def ids(self) -> AsyncIterator[str]:
        for file_id in sorted(self._library.tables.files):
            yield file_id

    async def blob_keys(self) -> AsyncIterator[str]:
        for file_id in sorted(self._library.tables.files):
            yield self._library.tables.files[file_id].blob_key

    async def collections_of(self, file_id: str) -> Sequence[str]:
        return sorted(collection for collection, linked in self._library.tables.links if linked == file_id)


class MemoryJobs:
    """The contract of JobStore. `dead` are the owners whose leases are over."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self.dead: set[str] = set()

    @property
    def _rows(self) -> dict[str, IngestJob]:
        return self._library.tables.jobs

    async def put(self, job: IngestJob) -> None:
        async with self._library.transaction():
            known = self._rows.get(job.file_id)
            self._rows[job.file_id] = replace(job, fence=0 if known is None else known.fence)

    async def find(self, file_id: str) -> IngestJob | None:
        await asyncio.sleep(0)
        return self._rows.get(file_id)

    async def waiting(self, now: int, limit: int) -> Sequence[tuple[QueueKey, str]]:
        await asyncio.sleep(0)
        found: dict[QueueKey, list[tuple[QueueKey, str]]] = {}
        for job in self._free(now):
            file = self._library.tables.files[job.file_id]
            key = QueueKey(file.user_id, size_class_of(file.size, file.chunks))
            found.setdefault(key, []).append((key, job.file_id))
        return [pair for pairs in found.values() for pair in pairs[:limit]]

    async def lease(
        self, owner: str, file_ids: Sequence[str], *, now: int, until: int
    ) -> Sequence[IngestJob]:
        if not file_ids:
            return []
        async with self._library.transaction():
            taken = [
                replace(
                    job,
                    lease_owner=owner,
                    lease_until=until,
                    attempts=job.attempts + 1,
                    fence=max(job.fence, now) + 1,
                )
                for job in self._free(now)
                if job.file_id in file_ids
            ]
            self._rows.update({job.file_id: job for job in taken})
            return taken

    def _free(self, now: int) -> list[IngestJob]:
        return [job for job in self._ordered() if job.not_before <= now and job.lease_until <= now]

    async def renew(self, file_id: str, owner: str, until: int) -> bool:
        async with self._library.transaction():
            job = self._rows.get(file_id)
            if job is None or job.lease_owner != owner:
                return False
            self._rows[file_id] = replace(job, lease_until=until)
            return True

    async def hold(self, job: IngestJob) -> bool:
        known = self._rows.get(job.file_id)
        return known is not None and (known.lease_owner, known.fence) == (job.lease_owner, job.fence)

    async def list_abandoned(self) -> Sequence[IngestJob]:
        return [job for job in self._ordered() if job.lease_owner in self.dead]

    async def release(self, owner: str) -> None:
        async with self._library.transaction():
            for job in [job for job in self._rows.values() if job.lease_owner == owner]:
                attempts = max(0, job.attempts - 1)
                self._rows[job.file_id] = replace(job, lease_owner="", lease_until=0, attempts=attempts)

    async def remove(self, file_id: str) -> bool:
        async with self._library.transaction():
            return self._rows.pop(file_id, None) is not None

    async def hasten(self, attempts: int, latest: int) -> None:
        for job in self._ordered():
            if job.attempts == attempts and not job.lease_owner and job.not_before > latest:
                self._rows[job.file_id] = replace(job, not_before=latest)

    async def next_due(self, now: int) -> int | None:
        dues = [max(job.not_before, job.lease_until) for job in self._rows.values()]
        return min((due for due in dues if due > now), default=None)

    def _ordered(self) -> Sequence[IngestJob]:
        return sorted(self._rows.values(), key=lambda job: (job.created_at, job.file_id))

    async def list(self, *, leased: bool = False) -> Sequence[IngestJob]:
        return [job for job in self._ordered() if job.lease_owner or not leased]

    async def count(self, *, leased: bool = False) -> int:
        return len(await self.list(leased=leased))


class MemoryPassages:
    """The contracts of PassageStore and of knowledge's PassageReader."""

    def __init__(self, library: Library) -> None:
        self._library = library

    async def stage(
        self, file_id: str, extraction: ExtractionResult, check: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        async with self._library.transaction():
            if check is not None:
                await check()
            tables = self._library.tables
            tables.drop_passages(file_id, staged=True)
            if file_id not in tables.files:
                raise GatewayError(
                    ErrorKind.CONFLICT, f"cannot keep the text of file {file_id!r}: it is gone"
                )
            tables.texts[file_id, True] = extraction.text
            for chunk in extraction.chunks:
                tables.last_passage += 1
                text = extraction.passage(chunk)
                passage = StoredPassage(
                    tables.last_passage, file_id, chunk.number, text, chunk.start, chunk.page, chunk.heading
                )
                tables.passages[passage.id] = Row(passage, staged=True)

    async def is_staged(self, file_id: str) -> bool:
        return (file_id, True) in self._library.tables.texts

    async def missing(self, file_id: str, space: str, limit: int) -> Sequence[tuple[int, str]]:
        tables = self._library.tables
        rows = tables.rows(file_id, staged=True) or tables.rows(file_id, staged=False)
        found = [(key, row.passage.text) for key, row in rows if (space, key) not in tables.vectors]
        return found[:limit]

    async def add_vectors(self, space: str, batch: VectorBatch) -> None:
        async with self._library.transaction():
            tables = self._library.tables
            width = 4 * tables.spaces[space].dimension
            for number, passage_id in enumerate(array("q", batch.ids)):
                if passage_id in tables.passages:
                    vector = batch.vectors[number * width : (number + 1) * width]
                    tables.vectors.setdefault((space, passage_id), vector)

    async def prepare(self, file_id: str) -> None:
        pass

    async def find_replaced(self, file_id: str) -> Sequence[tuple[str, str]]:
        links = self._library.tables.links
        places = {
            (link.collection_id, link.origin, link.path)
            for link in links.values()
            if link.file_id == file_id and link.path
        }
        return [
            key
            for key, link in links.items()
            if link.file_id != file_id and (link.collection_id, link.origin, link.path) in places
        ]

    async def publish(self, file: File) -> Sequence[str]:
        async with self._library.transaction():
            tables = self._library.tables
            if file.id not in tables.files:
                return []
            if (file.id, True) in tables.texts:
                staged = tables.rows(file.id, staged=True)
                text = tables.texts[file.id, True]
                tables.drop_passages(file.id, staged=False)
                tables.passages.update({key: replace(row, staged=False) for key, row in staged})
                tables.texts[file.id, False] = text
                del tables.texts[file.id, True]
            tables.files[file.id] = file
            tables.jobs.pop(file.id, None)
            for key in await self.find_replaced(file.id):
                del tables.links[key]
            return sorted(collection for collection, linked in tables.links if linked == file.id)

    async def unstage(self, file_id: str) -> None:
        async with self._library.transaction():
            self._library.tables.drop_passages(file_id, staged=True)

    async def find_text(self, file_id: str) -> str | None:
        return self._library.tables.texts.get((file_id, False))

    async def count(self, scope: SearchScope) -> int:
        tables = self._library.tables
        return sum(len(tables.rows(file_id, staged=False)) for file_id in tables.files_in(scope))

    async def find_twin(self, text_hash: str, space: str) -> str | None:
        tables = self._library.tables
        for file in tables.files.values():
            rows = tables.rows(file.id, staged=False)
            whole = rows and all((space, key) in tables.vectors for key, _ in rows)
            if whole and file.status is FileStatus.COMPLETED and file.text_hash == text_hash:
                return file.id
        return None

    async def copy_vectors(self, source_id: str, file_id: str, space: str) -> bool:
        async with self._library.transaction():
            tables = self._library.tables
            source = tables.rows(source_id, staged=False)
            target = tables.rows(file_id, staged=True)
            if [content(row) for _, row in source] != [content(row) for _, row in target]:
                return False
            if any((space, key) not in tables.vectors for key, _ in source):
                return False
            for (old, _), (new, _) in zip(source, target, strict=True):
                tables.vectors[space, new] = tables.vectors[space, old]
            return True

    async def load(self, space: str, scope: SearchScope) -> AsyncIterator[VectorBatch]:
        for file_id in self._library.tables.files_in(scope):
            for batch in await self.load_file(space, scope, file_id):
                yield batch

    async def load_file(self, space: str, scope: SearchScope, file_id: str) -> Sequence[VectorBatch]:
        tables = self._library.tables
        if file_id not in tables.files_in(scope):
            return []
        keys = [key for key, _ in tables.rows(file_id, staged=False) if (space, key) in tables.vectors]
        vectors = b"".join(tables.vectors[space, key] for key in keys)
        return [VectorBatch(file_id, pack_ids(keys), vectors)] if keys else []

    async def load_ids(self, space: str, scope: SearchScope) -> AsyncIterator[tuple[str, bytes]]:
        async for batch in self.load(space, scope):
            yield batch.file_id, batch.ids

    async def count_vectors(self, space: str, scope: SearchScope) -> int:
        return sum([len(unpack_ids(ids)) async for _, ids in self.load_ids(space, scope)])

    async def read(self, passage_ids: Sequence[int]) -> Mapping[int, StoredPassage]:
        rows = self._library.tables.passages
        return {key: rows[key].passage for key in passage_ids if key in rows and not rows[key].staged}


def content(row: Row) -> tuple[int, int, str]:
    return row.passage.number, row.passage.start, row.passage.text


class MemorySpaces:
    """The contract of SpaceStore."""

    def __init__(self, library: Library) -> None:
        self._library = library

    async def add(self, space: EmbeddingSpace) -> None:
        async with self._library.transaction():
            self._library.tables.spaces.setdefault(space.name, space)

    async def list(self) -> Sequence[EmbeddingSpace]:
        return list(self._library.tables.spaces.values())

    async def find_active(self) -> EmbeddingSpace | None:
        tables = self._library.tables
        return None if tables.active is None else tables.spaces[tables.active]

    async def activate(self, name: str) -> None:
        async with self._library.transaction():
            self._library.tables.active = name

    async def remove(self, name: str) -> None:
        async with self._library.transaction():
            tables = self._library.tables
            tables.spaces.pop(name, None)
            tables.vectors = {key: value for key, value in tables.vectors.items() if key[0] != name}

    async def behind(self, name: str, limit: int) -> Sequence[str]:
        tables = self._library.tables
        lacking = {
            row.passage.file_id
            for key, row in tables.passages.items()
            if not row.staged
            and (name, key) not in tables.vectors
            and tables.files[row.passage.file_id].status is FileStatus.COMPLETED
        }
        return sorted(lacking)[:limit]

    async def counts(self, name: str) -> tuple[int, int]:
        tables = self._library.tables
        published = [key for key, row in tables.passages.items() if not row.staged]
        return sum((name, key) in tables.vectors for key in published), len(published)


def words(text: str) -> list[str]:
    return "".join(char if char.isalnum() else " " for char in text.casefold()).split()


class HashEmbedder:
    """A model that counts words: texts with the same words have the cosine 1.

    `failures` has what its first calls raise, None for those that do not.
    """

    def __init__(self, name: str = "test:hash:1") -> None:
        self._space = EmbeddingSpace(name, DIMENSION)
        self.failures: list[BaseException | None] = []
        self.texts: list[str] = []

    async def space(self) -> EmbeddingSpace:
        return self._space

    async def embed(
        self, texts: Sequence[str], purpose: EmbeddingPurpose, key: QueueKey = OTHER_WORK
    ) -> bytes:
        await asyncio.sleep(0)
        if self.failures and (failure := self.failures.pop(0)) is not None:
            raise failure
        self.texts.extend(texts)
        return b"".join(self._vector(text) for text in texts)

    def _vector(self, text: str) -> bytes:
        numbers = [0.0] * DIMENSION
        for word in words(text) or [""]:
            numbers[zlib.crc32(f"{self._space.name} {word}".encode()) % DIMENSION] += 1.0
        length = math.hypot(*numbers)
        return array("f", (number / length for number in numbers)).tobytes()


class ExactIndex:
    """The contract of VectorIndex, without a cache: it reads the store each time. `learned` is what it was
    told."""

    def __init__(self, passages: MemoryPassages) -> None:
        self._passages = passages
        self.learned: list[tuple[SearchScope, str]] = []
        self.forgotten: list[SearchScope] = []

    async def search(
        self, space: EmbeddingSpace, scope: SearchScope, vector: bytes, limit: int
    ) -> Sequence[SearchHit]:
        found = await self._all(space, scope, vector)
        hits = [SearchHit(passage_id, cosine) for passage_id, cosine in found.items()]
        return sorted(hits, key=lambda hit: (-hit.score, hit.passage_id))[:limit]

    async def similarities(
        self, space: EmbeddingSpace, scope: SearchScope, vector: bytes, passage_ids: Sequence[int]
    ) -> Mapping[int, float]:
        found = await self._all(space, scope, vector)
        return {passage_id: found[passage_id] for passage_id in passage_ids if passage_id in found}

    async def refresh(self, scope: SearchScope, file_id: str) -> None:
        self.learned.append((scope, file_id))

    async def forget(self, scope: SearchScope) -> None:
        self.forgotten.append(scope)

    async def check(self, space: EmbeddingSpace, scope: SearchScope) -> Sequence[str]:
        return []

    async def _all(self, space: EmbeddingSpace, scope: SearchScope, vector: bytes) -> dict[int, float]:
        wanted = array("f", vector)
        found: dict[int, float] = {}
        async for batch in self._passages.load(space.name, scope):
            rows = array("f", batch.vectors)
            for number, passage_id in enumerate(array("q", batch.ids)):
                row = rows[number * space.dimension : (number + 1) * space.dimension]
                found[passage_id] = sum(one * two for one, two in zip(wanted, row, strict=True))
        return found


class MemoryWords:
    """The contract of LexicalIndex: the share of a passage's words that the query has."""

    def __init__(self, library: Library) -> None:
        self._library = library

    async def search(self, scope: SearchScope, query: str, limit: int) -> Sequence[SearchHit]:
        wanted = set(words(query))
        tables = self._library.tables
        hits = []
        for file_id in tables.files_in(scope):
            for key, row in tables.rows(file_id, staged=False):
                found = words(row.passage.text)
                common = sum(word in wanted for word in found)
                if common:
                    hits.append(SearchHit(key, len(wanted.intersection(found)) + common / len(found)))
        return sorted(hits, key=lambda hit: (-hit.score, hit.passage_id))[:limit]

    async def check(self, scope: SearchScope) -> Sequence[str]:
        return []


class PlainExtractor:
    """Reads UTF-8 files as one part.

    `failures` has what its first calls raise, None for those that do not; `names` are what it was given.
    """

    def __init__(self, rules: ChunkRules | None = None) -> None:
        self._rules = rules or ChunkRules(size=200, overlap=20)
        self.failures: list[BaseException | None] = []
        self.names: list[str] = []

    async def extract(
        self, path: Path, name: str, content_type: str | None, key: QueueKey
    ) -> ExtractionResult:
        await asyncio.sleep(0)
        self.names.append(name)
        if self.failures and (failure := self.failures.pop(0)) is not None:
            raise failure
        return extraction_of(path.read_text(), self._rules)


def extraction_of(text: str, rules: ChunkRules | None = None) -> ExtractionResult:
    """Return a text cut as one part; where it has form feeds, these end its pages."""
    rules = rules or ChunkRules(size=200, overlap=20)
    chunks = split_text(text, [TextPart(0, len(text))], rules)
    pages = text.split("\f") if "\f" in text else []
    blank = [page for page in pages if not page.strip()]
    return ExtractionResult(text, chunks, len(pages) or None, blank_pages=len(blank))


class NoGrants:
    """The contract of FileGrants; in the place of collections `granted` holds (user, file, permission)."""

    def __init__(self, granted: Iterable[tuple[str, str, str]] = ()) -> None:
        self.granted = set(granted)
        self.bypass_admins = True

    def is_exempt(self, actor: Actor) -> bool:
        return self.bypass_admins and actor.is_admin

    async def may(self, actor: Actor, file: File, permission: str) -> bool:
        if actor.user_id == file.user_id or self.is_exempt(actor):
            return True
        return (actor.user_id, file.id, permission) in self.granted
