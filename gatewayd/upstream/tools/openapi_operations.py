"""Operations of an OpenAPI description as functions for models; without I/O."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode

from gatewayd.errors import invalid
from gatewayd.text import encodable
from gatewayd.upstream.tools.openapi_schemas import ReferenceResolver, SchemaError

METHODS: Final = ("get", "put", "post", "delete", "patch", "head", "options")
MAX_FUNCTIONS: Final = 512
"""Maximum number of functions of one server, more than any model accepts."""

MAX_PARAMETERS: Final = 256
MAX_NAME_CHARACTERS: Final = 64
MAX_DESCRIPTION_CHARACTERS: Final = 4000
BODY: Final = "body"
"""The name of the argument for a body that is no object."""

_ODD: Final = re.compile(r"[^A-Za-z0-9_-]")
_PLACEHOLDER: Final = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class OperationParameter:
    """One parameter in the path or the query."""

    name: str
    place: str


@dataclass(frozen=True, slots=True)
class OpenApiOperation:
    """One operation; `has_body` sends the arguments as JSON, `is_bare` only the argument BODY."""

    name: str
    method: str
    path: str
    spec: dict[str, Any]
    parameters: tuple[OperationParameter, ...] = ()
    has_body: bool = False
    is_bare: bool = False


@dataclass(frozen=True, slots=True)
class ServerDescription:
    """Title, version and operations of a server."""

    title: str
    version: str
    operations: tuple[OpenApiOperation, ...]


def read_description(document: Any, functions: Sequence[str] = ()) -> ServerDescription:
    """Return the operations with an `operationId`, all or those in `functions`.

    Raises SchemaError if `document` is no description, has too many functions or a dangling reference.
    """
    if not isinstance(document, Mapping) or not isinstance(document.get("paths"), Mapping):
        raise SchemaError("is invalid: it has no 'paths'")
    resolver = ReferenceResolver(document)
    wanted = [
        found for found in _operations(document["paths"], resolver) if not functions or found.id in functions
    ]
    if len(wanted) > MAX_FUNCTIONS:
        raise SchemaError(
            f"has {len(wanted)} operations, and the limit is {MAX_FUNCTIONS}: select some of them"
        )
    info = resolver.object(document.get("info"))
    return ServerDescription(
        _text(info.get("title")),
        _text(info.get("version")),
        tuple(_operation(found, resolver) for found in wanted),
    )


def tool_name(name: str) -> str:
    """Return a name with only the characters that every model provider accepts."""
    return _ODD.sub("_", name)[:MAX_NAME_CHARACTERS]


def request_target(operation: OpenApiOperation, arguments: Mapping[str, Any]) -> str:
    """Return path and query for a call; raises invalid_request for a missing or unusable path argument."""
    path = _PLACEHOLDER.sub(lambda found: _quoted(operation, found[1], arguments), operation.path)
    if any(segment in {".", ".."} for segment in path.split("/")):
        raise invalid(f"cannot call {operation.name}: its arguments lead out of its path")
    query = [
        pair
        for parameter in operation.parameters
        if parameter.place == "query"
        for pair in _pairs(parameter.name, arguments.get(parameter.name))
    ]
    return f"{path}?{urlencode(query)}" if query else path


@dataclass(frozen=True, slots=True)
class _Found:
    """An operation as described, with the parameters of its path before its own."""

    id: str
    method: str
    path: str
    raw: Mapping[str, Any]
    parameters: Sequence[Any]


def _operations(paths: Mapping[str, Any], resolver: ReferenceResolver) -> Iterator[_Found]:
    for path, item in paths.items():
        item = resolver.object(item)
        for method in METHODS:
            raw = item.get(method)
            name = raw.get("operationId") if isinstance(raw, Mapping) else None
            if isinstance(raw, Mapping) and isinstance(name, str) and name.strip():
                parameters = [*_list(item.get("parameters")), *_list(raw.get("parameters"))]
                yield _Found(name, method, str(path), raw, parameters)


def _operation(found: _Found, resolver: ReferenceResolver) -> OpenApiOperation:
    properties: dict[str, Any] = {}
    required: list[str] = []
    parameters: dict[str, OperationParameter] = {}
    if len(found.parameters) > MAX_PARAMETERS:
        raise SchemaError(f"has over {MAX_PARAMETERS} parameters in operation {found.id[:100]!r}")
    for raw in found.parameters:
        parameter = resolver.object(raw)
        name, place = _text(parameter.get("name")), _text(parameter.get("in"))
        if not name or place not in {"path", "query"}:
            continue
        parameters[name] = OperationParameter(name, place)
        properties[name] = _parameter_schema(parameter, resolver)
        if place == "path" or parameter.get("required") is True:
            required.append(name)
    body = _body_schema(found.raw, resolver)
    fields = {} if body is None else _fields(body)
    is_bare = body is not None and not fields and body.get("type") not in {None, "object"}
    if is_bare:
        fields = {BODY: body}
        required.append(BODY)
    properties |= fields
    required += [name for name in _required(body) if name in fields]
    schema = {"type": "object", "properties": properties, "required": list(dict.fromkeys(required))}
    name = tool_name(found.id)
    return OpenApiOperation(
        name=name,
        method=found.method.upper(),
        path=found.path if found.path.startswith("/") else f"/{found.path}",
        spec={"name": name, "description": _described(found.raw), "parameters": schema},
        parameters=tuple(parameters.values()),
        has_body="requestBody" in found.raw,
        is_bare=is_bare,
    )


def _parameter_schema(parameter: Mapping[str, Any], resolver: ReferenceResolver) -> dict[str, Any]:
    raw = parameter.get("schema")
    if raw is None:
        contents = resolver.object(parameter.get("content"))
        raw = next((item.get("schema") for item in contents.values() if isinstance(item, Mapping)), None)
    read = resolver.schema(raw)
    schema = dict(read) if isinstance(read, Mapping) else {"type": "string"}
    description = _text(parameter.get("description"))
    if description:
        schema["description"] = description[:MAX_DESCRIPTION_CHARACTERS]
    return schema


def _body_schema(raw: Mapping[str, Any], resolver: ReferenceResolver) -> dict[str, Any] | None:
    """Return the schema of the body, preferably that of JSON; None for an operation without a body."""
    if "requestBody" not in raw:
        return None
    contents = resolver.object(resolver.object(raw["requestBody"]).get("content"))
    ordered = sorted(contents, key=lambda media: "json" not in str(media).lower())
    content = resolver.object(contents[ordered[0]]) if ordered else {}
    schema = resolver.schema(content.get("schema"))
    return schema if isinstance(schema, dict) else {}


def _fields(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties of an object schema, with those of its composed schemas."""
    fields: dict[str, Any] = {}
    for part in _parts(schema):
        found = part.get("properties")
        fields |= found if isinstance(found, Mapping) else {}
    return fields


