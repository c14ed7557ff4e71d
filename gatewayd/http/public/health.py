"""Routes of health, readiness, the version and the public configuration."""

from collections.abc import Sequence
from typing import Any, Final, Protocol

import orjson
from aiohttp import web

from gatewayd.accounts.records import Actor
from gatewayd.errors import NO_HEADERS, GatewayError
from gatewayd.http.body import json_reply
from gatewayd.http.connections.request_uses import RequestUse
from gatewayd.http.context import find_actor
from gatewayd.http.reply_schemas import service
from gatewayd.http.responses.fast_response import FastReply
from gatewayd.http.responses.packed_json import packed
from gatewayd.http.routes import Route, RouteAccess, RouteGroup
from gatewayd.http.schemas import answers

_row = RouteGroup("", "health").row

WELL: Final = {"status": True}
WELL_AT_ONCE: Final = FastReply(orjson.dumps(WELL), NO_HEADERS)


class HealthProbe(Protocol):
    """Health of the daemon. It answers from memory, so that a probe costs the same under load."""

    @property
    def ready(self) -> bool:
        """Whether the start has ended and no stop has begun."""
        ...

    @property
    def degraded(self) -> Sequence[str]:
        """Names of the parts that do not work just now, while requests are served all the same."""
        ...

    @property
    def is_well(self) -> bool:
        """Whether `database_problem` returns None without a wait."""
        ...

    async def database_problem(self) -> GatewayError | None:
        """Return the failure of a database that does not answer in time, None for a working one."""
        ...


class PublicConfig(Protocol):
    """The public configuration of the gateway."""

    async def describe(self, actor: Actor | None) -> dict[str, Any]:
        """Return the body of `/api/config` for a caller."""
        ...


class HealthRoutes:
    """Routes of health checks and the public configuration."""

    def __init__(self, probe: HealthProbe, config: PublicConfig, version: str) -> None:
        self._probe = probe
        self._config = config
        self._version = version

    def routes(self) -> Sequence[Route]:
        """Return the rows, which need no credential."""
        public = RouteAccess.PUBLIC
        return [
            _row(
                "GET",
                "/health",
                self.health,
                public,
                "Report whether the gateway works",
                use=RequestUse.PROBE,
                ready=self.find_health,
            ),
            _row(
                "GET",
                "/health/db",
                self.health,
                public,
                "Report whether the database answers",
                use=RequestUse.PROBE,
                ready=self.find_health,
            ),
            _row(
                "GET",
                "/livez",
                self.live,
                public,
                "Report whether the process responds",
                use=RequestUse.PROBE,
            ),
            _row(
                "GET",
                "/readyz",
                self.readiness,
                public,
                "Report whether the gateway accepts requests",
                use=RequestUse.PROBE,
            ),
            _row(
                "GET",
                "/ready",
                self.readiness,
                public,
                "Report whether the gateway accepts requests",
                use=RequestUse.PROBE,
            ),
            _row("GET", "/api/version", self.version, public, "Show the version"),
            _row("GET", "/api/config", self.config, RouteAccess.OPTIONAL, "Show the public configuration"),
        ]

    @answers(service.status)
    async def health(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"status": true}`, or 503 with a sentence in `detail`."""
        problem = await self._probe.database_problem()
        if problem is not None:
            return json_reply({"status": False, "detail": problem.message}, status=503)
        return json_reply(WELL)

    def find_health(self) -> FastReply | None:
        """Answer as `health` does for a database that has answered a moment ago, as `routes.ReadyReply`."""
        return WELL_AT_ONCE if self._probe.is_well else None

    @answers(service.status)
    async def live(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"status": true}` while the event loop runs."""
        return json_reply(WELL)

    @answers(service.readiness)
    async def readiness(self, request: web.Request) -> web.StreamResponse:
        """Answer 200 when ready, 503 while starting, stopping, draining or without a database.

        `degraded` names the parts that do not work without Redis.
        """
        problem = await self._probe.database_problem()
        detail = None if problem is None else problem.message
        if not self._probe.ready:
            detail = "not ready: starting, stopping or draining"
        if detail is not None:
            return json_reply({"status": False, "detail": detail}, status=503)
        degraded = self._probe.degraded
        return json_reply({**WELL, "degraded": degraded} if degraded else WELL)

    @answers(service.version)
    async def version(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"version", "deployment_id"}`."""
        return json_reply({"version": self._version, "deployment_id": ""})

    @answers(service.client_config)
    async def config(self, request: web.Request) -> web.StreamResponse:
        """Answer the public configuration; a signed-in account gets more of it."""
        return await packed(request, json_reply(await self._config.describe(find_actor(request))))
