"""Routes of `/v1/settings`: runtime settings and the origin of each value."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from aiohttp import web

from gatewayctl.wire import routes
from gatewayctl.wire import settings as wire
from gatewayctl.wire.base import Outcome
from gatewayd.accounts.runtime_settings import RuntimeSettings, RuntimeValue
from gatewayd.http.audit import note_change
from gatewayd.http.body import read_model
from gatewayd.http.control.rows import serve
from gatewayd.http.control.transactions import WriteTransactions, author, control_reply
from gatewayd.http.routes import Route


class SettingRoutes:
    """Routes of runtime settings on the control socket."""

    def __init__(self, runtime: RuntimeSettings, writes: WriteTransactions) -> None:
        self._runtime = runtime
        self._writes = writes

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [
            serve(routes.LIST_SETTINGS, self.list),
            serve(routes.SET_SETTINGS, self.set),
            serve(routes.RESET_SETTINGS, self.reset),
        ]

    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer `SettingList`."""
        return control_reply(wire.SettingList(settings=[render(value) for value in self._runtime.list()]))

    async def set(self, request: web.Request) -> web.StreamResponse:
        """Take `SettingChange`, answer `SettingsWritten` with the named settings."""
        wanted = await read_model(request, wire.SettingChange)
        checked = self._runtime.checked(wanted.values)
        before = self._describe(checked)
        async with self._writes.block(request, "setting set", " ".join(checked)) as dry_run:
            await self._runtime.set(checked, author(request))
            note_change(request, "settings", checked, {name: each.value for name, each in before.items()})
        after = {
            name: replace(value, value=checked[name], origin="stored")
            if self._runtime.may_set(name)
            else value
            for name, value in before.items()
        }
        return _written(before, after, dry_run=dry_run)

    async def reset(self, request: web.Request) -> web.StreamResponse:
        """Take `SettingReset`, answer `SettingsWritten` with the named settings."""
        wanted = await read_model(request, wire.SettingReset)
        before = self._describe(dict.fromkeys(wanted.names))
        origins = {name: self._runtime.configured_origin(name) for name in before}
        async with self._writes.block(request, "setting reset", " ".join(before)) as dry_run:
            await self._runtime.reset(list(before))
            note_change(
                request,
                "settings",
                {name: value.configured for name, value in before.items()},
                {name: value.value for name, value in before.items()},
            )
        after = {
            name: replace(value, value=value.configured, origin=origins[name])
            for name, value in before.items()
        }
        return _written(before, after, dry_run=dry_run)

    def _describe(self, names: Mapping[str, object]) -> dict[str, RuntimeValue]:
        return {name: self._runtime.describe(name) for name in names}


def render(value: RuntimeValue) -> wire.Setting:
    """Return a setting as its wire model."""
    return wire.Setting(
        name=value.name,
        value=value.value,
        origin=value.origin,
        configured=value.configured,
        summary=value.summary,
    )


def _written(
    before: Mapping[str, RuntimeValue], after: Mapping[str, RuntimeValue], *, dry_run: bool
) -> web.Response:
    outcome = Outcome.UNCHANGED if before == after else Outcome.CHANGED
    shown = [render(value) for value in after.values()]
    return control_reply(wire.SettingsWritten(outcome=outcome, dry_run=dry_run, settings=shown))
