"""Text of OpenDocument texts, sheets and presentations (ODF 1.3 part 3)."""

from typing import Any, Final

from lxml import etree

from gatewayd.extract.formats.archives import open_archive, refuse_entities
from gatewayd.extract.formats.tabular import write_sheet
from gatewayd.extract.records import DocumentSource, ExtractedDocument
from gatewayd.extract.text_builder import ENCRYPTED, DocumentError, TextBuilder, markdown_heading, table_row

OFFICE: Final = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
TEXT: Final = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
TABLE: Final = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
DRAW: Final = "{urn:oasis:names:tc:opendocument:xmlns:drawing:1.0}"
PRESENTATION: Final = "{urn:oasis:names:tc:opendocument:xmlns:presentation:1.0}"
TITLE: Final = ".//{http://purl.org/dc/elements/1.1/}title"

# A higher number of repetitions only fills the sheet to its edge.
MAX_REPEATS: Final = 64
MAX_SPACES: Final = 1000
# Comments, deleted text, forms, declarations, drawings over sheets and note numbers.
SKIPPED: Final = {
    f"{OFFICE}annotation",
    f"{TEXT}tracked-changes",
    f"{OFFICE}forms",
    f"{TEXT}sequence-decls",
    f"{TABLE}shapes",
    f"{TEXT}note-citation",
}
PARAGRAPHS: Final = {f"{TEXT}p", f"{TEXT}h"}
ENCRYPTION: Final = b"encryption-data"


def read(source: DocumentSource) -> ExtractedDocument:
    """Return the text of a document: a part per slide or sheet, or one part."""
    with open_archive(source.path, source.limits) as archive:
        refuse_entities(archive)
        names = set(archive.namelist())
        if "META-INF/manifest.xml" in names and ENCRYPTION in archive.read("META-INF/manifest.xml"):
            raise DocumentError(ENCRYPTED)
        try:
            content = _parsed(archive.read("content.xml"))
            meta = _parsed(archive.read("meta.xml")) if "meta.xml" in names else content
        except etree.LxmlError as error:
            raise DocumentError(f"it is damaged: {error}") from error
    reader = _Reader(TextBuilder(source.limits.text))
    pages = reader.read_body(content.find(f"{OFFICE}body"))
    return reader.builder.finish(pages=pages, title=meta.findtext(TITLE))


def _parsed(data: bytes) -> Any:
    return etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True))


class _Reader:
    """Writes the content of a document to a text builder."""

    def __init__(self, builder: TextBuilder) -> None:
        self.builder = builder

    def read_body(self, body: Any) -> int | None:
        """Write the whole body and return the number of slides, None without slides."""
        pages = 0
        for element in body[0] if body is not None and len(body) else ():
            if element.tag == f"{DRAW}page":
                pages += 1
                self._slide(element, pages)
            elif element.tag == f"{TABLE}table" and body[0].tag == f"{OFFICE}spreadsheet":
                self._sheet(element)
            else:
                self._block(element)
        self.builder.end_part(is_markdown=True)
        return pages or None

    def _slide(self, page: Any, number: int) -> None:
        for frame in page:
            if frame.tag == f"{PRESENTATION}notes":
                self.builder.write("Notes: ")
                self._blocks(frame)
            elif frame.get(f"{PRESENTATION}class") == "title":
                self.builder.write(
                    markdown_heading(1, " ".join(_text(line) for line in frame.iter(f"{TEXT}p")))
                )
            else:
                self._block(frame)
        self.builder.end_part(page=number, is_markdown=True)

    def _sheet(self, table: Any) -> None:
        rows = map(_cells, table.iter(f"{TABLE}table-row"))
        write_sheet(table.get(f"{TABLE}name") or "", rows, self.builder)

    def _blocks(self, element: Any) -> None:
        for child in element:
            self._block(child)

    def _block(self, element: Any) -> None:
        if element.tag in SKIPPED:
            return
        if element.tag == f"{TEXT}h":
            level = element.get(f"{TEXT}outline-level") or "1"
            self.builder.write(markdown_heading(int(level) if level.isdecimal() else 1, _text(element)))
        elif element.tag == f"{TEXT}p":
            self._paragraph(element)
        elif element.tag == f"{TABLE}table":
            for line in element.iter(f"{TABLE}table-row"):
                self.builder.write(table_row(_cells(line)))
            self.builder.write("\n")
        else:
            self._blocks(element)

    def _paragraph(self, paragraph: Any) -> None:
        text = _text(paragraph).strip()
        if text:
            is_item = paragraph.getparent().tag == f"{TEXT}list-item"
            self.builder.write(f"- {text}\n" if is_item else f"{text}\n\n")
        # A frame in a paragraph holds text boxes or tables.
        for frame in paragraph.iterchildren(f"{DRAW}frame"):
            self._blocks(frame)


def _cells(line: Any) -> list[str]:
    cells: list[str] = []
    for cell in line:
        if cell.tag != f"{TABLE}table-cell" and cell.tag != f"{TABLE}covered-table-cell":
            continue
        text = " ".join(_text(paragraph) for paragraph in cell.iter(f"{TEXT}p", f"{TEXT}h"))
        repeats = cell.get(f"{TABLE}number-columns-repeated") or "1"
        cells.extend([text] * min(int(repeats) if repeats.isdecimal() else 1, MAX_REPEATS))
    return cells


def _text(paragraph: Any) -> str:
    """Return the text of a paragraph, its footnotes in parentheses, without frames in it."""
    pieces: list[str] = [paragraph.text or ""]
    for child in paragraph:
        pieces.append(_inline(child))
        pieces.append(child.tail or "")
    return "".join(pieces)


def _inline(element: Any) -> str:
    if element.tag in SKIPPED or element.tag == f"{DRAW}frame" or not isinstance(element.tag, str):
        return ""
    if element.tag == f"{TEXT}s":
        count = element.get(f"{TEXT}c") or "1"
        return " " * min(int(count) if count.isdecimal() else 1, MAX_SPACES)
    if element.tag == f"{TEXT}tab":
        return "\t"
    if element.tag == f"{TEXT}line-break":
        return "\n"
    if element.tag == f"{TEXT}note-body":
        return f" ({' '.join(_text(line) for line in element.iter(*PARAGRAPHS))})"
    return _text(element)
