"""OpenAPI description of the public application, generated from its route rows."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from pydantic import BaseModel

from gatewayd.http.connections.request_uses import RequestUse
from gatewayd.http.errors import SCIM_JSON
from gatewayd.http.routes import Route, RouteAccess, RouteDialect
from gatewayd.http.schemas import Reply

BODILESS: Final = frozenset({101, 204})
PARAMETER_PATTERN: Final = re.compile(r"\{(\w+)(?::[^{}]*)?\}")
SCHEMA_REFERENCE: Final = "#/components/schemas/{model}"
MODEL_FORM: Final = {"type": "object", "required": ["model"], "properties": {"model": {"type": "string"}}}

ERRORS: Final[dict[RouteDialect, str]] = {
    RouteDialect.NATIVE: "Error",
    RouteDialect.OPENAI: "Error",
    RouteDialect.ANTHROPIC: "MessagesError",
    RouteDialect.OLLAMA: "RuntimeError",
    RouteDialect.SCIM: "ScimError",
}
"""Schemas of error replies by dialect, as `errors.body_of` renders them."""

POLICY: Final[dict[RouteAccess, str]] = {
    RouteAccess.PUBLIC: "Needs no credential.",
    RouteAccess.OPTIONAL: "A credential is optional.",
    RouteAccess.ACCOUNT: "Needs an account, pending ones included.",
    RouteAccess.VERIFIED: "Needs an active account with the role user or admin.",
    RouteAccess.ADMIN: "Needs an administrator.",
    RouteAccess.SCIM: "Needs the SCIM token.",
    RouteAccess.CONTROL: "Needs a peer of the control socket.",
}


def describe_routes(rows: Iterable[Route], *, title: str, version: str) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of the rows."""
    paths: dict[str, dict[str, Any]] = {}
    schemas: dict[str, Any] = {
        "Error": _error_schema(),
        "MessagesError": _messages_error_schema(),
        "RuntimeError": _runtime_error_schema(),
        "ScimError": _scim_error_schema(),
    }
    for row in rows:
        path = PARAMETER_PATTERN.sub(r"{\1}", row.path)
        paths.setdefault(path, {})[row.method.lower()] = _operation(row, path, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": version},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
                "scim": {"type": "http", "scheme": "bearer", "description": "The SCIM token"},
            },
        },
    }


def _operation(row: Route, path: str, schemas: dict[str, Any]) -> dict[str, Any]:
    media_type = SCIM_JSON if row.dialect is RouteDialect.SCIM else "application/json"
    operation: dict[str, Any] = {
        "operationId": f"{row.method.lower()} {path}",
        "summary": row.summary,
        "description": POLICY[row.access],
        "tags": [row.tag or "other"],
        "responses": {
            **{str(status): _success(status, row.reply, media_type, schemas) for status in row.statuses},
            "default": {
                "description": "A failure",
                "content": {media_type: {"schema": _error(row)}},
            },
        },
    }
    parameters = [*_path_parameters(row), *_query_parameters(row)]
    if parameters:
        operation["parameters"] = parameters
    if row.request is not None:
        operation["requestBody"] = _body(row.request, schemas)
    elif row.use is RequestUse.FORM:
        operation["requestBody"] = {"content": {row.takes[0]: {"schema": MODEL_FORM}}}
    elif row.invites:
        operation["requestBody"] = {"content": {"multipart/form-data": {"schema": _form_schema()}}}
    elif row.takes and row.method in {"POST", "PUT", "PATCH"}:
        taken = media_type if row.dialect is RouteDialect.SCIM else row.takes[0]
        operation["requestBody"] = {"content": {taken: {"schema": {"type": "object"}}}}
    if row.access is not RouteAccess.PUBLIC:
        operation["security"] = _credentials(row.access)
    return operation


def _path_parameters(row: Route) -> Iterable[dict[str, Any]]:
    for name in PARAMETER_PATTERN.findall(row.path):
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _query_parameters(row: Route) -> Iterable[dict[str, Any]]:
    for name, sentence in row.query.items():
        yield {"name": name, "in": "query", "description": sentence, "schema": {"type": "string"}}


