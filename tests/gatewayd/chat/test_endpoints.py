"""Tests for gatewayd.chat.endpoints."""

from gatewayd.catalog.interfaces import CallContext
from gatewayd.chat.endpoints import context_of, endpoint_not_found
from gatewayd.errors import Kind
from tests.fakes.models import make_actor


def test_context_names_the_user() -> None:
    expected = CallContext("r1", "u1", "u1", "u1@example.org", "admin")
    assert context_of(make_actor("u1"), "r1") == expected


def test_error_names_model_and_endpoint() -> None:
    error = endpoint_not_found("/responses", "acme.m", "'acme' has no such endpoint")
    assert (error.kind, error.code) == (Kind.NOT_FOUND, "endpoint_not_found")
    assert error.message == "cannot use /responses with model 'acme.m': 'acme' has no such endpoint"
