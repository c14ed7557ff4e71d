"""Routes of `/v1/users`: accounts."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from aiohttp import web

from gatewayctl.wire import routes
from gatewayctl.wire import users as wire
from gatewayctl.wire.base import Outcome
from gatewayd import ids
from gatewayd.accounts.display_identity import display_identity
from gatewayd.accounts.groups import Groups
from gatewayd.accounts.records import NewUser, Role, User, UserChange
from gatewayd.accounts.users import Users
from gatewayd.errors import ErrorKind, GatewayError, invalid
from gatewayd.http.audit import audited_user, note_change
from gatewayd.http.body import pages_reply, read_model
from gatewayd.http.control.rows import serve
from gatewayd.http.control.transactions import WriteTransactions, control_reply, find_count, timestamp
from gatewayd.http.routes import Route
from gatewayd.limits.storage_quotas import StorageQuotas
from gatewayd.scim.links import EXTERNAL_ID_FIELD, SUBJECT_FIELD, read_links


class ControlUserRoutes:
    """Routes of accounts on the control socket."""

    def __init__(
        self, users: Users, groups: Groups, writes: WriteTransactions, quotas: StorageQuotas
    ) -> None:
        self._quotas = quotas
        self._users = users
        self._groups = groups
        self._writes = writes

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [
            serve(routes.LIST_USERS, self.list),
            serve(routes.CREATE_USER, self.create),
            serve(routes.ENSURE_USER, self.ensure),
            serve(routes.GET_USER, self.show),
            serve(routes.CHANGE_USER, self.change),
            serve(routes.REMOVE_USER, self.remove),
            serve(routes.SET_PASSWORD, self.password),
        ]

    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer `UserList`; `?query=` is part of a name or e-mail, `?limit=` the largest number of
        accounts."""
        user_ids = await self._users.list_ids(request.query.get("query", ""))
        shown = user_ids[: find_count(request, "limit")]
        return await pages_reply(self._pages(shown), "users", {"total": len(user_ids)})

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer `User` for an id or e-mail, with the bytes of their files."""
        user = await self._users.resolve(request.match_info["ref"])
        row = (await render_all([user], self._users, self._groups))[0]
        storage = await self._quotas.state(user.id)
        row.storage_bytes, row.storage_left_bytes = storage.used, storage.left
        return control_reply(row)

    async def create(self, request: web.Request) -> web.StreamResponse:
        """Take `NewUser`, answer `UserWritten`, with the generated password if one was requested."""
        wanted = await read_model(request, wire.NewUser)
        password = _password(wanted)
        async with self._writes.block(request, "user create", wanted.email) as dry_run:
            user = await self._users.create(_new_user(wanted, password, existing=None))
            note_change(request, user.email, _audited(user))
            shown = password if wanted.generate_password and not dry_run else None
            return await self._written(user, Outcome.CREATED, dry_run=dry_run, password=shown)

    async def ensure(self, request: web.Request) -> web.StreamResponse:
        """Take `NewUser`, answer `UserWritten`: created, changed or unchanged."""
        wanted = await read_model(request, wire.NewUser)
        if wanted.generate_password:
            raise invalid("cannot ensure a generated password", param="generate_password")
        async with self._writes.block(request, "user ensure", wanted.email) as dry_run:
            existing = await self._find(wanted.email)
            user, outcome = await self._users.ensure(_new_user(wanted, wanted.password, existing=existing))
            note_change(
                request, user.email, _audited(user), None if existing is None else audited_user(existing)
            )
            return await self._written(user, Outcome(outcome.value), dry_run=dry_run)

    async def change(self, request: web.Request) -> web.StreamResponse:
        """Take `UserChange`, answer `UserWritten`: changed or unchanged."""
        wanted = await read_model(request, wire.UserChange)
        fields = wanted.model_dump(exclude_none=True)
        if "role" in fields:
            fields["role"] = Role(fields["role"])
        async with self._writes.block(request, "user change", request.match_info["ref"]) as dry_run:
            before = await self._users.resolve(request.match_info["ref"])
            user = await self._users.change(before.id, UserChange(**fields), None)
            note_change(request, before.email, fields, audited_user(before))
            outcome = Outcome.UNCHANGED if user == before else Outcome.CHANGED
            return await self._written(user, outcome, dry_run=dry_run)

    async def remove(self, request: web.Request) -> web.StreamResponse:
        """Answer `UserWritten` with the account before its removal."""
        async with self._writes.block(request, "user remove", request.match_info["ref"]) as dry_run:
            user = await self._users.resolve(request.match_info["ref"])
            body = await self._written(user, Outcome.REMOVED, dry_run=dry_run)
            await self._users.remove(user.id, None)
            note_change(request, user.email, before=audited_user(user))
            return body

    async def password(self, request: web.Request) -> web.StreamResponse:
        """Take `PasswordChange`, answer `UserWritten`, with the generated password if one was requested."""
        wanted = await read_model(request, wire.PasswordChange)
        password = _password(wanted)
        if password is None:
            raise invalid(
                "cannot set the password: send a password or ask for a generated one", param="password"
            )
        async with self._writes.block(request, "user password", request.match_info["ref"]) as dry_run:
            user = await self._users.resolve(request.match_info["ref"])
            await self._users.set_password(user.id, password)
            note_change(request, user.email, {"password_is_set": True})
            user = await self._users.get(user.id)
            shown = password if wanted.generate_password and not dry_run else None
            return await self._written(user, Outcome.CHANGED, dry_run=dry_run, password=shown)

    async def _pages(self, user_ids: Sequence[str]) -> AsyncIterator[Sequence[Any]]:
        """Yield pages of accounts as JSON."""
        names = {group.id: group.name for group in await self._groups.list()}
        async for page in self._users.pages(user_ids):
            rows = await _rendered(page, self._users, names)
            yield [row.model_dump(mode="json") for row in rows]

    async def _find(self, email: str) -> User | None:
        try:
            return await self._users.resolve(email)
        except GatewayError as error:
            if error.kind is not ErrorKind.NOT_FOUND:
                raise
            return None

    async def _written(
        self, user: User, outcome: Outcome, *, dry_run: bool, password: str | None = None
    ) -> web.Response:
        row = (await render_all([user], self._users, self._groups))[0]
        reply = wire.UserWritten(**row.model_dump(), outcome=outcome, dry_run=dry_run, password=password)
        return control_reply(reply)


async def render_all(found: Sequence[User], users: Users, groups: Groups) -> Sequence[wire.User]:
    """Return accounts as wire models, each with the names of its groups."""
    return await _rendered(found, users, {group.id: group.name for group in await groups.list()})


def render(user: User, groups: Sequence[str] = ()) -> wire.User:
    """Return an account as its wire model."""
    return wire.User(
        id=user.id,
        email=user.email,
        name=user.name,
        role=user.role.value,
        active=user.active,
        username=user.username,
        groups=sorted(groups),
        last_active_at=timestamp(user.last_active_at),
        created_at=timestamp(user.created_at),
        updated_at=timestamp(user.updated_at),
        user_name=display_identity(user).user_name,
        external_ids=read_links(user.scim, EXTERNAL_ID_FIELD),
        subjects=read_links(user.oauth, SUBJECT_FIELD),
    )


async def _rendered(found: Sequence[User], users: Users, names: Mapping[str, str]) -> Sequence[wire.User]:
    group_ids = await users.list_group_ids(found)
    return [
        render(user, [names[group] for group in group_ids.get(user.id, ()) if group in names])
        for user in found
    ]


def _audited(user: User) -> dict[str, Any]:
    """Return the audited values of a new account."""
    return {"name": user.name, "role": user.role.value}


def _password(wanted: wire.NewUser | wire.PasswordChange) -> str | None:
    if wanted.generate_password and wanted.password is not None:
        raise invalid("cannot generate a password: the request has one", param="generate_password")
    return ids.new_secret(12) if wanted.generate_password else wanted.password


def _new_user(wanted: wire.NewUser, password: str | None, existing: User | None) -> NewUser:
    # `ensure` keeps the absent fields; a new account gets the role user and its address as name.
    role = existing.role if existing is not None else Role.USER
    name = existing.name if existing is not None else wanted.email
    return NewUser(
        email=wanted.email,
        name=wanted.name if wanted.name is not None else name,
        role=Role(wanted.role) if wanted.role is not None else role,
        password=password,
        username=wanted.username,
    )
