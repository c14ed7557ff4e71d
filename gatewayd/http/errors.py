"""Error replies: the status and body of each error kind by dialect, and the guard of every handler."""

import logging
from collections.abc import Awaitable
from typing import Any, Final

import orjson
from aiohttp import web

from gatewayd.catalog.failover import MISSING_ENDPOINT_CODE
from gatewayd.catalog.interfaces import NativeRefusalError
from gatewayd.completions.refusal_reasons import HOPELESS, RefusalReason, reason_of
from gatewayd.dialects import openai
from gatewayd.dialects.anthropic import dialect as anthropic
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.audit import AUDITED_REFUSALS, IS_LINE_LEFT_OUT, audit_refusal
from gatewayd.http.context import FAILURE, REQUEST_ID, STARTED, client_fields
from gatewayd.http.responses.fast_response import ChunkedReply
from gatewayd.http.responses.provider_headers import error_headers
from gatewayd.http.routes import RouteDialect
from gatewayd.http.traceback_limit import TRACES, root_cause_of

log = logging.getLogger(__name__)

# Status, OpenAI error type and Anthropic error type of each kind (gatewayd-api(7), FAILURES).
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

# Codes with a status of their own, for every kind.
CODE_STATUSES: Final[dict[str, int]] = {
    "validation": 422,
    "unsupported_media_type": 415,
    "method_not_allowed": 405,
    "body_timeout": 408,
    "idempotency_key_reused": 422,
    "websocket_unsupported": 426,
}

# Status and OpenAI type of a provider's refusal, where its reason tells more than its kind.
OPENAI_REASONS: Final[dict[RefusalReason, tuple[int, str]]] = {
    RefusalReason.NO_CREDIT: (429, "insufficient_quota"),
    RefusalReason.OVERLOADED: (503, "service_unavailable_error"),
}

# The same in the Anthropic dialect.
ANTHROPIC_REASONS: Final[dict[RefusalReason, tuple[int, str]]] = {
    RefusalReason.NO_CREDIT: (402, "billing_error"),
    RefusalReason.OVERLOADED: (529, "overloaded_error"),
}

# OpenAI types of codes that tell more than their kind; programs act on them.
OPENAI_TYPES: Final[dict[str, str]] = {"insufficient_quota": "insufficient_quota"}

# Dialects of programs that call models.
PROGRAM_DIALECTS: Final = frozenset({RouteDialect.OPENAI, RouteDialect.ANTHROPIC, RouteDialect.OLLAMA})

# Codes of requests that are refused before their body is read.
UNREAD_CODES: Final = frozenset(
    {"body_timeout", "unsupported_media_type", "too_many_connections", "too_many_uploads"}
)

# Codes whose status differs in the SCIM dialect.
SCIM_STATUSES: Final[dict[str, int]] = {"last_administrator": 403, "validation": 400, "not_implemented": 501}

# `scimType` by code (RFC 7644, 3.12); a code that is a type itself maps to itself.
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
    if error.provider_code is not None and (exact := _by_reason(error, dialect)) is not None:
        return exact[0]
    return STATUSES[error.kind][0]


def type_of(error: GatewayError, dialect: RouteDialect) -> str:
    """Return the type of a failure in the OpenAI or the Anthropic dialect."""
    exact = _by_reason(error, dialect)
    if exact is not None:
        return exact[1]
    _, openai_type, anthropic_type = STATUSES[error.kind]
    if dialect is RouteDialect.ANTHROPIC:
        return anthropic_type
    return OPENAI_TYPES.get(error.code or "", openai_type)


def _by_reason(error: GatewayError, dialect: RouteDialect) -> tuple[int, str] | None:
    reason = reason_of(error.provider_code)
    if reason is None:
        return None
    return (ANTHROPIC_REASONS if dialect is RouteDialect.ANTHROPIC else OPENAI_REASONS).get(reason)


