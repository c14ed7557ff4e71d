"""Tests for gatewayd.http.request_facts."""

from aiohttp.test_utils import make_mocked_request

from gatewayd.http.context import CLIENT, REQUEST_ID, SITE
from gatewayd.http.request_facts import facts_of


def test_plugins_are_told_what_was_sent_and_from_where() -> None:
    request = make_mocked_request("POST", "/api/x?a=1&b=2", headers={"Accept-Language": "de", "X-A": "1"})
    request[CLIENT] = "192.0.2.7"
    request[REQUEST_ID] = "r1"
    request[SITE] = "https://ai.example.org"
    facts = facts_of(request)
    assert (facts.method, facts.path, facts.query) == ("POST", "/api/x", "a=1&b=2")
    assert facts.headers == (("Accept-Language", "de"), ("X-A", "1"))
    assert (facts.client, facts.base_url, facts.request_id) == ("192.0.2.7", "https://ai.example.org", "r1")
