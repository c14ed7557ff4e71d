"""Routes of `/v1/scim`: the state of provisioning, and the last requests of identity providers."""

from collections.abc import Sequence
from dataclasses import asdict

from aiohttp import web

from gatewayctl.wire import routes
from gatewayctl.wire import scim as wire
from gatewayd.http.control.rows import serve
from gatewayd.http.control.transactions import control_reply, find_count, timestamp
from gatewayd.http.routes import Route
from gatewayd.scim.interfaces import ScimDirectory
from gatewayd.scim.request_log import LoggedRequest, ScimRequestLog
from gatewayd.scim.tokens.rotation import ScimTokenKeeper


class ScimStateRoutes:
    """Routes of provisioning; `provider` selects the external ids that are shown, "" for none."""

    def __init__(
        self, keeper: ScimTokenKeeper, directory: ScimDirectory, activity: ScimRequestLog, provider: str
    ) -> None:
        self._keeper = keeper
        self._directory = directory
        self._activity = activity
        self._provider = provider

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [
            serve(routes.GET_SCIM_STATUS, self.show),
            serve(routes.LIST_SCIM_REQUESTS, self.log),
        ]

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer `ScimStatus`."""
        token = await self._keeper.describe()
        counts = await self._directory.count()
        seen = [render(each) for each in self._activity.list()]
        return control_reply(
            wire.ScimStatus(
                enabled=token.enabled,
                provider=self._provider,
                token_count=len(token.fingerprints),
                token_origin=token.origin,
                **asdict(counts),
                last_request=next(iter(seen), None),
                last_refused=next((each for each in seen if each.status >= 400), None),
            )
        )

    async def log(self, request: web.Request) -> web.StreamResponse:
        """Answer `ScimLog`; `?limit=` is the largest number of requests."""
        limit = find_count(request, "limit")
        return control_reply(wire.ScimLog(requests=[render(each) for each in self._activity.list()[:limit]]))


def render(seen: LoggedRequest) -> wire.ScimRequest:
    """Return a request as its wire model."""
    return wire.ScimRequest(
        at=timestamp(seen.at) or "",
        method=seen.method,
        path=seen.path,
        status=seen.status,
        address=seen.address,
        request_id=seen.request_id,
        detail=seen.detail,
    )
