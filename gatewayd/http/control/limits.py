"""Routes of `/v1/limits`: limits and budgets of model calls."""

from collections.abc import Mapping, Sequence
from typing import Any

from aiohttp import web

from gatewayctl.wire import routes
from gatewayctl.wire.base import Outcome
from gatewayctl.wire.consumption import limits as wire
from gatewayd.http.audit import note_change
from gatewayd.http.body import read_model
from gatewayd.http.control.rows import serve
from gatewayd.http.control.transactions import WriteTransactions, control_reply, timestamp
from gatewayd.http.limit_fields import LimitTargets, given_values, shown_rule, shown_state
from gatewayd.http.routes import Route
from gatewayd.limits.service import Limits


class ControlLimitRoutes:
    """Routes of limits on the control socket."""

    def __init__(self, limits: Limits, targets: LimitTargets, writes: WriteTransactions) -> None:
        self._limits = limits
        self._targets = targets
        self._writes = writes

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [
            serve(routes.LIST_LIMITS, self.list),
            serve(routes.SET_LIMIT, self.set),
            serve(routes.SHOW_LIMIT, self.show),
            serve(routes.REMOVE_LIMIT, self.remove),
        ]

    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer `LimitList`."""
        found = [wire.Limit(**_fields(shown_rule(rule))) for rule in await self._limits.list()]
        return control_reply(wire.LimitList(limits=found))

    async def set(self, request: web.Request) -> web.StreamResponse:
        """Take `LimitChange`, answer `LimitWritten`; invalid_request names the field."""
        form = await read_model(request, wire.LimitChange)
        async with self._writes.block(
            request, "limit set", form.model or "all models", alone="limits"
        ) as dry_run:
            target = await self._targets.find(form)
            values = given_values(form)
            rule, former = await self._limits.set(target, values)
            note_change(request, target.subject_name or target.subject.value, {"id": rule.id, **values})
        outcome = Outcome.CREATED if former is None else Outcome.CHANGED
        if rule is former:
            outcome = Outcome.UNCHANGED
        return _written(shown_rule(rule), outcome, dry_run=dry_run)

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer `Limit` with its use, `?user=` for a limit that counts each user on their own."""
        rule = await self._limits.get(request.match_info["id"])
        user_id = await self._targets.user_id(request.query.get("user"))
        [state] = await self._limits.states([rule], user_id)
        return control_reply(wire.Limit(**_fields(shown_state(state))))

    async def remove(self, request: web.Request) -> web.StreamResponse:
        """Answer `LimitWritten` with the limit before its removal."""
        rule_id = request.match_info["id"]
        async with self._writes.block(request, "limit remove", rule_id) as dry_run:
            rule = await self._limits.remove(rule_id)
            note_change(request, rule.subject_name or rule.subject.value, {"id": rule.id})
        return _written(shown_rule(rule), Outcome.REMOVED, dry_run=dry_run)


def _fields(shown: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a limit with times as texts."""
    times = {name: timestamp(shown[name]) for name in ("created_at", "updated_at")}
    uses = [{**use, "resets_at": timestamp(use["resets_at"])} for use in shown.get("uses", ())]
    return {**shown, **times, "uses": uses}


def _written(shown: Mapping[str, Any], outcome: Outcome, *, dry_run: bool) -> web.Response:
    return control_reply(wire.LimitWritten(**_fields(shown), outcome=outcome, dry_run=dry_run))
