"""Tests for gatewayd.http.errors."""

import orjson
from aiohttp import web

from gatewayd.errors import GatewayError, Kind
from gatewayd.http import errors
from gatewayd.http.routes import Dialect


def test_every_kind_has_a_status_and_a_type() -> None:
    assert set(errors.STATUSES) == set(Kind)
    assert all(400 <= status < 600 for status, *_ in errors.STATUSES.values())


def test_body_carries_detail_and_the_structured_error() -> None:
    body = errors.body_of(GatewayError(Kind.NOT_FOUND, "cannot find it", param="model"))
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
    busy = GatewayError(Kind.UPSTREAM_UNREACHABLE, "cannot reach it")
    assert errors.body_of(busy, Dialect.ANTHROPIC) == {
        "type": "error",
        "error": {"type": "overloaded_error", "message": "cannot reach it"},
        "detail": "cannot reach it",
    }
    assert errors.body_of(busy, Dialect.OLLAMA) == {"error": "cannot reach it", "detail": "cannot reach it"}


def test_validation_detail_is_a_list_for_native_clients_only() -> None:
    error = GatewayError(Kind.INVALID_REQUEST, "cannot accept a.b", param="a.b", code="validation")
    assert errors.body_of(error)["detail"][0]["loc"] == ["body", "a", "b"]
    assert errors.body_of(error, Dialect.OPENAI)["detail"] == "cannot accept a.b"
    assert errors.status_of(error) == 422


def test_reply_closes_the_connection_when_the_body_was_not_read() -> None:
    reply = errors.render(GatewayError(Kind.TOO_LARGE, "cannot read"))
    assert reply.status == 413
    assert reply.keep_alive is False
    assert isinstance(reply.body, bytes)
    assert orjson.loads(reply.body)["error"]["type"] == "invalid_request_error"


def test_what_aiohttp_raises_is_translated() -> None:
    assert errors.status_of(errors.from_http(web.HTTPNotFound())) == 404
    assert errors.status_of(errors.from_http(web.HTTPMethodNotAllowed("GET", ["POST"]))) == 405
    assert errors.status_of(errors.from_http(web.HTTPRequestEntityTooLarge(1, 2))) == 413
    assert errors.status_of(errors.from_http(web.HTTPBadRequest())) == 400
