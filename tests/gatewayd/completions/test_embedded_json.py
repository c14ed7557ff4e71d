"""Tests for gatewayd.completions.embedded_json."""

import json
from collections.abc import Callable

import pytest

from gatewayd.completions.embedded_json import MAX_VALUES, count_marks, has_too_many_values


def code() -> str:
    """Return the arguments of a call that writes a long program."""
    return json.dumps({"path": "a.py", "content": 'f(a, b[0], {1, 2}, "c")\n' * 50_000})


def test_marks() -> None:
    assert count_marks('{"a": [1, 2, "x,"]}') == 5


def test_texts_within_arguments_do_not_count() -> None:
    text = code()
    assert count_marks(text) > MAX_VALUES
    assert not has_too_many_values(text)
    assert not has_too_many_values("", "{}", *["[1, 2]"] * 10_000)


# Each is made in its test: a text would be a part of the id, and stay until the end of the run.
MADE: dict[str, Callable[[], str]] = {
    "lists": lambda: '{"a":[' + "[]," * 150_000 + "[]]}",
    "numbers": lambda: "[" + "1," * 15_000_000 + "1]",
    "texts": lambda: '["' + '","' * 210_000 + '"]',
    "quotes and commas": lambda: '"' * 400_000 + "," * 210_000,
    "brackets": lambda: "[" * 210_000,
    "five programs": lambda: code() * 5,
}


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_too_much(made: Callable[[], str]) -> None:
    assert has_too_many_values(made())


def test_texts_count_together() -> None:
    part = "[" + "1," * 50_000 + "1]"
    assert not has_too_many_values(part, part)
    assert has_too_many_values(*[part] * 5)


def test_a_text_without_end_is_read_once() -> None:
    assert not has_too_many_values('"' + '\\"' * 1_000_000 + "," * 250_000)
    assert not has_too_many_values('"' + "," * 250_000 + "\\")
