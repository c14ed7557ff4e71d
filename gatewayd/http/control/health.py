"""Route of `/v1/health`: the state of the daemon."""

from collections.abc import Sequence

from aiohttp import web

from gatewayctl.wire import health as wire
from gatewayctl.wire import routes
from gatewayctl.wire.base import VERSION
from gatewayd import ids
from gatewayd.http.connections.request_uses import RequestUse
from gatewayd.http.control.rows import serve
from gatewayd.http.control.transactions import control_reply, timestamp
from gatewayd.http.daemon_state import DaemonFacts, DaemonMonitor, SourceStates
from gatewayd.http.routes import Route


class ControlHealthRoutes:
    """Route of the daemon's state. The construction of the object begins the uptime."""

    def __init__(
        self,
        monitor: DaemonMonitor,
        sources: SourceStates,
        version: str,
        workings: DaemonFacts,
        clock: ids.Clock | None = None,
    ) -> None:
        self._monitor = monitor
        self._sources = sources
        self._version = version
        self._workings = workings
        self._clock = clock or ids.steady_clock()
        self._started_at = self._clock()

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [
            serve(routes.GET_HEALTH, self.show, use=RequestUse.PROBE),
        ]

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer `Health`."""
        problem = await self._monitor.database_problem()
        states = [wire.SourceState.model_validate(state) for state in self._sources.source_states()]
        stalls, longest_stall = self._monitor.stalls
        recall, ef_search = self._workings.find_recall() or (None, None)
        cache = self._vector_cache()
        problems = [*(state.problem for state in states), cache.problem if cache else None]
        degraded = self._monitor.degraded
        is_warned = bool(degraded) or any(each is not None for each in problems)
        return control_reply(
            wire.Health(
                status="fail" if problem is not None else "warn" if is_warned else "pass",
                version=self._version,
                protocol=VERSION,
                started_at=timestamp(self._started_at),
                uptime_seconds=self._clock() - self._started_at,
                database=problem is None,
                sources=states,
                extraction_sandbox=self._workings.extraction_sandbox,
                vector_index=self._workings.vector_index,
                vector_recall=None if recall is None else round(recall, 3),
                vector_ef_search=ef_search,
                vector_cache=cache,
                stalls=stalls,
                longest_stall_ms=round(longest_stall * 1000),
                database_problem=None if problem is None else problem.full_message,
                degraded=list(degraded),
            )
        )

    def _vector_cache(self) -> wire.VectorCache | None:
        state = self._workings.find_cache()
        return None if state is None else wire.VectorCache.model_validate(state)
