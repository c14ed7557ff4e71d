"""Route of `/v1/metrics`: the metrics of the gateway, for everybody who may use the control socket."""

from collections.abc import Sequence

from aiohttp import web

from gatewayctl.wire import routes
from gatewayd.http.connections.request_uses import RequestUse
from gatewayd.http.control.rows import serve
from gatewayd.http.public.metrics import RenderMetrics, metrics_reply
from gatewayd.http.routes import Route


class ControlMetricsRoutes:
    """Route of the metrics on the control socket."""

    def __init__(self, render: RenderMetrics) -> None:
        self._render = render

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [serve(routes.READ_METRICS, self.show, use=RequestUse.PROBE)]

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer the text format of Prometheus."""
        return metrics_reply(await self._render())
