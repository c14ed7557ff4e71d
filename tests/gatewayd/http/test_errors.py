"""Tests for gatewayd.http.errors."""

import logging
from typing import Any

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from gatewayd.catalog.interfaces import NativeProtocol, NativeRefusalError, RefusedAnswer
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http import errors
from gatewayd.http.context import REQUEST_ID
from gatewayd.http.errors import body_of, render, status_of
from gatewayd.http.routes import RouteDialect
from gatewayd.http.traceback_limit import TRACES, TracebackLimiter


def test_every_kind_has_a_status_and_a_type() -> None:
    assert set(errors.STATUSES) == set(ErrorKind)
    assert all(400 <= status < 600 for status, *_ in errors.STATUSES.values())


def test_body_carries_detail_and_the_structured_error() -> None:
    body = errors.body_of(GatewayError(ErrorKind.NOT_FOUND, "cannot find it", param="model"))
    assert body == {
        "detail": "cannot find it",
        "error": {
            "message": "cannot find it",
            "type": "not_found_error",
            "param": "model",
            "code": "not_found",
        },
    }


def test_each_dialect_has_its_own_shape() -> None:
    busy = GatewayError(ErrorKind.UPSTREAM_UNREACHABLE, "cannot reach it")
    assert errors.body_of(busy, RouteDialect.ANTHROPIC) == {
        "type": "error",
        "error": {"type": "overloaded_error", "message": "cannot reach it"},
        "detail": "cannot reach it",
    }
    assert errors.body_of(busy, RouteDialect.OLLAMA) == {
        "error": "cannot reach it",
        "detail": "cannot reach it",
    }


BAD, NOT_FOUND = (400, "invalid_request_error"), (404, "not_found_error")


@pytest.mark.parametrize(
    ("kind", "code", "openai", "anthropic", "retries"),
    [
        ("rate_limited", "insufficient_quota", (429, "insufficient_quota"), (402, "billing_error"), False),
        ("rate_limited", "project_spend_limit_exceeded",
         (429, "insufficient_quota"), (402, "billing_error"), False),
        ("upstream_unreachable", "server_is_overloaded",
         (503, "service_unavailable_error"), (529, "overloaded_error"), True),
        ("upstream_failed", "provider_auth", (502, "api_error"), (502, "api_error"), False),
        ("not_found", "model_not_found", NOT_FOUND, NOT_FOUND, True),
        ("invalid_request", "content_filter", BAD, BAD, True),
        ("rate_limited", "slow_down", (429, "rate_limit_error"), (429, "rate_limit_error"), True),
    ],
)  # fmt: skip
def test_refusals_of_providers_have_the_status_and_type_that_clients_act_on(
    kind: str, code: str, openai: tuple[int, str], anthropic: tuple[int, str], *, retries: bool
) -> None:
    error = GatewayError(ErrorKind(kind), "cannot", provider_code=code)
    for dialect, told in ((RouteDialect.OPENAI, openai), (RouteDialect.ANTHROPIC, anthropic)):
        reply = errors.render(error, dialect)
        assert isinstance(reply.body, bytes)
        assert (reply.status, orjson.loads(reply.body)["error"]["type"]) == told
        assert ("x-should-retry" not in reply.headers) is retries


@pytest.mark.parametrize("protocol", NativeProtocol)
def test_the_words_of_a_provider_reach_callers_of_its_protocol_unchanged(protocol: NativeProtocol) -> None:
    said = b'{"type":"error",  "error":{"type":"x"}}'
    error = GatewayError(
        ErrorKind.INVALID_REQUEST, "cannot", headers={"anthropic-ratelimit-tokens-limit": "9"}
    )
    refusal = NativeRefusalError(error, RefusedAnswer(protocol, 418, "application/json", said))
    for dialect in RouteDialect:
        reply = errors.render(refusal, dialect)
        assert ((reply.status, reply.body) == (418, said)) is (dialect.value == protocol.value)
        limits = {name for name in reply.headers if "ratelimit" in name}
        family = (
            "anthropic-ratelimit-tokens-limit"
            if dialect is RouteDialect.ANTHROPIC
            else "x-ratelimit-limit-tokens"
        )
        assert limits == {family}


def test_where_it_went_wrong_is_told_on_the_control_socket_and_nowhere_else() -> None:
    error = GatewayError(ErrorKind.UNAVAILABLE, "cannot save", place="db.example.org:5432/gatewayd")
    told = {dialect for dialect in RouteDialect if "db.example.org" in str(errors.body_of(error, dialect))}
    assert told == {RouteDialect.CONTROL}


