"""Kind -> status and body per dialect; with `guard`, the place where unknown failures of the edge end."""

import logging
from collections.abc import Awaitable
from typing import Any, Final

import orjson
from aiohttp import web

from gatewayd.catalog.interfaces import RuntimeRefusalError
from gatewayd.completions.provider_errors import QUOTA_CODES
from gatewayd.dialects import openai
from gatewayd.dialects.anthropic import dialect as anthropic
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.context import FAILURE, REQUEST_ID, STARTED
from gatewayd.http.responses.fast_response import ChunkedReply
from gatewayd.http.routes import RouteDialect
from gatewayd.http.traceback_limit import TRACES, root_cause_of

log = logging.getLogger(__name__)

# Status, OpenAI error type, Anthropic error type (interface specification, section 7).
STATUSES: Final[dict[ErrorKind, tuple[int, str, str]]] = {
    ErrorKind.INVALID_REQUEST: (400, "invalid_request_error", "invalid_request_error"),
    ErrorKind.EMPTY_CONTENT: (400, "invalid_request_error", "invalid_request_error"),
    ErrorKind.UNAUTHENTICATED: (401, "authentication_error", "authentication_error"),
    ErrorKind.FORBIDDEN: (403, "permission_error", "permission_error"),
    ErrorKind.NOT_FOUND: (404, "not_found_error", "not_found_error"),
    ErrorKind.CONFLICT: (409, "invalid_request_error", "invalid_request_error"),
    ErrorKind.TOO_LARGE: (413, "invalid_request_error", "request_too_large"),
    ErrorKind.RATE_LIMITED: (429, "rate_limit_error", "rate_limit_error"),
    ErrorKind.UPSTREAM_FAILED: (502, "api_error", "api_error"),
    ErrorKind.UPSTREAM_UNREACHABLE: (503, "api_error", "overloaded_error"),
    ErrorKind.PLUGIN_FAILED: (500, "api_error", "api_error"),
    ErrorKind.NOT_CONFIGURED: (500, "api_error", "api_error"),
    ErrorKind.INTERNAL: (500, "api_error", "api_error"),
    ErrorKind.UNAVAILABLE: (503, "api_error", "overloaded_error"),
    ErrorKind.TIMEOUT: (504, "api_error", "timeout_error"),
}

# Codes that carry a status of their own, whatever the kind.
CODE_STATUSES: Final[dict[str, int]] = {
    "validation": 422,
    "unsupported_media_type": 415,
    "method_not_allowed": 405,
    "body_timeout": 408,
}

# What is refused before its body is read.
UNREAD_CODES: Final = frozenset(
    {"body_timeout", "unsupported_media_type", "too_many_connections", "too_many_uploads"}
)

# The status of a failure in the SCIM dialect, where it is another one.
SCIM_STATUSES: Final[dict[str, int]] = {"last_administrator": 403, "validation": 400, "not_implemented": 501}

# `scimType` by code (RFC 7644 section 3.12); a code that is a type itself stands for itself.
SCIM_TYPES: Final[dict[str, str]] = {
    **{name: name for name in ("invalidFilter", "tooMany", "uniqueness", "mutability", "invalidSyntax")},
    **{name: name for name in ("invalidPath", "noTarget", "invalidValue", "sensitive")},
    "taken": "uniqueness",
    "json_invalid": "invalidSyntax",
}
SCIM_ERROR: Final = "urn:ietf:params:scim:api:messages:2.0:Error"
SCIM_JSON: Final = "application/scim+json"


def status_of(error: GatewayError, dialect: RouteDialect = RouteDialect.NATIVE) -> int:
    """Return the HTTP status of a failure."""
    if dialect is RouteDialect.SCIM and error.code in SCIM_STATUSES:
        return SCIM_STATUSES[error.code]
    if error.code in CODE_STATUSES:
        return CODE_STATUSES[error.code]
    return STATUSES[error.kind][0]


def body_of(error: GatewayError, dialect: RouteDialect = RouteDialect.NATIVE) -> dict[str, Any]:
    """Return the body of a failure: `detail` for clients of this API family beside the structured `error`.

    A validation failure of a native route has the list form of `detail` that such clients print. On the
    control socket the `error` object holds the kind and nothing else is needed; a runtime's is a sentence.
    """
    match dialect:
        case RouteDialect.CONTROL:
            return {"error": _control_error(error)}
        case RouteDialect.ANTHROPIC:
            described = anthropic.error_object(error, STATUSES[error.kind][2])
            return {"type": "error", "error": described, "detail": error.message}
        case RouteDialect.OLLAMA:
            return {"error": error.message, "detail": error.message}
        case RouteDialect.SCIM:
            return _scim_body(error)
        case RouteDialect.NATIVE | RouteDialect.OPENAI:
            return _openai_body(error, dialect)


def _scim_body(error: GatewayError) -> dict[str, Any]:
    status = status_of(error, RouteDialect.SCIM)
    scim_type = SCIM_TYPES.get(error.code or "")
    if scim_type is None and status == 400:
        # What the account services refuse is a value.
        scim_type = "invalidValue"
    body = {"schemas": [SCIM_ERROR], "status": str(status), "scimType": scim_type, "detail": error.message}
    return {name: value for name, value in body.items() if value is not None}


def _openai_body(error: GatewayError, dialect: RouteDialect) -> dict[str, Any]:
    detail: Any = error.message
    if error.code == "validation" and dialect is RouteDialect.NATIVE:
        location = ["body", *(error.param or "").split(".")] if error.param else ["body"]
        detail = [{"type": "value_error", "loc": location, "msg": error.message}]
    return {"detail": detail, "error": openai.error_object(error, STATUSES[error.kind][1])}


