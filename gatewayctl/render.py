"""Rendering of answers: tables for people (with rich), stable JSON and bare names for programs."""

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from types import TracebackType
from typing import Any, Final, Generic, TextIO, TypeVar

from pydantic import BaseModel
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from gatewayctl.columns import NOTHING, Column, fitted, table_columns
from gatewayctl.sanitize import as_json, clean, clean_lines

# Wide enough that a table in a pipe is never wrapped.
PIPE_WIDTH: Final = 1_000_000
# Imported only to draw an answer on a terminal: its libraries take a sixth of the time of a command.
MARKDOWN: Final = "gatewayctl.markdown"

Row = TypeVar("Row", bound=BaseModel)


class Output(StrEnum):
    """Output formats."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class View(Generic[Row]):
    """View of rows of one kind: the name for `--output name`, and the columns of a table."""

    name: Callable[[Row], str]
    columns: Mapping[str, Callable[[Row], object]]


class Renderer:
    """Writes answers to a stream in one format."""

    def __init__(self, output: Output, stream: TextIO) -> None:
        self.output = output
        self._stream = stream

    @property
    def is_for_people(self) -> bool:
        """Whether the output is for people, not for programs."""
        return self.output is Output.TABLE

    def many(self, rows: Sequence[Row], view: View[Row]) -> None:
        """Write a list: a table, one JSON array, one JSON object a line, or one name a line."""
        match self.output:
            case Output.TABLE:
                names = [clean(view.name(row)) for row in rows]
                self._table(list(view.columns), [_cells(row, view) for row in rows], names)
            case Output.JSON:
                self._line(as_json([row.model_dump(mode="json") for row in rows], indent=2))
            case Output.JSONL:
                for row in rows:
                    self._line(as_json(row.model_dump(mode="json")))
            case Output.NAME:
                for row in rows:
                    self._line(clean(view.name(row)))

    def one(self, row: Row, view: View[Row]) -> None:
        """Write one object: a field a line, one JSON object, or its name."""
        match self.output:
            case Output.TABLE:
                self._fields(zip(view.columns, _cells(row, view), strict=True))
            case Output.JSON:
                self._line(as_json(row.model_dump(mode="json"), indent=2))
            case Output.JSONL:
                self._line(as_json(row.model_dump(mode="json")))
            case Output.NAME:
                self._line(clean(view.name(row)))

    def json(self, value: Mapping[str, Any]) -> None:
        """Write an object as JSON: indented for json, on one line for jsonl."""
        self._line(as_json(value, indent=2 if self.output is Output.JSON else None))

    def say(self, sentence: str) -> None:
        """Write one line for people."""
        self._line(clean(sentence))

    def answer(self, pieces: Iterable[str]) -> None:
        """Write a text as it arrives: as Markdown on a terminal, unchanged in a pipe."""
        console = self._console()
        if not self._stream.isatty():
            self._plain(pieces)
        elif console.is_dumb_terminal:
            self._plain(clean_lines(piece) for piece in pieces)
        else:
            import_module(MARKDOWN).draw(console, (clean_lines(piece) for piece in pieces))

    def text(self, text: str) -> None:
        """Write a text of several lines, made safe for a terminal."""
        self._plain([clean_lines(text) if self._stream.isatty() else text])

    def _plain(self, pieces: Iterable[str]) -> None:
        last = "\n"
        for piece in pieces:
            self._stream.write(piece)
            self._stream.flush()
            last = piece or last
        if not last.endswith("\n"):
            self._stream.write("\n")

    def _table(self, headings: Sequence[str], rows: Sequence[list[str]], names: Sequence[str]) -> None:
        """Write rows as a table, or as blocks if a table does not fit the terminal."""
        columns = table_columns(headings, rows, names)
        if not self._stream.isatty():
            self._draw(columns)
            return
        kept = fitted(columns, self._console().width)
        if kept is None:
            self._blocks(headings, rows)
        else:
            self._draw(kept)

    def _draw(self, columns: Sequence[Column]) -> None:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column in columns:
            table.add_column(column.heading, overflow="ellipsis", no_wrap=True, width=column.width)
        for row in zip(*(column.shown() for column in columns), strict=True):
            table.add_row(*map(Text, row))
        self._print(table)

    def _blocks(self, headings: Sequence[str], rows: Sequence[list[str]]) -> None:
        """Write rows as lines `NAME: value`, with an empty line between two rows."""
        console = self._console()
        for place, row in enumerate(rows):
            if place:
                self._line("")
            for heading, cell in zip(headings, row, strict=True):
                console.print(Text.assemble((heading, "bold"), ": ", cell), overflow="fold")

    def _fields(self, fields: Iterable[tuple[str, str]]) -> None:
        table = Table(box=None, pad_edge=False, show_header=False)
        table.add_column(style="bold")
        table.add_column(overflow="fold")
        for heading, cell in fields:
            table.add_row(heading, Text(cell))
        self._print(table)

    def _print(self, table: Table) -> None:
        if self._stream.isatty():
            self._console().print(table)
            return
        page = io.StringIO()
        Console(file=page, width=PIPE_WIDTH, color_system=None, highlight=False).print(table)
        for line in page.getvalue().splitlines():
            self._line(line.rstrip())

    def _console(self) -> Console:
        return Console(file=self._stream, highlight=False, markup=False, emoji=False)

    def _line(self, text: str) -> None:
        self._stream.write(f"{text}\n")


class Bars:
    """Progress bars of a long command on a terminal, one for each stage; nothing elsewhere."""

    def __init__(self, stream: TextIO, *, is_wanted: bool = True) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            console=Console(file=stream, highlight=False, markup=False, emoji=False),
            transient=True,
            disable=not (is_wanted and stream.isatty()),
        )
        self._stage: TaskID | None = None

    def __enter__(self) -> "Bars":
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def begin(self, title: str, total: int) -> None:
        """Start a stage of `total` units and end the one before."""
        if self._stage is not None:
            self._progress.remove_task(self._stage)
        self._stage = self._progress.add_task(title, total=total)

    def advance(self, amount: int) -> None:
        """Add progress to the stage; any thread may call this."""
        if self._stage is not None:
            self._progress.advance(self._stage, amount)


def _cells(row: Row, view: View[Row]) -> list[str]:
    return [_cell(read(row)) for read in view.columns.values()]


def _cell(value: object) -> str:
    match value:
        case None:
            return NOTHING
        case bool():
            return "yes" if value else "no"
        case list() | tuple():
            return ", ".join(_cell(item) for item in value) or NOTHING
        case _:
            return clean(str(value)) or NOTHING
