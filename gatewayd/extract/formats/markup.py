"""Text of HTML as Markdown: headings, lists, tables with a tab between cells, code in fences."""

import re
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from gatewayd.extract.encodings import charset_of, decode
from gatewayd.extract.input_bytes import read_bytes
from gatewayd.extract.records import DocumentSource, ExtractedDocument
from gatewayd.extract.text_builder import DocumentError, TextBuilder

DROPPED_ELEMENTS: Final = {
    "head",
    "script",
    "style",
    "template",
    "nav",
    "noscript",
    "iframe",
    "object",
    "svg",
    "-comment",
}
HEADINGS: Final = {"h1": "# ", "h2": "## ", "h3": "### ", "h4": "#### ", "h5": "##### ", "h6": "###### "}
# Elements on lines of their own: with a blank line around them (block), and without (line).
BLOCK_ELEMENTS: Final = {
    "p",
    "blockquote",
    "table",
    "ul",
    "ol",
    "dl",
    "pre",
    "section",
    "article",
    "figure",
    *HEADINGS,
}
LINE_ELEMENTS: Final = {
    *("div", "li", "tr", "dt", "dd", "main", "header", "footer", "aside", "form", "fieldset", "option"),
    *("caption", "figcaption", "address", "hr", "summary", "details", "body", "center"),
}
CELL_ELEMENTS: Final = {"td", "th"}
CHARSET: Final = re.compile(rb"<meta[^>]{0,300}?charset\s*=\s*(?:[\"']\s*)?([a-zA-Z0-9_:.-]{1,40})", re.I)
XML_ENCODING: Final = re.compile(rb"^\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([a-zA-Z0-9_:.-]{1,40})")
META_SEARCH_BYTES: Final = 4096

# The parser takes quadratic time in the depth.
MAX_DEPTH: Final = 20_000
TAGS: Final = re.compile(r"<(/?)([a-z][a-z0-9]*)", re.I)
# Elements without an end tag, or with an optional one.
VOID_ELEMENTS: Final = {
    *("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track"),
    *("wbr", "p", "li", "dt", "dd", "td", "th", "tr", "thead", "tbody", "option", "body", "html", "head"),
}
SPACES: Final = re.compile(r"\s+")


def read(source: DocumentSource) -> ExtractedDocument:
    """Return the text of a page without navigation and scripts."""
    data = read_bytes(source)
    text, title = to_markdown(decode(data, find_charset(data, source.content_type)))
    builder = TextBuilder(source.limits.text)
    builder.write(text)
    builder.end_part(is_markdown=True)
    return builder.finish(title=title)


def find_charset(data: bytes, content_type: str | None) -> str | None:
    """Return the encoding that a header or the page itself declares."""
    if named := charset_of(content_type):
        return named
    head = data[:META_SEARCH_BYTES]
    declared = CHARSET.search(head) or XML_ENCODING.search(head)
    return declared[1].decode("ascii") if declared else None


def to_markdown(html: str) -> tuple[str, str | None]:
    """Return the text of a page and its title."""
    _check_depth(html)
    page = LexborHTMLParser(html)
    writer = _Writer()
    if page.root is not None:
        _walk(page.root, writer)
    title = page.css_first("head > title")
    return writer.text(), title.text() if title is not None else None


def _check_depth(html: str) -> None:
    depth = 0
    for end, name in TAGS.findall(html):
        if name.lower() not in VOID_ELEMENTS:
            depth = max(depth - 1, 0) if end else depth + 1
            if depth > MAX_DEPTH:
                raise DocumentError(f"its elements are nested more than {MAX_DEPTH} deep")


def _walk(root: LexborNode, writer: "_Writer") -> None:
    """Visit all nodes below `root` without recursion: pages may exceed the recursion limit of Python."""
    node: LexborNode | None = root
    path: list[LexborNode] = []
    while node is not None:
        tag = node.tag or ""
        below = None if tag in DROPPED_ELEMENTS else node.child
        if tag == "-text":
            writer.add(node.text_content or "")
        elif tag not in DROPPED_ELEMENTS:
            writer.enter(tag)
        if below is not None:
            path.append(node)
            node = below
            continue
        if tag != "-text" and tag not in DROPPED_ELEMENTS:
            writer.leave(tag)
        while node is not None and node.next is None:
            node = path.pop() if path else None
            if node is not None:
                writer.leave(node.tag or "")
        node = node.next if node is not None and path else None


class _Writer:
    """Writer of Markdown lines."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._line: list[str] = []
        self._prefix = ""
        self._cells = 0
        self._verbatim = 0

    def add(self, text: str) -> None:
        """Add text to the line; spaces count only in verbatim text."""
        if self._verbatim:
            first, *rest = text.split("\n")
            self._line.append(first)
            for line in rest:
                self._end_line()
                self._line.append(line)
        else:
            self._line.append(SPACES.sub(" ", text))

    def enter(self, tag: str) -> None:
        """Begin an element."""
        if tag in BLOCK_ELEMENTS or tag in LINE_ELEMENTS:
            self._end_line(is_block=tag in BLOCK_ELEMENTS)
        if tag in HEADINGS:
            self._prefix = HEADINGS[tag]
        elif tag == "li":
            self._prefix = "- "
        elif tag == "tr":
            self._cells = 0
        elif tag in CELL_ELEMENTS:
            if self._cells:
                self._line.append("\t")
            self._cells += 1
        elif tag == "br":
            self._end_line()
        elif tag == "pre":
            self._verbatim += 1
            self._lines.append("```")

    def leave(self, tag: str) -> None:
        """End an element."""
        if tag in BLOCK_ELEMENTS or tag in LINE_ELEMENTS:
            self._end_line(is_block=tag in BLOCK_ELEMENTS and tag != "pre")
        if tag in HEADINGS or tag == "li":
            self._prefix = ""
        elif tag == "pre":
            self._verbatim = max(self._verbatim - 1, 0)
            self._lines.extend(("```", ""))

    def text(self) -> str:
        """Return the whole text."""
        self._end_line()
        return "\n".join(self._lines).strip("\n") + "\n"

    def _end_line(self, *, is_block: bool = False) -> None:
        line = "".join(self._line)
        line = line if self._verbatim else line.strip(" ")
        self._line.clear()
        if line or (self._verbatim and self._lines[-1:] != ["```"]):
            self._lines.append(self._prefix + line)
            self._prefix = ""
        if is_block and self._lines and self._lines[-1] and not self._verbatim:
            self._lines.append("")
