"""Routes of `/v1/keys`: API keys."""

from collections.abc import Sequence

from aiohttp import web

from gatewayctl.wire import keys as wire
from gatewayctl.wire import routes
from gatewayctl.wire.base import Outcome
from gatewayd import ids
from gatewayd.accounts.keys import Keys
from gatewayd.accounts.records import ApiKey
from gatewayd.accounts.users import Users
from gatewayd.errors import invalid
from gatewayd.http.audit import note_change
from gatewayd.http.body import read_model
from gatewayd.http.control.rows import serve
from gatewayd.http.control.transactions import WriteTransactions, control_reply, timestamp
from gatewayd.http.routes import Route


class ControlKeyRoutes:
    """Routes of API keys on the control socket."""

    def __init__(
        self, keys: Keys, users: Users, writes: WriteTransactions, clock: ids.Clock = ids.now
    ) -> None:
        self._keys = keys
        self._users = users
        self._writes = writes
        self._clock = clock

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [
            serve(routes.LIST_KEYS, self.list),
            serve(routes.CREATE_KEY, self.create),
            serve(routes.EXPLAIN_KEYS, self.why),
            serve(routes.REVOKE_KEY, self.revoke),
        ]

    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer `KeyList`; `?user=` limits it to one user."""
        ref = request.query.get("user")
        if ref is not None:
            user = await self._users.resolve(ref)
            found, emails = await self._keys.list(user.id), {user.id: user.email}
        else:
            found = await self._keys.list()
            owners = self._users.pages(list(dict.fromkeys(key.user_id for key in found)))
            emails = {user.id: user.email async for page in owners for user in page}
        return control_reply(wire.KeyList(keys=[render(key, emails.get(key.user_id, "")) for key in found]))

    async def create(self, request: web.Request) -> web.StreamResponse:
        """Take `NewKey`, answer `KeyWritten` with the value; forbidden names the missing permission."""
        wanted = await read_model(request, wire.NewKey)
        if wanted.expires_in is not None and wanted.expires_in <= 0:
            raise invalid("cannot accept expires_in: expected seconds above 0", param="expires_in")
        expires_at = None if wanted.expires_in is None else self._clock() + wanted.expires_in
        async with self._writes.block(request, "key create", f"{wanted.user} {wanted.name}") as dry_run:
            user = await self._users.resolve(wanted.user)
            key, value = await self._keys.issue(user, wanted.name, expires_at)
            note_change(request, user.email, {"id": key.id, "name": key.name, "expires_at": key.expires_at})
        # A dry run has no valid value to show.
        shown = None if dry_run else value
        return _written(key, user.email, Outcome.CREATED, dry_run=dry_run, value=shown)

    async def revoke(self, request: web.Request) -> web.StreamResponse:
        """Answer `KeyWritten` with the key before its revocation."""
        key_id = request.match_info["id"]
        async with self._writes.block(request, "key revoke", key_id) as dry_run:
            key = await self._keys.get(key_id)
            user = await self._users.get(key.user_id)
            await self._keys.revoke(key.id)
            note_change(request, user.email, {"id": key.id, "name": key.name})
        return _written(key, user.email, Outcome.REMOVED, dry_run=dry_run)

    async def why(self, request: web.Request) -> web.StreamResponse:
        """Answer `KeyReasons` for a user."""
        user = await self._users.resolve(request.match_info["ref"])
        missing = await self._keys.why(user)
        return control_reply(wire.KeyReasons(user=user.email, allowed=not missing, missing=list(missing)))


def render(key: ApiKey, email: str) -> wire.Key:
    """Return a key as its wire model."""
    return wire.Key(
        id=key.id,
        name=key.name,
        user_id=key.user_id,
        user=email,
        prefix=key.prefix,
        expires_at=timestamp(key.expires_at),
        last_used_at=timestamp(key.last_used_at),
        created_at=timestamp(key.created_at),
    )


def _written(
    key: ApiKey, email: str, outcome: Outcome, *, dry_run: bool, value: str | None = None
) -> web.Response:
    shown = render(key, email).model_dump()
    return control_reply(wire.KeyWritten(**shown, outcome=outcome, dry_run=dry_run, value=value))
