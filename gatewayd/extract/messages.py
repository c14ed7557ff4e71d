"""Replies of the reader process: packed there, unpacked and validated by the daemon.

A malicious document may control its reader, so the daemon checks every field. A text has many chunks, which
are read in tables of limited size.
"""

import codecs
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.extract.records import MB, ExtractedDocument
from gatewayd.ingest.records import ExtractionResult, TextChunk
from gatewayd.workers import MAX_FRAME_BYTES

ROWS_PER_TABLE: Final = 500
"""Chunks per table; a table is one JSON text."""

BLOCK_BYTES: Final = 1 << 20
BYTES_PER_CHARACTER: Final = 6
"""Maximum bytes of a reply per character of the longest text: four for the text, two for its chunks."""
EXTRA_BYTES: Final = 1 << 20
"""Further bytes of a reply."""
MAX_HEADING_CHARACTERS: Final = 1000
MAX_REPETITIONS: Final = 20
"""Maximum characters of all chunks per character of the text: chunks overlap by at most a half."""
MAX_PAGES: Final = (1 << 31) - 1
"""Maximum of the database column."""


@dataclass(frozen=True, slots=True)
class AnswerLimits:
    """Maximum number of characters of a text and of one chunk."""

    text: int
    chunk: int

    @property
    def total(self) -> int:
        """The maximum number of bytes of a reply without its header."""
        return min(EXTRA_BYTES + BYTES_PER_CHARACTER * self.text, MAX_FRAME_BYTES)


def pack_answer(
    document: ExtractedDocument, chunks: Sequence[TextChunk], limits: AnswerLimits
) -> tuple[dict[str, Any], bytes]:
    """Return the header and the bytes of a reply: the text, followed by tables of chunks.

    Raises invalid_request if it exceeds the limits of the daemon.
    """
    text = document.text.encode()
    tables = [
        orjson.dumps([_row(each) for each in page])
        for page in (
            chunks[start : start + ROWS_PER_TABLE] for start in range(0, len(chunks), ROWS_PER_TABLE)
        )
    ]
    header = {
        "pages": document.pages,
        "blank_pages": document.blank_pages,
        "title": document.title,
        "text": len(text),
        "tables": len(tables),
    }
    blob = b"".join([text, *(len(table).to_bytes(4) + table for table in tables)])
    if len(blob) > limits.total:
        raise GatewayError(
            ErrorKind.INVALID_REQUEST,
            f"cannot read the file: its text and its chunks take more than {limits.total // MB} MB; "
            "split it, or raise ingest_text_limit",
        )
    return header, blob


def _row(chunk: TextChunk) -> tuple[object, ...]:
    return chunk.number, chunk.start, chunk.end, chunk.page, chunk.heading, chunk.columns


def unpack_answer(header: Mapping[str, Any], blob: bytes, limits: AnswerLimits) -> ExtractionResult:
    """Return the result in a reply; raise invalid_request for an invalid one. Slow: call it in a thread."""
    try:
        return _unpacked(header, memoryview(blob), limits)
    except (ValueError, TypeError, LookupError) as error:
        sentence = "cannot read the file: its reader sent an invalid reply; the file is damaged"
        raise GatewayError(ErrorKind.INVALID_REQUEST, sentence) from error


def _unpacked(header: Mapping[str, Any], blob: memoryview, limits: AnswerLimits) -> ExtractionResult:
    text = _text(blob[: header["text"]])
    if not text.strip() or "\0" in text or len(text) > limits.text:
        raise ValueError("the text is blank, too long or holds NUL")
    tables = blob[header["text"] :]
    chunks = tuple(_chunks(tables, header["tables"], len(text), limits.chunk))
    pages, blank_pages, title = header["pages"], header["blank_pages"], header["title"]
    if not _is_page(pages) or not _is_label(title):
        raise ValueError("pages is a number and title a short text")
    if blank_pages is None or not _is_page(blank_pages):
        raise ValueError("blank_pages is a number")
    return ExtractionResult(text, chunks, pages, title, min(blank_pages, pages or 0))


def _text(encoded: memoryview) -> str:
    decoder = codecs.getincrementaldecoder("utf-8")()
    blocks = [decoder.decode(encoded[at : at + BLOCK_BYTES]) for at in range(0, len(encoded), BLOCK_BYTES)]
    return "".join([*blocks, decoder.decode(b"", final=True)])


def _chunks(tables: memoryview, count: int, length: int, longest: int) -> Iterator[TextChunk]:
    """Yield the chunks of a text of `length` characters, each of at most `longest` characters."""
    number = 0
    left = length * MAX_REPETITIONS
    for _ in range(count):
        size = int.from_bytes(tables[:4])
        for row in orjson.loads(tables[4 : 4 + size]):
            index, start, end, page, heading, columns = row
            names = None if columns is None else tuple(columns)
            chunk = TextChunk(index, start, end, page, heading, names)
            if not _is_chunk(chunk, number, length):
                raise ValueError("a chunk is not a range of the text")
            characters = chunk.end - chunk.start + _columns_size(chunk.columns)
            left -= characters
            if left < 0 or characters > longest:
                raise ValueError("the chunks are too long for the text")
            yield chunk
            number += 1
        tables = tables[4 + size :]


def _is_chunk(chunk: TextChunk, number: int, length: int) -> bool:
    return (
        chunk.number == number
        and 0 <= chunk.start < chunk.end <= length
        and isinstance(chunk.start, int)
        and isinstance(chunk.end, int)
        and _is_page(chunk.page)
        and _is_label(chunk.heading)
        and _is_stretch(chunk.columns, length)
    )


def _is_stretch(columns: tuple[int, ...] | None, length: int) -> bool:
    """Tell whether the column names are a range of the text, or absent."""
    if columns is None:
        return True
    start, end = columns
    return isinstance(start, int) and isinstance(end, int) and 0 <= start < end <= length


def _columns_size(columns: tuple[int, int] | None) -> int:
    """Return the number of characters that column names add to a chunk."""
    return 0 if columns is None else columns[1] - columns[0] + 1


def _is_page(value: object) -> bool:
    return value is None or (isinstance(value, int) and 0 <= value <= MAX_PAGES)


def _is_label(value: object) -> bool:
    """Tell whether a value is a title or a heading, or None."""
    if value is None:
        return True
    return isinstance(value, str) and len(value) <= MAX_HEADING_CHARACTERS and "\0" not in value
