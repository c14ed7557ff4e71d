"""Reduces a JSON schema to the subset that Gemini takes; pure.

References are put in place, `allOf` is merged, `oneOf` becomes `anyOf`, null becomes `nullable`, a constant
becomes an `enum`; keywords without a counterpart are left out.
"""

from collections.abc import Mapping
from typing import Any, Final

from gatewayd.completions.json_access import as_mapping, as_sequence, as_text
from gatewayd.completions.records import Body
from gatewayd.errors import invalid

MAX_SCHEMA_NODES: Final = 10_000
"""Maximum number of schemas within those of one request, counted after references are put in place."""

MAX_SCHEMA_DEPTH: Final = 32
"""Maximum nesting of schemas; deeper ones, as in references to themselves, become any object."""

KEPT: Final = frozenset(
    {"title", "description", "default", "minItems", "maxItems", "minimum", "maximum"}
    | {"minLength", "maxLength", "minProperties", "maxProperties", "pattern", "nullable", "propertyOrdering"}
)
"""Keywords with the same meaning in both."""

FORMATS: Final = frozenset({"date-time", "enum", "float", "double", "int32", "int64"})
"""Values of `format` that are taken; others are an error."""

_TYPES: Final = ("string", "number", "integer", "boolean", "array", "object")
_NULL: Final = "null"


class SchemaBudget:
    """What is left of MAX_SCHEMA_NODES for the schemas of one request."""

    def __init__(self) -> None:
        self._left = MAX_SCHEMA_NODES

    def spend(self, nodes: int, where: str) -> None:
        """Count schemas; raise invalid_request, which names `where`, if there are too many."""
        self._left -= nodes
        if self._left < 0:
            raise invalid(
                f"cannot send {where}: the schemas of the request hold over {MAX_SCHEMA_NODES} schemas",
                param=where,
            )


def reduce_schema(schema: object, where: str, budget: SchemaBudget) -> Body:
    """Return the subset of a schema; raise invalid_request if it exceeds the budget."""
    return _SchemaReducer(as_mapping(schema), where, budget).reduced(as_mapping(schema), 0)


class _SchemaReducer:
    """The work on one schema."""

    def __init__(self, root: Mapping[str, Any], where: str, budget: SchemaBudget) -> None:
        self._root = root
        self._where = where
        self._budget = budget

    def reduced(self, given: Mapping[str, Any], depth: int) -> Body:
        """Return the subset of a schema at `depth`."""
        self._budget.spend(1, self._where)
        if depth > MAX_SCHEMA_DEPTH:
            return {"type": "object"}
        schema = self._merged(given)
        kept: Body = {name: schema[name] for name in KEPT & schema.keys()}
        options = [as_mapping(option) for option in self._options(schema)]
        if any(option.get("type") == _NULL for option in options):
            kept["nullable"] = True
            options = [option for option in options if option.get("type") != _NULL]
        if len(options) == 1:
            return {**kept, **self.reduced(options[0], depth + 1)}
        if options:
            kept["anyOf"] = [self.reduced(option, depth + 1) for option in options]
            return kept
        self._add_type(kept, schema, depth)
        return kept

    def _add_type(self, kept: Body, schema: Mapping[str, Any], depth: int) -> None:
        kind = schema.get("type")
        if isinstance(kind, list):
            words = [word for word in kind if word != _NULL]
            if len(words) < len(kind):
                kept["nullable"] = True
            kind = words[0] if words else "string"
        self._add_values(kept, schema, kind)
        kind = kept.get("type") or (kind if kind in _TYPES else _guessed(schema))
        kept["type"] = kind
        if kind == "object" and isinstance(schema.get("properties"), dict):
            properties = schema["properties"]
            kept["properties"] = {
                name: self.reduced(as_mapping(value), depth + 1) for name, value in properties.items()
            }
            required = [
                name
                for name in as_sequence(schema.get("required"))
                if isinstance(name, str) and name in properties
            ]
            if required:
                kept["required"] = required
        if kind == "array":
            kept["items"] = self.reduced(as_mapping(schema.get("items")), depth + 1)
        if as_text(schema.get("format")) in FORMATS:
            kept["format"] = schema["format"]

    def _add_values(self, kept: Body, schema: Mapping[str, Any], kind: object) -> None:
        """Set the values of an enumeration, which are texts here."""
        values = [schema["const"]] if "const" in schema else list(as_sequence(schema.get("enum")))
        if None in values:
            kept["nullable"] = True
            values = [value for value in values if value is not None]
        if values and kind in (None, "string") and all(isinstance(value, str) for value in values):
            kept["type"], kept["enum"], kept["format"] = "string", values, "enum"

    def _options(self, schema: Mapping[str, Any]) -> list[Any]:
        for name in ("anyOf", "oneOf"):
            if isinstance(schema.get(name), list):
                return list(schema[name])
        kind = schema.get("type")
        words = [word for word in kind if word != _NULL] if isinstance(kind, list) else []
        if len(words) < 2:
            return []
        nullable = [{"type": _NULL}] if _NULL in as_sequence(kind) else []
        return [*({**schema, "type": word} for word in words), *nullable]

    def _merged(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a schema with its reference and the parts of `allOf` in place."""
        schema = given
        for _ in range(MAX_SCHEMA_DEPTH):
            found = self._referenced(as_text(schema.get("$ref")))
            if found is None:
                break
            schema = {**found, **{name: value for name, value in schema.items() if name != "$ref"}}
        parts = as_sequence(schema.get("allOf"))
        if not parts:
            return schema
        merged: Body = {name: value for name, value in schema.items() if name != "allOf"}
        for part in map(as_mapping, parts):
            found = self._referenced(as_text(part.get("$ref"))) or part
            self._budget.spend(1 + len(as_mapping(merged.get("properties"))), self._where)
            properties = {**as_mapping(merged.get("properties")), **as_mapping(found.get("properties"))}
            required = [*as_sequence(merged.get("required")), *as_sequence(found.get("required"))]
            merged = {**found, **merged}
            if properties:
                merged["properties"] = properties
            if required:
                merged["required"] = list(dict.fromkeys(map(str, required)))
        return merged

    def _referenced(self, reference: str) -> Mapping[str, Any] | None:
        """Return the schema at `#/...` in the root, None for any other reference."""
        if not reference.startswith("#"):
            return None
        found: Any = self._root
        for part in reference[1:].split("/")[1:]:
            found = as_mapping(found).get(part.replace("~1", "/").replace("~0", "~"))
        return found if isinstance(found, dict) else None


def _guessed(schema: Mapping[str, Any]) -> str:
    """Return the type of a schema without one."""
    if "properties" in schema:
        return "object"
    return "array" if "items" in schema else "string"
