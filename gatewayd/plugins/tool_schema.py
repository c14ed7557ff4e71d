"""Function specifications of the methods of a tool, made from signatures and docstrings.

Runs on the event loop of the plugin: annotations and defaults are objects of the plugin.
"""

import functools
import inspect
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from pydantic import PydanticUserError, TypeAdapter
from pydantic.errors import PydanticSchemaGenerationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

Schema = dict[str, Any]

_PARAM: Final = re.compile(r":params?(\s[^:]*+):(.*)")
_NAME: Final = re.compile(r"\*{0,2}(\w+)")
_FIELD: Final = re.compile(r"^:(?:params?|returns?|rtype|raises?|type)\b", re.IGNORECASE)
_TEXT: Final[Schema] = {"type": "string"}
_UNCALLED: Final = (functools.partialmethod, functools.singledispatchmethod)
"""Descriptors that become methods of instances but are not callable themselves."""
_UNRESOLVABLE: Final = (
    NameError,
    AttributeError,
    TypeError,
    ValueError,
    SyntaxError,
    LookupError,
    RecursionError,
    PydanticUserError,
    PydanticSchemaGenerationError,
)


def methods(instance: Any) -> list[str]:
    """Return the names of the public methods of an instance, sorted.

    Attributes are found without evaluation: properties and `__getattr__` do not run.
    """
    return sorted(name for name in dir(instance) if _is_method(instance, name))


def describe_all(instance: Any) -> list[Schema]:
    """Return the specification of each method of a tool, sorted by name, as plain JSON values."""
    found = [describe(name, getattr(instance, name)) for name in methods(instance)]
    written = json.dumps(found, ensure_ascii=False, default=str).encode("utf-8", "replace")
    read: list[Schema] = json.loads(written)
    return read


def describe(name: str, function: Callable[..., Any]) -> Schema:
    """Return one specification: name, description and parameters.

    Parameters that begin with a double underscore are reserved and left out. A parameter without annotation,
    or with one that does not resolve, is a string.
    """
    head, texts = read_docstring(inspect.getdoc(function) or "")
    properties: Schema = {}
    required: list[str] = []
    for parameter in _parameters(function):
        described = _schema_of(parameter, function)
        default = parameter.default
        if isinstance(default, FieldInfo):
            if default.description:
                described["description"] = default.description
            default = inspect.Parameter.empty if default.default is PydanticUndefined else default.default
        if parameter.name in texts:
            described["description"] = texts[parameter.name]
        if default is inspect.Parameter.empty:
            required.append(parameter.name)
        elif default is not None and _is_json(default):
            described["default"] = default
        properties[parameter.name] = described
    parameters = {"type": "object", "properties": properties, "required": required}
    return {"name": name, "description": head, "parameters": parameters}


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Return the text before the first field, and the texts of `:param name:` with continuation lines."""
    head: list[str] = []
    texts: dict[str, str] = {}
    last: str | None = None
    in_head = True
    for line in text.splitlines():
        stripped = line.strip()
        if _FIELD.match(stripped):
            in_head = False
            last = None
            if (match := _PARAM.fullmatch(stripped)) and (last := _name(match[1])):
                texts[last] = match[2].strip()
        elif in_head:
            head.append(line)
        elif last is not None and stripped:
            texts[last] = f"{texts[last]} {stripped}".strip()
    return "\n".join(head).strip(), texts


def _name(text: str) -> str | None:
    """Return the parameter name from the text between `:param` and its colon, which may begin with a type."""
    named = _NAME.fullmatch(text.split()[-1]) if text.split() else None
    return named[1] if named else None


def _is_method(instance: Any, name: str) -> bool:
    if name.startswith("_"):
        return False
    found = inspect.getattr_static(instance, name, None)
    if isinstance(found, staticmethod | classmethod):
        found = found.__func__
    return isinstance(found, _UNCALLED) or (callable(found) and not isinstance(found, type))


def _parameters(function: Callable[..., Any]) -> Iterator[inspect.Parameter]:
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        return
    for parameter in signature.parameters.values():
        by_name = parameter.kind in (
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            inspect.Parameter.KEYWORD_ONLY,
        )
        if by_name and parameter.name != "self" and not parameter.name.startswith("__"):
            yield parameter


def _schema_of(parameter: inspect.Parameter, function: Callable[..., Any]) -> Schema:
    annotation = parameter.annotation
    if annotation is inspect.Parameter.empty:
        return dict(_TEXT)
    try:
        if isinstance(annotation, str):
            annotation = _resolve(annotation, function)
        made = TypeAdapter(annotation).json_schema()
    except _UNRESOLVABLE:
        return dict(_TEXT)
    simplified = _simplify(made, made.pop("$defs", {}), ())
    return simplified if isinstance(simplified, dict) else dict(_TEXT)


def _resolve(annotation: str, function: Callable[..., Any]) -> Any:
    inner = inspect.unwrap(function)
    names = getattr(inner, "__globals__", {})
    owner = getattr(inner, "__self__", None)
    return eval(annotation, names, dict(vars(type(owner))) if owner is not None else {})  # noqa: S307


def _simplify(schema: Any, definitions: Schema, seen: tuple[str, ...]) -> Any:
    """Return a schema without titles and references, with `X or null` replaced by X."""
    if isinstance(schema, list):
        return [_simplify(part, definitions, seen) for part in schema]
    if not isinstance(schema, dict):
        return schema
    reference = schema.get("$ref")
    if isinstance(reference, str):
        name = reference.rpartition("/")[2]
        if name in seen:
            return {"type": "object"}
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        return _simplify({**definitions.get(name, {}), **rest}, definitions, (*seen, name))
    simplified: Schema = {}
    for key, value in schema.items():
        if key == "properties" and isinstance(value, dict):
            simplified[key] = {name: _simplify(part, definitions, seen) for name, part in value.items()}
        elif key in ("default", "const", "enum", "examples"):
            simplified[key] = value
        elif key != "title" or not isinstance(value, str):
            simplified[key] = _simplify(value, definitions, seen)
    return _without_null(simplified)


def _without_null(schema: Schema) -> Schema:
    choices = schema.get("anyOf")
    if not isinstance(choices, list):
        return schema
    left = [choice for choice in choices if choice != {"type": "null"}]
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    if rest.get("default", ...) is None:
        del rest["default"]
    return {**left[0], **rest} if len(left) == 1 else {**rest, "anyOf": left}


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True