def _control_error(error: GatewayError) -> dict[str, Any]:
    return {
        "kind": error.kind.value,
        "message": error.full_message,
        "param": error.param,
        "code": error.code,
        "retry_after": error.retry_after,
    }


def render(error: GatewayError, dialect: RouteDialect = RouteDialect.NATIVE) -> web.Response:
    """Return the whole reply of a failure, in the caller's dialect.

    What a runtime wrote itself is passed on as it is to who speaks its dialect (4.5).
    """
    headers = {}
    if error.retry_after is not None:
        headers["Retry-After"] = str(error.retry_after)
    if error.provider_code in QUOTA_CODES:
        # Clients of two dialects ask again after each 429 that has no such header.
        headers["x-should-retry"] = "false"
    if error.kind is ErrorKind.UNAUTHENTICATED:
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, RuntimeRefusalError) and dialect is RouteDialect.OLLAMA:
        refused = error.answer
        headers["Content-Type"] = refused.content_type or "application/json"
        return web.Response(status=refused.status, body=refused.body, headers=headers)
    reply = web.Response(
        status=status_of(error, dialect),
        body=orjson.dumps(body_of(error, dialect)),
        content_type=SCIM_JSON if dialect is RouteDialect.SCIM else "application/json",
        headers=headers,
    )
    if error.kind is ErrorKind.TOO_LARGE or error.code in UNREAD_CODES:
        # What is left of the body is not read.
        reply.force_close()
    return reply


def from_http_exception(error: web.HTTPException) -> GatewayError:
    """Translate what aiohttp raises by itself: no such route, wrong method, body too large."""
    if error.status == 404:
        return GatewayError(ErrorKind.NOT_FOUND, "Not Found", code="route_not_found")
    if error.status == 405:
        return GatewayError(ErrorKind.INVALID_REQUEST, "Method Not Allowed", code="method_not_allowed")
    if error.status == 413:
        return GatewayError(ErrorKind.TOO_LARGE, "cannot read the body: it is over the limit")
    return GatewayError(ErrorKind.INVALID_REQUEST, f"cannot serve the request: {error.reason}")


async def guard(
    work: Awaitable[web.StreamResponse], dialect: RouteDialect, request: web.Request, route: str
) -> web.StreamResponse:
    """Await a handler and turn every failure into a reply and one log line with the request id.

    A failure after the head of a stream cuts the connection: a second reply would be read as part of it.
    """
    request_id = request[REQUEST_ID]
    allowed: str | None = None
    try:
        return await work
    except GatewayError as error:
        failure = error
        if error.kind is ErrorKind.INTERNAL:
            log_internal(request, error, f"request failed: {error.full_message}", route=route)
    except web.HTTPException as error:
        failure = from_http_exception(error)
        allowed = error.headers.get("Allow")
    except Exception as error:  # noqa: BLE001 - where unknown failures end
        if isinstance(error, ConnectionError) and is_gone(request):
            # The client left; what is returned is not sent.
            unsent: web.StreamResponse = request.get(STARTED, web.Response())
            return unsent
        log_internal(request, error, "request failed", route=route)
        failure = GatewayError(ErrorKind.INTERNAL, f"cannot serve the request: see the log for {request_id}")
    # Its frames hold the request and all that was read of it: with them, only the collector would free that.
    failure.__traceback__ = failure.__cause__ = failure.__context__ = None
    request[FAILURE] = failure
    status = status_of(failure, dialect)
    if failure.kind is not ErrorKind.INTERNAL:
        extra = {"request_id": request_id, "route": route, "status": status, "kind": failure.kind.value}
        log.log(_level_of(status), "request refused: %s", failure.full_message, extra=extra)
    begun: web.StreamResponse | None = request.get(STARTED)
    if begun is not None and not (isinstance(begun, ChunkedReply) and not begun.is_sent):
        abort_connection(request)
        return begun
    reply = render(failure, dialect)
    if allowed is not None:
        reply.headers["Allow"] = allowed
    return reply


def _level_of(status: int) -> int:
    return logging.WARNING if status >= 500 else logging.INFO


def log_refused(request: web.Request, words: str, error: GatewayError) -> None:
    """Write the log line of a failure within a connection that goes on."""
    if error.kind is ErrorKind.INTERNAL:
        log_internal(request, error, f"{words}: {error.full_message}")
        return
    extra = {"request_id": request[REQUEST_ID], "kind": error.kind.value}
    log.log(_level_of(status_of(error)), "%s: %s", words, error.full_message, extra=extra)


def log_broken(request: web.Request, error: GatewayError) -> None:
    """Write the log line of a stream that ends with a failure in band, of which the status tells nothing."""
    if error.kind is ErrorKind.INTERNAL:
        log_internal(request, error, f"stream broke: {error.full_message}")
        return
    log.warning(
        "stream broke: %s",
        error.full_message,
        extra={"request_id": request[REQUEST_ID], "kind": error.kind.value},
    )


def log_internal(request: web.Request, error: Exception, words: str, **extra: object) -> None:
    """Write the log line of a failure that the gateway is at fault for.

    The traceback follows when the place that raised was not told of lately; else the line names the cause.
    """
    traces = request.app.get(TRACES)
    is_traced = traces is None or traces.wants(error)
    cause = None if is_traced else type(root_cause_of(error)).__qualname__
    told = {"request_id": request[REQUEST_ID], "kind": ErrorKind.INTERNAL.value, "cause": cause, **extra}
    log.error("%s", words, exc_info=error if is_traced else None, extra=told)


def is_gone(request: web.Request) -> bool:
    """Tell whether the client's connection is closed, or closing."""
    return request.transport is None or request.transport.is_closing()


def abort_connection(request: web.Request) -> None:
    """Close the client's connection at once, with what was not yet sent."""
    if request.transport is not None:
        request.transport.abort()
