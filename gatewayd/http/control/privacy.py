"""Routes of what is kept of a person: export and erasure."""

from collections.abc import Sequence

from aiohttp import web

from gatewayctl.wire import routes
from gatewayctl.wire import users as wire
from gatewayd.http.audit import note_change
from gatewayd.http.control.rows import serve
from gatewayd.http.control.transactions import audit, control_reply, is_set
from gatewayd.http.responses.sse import open_stream, send_frames
from gatewayd.http.routes import Route
from gatewayd.privacy.erasure import PersonErasure
from gatewayd.privacy.export import PersonExport


class ControlPrivacyRoutes:
    """Routes of people on the control socket."""

    def __init__(self, export: PersonExport, erasure: PersonErasure) -> None:
        self._export = export
        self._erasure = erasure

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [
            serve(routes.EXPORT_USER, self.export, interruptible=True),
            serve(routes.ERASE_USER, self.erase),
        ]

    async def export(self, request: web.Request) -> web.StreamResponse:
        """Answer a tar archive for an id or e-mail; one that breaks off has no manifest at its end."""
        user = await self._export.find(request.match_info["ref"])
        note_change(request, user.email, {"id": user.id})
        audit(request, "user export", user.id)
        reply = await open_stream(request, {"Content-Type": "application/x-tar"})
        async for piece in self._export.archive(user):
            if piece:
                await send_frames(request, reply, piece)
        await reply.write_eof()
        return reply

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