def body_of(error: GatewayError, dialect: RouteDialect = RouteDialect.NATIVE) -> dict[str, Any]:
    """Return the body of a failure: `detail` for clients of Open WebUI, and the structured `error`.

    A validation failure of a native route has `detail` as a list, which such clients print. On the control
    socket the body has only `error`, with the kind in it. In the dialect of runtimes `error` is a text.
    """
    match dialect:
        case RouteDialect.CONTROL:
            return {"error": _control_error(error)}
        case RouteDialect.ANTHROPIC:
            described = anthropic.error_object(error, type_of(error, dialect))
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
        # The account services refuse values.
        scim_type = "invalidValue"
    body = {"schemas": [SCIM_ERROR], "status": str(status), "scimType": scim_type, "detail": error.message}
    return {name: value for name, value in body.items() if value is not None}


def _openai_body(error: GatewayError, dialect: RouteDialect) -> dict[str, Any]:
    detail: Any = error.message
    if error.code == "validation" and dialect is RouteDialect.NATIVE:
        location = ["body", *(error.param or "").split(".")] if error.param else ["body"]
        detail = [{"type": "value_error", "loc": location, "msg": error.message}]
    return {"detail": detail, "error": openai.error_object(error, type_of(error, dialect))}


def _control_error(error: GatewayError) -> dict[str, Any]:
    return {
        "kind": error.kind.value,
        "message": error.full_message,
        "param": error.param,
        "code": error.code,
        "retry_after": error.retry_after,
    }


def render(error: GatewayError, dialect: RouteDialect = RouteDialect.NATIVE) -> web.Response:
    """Return the whole reply of a failure in the dialect of the caller.

    The body of a provider's own failure is passed on unchanged in the dialect of the provider
    (gatewayd-dialects(7), FAILURES).
    """
    headers = error_headers(error.headers, dialect)
    if error.retry_after is not None:
        headers["Retry-After"] = str(error.retry_after)
    if reason_of(error.provider_code) in HOPELESS:
        # Clients of two dialects retry after each 429 and 502 without such a header.
        headers["x-should-retry"] = "false"
    if error.kind is ErrorKind.UNAUTHENTICATED:
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, NativeRefusalError) and error.answer.protocol.value == dialect.value:
        refused = error.answer
        headers["Content-Type"] = refused.content_type or "application/json"
        return web.Response(status=refused.status, body=refused.body, headers=headers)
    reply = web.Response(
        status=status_of(error, dialect),
        body=orjson.dumps(body_of(error, dialect)),
        content_type=SCIM_JSON if dialect is RouteDialect.SCIM else "application/json",
        headers=headers,
    )
    if reply.status == 426:
        # RFC 9110, 15.5.22: the reply names a protocol that is served.
        reply.headers["Upgrade"] = "HTTP/1.1"
        reply.force_close()
    if error.kind is ErrorKind.TOO_LARGE or error.code in UNREAD_CODES:
        # The rest of the body is not read.
        reply.force_close()
    return reply


def from_http_exception(
    error: web.HTTPException, dialect: RouteDialect = RouteDialect.NATIVE
) -> GatewayError:
    """Translate the exceptions that aiohttp raises itself: unknown route, wrong method, body too large.

    An unknown route in a dialect of programs has the code that a missing endpoint of a provider has.
    """
    if error.status == 404:
        code = MISSING_ENDPOINT_CODE if dialect in PROGRAM_DIALECTS else "route_not_found"
        return GatewayError(ErrorKind.NOT_FOUND, "Not Found", code=code)
    if error.status == 405:
        return GatewayError(ErrorKind.INVALID_REQUEST, "Method Not Allowed", code="method_not_allowed")
    if error.status == 413:
        return GatewayError(ErrorKind.TOO_LARGE, "cannot read the body: it is over the limit")
    return GatewayError(ErrorKind.INVALID_REQUEST, f"cannot serve the request: {error.reason}")


