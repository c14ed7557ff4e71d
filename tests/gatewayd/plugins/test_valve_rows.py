"""Valves one by one."""

from enum import StrEnum
from typing import Any

import pytest
from pydantic import BaseModel, Field, SecretStr

from gatewayd.errors import GatewayError
from gatewayd.plugins.valve_rows import (
    MASK,
    check_names,
    is_secret_name,
    list_valves,
    mask_secret,
    parse_values,
)


class Colour(StrEnum):
    RED = "red"


class Valves(BaseModel):
    limit: int = 5
    needed: str = Field(description="What is needed.")
    words: list[str] | None = None
    either: str | dict[str, str] = ""
    colour: Colour = Colour.RED
    hidden: SecretStr = SecretStr("")
    shown_as: str = Field("x", json_schema_extra={"input": {"type": "password"}})
    api_key: str = ""
    max_tokens: int = 5
    token_count: str = "5"


SCHEMA = Valves.model_json_schema()


def found(stored: dict[str, Any], schema: dict[str, Any] | None = SCHEMA) -> dict[str, Any]:
    return {row.name: row for row in list_valves(schema, stored)}


def test_values_defaults_and_types() -> None:
    by_name = found({"limit": 7, "gone": 1, "old_key": "k"})
    assert (by_name["limit"].value, by_name["limit"].default, by_name["limit"].is_set) == (7, 5, True)
    assert (by_name["needed"].is_required, by_name["needed"].is_set) == (True, False)
    assert by_name["needed"].description == "What is needed."
    types = {name: row.type for name, row in by_name.items()}
    assert types["words"] == "array"
    assert types["either"] == "string or object"
    assert types["colour"] == "Colour"
    assert (by_name["gone"].is_known, by_name["gone"].is_secret) == (False, False)
    assert by_name["old_key"].is_secret


def test_secrets() -> None:
    secret = {name for name, row in found({}).items() if row.is_secret}
    assert secret == {"hidden", "shown_as", "api_key"}
    assert all(row.is_secret for row in list_valves(None, {"a": "b", "c": 1}))
    assert (mask_secret("abc"), mask_secret(5), mask_secret(""), mask_secret(None)) == (MASK, MASK, "", None)


@pytest.mark.parametrize("name", ["API_KEY", "token", "access_token", "db_password", "SECRET", "keys"])
def test_names_of_secrets(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["max_tokens", "keyboard", "monkey", "tokenizer", "token_limit"])
def test_names_of_no_secrets(name: str) -> None:
    assert not is_secret_name(name)


def test_texts_are_read_as_the_type_says() -> None:
    texts = {"limit": "7", "words": '["a"]', "either": "{}", "needed": "[1]", "unknown": "{}"}
    assert parse_values(SCHEMA, texts) == {**texts, "words": ["a"]}
    assert parse_values(None, {"words": "[]"}) == {"words": "[]"}
    with pytest.raises(GatewayError, match="cannot parse valve 'words': it has the type array"):
        parse_values(SCHEMA, {"words": "a"})


def test_names_that_there_are_not() -> None:
    check_names(SCHEMA, ["limit"])
    check_names(None, ["x"])
    check_names({"additionalProperties": True}, ["x"])
    with pytest.raises(GatewayError, match="cannot find valve 'limits': the valves are limit, needed"):
        check_names(SCHEMA, ["limits"])
    with pytest.raises(GatewayError, match="the valves are none"):
        check_names({"properties": {}}, ["limits"])


def test_a_choice() -> None:
    [row] = list_valves({"properties": {"a": {"enum": ["x"], "type": "string"}, "b": 5}}, {})[:1]
    assert row.type == "choice"
