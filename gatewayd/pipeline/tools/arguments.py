"""Parses the arguments of tool calls as models write them; pure."""

import ast
import json
from collections.abc import Mapping
from typing import Any, Final

import orjson

from gatewayd.completions.embedded_json import has_too_many_values
from gatewayd.completions.json_access import as_mapping, as_sequence
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.plugins.source.code import retry_ast_parse

MAX_LITERAL_CHARACTERS: Final = 64 * 1024
"""Maximum length of arguments that are parsed as a Python literal because they are not JSON."""


def read_arguments(arguments: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that a tool's schema declares, with numbers and texts converted to its types.

    Arguments are parsed as JSON, or else as a Python literal, which some models write. Raises invalid_request
    if they are no object.
    """
    given = parse_arguments(arguments) if arguments.strip() else {}
    if given is None:
        message = f"cannot call {spec.get('name')}: its arguments are not a JSON object"
        raise GatewayError(ErrorKind.INVALID_REQUEST, message)
    known = as_mapping(as_mapping(spec.get("parameters")).get("properties"))
    return {name: _coerced(value, as_mapping(known[name])) for name, value in given.items() if name in known}


def to_json_object(arguments: str) -> str:
    """Return arguments as the JSON text of an object; providers refuse a request with other arguments."""
    if has_too_many_values(arguments):
        return "{}"
    try:
        if isinstance(orjson.loads(arguments), dict):
            return arguments
    except orjson.JSONDecodeError:
        pass
    try:
        return json.dumps(parse_arguments(arguments) or {}, ensure_ascii=False, default=str)
    except (TypeError, ValueError):
        return "{}"


def parse_arguments(arguments: str) -> dict[str, Any] | None:
    """Return the arguments as an object; None if they are none or have too many values."""
    if has_too_many_values(arguments):
        return None
    try:
        value = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        value = _python_literal(arguments)
    return value if isinstance(value, dict) else None


def _python_literal(arguments: str) -> Any:
    if len(arguments) > MAX_LITERAL_CHARACTERS:
        return None
    try:
        return retry_ast_parse(lambda: ast.literal_eval(arguments.strip()))
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
    """Return the JSON types of a parameter, except null."""
    named = schema.get("type")
    kinds = (
        {named} if isinstance(named, str) else {item for item in as_sequence(named) if isinstance(item, str)}
    )
    for other in as_sequence(schema.get("anyOf")):
        kinds |= _kinds(as_mapping(other))
    return kinds - {"null"}
