from typing import Any

import pytest
from tortoise.fields.base import Field

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage.engine.fields import (
    IntegerColumn,
    JsonColumn,
    NameColumn,
    TextColumn,
    check_text,
    decode,
    decode_large,
    encode,
    encode_large,
    encode_optional,
    encode_sanitised,
    fits_columns,
)
from gatewayd.storage.tables.accounts import UserRow


@pytest.mark.parametrize("value", [None, True, 0, 1.5, "", "1", [], {"a": [None, ("x",)]}], ids=repr)
def test_json_survives(value: object) -> None:
    assert decode(encode(value, "f"), "f") == ({"a": [None, ["x"]]} if isinstance(value, dict) else value)


def test_no_value_is_not_the_value_null() -> None:
    assert encode_optional(None, "f") is None
    assert encode(None, "f") == "null"
    assert decode(None, "f") is None


def nested(depth: int) -> list[object]:
    value: list[object] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (float("nan"), "no JSON number"),
        ([float("-inf")], "no JSON number"),
        ({1: 2}, "no string"),
        ({"a": {b"b"}}, "no JSON value"),
        ("\x00", "NUL"),
        ({"\x00": 1}, "NUL"),
        ("\ud800", "surrogate"),
        (2**64, "64 bits"),
        (-(2**63) - 1, "64 bits"),
        (nested(101), "levels"),
        (nested(100_000), "levels"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isascii() and value.isprintable() else "",
)
def test_what_is_no_json_is_refused(value: object, reason: str) -> None:
    with pytest.raises(GatewayError, match=reason) as caught:
        encode(value, "profile")
    assert (caught.value.kind, caught.value.param) == (ErrorKind.INVALID_REQUEST, "profile")


def test_depth_and_size_up_to_the_limit_pass() -> None:
    value = [nested(98), 2**64 - 1, -(2**63), "\\u0000"]
    assert decode(encode(value, "f"), "f") == value


def test_damaged_json_says_where_it_stood() -> None:
    with pytest.raises(GatewayError, match="the profile of user u1") as caught:
        decode("{", "the profile of user u1")
    assert caught.value.kind is ErrorKind.INTERNAL


def named(field: Field[object]) -> Field[object]:
    field.model_field_name = "name_key"
    return field


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (NameColumn(max_length=3), "abcd"),
        (NameColumn(max_length=3), "\x00"),
        (NameColumn(max_length=1000), "é" * 1301),
        (TextColumn(), "\ud800"),
        (IntegerColumn(), 2**63),
        (IntegerColumn(), True),
        (IntegerColumn(), "1"),
    ],
)
def test_columns_refuse_what_they_cannot_hold(field: Field[object], value: object) -> None:
    with pytest.raises(GatewayError) as caught:
        named(field).to_db_value(value, UserRow)
    assert (caught.value.kind, caught.value.param) == (ErrorKind.INVALID_REQUEST, "name")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (NameColumn(max_length=3), "é🦊a"),
        (NameColumn(max_length=3), None),
        (TextColumn(), "x" * 10**6),
        (TextColumn(), None),
        (IntegerColumn(), 2**63 - 1),
        (IntegerColumn(), -(2**63)),
        (IntegerColumn(), None),
        (JsonColumn(), '"x"'),
    ],
)
def test_columns_hold_the_rest(field: Field[object], value: object) -> None:
    assert named(field).to_db_value(value, UserRow) == value


def test_a_text_is_measured_in_characters() -> None:
    check_text("🦊🦊🦊", "f", 3)
    with pytest.raises(GatewayError, match="4 characters, more than 3"):
        check_text("🦊🦊🦊🦊", "f", 3)


def test_whether_a_row_could_hold_texts() -> None:
    assert fits_columns(UserRow, id="u" * 64, email="x")
    assert not fits_columns(UserRow, id="u", email="\x00")


@pytest.mark.parametrize(
    "value",
    ["x" * 2**21, "{,\n" * 100_000, ["x" * 2**21], {"n" * 70_000: "é" * 2**21}],
    ids=["text", "markup", "list", "name"],
)
async def test_long_values_come_back_whatever_they_are(value: Any) -> None:
    assert await decode_large(await encode_large(value, "files"), "the files") == value


@pytest.mark.parametrize("text", ['"' + "x" * 2**21, "[" + "1," * 2**20], ids=["text", "list"])
async def test_a_long_value_that_is_damaged_is_told_by_its_place(text: str) -> None:
    with pytest.raises(GatewayError, match="cannot read the files: the stored JSON is damaged") as caught:
        await decode_large(text, "the files")
    assert caught.value.kind is ErrorKind.INTERNAL


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ({"b": [1, "\ud800"], "a": None}, '{"b":[1,"\ufffd"],"a":null}'),
        ({"\x00": (float("nan"), float("-inf"), 1.5, True)}, '{"\ufffd":[null,null,1.5,true]}'),
        ("fine", '"fine"'),
    ],
)
def test_a_value_is_sanitised(value: Any, kept: str) -> None:
    assert encode_sanitised(value, "x") == kept


@pytest.mark.parametrize("value", [object(), {1: 1}, b"x", 2**64])
def test_what_cannot_be_sanitised_is_refused(value: Any) -> None:
    with pytest.raises(GatewayError, match="cannot store x"):
        encode_sanitised(["\x00", value], "x")


def test_what_is_nested_too_deeply_is_refused_and_not_walked_through() -> None:
    value: Any = "\x00"
    for _ in range(100_000):
        value = [value]
    with pytest.raises(GatewayError, match="100 levels"):
        encode_sanitised(value, "x")
