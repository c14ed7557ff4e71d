"""`/v1/queue`: how much is to be processed."""

from collections.abc import Sequence

from aiohttp import web

from gatewayctl.wire import files as wire
from gatewayd.http.control.writes import answer
from gatewayd.http.routes import Access, Dialect, Route
from gatewayd.ingest.queue import IngestQueue


class QueueRoutes:
    """The ingestion queue on the control socket."""

    def __init__(self, queue: IngestQueue) -> None:
        self._queue = queue

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [
            Route("GET", "/v1/queue", self.show, Access.CONTROL, "Show the queue", Dialect.CONTROL),
        ]

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer `Queue`."""
        state = await self._queue.state()
        return answer(wire.Queue(waiting=state.waiting, working=state.working, failed=state.failed))
