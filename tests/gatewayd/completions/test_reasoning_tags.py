"""Tests for gatewayd.completions.reasoning_tags."""

from typing import Any

import pytest

from gatewayd.completions.reasoning_tags import (
    MAX_TAG_CHARACTERS,
    REASONING_TAGS,
    ReasoningSplitter,
    parse_reasoning_tags,
)


def divide(text: str, size: int, tags: Any = None) -> list[tuple[bool, str]]:
    """Return a text divided, fed in pieces of a size, with what is alike put together."""
    thinking = ReasoningSplitter(tags)
    pieces = [
        piece for start in range(0, len(text), size) for piece in thinking.feed(text[start : start + size])
    ]
    found: list[tuple[bool, str]] = []
    for kind, piece in [*pieces, *thinking.finish()]:
        if found and found[-1][0] is kind:
            found[-1] = (kind, found[-1][1] + piece)
        else:
            found.append((kind, piece))
    return found


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize(("begin", "end"), REASONING_TAGS)
def test_reasoning_is_divided_from_text_however_it_is_cut(begin: str, end: str, size: int) -> None:
    found = divide(f"{begin}why < so{end}therefore", size)
    assert found == [(True, "why < so"), (False, "therefore")]


@pytest.mark.parametrize("size", [1, 4, 1000])
def test_reasoning_may_come_twice(size: int) -> None:
    found = divide("<think>a</think><think>b</think>c", size)
    assert found == [(True, "ab"), (False, "c")]


@pytest.mark.parametrize("size", [1, 4, 1000])
@pytest.mark.parametrize("text", ["plain", "about <think>tags</think>", "<thin", "<b>bold</b>", "  x", "<"])
def test_text_stays_as_it_is(text: str, size: int) -> None:
    assert divide(text, size) == [(False, text)]


@pytest.mark.parametrize("size", [1, 1000])
def test_reasoning_that_never_ends_is_reasoning(size: int) -> None:
    assert divide("<think>why</thi", size) == [(True, "why</thi")]


def test_tag_of_ones_own_takes_the_place_of_the_others() -> None:
    tags = parse_reasoning_tags({"reasoning_tags": ["[[", "]]"]})
    assert divide("[[a]]b", 1, tags) == [(True, "a"), (False, "b")]
    assert divide("<think>a</think>", 1, tags) == [(False, "<think>a</think>")]


@pytest.mark.parametrize("params", [None, {}, {"reasoning_tags": None}, {"reasoning_tags": ["a"]}, "x"])
def test_known_tags_count_when_nothing_else_is_asked_for(params: Any) -> None:
    assert parse_reasoning_tags(params) is None


def test_no_tags_divide_nothing() -> None:
    assert divide("<think>a</think>", 3, parse_reasoning_tags({"reasoning_tags": False})) == [
        (False, "<think>a</think>")
    ]


def test_tags_that_repeat_cost_no_more_each() -> None:
    # In quadratic time this takes long.
    text = "<think></think>" * 150_000
    assert divide(text + "a", len(text) + 1) == [(False, "a")]


def test_blanks_that_never_end_are_text() -> None:
    text = " " * 300_000
    assert divide(text, 1) == [(False, text)]


def test_long_tags_of_ones_own_do_not_count() -> None:
    assert parse_reasoning_tags({"reasoning_tags": ["<", ">" * (MAX_TAG_CHARACTERS + 1)]}) is None
