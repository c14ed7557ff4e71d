"""Usage of responses that a provider runs in the background: counted when their end passes to a client.

Until then an estimate of the request is counted, as the reply to it tells no tokens.
"""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import asdict, dataclass
from typing import Any, Final

from gatewayd.accounts.records import Actor
from gatewayd.catalog.failover import foresee
from gatewayd.catalog.interfaces import ForwardedAnswer
from gatewayd.catalog.records import Model
from gatewayd.completions.json_access import as_mapping, as_text
from gatewayd.completions.records import Body
from gatewayd.errors import GatewayError
from gatewayd.metering.interfaces import ChargingAdmission
from gatewayd.metering.meter import CallMeter
from gatewayd.metering.recorder import day_of
from gatewayd.metering.records import NO_USAGE, CallOutcome, MeteredCall, TokenUsage
from gatewayd.metering.usage_objects import read_usage
from gatewayd.metering.usage_records import UsageKey, UsageSums
from gatewayd.pipeline.filters.forwarded_answers import PassedAnswer
from gatewayd.pipeline.filters.streams import EVENT_STREAM_TYPE
from gatewayd.pipeline.responses.archive import ResponseArchive, StoredResponse
from gatewayd.pipeline.responses.reply_bodies import FINAL_EVENTS, decode_reply, examined
from gatewayd.tasks import TaskRegistry

log = logging.getLogger(__name__)

RUNNING: Final = frozenset({"queued", "in_progress"})
ENDED: Final = frozenset({"completed", "incomplete", "failed", "cancelled"})
SETTLE: Final = "usage of a response"
_FIELD: Final = "pending_usage"


@dataclass(frozen=True, slots=True)
class PendingUsage:
    """The row of usage of a response, and what is counted of it so far.

    `cost` is in nano-dollars, None for an unknown price; `is_estimated` is that of the call.
    """

    day: str
    key_id: str
    model: str
    endpoint: str
    counted: TokenUsage
    cost: int | None
    is_estimated: bool


def pending_body(call: MeteredCall | None, status: str, now: int) -> Body:
    """Return what is stored of a response whose reply had this status, empty if nothing is pending."""
    if status not in RUNNING or call is None or call.usage is None:
        return {}
    counted = (call.usage, call.cost, call.is_estimated)
    pending = PendingUsage(day_of(now), call.key_id, call.model, call.endpoint, *counted)
    return {_FIELD: {**asdict(pending), "counted": list(call.usage)}}


def pending_of(stored: StoredResponse) -> PendingUsage | None:
    """Return the pending usage of a response that a provider stores, None if it is counted."""
    found = stored.response.get(_FIELD)
    if not found:
        return None
    return PendingUsage(**{**found, "counted": TokenUsage._make(found["counted"])})


class BackgroundUsage:
    """Counts responses in the background: usage in the transaction that ends them, budgets right after."""

    def __init__(self, archive: ResponseArchive, meter: CallMeter, tasks: TaskRegistry) -> None:
        self._archive = archive
        self._meter = meter
        self._tasks = tasks

    async def settle(
        self, stored: StoredResponse, model: Model, actor: Actor, told: TokenUsage | None
    ) -> None:
        """Count what the provider told at the end, once, also if the caller is cancelled meanwhile.

        Without that the estimate remains. Raises the errors of the store; nothing is counted then, and the
        next read counts it.
        """
        pending = pending_of(stored)
        if pending is not None:
            await self._tasks.finish(SETTLE, self._settle(stored, pending, model, actor, told))

    async def _settle(
        self,
        stored: StoredResponse,
        pending: PendingUsage,
        model: Model,
        actor: Actor,
        told: TokenUsage | None,
    ) -> None:
        if told is None or not told.total:
            await self._archive.settle(stored, {})
            return
        call = self._call(stored, pending, model, actor)
        cost = self._meter.pricing(call, told)
        key = UsageKey(
            pending.day, stored.user_id, pending.key_id, pending.model, stored.source, pending.endpoint
        )
        if not await self._archive.settle(stored, {key: _rest(pending, told, cost)}):
            return
        # Budgets take nothing back: an estimate over the real tokens stays charged.
        pairs = zip(told, pending.counted, strict=True)
        call.usage = TokenUsage._make(max(0, real - counted) for real, counted in pairs)
        call.cost = None if cost is None else max(0, cost - (pending.cost or 0))
        for admission in self._meter.admissions:
            if isinstance(admission, ChargingAdmission):
                await admission.charge(call)

    def _call(self, stored: StoredResponse, pending: PendingUsage, model: Model, actor: Actor) -> MeteredCall:
        call = MeteredCall(stored.user_id, actor.group_ids, pending.key_id, pending.model, pending.endpoint)
        foresee(call, model, stored.source)
        call.attempts, call.ended_at, call.outcome = 1, call.began, CallOutcome.ANSWERED
        return call


def _rest(pending: PendingUsage, told: TokenUsage, cost: int | None) -> UsageSums:
    """Return what a row of usage lacks, and what it has too much."""
    counted = pending.counted
    # A row has no cost of a call without tokens.
    has_cost = counted != NO_USAGE
    return UsageSums(
        prompt=told.prompt - counted.prompt,
        cached=told.cached - counted.cached,
        cache_written=told.cache_written - counted.cache_written,
        completion=told.completion - counted.completion,
        reasoning=told.reasoning - counted.reasoning,
        cost=(cost or 0) - has_cost * (pending.cost or 0),
        unpriced=int(cost is None) - int(has_cost and pending.cost is None),
        estimated=-int(pending.is_estimated),
    )


class EndedAnswer(PassedAnswer):
    """A reply about one response; `ended` gets the usage that it tells before its end passes.

    A failure of `ended` is logged, and the reply passes.
    """

    def __init__(
        self, answer: ForwardedAnswer, response_id: str, ended: Callable[[TokenUsage | None], Awaitable[None]]
    ) -> None:
        super().__init__(answer)
        self._id = response_id
        self._ended = ended

    def _body(self) -> AsyncGenerator[bytes, None]:
        is_stream = self.content_type.lower().startswith(EVENT_STREAM_TYPE)
        return self._events() if is_stream else examined(self._answer, self._examine)

    async def _events(self) -> AsyncGenerator[bytes, None]:
        async with aclosing(self._answer) as reads:
            async for read in reads:
                for frame in read.split(b"\n\n"):
                    if frame.startswith(FINAL_EVENTS):
                        event = await decode_reply(frame.partition(b"\ndata:")[2])
                        await self._look(as_mapping(event).get("response"))
                yield read

    async def _examine(self, raw: bytes) -> None:
        await self._look(await decode_reply(raw))

    async def _look(self, value: Any) -> None:
        response = as_mapping(value)
        if response.get("id") != self._id or as_text(response.get("status")) not in ENDED:
            return
        try:
            await self._ended(read_usage(response.get("usage")))
        except GatewayError as error:
            log.error("usage of a response not counted: %s", error.full_message)
