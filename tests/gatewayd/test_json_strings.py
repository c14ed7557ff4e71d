"""Tests of gatewayd.text about the strings of JSON."""

import json

import pytest

from gatewayd.text import escaped_end, is_escaped, piece_end, without_strings

UNITS = ["\\", '"', "\n", "\u0001", "\U0001f600", "ab", 'a\\"']


@pytest.mark.parametrize("unit", UNITS)
def test_a_piece_ends_where_no_escape_is_cut(unit: str) -> None:
    text = json.dumps(unit * 300).encode()
    place, parts = 1, []
    while place < len(text) - 1:
        cut = piece_end(text, place, len(text) - 1, 160)
        assert place < cut <= place + 160
        parts.append(json.loads(b'"%b"' % text[place:cut]))
        place = cut
    assert "".join(parts) == unit * 300


def test_what_is_no_escape_is_left_to_the_decoder() -> None:
    assert piece_end(b"\\ud800" * 40, 0, 240, 100) > 0


@pytest.mark.parametrize("count", range(6))
def test_a_quote_is_escaped_by_an_odd_number_of_backslashes(count: int) -> None:
    text = b"x" + b"\\" * count + b'"y"'
    assert is_escaped(text, 0, count + 1) == (count % 2 == 1)
    if count % 2:
        assert escaped_end(text, 0, len(text), count + 1) == (count + 3, count + 3)
        assert escaped_end(text, 0, count + 1, -1) == (count, -1)


def test_a_text_without_its_strings() -> None:
    text = json.dumps({"a": ["[{,", '"', "\\", '\\"'], "b,": {}}, separators=(",", ":")).encode()
    assert without_strings(text) == b"{:[,,,],:{}}"