def _required(schema: Mapping[str, Any] | None) -> Iterable[str]:
    parts = [] if schema is None else [schema, *_composed(schema, "allOf")]
    return [name for part in parts for name in _list(part.get("required")) if isinstance(name, str)]


def _parts(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for keyword in ("allOf", "anyOf", "oneOf"):
        for part in _composed(schema, keyword):
            yield from _parts(part)
    yield schema


def _composed(schema: Mapping[str, Any], keyword: str) -> Sequence[Mapping[str, Any]]:
    return [part for part in _list(schema.get(keyword)) if isinstance(part, Mapping)]


def _described(raw: Mapping[str, Any]) -> str:
    return (_text(raw.get("description")) or _text(raw.get("summary")))[:MAX_DESCRIPTION_CHARACTERS]


def _quoted(operation: OpenApiOperation, name: str, arguments: Mapping[str, Any]) -> str:
    value = arguments.get(name)
    if value is None or value == "":
        raise invalid(f"cannot call {operation.name}: the argument {name!r} is missing", param=name)
    values = value if isinstance(value, list) else [value]
    return ",".join(quote(_plain(item), safe="", errors="replace") for item in values)


def _pairs(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if value is not None:
        for item in value if isinstance(value, list) else [value]:
            yield name, encodable(_plain(item))


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    return value if isinstance(value, str) else str(value)


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""
