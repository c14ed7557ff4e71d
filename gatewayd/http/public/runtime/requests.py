"""What requests for the runtimes have in common: their paths, bodies and model names."""

from collections.abc import Sequence
from typing import Final

from aiohttp import web

from gatewayd.completions.records import Body
from gatewayd.errors import invalid
from gatewayd.http import body
from gatewayd.http.connections.uses import RequestUse
from gatewayd.http.routes import JSON_BODY, Handler, Route, RouteAccess, RouteDialect
from gatewayd.http.schemas import Reply
from gatewayd.json_decoder import LARGE_LIMITS

PREFIX: Final = "/ollama"

INDEX_PATH: Final = "/{index:[0-9][0-9]?[0-9]?}"
"""Stands behind a path and names one runtime by its place in the settings."""

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
    """Return the two rows of an operation: for any runtime, and for the one that the path names."""
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
    """Return the JSON object that was sent."""
    return await body.read_object(request, limit, LARGE_LIMITS)


def runtime_index(request: web.Request) -> int | None:
    """Return the place of the runtime that the path names."""
    text = request.match_info.get("index")
    return None if text is None else int(text)


def name_of(form: Body, *fields: str) -> str:
    """Return the first text among the fields; invalid_request, naming the first one, when all are empty."""
    for field in fields:
        value = form.get(field)
        if isinstance(value, str) and value:
            return value
        if value:
            raise invalid(f"cannot accept {field}: it is not a text", param=field)
    raise invalid(f"cannot serve the request: {fields[0]} is missing", param=fields[0])
