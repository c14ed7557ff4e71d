"""Builder of an aiohttp application from route rows."""

from collections.abc import Iterable

from aiohttp import web

from gatewayd.audit.trail import AuditTrail
from gatewayd.http.audit import AUDIT_TRAIL
from gatewayd.http.connections.capacity import DESCRIPTOR_BUDGET, DescriptorBudget, public_descriptor_limits
from gatewayd.http.connections.fast_path import FAST_PATH
from gatewayd.http.connections.minimum_rate import RATES, MinimumRates
from gatewayd.http.connections.request_heads import defer_100_continue, send_100_continue
from gatewayd.http.fast_path import FastRows
from gatewayd.http.middleware import EdgeMiddleware
from gatewayd.http.observation import RequestObservation
from gatewayd.http.routes import Handler, Route, RouteAccess
from gatewayd.http.traceback_limit import TRACES, TracebackLimiter
from gatewayd.scim.renderer import ROOT

Application = web.Application


def build_application(
    edge: EdgeMiddleware,
    rows: Iterable[Route],
    *,
    body_limit: int,
    rates: MinimumRates | None = None,
    room: DescriptorBudget | None = None,
    observation: RequestObservation | None = None,
    trail: AuditTrail | None = None,
    fast_rows: FastRows | None = None,
) -> web.Application:
    """Return an application that serves each row with and without a trailing slash, and HEAD beside GET.

    `rates` are the minimum rates of peers, `room` is the descriptor budget of the connections.
    `observation` sees every request, `trail` takes the rows of the audit log. `fast_rows`, which need an
    observation, answer plain requests without a task.
    """
    around = [] if observation is None else [observation.middleware]
    app = web.Application(client_max_size=body_limit, middlewares=[*around, edge.middleware])
    app[TRACES] = TracebackLimiter()
    app[RATES] = rates or MinimumRates()
    app[DESCRIPTOR_BUDGET] = DescriptorBudget(public_descriptor_limits()) if room is None else room
    if trail is not None:
        app[AUDIT_TRAIL] = trail
    if fast_rows is not None:
        app[FAST_PATH] = fast_rows
    for row in rows:
        handler = edge.wrap(row)
        add_route(app, row, handler)
        if observation is not None:
            observation.add(handler, row.path, row.method)
        if fast_rows is not None:
            fast_rows.add(row, handler, path_variants(row.path))
    return app


def add_route(app: web.Application, row: Route, handler: Handler) -> None:
    """Add one row to an application."""
    invite = defer_100_continue if row.invites else send_100_continue
    repeated = (with_repeated_slashes(row.path),) if row.access is RouteAccess.SCIM else ()
    for path in (*path_variants(row.path), *repeated):
        resource = app.router.add_resource(path)
        resource.add_route(row.method, handler, expect_handler=invite)
        if row.method == "GET":
            resource.add_route("HEAD", handler, expect_handler=invite)


def path_variants(path: str) -> tuple[str, ...]:
    """Return the path with and without its trailing slash; a path that ends in a wildcard stands alone."""
    if path == "/" or path.endswith(":.+}"):
        return (path,)
    bare = path.rstrip("/")
    return (bare, f"{bare}/")


def with_repeated_slashes(path: str) -> str:
    """Return the path of a SCIM row with a pattern for repeated slashes below the base address.

    A provider appends `/Users` to a base address that ends in a slash. The route keeps its access policy: no
    path is rewritten after its check.
    """
    parts = path.removeprefix(ROOT).split("/")[1:]
    repeated = "".join(f"{{slash{place}:/+}}{part}" for place, part in enumerate(parts))
    return f"{ROOT}{repeated}{{slash:/*}}"