def _success(status: int, reply: Reply | None, media_type: str, schemas: dict[str, Any]) -> dict[str, Any]:
    if status in BODILESS:
        return {"description": "Success without a body"}
    content: dict[str, Any] = {}
    if reply is not None and reply.schema is not None:
        content[media_type] = {"schema": resolved(reply.schema, schemas)}
    if reply is not None:
        content |= {name: {} for name in reply.media_types}
    return {"description": "The answer", "content": content}


def resolved(schema: Any, schemas: dict[str, Any]) -> Any:
    """Return a schema as JSON. Each function in it is called once and becomes a reference into `schemas`."""
    if callable(schema):
        name = component(schema)
        if name not in schemas:
            # A schema may contain itself.
            schemas[name] = {}
            schemas[name] = resolved(schema(), schemas)
        return {"$ref": SCHEMA_REFERENCE.format(model=name)}
    if isinstance(schema, Mapping):
        return {key: resolved(value, schemas) for key, value in schema.items()}
    if isinstance(schema, list | tuple):
        return [resolved(value, schemas) for value in schema]
    return schema


def component(schema: Callable[..., Any]) -> str:
    """Return the name of a schema among the components: `ModelRecord` for `model_record`."""
    return "".join(part.capitalize() for part in schema.__name__.split("_"))


def _error(row: Route) -> dict[str, Any]:
    """Return the error schema of a row; model lists also have that of the messages dialect."""
    own = {"$ref": SCHEMA_REFERENCE.format(model=ERRORS[row.dialect])}
    if row.dialect is not RouteDialect.OPENAI or row.method != "GET":
        return own
    return {"anyOf": [own, {"$ref": SCHEMA_REFERENCE.format(model=ERRORS[RouteDialect.ANTHROPIC])}]}


def _credentials(access: RouteAccess) -> list[dict[str, list[str]]]:
    match access:
        case RouteAccess.SCIM:
            return [{"scim": []}]
        case RouteAccess.OPTIONAL:
            return [{}, {"bearer": []}, {"key": []}]
        case _:
            return [{"bearer": []}, {"key": []}]


def _body(model: type[BaseModel], schemas: dict[str, Any]) -> dict[str, Any]:
    schema = model.model_json_schema(ref_template=SCHEMA_REFERENCE)
    schemas.update(schema.pop("$defs", {}))
    schemas[model.__name__] = schema
    return {
        "content": {"application/json": {"schema": {"$ref": SCHEMA_REFERENCE.format(model=model.__name__)}}}
    }


def _form_schema() -> dict[str, Any]:
    file = {"type": "string", "format": "binary"}
    metadata = {"type": "string", "description": "A JSON object."}
    return {"type": "object", "required": ["file"], "properties": {"file": file, "metadata": metadata}}


def _error_schema() -> dict[str, Any]:
    text = {"type": "string"}
    return {
        "type": "object",
        "required": ["detail", "error"],
        "properties": {
            "detail": {"oneOf": [text, {"type": "array", "items": {"type": "object"}}]},
            "error": {
                "type": "object",
                "required": ["message", "type", "code"],
                "properties": {
                    "message": text,
                    "type": text,
                    "param": {"type": ["string", "null"]},
                    "code": text,
                },
            },
        },
    }


def _messages_error_schema() -> dict[str, Any]:
    text = {"type": "string"}
    error = {"type": "object", "required": ["type", "message"], "properties": {"type": text, "message": text}}
    return {
        "type": "object",
        "required": ["type", "error", "detail"],
        "properties": {"type": {"const": "error"}, "error": error, "detail": text},
    }


def _runtime_error_schema() -> dict[str, Any]:
    text = {"type": "string"}
    return {
        "type": "object",
        "description": "The body of a runtime's own refusal is passed on unchanged.",
        "required": ["error"],
        "properties": {"error": text, "detail": text},
    }


def _scim_error_schema() -> dict[str, Any]:
    text = {"type": "string"}
    return {
        "type": "object",
        "required": ["schemas", "status", "detail"],
        "properties": {
            "schemas": {"type": "array", "items": text},
            "status": text,
            "scimType": text,
            "detail": text,
        },
    }
