"""What a database and a folder of files hold after an ingest, and whether the one fits the other.

Everything is read at one moment, from SQLite or PostgreSQL; nothing of the daemon is used for it.
"""

import asyncio
import contextlib
import hashlib
import shutil
import sqlite3
import struct
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import asyncpg

INCOMING = "incoming"
FLOAT = 4
QUERIES = {
    "files": "SELECT id, name, size, digest, checksum, status, error, chunks, created_at FROM files",
    "jobs": "SELECT file_id, attempts, lease_owner, not_before FROM ingest_jobs",
    "links": "SELECT collection_id, file_id, origin, path FROM collection_files",
    "collections": "SELECT id, number FROM collections",
    "texts": "SELECT file_id, staged FROM file_texts",
    "passages": "SELECT id, file_id, staged, number, text FROM passages ORDER BY id",
    "batches": "SELECT file_id, staged, ids, LENGTH(vectors), space_id FROM vector_batches ORDER BY id",
    "spaces": "SELECT id, dimension, is_active FROM embedding_spaces",
}
TERMS = "SELECT term, doc, offset FROM {}"

Rows = Mapping[str, Sequence[Any]]


class FileLine(NamedTuple):
    """A file."""

    id: str
    name: str
    size: int
    digest: str
    checksum: str
    status: str
    error: str | None
    chunks: int
    created_at: int


class Passage(NamedTuple):
    """A passage."""

    id: int
    file_id: str
    staged: bool
    number: int
    text: str


class Link(NamedTuple):
    """A file in a collection."""

    collection_id: str
    file_id: str
    origin: str
    path: str


@dataclass(frozen=True)
class State:
    """All that is kept; `words` are the differences between the words of collections and their passages."""

    rows: Rows
    words: Sequence[str]

    @cached_property
    def files(self) -> Mapping[str, FileLine]:
        """The files by id."""
        return {row[0]: FileLine(*row) for row in self.rows["files"]}

    @cached_property
    def links(self) -> Sequence[Link]:
        """The links."""
        return [Link(*row) for row in self.rows["links"]]

    @cached_property
    def passages(self) -> Mapping[str, Sequence[Passage]]:
        """The passages of each file."""
        return _grouped((row[1], Passage(*row)) for row in self.rows["passages"])

    @cached_property
    def vectors(self) -> Mapping[tuple[str, bool], Sequence[int]]:
        """The passages that have a vector in the active space, of each file, staged or not."""
        active = {row[0] for row in self.rows["spaces"] if row[2]}
        found: dict[tuple[str, bool], list[int]] = defaultdict(list)
        for file_id, staged, ids, _, space in self.rows["batches"]:
            if space in active:
                found[file_id, bool(staged)] += _unpacked(ids)
        return found

    @property
    def jobs(self) -> Mapping[str, tuple[int, str, int]]:
        """Attempts, owner and earliest time of the job of each file."""
        return {row[0]: (row[1], row[2], row[3]) for row in self.rows["jobs"]}

    @property
    def errors(self) -> Mapping[str, str]:
        """Why files failed, by id."""
        return {file.id: file.error for file in self.files.values() if file.error}

    @property
    def fingerprint(self) -> tuple[Any, ...]:
        """What an ingest that does nothing leaves as it is."""
        passages = [row[0] for row in self.rows["passages"]]
        batches = [bytes(row[2]) for row in self.rows["batches"]]
        return sorted(self.files), passages, batches, sorted(self.links)

    def places(self, collection_id: str) -> Mapping[str, Sequence[FileLine]]:
        """Return the files at each path of a collection."""
        mine = [link for link in self.links if link.collection_id == collection_id]
        return _grouped((link.path, self.files[link.file_id]) for link in mine)

    def problems(self) -> Sequence[str]:
        """Return what may never be, at whichever moment the daemon died."""
        found = [*self.words, *self._wrong_vectors(), *self._wrong_places()]
        for file in self.files.values():
            found += [f"{file.name} ({file.status}) {what}" for what in self._wrong(file)]
        return found

    def unfinished(self) -> Sequence[str]:
        """Return what may not be once nothing is to do."""
        found = [f"{self.files[file_id].name} has a job" for file_id in self.jobs]
        found += [f"{file.name} is {file.status}" for file in self.files.values() if file.status == "pending"]
        for kind in ("texts", "passages", "batches"):
            staged = sum(bool(row[2 if kind == "passages" else 1]) for row in self.rows[kind])
            found += [f"{staged} {kind} are staged"] if staged else []
        return found

    def _wrong(self, file: FileLine) -> Iterator[str]:
        texts = [bool(staged) for file_id, staged in self.rows["texts"] if file_id == file.id]
        passages = self.passages.get(file.id, ())
        if (file.status == "pending") != (file.id in self.jobs):
            yield "and its job do not fit"
        if file.status == "completed":
            if texts != [False]:
                yield f"has the texts {texts}"
            if [each.number for each in passages] != list(range(file.chunks)):
                yield f"has {len(passages)} passages for {file.chunks} chunks"
            ids = [each.id for each in passages]
            if sorted(self.vectors.get((file.id, False), ())) != ids or (file.id, True) in self.vectors:
                yield "has other vectors than passages"
            return
        if any(not each.staged for each in passages) or False in texts:
            yield "can be found"
        if len(texts) > (file.status == "pending") or len({each.number for each in passages}) < len(passages):
            yield "has a text or passages twice, or still"
        ids = [each.id for each in passages]
        vectors = self.vectors.get((file.id, True), ())
        if len(set(vectors)) < len(vectors) or not set(vectors) <= set(ids):
            yield "has vectors that do not fit its passages"

    def _wrong_vectors(self) -> Iterator[str]:
        width = {row[0]: row[1] * FLOAT for row in self.rows["spaces"]}
        for file_id, _, ids, size, space in self.rows["batches"]:
            if len(_unpacked(ids)) * width[space] != size:
                yield f"vectors of file {file_id} have {size} bytes"
        for kind in ("texts", "passages", "batches", "jobs"):
            of = {row[1 if kind == "passages" else 0] for row in self.rows[kind]}
            yield from (f"{kind} of no file {file_id}" for file_id in of - self.files.keys())

    def _wrong_places(self) -> Iterator[str]:
        held = Counter(
            (link.collection_id, link.origin, link.path)
            for link in self.links
            if link.path and self.files[link.file_id].status == "completed"
        )
        yield from (f"{place} holds {count} completed files" for place, count in held.items() if count > 1)


