"""Events on one line."""

from typing import Any

import pytest

from gatewayctl.events.follower import GAP, Happening
from gatewayctl.events.lines import MAX_LINE_CHARS, line_of, question_of, text_of


def test_a_line_says_when_whose_where_and_what() -> None:
    event = Happening(
        id="b-1",
        user="ann@example.org",
        chat_id="c1",
        message_id="m1",
        type="message",
        data={"content": "hi"},
    )
    assert line_of(event, "12:00:01") == "12:00:01 ann@example.org c1/m1 message: hi"
    bare = Happening(type="notification", data={"type": "info", "content": "hi"})
    assert line_of(bare, "12:00:01") == "12:00:01 notification: info: hi"
    assert line_of(Happening(type=GAP), "12:00:01").startswith("12:00:01 events may be lost")


def test_a_call_says_how_it_is_answered() -> None:
    call = Happening(
        user="a", type="confirmation", call_id="k1", data={"title": "Sure?", "message": "Really?"}
    )
    assert line_of(call, "12") == "12 a confirmation: Sure?: Really?  (gatewayctl event answer k1)"


@pytest.mark.parametrize(
    ("kind", "data", "told"),
    [
        ("status", {"description": "looking", "done": False}, "looking"),
        ("status", {"action": "web_search", "done": True}, "web_search (done)"),
        ("status", {"done": True}, '{"done": true}'),
        ("status", None, "null"),
        ("status", [1], "[1]"),
        ("chat:completion", {"content": "hello", "done": True}, "hello (done)"),
        ("chat:completion", {"done": True}, "(done)"),
        (
            "chat:completion",
            {"content": "x" * MAX_LINE_CHARS + "end"},
            f"... {'x' * (MAX_LINE_CHARS - 3)}end",
        ),
        ("chat:message:delta", {"content": "a\n\nb"}, "a b"),
        ("replace", {"content": ""}, '{"content": ""}'),
        ("files", {"files": [{}, {}]}, "2 files"),
        ("embeds", {"embeds": ["x"]}, "1 embeds"),
        ("files", {"files": 3}, '{"files": 3}'),
        ("chat:title", {"title": "Birds"}, "Birds"),
        ("chat:title", "Birds", "Birds"),
        ("chat:tags", ["a", "b"], '["a", "b"]'),
        ("source", {"source": {"name": "pump.md"}}, "pump.md"),
        ("citation", {"type": "code_execution", "name": "run"}, "run"),
        ("notification", {"content": "hi"}, "hi"),
        ("input", {"title": "Name?", "message": ""}, "Name?"),
        ("execute", {"code": "return\n1"}, "return 1"),
        ("my:type", {"ä": 1}, '{"ä": 1}'),
    ],
)
def test_what_an_event_says(kind: str, data: Any, told: str) -> None:
    assert text_of(Happening(type=kind, data=data)) == told


def test_long_texts_are_shortened() -> None:
    for kind, data in (("message", {"content": "a" * MAX_LINE_CHARS}), ("my:type", "a" * MAX_LINE_CHARS)):
        assert text_of(Happening(type=kind, data=data)) == "a" * MAX_LINE_CHARS
    for kind, data in (
        ("message", {"content": "a" * (MAX_LINE_CHARS + 1)}),
        ("my:type", "a" * (MAX_LINE_CHARS + 1)),
    ):
        assert text_of(Happening(type=kind, data=data)) == "a" * MAX_LINE_CHARS + " ..."


@pytest.mark.parametrize(
    ("data", "question"),
    [
        ({"title": "a", "message": "b"}, "a: b"),
        ({"title": 1, "message": "b"}, "b"),
        ({"code": "return 1"}, "return 1"),
        ({}, ""),
        (None, ""),
    ],
)
def test_what_a_call_asks(data: Any, question: str) -> None:
    assert question_of(data) == question
