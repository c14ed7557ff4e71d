"""Tells whether a JSON schema is in the subset that OpenAI takes as strict; pure.

Every property is required and no other one is allowed, `$ref` stands alone, `items` have a type, and the
keywords of REFUSED_KEYWORDS do not occur.
"""

from collections.abc import Mapping
from typing import Any, Final

MAX_SCHEMA_NODES: Final = 20_000
"""Maximum number of schemas within a schema that are examined; one with more is not taken as strict."""

REFUSED_KEYWORDS: Final = frozenset(
    {"oneOf", "allOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas"}
    | {"minLength", "maxLength", "patternProperties", "unevaluatedProperties", "propertyNames"}
    | {"minProperties", "maxProperties", "unevaluatedItems", "contains", "minContains", "maxContains"}
    | {"uniqueItems", "prefixItems", "default"}
)
"""Keywords that a strict schema must not have."""

_TYPED: Final = ("type", "$ref", "anyOf", "enum", "const")


def is_strict_schema(schema: object) -> bool:
    """Return whether a schema, an object, may be sent with `strict: true`."""
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        return False
    waiting: list[Any] = [schema]
    for _ in range(MAX_SCHEMA_NODES):
        if not waiting:
            return True
        node = waiting.pop()
        if not isinstance(node, dict) or not _is_strict(node):
            return False
        waiting += _children(node)
    return False


def _is_strict(node: Mapping[str, Any]) -> bool:
    if not REFUSED_KEYWORDS.isdisjoint(node):
        return False
    if "$ref" in node and len(node) > 1 and not _is_root_with_definitions(node):
        return False
    items = node.get("items")
    if items is not None and not (isinstance(items, dict) and any(name in items for name in _TYPED)):
        return False
    kinds = node.get("type")
    if kinds != "object" and not (isinstance(kinds, list) and "object" in kinds) and "properties" not in node:
        return True
    properties = node.get("properties") or {}
    required = node.get("required") or []
    if node.get("additionalProperties") is not False or not isinstance(properties, dict):
        return False
    return isinstance(required, list) and len(required) == len(properties) == sum(
        1 for name in required if isinstance(name, str) and name in properties
    )


def _is_root_with_definitions(node: Mapping[str, Any]) -> bool:
    return set(node) <= {"$ref", "$defs", "definitions"}


def _children(node: Mapping[str, Any]) -> list[Any]:
    found: list[Any] = []
    for name in ("properties", "$defs", "definitions"):
        members = node.get(name)
        if isinstance(members, dict):
            found += members.values()
    if isinstance(node.get("anyOf"), list):
        found += node["anyOf"]
    if node.get("items") is not None:
        found.append(node["items"])
    return found
