"""Routes of the status of the gateway and of provisioning, for administrators."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from aiohttp import web

from gatewayd import ids
from gatewayd.http.body import json_reply
from gatewayd.http.daemon_state import DaemonFacts, DaemonMonitor, SourceStates
from gatewayd.http.reply_schemas import administration
from gatewayd.http.routes import Route, RouteAccess, RouteGroup
from gatewayd.http.schemas import answers
from gatewayd.scim.interfaces import ScimDirectory
from gatewayd.scim.request_log import LoggedRequest, ScimRequestLog
from gatewayd.scim.tokens.rotation import ScimTokenKeeper

_row = RouteGroup("/api/v1/configs", "status").row

MAX_SHOWN_REQUESTS: Final = 20
"""Number of requests of identity providers in the status of SCIM."""


@dataclass(frozen=True, slots=True)
class StatusServices:
    """The services that know the state; `provider` is the SCIM provider, "" for none."""

    monitor: DaemonMonitor
    sources: SourceStates
    facts: DaemonFacts
    keeper: ScimTokenKeeper
    directory: ScimDirectory
    activity: ScimRequestLog
    provider: str


class StatusRoutes:
    """Routes of the status. The construction of the object begins the uptime."""

    def __init__(self, services: StatusServices, version: str, clock: ids.Clock | None = None) -> None:
        self._services = services
        self._version = version
        self._clock = clock or ids.steady_clock()
        self._started_at = self._clock()

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [
            _row("GET", "/status", self.status, RouteAccess.ADMIN, "Show the status of the gateway"),
            _row("GET", "/scim", self.scim, RouteAccess.ADMIN, "Show the status of provisioning"),
        ]

    @answers(administration.gateway_status)
    async def status(self, request: web.Request) -> web.StreamResponse:
        """Answer what `gatewayctl health` shows: version, uptime, database, index and sources.

        `status` is pass, warn when a source has a problem or a part is degraded, or fail when the database
        does not answer.
        """
        known = self._services
        problem = await known.monitor.database_problem()
        states = [dict(each) for each in known.sources.source_states()]
        stalls, longest = known.monitor.stalls
        recall, ef_search = known.facts.find_recall() or (None, None)
        cache = known.facts.find_cache()
        degraded = list(known.monitor.degraded)
        is_warned = bool(degraded) or any(each.get("problem") for each in (*states, cache or {}))
        shown: dict[str, Any] = {
            "status": "fail" if problem is not None else "warn" if is_warned else "pass",
            "version": self._version,
            "started_at": self._started_at,
            "uptime_seconds": self._clock() - self._started_at,
            "database": problem is None,
            "database_problem": None if problem is None else problem.full_message,
            "degraded": degraded,
            "sources": states,
            "extraction_sandbox": known.facts.extraction_sandbox,
            "vector_index": known.facts.vector_index,
            "vector_recall": None if recall is None else round(recall, 3),
            "vector_ef_search": ef_search,
            "vector_cache": None if cache is None else dict(cache),
            "stalls": stalls,
            "longest_stall_ms": round(longest * 1000),
        }
        return json_reply(shown)

    @answers(administration.scim_status)
    async def scim(self, request: web.Request) -> web.StreamResponse:
        """Answer what `gatewayctl scim status` shows, and the last requests of identity providers.

        Tokens have only their fingerprints. Nothing here can be changed: SCIM is set in the settings.
        """
        known = self._services
        token = await known.keeper.describe()
        seen = [_render(each) for each in known.activity.list()]
        shown: dict[str, Any] = {
            "enabled": token.enabled,
            "provider": known.provider,
            "token_origin": token.origin,
            "token_fingerprints": list(token.fingerprints),
            "token_written_at": token.written_at,
            "token_stale": token.is_stale,
            **asdict(await known.directory.count()),
            "last_request": next(iter(seen), None),
            "last_refused": next((each for each in seen if each["status"] >= 400), None),
            "requests": seen[:MAX_SHOWN_REQUESTS],
        }
        return json_reply(shown)


def _render(seen: LoggedRequest) -> dict[str, Any]:
    return asdict(seen)
