"""Tests for gatewayd.plugins.tool_results."""

import base64
import json
from typing import Any

import pytest

from gatewayd.plugins.tool_results import UI_COMPONENT, ResultMedia, ServerReply, is_html, read_result

PIXEL = base64.b64encode(b"pixel").decode()


class Response:
    """Has what responses of the web framework have."""

    def __init__(self, content: str, headers: dict[str, str] | None = None, status_code: int = 200) -> None:
        self.body = content.encode()
        self.headers = headers or {}
        self.status_code = status_code


class HTMLResponse(Response):
    """Is known by its name."""


class OwnPage(HTMLResponse):
    """Is known by that of what it is made of."""


INLINE = {"Content-Disposition": "inline"}


@pytest.mark.parametrize(
    ("status", "word"), [(200, "success"), (204, "success"), (404, "error"), (503, "error"), (302, "unknown")]
)
def test_an_inline_page_is_shown_and_the_model_is_told(status: int, word: str) -> None:
    result = read_result(OwnPage("<b>ä</b>", INLINE, status), "chart")
    told = json.loads(result.text)
    assert result.embeds == ("<b>ä</b>",)
    assert (told["status"], told["code"]) == (word, UI_COMPONENT)
    assert "chart" in told["message"]


@pytest.mark.parametrize("header", ["content-disposition", "Content-Disposition"])
def test_the_header_is_found_in_either_form(header: str) -> None:
    assert read_result(HTMLResponse("<b>", {header: 'inline; filename="x"'}), "t").embeds == ("<b>",)


def test_a_page_that_is_not_inline_is_text() -> None:
    assert read_result(HTMLResponse("<b>x</b>"), "t").text == "<b>x</b>"
    assert read_result(HTMLResponse("x", {"content-disposition": "attachment"}), "t").embeds == ()


@pytest.mark.parametrize(
    ("context", "text"),
    [("told", "told"), ({"a": "ä"}, '{\n  "a": "ä"\n}'), ([1], "[\n  1\n]"), (7, "7"), (None, "")],
)
def test_a_page_with_a_context(context: Any, text: str) -> None:
    result = read_result((HTMLResponse("<b>", INLINE), context), "t")
    assert (result.text, result.embeds) == (text, ("<b>",))


def test_a_plain_page_with_a_context_loses_neither() -> None:
    assert read_result((HTMLResponse("page"), "context"), "t").text == "page\n\ncontext"


@pytest.mark.parametrize(
    ("headers", "is_shown"),
    [
        ({"Content-Disposition": "inline"}, True),
        ({"content-disposition": "inline", "Content-Type": "text/html; charset=utf-8"}, True),
        ({"Content-Disposition": "attachment"}, False),
        ({"Content-Disposition": "inline", "Content-Type": "text/plain"}, False),
        ({}, False),
        ("inline", False),
    ],
)
def test_html_with_its_headers_is_shown(headers: Any, is_shown: bool) -> None:
    result = read_result(("<b>page</b>", headers), "t")
    assert result.embeds == (("<b>page</b>",) if is_shown else ())
    assert result.is_notice is is_shown


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        (None, ""),
        ({"a": [1, "ü"]}, '{\n  "a": [\n    1,\n    "ü"\n  ]\n}'),
        ([], "[]"),
        ([{"type": "text"}], '[\n  {\n    "type": "text"\n  }\n]'),
        (3.5, "3.5"),
        (True, "True"),
        ((1, 2), "(1, 2)"),
        (b"bytes", "bytes"),
        ({(1, 2): 3}, "{(1, 2): 3}"),
        ({"at": {1}}, '{\n  "at": "{1}"\n}'),
        (Response("body"), "body"),
        ("data:text/plain;base64,eA==", "data:text/plain;base64,eA=="),
        ("data:image/png;base64,%%%", "data:image/png;base64,%%%"),
        ("data:image/png", "data:image/png"),
    ],
)
def test_what_is_text(value: Any, text: str) -> None:
    result = read_result(value, "t")
    assert (result.text, result.embeds, result.media) == (text, (), ())


def test_what_refers_to_itself_is_text_still() -> None:
    value: list[Any] = []
    value.append(value)
    assert read_result(value, "t").text == "[[...]]"


def test_what_nests_too_deep_is_told() -> None:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    assert "nested too deeply" in read_result(value, "t").text


def test_an_image_as_text_is_a_file() -> None:
    result = read_result(f"data:image/png;base64,{PIXEL}", "t")
    assert result.media == (ResultMedia("image", b"pixel", "image/png"),)
    assert "pixel" not in result.text
    assert PIXEL not in result.text


def test_files_among_the_items_of_a_list() -> None:
    result = read_result(["one", f"data:application/pdf;base64,{PIXEL}", {"two": 2}], "t")
    assert result.media == (ResultMedia("file", b"pixel", "application/pdf"),)
    assert json.loads(result.text) == ["one", {"two": 2}]
    alone = read_result([f"data:audio/wav;base64,{PIXEL}"], "t")
    assert alone.media[0].type == "audio"
    assert alone.text


def test_the_texts_of_an_mcp_list_are_joined_and_its_images_are_files() -> None:
    items = [
        {"type": "text", "text": "one"},
        {"type": "image", "data": PIXEL, "mimeType": "image/jpeg"},
        {"type": "text", "text": "two"},
        {"type": "resource", "resource": {"uri": "u", "text": "three"}},
        {"type": "resource", "resource": {"uri": "u", "blob": "four"}},
        {"type": "resource_link", "uri": "five"},
        {"type": "audio", "data": PIXEL, "mimeType": "audio/mp3"},
    ]
    result = read_result(items, "t")
    assert result.text == "one\ntwo\nthree\nfour\nfive"
    assert [(item.type, item.content_type) for item in result.media] == [
        ("image", "image/jpeg"),
        ("audio", "audio/mp3"),
    ]


def test_an_mcp_image_that_is_none_is_told() -> None:
    result = read_result([{"type": "image", "data": "%%"}], "t")
    assert result.media == ()
    assert "image" in result.text


def test_an_mcp_image_alone_tells_the_model_that_it_is_there() -> None:
    result = read_result([{"type": "image", "data": PIXEL}], "t")
    assert result.media == (ResultMedia("image", b"pixel", "image/*"),)
    assert "image" in result.text


@pytest.mark.parametrize("location", [None, "https://example.org/page"])
def test_a_page_of_a_server(location: str | None) -> None:
    headers = {"Content-Type": "text/html; charset=utf-8", "Content-Disposition": "inline"}
    if location:
        headers["Location"] = location
    result = read_result(ServerReply("<b>", headers), "t")
    assert result.embeds == (location or "<b>",)
    assert json.loads(result.text)["code"] == UI_COMPONENT


def test_other_answers_of_a_server() -> None:
    assert read_result(ServerReply({"a": 1}, {"content-disposition": "inline"}), "t").text == '{\n  "a": 1\n}'
    assert read_result(ServerReply("<b>", {"content-type": "text/html"}), "t").text == "<b>"
    assert read_result(ServerReply([f"data:image/png;base64,{PIXEL}"]), "t").media


def test_what_is_a_page() -> None:
    assert is_html(OwnPage(""))
    assert is_html((HTMLResponse(""), "context"))
    assert not is_html(())
    assert not is_html("<b>")
    assert not is_html(Response(""))
