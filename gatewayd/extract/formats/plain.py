"""Text that is text already: plain, Markdown, tables, source code."""

import re
from typing import Final

from gatewayd.extract.encodings import charset_of, decode
from gatewayd.extract.formats.tabular import columns_at, is_table
from gatewayd.extract.input_bytes import read_bytes
from gatewayd.extract.records import Document, Source
from gatewayd.extract.text_builder import Draft

TITLE: Final = re.compile(r"^#[ \t]+(.+)$", re.MULTILINE)


def read_text(source: Source) -> Document:
    """Return a text as it is, a table with the names of its columns."""
    text = decode(read_bytes(source), charset_of(source.content_type))
    return _table(text, source) if is_table(source) else as_document(text, source)


def read_markdown(source: Source) -> Document:
    """Return a Markdown text as it is; its title is the first heading."""
    text = decode(read_bytes(source), charset_of(source.content_type))
    found = TITLE.search(text)
    return as_document(text, source, title=found[1] if found else None, is_markdown=True)


def as_document(
    text: str, source: Source, *, title: str | None = None, is_markdown: bool = False
) -> Document:
    """Return a text as a document of one part."""
    draft = Draft(source.limits.text)
    draft.write(text)
    draft.end_part(is_markdown=is_markdown)
    return draft.finish(title=title)


def _table(text: str, source: Source) -> Document:
    start, end = columns_at(text)
    draft = Draft(source.limits.text)
    draft.write(text[:start])
    if start < end:
        draft.write_columns(text[start:end])
    draft.write(text[end:])
    draft.end_part()
    return draft.finish()
