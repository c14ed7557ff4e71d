from collections.abc import AsyncIterable
from typing import Any, cast

import pytest
from pydantic import BaseModel

from gatewayd.plugins.isolation.call_results import OutcomeWriter, read_outcome
from gatewayd.plugins.isolation.messages import PipeData, pack_at_once, unpack_at_once
from gatewayd.plugins.runtime.iterators import PluginIterator
from gatewayd.plugins.tool_results import read_result


class Response:
    def __init__(self, body: Any = b"", **headers: str) -> None:
        self.body = body
        self.status_code = 200
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class HTMLResponse(Response):
    pass


class Page(HTMLResponse):
    pass


class Model(BaseModel):
    a: int = 1


class Bodied(Response):
    body_iterator = "the iterator"


def keep(_: AsyncIterable[Any]) -> int:
    return 5


def opened(number: int) -> PluginIterator:
    return cast(PluginIterator, f"stream {number}")


WRITER = OutcomeWriter(keep, lambda source: cast(PluginIterator, source))


def across(value: Any, *, is_loose: bool = False) -> Any:
    payload = unpack_at_once(*pack_at_once(WRITER.write(value, is_loose=is_loose)))
    return read_outcome(payload, opened)


@pytest.mark.parametrize("value", [None, "å", 1.5, True, {"a": [1]}, [1, None], b"\x00\xff"])
def test_values_are_what_they_were(value: Any) -> None:
    assert across(value) == value


def test_models_are_objects_for_functions_and_texts_for_tools() -> None:
    assert across(Model()) == {"a": 1}
    assert across(Model(), is_loose=True) == "a=1"


def test_what_is_no_json_is_refused_or_written_as_text() -> None:
    for value in ({"a": {1}}, {1: 2}, object):
        with pytest.raises(TypeError):
            across(value)
    assert across({"a": {1}, 2: b"x"}, is_loose=True) == {"a": "{1}", "2": "x"}
    assert across({1}, is_loose=True) == "{1}"


def test_pages_are_known_as_pages() -> None:
    page = Page(b"<p>", Content_Disposition="inline")
    assert read_result(across(page), "t").embeds == ("<p>",)
    told = read_result(across((page, {"a": 1}), is_loose=True), "t")
    assert (told.embeds, told.text) == (("<p>",), '{\n  "a": 1\n}')
    pair = across(("<p>", {"Content-Disposition": "inline"}), is_loose=True)
    assert pair == ("<p>", {"Content-Disposition": "inline"})
    assert across((1, 2)) == [1, 2]
    plain = across(Response("text"))
    assert (plain.body, plain.status_code) == (b"text", 200)


def test_streams_are_opened() -> None:
    items: Any = object.__new__(PluginIterator)
    assert across(items) == "stream 5"
    assert across(Bodied()).body_iterator == "stream 5"


@pytest.mark.parametrize(
    "told",
    [
        None,
        1,
        {},
        {"is": "other"},
        {"is": "stream", "stream": "1"},
        {"is": "stream", "stream": True},
        {"is": "response", "name": "x", "status": 200, "headers": []},
        {"is": "response", "name": "x", "status": 200, "headers": {"a": "b" * 10_000}},
        {"is": "response", "name": "x", "status": "ok", "headers": {}},
        {"is": "pair", "first": 1, "second": 1},
    ],
)
def test_a_malformed_outcome_is_refused(told: Any) -> None:
    with pytest.raises((ValueError, TypeError, LookupError)):
        read_outcome(PipeData(told), opened)
