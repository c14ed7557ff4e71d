"""The metrics over TCP."""

from ipaddress import ip_network

import pytest

from gatewayd.http.public.metrics import MetricsAccess, MetricsRoutes
from tests.fakes.http.public_app import bearer, raw_get, serving

TOKEN = "t" * 40
HERE, THERE = (ip_network("127.0.0.0/8"),), (ip_network("192.0.2.0/24"),)


async def render() -> bytes:
    return b"gatewayd_ready 1.0\n"


@pytest.mark.parametrize(
    ("access", "headers", "status", "words"),
    [
        (MetricsAccess(), {}, 404, "neither metrics_token nor metrics_networks is set"),
        (MetricsAccess(), bearer(TOKEN), 404, "neither"),
        (MetricsAccess(TOKEN), {}, 401, "no Authorization: Bearer"),
        (MetricsAccess(TOKEN), {"Authorization": "Basic eDp5"}, 401, "no Authorization: Bearer"),
        (MetricsAccess(TOKEN), {"Authorization": "Bearer "}, 401, "no Authorization: Bearer"),
        (MetricsAccess(TOKEN), bearer("x" * 7_000), 401, "not that of metrics_token"),
        (MetricsAccess(TOKEN), bearer("\u00e9\udcff"), 401, "not that of metrics_token"),
        (MetricsAccess(TOKEN), {"x-api-key": TOKEN}, 401, "no Authorization: Bearer"),
        (MetricsAccess(TOKEN), bearer(TOKEN), 200, ""),
        (MetricsAccess("", THERE), {}, 403, "cannot serve metrics to 127.0.0.1"),
        (MetricsAccess("", HERE), {}, 200, ""),
        (MetricsAccess(TOKEN, HERE), {}, 401, "no Authorization: Bearer"),
        (MetricsAccess(TOKEN, THERE), bearer(TOKEN), 403, "metrics_networks does not have it"),
        (MetricsAccess(TOKEN, HERE), bearer(TOKEN), 200, ""),
    ],
)
async def test_who_may_read_them(
    access: MetricsAccess, headers: dict[str, str], status: int, words: str
) -> None:
    async with serving(MetricsRoutes(render, lambda: access).routes()) as client:
        reply = await client.get("/metrics", headers=headers)
        assert reply.status == status
        if status == 200:
            assert await reply.read() == await render()
            assert reply.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
            assert reply.headers["Cache-Control"] == "no-store"
        else:
            assert words in (await reply.json())["detail"]
            assert TOKEN not in await reply.text()


async def test_a_query_does_not_hold_the_token() -> None:
    async with serving(MetricsRoutes(render, lambda: MetricsAccess(TOKEN)).routes()) as client:
        assert b" 401 " in await raw_get(client, f"/metrics?token={TOKEN}")
