"""Route of `/api/v1/usage`: what models were used for, one's own or, for administrators, of all."""

from collections.abc import Sequence

from aiohttp import web

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.body import json_reply
from gatewayd.http.context import actor
from gatewayd.http.reply_schemas import usage as replies
from gatewayd.http.routes import Route, RouteAccess, RouteGroup
from gatewayd.http.schemas import answers
from gatewayd.http.usage_fields import read_query, shown_line
from gatewayd.metering.usage_records import UsageDimension, UsageStore

MAX_LINES = 10_000
"""Maximum number of lines of one answer."""

_row = RouteGroup("/api/v1/usage", "usage").row


class UsageRoutes:
    """Route of usage."""

    def __init__(self, store: UsageStore) -> None:
        self._store = store

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [_row("GET", "", self.report, RouteAccess.ACCOUNT, "Report the usage of models")]

    @answers(
        replies.usage_report,
        query={
            "by": "Some of day, user, group, key, model, provider and endpoint, separated by commas.",
            "since": "First day (UTC), such as 2026-11-24.",
            "until": "Last day (UTC).",
            "user_id": "Id of the user whose calls are reported; administrators get those of all without it.",
            "key_id": "Id of a key.",
            "model": "Id of a model.",
            "provider": "Name of a provider.",
            "limit": "Maximum number of lines.",
        },
    )
    async def report(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"usage": [...]}`: requests, tokens, time and cost in dollars, null for an unknown price.

        Users get their own calls only, 403 for others; groups are for administrators.
        """
        caller, query = actor(request), request.query
        user_id = query.get("user_id") or (None if caller.is_admin else caller.user_id)
        wanted = read_query(query, most=MAX_LINES, user_id=user_id, key_id=query.get("key_id") or None)
        if not caller.is_admin and (user_id != caller.user_id or UsageDimension.GROUP in wanted.by):
            raise GatewayError(
                ErrorKind.FORBIDDEN,
                "cannot report the usage of others: only administrators may",
                param="user_id",
            )
        return json_reply({"usage": [shown_line(wanted, line) for line in await self._store.report(wanted)]})
