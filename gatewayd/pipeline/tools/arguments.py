"""The arguments of a call of a tool, as a model wrote them; pure."""

import ast
import json
from collections.abc import Mapping
from typing import Any, Final

import orjson

from gatewayd.completions.embedded_json import holds_too_much
from gatewayd.completions.json_access import mapping, sequence
from gatewayd.errors import GatewayError, Kind
from gatewayd.plugins.source.ast_retry import undisturbed

LONGEST_LITERAL: Final = 64 * 1024
"""Characters of arguments that are not JSON and are still read, as a Python literal."""


def read_arguments(arguments: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that a specification knows, numbers and texts as it says.

    They are read as JSON, or else as a Python literal, which some models write. Raises invalid_request for
    what is no object.
    """
    given = parsed(arguments) if arguments.strip() else {}
    if given is None:
        message = f"cannot call {spec.get('name')}: its arguments are not a JSON object"
        raise GatewayError(Kind.INVALID_REQUEST, message)
    known = mapping(mapping(spec.get("parameters")).get("properties"))
    return {name: _coerced(value, mapping(known[name])) for name, value in given.items() if name in known}


def as_object(arguments: str) -> str:
    """Return arguments as the JSON text of an object: providers refuse a request with others."""
    if holds_too_much(arguments):
        return "{}"
    try:
        if isinstance(orjson.loads(arguments), dict):
            return arguments
    except orjson.JSONDecodeError:
        pass
    try:
        return json.dumps(parsed(arguments) or {}, ensure_ascii=False, default=str)
    except (TypeError, ValueError):
        return "{}"


def parsed(arguments: str) -> dict[str, Any] | None:
    """Return the object that arguments are, None when they are none or hold too much."""
    if holds_too_much(arguments):
        return None
    try:
        value = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        value = _python_literal(arguments)
    return value if isinstance(value, dict) else None


def _python_literal(arguments: str) -> Any:
    if len(arguments) > LONGEST_LITERAL:
        return None
    try:
        return undisturbed(lambda: ast.literal_eval(arguments.strip()))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _coerced(value: Any, schema: Mapping[str, Any]) -> Any:
    kinds = _kinds(schema)
    if isinstance(value, str) and "string" not in kinds:
        return _number(value, kinds)
    if type(value) in (int, float) and kinds == {"string"}:
        return str(value)
    if type(value) is float and kinds == {"integer"} and value.is_integer():
        return int(value)
    return value


def _number(value: str, kinds: set[str]) -> Any:
    for kind, read in (("integer", int), ("number", float)):
        if kind in kinds:
            try:
                return read(value)
            except ValueError:
                continue
    return value


def _kinds(schema: Mapping[str, Any]) -> set[str]:
    """Return the JSON types that a parameter may have, but for null."""
    named = schema.get("type")
    kinds = {named} if isinstance(named, str) else {item for item in sequence(named) if isinstance(item, str)}
    for other in sequence(schema.get("anyOf")):
        kinds |= _kinds(mapping(other))
    return kinds - {"null"}
