"""Metered calls of the services for documents: embeddings and reranking of the gateway's own work."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

from gatewayd.errors import GatewayError
from gatewayd.metering.interfaces import ChargingAdmission
from gatewayd.metering.meter import FAILURE_KINDS, CallMeter
from gatewayd.metering.records import CallOutcome, MeteredCall, MeteredCaller
from gatewayd.metering.usage_objects import answer_usage
from gatewayd.tasks import TaskRegistry

GroupsOf = Callable[[str], Awaitable[Sequence[str]]]
"""Returns the ids of the groups of a user."""


@dataclass(frozen=True, slots=True)
class WorkOwner:
    """The user whom work in the background is done for, "" for nobody; their groups are looked up."""

    user_id: str
    group_ids: tuple[str, ...] = ()
    key_id: str | None = None


@dataclass(slots=True)
class EnclosingCall:
    """A call of a model that is metered already; `answers` are those of the services that it asks."""

    answers: list[Mapping[str, Any]] = field(default_factory=list)


CHARGE: Final = "charge of a service"
NOBODY: Final = WorkOwner("")
_PAYER: Final[ContextVar[MeteredCaller | EnclosingCall]] = ContextVar("payer of services", default=NOBODY)


@contextmanager
def paid_by(payer: MeteredCaller | EnclosingCall) -> Iterator[None]:
    """Count the services that a block asks for somebody, or for the metered call that encloses them."""
    token = _PAYER.set(payer)
    try:
        yield
    finally:
        _PAYER.reset(token)


@dataclass(frozen=True, slots=True)
class MeteredService:
    """A service and its model: the provider in rows of usage, the endpoint, the maker that hosts it."""

    provider: str
    model: str
    endpoint: str
    maker: str = ""


class ServiceCalls:
    """Meters requests to services for whoever `paid_by` names.

    Their tokens and cost count in usage and budgets when they have ended, also if nobody waits any more. No
    limit refuses them: a document that was accepted is embedded.
    """

    def __init__(self, meter: CallMeter, groups_of: GroupsOf, tasks: TaskRegistry) -> None:
        self._meter = meter
        self._groups_of = groups_of
        self._tasks = tasks

    async def run(
        self, service: MeteredService, body: Mapping[str, Any], ask: Callable[[], Awaitable[dict[str, Any]]]
    ) -> dict[str, Any]:
        """Return the answer of a service to a request; raises the errors of `ask`, and of budgets."""
        payer = _PAYER.get()
        if isinstance(payer, EnclosingCall):
            answer = await ask()
            payer.answers.append(answer)
            return answer
        call = await self._begin(service, body, payer)
        outcome, answer = CallOutcome.FAILED, {}
        try:
            answer = await ask()
            outcome = CallOutcome.ANSWERED
        except asyncio.CancelledError:
            # The service may have read the request.
            outcome = CallOutcome.CANCELLED
            raise
        except GatewayError as error:
            outcome = CallOutcome.FAILED if error.kind in FAILURE_KINDS else CallOutcome.REFUSED
            call.error_kind = error.kind.value
            raise
        finally:
            self._meter.finish(call, outcome, answer_usage(answer))
            if outcome is CallOutcome.CANCELLED:
                self._tasks.spawn(CHARGE, self._charge(call))
        await self._tasks.finish(CHARGE, self._charge(call))
        return answer

    async def _charge(self, call: MeteredCall) -> None:
        for admission in self._meter.admissions:
            if isinstance(admission, ChargingAdmission):
                await admission.charge(call)

    async def _begin(
        self, service: MeteredService, body: Mapping[str, Any], payer: MeteredCaller
    ) -> MeteredCall:
        if isinstance(payer, WorkOwner) and payer.user_id and self._meter.admissions:
            payer = WorkOwner(payer.user_id, tuple(await self._groups_of(payer.user_id)))
        call = self._meter.prepare(payer, service.model, service.endpoint, body)
        call.source, call.upstream_model, call.maker = service.provider, service.model, service.maker
        call.attempts = 1
        self._meter.start(call)
        return call
