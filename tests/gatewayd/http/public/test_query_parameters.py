"""Tests for gatewayd.http.public.query_parameters."""

import pytest

from gatewayd.errors import GatewayError
from gatewayd.http.public.query_parameters import flag, number, page


@pytest.mark.parametrize(
    ("value", "expected"), [("true", True), ("True", True), ("1", True), ("false", False), ("0", False)]
)
def test_switches(value: str, expected: bool) -> None:
    assert flag({"a": value}, "a", default=not expected) is expected
    assert flag({}, "a", default=expected) is expected


@pytest.mark.parametrize("value", ["", "maybe", "2", "tru"])
def test_what_is_no_switch(value: str) -> None:
    with pytest.raises(GatewayError, match="cannot accept a: expected true or false") as caught:
        flag({"a": value}, "a", default=True)
    assert (caught.value.param, caught.value.code) == ("a", "validation")


def test_numbers() -> None:
    assert number({"a": "7"}, "a", 1, 0, 10) == 7
    assert number({}, "a", 1, 0, 10) == 1
    assert page({"page": "3"}, 50) == (100, 50)
    assert page({}, 50) == (0, 50)


@pytest.mark.parametrize("value", ["", "-1", "11", "1.5", "٣", "9" * 5000])
def test_what_is_no_number(value: str) -> None:
    with pytest.raises(GatewayError, match="cannot accept a: expected a number from 0 to 10"):
        number({"a": value}, "a", 1, 0, 10)


def test_pages_count_from_one() -> None:
    with pytest.raises(GatewayError, match="page"):
        page({"page": "0"}, 50)
