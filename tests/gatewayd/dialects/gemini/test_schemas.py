import pytest

from gatewayd.dialects.gemini.schemas import MAX_SCHEMA_NODES, SchemaBudget, reduce_schema
from gatewayd.errors import GatewayError

TEXT = {"type": "string"}


def reduced(schema):
    return reduce_schema(schema, "tools[0]", SchemaBudget())


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (
            {
                "$schema": "x",
                "type": "object",
                "properties": {"a": TEXT},
                "required": ["a", "gone"],
                "additionalProperties": False,
                "title": "T",
            },
            {"type": "object", "title": "T", "properties": {"a": TEXT}, "required": ["a"]},
        ),
        ({"type": ["string", "null"]}, {"type": "string", "nullable": True}),
        ({"type": ["string", "integer"]}, {"anyOf": [TEXT, {"type": "integer"}]}),
        (
            {"type": ["string", "integer", "null"]},
            {"nullable": True, "anyOf": [TEXT, {"type": "integer"}]},
        ),
        ({"anyOf": [TEXT, {"type": "null"}]}, {"type": "string", "nullable": True}),
        ({"oneOf": [TEXT, {"type": "number"}]}, {"anyOf": [TEXT, {"type": "number"}]}),
        ({"const": "a"}, {"type": "string", "enum": ["a"], "format": "enum"}),
        (
            {"enum": ["a", "b", None]},
            {"nullable": True, "type": "string", "enum": ["a", "b"], "format": "enum"},
        ),
        ({"type": "integer", "enum": [1, 2]}, {"type": "integer"}),
        ({"type": "array"}, {"type": "array", "items": TEXT}),
        ({"items": {"type": "integer"}}, {"type": "array", "items": {"type": "integer"}}),
        ({"type": "string", "format": "uri", "minLength": 2}, {"minLength": 2, "type": "string"}),
        ({"type": "string", "format": "date-time"}, {"type": "string", "format": "date-time"}),
        (
            {
                "$defs": {"city": {"type": "string", "pattern": "x"}},
                "properties": {"a": {"$ref": "#/$defs/city"}},
            },
            {"type": "object", "properties": {"a": {"type": "string", "pattern": "x"}}},
        ),
        (
            {
                "$defs": {"a": {"properties": {"x": TEXT}, "required": ["x"]}},
                "allOf": [{"$ref": "#/$defs/a"}, {"properties": {"y": TEXT}, "required": ["y"]}],
            },
            {"type": "object", "properties": {"x": TEXT, "y": TEXT}, "required": ["x", "y"]},
        ),
        ({"$ref": "https://elsewhere.example"}, TEXT),
        ({}, TEXT),
        ("nonsense", TEXT),
        (
            {"type": {}, "properties": [], "items": 5, "required": "x", "enum": {}, "format": []},
            {"type": "object"},
        ),
    ],
)
def test_schemas(schema, expected):
    assert reduced(schema) == expected


def test_a_schema_of_itself_ends():
    node = {"type": "object", "properties": {"next": {"$ref": "#"}}}
    found, depth = reduced(node), 0
    while "properties" in found:
        found, depth = found["properties"]["next"], depth + 1
    assert found == {"type": "object"}
    assert depth < 100


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}}},
        {"properties": {str(number): TEXT for number in range(MAX_SCHEMA_NODES)}},
        {
            "$defs": {"a": {"properties": {str(number): TEXT for number in range(500)}}},
            "allOf": [{"$ref": "#/$defs/a"}] * 500,
        },
    ],
    ids=["twice itself", "many", "merged again and again"],
)
def test_a_schema_that_grows_is_refused(schema):
    with pytest.raises(GatewayError, match="over 10000 schemas") as caught:
        reduced(schema)
    assert caught.value.param == "tools[0]"
