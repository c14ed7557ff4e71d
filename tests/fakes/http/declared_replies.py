"""Compares replies with what their route rows declare."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatch
from typing import Any

import orjson
from aiohttp import web
from jsonschema import Draft202012Validator

from gatewayd.http.openapi import resolved
from gatewayd.http.responses.json_parts import PartsReply
from gatewayd.http.routes import Route, RouteAccess
from gatewayd.http.schemas import Reply

JSON_TYPES = {"application/json", "application/scim+json"}


def closed(schema: Any) -> Any:
    """Return a schema in which each object has no member beside those that it names, unless it says so."""
    if isinstance(schema, Mapping):
        made = {name: closed(value) for name, value in schema.items()}
        if isinstance(made.get("properties"), dict) and "type" in made:
            made.setdefault("additionalProperties", False)
        return made
    return [closed(value) for value in schema] if isinstance(schema, list) else schema


# What compares the bodies of each media type; None for one whose bodies have no schema.
Validators = Mapping[str, Draft202012Validator | None]


def validators_of(content: Mapping[str, Any], components: Any) -> Validators:
    """Return what compares replies whose operation has the `content` of OpenAPI; all of it closed."""
    made = dict[str, Draft202012Validator | None]()
    for name, media in content.items():
        schema = media.get("schema")
        made[name] = None if schema is None else Draft202012Validator({**schema, "components": components})
    return made


def faults_of(validators: Validators, media_type: str, body: bytes) -> Sequence[str]:
    """Return what is wrong with a reply."""
    validator = validators.get(media_type)
    if validator is None:
        is_known = any(fnmatch(media_type, declared) for declared in validators)
        return [] if is_known else [f"{media_type} is none of {', '.join(validators)}"]
    return [f"{list(fault.path)}: {fault.message}" for fault in validator.iter_errors(orjson.loads(body))]


# By the identity of what rows declare: each test makes an application of its own, of the same rows.
_DECLARED: dict[int, tuple[Reply, Validators]] = {}


def declared_validators(declared: Reply) -> Validators:
    """Return what compares the replies of a row; it is made once, when the first reply comes."""
    if id(declared) not in _DECLARED:
        schemas = dict[str, Any]()
        content: dict[str, Any] = {name: {} for name in declared.media_types}
        if declared.schema is not None:
            described = {"schema": closed(resolved(declared.schema, schemas))}
            content |= dict.fromkeys(JSON_TYPES, described)
        _DECLARED[id(declared)] = declared, validators_of(content, {"schemas": closed(schemas)})
    return _DECLARED[id(declared)][1]


def checked(row: Route) -> Route:
    """Return a row of the public application whose handler fails when a success is not as it is declared."""
    if row.access is RouteAccess.CONTROL or row.reply is None:
        return row
    declared = row.reply

    async def handle(request: web.Request) -> web.StreamResponse:
        answer = await row.handler(request)
        body = _whole(answer)
        if body is not None and 200 <= answer.status < 300 and answer.status != 204:
            faults = faults_of(declared_validators(declared), answer.content_type, body)
            if faults:
                raise AssertionError(f"{row.method} {row.path} declares another reply: {faults}")
        return answer

    return replace(row, handler=handle)


def _whole(answer: web.StreamResponse) -> bytes | None:
    """Return the body of an answer; None for one that is streamed."""
    if isinstance(answer, PartsReply):
        return b"".join(answer._parts)
    body = getattr(answer, "body", None)
    return bytes(body) if isinstance(body, bytes | bytearray) else None
