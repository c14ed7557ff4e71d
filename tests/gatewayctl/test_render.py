"""Tables, JSON, names and Markdown."""

import io
import json
import re
from typing import Any

import pytest
from pydantic import BaseModel, Field

from gatewayctl.commands import collections, files, service, users
from gatewayctl.render import Bars, Output, Renderer, View
from gatewayctl.wire.collections import Passage as FoundPassage
from gatewayctl.wire.files import File
from gatewayctl.wire.service import ServiceStep
from gatewayctl.wire.users import User
from tests.fakes.daemons.control_socket import Terminal


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


def on_terminal(
    monkeypatch: pytest.MonkeyPatch, columns: int, rows: list[Any], view: Any = None
) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    Renderer(Output.TABLE, stream).many(rows, view or PASSAGES)
    return re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue()).splitlines()


PASSAGE_ROWS = [
    Passage(id=f"{number:036}", file="handbook.pdf", text="many words " * 20) for number in (1, 2)
]


@pytest.mark.parametrize(("columns", "headings"), [(80, ["TEXT", "KEY", "FILE"]), (60, ["TEXT", "KEY"])])
def test_a_narrow_terminal_cuts_texts_and_no_ids(
    monkeypatch: pytest.MonkeyPatch, columns: int, headings: list[str]
) -> None:
    heading, *lines = on_terminal(monkeypatch, columns, PASSAGE_ROWS)
    assert heading.split() == headings
    for row, line in zip(PASSAGE_ROWS, lines, strict=True):
        assert row.id in line
        assert "…" in line
        assert len(line) <= columns


def test_rows_that_no_table_has_room_for_are_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = on_terminal(monkeypatch, 42, PASSAGE_ROWS)
    assert max(map(len, lines)) <= 42
    assert [line for line in lines if line.startswith("KEY")] == [f"KEY: {row.id}" for row in PASSAGE_ROWS]
    assert lines.count("FILE: handbook.pdf") == 2
    assert lines.count("") == 1


ID = "0f8c1a52-7d3e-4b6a-9c1d-2e5f6a7b8c9"
USERS = [
    User(
        id=f"{ID}{number}",
        email=f"{number}.firstname.lastname@department.example.org",
        name="Firstname Lastname",
        role="pending",
        active=True,
        groups=["api-users", "engineering"],
        last_active_at="2026-11-24T04:12:02Z",
    )
    for number in range(7)
]
FILES = [
    File(
        id=f"{ID}{number}",
        name=f"gateway-operations-manual-part-{number}.pdf",
        status="completed",
        size=1_234_567,
        checksum="c" * 64,
        passages=120,
        user_id=ID,
        user="firstname.lastname@department.example.org",
    )
    for number in range(7)
]
STEPS = [
    ServiceStep(target=f"/usr/lib/systemd/system/{name}", outcome="unchanged", detail=detail, dry_run=True)
    for name, detail in (
        ("gatewayd-control.socket", "it was changed; its owner and mode are set to root:gatewayd 0640"),
        ("gatewayd-ingest@.timer", "a link to /opt/gatewayd/lib/systemd/system/gatewayd-ingest@.timer"),
    )
]
FOUND = [
    FoundPassage(
        text="The gateway answers once its source has answered. " * 3,
        score=0.81,
        similarity=0.7,
        file_id=ID,
        file=f"gateway-operations-manual-part-{number}.pdf",
        page=112,
        dense=0.812,
        dense_rank=12,
        lexical=17.25,
        lexical_rank=3,
    )
    for number in range(7)
]


@pytest.mark.parametrize(
    ("view", "rows", "headings", "whole"),
    [
        (users.ROWS, USERS, ["EMAIL", "ROLE", "ACTIVE", "ID"], ["pending", "yes", ID]),
        (files.ROWS, FILES, ["NAME", "STATUS", "SIZE", "ID"], ["completed", "1234567", ID]),
        (service.STEPS, STEPS, ["STEP", "TARGET", "DETAIL"], ["dry run: unchanged"]),
        (
            collections.EXPLAINED,
            FOUND,
            ["SCORE", "FILE", "PAGE", "DENSE", "LEXICAL", "SIMILARITY", "TEXT"],
            ["0.810", "112", "#12 0.812", "#3 17.250", "0.700"],
        ),
    ],
    ids=["user list", "file list", "service install", "collection query --explain"],
)
def test_lists_of_real_values_fit_80_columns(
    monkeypatch: pytest.MonkeyPatch, view: Any, rows: list[Any], headings: list[str], whole: list[str]
) -> None:
    heading, *lines = on_terminal(monkeypatch, 80, rows, view)
    assert heading.split() == headings
    assert max(map(len, (heading, *lines))) <= 80
    assert all(value in line for line in lines for value in whole)
    # Without their ids rows still read differently.
    assert len({line.partition(ID)[0] for line in lines}) == len(rows)


def test_json_cannot_steer_a_terminal_and_stays_the_same() -> None:
    evil = Row(name="a\x9b2J\u202e\x7fü")
    for output in (Output.JSON, Output.JSONL):
        text = rendered(output, [evil])
        assert text.isascii() is False
        assert not set(text) & set("\x9b\u202e\x7f")
        (found,) = json.loads(text) if output is Output.JSON else [json.loads(text)]
        assert found == evil.model_dump()
