"""Text of PDF files and EPUB books, page by page."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pymupdf

from gatewayd.errors import shorten
from gatewayd.extract.formats.archives import open_archive
from gatewayd.extract.records import DocumentSource, ExtractedDocument
from gatewayd.extract.text_builder import ENCRYPTED, NO_TEXT, DocumentError, TextBuilder

# Functions of PyMuPDF without types.
OPEN: Final[Any] = pymupdf.open
TOOLS: Final[Any] = pymupdf.TOOLS

FLAGS: Final = pymupdf.TEXTFLAGS_TEXT | pymupdf.TEXT_DEHYPHENATE
FAILURES: Final = (pymupdf.mupdf.FzErrorBase, pymupdf.FileDataError, RuntimeError)
HYPHENS: Final = re.compile(r"([^\W\d_]{2})[-\u00ad]\n([^\W\d_])")
TAIL_BYTES: Final = 4096
# Number of pages after which the cache of MuPDF is emptied.
PAGES_BETWEEN_CLEANUPS: Final = 50
NO_TEXT_IN_PAGES: Final = (
    "no text was found in its {} pages (scanned?); run text recognition (OCR) on it and upload the result"
)
MAX_REASON_CHARACTERS: Final = 100
OUT_OF_MEMORY: Final = "alloc"


def read_pdf(source: DocumentSource) -> ExtractedDocument:
    """Return the text of a PDF, a part per page."""
    with _opened(source.path, "pdf") as pdf:
        if pdf.needs_pass:
            raise DocumentError(ENCRYPTED)
        count = pdf.page_count
        if pdf.is_repaired and _is_cut_off(source.path):
            raise DocumentError("it is damaged: its end is missing; make it again")
        if count == 0:
            raise DocumentError("it has no pages")
        _check_pages(count, source)
        builder = TextBuilder(source.limits.text)
        for number, text in enumerate(_texts(pdf, range(count)), 1):
            builder.write(text)
            builder.end_part(page=number)
        title = (pdf.metadata or {}).get("title")
    return builder.finish(pages=count, title=title, nothing=NO_TEXT_IN_PAGES.format(count))


def read_epub(source: DocumentSource) -> ExtractedDocument:
    """Return the text of a book, a part per chapter."""
    with open_archive(source.path, source.limits) as archive:
        is_protected = "META-INF/rights.xml" in archive.namelist()
    with _opened(source.path, "epub") as book:
        builder = TextBuilder(source.limits.text)
        labels = _chapter_labels(book)
        for chapter in range(book.chapter_count):
            count = book.chapter_page_count(chapter)
            _check_pages(count, source)
            for text in _texts(book, [(chapter, page) for page in range(count)]):
                builder.write(text)
            builder.end_part(label=labels.get(chapter))
        title = (book.metadata or {}).get("title")
    protected = "it is protected against copying (DRM)"
    return builder.finish(title=title, nothing=protected if is_protected else NO_TEXT)


@contextmanager
def _opened(path: Path, kind: str) -> Iterator[Any]:
    """Open a document; errors of the library become DocumentError or MemoryError."""
    TOOLS.mupdf_display_errors(False)
    TOOLS.mupdf_display_warnings(False)
    try:
        with OPEN(path, filetype=kind) as document:
            yield document
    except FAILURES as error:
        if OUT_OF_MEMORY in str(error):
            raise MemoryError from error
        reason = shorten(" ".join(str(error).split()), MAX_REASON_CHARACTERS)
        # The path of the file is not revealed to users.
        detail = "" if str(path) in str(error) else f" ({reason})"
        raise DocumentError(f"it is damaged{detail}; repair it or make it again") from error


def _texts(document: Any, places: range | list[tuple[int, int]]) -> Iterator[str]:
    """Yield the texts of pages; an unreadable page fails the document, so no page is lost silently."""
    for number, place in enumerate(places, 1):
        text = document.load_page(place).get_text("text", flags=FLAGS)
        yield HYPHENS.sub(_joined, text)
        if number % PAGES_BETWEEN_CLEANUPS == 0:
            TOOLS.store_shrink(100)


def _joined(found: re.Match[str]) -> str:
    """Return a word that was hyphenated at the end of a line; MuPDF joins it in other output formats only."""
    return found[1] + found[2] if found[2].islower() else found[0]


def _check_pages(count: int, source: DocumentSource) -> None:
    if count > source.limits.pages:
        raise DocumentError(f"it has {count} pages, more than {source.limits.pages}; split it")


def _is_cut_off(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(max(path.stat().st_size - TAIL_BYTES, 0))
        return b"%%EOF" not in file.read()


def _chapter_labels(book: Any) -> dict[int, str]:
    """Return chapter number -> title, from the first entry of the table of contents per chapter."""
    labels: dict[int, str] = {}
    for _, title, page, *_ in book.get_toc(simple=False):
        if page > 0:
            labels.setdefault(book.location_from_page_number(page - 1)[0], title)
    return labels