async def test_the_log_tells_where_it_went_wrong(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> web.StreamResponse:
        raise GatewayError(ErrorKind.UNAVAILABLE, "cannot save", place="db.example.org:5432/gatewayd")

    request = make_mocked_request("POST", "/x")
    request[REQUEST_ID] = "r1"
    await errors.guard(fail(), RouteDialect.NATIVE, request, "/x")
    assert caplog.messages == ["request refused: cannot save at db.example.org:5432/gatewayd"]


async def test_the_log_names_the_session_of_claude_code(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> web.StreamResponse:
        raise GatewayError(ErrorKind.NOT_FOUND, "no")

    headers = {"x-claude-code-session-id": "s" * 200, "X-Claude-Code-Parent-Agent-Id": "p"}
    request = make_mocked_request("POST", "/x", headers=headers)
    request[REQUEST_ID] = "r1"
    await errors.guard(fail(), RouteDialect.NATIVE, request, "/x")
    errors.log_broken(request, GatewayError(ErrorKind.TIMEOUT, "no"))
    for record in caplog.records:
        assert (vars(record)["claude_code_session_id"], vars(record)["claude_code_parent_agent_id"]) == (
            "s" * 100,
            "p",
        )
        assert not hasattr(record, "claude_code_agent_id")


def test_validation_detail_is_a_list_for_native_clients_only() -> None:
    error = GatewayError(ErrorKind.INVALID_REQUEST, "cannot accept a.b", param="a.b", code="validation")
    assert errors.body_of(error)["detail"][0]["loc"] == ["body", "a", "b"]
    assert errors.body_of(error, RouteDialect.OPENAI)["detail"] == "cannot accept a.b"
    assert errors.status_of(error) == 422


def test_reply_closes_the_connection_when_the_body_was_not_read() -> None:
    reply = errors.render(GatewayError(ErrorKind.TOO_LARGE, "cannot read"))
    assert reply.status == 413
    assert reply.keep_alive is False
    assert isinstance(reply.body, bytes)
    assert orjson.loads(reply.body)["error"]["type"] == "invalid_request_error"


def test_what_aiohttp_raises_is_translated() -> None:
    assert errors.status_of(errors.from_http_exception(web.HTTPNotFound())) == 404
    assert errors.status_of(errors.from_http_exception(web.HTTPMethodNotAllowed("GET", ["POST"]))) == 405
    assert errors.status_of(errors.from_http_exception(web.HTTPRequestEntityTooLarge(1, 2))) == 413
    assert errors.status_of(errors.from_http_exception(web.HTTPBadRequest())) == 400


SCIM_ERROR = "urn:ietf:params:scim:api:messages:2.0:Error"


def scim(kind: ErrorKind, code: str | None = None) -> tuple[int, Any]:
    reply = errors.render(GatewayError(kind, "cannot do it", code=code), RouteDialect.SCIM)
    assert reply.headers["Content-Type"] == "application/scim+json"
    assert isinstance(reply.body, bytes)
    body = orjson.loads(reply.body)
    assert (body["schemas"], body["status"], body["detail"]) == (
        [SCIM_ERROR],
        str(reply.status),
        "cannot do it",
    )
    assert body.keys() <= {"schemas", "status", "scimType", "detail"}
    return reply.status, body.get("scimType")


@pytest.mark.parametrize(
    "code",
    [
        *("invalidFilter", "tooMany", "mutability", "invalidSyntax"),
        *("invalidPath", "noTarget", "invalidValue", "sensitive"),
    ],
)
def test_the_error_types_of_scim_go_out_as_they_are(code: str) -> None:
    assert scim(ErrorKind.INVALID_REQUEST, code) == (400, code)


@pytest.mark.parametrize(
    ("kind", "code", "status", "kind_of_error"),
    [
        (ErrorKind.INVALID_REQUEST, None, 400, "invalidValue"),
        (ErrorKind.INVALID_REQUEST, "validation", 400, "invalidValue"),
        (ErrorKind.INVALID_REQUEST, "json_invalid", 400, "invalidSyntax"),
        (ErrorKind.INVALID_REQUEST, "unsupported_media_type", 415, None),
        (ErrorKind.INVALID_REQUEST, "method_not_allowed", 405, None),
        (ErrorKind.INVALID_REQUEST, "body_timeout", 408, None),
        (ErrorKind.INVALID_REQUEST, "not_implemented", 501, None),
        (ErrorKind.UNAUTHENTICATED, None, 401, None),
        (ErrorKind.FORBIDDEN, None, 403, None),
        (ErrorKind.NOT_FOUND, None, 404, None),
        (ErrorKind.CONFLICT, "taken", 409, "uniqueness"),
        (ErrorKind.CONFLICT, None, 409, None),
        (ErrorKind.CONFLICT, "last_administrator", 403, None),
        (ErrorKind.TOO_LARGE, None, 413, None),
        (ErrorKind.NOT_CONFIGURED, None, 500, None),
        (ErrorKind.INTERNAL, None, 500, None),
        (ErrorKind.UNAVAILABLE, None, 503, None),
    ],
)
def test_each_failure_has_its_scim_form(
    kind: ErrorKind, code: str | None, status: int, kind_of_error: str | None
) -> None:
    assert scim(kind, code) == (status, kind_of_error)


def test_every_kind_can_be_told_to_clients_of_scim() -> None:
    for kind in ErrorKind:
        assert 400 <= scim(kind)[0] < 600


def test_a_conflict_about_administrators_is_one_for_others() -> None:
    failure = GatewayError(ErrorKind.CONFLICT, "cannot", code="last_administrator")
    assert errors.status_of(failure) == 409
    assert errors.status_of(failure, RouteDialect.SCIM) == 403


def test_scim_clients_are_told_how_to_come_in_and_when_to_come_again() -> None:
    refused = errors.render(GatewayError(ErrorKind.UNAUTHENTICATED, "cannot"), RouteDialect.SCIM)
    assert refused.headers["WWW-Authenticate"] == "Bearer"
    busy = errors.render(GatewayError(ErrorKind.UNAVAILABLE, "cannot", retry_after=3), RouteDialect.SCIM)
    assert busy.headers["Retry-After"] == "3"


def test_a_providers_code_is_told_and_changes_no_status() -> None:
    error = GatewayError(ErrorKind.INVALID_REQUEST, "no", param="messages", provider_code="validation")
    assert status_of(error, RouteDialect.OPENAI) == 400
    assert body_of(error, RouteDialect.OPENAI)["error"]["code"] == "validation"
    assert body_of(error)["detail"] == "no"
    assert "x-should-retry" not in render(error).headers


def test_who_has_no_money_is_not_asked_again() -> None:
    error = GatewayError(ErrorKind.RATE_LIMITED, "no", provider_code="insufficient_quota")
    assert render(error, RouteDialect.OPENAI).headers["x-should-retry"] == "false"


async def refused(request: web.Request, error: Exception) -> web.StreamResponse:
    async def work() -> web.StreamResponse:
        raise error

    return await errors.guard(work(), RouteDialect.NATIVE, request, "/a/route")


def asked(app: web.Application, request_id: str) -> web.Request:
    request = make_mocked_request("GET", "/", app=app)
    request[REQUEST_ID] = request_id
    return request


@pytest.mark.parametrize("kind", [ErrorKind.INTERNAL, None], ids=["internal", "unforeseen"])
async def test_a_failure_of_the_gateway_leaves_one_line_and_one_traceback(
    kind: ErrorKind | None, caplog: pytest.LogCaptureFixture
) -> None:
    def failure() -> Exception:
        if kind is None:
            return ValueError("secret")
        error = GatewayError(kind, "cannot read it: the database's file is damaged")
        error.__cause__ = KeyError("secret")
        return error

    app = web.Application()
    app[TRACES] = TracebackLimiter()
    for number in range(3):
        reply = await refused(asked(app, f"r{number}"), failure())
        assert reply.status == 500
    lines = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(lines) == len(caplog.records) == 3
    assert [vars(line)["request_id"] for line in lines] == ["r0", "r1", "r2"]
    assert [bool(line.exc_info) for line in lines] == [True, False, False]
    cause = "ValueError" if kind is None else "KeyError"
    assert [vars(line)["cause"] for line in lines] == [None, cause, cause]
    words = (
        "request failed" if kind is None else "request failed: cannot read it: the database's file is damaged"
    )
    assert {line.getMessage() for line in lines} == {words}


def test_a_stream_that_the_gateway_breaks_has_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    errors.log_broken(asked(web.Application(), "r"), GatewayError(ErrorKind.INTERNAL, "cannot go on"))
    errors.log_broken(asked(web.Application(), "r"), GatewayError(ErrorKind.TIMEOUT, "cannot wait"))
    internal, late = caplog.records
    assert (internal.levelname, internal.getMessage()) == ("ERROR", "stream broke: cannot go on")
    assert internal.exc_info
    assert (late.levelname, late.exc_info) == ("WARNING", None)
