"""Route of `/v1/queue`: the length of the ingestion queue."""

from collections.abc import Sequence

from aiohttp import web

from gatewayctl.wire import files as wire
from gatewayctl.wire import routes
from gatewayd.http.control.rows import serve
from gatewayd.http.control.transactions import control_reply
from gatewayd.http.routes import Route
from gatewayd.ingest.queue import IngestQueue


class QueueRoutes:
    """Route of the ingestion queue on the control socket."""

    def __init__(self, queue: IngestQueue) -> None:
        self._queue = queue

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [
            serve(routes.GET_QUEUE, self.show),
        ]

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer `Queue`."""
        state = await self._queue.state()
        return control_reply(wire.Queue(waiting=state.waiting, working=state.working, failed=state.failed))
