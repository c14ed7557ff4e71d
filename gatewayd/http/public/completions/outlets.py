"""Routes that run outlet filters and actions on existing messages."""

from collections.abc import Sequence

from aiohttp import web

from gatewayd.http import body
from gatewayd.http.connections.request_uses import RequestUse
from gatewayd.http.context import actor, facts_of
from gatewayd.http.routes import Handler, Route, RouteAccess
from gatewayd.http.schemas import ANYTHING, OBJECT, answers
from gatewayd.json_decoder import LARGE_LIMITS
from gatewayd.pipeline.filters.outlets import OutletRunner
from gatewayd.pipeline.functions.actions import ActionRunner


class CompletedRoutes:
    """Routes of outlet filters and actions."""

    def __init__(self, outlets: OutletRunner, actions: ActionRunner, *, body_limit: int) -> None:
        self._outlets = outlets
        self._actions = actions
        self._body_limit = body_limit

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [
            _row("/api/chat/completed", self.complete, "Run the outlet filters of a finished chat"),
            _row("/api/chat/actions/{action_id}", self.act, "Run an action on a message"),
        ]

    @answers(OBJECT)
    async def complete(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"model", "messages", "chat_id"?, "session_id"?, "id"?, "filter_ids"?}` after the outlet
        filters.

        The reply has the same fields; those that no filter changed are as sent.
        """
        form = await body.read_object(request, self._body_limit, LARGE_LIMITS)
        return body.json_reply(await self._outlets.completed(actor(request), form, facts_of(request)))

    @answers(ANYTHING)
    async def act(self, request: web.Request) -> web.StreamResponse:
        """Run an action on `{"model", "messages", "chat_id"?, "session_id"?, "id"?, ...}`.

        Answers the result of the action, any JSON value: often `{"messages": [...]}`, or null.
        """
        form = await body.read_object(request, self._body_limit, LARGE_LIMITS)
        action_id = request.match_info["action_id"]
        return body.json_reply(await self._actions.run(actor(request), action_id, form, facts_of(request)))


def _row(path: str, handler: Handler, summary: str) -> Route:
    return Route("POST", path, handler, RouteAccess.VERIFIED, summary, tag="plugins", use=RequestUse.ANSWER)
