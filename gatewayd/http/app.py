"""The two applications, assembled from route rows."""

from collections.abc import Iterable

from aiohttp import web

from gatewayd.http.connections.capacity import ROOM, Room, public_places
from gatewayd.http.connections.minimum_rate import RATES, Rates
from gatewayd.http.connections.request_heads import expect, hold
from gatewayd.http.middleware import Wrapper
from gatewayd.http.routes import Access, Handler, Route
from gatewayd.http.traceback_limit import TRACES, Traces
from gatewayd.scim.renderer import ROOT

Application = web.Application


def build(
    edge: Wrapper,
    rows: Iterable[Route],
    *,
    body_limit: int,
    rates: Rates | None = None,
    room: Room | None = None,
) -> web.Application:
    """Return an application: each row under both spellings of a trailing slash, HEAD beside GET.

    `rates` are what peers must keep up with, `room` is what its connections share.
    """
    app = web.Application(client_max_size=body_limit, middlewares=[edge.middleware])
    app[TRACES] = Traces()
    app[RATES] = rates or Rates()
    app[ROOM] = Room(public_places()) if room is None else room
    for row in rows:
        register(app, row, edge.wrap(row))
    return app


def register(app: web.Application, row: Route, handler: Handler) -> None:
    """Add one row to an application."""
    invite = hold if row.invites else expect
    doubled = (doubled_slashes(row.path),) if row.access is Access.SCIM else ()
    for path in (*spellings(row.path), *doubled):
        resource = app.router.add_resource(path)
        resource.add_route(row.method, handler, expect_handler=invite)
        if row.method == "GET":
            resource.add_route("HEAD", handler, expect_handler=invite)


def spellings(path: str) -> tuple[str, ...]:
    """Return the path with and without its trailing slash; a path that ends in a wildcard stands alone."""
    if path == "/" or path.endswith(":.+}"):
        return (path,)
    bare = path.rstrip("/")
    return (bare, f"{bare}/")


def doubled_slashes(path: str) -> str:
    """Return the path of a provisioning row with any number of slashes for each one below the base address.

    A provider appends `/Users` to a base address that ends in a slash. The row stays the same, and with it
    who is let in: no path is rewritten after it was checked.
    """
    parts = path.removeprefix(ROOT).split("/")[1:]
    repeated = "".join(f"{{slash{place}:/+}}{part}" for place, part in enumerate(parts))
    return f"{ROOT}{repeated}{{slash:/*}}"
