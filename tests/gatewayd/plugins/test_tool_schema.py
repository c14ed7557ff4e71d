"""Specifications of tools."""

import enum
from typing import Annotated, Any, Literal, Optional

from pydantic import BaseModel, Field

from gatewayd.plugins import tool_schema


class Unit(enum.Enum):
    C = "celsius"
    F = "fahrenheit"


class Place(BaseModel):
    title: str
    near: "Place | None" = None


class Box(BaseModel):
    place: Place
    label: str | None = Field(None, description="what stands on it")


class Tools:
    CLASS = Place
    number = 3

    def __init__(self) -> None:
        self.valves = Place(title="x")
        self.extra = lambda x: x

    def weather(
        self,
        city: str,
        days: int = 3,
        unit: Unit = Unit.C,
        mode: Literal["a", "b"] = "a",
        tags: Optional[list[str]] = None,  # noqa: UP045 - as plugins write it
        untyped=None,
        box: Box | None = None,
        __user__: dict | None = None,
    ) -> str:
        """Tell the weather.

        In two paragraphs.

        :param city: the city,
            in English
        :params days: how many days
        :param str mode: how
        :return: a text
        """
        return ""

    async def plain(self, *args: Any, **kwargs: Any) -> None: ...

    def postponed(self, a: "int", b: "Missing", c: "Unit", d: object) -> None: ...  # noqa: F821

    def fields(
        self,
        a: Annotated[int, Field(description="noted", ge=1)],
        b: str = Field("x", description="given"),
        c: str = Field(..., description="needed"),
        d: dict[str, int] | None = None,
    ) -> None: ...

    def _hidden(self) -> None: ...

    @property
    def computed(self) -> Any:
        raise ValueError


def by_name() -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in tool_schema.describe_all(Tools())}


def test_public_callables_are_offered_sorted() -> None:
    assert [one["name"] for one in tool_schema.describe_all(Tools())] == [
        "extra",
        "fields",
        "plain",
        "postponed",
        "weather",
    ]


def test_the_docstring_and_the_annotations_make_the_specification() -> None:
    spec = by_name()["weather"]
    assert spec["description"] == "Tell the weather.\n\nIn two paragraphs."
    shape = spec["parameters"]
    assert shape["required"] == ["city"]
    place = {"type": "object", "properties": {"title": {"type": "string"}, "near": {"type": "object"}}}
    properties = shape["properties"]
    assert properties["city"] == {"type": "string", "description": "the city, in English"}
    assert properties["days"] == {"type": "integer", "default": 3, "description": "how many days"}
    assert properties["unit"] == {"type": "string", "enum": ["celsius", "fahrenheit"]}
    assert properties["mode"] == {
        "type": "string",
        "enum": ["a", "b"],
        "default": "a",
        "description": "how",
    }
    assert properties["tags"] == {"type": "array", "items": {"type": "string"}}
    assert properties["untyped"] == {"type": "string"}
    box = properties["box"]
    assert box["type"] == "object"
    assert box["properties"]["label"] == {"type": "string", "description": "what stands on it"}
    assert box["properties"]["place"]["properties"] == place["properties"]
    assert "__user__" not in properties


def test_annotations_that_do_not_resolve_are_texts() -> None:
    properties = by_name()["postponed"]["parameters"]["properties"]
    assert [properties[name].get("type") for name in "abc"] == ["integer", "string", "string"]
    assert properties["c"]["enum"] == ["celsius", "fahrenheit"]
    assert "d" in properties


def test_fields_of_pydantic_describe_parameters() -> None:
    shape = by_name()["fields"]["parameters"]
    assert shape["required"] == ["a", "c"]
    assert shape["properties"]["a"] == {"type": "integer", "description": "noted", "minimum": 1}
    assert shape["properties"]["b"] == {"type": "string", "description": "given", "default": "x"}
    assert shape["properties"]["d"] == {
        "type": "object",
        "additionalProperties": {"type": "integer"},
    }


def test_a_method_without_docstring_has_an_empty_description() -> None:
    assert by_name()["plain"] == {
        "name": "plain",
        "description": "",
        "parameters": {"type": "object", "properties": {}, "required": []},
    }


def test_docstrings_may_begin_with_their_fields() -> None:
    assert tool_schema.read_docstring(":param a: x\n:rtype: y\n:param b : z") == ("", {"a": "x", "b": "z"})


def test_what_cannot_be_written_is_mended() -> None:
    class Odd:
        def run(self, word: str = "\ud800") -> None:
            """Say \ud800."""

    [described] = tool_schema.describe_all(Odd())
    assert described["description"] == "Say ?."
    assert described["parameters"]["properties"]["word"]["default"] == "?"


def test_the_name_of_a_parameter_stands_behind_its_type() -> None:
    text = (
        ":param a: one\n:param  list of int  **b :  two \n:params c:\n:param two words, d-e: no\n:param : no"
    )
    assert tool_schema.read_docstring(text) == ("", {"a": "one", "b": "two", "c": ""})


def test_a_long_field_is_read_once() -> None:
    assert tool_schema.read_docstring(":param" + " a" * 200_000 + "\n:param b" + " " * 200_000) == ("", {})
