"""Writes the archive of a person to a file: checked against its manifest, complete or not at all."""

import hashlib
import json
import os
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol

from gatewayctl.failures import CommandError
from gatewayctl.prompts import usage

SUFFIXES: Final = (".zip", ".tar")
MANIFEST: Final = "manifest.json"
PIECE: Final = 1 << 16
MAX_MANIFEST_BYTES: Final = 1 << 30
ZIP_TIME: Final = (1980, 1, 1, 0, 0, 0)
"""Time of each member: the same archive is written each time."""


class PieceReader:
    """A file to read over pieces of bytes."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._held = b""

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, at most `size`, fewer only at the end."""
        parts, left = [], size
        while left:
            if not self._held:
                self._held = next(self._pieces, b"")
                if not self._held:
                    break
            taken, self._held = self._held[:left], self._held[left:]
            parts.append(taken)
            left -= len(taken)
        return b"".join(parts)


class _Sink(Protocol):
    """The written archive."""

    def add(self, member: tarfile.TarInfo, content: "_Hashed") -> None:
        """Write one member."""
        ...


class _Hashed:
    """The content of a member, which is hashed as it is read."""

    def __init__(self, content: Any) -> None:
        self._content = content
        self.hash = hashlib.sha256()
        self.kept: bytearray | None = None

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._content.read(size)
        self.hash.update(data)
        if self.kept is not None:
            self.kept += data
        return data


class _TarSink:
    def __init__(self, archive: tarfile.TarFile) -> None:
        self._archive = archive

    def add(self, member: tarfile.TarInfo, content: _Hashed) -> None:
        self._archive.addfile(member, content)


class _ZipSink:
    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive

    def add(self, member: tarfile.TarInfo, content: _Hashed) -> None:
        info = zipfile.ZipInfo(member.name, ZIP_TIME)
        info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o100600 << 16
        with self._archive.open(info, "w", force_zip64=True) as target:
            while data := content.read(PIECE):
                target.write(data)


def check_target(path: Path) -> None:
    """Raise a usage error for a name of another type, and for a file that exists."""
    if path.suffix not in SUFFIXES:
        raise usage(f"cannot write {path}: expected a name that ends with .zip or .tar", param="--to")
    if path.exists():
        raise usage(f"cannot write {path}: it exists", param="--to")


def write_archive(path: Path, pieces: Iterator[bytes]) -> int:
    """Write a tar or zip archive that only its owner can read, and return the number of members.

    Raises `CommandError` unless each member is as the manifest at the end says.
    """
    part = path.with_name(f".{path.name}.part")
    try:
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            with os.fdopen(handle, "wb") as file:
                count = _copy(pieces, path.suffix, file)
                file.flush()
                os.fsync(file.fileno())
            # A file that came meanwhile is not replaced.
            os.link(part, path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise usage(f"cannot write {path}: {reason}", param="--to") from error
    return count


def _copy(pieces: Iterator[bytes], suffix: str, file: BinaryIO) -> int:
    found: dict[str, tuple[int, str]] = {}
    manifest: bytes | None = None
    try:
        with ExitStack() as stack:
            source = stack.enter_context(tarfile.open(fileobj=PieceReader(pieces), mode="r|"))  # type: ignore[call-overload]
            sink = _open_sink(file, suffix, stack)
            for member in source:
                content = _Hashed(source.extractfile(member))
                if member.name == MANIFEST and member.size <= MAX_MANIFEST_BYTES:
                    content.kept = bytearray()
                sink.add(member, content)
                if content.kept is not None:
                    manifest = bytes(content.kept)
                else:
                    found[member.name] = (member.size, content.hash.hexdigest())
    except tarfile.TarError as error:
        raise _broken() from error
    _check(manifest, found)
    return len(found)


def _open_sink(file: BinaryIO, suffix: str, stack: ExitStack) -> _Sink:
    if suffix == ".zip":
        return _ZipSink(stack.enter_context(zipfile.ZipFile(file, "w")))
    return _TarSink(stack.enter_context(tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT)))


def _check(manifest: bytes | None, found: dict[str, tuple[int, str]]) -> None:
    if manifest is None:
        raise _broken()
    try:
        members = json.loads(manifest)["members"]
        told = {each["path"]: (each["size"], each["sha256"]) for each in members if each["size"] is not None}
    except (ValueError, KeyError, TypeError) as error:
        raise _broken() from error
    if told != found:
        raise _broken()


def _broken() -> CommandError:
    return CommandError("upstream_failed", "cannot finish the export: the archive of the daemon broke off")
