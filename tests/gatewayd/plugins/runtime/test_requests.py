import sys

import pytest
from starlette.requests import Request

from gatewayd.errors import GatewayError
from gatewayd.plugins.runtime.context import RequestFacts
from gatewayd.plugins.runtime.requests import make_request

FACTS = RequestFacts(
    method="POST",
    path="/api/chat/completions",
    query="a=1&b=two",
    headers=(
        ("Host", "inside:8080"),
        ("Accept-Language", "de"),
        ("Authorization", "Bearer sk-1"),
        ("Cookie", "token=abc; theme=dark"),
        ("X-Name", "J\u00f6rg"),
    ),
    client="10.0.0.7",
    base_url="https://chat.example.org",
)


async def test_a_genuine_request() -> None:
    app = object()
    request = make_request(FACTS, app)
    assert isinstance(request, Request)
    assert request.app is app
    assert request.method == "POST"
    assert request.headers["accept-language"] == "de"
    assert request.headers.get("Authorization") == "Bearer sk-1"
    assert request.headers["host"] == "chat.example.org"
    assert request.cookies == {"token": "abc", "theme": "dark"}
    assert dict(request.query_params) == {"a": "1", "b": "two"}
    assert str(request.base_url) == "https://chat.example.org/"
    assert str(request.url) == "https://chat.example.org/api/chat/completions?a=1&b=two"
    assert request.client.host == "10.0.0.7"
    assert await request.body() == b""
    assert not await request.is_disconnected()


def test_its_state_is_its_own() -> None:
    first, second = make_request(FACTS, None), make_request(FACTS, None)
    first.state.token = 1
    assert not hasattr(second.state, "token")


def test_an_address_with_a_port_and_a_path() -> None:
    request = make_request(RequestFacts(path="/api/x", base_url="http://h:81/chat/"), None)
    assert str(request.base_url) == "http://h:81/chat/"
    assert str(request.url) == "http://h:81/chat/api/x"
    assert request.client is None


def test_without_starlette_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "starlette.requests", None)
    with pytest.raises(GatewayError, match="the extra 'plugins' is not installed"):
        make_request(FACTS, None)
