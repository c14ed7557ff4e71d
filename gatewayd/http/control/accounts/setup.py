"""Route of `/v1/setup`: the first administrator."""

from collections.abc import Sequence

from aiohttp import web

from gatewayctl.wire import routes
from gatewayctl.wire import setup as wire
from gatewayd.accounts.setup import Setup
from gatewayd.http.audit import note_change
from gatewayd.http.body import read_model
from gatewayd.http.control.rows import serve
from gatewayd.http.control.transactions import WriteTransactions, control_reply
from gatewayd.http.routes import Route


class SetupRoutes:
    """Route that creates the first administrator."""

    def __init__(self, setup: Setup, writes: WriteTransactions) -> None:
        self._setup = setup
        self._writes = writes

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [
            serve(routes.RUN_SETUP, self.run),
        ]

    async def run(self, request: web.Request) -> web.StreamResponse:
        """Take `Setup`, answer `SetupReply` with the key; conflict when an account exists."""
        wanted = await read_model(request, wire.Setup)
        async with self._writes.block(request, "setup", wanted.email) as dry_run:
            made = await self._setup.run(wanted.email, wanted.name, wanted.password, wanted.group)
            note_change(request, made.user.email, {"role": made.user.role.value, "group": made.group.name})
        return control_reply(
            wire.SetupReply(
                user_id=made.user.id,
                email=made.user.email,
                name=made.user.name,
                group=made.group.name,
                key_name=made.key.name,
                key=None if dry_run else made.key_value,
                password=None if dry_run else made.password_value,
                dry_run=dry_run,
            )
        )
