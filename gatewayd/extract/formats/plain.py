"""Text of plain text files: prose, Markdown, CSV tables, source code."""

import re
from typing import Final

from gatewayd.extract.encodings import charset_of, decode
from gatewayd.extract.formats.tabular import find_header_line, is_table
from gatewayd.extract.input_bytes import read_bytes
from gatewayd.extract.records import DocumentSource, ExtractedDocument
from gatewayd.extract.text_builder import TextBuilder

TITLE: Final = re.compile(r"^#[ \t]+(.+)$", re.MULTILINE)


def read_text(source: DocumentSource) -> ExtractedDocument:
    """Return a text unchanged; for a table, mark the line with the column names."""
    text = decode(read_bytes(source), charset_of(source.content_type))
    return _table(text, source) if is_table(source) else single_part_document(text, source)


def read_markdown(source: DocumentSource) -> ExtractedDocument:
    """Return a Markdown text unchanged; its title is the first heading."""
    text = decode(read_bytes(source), charset_of(source.content_type))
    found = TITLE.search(text)
    return single_part_document(text, source, title=found[1] if found else None, is_markdown=True)


def single_part_document(
    text: str, source: DocumentSource, *, title: str | None = None, is_markdown: bool = False
) -> ExtractedDocument:
    """Return a text as a document of one part."""
    builder = TextBuilder(source.limits.text)
    builder.write(text)
    builder.end_part(is_markdown=is_markdown)
    return builder.finish(title=title)


def _table(text: str, source: DocumentSource) -> ExtractedDocument:
    start, end = find_header_line(text)
    builder = TextBuilder(source.limits.text)
    builder.write(text[:start])
    if start < end:
        builder.write_columns(text[start:end])
    builder.write(text[end:])
    builder.end_part()
    return builder.finish()
