"""Input, limits and result of the document readers."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from gatewayd.ingest.records import TextPart

MB: Final = 1_000_000
OVER_MEMORY: Final = "over_memory"
"""Error code of a lack of memory, after which the process is not used again."""


def out_of_processor_time(seconds: int) -> str:
    """Return the error of a document that takes more processor time than it may."""
    return (
        f"cannot read the file: it takes more than {seconds} seconds of processor time; "
        "split it, or raise ingest_timeout"
    )


class DocumentFormat(StrEnum):
    """Formats with a reader."""

    PDF = "pdf"
    EPUB = "epub"
    DOCX = "docx"
    PPTX = "pptx"
    XLSX = "xlsx"
    XLS = "xls"
    ODT = "odt"
    ODS = "ods"
    ODP = "odp"
    RTF = "rtf"
    MAIL = "mail"
    HTML = "html"
    MANUAL = "manual"
    MARKDOWN = "markdown"
    JSON = "json"
    TEXT = "text"
    GZIP = "gzip"


@dataclass(frozen=True, slots=True)
class DocumentLimits:
    """Limits of a document.

    `text` is the characters of extracted text. `expanded` and `entry` are the bytes of an archive and of one
    of its entries after decompression. `ratio` is the expansion factor of an entry. `entries` and `pages` are
    counts.
    """

    text: int = 32 * 1024 * 1024
    expanded: int = 300 * MB
    entry: int = 100 * MB
    ratio: int = 400
    entries: int = 10_000
    pages: int = 20_000


@dataclass(frozen=True, slots=True)
class DocumentSource:
    """A document to be read; `name` and `content_type` are hints.

    `data` is the content of a gzip file, `formatted` the HTML that mandoc rendered from a manual page.
    """

    path: Path
    name: str
    content_type: str | None
    limits: DocumentLimits
    data: bytes | None = None
    formatted: bytes = b""


@dataclass(frozen=True, slots=True)
class ExtractedDocument:
    """The text of a document, which is not blank, with its parts in order.

    `pages` is the number of pages or slides, `blank_pages` the number of those without text. With `is_roff`
    the text is a manual page that mandoc has yet to render.
    """

    text: str
    parts: tuple[TextPart, ...]
    pages: int | None = None
    title: str | None = None
    blank_pages: int = 0
    is_roff: bool = False
