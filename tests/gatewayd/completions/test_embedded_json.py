"""Tests for gatewayd.completions.embedded_json."""

import json

import pytest

from gatewayd.completions.embedded_json import MAX_VALUES, count_marks, has_too_many_values

CODE = json.dumps({"path": "a.py", "content": 'f(a, b[0], {1, 2}, "c")\n' * 50_000})


def test_marks() -> None:
    assert count_marks('{"a": [1, 2, "x,"]}') == 5


def test_texts_within_arguments_do_not_count() -> None:
    assert count_marks(CODE) > MAX_VALUES
    assert not has_too_many_values(CODE)
    assert not has_too_many_values("", "{}", *["[1, 2]"] * 10_000)


@pytest.mark.parametrize(
    "text",
    [
        '{"a":[' + "[]," * 150_000 + "[]]}",
        "[" + "1," * 15_000_000 + "1]",
        '["' + '","' * 210_000 + '"]',
        '"' * 400_000 + "," * 210_000,
        "[" * 210_000,
        CODE * 5,
    ],
)
def test_too_much(text: str) -> None:
    assert has_too_many_values(text)


def test_texts_count_together() -> None:
    part = "[" + "1," * 50_000 + "1]"
    assert not has_too_many_values(part, part)
    assert has_too_many_values(*[part] * 5)


def test_a_text_without_end_is_read_once() -> None:
    assert not has_too_many_values('"' + '\\"' * 1_000_000 + "," * 250_000)
    assert not has_too_many_values('"' + "," * 250_000 + "\\")
