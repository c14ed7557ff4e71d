"""Tests for gatewayd.pipeline.endpoints."""

import pytest

from gatewayd.catalog.failover import Candidate
from gatewayd.catalog.interfaces import CallContext
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.pipeline.endpoints import (
    check_names,
    context_of,
    endpoint_not_found,
    lacks_endpoint,
    model_of,
    select_source,
)
from tests.fakes.providers.models import FakeSource, make_actor, make_model


def test_context_names_the_user() -> None:
    expected = CallContext("r1", "u1", "u1", "u1@example.org", "admin")
    assert context_of(make_actor("u1"), "r1") == expected
    assert context_of(make_actor("u1"), "r1", chat_id="c1").chat_id == "c1"
    # A request may name anything as its chat.
    assert context_of(make_actor("u1"), "r1", chat_id=["c1"]) == expected


def test_error_names_model_and_endpoint() -> None:
    error = endpoint_not_found("/responses", "acme.m", "'acme' has no such endpoint")
    assert (error.kind, error.code) == (ErrorKind.NOT_FOUND, "endpoint_not_found")
    assert error.message == "cannot use /responses with model 'acme.m': 'acme' has no such endpoint"


@pytest.mark.parametrize("value", [{}, {"model": None}, {"model": ""}, {"model": ["m"]}])
def test_a_request_names_its_model(value: dict[str, object]) -> None:
    assert model_of({"model": "m"}) == "m"
    with pytest.raises(GatewayError) as caught:
        model_of(value)
    assert (caught.value.kind, caught.value.param) == (ErrorKind.INVALID_REQUEST, "model")


@pytest.mark.parametrize("name", ["Model", "MESSAGES", "me\u017f\u017fages", "Prompt", "Instructions"])
def test_name_that_providers_take_for_a_field_of_ours_is_refused(name: str) -> None:
    check_names({"model": "m", "messages": [], "chatId": "c", "X": 1})
    with pytest.raises(GatewayError, match="in lower case") as caught:
        check_names({"model": "m", name: "x"})
    assert caught.value.param == name.casefold()


def test_candidates_of_one_source() -> None:
    near, far = (Candidate(make_model("m"), FakeSource(name)) for name in ("near", "far"))
    assert select_source((near, far), "far") == [far]
    with pytest.raises(GatewayError, match="cannot find model"):
        select_source((near, far), "gone")


def test_a_missing_model_is_no_missing_endpoint() -> None:
    assert lacks_endpoint(GatewayError(ErrorKind.NOT_FOUND, "no"))
    assert not lacks_endpoint(GatewayError(ErrorKind.NOT_FOUND, "no", provider_code="model_not_found"))
    assert not lacks_endpoint(GatewayError(ErrorKind.UPSTREAM_FAILED, "no"))
