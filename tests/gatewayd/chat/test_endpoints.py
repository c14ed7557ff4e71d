"""Tests for gatewayd.chat.endpoints."""

import pytest

from gatewayd.catalog.interfaces import CallContext
from gatewayd.chat.endpoints import context_of, endpoint_not_found, model_of
from gatewayd.errors import GatewayError, Kind
from tests.fakes.models import make_actor


def test_context_names_the_user() -> None:
    expected = CallContext("r1", "u1", "u1", "u1@example.org", "admin")
    assert context_of(make_actor("u1"), "r1") == expected
    assert context_of(make_actor("u1"), "r1", chat_id="c1").chat_id == "c1"
    # A request may name anything as its chat.
    assert context_of(make_actor("u1"), "r1", chat_id=["c1"]) == expected


def test_error_names_model_and_endpoint() -> None:
    error = endpoint_not_found("/responses", "acme.m", "'acme' has no such endpoint")
    assert (error.kind, error.code) == (Kind.NOT_FOUND, "endpoint_not_found")
    assert error.message == "cannot use /responses with model 'acme.m': 'acme' has no such endpoint"


@pytest.mark.parametrize("value", [{}, {"model": None}, {"model": ""}, {"model": ["m"]}])
def test_a_request_names_its_model(value: dict[str, object]) -> None:
    assert model_of({"model": "m"}) == "m"
    with pytest.raises(GatewayError) as caught:
        model_of(value)
    assert (caught.value.kind, caught.value.param) == (Kind.INVALID_REQUEST, "model")
