"""Tests for gatewayd.pipeline.functions.sse_text."""

from typing import Any

import pytest

from gatewayd.completions.limits import MAX_LINE_BYTES
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.pipeline.functions.sse_text import SseTextReader

HELLO = {"choices": [{"delta": {"content": "Grüße"}}]}
LINE = 'data: {"choices": [{"delta": {"content": "Grüße"}}]}'


def read(*items: str | bytes) -> list[Any]:
    texts = SseTextReader()
    return [token for item in items for token in texts.feed(item)] + texts.finish()


def test_prose_passes_with_its_blanks() -> None:
    assert read("a", " ", "b\n", "") == ["a", " ", "b\n"]


def test_lines_are_read_with_and_without_their_ends() -> None:
    assert read(LINE, "", LINE + "\n\n", "\n", "data: [DONE]") == [HELLO, HELLO]


def test_one_item_may_hold_several_lines() -> None:
    assert read(f": ping\n\n{LINE}\n\n{LINE}\r\n\r\ndata: [DONE]\n\n".encode()) == [HELLO, HELLO]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50])
def test_bytes_may_be_cut_anywhere(size: int) -> None:
    stream = f"{LINE}\n\n{LINE}\n\ndata: [DONE]\n\n".encode()
    pieces = [stream[start : start + size] for start in range(0, len(stream), size)]
    assert read(*pieces) == [HELLO, HELLO]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_prose_in_bytes_may_be_cut_inside_a_character(size: int) -> None:
    data = "däta €".encode()
    assert "".join(read(*(data[at : at + size] for at in range(0, len(data), size)))) == "däta €"


def test_text_cut_inside_a_line_is_put_together() -> None:
    assert read(LINE[:20], LINE[20:]) == [HELLO]


def test_prose_between_lines_is_kept() -> None:
    assert read("Thinking...\n", LINE, "so", LINE) == ["Thinking...\n", HELLO, "so", HELLO]


def test_a_line_that_is_no_object_is_said_as_text() -> None:
    assert read("data: hello\n\n", "data: 7\n") == ["hello", "7"]


def test_a_broken_line_is_not_lost_when_another_follows() -> None:
    assert read('data: {"a": ', LINE) == ['{"a":', HELLO]


def test_other_fields_of_an_event_stream_are_left_out() -> None:
    assert read(LINE + "\n", "event: message\n", "id: 1\n", "retry: 5\n", ": ping\n") == [HELLO]


def test_what_is_left_at_the_end_is_returned() -> None:
    assert read(b"dat") == ["dat"]
    assert read(b"\xc3") == ["\N{REPLACEMENT CHARACTER}"]
    assert read('data: {"a": 1') == ['{"a": 1']


def test_a_long_line_in_small_pieces_costs_no_more_each() -> None:
    # In quadratic time this takes long.
    value = "}" * 400_000
    line = f'data: {{"a": "{value}"}}'
    assert read(*(bytes([byte]) for byte in line.encode())) == [{"a": value}]
    assert read(line[:20], *line[20:]) == [{"a": value}]


def test_json_that_closes_but_is_none_waits_for_its_end() -> None:
    assert read(b"data: {x", b"}", b"}", b"\n") == ["{x}}"]


@pytest.mark.parametrize("kind", [str, bytes])
def test_a_line_over_the_limit(kind: type) -> None:
    texts = SseTextReader()
    part = "x" * 65536
    with pytest.raises(GatewayError, match=f"a line over {MAX_LINE_BYTES} characters") as caught:
        for item in ["data: ", *[part] * 17]:
            texts.feed(item if kind is str else item.encode())
    assert caught.value.kind is ErrorKind.PLUGIN_FAILED
