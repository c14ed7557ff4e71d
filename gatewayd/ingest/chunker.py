"""Cuts a text into chunks that can be embedded: the only module that knows the splitter library."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from semantic_text_splitter import MarkdownSplitter, TextSplitter

from gatewayd.errors import shorten
from gatewayd.ingest.records import TextChunk, TextPart

MIN_WINDOW_CHARACTERS: Final = 8_000
"""Characters that are split at a time at least: the splitter's time grows with the square of a line."""

# Scripts other than Latin: a model that was made for English takes each of their characters for a token.
OTHER_SCRIPTS: Final = re.compile("[^\x00-\u024f\u1e00-\u1eff\u2000-\u206f]+")
HEADING: Final = re.compile(r"^ {0,3}(?:(#{1,6})[ \t]+([^\n]*)|(```|~~~))", re.MULTILINE)
MAX_TITLE_CHARACTERS: Final = 120


@dataclass(frozen=True, slots=True)
class ChunkRules:
    """How long chunks are: at most `size` characters and about `tokens` tokens, whichever is less.

    Neighbours share up to `overlap` characters.
    """

    size: int = 1000
    overlap: int = 100
    tokens: int = 480


def split_text(text: str, parts: Sequence[TextPart], rules: ChunkRules) -> tuple[TextChunk, ...]:
    """Return the chunks of a text in order, none of which is blank or crosses a part.

    Every character of a part that is not blank is in a chunk. The text holds no surrogates. Takes time: not
    for the event loop.
    """
    plain = _Splitters(rules)
    chunks: list[TextChunk] = []
    for part in parts:
        headings = _Headings(text, part)
        columns = _columns(text, part, plain)
        splitters = plain.below(text[slice(*columns)]) if columns else plain
        for start, end in _stretches(text, part, splitters):
            heading = headings.at(start) or part.label
            needed = columns if columns and start > columns[0] else None
            chunks.append(TextChunk(len(chunks), start, end, part.page, heading, needed))
    return tuple(chunks)


def _columns(text: str, part: TextPart, splitters: "_Splitters") -> tuple[int, int] | None:
    """Return where the names of the columns of a part stand: as many as fit into half of a chunk."""
    if part.columns is None:
        return None
    start, end = part.columns
    end = min(end, start + splitters.fit(text[start:end]))
    return (start, end) if start < end else None


def _stretches(text: str, part: TextPart, splitters: "_Splitters") -> Iterator[tuple[int, int]]:
    """Yield where the chunks of a part begin and end.

    A window's last chunk is cut again as the first one of the next window, so that windows do not show.
    """
    start = part.start
    while start < part.end:
        stop = min(start + splitters.window, part.end)
        window = text[start:stop]
        found = splitters.pick(window, is_markdown=part.is_markdown).chunk_indices(window)
        again = stop < part.end and len(found) > 1
        for offset, chunk in found[:-1] if again else found:
            if not chunk.isspace():
                yield start + offset, start + offset + len(chunk)
        start = start + found[-1][0] if again else stop


class _Splitters:
    """The splitters for one set of rules, made when they are needed."""

    def __init__(self, rules: ChunkRules) -> None:
        self._rules = rules
        self._overlap = min(rules.overlap, rules.size - 1)
        self._made: dict[tuple[bool, bool], TextSplitter | MarkdownSplitter] = {}
        self.window = max(MIN_WINDOW_CHARACTERS, 8 * rules.size)

    def pick(self, window: str, *, is_markdown: bool) -> TextSplitter | MarkdownSplitter:
        """Return the splitter for a text."""
        kind = is_markdown, OTHER_SCRIPTS.search(window) is not None
        if kind not in self._made:
            self._made[kind] = self._make(*kind)
        return self._made[kind]

    def fit(self, names: str) -> int:
        """Return how many characters of the names of columns fit into half of a chunk."""
        room = self._rules.size // 2 - 1
        # No character weighs more.
        heaviest = max(1, -(-self._rules.size // self._rules.tokens))
        return len(names) if self._weigh(names) <= room else room // heaviest

    def below(self, names: str) -> "_Splitters":
        """Return the splitters for chunks that stand below the names of their columns."""
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
        """Return the size of a text, where a character that is a token takes its share of the tokens."""
        if text.isascii():
            return len(text)
        narrow = len(OTHER_SCRIPTS.sub("", text))
        return narrow + max(len(text) - narrow, (len(text) - narrow) * self._rules.size // self._rules.tokens)


class _Headings:
    """The headings of one part, by where they begin."""

    def __init__(self, text: str, part: TextPart) -> None:
        self._starts: list[int] = []
        self._paths: list[str] = []
        if part.is_markdown:
            self._read(text, part)

    def at(self, position: int) -> str | None:
        """Return the path of headings that a position stands under."""
        number = bisect_right(self._starts, position)
        return self._paths[number - 1] if number else None

    def _read(self, text: str, part: TextPart) -> None:
        levels: list[tuple[int, str]] = []
        fence = ""
        for found in HEADING.finditer(text, part.start, part.end):
            if found[3]:
                # A fence is closed by its own kind only.
                fence = "" if fence == found[3] else fence or found[3]
            elif not fence and (title := _title(found[2])):
                levels = [level for level in levels if level[0] < len(found[1])]
                levels.append((len(found[1]), title))
                self._starts.append(found.start())
                self._paths.append(" > ".join(title for _, title in levels))


def _title(line: str) -> str:
    """Return a heading without the # that may close it, too."""
    title = line.strip()
    opened = title.rstrip("#")
    return shorten(opened.strip() if opened[-1:] in {"", " ", "\t"} else title, MAX_TITLE_CHARACTERS)
