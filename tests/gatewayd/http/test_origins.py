"""Tests for gatewayd.http.origins."""

from ipaddress import ip_network

import pytest
from aiohttp import hdrs

from gatewayd.accounts.records import Role
from gatewayd.http.middleware import EdgeOptions
from gatewayd.http.origins import is_same
from gatewayd.http.routes import RouteAccess
from tests.fakes.http.public_app import serving
from tests.fakes.providers.models import make_actor
from tests.gatewayd.http.test_middleware import row

SITE = "https://ai.example.org"
EVIL = "https://evil.example"


@pytest.mark.parametrize(
    ("origin", "site", "same"),
    [
        ("http://a.test", "http://a.test", True),
        ("http://A.test:80", "http://a.test/path", True),
        ("https://a.test", "https://a.test:443", True),
        ("https://a.test", "http://a.test", True),
        ("http://a.test", "https://a.test", False),
        ("http://a.test:8080", "http://a.test", False),
        ("http://a.test.evil", "http://a.test", False),
        ("http://a.test@evil", "http://a.test", False),
        ("http://[::1]:8080", "http://[::1]:8080", True),
        ("null", "http://a.test", False),
        ("", "", False),
        ("app://a.test", "http://a.test", False),
    ],
)
def test_when_an_origin_is_that_of_an_address(origin: str, site: str, same: bool) -> None:
    assert is_same(origin, site) is same


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Origin": "OWN"}, 200),
        ({"Origin": EVIL}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": ""}, 403),
        ({"Origin": "file://"}, 403),
        ({"Origin": SITE}, 200),
        ({"Origin": "https://listed.example"}, 200),
        ({"Origin": "app://listed.example"}, 200),
        ({"Origin": EVIL, "Authorization": "Bearer user"}, 403),
        ({"Origin": EVIL, "x-api-key": "user"}, 403),
        ({"Origin": EVIL, "Cookie": "token=user"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "none"}, 200),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "https://behind.a.proxy"}, 200),
        ({"Sec-Fetch-Site": "cross-site", "Origin": "OWN"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Origin": SITE}, 200),
        ({"Sec-Fetch-Site": "cross-site", "Origin": "https://listed.example"}, 200),
    ],
)
async def test_a_page_of_another_origin_writes_nothing(headers: dict[str, str], status: int) -> None:
    options = EdgeOptions(
        allowed_origins=("https://listed.example", "app://listed.example"), site_url=lambda: SITE
    )
    rows = [row(RouteAccess.OPTIONAL, method=method) for method in ("POST", "PUT", "PATCH", "DELETE", "GET")]
    async with serving(rows, {"user": make_actor("u", Role.USER)}, options=options) as client:
        own = f"http://{client.host}:{client.port}"
        sent = {name: own if value == "OWN" else value for name, value in headers.items()}
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            async with client.request(method, "/x", headers=sent) as reply:
                assert reply.status == status, method
                if status == 403:
                    assert (await reply.json())["error"]["code"] == "foreign_origin"
        assert (await client.get("/x", headers=sent)).status == 200


async def test_every_origin_may_be_allowed() -> None:
    options = EdgeOptions(allowed_origins=("*",))
    async with serving([row(RouteAccess.PUBLIC, method="POST")], options=options) as client:
        for origin in (EVIL, "null", "file://"):
            reply = await client.post("/x", headers={"Origin": origin, "Sec-Fetch-Site": "cross-site"})
            assert (reply.status, reply.headers[hdrs.ACCESS_CONTROL_ALLOW_ORIGIN]) == (200, "*")


async def test_the_address_of_a_trusted_proxy_is_the_own_one() -> None:
    options = EdgeOptions(trusted_proxies=(ip_network("127.0.0.0/8"),))
    forwarded = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "ai.example.org"}
    async with serving([row(RouteAccess.PUBLIC, method="POST")], options=options) as client:
        for origin, status in ((SITE, 200), ("http://ai.example.org", 403), (EVIL, 403)):
            reply = await client.post("/x", headers={**forwarded, "Origin": origin})
            assert reply.status == status, origin
    async with serving([row(RouteAccess.PUBLIC, method="POST")]) as client:
        assert (await client.post("/x", headers={**forwarded, "Origin": SITE})).status == 403
