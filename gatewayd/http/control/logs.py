"""Routes of `/v1/log-levels`: the levels of loggers."""

from collections.abc import Sequence
from typing import Protocol

from aiohttp import web

from gatewayctl.wire import health as wire
from gatewayctl.wire import routes
from gatewayd.http.audit import note_change
from gatewayd.http.body import read_model
from gatewayd.http.control.rows import serve
from gatewayd.http.control.transactions import audit, control_reply
from gatewayd.http.routes import Route


class LoggerState(Protocol):
    """The level of a logger."""

    @property
    def name(self) -> str:
        """The name of the logger."""
        ...

    @property
    def level(self) -> str:
        """The word for the level."""
        ...

    @property
    def is_changed(self) -> bool:
        """Whether it differs from the settings."""
        ...


class LevelSwitch(Protocol):
    """Changes the levels of loggers."""

    def list(self) -> Sequence[LoggerState]:
        """Return the levels, sorted by name."""
        ...

    def change(self, name: str, level: str) -> LoggerState:
        """Set the level of a logger; raises invalid_request and conflict."""
        ...


class ControlLogRoutes:
    """Routes of the levels on the control socket."""

    def __init__(self, levels: LevelSwitch) -> None:
        self._levels = levels

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [serve(routes.LIST_LOG_LEVELS, self.list), serve(routes.SET_LOG_LEVEL, self.change)]

    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer `LoggerLevels`."""
        return control_reply(wire.LoggerLevels(levels=[_render(each) for each in self._levels.list()]))

    async def change(self, request: web.Request) -> web.StreamResponse:
        """Take `LevelChange`, answer `LoggerLevel`."""
        wanted = await read_model(request, wire.LevelChange)
        found = self._levels.change(wanted.logger, wanted.level.lower())
        note_change(request, found.name, {"level": found.level})
        audit(request, "log level", found.name)
        return control_reply(_render(found))


def _render(state: LoggerState) -> wire.LoggerLevel:
    return wire.LoggerLevel(logger=state.name, level=state.level, changed=state.is_changed)
