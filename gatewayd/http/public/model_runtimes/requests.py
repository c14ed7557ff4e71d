"""Common parts of runtime requests: rows, bodies and model names."""

from collections.abc import Sequence
from typing import Final

from aiohttp import web

from gatewayd.completions.records import Body
from gatewayd.errors import invalid
from gatewayd.http import body
from gatewayd.http.connections.request_uses import RequestUse
from gatewayd.http.routes import JSON_BODY, Handler, Route, RouteAccess, RouteDialect
from gatewayd.http.schemas import Reply
from gatewayd.json_decoder import LARGE_LIMITS

PREFIX: Final = "/ollama"

INDEX_PATH: Final = "/{index:[0-9][0-9]?[0-9]?}"
"""Suffix of a path, with the index of a runtime in the settings."""

TAG: Final = "runtime"

BODY_TYPES: Final = (*JSON_BODY, "application/x-ndjson")


def runtime_rows(
    method: str,
    path: str,
    handler: Handler,
    access: RouteAccess,
    summary: str,
    *,
    interruptible: bool = False,
    use: RequestUse = RequestUse.ANSWER,
    reply: Reply | None = None,
) -> Sequence[Route]:
    """Return the two rows of an operation: for any runtime, and for the runtime of the path."""
    return [
        Route(
            method,
            f"{PREFIX}{path}{place}",
            handler,
            access,
            summary,
            dialect=RouteDialect.OLLAMA,
            tag=TAG,
            interruptible=interruptible,
            use=use,
            takes=BODY_TYPES,
            reply=reply,
        )
        for place in ("", INDEX_PATH)
    ]


async def read_runtime_body(request: web.Request, limit: int) -> Body:
    """Return the JSON object in the body."""
    return await body.read_object(request, limit, LARGE_LIMITS)


def runtime_index(request: web.Request) -> int | None:
    """Return the index of the runtime in the path, None without one."""
    text = request.match_info.get("index")
    return None if text is None else int(text)


def name_of(form: Body, *fields: str) -> str:
    """Return the first non-empty text of the fields; invalid_request with the first name without one."""
    for field in fields:
        value = form.get(field)
        if isinstance(value, str) and value:
            return value
        if value:
            raise invalid(f"cannot accept {field}: it is not a text", param=field)
    raise invalid(f"cannot serve the request: {fields[0]} is missing", param=fields[0])
