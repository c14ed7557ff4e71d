"""What the daemon believes of the process that reads documents."""

from typing import Any

import orjson
import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.extract import messages as extract_messages
from gatewayd.extract.messages import AnswerLimits, pack_answer, unpack_answer
from gatewayd.extract.records import ExtractedDocument
from gatewayd.ingest.records import ExtractionResult, TextChunk, TextPart
from gatewayd.workers import MAX_FRAME_BYTES

LIMITS = AnswerLimits(text=2000, chunk=5)
TEXT = "Vögel am See. " * 100


def test_an_answer_comes_back_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extract_messages, "ROWS_PER_TABLE", 3)
    # A block ends inside of a character.
    monkeypatch.setattr(extract_messages, "BLOCK_BYTES", 2)
    chunks = tuple(
        TextChunk(
            number, number, number + 2, number or None, "A > B", (0, number) if 0 < number < 3 else None
        )
        for number in range(8)
    )
    document = ExtractedDocument(TEXT, (TextPart(0, len(TEXT)),), pages=3, title="T", blank_pages=1)
    header, blob = pack_answer(document, chunks, LIMITS)
    assert header["tables"] == 3
    assert unpack_answer(header, blob, LIMITS) == ExtractionResult(TEXT, chunks, 3, "T", 1)
    # What is read on the event loop does not grow with the document.
    assert len(orjson.dumps(header)) < 120


def test_an_answer_is_at_most_as_long_as_one_of_the_longest_text() -> None:
    text = "\N{GRINNING FACE}" * LIMITS.text
    assert len(pack_answer(ExtractedDocument(text, ()), (), LIMITS)[1]) == 4 * LIMITS.text < LIMITS.total
    chunks = [TextChunk(number, 0, 5, None, "x" * 1000) for number in range(1100)]
    with pytest.raises(GatewayError, match="raise ingest_text_limit") as caught:
        pack_answer(ExtractedDocument(text, ()), chunks, LIMITS)
    assert caught.value.kind is ErrorKind.INVALID_REQUEST
    assert AnswerLimits(text=1 << 29, chunk=5).total == MAX_FRAME_BYTES


def lie(*rows: Any, text: bytes = b"words", **header: Any) -> tuple[dict[str, Any], bytes]:
    """Return an answer that is right but for what is said."""
    table = orjson.dumps(rows or [(0, 0, 5, None, None, None)])
    fields = {"pages": None, "blank_pages": 0, "title": None, "text": len(text), "tables": 1, **header}
    return fields, text + len(table).to_bytes(4) + table


@pytest.mark.parametrize(
    "answer",
    [
        ({}, b""),
        lie(text=b"\xff\xfe words"),
        lie(text=b"\xed\xa0\x80 words"),
        lie(text=b"wor\0ds"),
        lie(text=b"     "),
        lie(tables=2),
        lie(tables="many"),
        lie(pages="3"),
        lie(title=[1]),
        lie((1, 0, 5, None, None, None)),
        lie((0, 0, 6, None, None, None)),
        lie((0, -1, 5, None, None, None)),
        lie((0, 3, 3, None, None, None)),
        lie((0, 0.0, 5, None, None, None)),
        lie((0, 0, 5, "1", None, None)),
        lie((0, 0, 5, None, 7, None)),
        lie((0, 0, 5, None, "x" * 1001, None)),
        lie((0, 0, 5, None, "a\0b", None)),
        lie((0, 0, 5, -1, None, None)),
        lie((0, 0, 5, 1 << 31, None, None)),
        lie((0, 0, 2, None, None, (0, 6))),
        lie((0, 0, 2, None, None, (1, 1))),
        lie((0, 0, 2, None, None, (-1, 1))),
        lie((0, 0, 2, None, None, (0, 1.0))),
        lie((0, 0, 2, None, None, (0, 1, 2))),
        lie((0, 0, 2, None, None, 3)),
        # With the names of its columns it is longer than a chunk.
        lie((0, 2, 5, None, None, (0, 2))),
        lie(pages=1 << 31),
        lie(blank_pages=-1),
        lie(blank_pages="1"),
        lie(blank_pages=None),
        lie(title="x" * 1001),
        lie(title="a\0b"),
        # A text of a few characters has chunks that fill the disk.
        lie(*((number, 0, 5, None, None, None) for number in range(21))),
        lie((0, 0, 6, None, None, None), text=b"longer"),
        lie(text=b"longer" * 1000),
        lie((0, 0)),
        lie("chunk"),
        lie(5),
    ],
)
def test_what_is_no_answer_is_the_fault_of_the_document(answer: tuple[dict[str, Any], bytes]) -> None:
    with pytest.raises(GatewayError) as caught:
        unpack_answer(*answer, LIMITS)
    assert caught.value.kind is ErrorKind.INVALID_REQUEST
    assert "its reader sent an invalid reply" in caught.value.message


def test_what_the_lies_differ_from_is_right() -> None:
    assert (
        len(unpack_answer(*lie(*((number, 0, 5, None, None, None) for number in range(20))), LIMITS).chunks)
        == 20
    )
    assert unpack_answer(*lie(), LIMITS) == ExtractionResult("words", (TextChunk(0, 0, 5),))
    assert unpack_answer(*lie(pages=2, blank_pages=3), LIMITS).blank_pages == 2
    columns = unpack_answer(*lie((0, 2, 4, None, None, (0, 2))), LIMITS)
    assert columns == ExtractionResult("words", (TextChunk(0, 2, 4, columns=(0, 2)),))
