"""Routes of `/api/v1/users/.../permissions`: default and effective permissions."""

from collections.abc import Sequence

from aiohttp import web

from gatewayd.accounts.permissions import BUILTIN_PERMISSIONS, Permissions, differences, known_leaves
from gatewayd.http.audit import note_change
from gatewayd.http.body import json_reply, read_object
from gatewayd.http.context import actor
from gatewayd.http.reply_schemas import accounts
from gatewayd.http.routes import Route, RouteAccess
from gatewayd.http.schemas import answers

PREFIX = "/api/v1/users"


class PermissionRoutes:
    """Routes of permissions."""

    def __init__(self, permissions: Permissions) -> None:
        self._permissions = permissions

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        default = f"{PREFIX}/default/permissions"
        tag = "permissions"
        return [
            Route(
                "GET",
                f"{PREFIX}/permissions",
                self.show,
                RouteAccess.VERIFIED,
                "Show the caller's permissions",
                tag=tag,
            ),
            Route(
                "GET", default, self.show_defaults, RouteAccess.ADMIN, "Show the default permissions", tag=tag
            ),
            Route(
                "POST",
                default,
                self.change_defaults,
                RouteAccess.ADMIN,
                "Set the default permissions",
                tag=tag,
            ),
            Route(
                "GET",
                f"{default}/defaults",
                self.show_builtin,
                RouteAccess.ADMIN,
                "Show the built-in permissions",
                tag=tag,
            ),
        ]

    @answers(accounts.permissions)
    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer the effective permissions of the caller, `{"workspace": {...}, "features": {...}, ...}`."""
        return json_reply(actor(request).permissions)

    @answers(accounts.permissions)
    async def show_defaults(self, request: web.Request) -> web.StreamResponse:
        """Answer the default permissions of accounts with the role user."""
        return json_reply(self._permissions.defaults())

    @answers(accounts.permissions)
    async def change_defaults(self, request: web.Request) -> web.StreamResponse:
        """A tree -> the stored tree. A missing leaf gets its built-in value, an unknown one is dropped."""
        tree = known_leaves(await read_object(request))
        before = self._permissions.defaults()
        after = await self._permissions.set_defaults(tree, by=actor(request).user_id)
        note_change(request, "default permissions", differences(before, after), differences(after, before))
        return json_reply(after)

    @answers(accounts.permissions)
    async def show_builtin(self, request: web.Request) -> web.StreamResponse:
        """Answer the built-in permissions, without configuration."""
        return json_reply(BUILTIN_PERMISSIONS)
