"""Routes of `/api/v1/limits`: limits of model calls for administrators, and one's own."""

from collections.abc import Sequence

from aiohttp import web

from gatewayd.http.audit import note_change
from gatewayd.http.body import RequestBody, json_reply, read_model
from gatewayd.http.context import actor
from gatewayd.http.limit_fields import LimitTargets, given_values, shown_rule, shown_state
from gatewayd.http.reply_schemas import limits as replies
from gatewayd.http.routes import Route, RouteAccess, RouteGroup
from gatewayd.http.schemas import answers
from gatewayd.limits.service import Limits

_row = RouteGroup("/api/v1/limits", "limits").row


class LimitBody(RequestBody):
    """Whose limit is set, and what; see `gatewayctl limit set`.

    One of `key` (an id), `user`, `group` (an id or a name) and `default`, or none for all users together.
    `each_member` counts each member of the group on their own. Absent values stay, null removes one.
    """

    key: str | None = None
    user: str | None = None
    group: str | None = None
    each_member: bool = False
    default: bool = False
    model: str = ""
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    parallel: int | None = None
    budgets: list[str] | None = None
    warn_percent: int | None = None
    storage_bytes: int | None = None


class LimitRoutes:
    """Routes of limits."""

    def __init__(self, limits: Limits, targets: LimitTargets) -> None:
        self._limits = limits
        self._targets = targets

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        admin = RouteAccess.ADMIN
        return [
            _row("GET", "", self.list, admin, "List limits of model calls"),
            _row("PUT", "", self.set, admin, "Set a limit of model calls", LimitBody),
            _row("GET", "/own", self.own, RouteAccess.ACCOUNT, "Show one's own limits and what is left"),
            _row("GET", "/{id}", self.show, admin, "Show a limit and its use"),
            _row("DELETE", "/{id}", self.remove, admin, "Remove a limit"),
        ]

    @answers(replies.limit_list)
    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"limits": [...]}`, oldest first, without their use."""
        return json_reply({"limits": [shown_rule(rule) for rule in await self._limits.list()]})

    @answers(replies.limit)
    async def set(self, request: web.Request) -> web.StreamResponse:
        """Create a limit, or change the one of the same subject and model; answer it.

        400 names the field, 404 an unknown key, user or group.
        """
        form = await read_model(request, LimitBody)
        target, values = await self._targets.find(form), given_values(form)
        rule, _ = await self._limits.set(target, values)
        note_change(request, target.subject_name or target.subject.value, {"id": rule.id, **values})
        return json_reply(shown_rule(rule))

    @answers(replies.limit_list)
    async def own(self, request: web.Request) -> web.StreamResponse:
        """Answer the limits that count the calls with this credential, with what is left of each."""
        caller = actor(request)
        states = await self._limits.own(caller.key_id, caller.user_id, caller.group_ids)
        return json_reply({"limits": [shown_state(state) for state in states]})

    @answers(replies.limit, query={"user": "Id or e-mail address of the user whose use is shown."})
    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer a limit with its use; one that counts each user on their own needs `user` for it."""
        rule = await self._limits.get(request.match_info["id"])
        user_id = await self._targets.user_id(request.query.get("user"))
        [state] = await self._limits.states([rule], user_id)
        return json_reply(shown_state(state))

    @answers(replies.limit)
    async def remove(self, request: web.Request) -> web.StreamResponse:
        """Remove a limit and what was counted for it; answer it."""
        rule = await self._limits.remove(request.match_info["id"])
        note_change(request, rule.subject_name or rule.subject.value, {"id": rule.id})
        return json_reply(shown_rule(rule))
