"""Routes of `/v1/reindex`: embedding of every passage with the configured model."""

from collections.abc import Sequence

from aiohttp import web

from gatewayctl.wire import collections as wire
from gatewayctl.wire import routes
from gatewayd.http.control.rows import serve
from gatewayd.http.control.transactions import audit, control_reply
from gatewayd.http.routes import Route
from gatewayd.ingest.reindex import ReindexRunner


class ReindexRoutes:
    """Routes of the reindex on the control socket."""

    def __init__(self, reindexing: ReindexRunner) -> None:
        self._reindexing = reindexing

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [
            serve(routes.GET_REINDEX, self.show),
            serve(routes.START_REINDEX, self.start),
        ]

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer `Reindex`."""
        return await self._answer()

    async def start(self, request: web.Request) -> web.StreamResponse:
        """Start a reindex and answer `Reindex`; conflict while one runs."""
        await self._reindexing.start()
        audit(request, "collection reindex", "all")
        return await self._answer()

    async def _answer(self) -> web.Response:
        report = await self._reindexing.report()
        return control_reply(
            wire.Reindex(
                state=report.progress.value,
                active=report.active,
                target=report.target,
                done=report.done,
                total=report.total,
                error=report.error,
            )
        )
