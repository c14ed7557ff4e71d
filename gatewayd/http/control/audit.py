"""Routes of `/v1/audit`: rows of the audit log, and their verification."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from aiohttp import web

from gatewayctl.wire import routes
from gatewayctl.wire.upkeep import audit as wire
from gatewayd.audit.interfaces import AuditStore
from gatewayd.audit.log_keeper import AuditLogKeeper
from gatewayd.audit.records import AuditQuery
from gatewayd.errors import invalid
from gatewayd.http.body import read_model
from gatewayd.http.control.rows import serve
from gatewayd.http.control.transactions import (
    MAX_PAGE_SIZE,
    control_reply,
    find_count,
    is_set,
    large_control_reply,
)
from gatewayd.http.routes import Route

DEFAULT_ROWS: Final = 100
MAX_QUERY_CHARACTERS: Final = 300
MAX_SECONDS: Final = 10**12
MICROSECONDS: Final = 1_000_000


class ControlAuditRoutes:
    """Routes of the audit log on the control socket."""

    def __init__(self, store: AuditStore, keeper: AuditLogKeeper) -> None:
        self._store = store
        self._keeper = keeper

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [
            serve(routes.LIST_AUDIT, self.list),
            serve(routes.VERIFY_AUDIT, self.verify, interruptible=True),
        ]

    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer `AuditRowList`; `?newest=true` selects the last rows instead of the first ones."""
        rows = await self._store.find(read_query(request))
        return await large_control_reply(
            wire.AuditRowList(rows=[wire.AuditRow.model_construct(**asdict(row)) for row in rows])
        )

    async def verify(self, request: web.Request) -> web.StreamResponse:
        """Take `AuditVerification`, answer `AuditVerdict`."""
        wanted = await read_model(request, wire.AuditVerification)
        verdict = await self._keeper.verify(dict(map(read_checkpoint, wanted.checkpoints)))
        return control_reply(
            wire.AuditVerdict(
                status="broken" if verdict.problems else "sound",
                rows=verdict.rows,
                first=verdict.base.sequence + 1,
                head=str(verdict.head),
                problems=[
                    wire.AuditProblem(sequence=each.sequence, message=each.message)
                    for each in verdict.problems
                ],
            )
        )


def read_query(request: web.Request) -> AuditQuery:
    """Return the selection of the query string; invalid_request naming the parameter."""
    texts = {name: request.query.get(name, "") for name in ("who", "action", "target")}
    for name, text in texts.items():
        if len(text) > MAX_QUERY_CHARACTERS:
            raise invalid(
                f"cannot accept {name}: it is longer than {MAX_QUERY_CHARACTERS} characters", param=name
            )
    since, until = (_seconds(request, name) for name in ("since", "until"))
    return AuditQuery(
        **texts,
        since=None if since is None else since * MICROSECONDS,
        until=None if until is None else until * MICROSECONDS,
        after=_seconds(request, "after"),
        limit=min(find_count(request, "limit") or DEFAULT_ROWS, MAX_PAGE_SIZE),
        newest=is_set(request, "newest"),
    )


def read_checkpoint(text: str) -> tuple[int, str]:
    """Return the sequence number and the hash of `SEQUENCE:HASH`; invalid_request for another text."""
    number, _, found = text.partition(":")
    is_hash = len(found) == 64 and not set(found) - set("0123456789abcdef")
    if not (number.isascii() and number.isdecimal() and len(number) <= 18 and is_hash):
        raise invalid(
            f"cannot accept the checkpoint {text[:100]!r}: expected SEQUENCE:HASH", param="checkpoints"
        )
    return int(number), found


def _seconds(request: web.Request, name: str) -> int | None:
    value = request.query.get(name)
    if value is None:
        return None
    if not (value.isascii() and value.isdecimal() and len(value) <= 18) or int(value) > MAX_SECONDS:
        raise invalid(f"cannot accept {name}: expected a whole number up to {MAX_SECONDS}", param=name)
    return int(value)
