"""Columns that may have anything in them."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayd.errors import GatewayError
from gatewayd.imports.rows import ForeignRow, clean_value, plain_text, read_moment, try_read
from gatewayd.text import is_storable

AT = 1_700_000_000
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (AT, AT),
        (AT * 10**3 + 7, AT),
        (AT * 10**6, AT),
        (AT * 10**9 + 5, AT),
        (float(AT), AT),
        (str(AT), AT),
        (None, -7),
        ("soon", -7),
        (-5, -7),
        (0, -7),
        (math.inf, -7),
        (10**40, -7),
        ([], -7),
    ],
)
def test_times_of_any_unit_are_seconds(value: Any, seconds: int) -> None:
    assert read_moment(value, -7) == seconds
    assert ForeignRow({"at": value}).moment("at", -7) == seconds


def test_texts_can_be_stored() -> None:
    assert [plain_text(each) for each in (None, 7, "a\0b", "\ud800")] == ["", "7", "a\ufffdb", "\ufffd"]
    assert ForeignRow({}).text("x") == ""
    assert not ForeignRow({}).has("x")


@pytest.mark.parametrize(
    ("value", "flag"),
    [(1, True), (True, True), ("true", True), (0, False), (False, False), (None, True), ([], False)],
)
def test_truth_values_of_both_engines(value: Any, flag: bool) -> None:
    assert ForeignRow({"x": value}).flag("x", default=True) is flag


def test_json_is_text_or_a_value_and_may_be_encoded_twice() -> None:
    values = {
        "a": '{"x": 1}',
        "b": {"x": 1},
        "c": '"{\\"x\\": 1}"',
        "d": b'{"x": 1}',
        "e": "",
        "f": "null",
        "g": '""',
    }
    row = ForeignRow(values)
    assert [row.object(name) for name in "abcdefgh"] == [{"x": 1}] * 4 + [{}] * 4
    assert row.json("c") == '{"x": 1}'


@pytest.mark.parametrize("text", ['{"cut', "[1]", "7", '"text"', "[" * 100_000])
def test_other_json_is_refused_or_noted(text: str) -> None:
    row = ForeignRow({"x": text})
    with pytest.raises(GatewayError, match="cannot read x: it is no JSON"):
        row.object("x")
    changes: list[str] = []
    assert row.optional("x", changes) == {}
    assert changes[0].startswith("cannot read x")
    assert try_read(lambda: row.object("x"), changes, "other") == "other"
    assert len(changes) == 2


def test_what_json_of_the_gateway_cannot_have_becomes_text() -> None:
    row = ForeignRow(
        {"x": '{"n": 1000000000000000000000000, "f": NaN, "t": "a\\u0000\tb", "\\ud800": Infinity}'}
    )
    assert row.object("x") == {"n": "1" + "0" * 24, "f": None, "t": "a\ufffd\tb", "\ufffd": None}
    deep: Any = 1
    for _ in range(5):
        deep = [deep]
    assert clean_value(deep, 3) == [[["[[1]]"]]]
    hollow: Any = 1
    for _ in range(100_000):
        hollow = [hollow]
    assert clean_value(hollow, 1) == [""]


@given(JSON)
def test_any_value_can_be_stored(value: Any) -> None:
    def texts(each: Any) -> list[str]:
        if isinstance(each, dict):
            return [text for pair in each.items() for part in pair for text in texts(part)]
        if isinstance(each, list):
            return [text for part in each for text in texts(part)]
        return [each] if isinstance(each, str) else []

    assert all(is_storable(text) for text in texts(clean_value(value)))
