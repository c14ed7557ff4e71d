"""`/v1/metrics`."""

from aiohttp import ClientSession, UnixConnector

from gatewayctl.wire import routes
from gatewayctl.wire.base import HEADER, VERSION
from tests.fakes.daemons.control_socket import Control


async def test_the_text_of_the_metrics(control: Control) -> None:
    assert await control.call(control.client.read, routes.READ_METRICS) == "gatewayd_ready 1.0\n"


async def test_a_scraper_without_the_protocol_is_told_what_to_send(control: Control) -> None:
    async with ClientSession(connector=UnixConnector(str(control.socket))) as session:
        refused = await session.get("http://gatewayd/v1/metrics")
        assert (refused.status, (await refused.json())["error"]["code"]) == (400, "protocol_mismatch")
        served = await session.get("http://gatewayd/v1/metrics", headers={HEADER: VERSION})
        assert served.headers["Content-Type"].startswith("text/plain; version=0.0.4")
