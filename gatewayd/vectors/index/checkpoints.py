"""Checkpoints of HNSW graphs on disk: two generations of each graph, verified by SHA-256 before use.

A checkpoint is two files, `<scope kind>-<digest>.<digest of the space>.<generation>` with the suffixes
`.hnsw` (body) and `.json` (header). The header is written last, so a body without a header is incomplete. All
functions block: call them in threads.
"""

import base64
import contextlib
import hashlib
import logging
import os
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import orjson

from gatewayd.fsync import sync_to_disk
from gatewayd.ingest.records import EmbeddingSpace, ScopeKind, SearchScope
from gatewayd.vectors.index.flat_index import Ids
from gatewayd.vectors.index.hnsw_file import GraphSnapshot
from gatewayd.vectors.index.hnsw_index import HnswIndex

log = logging.getLogger(__name__)

FORMAT_VERSION: Final = 1
MAX_GENERATIONS: Final = 2
"""Number of generations that are kept of one graph."""
FILE_NAME: Final = re.compile(r"((?:collection|file)-[0-9a-f]{32}\.[0-9a-f]{16})\.(\d{8})\.(hnsw|json)")
TEMPORARY_SUFFIX: Final = ".part"
BLOCK_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class CheckpointKey:
    """Identity of one index: a scope in an embedding space."""

    space: EmbeddingSpace
    scope: SearchScope

    @property
    def stem(self) -> str:
        """The common start of its file names. It holds digests only, no text from a user."""
        return f"{scope_stem(self.scope)}.{_digest(self.space.name)[:16]}"


class GraphCheckpoints:
    """Checkpoints in a folder. Only one process may use the folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._changing = threading.Lock()

    def open(self) -> Sequence[CheckpointKey]:
        """Create the folder, delete incomplete and old generations, and return the remaining keys."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._changing:
            for path in self._folder.glob(f"*{TEMPORARY_SUFFIX}"):
                path.unlink(missing_ok=True)
            names = [match for path in self._folder.iterdir() if (match := FILE_NAME.fullmatch(path.name))]
            headers = {match.group(1, 2) for match in names if match[3] == "json"}
            bodies = {match.group(1, 2) for match in names if match[3] == "hnsw"}
            for stem, generation in headers ^ bodies:
                self._drop(stem, [int(generation)])
            stems = sorted({stem for stem, _ in headers & bodies})
            for stem in stems:
                self._drop(stem, self._generations(stem)[MAX_GENERATIONS:])
        return [key for stem in stems if (key := self._owner(stem)) is not None]

    def write(self, key: CheckpointKey, snapshot: GraphSnapshot, is_wanted: Callable[[], bool]) -> None:
        """Write a checkpoint; discard it if `is_wanted` is false after the write. Raises OSError."""
        with self._changing:
            generations = self._generations(key.stem)
            name = f"{key.stem}.{(generations[0] if generations else 0) + 1:08d}"
            body, header = self._folder / f"{name}.hnsw", self._folder / f"{name}.json"
            try:
                digest = _write(body, snapshot.pieces())
                _write(header, [_header(key, snapshot, digest)])
                if is_wanted():
                    for path in (body, header):
                        _temporary(path).rename(path)
                    sync_to_disk(self._folder)
                    self._drop(key.stem, generations[MAX_GENERATIONS - 1 :])
            finally:
                for path in (body, header):
                    _temporary(path).unlink(missing_ok=True)

    def read(self, key: CheckpointKey) -> HnswIndex | None:
        """Return the newest intact graph, None if there is none; delete damaged checkpoints."""
        for generation in self._generations(key.stem):
            try:
                return self._read(key, f"{key.stem}.{generation:08d}")
            except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
                log.warning(
                    "cannot use a checkpoint: %s",
                    error,
                    extra={"scope": key.scope.id, "generation": generation},
                )
                with self._changing:
                    self._drop(key.stem, [generation])
        return None

    def verify(self, key: CheckpointKey) -> Sequence[str]:
        """Delete damaged checkpoints and return a sentence for each."""
        found: list[str] = []
        with self._changing:
            for generation in self._generations(key.stem):
                try:
                    self._check(key, f"{key.stem}.{generation:08d}")
                except (OSError, ValueError, KeyError, TypeError) as error:
                    found.append(f"a checkpoint was damaged and is removed: {error}")
                    self._drop(key.stem, [generation])
        return found

    def remove(self, stem: str) -> None:
        """Delete the checkpoints of a scope (its stem) or of one key."""
        with self._changing:
            for path in self._folder.glob(f"{stem}.*"):
                path.unlink(missing_ok=True)

    def _generations(self, stem: str) -> list[int]:
        names = (FILE_NAME.fullmatch(path.name) for path in self._folder.glob(f"{stem}.*.json"))
        return sorted((int(match[2]) for match in names if match), reverse=True)

    def _drop(self, stem: str, generations: Iterable[int]) -> None:
        for generation in generations:
            # The header first: a body without a header is ignored.
            for ending in ("json", "hnsw"):
                (self._folder / f"{stem}.{generation:08d}.{ending}").unlink(missing_ok=True)

    def _owner(self, stem: str) -> CheckpointKey | None:
        for generation in self._generations(stem):
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                content = _content(self._folder / f"{stem}.{generation:08d}.json")
                key = CheckpointKey(
                    EmbeddingSpace(content["space"], content["dimension"]),
                    SearchScope(ScopeKind(content["kind"]), content["scope"]),
                )
                if key.stem == stem:
                    return key
        self.remove(stem)
        return None

    def _check(self, key: CheckpointKey, name: str) -> Mapping[str, Any]:
        content = _content(self._folder / f"{name}.json")
        expected = {"version": FORMAT_VERSION, **_owner_fields(key)}
        wrong = [field for field, value in expected.items() if content[field] != value]
        if wrong:
            raise ValueError(f"its header has a different {wrong[0]}")
        with (self._folder / f"{name}.hnsw").open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != content["sha256"]:
                raise ValueError("the SHA-256 of its content does not match the header")
        return content

    def _read(self, key: CheckpointKey, name: str) -> HnswIndex:
        content = self._check(key, name)
        passages = _unpacked(content["ids"]), _unpacked(content["labels"])
        if len(passages[0]) != content["count"] or len(passages[1]) != content["count"]:
            raise ValueError("its header has a different count")
        return HnswIndex.restored(self._folder / f"{name}.hnsw", key.space.dimension, passages)


