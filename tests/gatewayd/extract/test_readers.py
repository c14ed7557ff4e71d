import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.extract.readers import READERS, read_document
from gatewayd.extract.records import DocumentFormat, DocumentLimits, ExtractedDocument
from tests.fakes.documents import makers as documents
from tests.fakes.documents.kinds import GOOD
from tests.fakes.documents.makers import SENTENCE

Reading = Callable[..., ExtractedDocument]


def without_bytes(value: object) -> str | None:
    """Return the name of a parameter: bytes of documents hold times and random numbers."""
    return "document" if isinstance(value, bytes) else None


@pytest.fixture
def reading(tmp_path: Path) -> Reading:
    def of(data: bytes, name: str = "x", limits: DocumentLimits | None = None) -> ExtractedDocument:
        path = tmp_path / "blob"
        path.write_bytes(data)
        return read_document(path, name, None, limits or DocumentLimits())

    return of


def refusal(reading: Reading, data: bytes, limits: DocumentLimits | None = None, name: str = "x") -> str:
    with pytest.raises(GatewayError) as caught:
        reading(data, name, limits)
    assert caught.value.kind is ErrorKind.INVALID_REQUEST
    return caught.value.message


def told(reading: Reading, data: bytes) -> tuple[ErrorKind | None, str]:
    """Return the text of a document, or the kind and sentence of the failure."""
    try:
        return None, reading(data).text
    except GatewayError as error:
        return error.kind, error.message


@pytest.mark.parametrize("format_", READERS)
def test_every_format_is_read(reading: Reading, format_: DocumentFormat) -> None:
    document = reading(GOOD[format_], "x.md" if format_ is DocumentFormat.MARKDOWN else "x")
    assert SENTENCE in document.text
    assert document.parts[0].start == 0
    assert document.parts[-1].end == len(document.text)
    assert "\0" not in document.text


@pytest.mark.parametrize("format_", READERS)
def test_the_text_limit_holds_for_every_format(reading: Reading, format_: DocumentFormat) -> None:
    name = "x.md" if format_ is DocumentFormat.MARKDOWN else "x"
    assert "more than 10 characters" in refusal(reading, GOOD[format_], DocumentLimits(text=10), name)


@pytest.mark.parametrize(
    "format_", [f for f in READERS if f not in {DocumentFormat.TEXT, DocumentFormat.MARKDOWN}]
)
def test_every_cut_is_read_or_refused_with_a_sentence(reading: Reading, format_: DocumentFormat) -> None:
    data = GOOD[format_]
    for end in range(1, len(data), max(len(data) // 40, 1)):
        kind, said = told(reading, data[:end])
        assert kind in {None, ErrorKind.INVALID_REQUEST}
        assert said.startswith("cannot read the ") if kind else said.strip()


@pytest.mark.parametrize(
    "format_", [f for f in READERS if f not in {DocumentFormat.TEXT, DocumentFormat.MARKDOWN}]
)
def test_every_hole_is_read_or_refused_with_a_sentence(reading: Reading, format_: DocumentFormat) -> None:
    data = GOOD[format_]
    for start in range(0, len(data), max(len(data) // 40, 1)):
        kind, said = told(reading, data[:start] + bytes(64) + data[start + 64 :])
        assert kind in {None, ErrorKind.INVALID_REQUEST}
        assert said.startswith("cannot read the ") if kind else said.strip()


def test_a_text_in_a_gzip_file_goes_by_the_inner_name(reading: Reading) -> None:
    document = reading(gzip.compress(b"# Title\n\nwords"), "a.md.gz")
    assert document.title == "Title"
    assert reading(gzip.compress(b"one ") + gzip.compress(b"two")).text == "one two\n"


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "cannot read the file: it is empty"),
        (b" \n\t", "cannot read the text: no text was found in it"),
        (gzip.compress(b""), "cannot read the gzip file: its content is empty"),
        (gzip.compress(documents.pdf()), "cannot read the gzip file: its content is not a text"),
        (gzip.compress(gzip.compress(b"x")), "cannot read the gzip file: its content is not a text"),
        (gzip.compress(b"x" * 9999)[:-9], "cannot read the gzip file: it is damaged: its end is missing"),
        (gzip.compress(bytes(300_000_000)), "cannot read the gzip file: it expands to more than 134 MB"),
        (documents.expanding("z", 99_000_000), "more than 400 times its size"),
        (
            documents.replaced(documents.word(), "word/document.xml", documents.entities() + "<x>&a9;</x>"),
            "cannot read the Word document: its XML declares a document type",
        ),
        (
            documents.replaced(documents.slides(), "ppt/presentation.xml", documents.entities() + "<x/>"),
            "cannot read the PowerPoint presentation: its XML declares a document type",
        ),
        (
            documents.replaced(documents.workbook(), "xl/workbook.xml", documents.entities() + "<x/>"),
            "cannot read the Excel workbook: its XML declares a document type",
        ),
        (
            documents.opendocument("text", "&a9;", prolog=documents.entities()),
            "cannot read the OpenDocument text: its XML declares a document type",
        ),
        (
            documents.replaced(documents.word(), "word/document.xml", "<x"),
            "cannot read the Word document: it is damaged",
        ),
    ],
    ids=without_bytes,
)
def test_hostile_and_broken_documents_are_refused(reading: Reading, data: bytes, sentence: str) -> None:
    assert sentence in refusal(reading, data)


def test_the_damage_is_told_in_one_short_line(reading: Reading) -> None:
    sentence = refusal(reading, GOOD[DocumentFormat.DOCX][:-3000])
    assert "it is damaged (" in sentence
    assert "\n" not in sentence
    assert len(sentence) < 400
