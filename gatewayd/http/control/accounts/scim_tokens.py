"""Routes of `/v1/scim-token`: the token of SCIM clients."""

from collections.abc import Sequence

from aiohttp import web

from gatewayctl.wire import routes
from gatewayctl.wire import scim as wire
from gatewayctl.wire.base import Outcome
from gatewayd.http.control.rows import serve
from gatewayd.http.control.transactions import audit, control_reply, is_set, timestamp
from gatewayd.http.routes import Route
from gatewayd.scim.tokens.rotation import ScimTokenKeeper, TokenReport, fingerprint


class ScimTokenRoutes:
    """Routes of the SCIM token on the control socket."""

    def __init__(self, keeper: ScimTokenKeeper) -> None:
        self._keeper = keeper

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [
            serve(routes.GET_SCIM_TOKEN, self.show),
            serve(routes.CREATE_SCIM_TOKEN, self.create),
            serve(routes.ROTATE_SCIM_TOKEN, self.rotate),
            serve(routes.RETIRE_SCIM_TOKEN, self.retire),
        ]

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer `ScimToken`, without the value."""
        return control_reply(render(await self._keeper.describe()))

    async def create(self, request: web.Request) -> web.StreamResponse:
        """Answer `ScimTokenWritten` with the value; conflict when there is a token."""
        dry_run = is_set(request, "dry_run")
        value = await self._keeper.create(dry_run=dry_run)
        return await self._issued(request, "scim-token create", Outcome.CREATED, value, dry_run=dry_run)

    async def rotate(self, request: web.Request) -> web.StreamResponse:
        """Answer `ScimTokenWritten` with the new value; conflict unless there is exactly one token."""
        dry_run = is_set(request, "dry_run")
        value = await self._keeper.rotate(dry_run=dry_run)
        return await self._issued(request, "scim-token rotate", Outcome.CHANGED, value, dry_run=dry_run)

    async def retire(self, request: web.Request) -> web.StreamResponse:
        """Answer `ScimTokenWritten`; conflict unless there are two tokens."""
        dry_run = is_set(request, "dry_run")
        dropped = await self._keeper.retire(dry_run=dry_run)
        if not dry_run:
            audit(request, "scim-token retire", dropped)
        return await self._written(Outcome.REMOVED, dry_run=dry_run)

    async def _issued(
        self, request: web.Request, action: str, outcome: Outcome, value: str, *, dry_run: bool
    ) -> web.Response:
        if dry_run:
            return await self._written(outcome, dry_run=True)
        audit(request, action, fingerprint(value))
        return await self._written(outcome, dry_run=False, value=value)

    async def _written(self, outcome: Outcome, *, dry_run: bool, value: str | None = None) -> web.Response:
        shown = render(await self._keeper.describe()).model_dump()
        return control_reply(wire.ScimTokenWritten(**shown, outcome=outcome, dry_run=dry_run, value=value))


def render(report: TokenReport) -> wire.ScimToken:
    """Return the tokens as their wire model."""
    return wire.ScimToken(
        origin=report.origin,
        external=report.is_external,
        file=str(report.path),
        count=len(report.fingerprints),
        fingerprints=list(report.fingerprints),
        written_at=timestamp(report.written_at),
        stale=report.is_stale,
        enabled=report.enabled,
    )
