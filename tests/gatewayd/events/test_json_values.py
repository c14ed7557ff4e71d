"""Tests for gatewayd.events.json_values."""

from types import MappingProxyType
from typing import Any

import orjson
import pytest
from pydantic import BaseModel, field_serializer

from gatewayd.events.json_values import to_json, to_json_bytes


class Note(BaseModel):
    text: str
    more: list["Note"] = []

    @field_serializer("text")
    def no_code_of_ours(self, value: str) -> str:
        raise AssertionError("it must not run")


class Thing:
    def __str__(self) -> str:
        raise AssertionError("it must not run")

    __repr__ = __str__


class Tricky(dict[str, Any]):
    def items(self) -> Any:
        raise AssertionError("it must not run")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": [1, 2.5, None, True, "x"]}, {"a": [1, 2.5, None, True, "x"]}),
        ({1: "a", None: "b", 2.5: "c"}, {"1": "a", "null": "b", "2.5": "c"}),
        ((1, {2}, frozenset({3})), [1, [2], [3]]),
        (b"\xffx", "\ufffdx"),
        (Note(text="a", more=[Note(text="b")]), {"text": "a", "more": [{"text": "b", "more": []}]}),
        (MappingProxyType({"a": 1}), {"a": 1}),
        ({"error": ValueError("no", 5, "go")}, {"error": "no go"}),
        (Thing(), "<Thing>"),
        (float("nan"), None),
        ({"big": 2**64, "text": "\ud800x"}, {"big": float(2**64), "text": "?x"}),
        ({"\ud800": float("inf")}, {"?": None}),
        ([2**64, Thing(), (1,), True, 10**400], [float(2**64), "<Thing>", [1], True, "<int>"]),
        (Tricky(a=2**70), {"a": float(2**70)}),
        ({(1, 2): 2**64, Thing(): 1}, {"[1, 2]": float(2**64), "<Thing>": 1}),
    ],
)
def test_anything_becomes_json(value: Any, expected: Any) -> None:
    assert to_json(value) == expected
    assert orjson.loads(to_json_bytes(to_json(value))) == expected


def test_a_copy_is_made() -> None:
    value = {"a": [1]}
    copy = to_json(value)
    value["a"].append(2)
    assert copy == {"a": [1]}


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


def test_what_nests_too_deep_is_refused() -> None:
    assert to_json(nested(65)) == nested(65)
    for value in (nested(66), nested(300), [2**64, nested(300)]):
        with pytest.raises(ValueError, match="nests deeper than 64 levels"):
            to_json(value)
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(ValueError, match="nests deeper"):
        to_json(circle)


def test_a_long_flat_value_is_not_deep() -> None:
    assert to_json([{"a": [n]} for n in range(1000)]) == [{"a": [n]} for n in range(1000)]


@pytest.mark.parametrize(
    "end", ["\n", "\r", "\r\n", "\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1e"]
)
def test_what_is_written_is_one_line_for_every_reader(end: str) -> None:
    value = {"text": f"a{end}b", f"k{end}": 1}
    data = to_json_bytes(value)
    assert len(data.decode().splitlines()) == 1
    assert orjson.loads(data) == value
