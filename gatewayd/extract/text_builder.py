"""Builder of the text of a document, part by part, within a limit."""

import re
from typing import Final

from gatewayd.errors import shorten
from gatewayd.extract.records import ExtractedDocument
from gatewayd.ingest.records import TextPart
from gatewayd.text import replace_presentation_forms, well_formed

CONTROLS: Final = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f]")
LINE_ENDS: Final = re.compile("\r\n?|\x0c")
VISIBLE: Final = re.compile("[^\\s\u00ad\u200b-\u200f\u2060\ufeff\ufffd]")
MAX_GAP_TABS: Final = 8
WIDE_GAPS: Final = re.compile(f"\t{{{MAX_GAP_TABS},}}")
MAX_TITLE_CHARACTERS: Final = 200
NO_TEXT: Final = "no text was found in it"
ENCRYPTED: Final = "it is encrypted; remove the password and upload it again"


class DocumentError(Exception):
    """A document that can never be read; `reason` completes "cannot read the PDF: "."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class TextBuilder:
    """Collects a text in parts: written text belongs to the part that the next `end_part` ends."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pieces: list[str] = []
        self._length = 0
        self._parts: list[TextPart] = []
        self._begun = 0
        self._begun_pieces = 0
        self._is_visible = False
        self._blank_pages = 0
        self._columns: tuple[int, int] | None = None

    def write(self, text: str) -> None:
        """Append a text after `clean_text`; raise DocumentError above the limit."""
        text = clean_text(text)
        if not text:
            return
        self._pieces.append(text)
        self._length += len(text)
        if self._length > self._limit:
            raise DocumentError(
                f"it holds more than {self._limit} characters of text; split it, or raise ingest_text_limit"
            )
        self._is_visible = self._is_visible or VISIBLE.search(text) is not None

    def write_columns(self, line: str) -> None:
        """Append the header line of the table that the part consists of."""
        start = self._length
        self.write(line)
        self._columns = (start, self._length - line.endswith("\n"))

    def end_part(
        self, *, page: int | None = None, label: str | None = None, is_markdown: bool = False
    ) -> None:
        """End a page, sheet or chapter; a part without visible text is dropped."""
        if self._is_visible:
            self.write("\n")
            label = single_line(label)
            part = TextPart(self._begun, self._length, page, label, is_markdown, self._columns)
            self._parts.append(part)
        else:
            del self._pieces[self._begun_pieces :]
            self._length = self._begun
            self._blank_pages += page is not None
        self._begun, self._begun_pieces = self._length, len(self._pieces)
        self._is_visible = False
        self._columns = None

    def finish(
        self, *, pages: int | None = None, title: str | None = None, nothing: str = NO_TEXT
    ) -> ExtractedDocument:
        """Return the document; raise DocumentError with the reason `nothing` without text."""
        if not self._parts:
            raise DocumentError(nothing)
        text, parts = "".join(self._pieces), tuple(self._parts)
        return ExtractedDocument(text, parts, pages, single_line(title), self._blank_pages)


def clean_text(text: str) -> str:
    """Return a text with LF line ends, without presentation forms, control characters and surrogates."""
    text = well_formed(text)
    return CONTROLS.sub("", LINE_ENDS.sub("\n", replace_presentation_forms(text)))


def single_line(text: str | None) -> str | None:
    """Return a title or label on one line, None if it is blank."""
    return shorten(" ".join(clean_text(text).split()), MAX_TITLE_CHARACTERS) or None if text else None


def markdown_heading(level: int, text: str) -> str:
    """Return a heading as a line of Markdown, "" if it is blank."""
    line = " ".join(text.split())
    return f"{'#' * min(max(level, 1), 6)} {line}\n\n" if line else ""


def table_row(cells: list[str]) -> str:
    """Return a row of a table as a line with a tab between cells, "" if all are blank.

    Long runs of empty cells are shortened: a sheet may have thousands of them in a row.
    """
    line = WIDE_GAPS.sub("\t" * MAX_GAP_TABS, "\t".join(" ".join(cell.split()) for cell in cells).rstrip())
    return f"{line}\n" if line else ""
