"""The archive of a backup: an uncompressed tar of regular files, with a manifest first and checksums last.

The reader takes nothing but what the writer writes: no links, no devices, no sparse files, no extended
headers, no names outside of the known folders, and not more bytes than the manifest says.
"""

import hashlib
import os
import re
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, Protocol

from gatewayd.backup.manifest import MANIFEST_BYTES, BackupManifest, decode_manifest
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.fsync import sync_to_disk

BLOCK: Final = 512
COPY_BYTES: Final = 1 << 20
MAX_CHECKSUMS_BYTES: Final = 1 << 30
MAX_NAME_BYTES: Final = 255

MANIFEST: Final = "manifest.json"
DATABASE: Final = "database.sqlite"
SECRETS: Final = "secrets.sealed"
CHECKSUMS: Final = "SHA256SUMS"
STATE, PLUGINS, SETTINGS = "state/", "plugins/", "settings/"
FOLDERS: Final = (STATE, PLUGINS, SETTINGS)
SINGLE: Final = frozenset({DATABASE, SECRETS, CHECKSUMS})
TRIES: Final = 3
"""How often a file is read that changes meanwhile."""

_NAME: Final = re.compile(r"[^\x00-\x1f\x7f]+")


class HashUpdater(Protocol):
    """A running hash."""

    def update(self, data: bytes, /) -> None:
        """Add bytes."""
        ...

    def hexdigest(self) -> str:
        """Return the hash of all bytes in hexadecimal."""
        ...


@dataclass(frozen=True, slots=True)
class ArchiveMember:
    """A member of an archive: its name and its size in bytes."""

    name: str
    size: int


