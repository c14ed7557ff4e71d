"""Constructors of JSON schemas, and the decorator that declares the reply of a handler."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

Schema = Mapping[str, Any] | Callable[[], Mapping[str, Any]]
"""A schema, or a function that returns one and names it among the components."""

Function = TypeVar("Function", bound=Callable[..., Any])

TEXT: Final[Schema] = {"type": "string"}
NUMBER: Final[Schema] = {"type": "number"}
INTEGER: Final[Schema] = {"type": "integer"}
BOOLEAN: Final[Schema] = {"type": "boolean"}
ANYTHING: Final[Schema] = {}
OBJECT: Final[Schema] = {"type": "object", "additionalProperties": True}
TEXT_OR_NULL: Final[Schema] = {"type": ["string", "null"]}
NUMBER_OR_NULL: Final[Schema] = {"type": ["number", "null"]}
INTEGER_OR_NULL: Final[Schema] = {"type": ["integer", "null"]}
OBJECT_OR_NULL: Final[Schema] = {"type": ["object", "null"], "additionalProperties": True}
TRUE: Final[Schema] = {"const": True}
SECONDS: Final[Schema] = {"type": "integer", "description": "Seconds since the epoch."}

EVENT_STREAM: Final = "text/event-stream"
LINES: Final = "application/x-ndjson"
ANY_MEDIA_TYPE: Final = "*/*"

_DECLARED: Final = "__reply__"
_QUERY: Final = "__query__"


@dataclass(frozen=True, slots=True)
class Reply:
    """Reply of a success: JSON of a schema, bodies of other media types, or either of them."""

    schema: Schema | None = None
    media_types: tuple[str, ...] = ()


def answers(
    schema: Schema | None = None, *media_types: str, query: Mapping[str, str] | None = None
) -> Callable[[Function], Function]:
    """Declare the reply of a handler, and a sentence for each query parameter that it reads.

    They are the defaults of the route rows of the handler.
    """

    def declare(handler: Function) -> Function:
        vars(handler)[_DECLARED] = Reply(schema, media_types)
        vars(handler)[_QUERY] = query or {}
        return handler

    return declare


def declared_reply(handler: Callable[..., Any]) -> Reply | None:
    """Return the declared reply of a handler, which may be bound or partial."""
    found: Reply | None = getattr(getattr(handler, "func", handler), _DECLARED, None)
    return found


def declared_query(handler: Callable[..., Any]) -> Mapping[str, str]:
    """Return the declared query parameters of a handler."""
    found: Mapping[str, str] = getattr(getattr(handler, "func", handler), _QUERY, {})
    return found


def record(optional: Mapping[str, Schema] | None = None, /, **required: Schema) -> dict[str, Any]:
    """Return the schema of an object with required and optional members."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
    }


def listed(items: Schema) -> Mapping[str, Any]:
    """Return the schema of a list."""
    return {"type": "array", "items": items}


def mapped(values: Schema) -> Mapping[str, Any]:
    """Return the schema of an object with arbitrary member names."""
    return {"type": "object", "additionalProperties": values}


def either(*schemas: Schema) -> Mapping[str, Any]:
    """Return the schema of a value that matches one of several schemas."""
    return {"anyOf": schemas}


def extended(
    base: Callable[[], Mapping[str, Any]], optional: Mapping[str, Schema] | None = None, /, **required: Schema
) -> dict[str, Any]:
    """Return the schema of an object with the members of another one and further members."""
    known = base()
    return {
        "type": "object",
        "properties": {**known["properties"], **required, **(optional or {})},
        "required": [*known["required"], *required],
    }


def choice(*values: str) -> Mapping[str, Any]:
    """Return the schema of one of several texts."""
    return {"enum": values}
