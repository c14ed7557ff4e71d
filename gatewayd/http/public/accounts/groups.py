"""Routes of `/api/v1/groups`: groups and their members."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from aiohttp import web

from gatewayd import ids
from gatewayd.accounts.groups import Groups
from gatewayd.accounts.permissions import known_leaves
from gatewayd.accounts.records import Group, GroupChange, MembershipSource, NewGroup
from gatewayd.accounts.serializers import render_groups
from gatewayd.accounts.users import Users
from gatewayd.http.audit import note_change
from gatewayd.http.body import RequestBody, json_reply, large_reply, pages_reply, read_model
from gatewayd.http.context import actor
from gatewayd.http.public.accounts.serializers import render_user_info
from gatewayd.http.reply_schemas import accounts
from gatewayd.http.routes import Route, RouteAccess, RouteGroup
from gatewayd.http.schemas import TRUE, answers, listed
from gatewayd.scim.links import EXTERNAL_ID_FIELD, read_links

PREFIX = "/api/v1/groups"
_row = RouteGroup(PREFIX, "groups").row


class GroupBody(RequestBody):
    """A new group; `permissions` may be a partial tree."""

    name: str
    description: str = ""
    permissions: dict[str, Any] | None = None
    data: dict[str, Any] | None = None


class GroupChangeBody(RequestBody):
    """A change of a group. Absent and null fields keep their values."""

    name: str | None = None
    description: str | None = None
    permissions: dict[str, Any] | None = None
    data: dict[str, Any] | None = None


class MembersBody(RequestBody):
    """Users to add or remove."""

    user_ids: list[str]


class GroupRoutes:
    """Routes of groups."""

    def __init__(self, groups: Groups, users: Users, clock: ids.Clock = ids.now) -> None:
        self._groups = groups
        self._users = users
        self._clock = clock

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        admin, verified = RouteAccess.ADMIN, RouteAccess.VERIFIED
        return [
            _row("GET", "/", self.list, verified, "List groups"),
            _row("POST", "/create", self.create, admin, "Create a group", GroupBody),
            _row("GET", "/id/{id}", self.show, admin, "Show a group"),
            _row("GET", "/id/{id}/info", self.show_info, verified, "Show a group without its permissions"),
            _row("GET", "/id/{id}/export", self.export, admin, "Export a group with its members"),
            _row(
                "POST", "/id/{id}/users", self.list_members, admin, "List the members of a group", asks=True
            ),
            _row("GET", "/id/{id}/members", self.list_sources, admin, "List the members and who added them"),
            _row("POST", "/id/{id}/update", self.change, admin, "Change a group", GroupChangeBody),
            _row(
                "POST", "/id/{id}/users/add", self.add_members, admin, "Add members to a group", MembersBody
            ),
            _row(
                "POST",
                "/id/{id}/users/remove",
                self.remove_members,
                admin,
                "Remove members from a group",
                MembersBody,
            ),
            _row("DELETE", "/id/{id}/delete", self.remove, admin, "Delete a group"),
        ]

    @answers(listed(accounts.group))
    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer all groups for administrators, the caller's own groups for others."""
        caller = actor(request)
        groups = await self._groups.list(user_id=None if caller.is_admin else caller.user_id)
        return json_reply(await render_groups(groups, self._groups))

    @answers(accounts.group)
    async def create(self, request: web.Request) -> web.StreamResponse:
        """`{"name", "description", "permissions"?, "data"?}` -> Group; 409 for a name in use."""
        form = await read_model(request, GroupBody)
        group = await self._groups.create(
            NewGroup(
                name=form.name,
                description=form.description,
                user_id=actor(request).user_id,
                permissions=known_leaves(form.permissions or {}),
                data=form.data or {},
            )
        )
        note_change(request, group.name, {"permissions": group.permissions or None})
        return json_reply(await self._render(group))

    @answers(accounts.group)
    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer Group; 404 for an unknown id."""
        return json_reply(await self._render(await self._groups.get(_id(request))))

    @answers(accounts.group_info)
    async def show_info(self, request: web.Request) -> web.StreamResponse:
        """Answer Group without permissions, data and meta; 404 for an unknown id."""
        group = await self._render(await self._groups.get(_id(request)))
        hidden = {"permissions", "data", "meta"}
        return json_reply({name: value for name, value in group.items() if name not in hidden})

    @answers(accounts.exported_group)
    async def export(self, request: web.Request) -> web.StreamResponse:
        """Answer Group with `user_ids`."""
        group = await self._groups.get(_id(request))
        members = await self._groups.list_member_ids(group.id)
        return await large_reply({**await self._render(group), "user_ids": members})

    @answers(listed(accounts.user_info))
    async def list_members(self, request: web.Request) -> web.StreamResponse:
        """Answer the members, `[UserInfo]`."""
        user_ids = await self._groups.list_member_ids(_id(request))
        now = self._clock()
        pages = self._users.pages(user_ids)
        return await pages_reply([render_user_info(user, now) for user in page] async for page in pages)

    @answers(accounts.group_members)
    async def list_sources(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"members": [UserInfo + "active" + "sources"], "total", "sources", "external_ids"}`.

        The `sources` of a member are those that added it, `manual`, `default`, `scim` or `oauth`; those of
        the group count its members. `external_ids` has the id of the group by provider.
        """
        group = await self._groups.get(_id(request))
        user_ids = await self._groups.list_member_ids(group.id)
        counted = await self._groups.count_by_source(group.id)
        more = {
            "total": len(user_ids),
            "sources": {each.value: counted[each] for each in MembershipSource if each in counted},
            "external_ids": read_links(group.scim, EXTERNAL_ID_FIELD),
        }
        return await pages_reply(self._members(group.id, user_ids), "members", more)

    async def _members(
        self, group_id: str, user_ids: Sequence[str]
    ) -> AsyncIterator[Sequence[dict[str, Any]]]:
        now = self._clock()
        async for page in self._users.pages(user_ids):
            found = await self._groups.list_sources(group_id, [user.id for user in page])
            yield [
                {
                    **render_user_info(user, now),
                    "active": user.active,
                    "sources": [each.value for each in MembershipSource if each in found.get(user.id, ())],
                }
                for user in page
            ]

    @answers(accounts.group)
    async def change(self, request: web.Request) -> web.StreamResponse:
        """`{"name"?, "description"?, "permissions"?, "data"?}` -> Group."""
        form = await read_model(request, GroupChangeBody)
        permissions = None if form.permissions is None else known_leaves(form.permissions)
        change = GroupChange(form.name, form.description, permissions, form.data)
        before = await self._groups.get(_id(request))
        group = await self._groups.change(before.id, change)
        note_change(
            request,
            group.name,
            {"name": form.name, "permissions": permissions},
            {"name": before.name, "permissions": before.permissions},
        )
        return json_reply(await self._render(group))

    @answers(accounts.group)
    async def add_members(self, request: web.Request) -> web.StreamResponse:
        """`{"user_ids"}` -> Group; unknown users are ignored."""
        form = await read_model(request, MembersBody)
        await self._groups.add_members(_id(request), form.user_ids)
        return await self._show_members(request, {"added": form.user_ids})

    @answers(accounts.group)
    async def remove_members(self, request: web.Request) -> web.StreamResponse:
        """`{"user_ids"}` -> Group."""
        form = await read_model(request, MembersBody)
        await self._groups.remove_members(_id(request), form.user_ids)
        return await self._show_members(request, {"removed": form.user_ids})

    @answers(TRUE)
    async def remove(self, request: web.Request) -> web.StreamResponse:
        """Answer true; 404 for an unknown id."""
        group = await self._groups.get(_id(request))
        await self._groups.remove(group.id)
        note_change(request, group.name, before={"permissions": group.permissions})
        return json_reply(data=True)

    async def _show_members(self, request: web.Request, values: Mapping[str, Any]) -> web.StreamResponse:
        group = await self._groups.get(_id(request))
        note_change(request, group.name, values)
        return json_reply(await self._render(group))

    async def _render(self, group: Group) -> dict[str, Any]:
        return (await render_groups([group], self._groups))[0]


def _id(request: web.Request) -> str:
    return request.match_info["id"]