def scope_stem(scope: SearchScope) -> str:
    """Return the common start of the names of all files of a scope."""
    return f"{scope.kind}-{_digest(scope.id)[:32]}"


def _owner_fields(key: CheckpointKey) -> dict[str, Any]:
    return {
        "kind": str(key.scope.kind),
        "scope": key.scope.id,
        "space": key.space.name,
        "dimension": key.space.dimension,
    }


def _header(key: CheckpointKey, snapshot: GraphSnapshot, digest: str) -> bytes:
    content = {
        "version": FORMAT_VERSION,
        **_owner_fields(key),
        "count": len(snapshot.ids),
        "sha256": digest,
        "ids": _packed(snapshot.ids),
        "labels": _packed(snapshot.labels),
    }
    return orjson.dumps({"check": _content_digest(content), "content": content})


def _content(path: Path) -> Mapping[str, Any]:
    header = orjson.loads(path.read_bytes())
    content: Mapping[str, Any] = header["content"]
    if _content_digest(content) != header["check"]:
        raise ValueError("the SHA-256 of its header does not match")
    return content


def _content_digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _packed(numbers: Ids) -> str:
    return base64.b64encode(numbers.astype("<i8").tobytes()).decode()


def _unpacked(text: str) -> Ids:
    return np.frombuffer(base64.b64decode(text), "<i8").astype(np.int64)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _temporary(path: Path) -> Path:
    return path.with_name(path.name + TEMPORARY_SUFFIX)


def _write(path: Path, pieces: Iterable[bytes | memoryview]) -> str:
    """Write the temporary file of a path to the disk, and return the SHA-256 of its content."""
    digest = hashlib.sha256()
    with _temporary(path).open("wb") as file:
        for piece in pieces:
            for at in range(0, len(piece), BLOCK_BYTES):
                digest.update(piece[at : at + BLOCK_BYTES])
                file.write(piece[at : at + BLOCK_BYTES])
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()
