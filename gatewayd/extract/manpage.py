"""Writes a manual page as Markdown: paragraphs on one line, lists, blocks of code in fences."""

from typing import Final

from gatewayd.extract.roffchars import SPACE

DEEPEST: Final = 6
FENCE: Final = "```"


class Page:
    """The page so far. Words are filled into the line until something ends it."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._line: list[str] = []
        self._is_glued = True
        self._is_fenced = False
        self._marker = ""
        self._last_depth = 0
        self.depth = 0
        self.is_literal = False
        self.is_spaced = True
        """False while words are written without spaces between them."""

    def write(self, text: str, *, glued: bool = False) -> None:
        """Append words; `glued` when no space stands before them."""
        if not text:
            return
        if self._line and not (glued or self._is_glued or not self.is_spaced):
            self._line.append(" ")
        self._line.append(text)
        self._is_glued = False

    def glue(self) -> None:
        """Let what comes next stand without a space before it."""
        self._is_glued = True

    @property
    def is_blank(self) -> bool:
        """Whether nothing is in the line."""
        return not self._line

    def end_line(self) -> None:
        """End the line, if anything is in it."""
        text = "".join(self._line)
        self._line = []
        self._is_glued = True
        if not self._is_fenced:
            text = " ".join(text.split(" ")).strip(" ")
        if text.strip(f" {SPACE}\t"):
            self._put(text.rstrip().replace(SPACE, " "))

    def _put(self, text: str) -> None:
        if self.is_literal and not self._is_fenced:
            self._is_fenced = True
            self._lines.append("  " * self._indent() + FENCE)
        marker, self._marker = self._marker, ""
        self._last_depth = self._indent()
        if marker:
            self._lines.append("  " * max(self._indent() - 1, 0) + marker + text)
        else:
            self._lines.append("  " * self._indent() + text)

    def _indent(self) -> int:
        return min(max(self.depth, 0), DEEPEST)

    def end_paragraph(self) -> None:
        """End the line and leave a blank one, but never two."""
        self.end_line()
        if self._lines and self._lines[-1] and not self._lines[-1].endswith(FENCE):
            self._lines.append("")

    def set_literal(self, *, literal: bool) -> None:
        """Begin or end a block whose lines stay as they are."""
        self.end_line()
        if self._is_fenced and not literal:
            while self._lines[-1] == "":
                self._lines.pop()
            self._lines.append("  " * self._indent() + FENCE)
            self._lines.append("")
            self._is_fenced = False
        self.is_literal = literal

    def heading(self, level: int, text: str) -> None:
        """Write a heading; blocks and lists that are open end."""
        self.set_literal(literal=False)
        self.depth = 0
        self._marker = ""
        self.end_paragraph()
        words = " ".join(text.replace(SPACE, " ").split())
        if words:
            self._lines += ["#" * level + " " + words, ""]

    def begin_list(self) -> None:
        """Begin a list that does not go on with the one before it."""
        self.end_paragraph()
        self._last_depth = 0

    def begin_item(self, marker: str) -> None:
        """Begin an item of a list, which stands one step to the left of what is in it.

        Items follow one another without blank lines, and a list in none follows a blank one.
        """
        self.end_line()
        if self._last_depth >= self._indent() and self._lines and self._lines[-1] == "":
            self._lines.pop()
        elif self._last_depth == 0:
            self.end_paragraph()
        self._marker = marker

    def whole(self) -> str:
        """Return the page."""
        self.set_literal(literal=False)
        self.end_line()
        return "\n".join(self._lines).strip("\n") + "\n"
