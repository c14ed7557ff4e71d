from pathlib import Path

import pytest

from gatewayd.extract.detect import REFUSED_SIGNATURES, detect_format
from gatewayd.extract.records import DocumentFormat, DocumentLimits, DocumentSource
from gatewayd.extract.text_builder import DocumentError
from tests.fakes.documents import makers as documents

F = DocumentFormat


def told(folder: Path, data: bytes, name: str = "x", content_type: str | None = None) -> DocumentFormat:
    path = folder / "blob"
    path.write_bytes(data)
    return detect_format(DocumentSource(path, name, content_type, DocumentLimits()))


def without_bytes(value: object) -> str | None:
    """Return the name of a parameter: bytes of documents hold times and random numbers."""
    return "document" if isinstance(value, bytes) else None


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (documents.pdf(), F.PDF),
        (b"junk before\n" + documents.pdf(), F.PDF),
        (documents.epub(), F.EPUB),
        (documents.word(), F.DOCX),
        (documents.slides(), F.PPTX),
        (documents.workbook(), F.XLSX),
        (documents.old_workbook(), F.XLS),
        (documents.opendocument("text", ""), F.ODT),
        (documents.opendocument("spreadsheet", ""), F.ODS),
        (documents.opendocument("presentation", ""), F.ODP),
        (documents.rich_text(), F.RTF),
        (documents.message(), F.MAIL),
        (documents.page(), F.HTML),
        (b'<?xml version="1.0"?>\n<!-- x -->\n<html xmlns="">', F.HTML),
        (documents.notebook(), F.JSON),
        (documents.zipped(b"x"), F.GZIP),
        (b".Dd November 21, 2026\n.Dt X 1\n", F.MANUAL),
        (b"'\\\" t\n.nh\nwords", F.MANUAL),
        (b'.\\" License\n.\\"\n.ie n x\n.TH X 1\n.SH NAME', F.MANUAL),
        (b"just words", F.TEXT),
        (b'<?xml version="1.0"?><book/>', F.TEXT),
    ],
    ids=without_bytes,
)
def test_content_decides_whatever_the_name_says(
    tmp_path: Path, data: bytes, expected: DocumentFormat
) -> None:
    assert told(tmp_path, data) is expected
    assert told(tmp_path, data, "wrong.png", "image/png") is expected


@pytest.mark.parametrize(
    ("data", "name", "content_type", "expected"),
    [
        (b"# Title", "a.MD", None, F.MARKDOWN),
        (b"# Title", "a", "text/markdown; charset=utf-8", F.MARKDOWN),
        (b"[a](b)", "a.md", None, F.MARKDOWN),
        (b"# Title", "a.py", None, F.TEXT),
        (b"<p>x</p>", "a.html", None, F.HTML),
        (b"<p>x</p>", "a.txt", None, F.TEXT),
        (b"no tags at all", "a.html", None, F.TEXT),
        (b"Subject: x\n\nbody", "a.eml", None, F.MAIL),
        (b"no headers", "a.eml", None, F.TEXT),
        (b"BM means body mass", "a.txt", None, F.TEXT),
        (b"MZ is a prefix", "a.txt", None, F.TEXT),
        (b".profile\n.bashrc\n", "a.txt", None, F.TEXT),
        (b"A page begins with\n.TH X 1\n", "a.txt", None, F.TEXT),
        (b"OTTO was here", "a.txt", None, F.TEXT),
        (b"To: do\nFrom: here\nnow we go\n\n", "a.txt", None, F.TEXT),
    ],
    ids=without_bytes,
)
def test_names_decide_between_kinds_of_text(
    tmp_path: Path, data: bytes, name: str, content_type: str | None, expected: DocumentFormat
) -> None:
    assert told(tmp_path, data, name, content_type) is expected


@pytest.mark.parametrize(
    "row", REFUSED_SIGNATURES, ids=[f"{row[3]} {row[1]!r}" for row in REFUSED_SIGNATURES]
)
def test_what_is_no_document_is_named(tmp_path: Path, row: tuple[int, bytes, str, str]) -> None:
    offset, magic, sentence, word = row
    with pytest.raises(DocumentError) as caught:
        told(tmp_path, b"\x01" * offset + magic + bytes(600), "a.txt", "text/plain")
    assert caught.value.reason == sentence.format(word)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "it is empty"),
        (b"<svg xmlns=''>", "image (SVG)"),
        (documents.archive({"a.txt": b"x"}), "archive (zip)"),
        (documents.archive({"a.zip": documents.archive({"b": b"x"})}), "archive (zip)"),
        (documents.archive({"xl/workbook.bin": b"x"}), ".xlsx"),
        (documents.ole({"WordDocument": b"x"}), ".docx"),
        (documents.ole({"PowerPoint Document": b"x"}), ".pptx"),
        (documents.ole({"__properties_version1.0": b"x"}), "Outlook"),
        (documents.ole({"EncryptionInfo": b"x", "EncryptedPackage": b"x"}), "encrypted"),
        (documents.ole({"Else": b"x"}), "unknown kind"),
        (documents.ole({"Workbook": b"x"})[:300], "its end is missing"),
        (documents.ole({"Workbook": b"x"})[:600], "unknown kind"),
    ],
    ids=without_bytes,
)
def test_other_files_are_refused_with_a_reason(tmp_path: Path, data: bytes, reason: str) -> None:
    with pytest.raises(DocumentError, match=reason.replace("(", r"\(").replace(")", r"\)")):
        told(tmp_path, data)


@pytest.mark.parametrize(
    "data",
    [
        b"<!---->" * 9_000,
        b"<?xml " + b"<!-- --> " * 6_000,
        b"<!--" * 16_000,
        b"<!doctype x>" * 5_000,
        b"<p" * 30_000,
    ],
)
@pytest.mark.parametrize("name", ["x.txt", "x.html"])
def test_comments_without_an_end_are_read_once(tmp_path: Path, data: bytes, name: str) -> None:
    assert told(tmp_path, data, name) is F.TEXT


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"<!-- a --><html>", F.HTML),
        (b"<?xml version='1.0'?> <!-- a -->\n \t<!---->\n<body>", F.HTML),
        (b"<!-- <html> --> words", F.TEXT),
        (b"<!-- a <html>", F.TEXT),
        (b"<!-- a --> <!-- <html>", F.TEXT),
    ],
)
def test_comments_may_stand_before_a_page(tmp_path: Path, data: bytes, found: DocumentFormat) -> None:
    assert told(tmp_path, data) is found


def test_comments_and_document_types_may_stand_before_a_picture(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="SVG"):
        told(tmp_path, b"<?xml version='1.0'?>\n<!-- a --><!DOCTYPE svg>\n<!-- b -->\n<svg>")
