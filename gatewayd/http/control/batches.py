"""Routes of `/v1/batches`: batches of all users."""

from collections.abc import Sequence
from typing import Final

from aiohttp import web

from gatewayctl.wire import batches as wire
from gatewayctl.wire import routes
from gatewayd.batches.records import Batch
from gatewayd.batches.service import Batches
from gatewayd.http.control.accounts.grantees import GranteeFinder
from gatewayd.http.control.rows import serve
from gatewayd.http.control.transactions import audit, control_reply, timestamp
from gatewayd.http.routes import Route

MAX_LISTED: Final = 1000


class ControlBatchRoutes:
    """Routes of batches on the control socket."""

    def __init__(self, batches: Batches, principals: GranteeFinder) -> None:
        self._batches = batches
        self._principals = principals

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [
            serve(routes.LIST_BATCHES, self.list),
            serve(routes.SHOW_BATCH, self.show),
            serve(routes.CANCEL_BATCH, self.cancel),
        ]

    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer `BatchList`; `?user=` limits it to one user."""
        ref = request.query.get("user")
        user_id = None if ref is None else (await self._principals.owner(ref)).id
        found = await self._batches.list(user_id, limit=MAX_LISTED)
        return control_reply(wire.BatchList(batches=[*await self._shown(found)]))

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer `Batch`; not_found for an unknown one."""
        return await self._reply(await self._batches.find(request.match_info["id"]))

    async def cancel(self, request: web.Request) -> web.StreamResponse:
        """Answer the cancelled `Batch`; conflict for one that has ended."""
        batch = await self._batches.cancel(await self._batches.find(request.match_info["id"]))
        audit(request, "batch cancel", batch.id)
        return await self._reply(batch)

    async def _reply(self, batch: Batch) -> web.StreamResponse:
        [shown] = await self._shown([batch])
        return control_reply(shown)

    async def _shown(self, found: Sequence[Batch]) -> Sequence[wire.Batch]:
        emails = await self._principals.emails(batch.user_id for batch in found)
        return [_render(batch, emails.get(batch.user_id, "")) for batch in found]


def _render(batch: Batch, email: str) -> wire.Batch:
    return wire.Batch(
        id=batch.id,
        user_id=batch.user_id,
        user=email,
        dialect=batch.dialect.value,
        endpoint=batch.endpoint,
        status=batch.status.value,
        total=batch.total,
        completed=batch.completed,
        failed=batch.failed,
        input_file_id=batch.input_file_id,
        output_file_id=batch.output_file_id,
        error_file_id=batch.error_file_id,
        errors=[_fault(error.get("line"), str(error.get("message"))) for error in batch.errors],
        created_at=timestamp(batch.created_at),
        expires_at=timestamp(batch.expires_at),
        started_at=timestamp(batch.started_at),
        ended_at=timestamp(batch.ended_at),
    )


def _fault(line: object, message: str) -> str:
    return message if line is None else f"line {line}: {message}"
