"""What a reader is given and what it returns."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from gatewayd.ingest.records import TextPart

MB: Final = 1_000_000
OVER_MEMORY: Final = "over_memory"
"""The code of a failure for want of memory, after which the process is not used again."""


class DocumentFormat(StrEnum):
    """What a file can be that is read."""

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
    """What a document may take.

    `text` is characters of extracted text, `expanded` and `entry` are bytes of an archive and of one of its
    entries after decompression, `ratio` is what an entry may grow by, `pages` counts pages.
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

    `data` is what was in a gzip file, `formatted` the HTML that mandoc has made of a manual page.
    """

    path: Path
    name: str
    content_type: str | None
    limits: DocumentLimits
    data: bytes | None = None
    formatted: bytes = b""


@dataclass(frozen=True, slots=True)
class ExtractedDocument:
    """A text that is not blank, its parts in order, how many pages or slides it has, its title, and how many
    of the pages have no text. With `is_roff` the text is a manual page that mandoc is yet to format."""

    text: str
    parts: tuple[TextPart, ...]
    pages: int | None = None
    title: str | None = None
    blank_pages: int = 0
    is_roff: bool = False