class ArchiveWriter:
    """Writes an archive to a new file, which is complete only after `finish`."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._lines: list[str] = []
        self.bytes = 0
        """Size of the members after the manifest."""
        self._file.write(_header(MANIFEST, MANIFEST_BYTES))
        self._manifest_at = file.tell()
        self._file.write(b" " * MANIFEST_BYTES)

    @property
    def count(self) -> int:
        """The number of members after the manifest, without the checksums."""
        return len(self._lines)

    def add_file(self, name: str, path: Path) -> bool:
        """Add the bytes of a file; False if it is gone, or changes all the time."""
        for _ in range(TRIES):
            start = self._file.tell()
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            except FileNotFoundError:
                return False
            with open(descriptor, "rb", buffering=0) as source:  # noqa: PTH123 - a descriptor
                size = os.fstat(descriptor).st_size
                self._file.write(_header(name, size))
                digest = _copy(source, self._file, size)
            if digest is not None:
                self._close_member(name, size, digest)
                return True
            self._file.seek(start)
            self._file.truncate()
        return False

    def add_bytes(self, name: str, data: bytes) -> None:
        """Add bytes."""
        self._file.write(_header(name, len(data)))
        self._file.write(data)
        self._close_member(name, len(data), hashlib.sha256(data).hexdigest())

    def finish(self, make_manifest: Callable[[int, int, str], BackupManifest]) -> BackupManifest:
        """Write the checksums and the manifest, which is made of the number, bytes and checksum of members.

        When this returns the archive survives a power failure.
        """
        data = "".join(self._lines).encode()
        self._file.write(_header(CHECKSUMS, len(data)) + data + _padding(len(data)))
        self._file.write(bytes(2 * BLOCK))
        manifest = make_manifest(self.count, self.bytes, hashlib.sha256(data).hexdigest())
        self._file.flush()
        os.fsync(self._file.fileno())
        # Only now it counts as complete.
        self._file.seek(self._manifest_at)
        self._file.write(manifest.encode())
        self._file.flush()
        os.fsync(self._file.fileno())
        return manifest

    def _close_member(self, name: str, size: int, digest: str) -> None:
        self._file.write(_padding(size))
        self._lines.append(f"{digest}  {name}\n")
        self.bytes += size


class ArchiveReader:
    """Reads an archive; `where` names it in failures. Raises invalid_request for whatever is not in order."""

    def __init__(self, file: BinaryIO, where: str) -> None:
        self._file = file
        self._where = where
        first = self._next()
        if first is None or first != ArchiveMember(MANIFEST, MANIFEST_BYTES):
            raise self._refused("it is no backup of gatewayd")
        self.manifest = decode_manifest(self._exactly(MANIFEST_BYTES), where)

    def extract(self, target: Path) -> dict[str, str]:
        """Write all members below a new folder, compare them with the checksums, and return these by name.

        Each file is synced to disk. The folder may be left half-filled by a failure.
        """
        found: dict[str, str] = {}
        left = self.manifest.bytes
        while (member := self._next()) is not None and member.name != CHECKSUMS:
            if not is_member_name(member.name) or member.name in found:
                raise self._refused(f"it has a member with the name {member.name[:80]!r}")
            left -= member.size
            if left < 0:
                raise self._refused("it is larger than its manifest says")
            found[member.name] = self._write(target / member.name, member.size)
        if member is None or member.size > MAX_CHECKSUMS_BYTES:
            raise self._refused("it has no checksums")
        self._compare(found, self._exactly(member.size))
        return found

    def _compare(self, found: dict[str, str], checksums: bytes) -> None:
        if hashlib.sha256(checksums).hexdigest() != self.manifest.checksums:
            raise self._refused("its checksums are damaged")
        wanted = {}
        for line in checksums.decode("utf-8", "replace").splitlines():
            digest, _, name = line.partition("  ")
            wanted[name] = digest
        for name in sorted(wanted.keys() | found.keys()):
            if wanted.get(name) != found.get(name):
                raise self._refused(f"{name} is damaged or missing")

    def _write(self, path: Path, size: int) -> str:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        with open(os.open(path, flags, 0o600), "wb") as file:  # noqa: PTH123 - a descriptor
            digest = _copy(self._file, file, size)
        if digest is None:
            raise self._refused("it ends too early")
        self._exactly(len(_padding(size)))
        sync_to_disk(path)
        return digest

    def _next(self) -> ArchiveMember | None:
        """Return the next member, None at the end."""
        block = self._exactly(BLOCK)
        if not block.strip(b"\0"):
            return None
        try:
            # One block alone: headers of another kind, which could ask for any amount of memory, are refused.
            info = tarfile.TarInfo.frombuf(block, "utf-8", "strict")
        except (tarfile.HeaderError, UnicodeDecodeError, ValueError) as error:
            raise self._refused("it is no backup of gatewayd, or damaged") from error
        if info.type != tarfile.REGTYPE or info.size < 0:
            raise self._refused(f"it has a member that is no plain file: {info.name[:80]!r}")
        return ArchiveMember(info.name, info.size)

    def _exactly(self, size: int) -> bytes:
        data = self._file.read(size)
        if len(data) != size:
            raise self._refused("it ends too early")
        return data

    def _refused(self, reason: str) -> GatewayError:
        return GatewayError(ErrorKind.INVALID_REQUEST, f"cannot read the backup {self._where}: {reason}")


def is_member_name(name: str) -> bool:
    """Return whether a name is one that the writer may give a member."""
    if name in SINGLE - {CHECKSUMS}:
        return True
    rest = next((name.removeprefix(folder) for folder in FOLDERS if name.startswith(folder)), "")
    parts = rest.split("/")
    return (
        len(name.encode("utf-8", "surrogatepass")) <= MAX_NAME_BYTES
        and _NAME.fullmatch(rest) is not None
        and all(part not in {"", ".", ".."} for part in parts)
    )


def can_store(name: str, size: int) -> bool:
    """Return whether a member can have this name and size."""
    try:
        _header(name, size)
    except (ValueError, UnicodeEncodeError):
        return False
    return is_member_name(name)


def pieces(file: BinaryIO, size: int) -> Iterator[bytes]:
    """Yield the next bytes of a file, `size` of them, or fewer if it ends."""
    while size and (piece := file.read(min(size, COPY_BYTES))):
        size -= len(piece)
        yield piece


def _copy(source: BinaryIO, target: BinaryIO, size: int) -> str | None:
    """Copy bytes and return their SHA-256; None if there are fewer."""
    digest: HashUpdater = hashlib.sha256()
    copied = 0
    for piece in pieces(source, size):
        digest.update(piece)
        target.write(piece)
        copied += len(piece)
    return digest.hexdigest() if copied == size else None


def _header(name: str, size: int) -> bytes:
    """Return one block; raises ValueError if name and size need more."""
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, 0o600
    # The first form has long names, the other large sizes.
    is_small = size < 8**11
    block = info.tobuf(tarfile.USTAR_FORMAT if is_small else tarfile.GNU_FORMAT, "utf-8", "strict")
    if len(block) != BLOCK:
        raise ValueError("the name is too long")
    return block


def _padding(size: int) -> bytes:
    return bytes(-size % BLOCK)
