"""Routes of what is kept of a person: its erasure."""

from collections.abc import Sequence

from aiohttp import web

from gatewayctl.wire import routes
from gatewayctl.wire import users as wire
from gatewayd.http.audit import note_change
from gatewayd.http.control.rows import serve
from gatewayd.http.control.transactions import audit, control_reply, is_set
from gatewayd.http.routes import Route
from gatewayd.privacy.erasure import PersonErasure


class ControlPrivacyRoutes:
    """Routes of people on the control socket."""

    def __init__(self, erasure: PersonErasure) -> None:
        self._erasure = erasure

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [serve(routes.ERASE_USER, self.erase)]

    async def erase(self, request: web.Request) -> web.StreamResponse:
        """Answer `Erasure` for an id or e-mail; conflict for the last active administrator.

        It runs in many transactions, and continues when the client leaves. The audit log names the id alone.
        """
        ref, dry_run = request.match_info["ref"], is_set(request, "dry_run")
        report = await (self._erasure.count(ref) if dry_run else self._erasure.erase(ref))
        if not dry_run:
            note_change(request, report.user_id, report.counts)
            audit(request, "user erase", report.user_id)
        rows = [wire.ErasedRows(kind=kind, count=count) for kind, count in report.counts.items()]
        return control_reply(wire.Erasure(id=report.user_id, dry_run=dry_run, erased=rows))
