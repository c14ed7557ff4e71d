"""Chunker that cuts a text into chunks for embedding: the only module that uses the splitter library."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from semantic_text_splitter import MarkdownSplitter, TextSplitter

from gatewayd.errors import shorten
from gatewayd.ingest.records import TextChunk, TextPart

MIN_WINDOW_CHARACTERS: Final = 8_000
"""Minimum number of characters per split: the splitter's time grows with the square of a line's length."""

# Scripts other than Latin: the tokenizer of an English model makes one token of each of their characters.
OTHER_SCRIPTS: Final = re.compile("[^\x00-\u024f\u1e00-\u1eff\u2000-\u206f]+")
HEADING: Final = re.compile(r"^ {0,3}(?:(#{1,6})[ \t]+([^\n]*)|(```|~~~))", re.MULTILINE)
MAX_TITLE_CHARACTERS: Final = 120


@dataclass(frozen=True, slots=True)
class ChunkRules:
    """Chunk limits: at most `size` characters and about `tokens` tokens, whichever is less.

    Neighbouring chunks share up to `overlap` characters.
    """

    size: int = 1000
    overlap: int = 100
    tokens: int = 480


def split_text(text: str, parts: Sequence[TextPart], rules: ChunkRules) -> tuple[TextChunk, ...]:
    """Return the chunks of a text in order. No chunk is blank or crosses the border of a part.

    Every non-blank character of a part is in a chunk. The text must contain no surrogates. Slow: call it in
    a thread or another process.
    """
    plain = _Splitters(rules)
    chunks: list[TextChunk] = []
    for part in parts:
        headings = _Headings(text, part)
        columns = _column_header(text, part, plain)
        splitters = plain.under_header(text[slice(*columns)]) if columns else plain
        for start, end in _chunk_spans(text, part, splitters):
            heading = headings.at(start) or part.label
            needed = columns if columns and start > columns[0] else None
            chunks.append(TextChunk(len(chunks), start, end, part.page, heading, needed))
    return tuple(chunks)


def _column_header(text: str, part: TextPart, splitters: "_Splitters") -> tuple[int, int] | None:
    """Return the offsets of a part's column names, cut to what fits into half of a chunk; None without."""
    if part.columns is None:
        return None
    start, end = part.columns
    end = min(end, start + splitters.fit(text[start:end]))
    return (start, end) if start < end else None


def _chunk_spans(text: str, part: TextPart, splitters: "_Splitters") -> Iterator[tuple[int, int]]:
    """Yield the start and end offsets of the chunks of a part.

    The last chunk of a window is cut again as the first chunk of the next one: the borders of windows do not
    influence the chunks.
    """
    start = part.start
    while start < part.end:
        stop = min(start + splitters.window, part.end)
        window = text[start:stop]
        found = splitters.pick(window, is_markdown=part.is_markdown).chunk_indices(window)
        is_recut = stop < part.end and len(found) > 1
        for offset, chunk in found[:-1] if is_recut else found:
            if not chunk.isspace():
                yield start + offset, start + offset + len(chunk)
        start = start + found[-1][0] if is_recut else stop


class _Splitters:
    """The splitters for one set of rules, each built on first use."""

    def __init__(self, rules: ChunkRules) -> None:
        self._rules = rules
        self._overlap = min(rules.overlap, rules.size - 1)
        self._by_kind: dict[tuple[bool, bool], TextSplitter | MarkdownSplitter] = {}
        self.window = max(MIN_WINDOW_CHARACTERS, 8 * rules.size)

    def pick(self, window: str, *, is_markdown: bool) -> TextSplitter | MarkdownSplitter:
        """Return the splitter for a text, by its format and script."""
        kind = is_markdown, OTHER_SCRIPTS.search(window) is not None
        if kind not in self._by_kind:
            self._by_kind[kind] = self._make(*kind)
        return self._by_kind[kind]

    def fit(self, names: str) -> int:
        """Return how many characters of the names of columns fit into half of a chunk."""
        room = self._rules.size // 2 - 1
        # The largest weight of one character.
        heaviest = max(1, -(-self._rules.size // self._rules.tokens))
        return len(names) if self._weigh(names) <= room else room // heaviest

    def under_header(self, names: str) -> "_Splitters":
        """Return the splitters for chunks that are preceded by their column names."""
        rules = self._rules
        size = rules.size - self._weigh(names) - 1
        tokens = max(1, rules.tokens * size // rules.size)
        return _Splitters(ChunkRules(size, min(rules.overlap, size // 2), tokens))

    def _make(self, is_markdown: bool, is_weighed: bool) -> TextSplitter | MarkdownSplitter:
        splitter = MarkdownSplitter if is_markdown else TextSplitter
        if is_weighed:
            return splitter.from_callback(self._weigh, self._rules.size, overlap=self._overlap)
        return splitter(self._rules.size, overlap=self._overlap)

    def _weigh(self, text: str) -> int:
        """Return the weighted size of a text: a non-Latin character counts as one token's characters."""
        if text.isascii():
            return len(text)
        narrow = len(OTHER_SCRIPTS.sub("", text))
        return narrow + max(len(text) - narrow, (len(text) - narrow) * self._rules.size // self._rules.tokens)


class _Headings:
    """The headings of one part, by their offsets."""

    def __init__(self, text: str, part: TextPart) -> None:
        self._starts: list[int] = []
        self._paths: list[str] = []
        if part.is_markdown:
            self._read(text, part)

    def at(self, position: int) -> str | None:
        """Return the path of headings above a position, None without one."""
        number = bisect_right(self._starts, position)
        return self._paths[number - 1] if number else None

    def _read(self, text: str, part: TextPart) -> None:
        levels: list[tuple[int, str]] = []
        fence = ""
        for found in HEADING.finditer(text, part.start, part.end):
            if found[3]:
                # Only a fence of the same kind closes a fence.
                fence = "" if fence == found[3] else fence or found[3]
            elif not fence and (title := _title(found[2])):
                levels = [level for level in levels if level[0] < len(found[1])]
                levels.append((len(found[1]), title))
                self._starts.append(found.start())
                self._paths.append(" > ".join(title for _, title in levels))


def _title(line: str) -> str:
    """Return the text of a heading without its optional closing # characters."""
    title = line.strip()
    without_closing = title.rstrip("#")
    return shorten(
        without_closing.strip() if without_closing[-1:] in {"", " ", "\t"} else title, MAX_TITLE_CHARACTERS
    )
