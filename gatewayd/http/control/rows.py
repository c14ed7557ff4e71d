"""Constructor of the route rows of the control socket from the route table of `gatewayctl.wire`."""

from collections.abc import Sequence
from typing import Any

from gatewayctl.wire.endpoint import Endpoint
from gatewayctl.wire.routes import ENDPOINTS
from gatewayd.http.connections.request_uses import RequestUse
from gatewayd.http.routes import Handler, Route, RouteAccess, RouteDialect


def serve(
    endpoint: Endpoint[Any, Any],
    handler: Handler,
    *,
    interruptible: bool = False,
    invites: bool = False,
    use: RequestUse = RequestUse.REQUEST,
) -> Route:
    """Return the row of an endpoint; see `Route` for the rest."""
    return Route(
        endpoint.method,
        endpoint.path,
        handler,
        RouteAccess.CONTROL,
        endpoint.summary,
        RouteDialect.CONTROL,
        interruptible=interruptible,
        invites=invites,
        use=use,
    )


def check_complete(rows: Sequence[Route]) -> Sequence[Route]:
    """Return the rows; RuntimeError unless each endpoint of the route table has exactly one handler."""
    served = [f"{row.method} {row.path}" for row in rows]
    known = {str(endpoint) for endpoint in ENDPOINTS}
    if unknown := sorted(set(served) - known):
        raise RuntimeError(f"cannot serve the control API: gatewayctl.wire.routes lacks {', '.join(unknown)}")
    if missing := sorted(known - set(served)):
        raise RuntimeError(f"cannot serve the control API: no handler for {', '.join(missing)}")
    if twice := sorted({row for row in served if served.count(row) > 1}):
        raise RuntimeError(f"cannot serve the control API: two handlers for {', '.join(twice)}")
    return rows
