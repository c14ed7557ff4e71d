"""Text of manual pages in mdoc(7) and man(7), from the HTML that mandoc(1) renders."""

import re
from dataclasses import replace
from typing import Final

from gatewayd.extract.encodings import charset_of, decode
from gatewayd.extract.formats.markup import to_markdown
from gatewayd.extract.formats.plain import single_part_document
from gatewayd.extract.input_bytes import read_bytes
from gatewayd.extract.records import DocumentSource, ExtractedDocument

# The head and foot lines with name and section; a table before mandoc 1.14.7.
MARGIN: Final = re.compile(r'<(table|div) class="(?:head|foot)"')
HEADING: Final = re.compile(r"(</?h)([1-5])\b")


def read(source: DocumentSource) -> ExtractedDocument:
    """Return the text of the HTML of a page, with the title name(section).

    Without HTML, return the page itself with `is_roff`: the confined reader process cannot start mandoc.
    """
    if not source.formatted:
        text = decode(read_bytes(source), charset_of(source.content_type))
        return replace(single_part_document(text, source), is_roff=True)
    text, title = page_text(source.formatted.decode())
    return single_part_document(text, source, title=title, is_markdown=True)


def page_text(html: str) -> tuple[str, str]:
    """Return an HTML page as Markdown with the title as its first heading, and the title.

    mandoc may write the name in capitals; an upper-case title is converted to lower case.
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
