"""Tests for gatewayd.http.public.query_parameters."""

import pytest

from gatewayd.errors import GatewayError
from gatewayd.http.public.query_parameters import parse_flag, parse_number, parse_page


@pytest.mark.parametrize(
    ("value", "expected"), [("true", True), ("True", True), ("1", True), ("false", False), ("0", False)]
)
def test_switches(value: str, expected: bool) -> None:
    assert parse_flag({"a": value}, "a", default=not expected) is expected
    assert parse_flag({}, "a", default=expected) is expected


@pytest.mark.parametrize("value", ["", "maybe", "2", "tru"])
def test_what_is_no_switch(value: str) -> None:
    with pytest.raises(GatewayError, match="cannot accept a: expected true or false") as caught:
        parse_flag({"a": value}, "a", default=True)
    assert (caught.value.param, caught.value.code) == ("a", "validation")


def test_numbers() -> None:
    assert parse_number({"a": "7"}, "a", 1, 0, 10) == 7
    assert parse_number({}, "a", 1, 0, 10) == 1
    assert parse_page({"page": "3"}, 50) == (100, 50)
    assert parse_page({}, 50) == (0, 50)


@pytest.mark.parametrize("value", ["", "-1", "11", "1.5", "٣", "9" * 5000])
def test_what_is_no_number(value: str) -> None:
    with pytest.raises(GatewayError, match="cannot accept a: expected a number from 0 to 10"):
        parse_number({"a": value}, "a", 1, 0, 10)


def test_pages_count_from_one() -> None:
    with pytest.raises(GatewayError, match="page"):
        parse_page({"page": "0"}, 50)
