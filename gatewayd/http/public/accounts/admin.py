"""Routes of `/api/v1/auths/admin`: runtime settings, and the contact of the administrator."""

from collections.abc import Sequence
from typing import Any

from aiohttp import web

from gatewayd.accounts.admin_contact import AdminContact
from gatewayd.accounts.endpoints import warnings_for
from gatewayd.accounts.runtime_settings import RuntimeSettings, RuntimeValue
from gatewayd.http.audit import note_change
from gatewayd.http.body import RequestBody, json_reply, read_model, read_object, warning_headers
from gatewayd.http.context import actor
from gatewayd.http.reply_schemas import accounts
from gatewayd.http.routes import Route, RouteAccess
from gatewayd.http.schemas import answers, listed

PREFIX = "/api/v1/auths/admin"


class ResetBody(RequestBody):
    """Names of the settings to reset."""

    names: list[str]


class AdminRoutes:
    """Routes of the runtime settings and the administrator's contact."""

    def __init__(self, runtime: RuntimeSettings, contact: AdminContact) -> None:
        self._runtime = runtime
        self._contact = contact

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [
            Route(
                "GET",
                f"{PREFIX}/details",
                self.details,
                RouteAccess.ACCOUNT,
                "Show the administrator's contact",
                tag="admin",
            ),
            Route(
                "GET",
                f"{PREFIX}/config",
                self.show,
                RouteAccess.ADMIN,
                "Show the runtime settings",
                tag="admin",
            ),
            Route(
                "POST",
                f"{PREFIX}/config",
                self.change,
                RouteAccess.ADMIN,
                "Change runtime settings",
                tag="admin",
            ),
            Route(
                "GET",
                f"{PREFIX}/config/origins",
                self.origins,
                RouteAccess.ADMIN,
                "Show the origin of each runtime setting",
                tag="admin",
            ),
            Route(
                "POST",
                f"{PREFIX}/config/reset",
                self.reset,
                RouteAccess.ADMIN,
                "Return runtime settings to their configured values",
                request=ResetBody,
                tag="admin",
            ),
        ]

    @answers(accounts.contact)
    async def details(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"name", "email"}` of the administrator; 400 when the setting hides it."""
        name, email = await self._contact.show()
        return json_reply({"name": name, "email": email})

    @answers(accounts.settings)
    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer the settings, `{"ENABLE_SIGNUP": true, ...}`."""
        return json_reply(self._body())

    @answers(accounts.settings)
    async def change(self, request: web.Request) -> web.StreamResponse:
        """Some of the settings -> all of them. Unknown keys are ignored; the error for a bad value names its
        key.

        The header X-Gateway-Warning lists allowed endpoints that match no route.
        """
        values = self._runtime.known(await read_object(request))
        before = {name: self._runtime.describe(name).value for name in values}
        await self._runtime.set(values, by=actor(request).user_id)
        note_change(request, "settings", values, before)
        warnings = warnings_for(self._runtime.text("API_KEYS_ALLOWED_ENDPOINTS"))
        return json_reply(self._body(), headers=warning_headers(warnings))

    @answers(listed(accounts.setting_origin))
    async def origins(self, request: web.Request) -> web.StreamResponse:
        """Answer each setting with its origin: `stored`, or the source of the configured value.

        `fixed` is true for a value that the configuration fixes.
        """
        return json_reply([self._render(value) for value in self._runtime.list()])

    @answers(accounts.settings)
    async def reset(self, request: web.Request) -> web.StreamResponse:
        """`{"names"}` -> all settings; the named ones have their configured values. 404 for an unknown
        name."""
        form = await read_model(request, ResetBody)
        before = [self._runtime.describe(name) for name in dict.fromkeys(form.names)]
        await self._runtime.reset([value.name for value in before])
        after = {value.name: value.configured for value in before}
        note_change(request, "settings", after, {value.name: value.value for value in before})
        return json_reply(self._body())

    def _render(self, value: RuntimeValue) -> dict[str, Any]:
        return {
            "name": value.name,
            "value": value.value,
            "origin": value.origin,
            "configured": value.configured,
            "fixed": not self._runtime.may_set(value.name),
            "summary": value.summary,
        }

    def _body(self) -> dict[str, Any]:
        body: dict[str, Any] = {value.name: value.value for value in self._runtime.list()}
        # Clients expect null for an unset address.
        return {**body, "ADMIN_EMAIL": body["ADMIN_EMAIL"] or None}
