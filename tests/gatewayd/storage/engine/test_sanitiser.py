from typing import Any

import pytest

from gatewayd.errors import GatewayError
from gatewayd.storage.engine.sanitiser import encode_sanitised


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ({"b": [1, "\ud800"], "a": None}, '{"b":[1,"\ufffd"],"a":null}'),
        ({"\x00": (float("nan"), float("-inf"), 1.5, True)}, '{"\ufffd":[null,null,1.5,true]}'),
        ("fine", '"fine"'),
    ],
)
def test_a_value_is_mended(value: Any, kept: str) -> None:
    assert encode_sanitised(value, "x") == kept


@pytest.mark.parametrize("value", [object(), {1: 1}, b"x", 2**64])
def test_what_is_no_json_is_refused(value: Any) -> None:
    with pytest.raises(GatewayError, match="cannot store x"):
        encode_sanitised(["\x00", value], "x")


def test_what_is_nested_too_deeply_is_refused_and_not_walked_through() -> None:
    value: Any = "\x00"
    for _ in range(100_000):
        value = [value]
    with pytest.raises(GatewayError, match="100 levels"):
        encode_sanitised(value, "x")
