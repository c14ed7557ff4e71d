"""Tests for gatewayd.chats.json_limits."""

import math
from typing import Any

import pytest

from gatewayd.chats.json_limits import (
    MAX_VALUES,
    check_json,
    count_values,
    fit_members,
    invalid_field,
    replace_unstorable_values,
)
from gatewayd.errors import GatewayError
from gatewayd.text import is_storable


def nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("value", [None, True, 1, -(2**63), 2**64 - 1, 1.5, "ä\n", {"a": [1]}, nested(64)])
def test_what_can_be_kept(value: Any) -> None:
    check_json(value, "chat")
    assert replace_unstorable_values(value) == value


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("\0", "chat"),
        ("\ud800", "chat"),
        (2**64, "chat"),
        (-(2**63) - 1, "chat"),
        (math.inf, "chat"),
        (math.nan, "chat"),
        (b"x", "chat"),
        ({1: 2}, "chat"),
        ({"a\0": 2}, "chat"),
        ({"a": [1, "\0"]}, "chat.a.1"),
        (nested(66), "chat" + ".0" * 65),
    ],
)
def test_what_cannot(value: Any, name: str) -> None:
    with pytest.raises(GatewayError, match="cannot accept") as caught:
        check_json(value, "chat")
    assert caught.value.param == name
    check_json(replace_unstorable_values(value), "chat")


def test_values_are_counted_as_they_are_checked() -> None:
    for value, count in ((1, 1), ([], 1), ({"a": [1, {"b": (2, 3)}], "c": {}}, 8)):
        assert count_values(value) == count
        check_json(replace_unstorable_values(value), "chat", count)
        assert count_values(value, count - 1) == count
        with pytest.raises(GatewayError, match="more than"):
            check_json(replace_unstorable_values(value), "chat", count - 1)
    assert count_values([1] * MAX_VALUES) == MAX_VALUES + 1


def test_members_with_the_most_values_are_left_out() -> None:
    members = {"a": [1] * 9_000, "b": "x", "c": [1] * 12_000, "d": None}
    assert fit_members(members) == {**members, "c": None}
    most = {"a": [1] * (MAX_VALUES - 3), "b": 1}
    assert fit_members(most) == most
    check_json(most, "message")
    over = {"a": [1] * (MAX_VALUES - 2), "b": 1}
    assert fit_members(over) == {"a": None, "b": 1}


def test_texts_are_mended() -> None:
    assert replace_unstorable_values({"a\0": ["\ud800b", math.nan, (1,)]}) == {
        "a\ufffd": ["\ufffdb", None, [1]]
    }


def test_names_of_fields_can_be_shown() -> None:
    error = invalid_field("chat.\0" + "x" * 1000, "no")
    assert is_storable(error.message)
    assert len(error.message) < 300
