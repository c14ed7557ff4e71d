"""Tests for gatewayd.upstream.tools.openapi_schemas."""

from typing import Any

import orjson
import pytest

from gatewayd.upstream.tools.openapi_schemas import ReferenceResolver, SchemaError


def ref(name: str, **beside: Any) -> dict[str, Any]:
    return {"$ref": f"#/parts/{name}", **beside}


def resolver(most_nodes: int = 2000, **parts: Any) -> ReferenceResolver:
    return ReferenceResolver({"parts": parts, "list": [{"type": "null"}]}, most_nodes)


def test_references_are_followed() -> None:
    parts = resolver(a={"properties": {"b": ref("b"), "l": {"$ref": "#/list/0"}}}, b={"type": "string"})
    assert parts.schema(ref("a")) == {"properties": {"b": {"type": "string"}, "l": {"type": "null"}}}
    assert parts.object(ref("b")) == {"type": "string"}
    assert parts.object(3) == {}


def test_what_stands_beside_a_reference_counts() -> None:
    parts = resolver(a={"type": "string", "description": "old"})
    assert parts.schema(ref("a", description="new")) == {"type": "string", "description": "new"}


def test_names_in_pointers_are_unescaped() -> None:
    parts = resolver(**{"a/b~c d": {"type": "string"}})
    assert parts.schema({"$ref": "#/parts/a~1b~0c%20d"}) == {"type": "string"}


def test_a_schema_inside_itself_keeps_its_type() -> None:
    tree = {
        "type": "object",
        "title": "Tree",
        "properties": {"children": {"type": "array", "items": ref("a")}},
    }
    found = resolver(a=tree).schema(ref("a"))
    assert found["properties"]["children"]["items"] == {"type": "object", "title": "Tree"}


@pytest.mark.parametrize(
    "reference",
    ["#/parts/none", "#/list/9", "#/list/-1", "#/list/x", "#/parts/a/type/b", "other.json#/a", "a"],
)
def test_references_that_lead_nowhere_are_named(reference: str) -> None:
    with pytest.raises(SchemaError, match="refers to"):
        resolver(a={"type": "string"}).schema({"properties": {"x": {"$ref": reference}}})


def test_references_in_a_circle() -> None:
    parts = resolver(a=ref("b"), b=ref("a"))
    with pytest.raises(SchemaError, match="circular"):
        parts.object(ref("a"))
    assert parts.schema(ref("a")) == {}


def test_a_small_description_does_not_unfold_into_a_huge_one() -> None:
    parts = {
        f"l{n}": {"type": "object", "properties": {str(i): ref(f"l{n + 1}") for i in range(10)}}
        for n in range(30)
    }
    found = resolver(**parts, l30={"type": "string"}).schema(ref("l0"))
    assert list(found["properties"]) == [str(i) for i in range(10)]
    assert len(orjson.dumps(found)) < 200_000


def test_schemas_that_refer_to_each_other_in_every_way() -> None:
    names = [f"s{n}" for n in range(40)]
    parts = {name: {"type": "object", "properties": {other: ref(other) for other in names}} for name in names}
    found = resolver(**parts).schema(ref("s0"))
    assert found["properties"]["s7"]["type"] == "object"


def test_a_schema_that_is_too_large_as_it_stands() -> None:
    with pytest.raises(SchemaError, match="too large"):
        resolver(50).schema({"anyOf": [{"type": "string"}] * 100})
    deep: Any = {}
    for _ in range(500):
        deep = {"items": deep}
    with pytest.raises(SchemaError, match="too large"):
        resolver().schema(deep)
