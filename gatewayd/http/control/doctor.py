"""Route of `/v1/doctor`: the findings about the running gateway."""

from collections.abc import Awaitable, Callable, Sequence

from aiohttp import web

from gatewayctl.wire import routes
from gatewayctl.wire.upkeep import doctor as wire
from gatewayd.doctor.findings import DoctorFinding
from gatewayd.http.control.rows import serve
from gatewayd.http.control.transactions import control_reply
from gatewayd.http.routes import Route


class ControlDoctorRoutes:
    """Route of the doctor on the control socket; `examine` makes all checks."""

    def __init__(self, examine: Callable[[], Awaitable[Sequence[DoctorFinding]]]) -> None:
        self._examine = examine

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [serve(routes.RUN_DOCTOR, self.show)]

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer `DoctorReport`."""
        shown = [
            wire.DoctorFinding(
                code=each.code, level=each.level.value, sentence=each.sentence, command=each.command
            )
            for each in await self._examine()
        ]
        return control_reply(wire.DoctorReport(findings=shown))
