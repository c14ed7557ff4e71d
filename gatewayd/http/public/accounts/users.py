"""Routes of `/api/v1/users`: accounts."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from aiohttp import web

from gatewayd import ids
from gatewayd.accounts.groups import Groups
from gatewayd.accounts.permissions import require
from gatewayd.accounts.records import Role, User, UserChange
from gatewayd.accounts.serializers import render_groups
from gatewayd.accounts.sessions import Sessions
from gatewayd.accounts.texts import email_key
from gatewayd.accounts.users import Users
from gatewayd.http.audit import audited_user, note_change
from gatewayd.http.body import RequestBody, json_reply, pages_reply, read_model, read_object
from gatewayd.http.context import actor
from gatewayd.http.public.accounts.confirmation import check_confirmed
from gatewayd.http.public.accounts.serializers import (
    USERS_QUERY,
    is_active,
    parse_user_listing,
    render_group_name,
    render_user_info,
    render_whole_user,
)
from gatewayd.http.reply_schemas import accounts
from gatewayd.http.routes import Route, RouteAccess, RouteGroup
from gatewayd.http.schemas import OBJECT, OBJECT_OR_NULL, TRUE, answers, listed

PREFIX = "/api/v1/users"
_row = RouteGroup(PREFIX, "users").row


class UserBody(RequestBody):
    """A change of an account. Absent and null fields and an empty password keep the values.

    `active` false deactivates the account: its sessions end, and its keys are refused.
    """

    role: Role | None = None
    active: bool | None = None
    name: str | None = None
    email: str | None = None
    profile_image_url: str | None = None
    password: str | None = None


class RoleBody(RequestBody):
    """The new role of an account."""

    id: str
    role: Role


class UserRoutes:
    """Routes of accounts and of the settings that each user stores."""

    def __init__(self, users: Users, groups: Groups, sessions: Sessions, clock: ids.Clock = ids.now) -> None:
        self._users = users
        self._sessions = sessions
        self._groups = groups
        self._clock = clock

    def routes(self) -> Sequence[Route]:
        """Return the rows; fixed paths precede those with an id."""
        admin, verified = RouteAccess.ADMIN, RouteAccess.VERIFIED
        return [
            _row("GET", "/", self.list, admin, "List accounts"),
            _row("GET", "/all", self.list_all, admin, "List all accounts"),
            _row("GET", "/search", self.search, verified, "Search accounts"),
            _row("GET", "/groups", self.own_groups, verified, "List the caller's groups"),
            _row("GET", "/user/settings", self.settings, verified, "Show the caller's settings"),
            _row(
                "POST",
                "/user/settings/update",
                self.change_settings,
                verified,
                "Change the caller's settings",
            ),
            _row(
                "GET", "/user/info", self.info, verified, "Show the object that scripts store for the caller"
            ),
            _row(
                "POST",
                "/user/info/update",
                self.change_info,
                verified,
                "Change the object that scripts store for the caller",
            ),
            _row("POST", "/update/role", self.change_role, admin, "Change the role of an account", RoleBody),
            _row("GET", "/{id}", self.show, admin, "Show an account"),
            _row("GET", "/{id}/info", self.show_info, verified, "Show the public fields of an account"),
            _row("GET", "/{id}/active", self.show_active, verified, "Report whether an account is active"),
            _row("GET", "/{id}/groups", self.show_groups, admin, "List the groups of an account"),
            _row("POST", "/{id}/update", self.change, admin, "Change an account", UserBody),
            _row("DELETE", "/{id}", self.remove, admin, "Delete an account"),
        ]

    @answers(accounts.users, query=USERS_QUERY)
    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"users": [User + "group_ids"], "total"}`, a page of 30."""
        users, total = await self._users.list(**parse_user_listing(request.query))
        groups = await self._users.list_group_ids(users)
        rows = [{**render_whole_user(user), "group_ids": list(groups.get(user.id, ()))} for user in users]
        return json_reply({"users": rows, "total": total})

    @answers(accounts.user_infos)
    async def list_all(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"users": [UserInfo], "total"}`, all of them."""
        user_ids = await self._users.list_ids()
        return await pages_reply(self._infos(user_ids), "users", {"total": len(user_ids)})

    async def _infos(self, user_ids: Sequence[str]) -> AsyncIterator[Sequence[dict[str, Any]]]:
        """Yield pages of UserInfo, each with the groups of the account."""
        named = {group.id: group for group in await self._groups.list()}
        now = self._clock()
        async for page in self._users.pages(user_ids):
            group_ids = await self._users.list_group_ids(page)
            yield [
                render_user_info(
                    user, now, [named[one] for one in group_ids.get(user.id, ()) if one in named]
                )
                for user in page
            ]

    @answers(accounts.user_infos, query=USERS_QUERY)
    async def search(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"users": [UserInfo], "total"}`, a page of 30."""
        users, total = await self._users.list(**parse_user_listing(request.query))
        now = self._clock()
        return json_reply({"users": [render_user_info(user, now) for user in users], "total": total})

    @answers(listed(accounts.group))
    async def own_groups(self, request: web.Request) -> web.StreamResponse:
        """Answer the groups of the caller."""
        groups = await self._groups.list(user_id=actor(request).user_id)
        return json_reply(await render_groups(groups, self._groups))

    @answers(OBJECT_OR_NULL)
    async def settings(self, request: web.Request) -> web.StreamResponse:
        """Answer the object that clients store for the caller, or null."""
        return json_reply((await self._users.get(actor(request).user_id)).settings)

    @answers(OBJECT)
    async def change_settings(self, request: web.Request) -> web.StreamResponse:
        """An object -> the settings with its members merged in; 403 without the permission
        settings.interface."""
        require(actor(request), "settings", "interface")
        user = await self._change_own(request, UserChange(settings=await read_object(request)))
        return json_reply(user.settings)

    @answers(OBJECT_OR_NULL)
    async def info(self, request: web.Request) -> web.StreamResponse:
        """Answer the object that scripts store for the caller, or null."""
        return json_reply((await self._users.get(actor(request).user_id)).info)

    @answers(OBJECT)
    async def change_info(self, request: web.Request) -> web.StreamResponse:
        """An object -> the stored object with the new members merged in."""
        user = await self._change_own(request, UserChange(info=await read_object(request)))
        return json_reply(user.info)

    @answers(accounts.user)
    async def change_role(self, request: web.Request) -> web.StreamResponse:
        """`{"id", "role"}` -> User."""
        form = await read_model(request, RoleBody)
        before = audited_user(await self._users.get(form.id))
        user = await self._users.change_as_shown(form.id, UserChange(role=form.role), actor(request))
        note_change(request, user.email, {"role": form.role}, before)
        return json_reply(render_whole_user(user))

    @answers(accounts.shown_user)
    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer `{...User, "groups": [{"id", "name"}], "is_active"}`; 404 for an unknown id."""
        user = await self._users.get(request.match_info["id"])
        groups = await self._groups.list(user_id=user.id)
        names = [render_group_name(group) for group in groups]
        return json_reply(
            {**render_whole_user(user), "groups": names, "is_active": is_active(user, self._clock())}
        )

    @answers(accounts.user_info)
    async def show_info(self, request: web.Request) -> web.StreamResponse:
        """Answer UserInfo; 404 for an unknown id."""
        user = await self._users.get(request.match_info["id"])
        return json_reply(render_user_info(user, self._clock()))

    @answers(accounts.activity)
    async def show_active(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"active"}`; 404 for an unknown id."""
        user = await self._users.get(request.match_info["id"])
        return json_reply({"active": is_active(user, self._clock())})

    @answers(listed(accounts.group))
    async def show_groups(self, request: web.Request) -> web.StreamResponse:
        """Answer the groups of an account; 404 for an unknown id."""
        user = await self._users.get(request.match_info["id"])
        return json_reply(await render_groups(await self._groups.list(user_id=user.id), self._groups))

    @answers(accounts.user)
    async def change(self, request: web.Request) -> web.StreamResponse:
        """`{"role"?, "name"?, "email"?, "profile_image_url"?, "password"?, "active"?}` -> User.

        403 for a change of the primary administrator by others and for the caller's own role, 409 for an
        e-mail in use. 403 with the code `confirmation_needed` for the caller's own e-mail unless the session
        began or was confirmed at most ten minutes ago.
        """
        form = await read_model(request, UserBody)
        caller = actor(request)
        is_own = request.match_info["id"] == caller.user_id
        if is_own and form.email is not None and email_key(form.email) != caller.user.email:
            await check_confirmed(self._sessions, caller, "change your own e-mail address")
        change = UserChange(
            email=form.email,
            name=form.name,
            role=form.role,
            active=form.active,
            profile_image_url=form.profile_image_url,
            # Clients send an empty password to keep the current one.
            password=form.password or None,
        )
        before = audited_user(await self._users.get(request.match_info["id"]))
        user = await self._users.change_as_shown(request.match_info["id"], change, caller)
        is_set = True if form.password else None
        values = form.model_dump(include={"role", "name", "email", "active"})
        note_change(request, user.email, {**values, "password_is_set": is_set}, before)
        return json_reply(render_whole_user(user))

    @answers(TRUE)
    async def remove(self, request: web.Request) -> web.StreamResponse:
        """Answer true; 403 for the primary administrator and the caller itself, 404 for an unknown id."""
        user = await self._users.get(request.match_info["id"])
        await self._users.remove(user.id, actor(request))
        note_change(request, user.email, before=audited_user(user))
        return json_reply(data=True)

    async def _change_own(self, request: web.Request, change: UserChange) -> User:
        caller = actor(request)
        return await self._users.change(caller.user_id, change, caller)
