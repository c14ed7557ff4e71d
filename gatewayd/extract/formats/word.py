"""Text of Word documents (.docx)."""

import re
from collections.abc import Iterator
from typing import Any, Final

import docx.opc.exceptions
import docx.opc.package
from docx.opc.constants import RELATIONSHIP_TYPE
from lxml import etree

from gatewayd.extract.formats.archives import open_archive, refuse_entities
from gatewayd.extract.records import DocumentSource, ExtractedDocument
from gatewayd.extract.text_builder import DocumentError, TextBuilder, markdown_heading, table_row

W: Final = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
FALLBACK: Final = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
NAMED_HEADING: Final = re.compile(r"heading ([1-9])")
MAX_STYLE_CHAIN: Final = 10
BREAKS: Final = {f"{W}tab": "\t", f"{W}br": "\n", f"{W}cr": "\n", f"{W}noBreakHyphen": "-"}
NOTES: Final = (RELATIONSHIP_TYPE.FOOTNOTES, RELATIONSHIP_TYPE.ENDNOTES)


def read(source: DocumentSource) -> ExtractedDocument:
    """Return the text of a document as Markdown: paragraphs, headings and tables in order, then notes."""
    with open_archive(source.path, source.limits) as archive:
        refuse_entities(archive)
    try:
        package = docx.opc.package.OpcPackage.open(str(source.path))
        main = package.main_document_part
        body = _tree(main)
    except (docx.opc.exceptions.OpcError, etree.LxmlError) as error:
        raise DocumentError(f"it is damaged: {error}") from error
    reader = _Reader(TextBuilder(source.limits.text), _heading_levels(main))
    reader.read(body)
    for part in _related(main, NOTES):
        reader.read(_tree(part))
    reader.builder.end_part(is_markdown=True)
    return reader.builder.finish(title=package.core_properties.title)


def _tree(part: Any) -> Any:
    """Return the XML of a part; python-docx has parsed the kinds of parts that it knows."""
    element = getattr(part, "element", None)
    if element is not None:
        return element
    return etree.fromstring(part.blob, etree.XMLParser(resolve_entities=False, no_network=True))


def _related(part: Any, kinds: tuple[str, ...]) -> Iterator[Any]:
    for relation in part.rels.values():
        if relation.reltype in kinds and not relation.is_external:
            yield relation.target_part


def _heading_levels(main: Any) -> dict[str, int]:
    """Return style id -> heading level, also for styles that inherit it."""
    styles: dict[str, Any] = {}
    for part in _related(main, (RELATIONSHIP_TYPE.STYLES,)):
        styles.update({style.get(f"{W}styleId"): style for style in _tree(part).iter(f"{W}style")})
    levels = {name: _level(style, styles) for name, style in styles.items()}
    return {name: level for name, level in levels.items() if level}


def _level(style: Any, styles: dict[str, Any]) -> int:
    for _ in range(MAX_STYLE_CHAIN):
        name = _value(style, f"{W}name").lower()
        if found := NAMED_HEADING.fullmatch(name):
            return int(found[1])
        if name == "title":
            return 1
        outline = _value(style, f"{W}pPr/{W}outlineLvl")
        if outline.isdecimal():
            return int(outline) + 1 if int(outline) < 9 else 0
        style = styles.get(_value(style, f"{W}basedOn"))
        if style is None:
            return 0
    return 0


def _value(element: Any, path: str) -> str:
    found = element.find(path)
    return (found.get(f"{W}val") or "") if found is not None else ""


class _Reader:
    """Writes the content of a document to a text builder."""

    def __init__(self, builder: TextBuilder, levels: dict[str, int]) -> None:
        self.builder = builder
        self._levels = levels

    def read(self, element: Any) -> None:
        """Write the paragraphs and tables below an element, in order."""
        for child in element:
            if child.tag == f"{W}p":
                self._paragraph(child)
            elif child.tag == f"{W}tbl":
                self._table(child)
            elif child.tag != FALLBACK:
                # Content controls, insertions and similar elements contain paragraphs like the body.
                self.read(child)

    def _paragraph(self, paragraph: Any) -> None:
        text, boxes = _texts(paragraph)
        level = self._levels.get(_value(paragraph, f"{W}pPr/{W}pStyle"), 0)
        if level:
            self.builder.write(markdown_heading(level, text))
        elif text.strip():
            is_item = paragraph.find(f"{W}pPr/{W}numPr") is not None
            self.builder.write(f"- {text.strip()}\n" if is_item else f"{text.strip()}\n\n")
        for box in boxes:
            self.read(box)

    def _table(self, table: Any) -> None:
        for line in table.iter(f"{W}tr"):
            # The rows of a nested table belong to the text of its cell.
            if next(line.iterancestors(f"{W}tbl")) is table:
                self.builder.write(
                    table_row([_cell(cell) for cell in line.iter(f"{W}tc") if _row_of(cell) is line])
                )
        self.builder.write("\n")


def _row_of(cell: Any) -> Any:
    return next(cell.iterancestors(f"{W}tr"))


def _cell(cell: Any) -> str:
    return " ".join(_texts(paragraph)[0] for paragraph in cell.iter(f"{W}p"))


def _texts(paragraph: Any) -> tuple[str, list[Any]]:
    """Return the text of a paragraph, and the text boxes that are anchored in it."""
    pieces: list[str] = []
    boxes: list[Any] = []
    waiting = [paragraph]
    while waiting:
        element = waiting.pop()
        if element.tag == f"{W}t":
            pieces.append(element.text or "")
        elif element.tag in BREAKS:
            pieces.append(BREAKS[element.tag])
        elif element.tag == f"{W}txbxContent":
            boxes.append(element)
        elif element.tag not in {FALLBACK, f"{W}pPr"}:
            waiting.extend(reversed(element))
    return "".join(pieces), boxes
