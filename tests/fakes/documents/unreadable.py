"""A document for each sentence about what cannot be read; @ stands for what differs."""

import gzip
from collections.abc import Mapping
from typing import Final

from tests.fakes.documents import makers as documents

Trial = tuple[bytes, Mapping[str, int]]
"""A document, and the limits with which it is read."""

_NOTHING_IN_BOOK: Final = documents.replaced(
    documents.replaced(documents.epub({"A": ""}), "META-INF/rights.xml", "<r/>"),
    "c0.xhtml",
    "<html xmlns='http://www.w3.org/1999/xhtml'><body/></html>",
)

TRIALS: Final[Mapping[str, Trial]] = {
    "it is encrypted; remove the password and upload it again": (documents.pdf(password="x"), {}),
    "it is protected against copying (DRM)": (_NOTHING_IN_BOOK, {}),
    "no text was found in it": (b" \n", {}),
    "no text was found in its @ pages (scanned?); run text recognition (OCR) on it and upload the result": (
        documents.scanned_pdf(),
        {},
    ),
    "its sheets are empty": (documents.workbook({"S": []}), {}),
    "it is an image (@), which has no text to read": (b"\x89PNG\r\n\x1a\n" + bytes(99), {}),
    "it is audio (@), which is not transcribed here": (b"ID3" + bytes(99), {}),
    "it is a video (@), which is not transcribed here": (b"\0\0\1\xba" + bytes(99), {}),
    "it is an archive (@); unpack it and upload the documents in it": (
        documents.archive({"a.txt": b"x"}),
        {},
    ),
    "it is a program (@), not a document": (b"\x7fELF" + bytes(99), {}),
    "it is a data file (@), not a document": (b"SQLite format 3\0" + bytes(99), {}),
    "it is in the old Word format; save it as .docx and upload that": (
        documents.ole({"WordDocument": b"x"}),
        {},
    ),
    "it is in the old PowerPoint format; save it as .pptx and upload that": (
        documents.ole({"PowerPoint Document": b"x"}),
        {},
    ),
    "it is a binary workbook; save it as .xlsx and upload that": (
        documents.archive({"xl/workbook.bin": b"x"}),
        {},
    ),
    "it is an Outlook message; save it as .eml or text and upload that": (
        documents.ole({"__properties_version1.0": b"x"}),
        {},
    ),
    "it is an OLE container of an unknown kind, not a document": (documents.ole({"Else": b"x"}), {}),
    "it is not text but binary data of an unknown kind": (bytes(range(1, 7)) * 99, {}),
    "it holds NUL bytes, so it is not text but binary data of an unknown kind": (b"a table\0" * 99, {}),
    "it is damaged; repair it or make it again": (b"%PDF-1.7\n", {}),
    "it is damaged (@); repair it or make it again": (documents.word()[:-3000], {}),
    "it is damaged: @": (documents.replaced(documents.word(), "word/document.xml", "<x"), {}),
    "it is damaged: its end is missing; make it again": (documents.pdf()[:-400], {}),
    "it has no pages": (documents.pdf_without_pages(), {}),
    "it is empty": (b"", {}),
    "it holds more than @ characters of text; split it, or raise ingest_text_limit": (
        b"x" * 99,
        {"text": 9},
    ),
    "it has @ MB, more than the @ MB of a file of this kind; split it": (b"x" * 99, {"text": 9, "entry": 9}),
    "it has @ pages, more than @; split it": (documents.pdf(["one", "two"]), {"pages": 1}),
    "it expands to more than @ MB": (gzip.compress(b"x" * 99), {"text": 9, "entry": 9}),
    "its archive has @ entries, more than @": (documents.word(), {"entries": 1}),
    "its archive expands to @ MB, more than @ MB": (documents.word(), {"expanded": 9}),
    "an entry of its archive expands to @ MB, more than @ MB": (documents.word(), {"entry": 9}),
    "an entry of its archive expands to more than @ times its size (zip bomb?)": (
        documents.expanding("z", 9_000_000),
        {},
    ),
    "its XML declares a document type or entities, which office documents never do": (
        documents.replaced(documents.word(), "word/document.xml", documents.entities() + "<x>&a9;</x>"),
        {},
    ),
    "its elements are nested more than @ deep": (b"<html>" + b"<div>" * 30_000, {}),
    "its content is empty": (gzip.compress(b""), {}),
    "its content is not a text; unpack it and upload that": (gzip.compress(documents.pdf()), {}),
}
