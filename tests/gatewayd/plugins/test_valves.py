"""Valves: values over the defaults of a class."""

from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.plugins import valves


class Valves(BaseModel):
    limit: int = Field(default=10, ge=1)
    key: SecretStr = SecretStr("")
    sealed: str = ""
    names: list[str] = Field(default_factory=list, json_schema_extra={"input": {"options": "failing"}})
    sort: str = Field("a", json_schema_extra={"input": {"type": "select", "options": "sorts"}})
    kind: str = Field("a", json_schema_extra={"input": {"type": "select", "options": ["x"]}})
    gone: str = Field("a", json_schema_extra={"input": {"type": "select", "options": "nothing"}})

    @field_validator("sealed")
    @classmethod
    def seal(cls, value: str) -> str:
        return value if value.startswith("sealed:") else f"sealed:{value}"

    @classmethod
    def failing(cls) -> list[str]:
        raise ValueError

    async def sorts(self, user: dict[str, Any]) -> list[str]:
        return [self.sort, user["id"]]


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")


class Plain:
    def __init__(self, size: int = 1) -> None:
        self.size = size


def test_none_means_the_default() -> None:
    assert valves.make(Valves, {"limit": None}).limit == 10


def test_a_change_keeps_what_was_set_alone() -> None:
    assert valves.merge_valves(Valves, {"limit": 5}, {"names": ["x"]}) == {"limit": 5, "names": ["x"]}
    assert valves.merge_valves(Valves, {"limit": 5}, {"limit": None}) == {}
    assert valves.merge_valves(Valves, {}, {"unknown": 1}) == {}
    assert valves.merge_valves(Open, {}, {"unknown": 1}) == {"unknown": 1}


def test_a_secret_is_kept_as_given_and_a_sealed_text_as_sealed() -> None:
    assert valves.merge_valves(Valves, {}, {"key": "k", "sealed": "s"}) == {"key": "k", "sealed": "sealed:s"}


def test_a_plain_class_takes_what_its_constructor_takes() -> None:
    assert valves.merge_valves(Plain, {}, {"size": 2}) == {"size": 2}
    assert valves.merge_valves(Plain, {"size": 2}, {"size": None}) == {}
    with pytest.raises(GatewayError, match="TypeError"):
        valves.merge_valves(Plain, {}, {"other": 2})


def test_what_does_not_fit_names_the_field() -> None:
    with pytest.raises(GatewayError, match="field 'limit': Input should be greater") as caught:
        valves.merge_valves(Valves, {}, {"limit": 0})
    assert (caught.value.kind, caught.value.param) == (ErrorKind.INVALID_REQUEST, "limit")


def test_no_json_value_is_refused() -> None:
    with pytest.raises(GatewayError, match="field 'size' is not a JSON value"):
        valves.merge_valves(Plain, {}, {"size": float("nan")})


async def test_options_that_name_a_method_are_its_list() -> None:
    made, left = valves.schema(Valves, {"id": "u1"})
    assert made is not None
    await valves.fill_options(left)
    options = {name: one["input"]["options"] for name, one in made["properties"].items() if "input" in one}
    assert options == {"names": [], "sort": ["a", "u1"], "kind": ["x"], "gone": []}
    assert valves.schema(Plain, None) == (None, [])


async def test_options_are_there_at_once_but_those_that_are_awaited() -> None:
    class Choice(BaseModel):
        sort: str = Field("a", json_schema_extra={"input": {"type": "select", "options": "sorts"}})
        next: str = Field("c", json_schema_extra={"input": {"type": "select", "options": "more"}})

        @classmethod
        def sorts(cls) -> tuple[str, ...]:
            return ("a", "b")

        @classmethod
        def more(cls) -> Any:
            return cls.later()

        @classmethod
        async def later(cls) -> list[str]:
            return ["c"]

    made, left = valves.schema(Choice, None)
    assert made is not None
    assert made["properties"]["sort"]["input"]["options"] == ["a", "b"]
    assert made["properties"]["next"]["input"]["options"] == []
    await valves.fill_options(left)
    assert made["properties"]["next"]["input"]["options"] == ["c"]


def test_a_class_is_found_by_name() -> None:
    class Filter:
        Valves = Valves
        UserValves = "text"

    assert valves.find_class(Filter(), valves.VALVES) is Valves
    assert valves.find_class(Filter(), valves.USER_VALVES) is None
    assert valves.no_valves_error("p").kind is ErrorKind.INVALID_REQUEST
    assert valves.error_field(ValueError()) is None