async def guard(
    work: Awaitable[web.StreamResponse], dialect: RouteDialect, request: web.Request, route: str
) -> web.StreamResponse:
    """Await a handler and turn every failure into a reply and one log line with the request id.

    A failure after the head of a stream cuts the connection, as the client would read a second reply as part
    of the stream.
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
        failure = from_http_exception(error, dialect)
        allowed = error.headers.get("Allow")
    except Exception as error:  # noqa: BLE001 - last handler of unknown failures
        if isinstance(error, ConnectionError) and is_gone(request):
            # The client has left: the returned reply is not sent.
            unsent: web.StreamResponse = request.get(STARTED, web.Response())
            return unsent
        log_internal(request, error, "request failed", route=route)
        failure = GatewayError(ErrorKind.INTERNAL, f"cannot serve the request: see the log for {request_id}")
    reply = refuse(request, failure, dialect, route)
    if allowed is not None and not reply.prepared:
        reply.headers["Allow"] = allowed
    return reply


def refuse(
    request: web.Request, failure: GatewayError, dialect: RouteDialect, route: str
) -> web.StreamResponse:
    """Return the reply of a failure, with its log line; a stream that has begun is cut."""
    request_id = request[REQUEST_ID]
    # The traceback refers to the request and its body, which only the garbage collector would free.
    failure.__traceback__ = failure.__cause__ = failure.__context__ = None
    request[FAILURE] = failure
    if failure.kind in AUDITED_REFUSALS and dialect is not RouteDialect.SCIM:
        audit_refusal(request, route, failure)
    status = status_of(failure, dialect)
    if failure.kind is not ErrorKind.INTERNAL and IS_LINE_LEFT_OUT not in request:
        fields = {"request_id": request_id, "route": route, "status": status, "kind": failure.kind.value}
        extra = {**fields, **client_fields(request)}
        log.log(_level_of(status), "request refused: %s", failure.full_message, extra=extra)
    begun: web.StreamResponse | None = request.get(STARTED)
    if begun is not None and not (isinstance(begun, ChunkedReply) and not begun.is_sent):
        abort_connection(request)
        return begun
    return render(failure, dialect)


def _level_of(status: int) -> int:
    return logging.WARNING if status >= 500 else logging.INFO


def log_refused(request: web.Request, words: str, error: GatewayError) -> None:
    """Log a failure in a connection that stays open."""
    if error.kind is ErrorKind.INTERNAL:
        log_internal(request, error, f"{words}: {error.full_message}")
        return
    extra = {"request_id": request[REQUEST_ID], "kind": error.kind.value, **client_fields(request)}
    log.log(_level_of(status_of(error)), "%s: %s", words, error.full_message, extra=extra)


def log_broken(request: web.Request, error: GatewayError) -> None:
    """Log a stream that ends with an in-band failure, which its status does not show."""
    if error.kind is ErrorKind.INTERNAL:
        log_internal(request, error, f"stream broke: {error.full_message}")
        return
    log.warning(
        "stream broke: %s",
        error.full_message,
        extra={"request_id": request[REQUEST_ID], "kind": error.kind.value, **client_fields(request)},
    )


def log_internal(request: web.Request, error: Exception, words: str, **extra: object) -> None:
    """Log a failure inside of the gateway.

    The traceback follows unless one of the same origin was logged a moment ago; then the line names the
    cause.
    """
    traces = request.app.get(TRACES)
    is_traced = traces is None or traces.wants(error)
    cause = None if is_traced else type(root_cause_of(error)).__qualname__
    fields = {"request_id": request[REQUEST_ID], "kind": ErrorKind.INTERNAL.value, "cause": cause, **extra}
    fields |= client_fields(request)
    log.error("%s", words, exc_info=error if is_traced else None, extra=fields)


def is_gone(request: web.Request) -> bool:
    """Return whether the client's connection is closed or closing."""
    return request.transport is None or request.transport.is_closing()


def abort_connection(request: web.Request) -> None:
    """Close the client's connection at once and drop the unsent bytes."""
    if request.transport is not None:
        request.transport.abort()
