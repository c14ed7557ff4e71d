"""Tests for gatewayd.http.responses.warning_header."""

import pytest

from gatewayd.http.responses.warning_header import MAX_HEADER_CHARACTERS, WARNING_HEADER, warning_headers


def test_sentences_are_joined() -> None:
    assert warning_headers([]) == {}
    assert warning_headers(["one", "two"]) == {WARNING_HEADER: "one; two"}


@pytest.mark.parametrize("text", ["a\r\nSet-Cookie: b", "a\x00b", "ü€\N{GRINNING FACE}", "x" * 100_000])
def test_a_sentence_stays_one_short_line_of_ascii(text: str) -> None:
    value = warning_headers([text])[WARNING_HEADER]
    assert value.isascii()
    assert value.isprintable()
    assert len(value) <= MAX_HEADER_CHARACTERS


def test_of_very_many_sentences_the_first_are_told() -> None:
    value = warning_headers([f"cannot use option {number}" for number in range(500_000)])[WARNING_HEADER]
    assert value.startswith("cannot use option 0; cannot use option 1; ")
    assert len(value) == MAX_HEADER_CHARACTERS
    assert value.endswith("...")
