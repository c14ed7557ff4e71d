"""Tests for gatewayd.upstream.identity.client."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from gatewayd.accounts.identity.providers import ProviderMetadata, ProviderOptions
from gatewayd.accounts.identity.records import RefusalCode
from gatewayd.errors import GatewayError
from gatewayd.upstream.identity import client as module
from gatewayd.upstream.identity.client import MAX_ANSWER_BYTES, IdentityProviderClient

OPTIONS = ProviderOptions("okta", "id:1", "s ü")
SITE = "https://okta.example"
METADATA = ProviderMetadata(SITE, f"{SITE}/auth", f"{SITE}/token", f"{SITE}/keys")


@pytest.fixture
async def server() -> AsyncIterator[TestServer]:
    async def answer(request: web.Request) -> web.StreamResponse:
        name = request.path.strip("/")
        texts = {"list": b"[1]", "text": b"ok", "number": b"5", "deep": b"[" * 5000, "nothing": b""}
        if name == "large":
            return web.Response(body=b" " * (MAX_ANSWER_BYTES + 1))
        if name == "moved":
            return web.Response(status=302, headers={"Location": "/list"})
        if name in texts:
            return web.Response(body=texts[name])
        if name.isdecimal():
            return web.json_response({"error": "x" * 1000}, status=int(name))
        sent = {"headers": dict(request.headers), "body": (await request.read()).decode()}
        return web.json_response(sent)

    app = web.Application()
    app.router.add_route("*", "/{name}", answer)
    async with TestServer(app) as made:
        yield made


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("500", RefusalCode.UNREACHABLE),
        ("503", RefusalCode.UNREACHABLE),
        ("429", RefusalCode.UNREACHABLE),
        ("400", RefusalCode.PROVIDER),
        ("404", RefusalCode.PROVIDER),
        ("201", RefusalCode.PROVIDER),
        ("moved", RefusalCode.PROVIDER),
        ("text", RefusalCode.PROVIDER),
        ("number", RefusalCode.PROVIDER),
        ("deep", RefusalCode.PROVIDER),
        ("nothing", RefusalCode.PROVIDER),
        ("large", RefusalCode.PROVIDER),
    ],
)
async def test_answers_that_are_refused(server: TestServer, path: str, code: RefusalCode) -> None:
    with pytest.raises(GatewayError) as caught:
        await IdentityProviderClient().get_json(OPTIONS, str(server.make_url(f"/{path}")))
    assert caught.value.code == code
    assert len(caught.value.message) < 300


async def test_a_server_that_is_not_there(server: TestServer) -> None:
    url = str(server.make_url("/list"))
    assert await IdentityProviderClient().get_json(OPTIONS, url) == {"items": [1]}
    await server.close()
    with pytest.raises(GatewayError) as caught:
        await IdentityProviderClient().get_json(OPTIONS, url)
    assert caught.value.code == RefusalCode.UNREACHABLE


@pytest.mark.parametrize(
    ("secret", "in_body", "authorization", "body"),
    [
        ("s ü", False, "Basic aWQlM0ExOnMlMjAlQzMlQkM=", "a=1"),
        ("s ü", True, None, "a=1&client_id=id%3A1&client_secret=s+%C3%BC"),
        ("", False, None, "a=1&client_id=id%3A1"),
    ],
)
async def test_the_secret_goes_where_the_provider_wants_it(
    server: TestServer, secret: str, in_body: bool, authorization: str | None, body: str
) -> None:
    options, metadata = replace(OPTIONS, client_secret=secret), replace(METADATA, secret_in_body=in_body)
    url = str(server.make_url("/echo"))
    sent: Any = await IdentityProviderClient().post_form(options, metadata, url, {"a": "1"})
    assert (sent["headers"].get("Authorization"), sent["body"]) == (authorization, body)


@pytest.mark.parametrize(
    ("issuer", "endpoint", "is_refused"),
    [
        ("https://1.1.1.1", "https://10.0.0.1/token", True),
        ("https://1.1.1.1", "https://127.0.0.1/token", True),
        ("https://1.1.1.1", "https://[::1]/token", True),
        ("https://1.1.1.1", "https://169.254.169.254/token", True),
        ("https://1.1.1.1", "https://8.8.8.8/token", False),
        ("https://1.1.1.1", "https://1.1.1.1/token", False),
        ("https://10.0.0.1", "https://10.0.0.2/token", False),
    ],
)
async def test_a_public_provider_has_no_private_endpoints(
    issuer: str, endpoint: str, is_refused: bool
) -> None:
    metadata = ProviderMetadata(issuer, f"{issuer}/auth", endpoint)
    if not is_refused:
        await IdentityProviderClient().check_endpoints(OPTIONS, metadata)
        return
    with pytest.raises(GatewayError, match="private address") as caught:
        await IdentityProviderClient().check_endpoints(OPTIONS, metadata)
    assert caught.value.code == RefusalCode.PROVIDER


async def test_an_unknown_host_is_not_called_private() -> None:
    assert await module._is_public("a" * 64 + ".invalid")
