"""Readers of files: their checksums, and the same bytes again for the upload."""

import hashlib
import os
import unicodedata
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import BinaryIO, Final
from urllib.parse import quote

from gatewayctl.ingest.folder import Folder, IrregularError, reason
from gatewayctl.ingest.records import Candidate, Stamp, Version
from gatewayctl.ingest.stop import Stop

PIECE: Final = 1 << 20
MAX_NAME_CHARS: Final = 255
# The daemon accepts request lines of 8190 bytes; the rest of the query is short.
MAX_QUERY_BYTES: Final = 7000
# Control characters, and lone surrogates, which stand for bytes that are no UTF-8.
REFUSED: Final = frozenset({"Cc", "Cs"})
CHANGED: Final = "cannot take the file: it changed while it was read; the next run takes it"


class ReadError(Exception):
    """A file cannot be read or named; the message is a sentence. `is_walk`: its content is unknown."""

    def __init__(self, message: str, *, is_walk: bool = False) -> None:
        super().__init__(message)
        self.is_walk = is_walk


class GoneError(Exception):
    """A file does not exist any more."""


def composed(path: str) -> str:
    """Return a path of the file system, whose length is limited, in NFC."""
    return unicodedata.normalize("NFC", path)  # noqa: TID251


def place_of(parts: Sequence[str]) -> str:
    """Return the path of a file for the daemon, in NFC; raises ReadError."""
    if any(unicodedata.category(character) in REFUSED for part in parts for character in part):
        raise ReadError("cannot take the file: its name holds control characters or is no UTF-8")
    place = composed("/".join(parts))
    name = place.rpartition("/")[2]
    if len(name) > MAX_NAME_CHARS or len(quote(place, safe="")) + len(quote(name, safe="")) > MAX_QUERY_BYTES:
        raise ReadError("cannot take the file: its path is too long")
    return place


class Reader:
    """Reads the files of a folder and caches their checksums.

    A version is cached after two equal readings in a row, because a file may change twice within one tick of
    the clock of the file system.
    """

    def __init__(self, folder: Folder, stop: Stop) -> None:
        self._folder = folder
        self._stop = stop
        self._known: dict[tuple[str, ...], tuple[Version, bool]] = {}

    def read(self, candidate: Candidate, advance: Callable[[int], None]) -> Version:
        """Return the version of a file; raises ReadError, GoneError or StoppedError."""
        place = place_of(candidate.parts)
        with closing(self._open(candidate.parts)) as file:
            before = Stamp.of(file.fileno())
            known, is_certain = self._known.get(candidate.parts, (None, False))
            if known is not None and is_certain and known.stamp == before:
                advance(candidate.size)
                return known
            checksum = self._digest(file, before.size, advance)
            if Stamp.of(file.fileno()) != before:
                raise ReadError(CHANGED)
        version = Version(candidate.parts, place, checksum, before)
        self._known[candidate.parts] = (version, version == known)
        return version

    def stream(self, version: Version, advance: Callable[[int], None]) -> "Stream":
        """Open a file again to send it; raises ReadError."""
        try:
            file = self._open(version.parts)
        except GoneError as error:
            raise ReadError(CHANGED) from error
        if os.fstat(file.fileno()).st_size != version.stamp.size:
            file.close()
            raise ReadError(CHANGED)
        return Stream(file, version.stamp.size, self._stop, version.checksum, advance)

    def _open(self, parts: Sequence[str]) -> BinaryIO:
        try:
            return self._folder.open_file(parts)
        except FileNotFoundError as error:
            raise GoneError from error
        except IrregularError as error:
            raise ReadError(CHANGED) from error
        except OSError as error:
            raise ReadError(f"cannot read the file: {reason(error)}", is_walk=True) from error

    def _digest(self, file: BinaryIO, size: int, advance: Callable[[int], None]) -> str:
        """Return the checksum of a file; raises ReadError for one that grows, which may have no end."""
        digest = hashlib.sha256()
        while piece := _piece(file, PIECE):
            self._stop.check()
            size -= len(piece)
            if size < 0:
                raise ReadError(CHANGED)
            digest.update(piece)
            advance(len(piece))
        return digest.hexdigest()


class Stream:
    """Stream of the bytes of a file for an upload: of exactly this size, and this checksum if given.

    Raises ReadError before the last byte if the file has changed, so that the upload breaks off.
    """

    def __init__(
        self,
        file: BinaryIO,
        size: int,
        stop: Stop,
        checksum: str | None = None,
        advance: Callable[[int], None] = lambda amount: None,
    ) -> None:
        self.size = size
        self._file = file
        self._left = size
        self._stop = stop
        self._checksum = checksum
        self._advance = advance
        self._digest = hashlib.sha256()

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes, none at the end."""
        self._stop.check()
        piece = _piece(self._file, self._left if size < 0 else min(size, self._left))
        if not piece and self._left:
            raise ReadError(CHANGED)
        self._left -= len(piece)
        self._digest.update(piece)
        if not self._left and self._checksum not in {None, self._digest.hexdigest()}:
            raise ReadError(CHANGED)
        self._advance(len(piece))
        return piece

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _piece(file: BinaryIO, size: int) -> bytes:
    try:
        return file.read(size)
    except OSError as error:
        raise ReadError(f"cannot read the file: {reason(error)}", is_walk=True) from error