class Folder:
    """The files of a daemon's state directory."""

    def __init__(self, state: Path) -> None:
        self._files = state / "files"

    def blobs(self) -> Mapping[str, Path]:
        """Return the files that were received, by id."""
        found = [path for path in self._files.glob("*/*") if path.parent.name != INCOMING]
        return {path.name: path for path in found}

    def incoming(self) -> Sequence[Path]:
        """Return what is being received, or was."""
        return list(self._files.glob(f"{INCOMING}/*"))

    def problems(self, state: State) -> Sequence[str]:
        """Return the files whose bytes are not there, or others."""
        blobs = self.blobs()
        return [f"{file.name} has other bytes" for file in state.files.values() if not _fits(file, blobs)]

    def leftovers(self, state: State) -> Sequence[str]:
        """Return the bytes that belong to no file."""
        strays = [str(path) for name, path in self.blobs().items() if name not in state.files]
        return strays + [str(path) for path in self.incoming()]


def read_sqlite(path: Path) -> State:
    """Read a database file that nobody changes, or that has its daemon."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("BEGIN")
        rows = {name: database.execute(query).fetchall() for name, query in QUERIES.items()}
        words = [each for row in rows["collections"] for each in _wrong_words(database, *row)]
        database.execute("ROLLBACK")
        return State(rows, words)


def read_postgres(address: str) -> State:
    """Read a database of PostgreSQL, whose words are a column that it makes itself."""

    async def read() -> Rows:
        connection = await asyncpg.connect(address)
        try:
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                return {
                    name: [tuple(row) for row in await connection.fetch(query)]
                    for name, query in QUERIES.items()
                }
        finally:
            await connection.close()

    return State(asyncio.run(read()), ())


def copy_database(state: Path, folder: Path) -> Path:
    """Copy the database of a dead daemon, so that the next one does its own recovery; return the copy."""
    for file in state.glob("gatewayd.db*"):
        if not file.name.endswith("-shm"):
            shutil.copyfile(file, folder / file.name)
    return folder / "gatewayd.db"


def assert_sound(path: Path) -> None:
    """Have SQLite check a database file itself."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert database.execute("PRAGMA foreign_key_check").fetchall() == []


def _wrong_words(database: sqlite3.Connection, collection_id: str, number: int) -> Iterator[str]:
    """Compare every word of a collection, and where it stands, with those of a table that is made anew."""
    name = f"words_{number}"
    database.execute(f"CREATE VIRTUAL TABLE temp.seen USING fts5vocab('main', '{name}', 'instance')")
    database.execute("CREATE VIRTUAL TABLE temp.anew USING fts5(text, tokenize='porter unicode61')")
    database.execute(
        "INSERT INTO temp.anew (rowid, text) SELECT p.id, COALESCE(p.segmented, p.text) FROM passages p "
        "JOIN collection_files l ON l.file_id = p.file_id "
        "WHERE l.collection_id = ? AND NOT p.staged ORDER BY p.id",
        (collection_id,),
    )
    database.execute("CREATE VIRTUAL TABLE temp.wanted USING fts5vocab('temp', 'anew', 'instance')")
    seen = Counter(database.execute(TERMS.format("temp.seen")))
    wanted = Counter(database.execute(TERMS.format("temp.wanted")))
    sizes = database.execute(f"SELECT COUNT(*) FROM {name}_docsize").fetchone()
    count = database.execute("SELECT COUNT(*) FROM temp.anew").fetchone()
    for table in ("seen", "wanted", "anew"):
        database.execute(f"DROP TABLE temp.{table}")
    if seen != wanted or sizes != count:
        more, less = (seen - wanted).total(), (wanted - seen).total()
        yield f"collection {collection_id} has {more} words too many and {less} too few; {sizes}, {count}"


def _fits(file: FileLine, blobs: Mapping[str, Path]) -> bool:
    path = blobs.get(file.id)
    return path is not None and hashlib.sha256(path.read_bytes()).hexdigest() == file.digest


def _unpacked(ids: bytes) -> Sequence[int]:
    return struct.unpack(f"<{len(ids) // 8}q", ids)


def _grouped(pairs: Any) -> dict[Any, list[Any]]:
    found: dict[Any, list[Any]] = defaultdict(list)
    for key, value in pairs:
        found[key].append(value)
    return dict(found)
