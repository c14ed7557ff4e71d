"""Safe opening of zip-based documents: limits of entries, and refusal of XML entities."""

import zipfile
from pathlib import Path
from typing import IO, Final
from xml.parsers import expat

from gatewayd.extract.records import MB, DocumentLimits
from gatewayd.extract.text_builder import ENCRYPTED, DocumentError

BLOCK_BYTES: Final = 4096
ENCRYPTION_BIT: Final = 1
UNKNOWN_ENCODING: Final = 18


def open_archive(path: Path, limits: DocumentLimits) -> zipfile.ZipFile:
    """Return an archive within the limits; raise DocumentError otherwise. The caller closes it."""
    archive = zipfile.ZipFile(path)
    try:
        _check(archive, limits)
    except DocumentError:
        archive.close()
        raise
    return archive


def _check(archive: zipfile.ZipFile, limits: DocumentLimits) -> None:
    entries = archive.infolist()
    if len(entries) > limits.entries:
        raise DocumentError(f"its archive has {len(entries)} entries, more than {limits.entries}")
    total = sum(entry.file_size for entry in entries)
    if total > limits.expanded:
        raise DocumentError(f"its archive expands to {total // MB} MB, more than {limits.expanded // MB} MB")
    for entry in entries:
        if entry.file_size > limits.entry:
            size = entry.file_size // MB
            raise DocumentError(
                f"an entry of its archive expands to {size} MB, more than {limits.entry // MB} MB"
            )
        if entry.file_size > MB and entry.file_size > limits.ratio * max(entry.compress_size, 1):
            raise DocumentError(
                f"an entry of its archive expands to more than {limits.ratio} times its size (zip bomb?)"
            )
        if entry.flag_bits & ENCRYPTION_BIT:
            raise DocumentError(ENCRYPTED)


def refuse_entities(archive: zipfile.ZipFile) -> None:
    """Raise DocumentError for XML that declares a document type: only attacks on XML parsers have one."""
    for entry in archive.infolist():
        if not entry.file_size:
            continue
        with archive.open(entry) as member:
            if _Prolog().declares_type(member):
                raise DocumentError(
                    "its XML declares a document type or entities, which office documents never do"
                )


class _Prolog:
    """Parser of the part of an XML file before its first element."""

    def __init__(self) -> None:
        self._is_declared = False
        self._is_over = False
        self._parser = expat.ParserCreate()
        self._parser.StartDoctypeDeclHandler = self._declare
        self._parser.StartElementHandler = self._end

    def declares_type(self, member: IO[bytes]) -> bool:
        """Tell whether a document type is declared before the first element; False for other data."""
        try:
            while not self._is_over and (block := member.read(BLOCK_BYTES)):
                self._parser.Parse(block, False)
        except expat.ExpatError as error:
            # A declaration could hide in an encoding that only the reader knows.
            return self._is_declared or error.code == UNKNOWN_ENCODING
        return self._is_declared

    def _declare(self, *_: object) -> None:
        self._is_declared = self._is_over = True

    def _end(self, *_: object) -> None:
        self._is_over = True
