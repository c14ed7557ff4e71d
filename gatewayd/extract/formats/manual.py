"""Manual pages in mdoc(7) and man(7): mandoc(1) makes HTML of them, which is read like other pages."""

import re
from dataclasses import replace
from typing import Final

from gatewayd.extract.encodings import charset_of, decode
from gatewayd.extract.formats.markup import to_markdown
from gatewayd.extract.formats.plain import single_part_document
from gatewayd.extract.input_bytes import read_bytes
from gatewayd.extract.records import DocumentSource, ExtractedDocument

# The lines with name and section, a table before mandoc 1.14.7.
MARGIN: Final = re.compile(r'<(table|div) class="(?:head|foot)"')
HEADING: Final = re.compile(r"(</?h)([1-5])\b")


def read(source: DocumentSource) -> ExtractedDocument:
    """Return the text of a page of which mandoc has made HTML, with the title name(section); before, the page
    as it is: the process that reads documents cannot start mandoc."""
    if not source.formatted:
        text = decode(read_bytes(source), charset_of(source.content_type))
        return replace(single_part_document(text, source), is_roff=True)
    text, title = page_text(source.formatted.decode())
    return single_part_document(text, source, title=title, is_markdown=True)


def page_text(html: str) -> tuple[str, str]:
    """Return a page in HTML as Markdown, the title as its first heading, and its title.

    mandoc writes names in capitals that may not be written so: those are the names of commands in small
    letters.
    """
    below = HEADING.sub(lambda found: f"{found[1]}{int(found[2]) + 1}", _without_margins(html))
    text, found = to_markdown(below)
    title = (found or "").strip()
    title = title.lower() if title.isupper() else title
    return (f"# {title}\n\n{text}" if title else text), title


def _without_margins(html: str) -> str:
    """Return the page without its head and foot; one that has no end stays."""
    kept, position = [], 0
    while found := MARGIN.search(html, position):
        closing = f"</{found[1]}>"
        end = html.find(closing, found.end())
        if end < 0:
            break
        kept.append(html[position : found.start()])
        position = end + len(closing)
    return "".join([*kept, html[position:]])
