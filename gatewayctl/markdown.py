"""Live rendering of a Markdown answer on a terminal."""

from collections.abc import Iterable
from typing import Final

from rich.console import Console
from rich.live import Live
from rich.markdown import Markdown
from rich.text import Text

PREVIEW_LINES: Final = 8


class Blocks:
    """Splits growing Markdown into finished blocks: at blank lines outside of fenced code."""

    def __init__(self) -> None:
        self.rest = ""

    def feed(self, piece: str) -> list[str]:
        """Add text and return the blocks that it finishes; `rest` is the unfinished one."""
        self.rest += piece
        blocks: list[str] = []
        start = position = 0
        is_code = False
        while (end := self.rest.find("\n", position)) >= 0:
            line = self.rest[position:end].strip()
            position = end + 1
            if line.startswith(("```", "~~~")):
                is_code = not is_code
            elif not line and not is_code:
                blocks.append(self.rest[start:position])
                start = position
        self.rest = self.rest[start:]
        return [block for block in blocks if block.strip()]


def draw(console: Console, pieces: Iterable[str]) -> None:
    """Draw growing Markdown: the finished blocks, and a few lines of the unfinished one."""
    blocks = Blocks()
    with Live(console=console, transient=True, refresh_per_second=8) as live:
        for piece in pieces:
            for block in blocks.feed(piece):
                live.console.print(Markdown(block))
            live.update(Text("\n".join(blocks.rest.splitlines()[-PREVIEW_LINES:])))
        live.update(Text(""))
    if blocks.rest.strip():
        console.print(Markdown(blocks.rest))
