"""Tables, JSON, names and Markdown."""

import io
import json
import re

import pytest
from pydantic import BaseModel, Field

from gatewayctl.render import Bars, Column, Output, Renderer, View, fitted
from tests.fakes.control import Terminal


class Row(BaseModel):
    name: str
    tags: list[str] = Field(default_factory=list)
    active: bool = True
    seen: str | None = None


VIEW: View[Row] = View(
    name=lambda row: row.name,
    columns={
        "NAME": lambda row: row.name,
        "TAGS": lambda row: row.tags,
        "ACTIVE": lambda row: row.active,
        "SEEN": lambda row: row.seen,
    },
)


def rendered(output: Output, rows: list[Row], stream: io.StringIO | None = None) -> str:
    stream = stream or io.StringIO()
    Renderer(output, stream).many(rows, VIEW)
    return stream.getvalue()


def test_a_table_in_a_pipe_is_plain_and_never_folded() -> None:
    text = rendered(Output.TABLE, [Row(name="x" * 500, tags=["a", "b"]), Row(name="y", active=False)])
    heading, first, second = text.splitlines()
    assert heading.split() == ["NAME", "TAGS", "ACTIVE", "SEEN"]
    assert first.split() == ["x" * 500, "a,", "b", "yes", "-"]
    assert second.split() == ["y", "-", "no", "-"]
    assert "\x1b" not in text
    assert all(line == line.rstrip() for line in text.splitlines())


def test_json_forms_have_the_fields_in_order() -> None:
    rows = [Row(name="ü"), Row(name="b", seen="2026-01-01T00:00:00Z")]
    assert json.loads(rendered(Output.JSON, rows)) == [row.model_dump() for row in rows]
    lines = rendered(Output.JSONL, rows).splitlines()
    assert lines[0] == '{"name": "ü", "tags": [], "active": true, "seen": null}'
    assert len(lines) == 2
    assert rendered(Output.JSON, []) == "[]\n"
    assert rendered(Output.JSONL, []) == rendered(Output.NAME, []) == ""


def test_one_thing() -> None:
    stream = io.StringIO()
    renderer = Renderer(Output.TABLE, stream)
    assert renderer.is_for_people
    renderer.one(Row(name="n"), VIEW)
    assert stream.getvalue().splitlines()[0].split() == ["NAME", "n"]
    for output, expected in ((Output.NAME, "n\n"), (Output.JSONL, '{"name": "n", ')):
        stream = io.StringIO()
        Renderer(output, stream).one(Row(name="n"), VIEW)
        assert stream.getvalue().startswith(expected)


def test_names_and_cells_cannot_steer_a_terminal() -> None:
    evil = Row(name="a\x1b[2J\nb\u202e[/bold]")
    for output in (Output.TABLE, Output.NAME):
        text = rendered(output, [evil], Terminal())
        assert "\x1b[2J" not in text
        assert "\\x1b[2J\\nb\\u202e[/bold]" in text


def test_colour_needs_a_terminal_and_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    assert "\x1b[1m" in rendered(Output.TABLE, [Row(name="n")], Terminal())
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b" not in rendered(Output.TABLE, [Row(name="n")], Terminal())


def test_no_color_is_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    Renderer(Output.TABLE, stream).answer(["# head\n\n", "`code`"])
    assert "\x1b[3" not in stream.getvalue()


def test_an_answer_in_a_pipe_is_untouched() -> None:
    stream = io.StringIO()
    Renderer(Output.TABLE, stream).answer(["# he", "ad\x1b\n", "**b**", ""])
    assert stream.getvalue() == "# head\x1b\n**b**\n"
    stream = io.StringIO()
    Renderer(Output.TABLE, stream).answer([])
    assert stream.getvalue() == ""


def test_an_answer_on_a_terminal_is_markdown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    stream = Terminal()
    Renderer(Output.TABLE, stream).answer(["one **bo", "ld** \x1b[2J\n\ntwo"])
    text = stream.getvalue()
    assert "\x1b[1mbold\x1b[0m" in text
    assert "\x1b[2J" not in text
    assert "two" in text


def test_an_answer_on_a_dumb_terminal_is_cleaned_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    stream = Terminal()
    Renderer(Output.TABLE, stream).answer(["**b**\x1b[2J\n"])
    assert stream.getvalue() == "**b**\\x1b[2J\n"


def test_objects_are_written_as_they_are() -> None:
    for output, expected in ((Output.JSON, '{\n  "a": 1\n}\n'), (Output.JSONL, '{"a": 1}\n')):
        stream = io.StringIO()
        Renderer(output, stream).json({"a": 1})
        assert stream.getvalue() == expected


def test_a_text_is_left_alone_in_a_pipe_and_made_safe_on_a_terminal() -> None:
    pipe, terminal = io.StringIO(), Terminal()
    for stream in (pipe, terminal):
        Renderer(Output.TABLE, stream).text("# one\n\x1b[2Jtwo")
    assert pipe.getvalue() == "# one\n\x1b[2Jtwo\n"
    assert terminal.getvalue() == "# one\n\\x1b[2Jtwo\n"


def bars(stream: io.StringIO, *, is_wanted: bool = True) -> str:
    with Bars(stream, is_wanted=is_wanted) as shown:
        shown.advance(1)
        shown.begin("reading", 10)
        shown.advance(5)
        shown.begin("processing", 2)
        shown.advance(1)
    return stream.getvalue()


def test_bars_are_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    assert bars(io.StringIO()) == bars(Terminal(), is_wanted=False) == ""
    shown = bars(Terminal())
    assert "processing" in shown
    assert "50%" in shown


class Passage(BaseModel):
    id: str
    file: str
    text: str


PASSAGES: View[Passage] = View(
    name=lambda row: row.id,
    columns={"TEXT": lambda row: row.text, "KEY": lambda row: row.id, "FILE": lambda row: row.file},
)


@pytest.mark.parametrize("columns", ["80", "40"])
def test_a_narrow_terminal_cuts_texts_and_no_ids(monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    rows = [Passage(id=f"{number:036}", file="handbook.pdf", text="many words " * 20) for number in range(2)]
    stream = Terminal()
    Renderer(Output.TABLE, stream).many(rows, PASSAGES)
    heading, *lines = re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue()).splitlines()
    assert heading.split()[0] == "TEXT"
    # The id and four letters of each text, where the terminal has no room.
    widest = max(int(columns), 36 + 2 * (4 + 2))
    for row, line in zip(rows, lines, strict=True):
        assert row.id in line
        assert "…" in line
        assert len(line) <= widest


def test_what_says_nothing_is_left_out_of_a_narrow_terminal() -> None:
    columns = [
        Column("ID", ["x" * 30], True),
        Column("ERROR", ["-"], False),
        Column("TEXT", ["y" * 30], False),
    ]
    assert [column.heading for column in fitted(columns, 80)] == ["ID", "ERROR", "TEXT"]
    narrow = fitted(columns, 60)
    assert [(column.heading, column.width) for column in narrow] == [("ID", 30), ("TEXT", 28)]


def test_json_cannot_steer_a_terminal_and_stays_the_same() -> None:
    evil = Row(name="a\x9b2J\u202e\x7fü")
    for output in (Output.JSON, Output.JSONL):
        text = rendered(output, [evil])
        assert text.isascii() is False
        assert not set(text) & set("\x9b\u202e\x7f")
        (found,) = json.loads(text) if output is Output.JSON else [json.loads(text)]
        assert found == evil.model_dump()
