"""Bytes of documents that are read as a whole, with limits, and decompression of gzip."""

import zlib
from typing import Final

from gatewayd.extract.records import MB, DocumentLimits, DocumentSource
from gatewayd.extract.text_builder import DocumentError

BLOCK_BYTES: Final = 1 << 16
GZIP_WINDOW: Final = 31
MAX_CHARACTER_BYTES: Final = 4
"""Maximum bytes of a character."""


def read_bytes(source: DocumentSource) -> bytes:
    """Return the bytes of a document; raise DocumentError above `max_document_bytes`."""
    if source.data is not None:
        return source.data
    size, most = source.path.stat().st_size, max_document_bytes(source.limits)
    if size > most:
        raise DocumentError(
            f"it has {size // MB} MB, more than the {most // MB} MB of a file of this kind; split it"
        )
    return source.path.read_bytes()


def read_gzip(source: DocumentSource) -> bytes:
    """Return the content of a gzip file (RFC 1952) of one or more members."""
    most = max_document_bytes(source.limits)
    pieces: list[bytes] = []
    length = 0
    rest = b""
    with source.path.open("rb") as file:
        decoder = zlib.decompressobj(GZIP_WINDOW)
        while block := rest or file.read(BLOCK_BYTES):
            piece = decoder.decompress(block, BLOCK_BYTES)
            length += len(piece)
            if length > most:
                raise DocumentError(f"it expands to more than {most // MB} MB")
            pieces.append(piece)
            rest = decoder.unconsumed_tail
            if decoder.eof:
                rest = decoder.unused_data.lstrip(b"\0") or file.read(BLOCK_BYTES).lstrip(b"\0")
                if not rest:
                    break
                decoder = zlib.decompressobj(GZIP_WINDOW)
    if not decoder.eof:
        raise DocumentError("it is damaged: its end is missing")
    return b"".join(pieces)


def max_document_bytes(limits: DocumentLimits) -> int:
    """Return the maximum bytes of a document that is read as a whole."""
    return max(limits.entry, limits.text * MAX_CHARACTER_BYTES)
