"""Tests for gatewayd.http.context."""

import pytest
from aiohttp.test_utils import make_mocked_request

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http import context
from tests.fakes.providers.models import make_actor


def test_actor_is_the_one_that_the_edge_found() -> None:
    request = make_mocked_request("GET", "/")
    assert context.find_actor(request) is None
    with pytest.raises(GatewayError) as caught:
        context.actor(request)
    assert caught.value.kind is ErrorKind.UNAUTHENTICATED
    request[context.ACTOR] = make_actor("u7")
    assert context.actor(request).user_id == "u7"


def test_request_id_and_client() -> None:
    request = make_mocked_request("GET", "/")
    request[context.REQUEST_ID] = "r1"
    assert context.request_id(request) == "r1"
    request[context.CLIENT] = "203.0.113.9"
    assert context.client_address(request) == "203.0.113.9"


def test_the_address_of_the_gateway_is_what_the_client_or_its_proxy_says() -> None:
    request = make_mocked_request("GET", "/", headers={"Host": "ai.example.org:8080"})
    assert context.base_url(request) == "http://ai.example.org:8080"
    request[context.SITE] = "https://ai.example.org"
    assert context.base_url(request) == "https://ai.example.org"


def test_plugins_are_told_what_was_sent_and_from_where() -> None:
    request = make_mocked_request("POST", "/api/x?a=1&b=2", headers={"Accept-Language": "de", "X-A": "1"})
    request[context.CLIENT] = "192.0.2.7"
    request[context.REQUEST_ID] = "r1"
    request[context.SITE] = "https://ai.example.org"
    facts = context.facts_of(request)
    assert (facts.method, facts.path, facts.query) == ("POST", "/api/x", "a=1&b=2")
    assert facts.headers == (("Accept-Language", "de"), ("X-A", "1"))
    assert (facts.client, facts.base_url, facts.request_id) == ("192.0.2.7", "https://ai.example.org", "r1")
