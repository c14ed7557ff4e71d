"""Route of `/v1/database`: the integrity check of the database."""

from collections.abc import Sequence
from typing import Protocol

from aiohttp import web

from gatewayctl.wire import database as wire
from gatewayctl.wire import routes
from gatewayd.http.body import read_model
from gatewayd.http.control.rows import serve
from gatewayd.http.control.transactions import control_reply
from gatewayd.http.routes import Route


class DamageChecker(Protocol):
    """Checks the integrity of the database."""

    async def run(self, seconds: float) -> Sequence[str]:
        """Return a sentence for each damage; timeout after `seconds`, conflict while another check runs."""
        ...


class ControlDatabaseRoutes:
    """Route of the database check on the control socket."""

    def __init__(self, check: DamageChecker) -> None:
        self._check = check

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [
            serve(routes.CHECK_DATABASE, self.check),
        ]

    async def check(self, request: web.Request) -> web.StreamResponse:
        """Take `DatabaseCheck`, answer `DatabaseState`."""
        wanted = await read_model(request, wire.DatabaseCheck)
        problems = list(await self._check.run(wanted.timeout))
        return control_reply(wire.DatabaseState(status="damaged" if problems else "sound", problems=problems))
