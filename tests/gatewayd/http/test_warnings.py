"""Tests for gatewayd.http.warnings."""

import pytest

from gatewayd.http.warnings import MAX_LENGTH, NAME, warning_headers


def test_sentences_are_joined() -> None:
    assert warning_headers([]) == {}
    assert warning_headers(["one", "two"]) == {NAME: "one; two"}


@pytest.mark.parametrize("text", ["a\r\nSet-Cookie: b", "a\x00b", "ü€\N{GRINNING FACE}", "x" * 100_000])
def test_a_sentence_stays_one_short_line_of_ascii(text: str) -> None:
    value = warning_headers([text])[NAME]
    assert value.isascii()
    assert value.isprintable()
    assert len(value) <= MAX_LENGTH
