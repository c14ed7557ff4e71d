"""Route of `/v1/permissions/audit`: accounts with access to tool sources without the permission for it."""

from collections.abc import Sequence

from aiohttp import web

from gatewayctl.wire import permissions as wire
from gatewayctl.wire import routes
from gatewayd.http.control.accounts.grantees import GranteeFinder
from gatewayd.http.control.rows import serve
from gatewayd.http.control.transactions import control_reply
from gatewayd.http.routes import Route
from gatewayd.plugins.audit import PermissionAudit


class PermissionAuditRoutes:
    """Route of the permission audit on the control socket."""

    def __init__(self, audit: PermissionAudit, principals: GranteeFinder) -> None:
        self._audit = audit
        self._principals = principals

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [
            serve(routes.AUDIT_PERMISSIONS, self.list),
        ]

    async def list(self, _: web.Request) -> web.StreamResponse:
        """Answer `PermissionAudit`."""
        found = await self._audit.run()
        names = await self._principals.names(finding.holder for finding in found)
        findings = [
            wire.AuditFinding(
                finding=one.kind.value,
                tool=one.plugin_id,
                holder=names[one.holder.principal_type, one.holder.principal_id],
                accounts=one.accounts,
            )
            for one in found
        ]
        return control_reply(wire.PermissionAudit(findings=findings))
