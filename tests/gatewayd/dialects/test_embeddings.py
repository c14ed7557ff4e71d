"""Tests for gatewayd.dialects.embeddings."""

import base64
import struct
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayd.dialects.embeddings import MAX_INPUTS, encode, parse_request, render
from gatewayd.errors import ErrorKind, GatewayError


@pytest.mark.parametrize(
    ("given", "inputs"),
    [
        ("a", ["a"]),
        (["a", "b"], ["a", "b"]),
        ([1, 2], [[1, 2]]),
        ([[1], [2, 3]], [[1], [2, 3]]),
        (["a"] * MAX_INPUTS, ["a"] * MAX_INPUTS),
    ],
)
def test_every_form_of_input_becomes_a_list(given: Any, inputs: list[Any]) -> None:
    assert parse_request({"model": "m", "input": given}).inputs == inputs


def test_other_fields_are_kept_as_they_are() -> None:
    sent = {"model": "m", "input": "a", "encoding_format": "base64", "dimensions": 8, "user": "u", "odd": [1]}
    request = parse_request(sent)
    assert (request.model, request.encoding_format) == ("m", "base64")
    assert request.rest == {"dimensions": 8, "user": "u", "odd": [1]}
    assert request.body == {"model": "m", "input": ["a"], "dimensions": 8, "user": "u", "odd": [1]}
    assert sent["input"] == "a"


def test_floats_are_the_default() -> None:
    assert parse_request({"model": "m", "input": "a"}).encoding_format == "float"
    assert parse_request({"model": "m", "input": "a", "encoding_format": None}).encoding_format == "float"


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"input": "a"}, "model"),
        ({"model": "", "input": "a"}, "model"),
        ({"model": 5, "input": "a"}, "model"),
        ({"model": "m"}, "input"),
        ({"model": "m", "input": None}, "input"),
        ({"model": "m", "input": 5}, "input"),
        ({"model": "m", "input": {"text": "a"}}, "input"),
        ({"model": "m", "input": []}, "input"),
        ({"model": "m", "input": ""}, "input[0]"),
        ({"model": "m", "input": ["a", ""]}, "input[1]"),
        ({"model": "m", "input": ["a", 1]}, "input[1]"),
        ({"model": "m", "input": ["a", [1]]}, "input[1]"),
        ({"model": "m", "input": [[1], "a"]}, "input[1]"),
        ({"model": "m", "input": [[1], []]}, "input[1]"),
        ({"model": "m", "input": [[1], 2]}, "input[1]"),
        ({"model": "m", "input": [1, "a"]}, "input[0]"),
        ({"model": "m", "input": [1.5]}, "input[0]"),
        ({"model": "m", "input": [True]}, "input[0]"),
        ({"model": "m", "input": [1, -1]}, "input[0]"),
        ({"model": "m", "input": [["a"]]}, "input[0]"),
        ({"model": "m", "input": ["a"] * (MAX_INPUTS + 1)}, "input"),
        ({"model": "m", "input": "a", "encoding_format": "hex"}, "encoding_format"),
        ({"model": "m", "input": "a", "encoding_format": ["float"]}, "encoding_format"),
        ({"model": "m", "input": "a", "dimensions": 0}, "dimensions"),
        ({"model": "m", "input": "a", "dimensions": True}, "dimensions"),
        ({"model": "m", "input": "a", "dimensions": "8"}, "dimensions"),
    ],
)
def test_a_bad_field_is_named(body: dict[str, Any], param: str) -> None:
    with pytest.raises(GatewayError) as caught:
        parse_request(body)
    assert (caught.value.kind, caught.value.param) == (ErrorKind.INVALID_REQUEST, param)
    assert param in caught.value.message


ANSWER = {
    "object": "list",
    "data": [{"object": "embedding", "index": 0, "embedding": [0.5, -1, 3.25]}],
    "model": "up",
    "usage": {"prompt_tokens": 1, "total_tokens": 1},
}


def test_floats_are_rendered_as_they_are() -> None:
    assert orjson.loads(render(ANSWER, "m", "float")) == {**ANSWER, "model": "m"}


def test_base64_holds_little_endian_float32() -> None:
    rendered = orjson.loads(render(ANSWER, "m", "base64"))
    assert rendered["data"] == [{"object": "embedding", "index": 0, "embedding": "AAAAPwAAgL8AAFBA"}]
    assert rendered["usage"] == ANSWER["usage"]
    assert ANSWER["data"][0]["embedding"] == [0.5, -1, 3.25]  # type: ignore[index]


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=20))
def test_base64_loses_nothing_of_a_float32(vector: list[float]) -> None:
    assert list(struct.unpack(f"<{len(vector)}f", base64.b64decode(encode(vector)))) == vector


def test_a_number_over_float32_is_refused() -> None:
    with pytest.raises(GatewayError) as caught:
        encode([1e39])
    assert caught.value.kind is ErrorKind.UPSTREAM_FAILED
