"""Route of `/v1/garbage`: removal of what nothing needs."""

from collections.abc import Sequence

from aiohttp import web

from gatewayctl.wire import routes
from gatewayctl.wire.upkeep import garbage as wire
from gatewayd.http.audit import note_change
from gatewayd.http.body import read_model
from gatewayd.http.control.rows import serve
from gatewayd.http.control.transactions import audit, control_reply, is_set
from gatewayd.http.routes import Route
from gatewayd.ingest.garbage import GarbageCollector


class ControlGarbageRoutes:
    """Route of the collection of garbage on the control socket."""

    def __init__(self, garbage: GarbageCollector) -> None:
        self._garbage = garbage

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [serve(routes.COLLECT_GARBAGE, self.collect)]

    async def collect(self, request: web.Request) -> web.StreamResponse:
        """Take `GarbageCollection`, answer `GarbageReport`."""
        wanted = await read_model(request, wire.GarbageCollection)
        dry_run = is_set(request, "dry_run")
        work = self._garbage.find if dry_run else self._garbage.collect
        counts = await work(wanted.older_than)
        if not dry_run:
            note_change(request, "garbage", {each.kind: each.count for each in counts if each.count})
            audit(request, "gc", "all")
        shown = [wire.GarbageCount(kind=each.kind, count=each.count, bytes=each.size) for each in counts]
        return control_reply(wire.GarbageReport(dry_run=dry_run, removed=shown))
