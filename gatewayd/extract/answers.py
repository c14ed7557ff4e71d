"""What the process that reads documents answers: packed there, read and checked by the daemon.

A reader may have been taken over by what it read, and a text has many chunks: nothing is believed, and
nothing takes long at a time.
"""

import codecs
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import orjson

from gatewayd.errors import GatewayError, Kind
from gatewayd.extract.records import Document
from gatewayd.ingest.records import Chunk, Extraction

TABLE_ROWS: Final = 500
"""Chunks that are read at a time: a table is one JSON text."""

BLOCK_BYTES: Final = 1 << 20
MAX_HEADING_CHARACTERS: Final = 1000


def pack(document: Document, chunks: Sequence[Chunk]) -> tuple[dict[str, Any], bytes]:
    """Return the header and the bytes of an answer: the text, and tables of chunks behind it."""
    text = document.text.encode()
    tables = [
        orjson.dumps([(each.number, each.start, each.end, each.page, each.heading) for each in page])
        for page in (chunks[start : start + TABLE_ROWS] for start in range(0, len(chunks), TABLE_ROWS))
    ]
    header = {"pages": document.pages, "title": document.title, "text": len(text), "tables": len(tables)}
    return header, b"".join([text, *(len(table).to_bytes(4) + table for table in tables)])


def unpack(header: Mapping[str, Any], blob: bytes) -> Extraction:
    """Return what an answer says; invalid_request when it is none. Takes time: not for the event loop."""
    try:
        return _unpacked(header, memoryview(blob))
    except (ValueError, TypeError, LookupError) as error:
        sentence = "cannot read the file: its reader answered with what is no text; it is damaged"
        raise GatewayError(Kind.INVALID_REQUEST, sentence) from error


def _unpacked(header: Mapping[str, Any], blob: memoryview) -> Extraction:
    text = _text(blob[: header["text"]])
    if not text.strip() or "\0" in text:
        raise ValueError("the text is blank or holds NUL")
    chunks = tuple(_chunks(blob[header["text"] :], header["tables"], len(text)))
    pages, title = header["pages"], header["title"]
    if not isinstance(pages, int | None) or not isinstance(title, str | None):
        raise TypeError("pages is a number and title a text")
    return Extraction(text, chunks, pages, title)


def _text(encoded: memoryview) -> str:
    decoder = codecs.getincrementaldecoder("utf-8")()
    blocks = [decoder.decode(encoded[at : at + BLOCK_BYTES]) for at in range(0, len(encoded), BLOCK_BYTES)]
    return "".join([*blocks, decoder.decode(b"", final=True)])


def _chunks(tables: memoryview, count: int, length: int) -> Iterator[Chunk]:
    number = 0
    for _ in range(count):
        size = int.from_bytes(tables[:4])
        for row in orjson.loads(tables[4 : 4 + size]):
            chunk = Chunk(*row)
            if not _is_chunk(chunk, number, length):
                raise ValueError("a chunk is not a stretch of the text")
            yield chunk
            number += 1
        tables = tables[4 + size :]


def _is_chunk(chunk: Chunk, number: int, length: int) -> bool:
    return (
        chunk.number == number
        and 0 <= chunk.start < chunk.end <= length
        and isinstance(chunk.start, int)
        and isinstance(chunk.end, int)
        and isinstance(chunk.page, int | None)
        and isinstance(chunk.heading, str | None)
        and len(chunk.heading or "") <= MAX_HEADING_CHARACTERS
    )
