"""Export of a person: everything that belongs to them, as a tar archive that is written as it is read."""

import asyncio
import hashlib
import tarfile
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol

from gatewayd import json_encoder
from gatewayd.accounts.records import User
from gatewayd.accounts.users import Users
from gatewayd.batches.files import BatchFiles
from gatewayd.chats.service import Chats
from gatewayd.ingest.interfaces import FileStore
from gatewayd.privacy.interfaces import PersonRecords

FORMAT: Final = "gatewayd-person-1"
"""Name of the form of the archive, in its manifest."""

MANIFEST: Final = "manifest.json"
BLOCK_BYTES: Final = 512
READ_BYTES: Final = 1 << 20


class FileTexts(Protocol):
    """The extracted texts of files."""

    async def find_text(self, file_id: str) -> str | None:
        """Return the text of a file."""
        ...


class FileBytes(Protocol):
    """The bytes of files."""

    async def missing(self, keys: Iterable[str]) -> Sequence[str]:
        """Return the keys without bytes."""
        ...

    def local(self, key: str) -> AbstractAsyncContextManager[Path]:
        """Lend a path of the bytes of a key on this machine for the length of the block."""
        ...


@dataclass(frozen=True, slots=True)
class ExportParts:
    """What is read."""

    users: Users
    records: PersonRecords
    chats: Chats
    files: FileStore
    texts: FileTexts
    blobs: FileBytes
    batches: BatchFiles


class PersonExport:
    """Exports people. The same state gives the same bytes: the order is fixed, and nothing has a time."""

    def __init__(self, parts: ExportParts) -> None:
        self._parts = parts

    async def find(self, ref: str) -> User:
        """Return the account with this id or e-mail address; raises not_found."""
        return await self._parts.users.resolve(ref)

    async def archive(self, user: User) -> AsyncIterator[bytes]:
        """Yield a tar archive: rows as JSON lines, chats, files with bytes and texts, the manifest at last.

        One page of rows, one chat or one piece of a file is in memory at a time. Raises the errors of the
        stores; the archive has no manifest then.
        """
        tar = _TarWriter()
        numbers: dict[str, int] = {}
        async for kind, rows in self._parts.records.pages(user.id, user.email):
            slug = kind.replace(" ", "-")
            numbers[slug] = numbers.get(slug, 0) + 1
            lines: list[bytes] = []
            for row in rows:
                lines += [*await json_encoder.encode(row), b"\n"]
            for piece in tar.member(f"records/{slug}-{numbers[slug]:05}.jsonl", lines):
                yield piece
        async for piece in self._chats(user, tar):
            yield piece
        async for piece in self._files(user, tar):
            yield piece
        head = {"format": FORMAT, "user": {"id": user.id, "email": user.email}}
        manifest = await json_encoder.encode({**head, "members": list(tar.members)})
        for piece in tar.member(MANIFEST, manifest):
            yield piece
        yield bytes(2 * BLOCK_BYTES)

    async def _chats(self, user: User, tar: "_TarWriter") -> AsyncIterator[bytes]:
        async for chat_id in self._parts.records.ids("chats", user.id):
            record = await self._parts.chats.find_record(chat_id)
            if record is not None:
                for piece in tar.member(f"chats/{_safe(chat_id)}.json", await json_encoder.encode(record)):
                    yield piece

    async def _files(self, user: User, tar: "_TarWriter") -> AsyncIterator[bytes]:
        parts = self._parts
        async for file_id in parts.records.ids("files", user.id):
            file = await parts.files.find(file_id)
            if file is None:
                continue
            folder = f"files/{_safe(file_id)}"
            name, key = f"{folder}/{_safe(file.name)}", file.blob_key
            if await parts.blobs.missing([key]):
                tar.note_missing(name)
            else:
                async with parts.blobs.local(key) as path:
                    async for piece in tar.file(name, path):
                        yield piece
            text = await parts.texts.find_text(file_id)
            if text is not None:
                for piece in tar.member(f"{folder}.text.txt", [text.encode()]):
                    yield piece
        async for file_id in parts.records.ids("batch_files", user.id):
            name = f"batch-files/{_safe(file_id)}"
            if not await parts.batches.has_bytes(file_id):
                tar.note_missing(name)
                continue
            async with parts.batches.local(file_id) as path:
                async for piece in tar.file(name, path):
                    yield piece


class _TarWriter:
    """Makes the blocks of a tar archive (POSIX.1-2001), and notes what is in it."""

    def __init__(self) -> None:
        self.members: list[dict[str, Any]] = []

    def member(self, name: str, parts: Sequence[bytes]) -> Sequence[bytes]:
        """Return the blocks of a member."""
        size, content = sum(map(len, parts)), hashlib.sha256()
        for part in parts:
            content.update(part)
        self._note(name, size, content.hexdigest())
        return [_head(name, size), *parts, _padding(size)]

    async def file(self, name: str, path: Path) -> AsyncIterator[bytes]:
        """Yield the blocks of a member from a file; one that is gone is noted without a size."""
        try:
            handle = await asyncio.to_thread(path.open, "rb")
        except FileNotFoundError:
            self.note_missing(name)
            return
        with handle:
            size, content = await asyncio.to_thread(_size_of, handle), hashlib.sha256()
            yield _head(name, size)
            left = size
            while left:
                piece = await asyncio.to_thread(handle.read, min(left, READ_BYTES))
                if not piece:
                    raise EOFError(f"{path} became shorter")
                await asyncio.to_thread(content.update, piece)
                left -= len(piece)
                yield piece
            self._note(name, size, content.hexdigest())
            yield _padding(size)

    def note_missing(self, name: str) -> None:
        """Note a file whose bytes are gone: a member without a size."""
        self.members.append({"path": name, "size": None, "sha256": None})

    def _note(self, name: str, size: int, digest: str) -> None:
        if name != MANIFEST:
            self.members.append({"path": name, "size": size, "sha256": digest})


def _head(name: str, size: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, 0o600
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


def _padding(size: int) -> bytes:
    return bytes(-size % BLOCK_BYTES)


def _size_of(handle: BinaryIO) -> int:
    size = handle.seek(0, 2)
    handle.seek(0)
    return size


def _safe(name: str) -> str:
    """Return a name that is one part of a path on every system."""
    cleaned = name.replace("/", "_").replace("\\", "_")
    return cleaned if cleaned.strip(".") else "_"
