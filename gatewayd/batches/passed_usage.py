"""Usage of requests that a provider ran in a batch: stored once, whenever the daemon is killed."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

import orjson

from gatewayd import ids
from gatewayd.accounts.records import Actor
from gatewayd.batches.interfaces import BatchActors, BatchStore
from gatewayd.batches.passed_choice import KINDS
from gatewayd.batches.progress import BatchProgress
from gatewayd.batches.progress_file import FinishedLine
from gatewayd.batches.records import Batch
from gatewayd.catalog.failover import foresee
from gatewayd.catalog.records import Model
from gatewayd.catalog.service import Catalog
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.metering.interfaces import ChargingAdmission
from gatewayd.metering.recorder import count_call, day_of
from gatewayd.metering.records import NO_USAGE, CallOutcome, MeteredCall, TokenUsage
from gatewayd.metering.usage_objects import read_usage
from gatewayd.metering.usage_records import UsageKey, UsageSums

RECOUNTED_AT_ONCE: Final = 256


class PassedTokens(NamedTuple):
    """The model that a caller named, and the tokens of an answer, None if the provider did not tell them."""

    model: str
    usage: TokenUsage | None


class PassedUsage:
    """Counts the answers of one batch.

    The sums are stored in one transaction with the counts of the batch, which tell how many of the stored
    answers are counted: after a kill the others are. Budgets are charged right after that.
    """

    def __init__(
        self,
        batch: Batch,
        store: BatchStore,
        actors: BatchActors,
        catalog: Catalog,
        clock: ids.Clock = ids.now,
    ) -> None:
        self._batch = batch
        self._store = store
        self._actors = actors
        self._catalog = catalog
        self._clock = clock
        self.provider = ""
        """Name of the provider."""

    async def begin(self, progress: BatchProgress) -> None:
        """Take the answers that there are before the first submission as counted: the gateway ran them."""
        await self._store.store_usage(self._batch.id, {}, progress.completed, progress.failed)

    async def recount(self, progress: BatchProgress) -> None:
        """Count the stored answers that a killed daemon has not counted; raises OSError."""
        stored = await self._store.find(self._batch.id)
        if stored is None:
            return
        completed, failed = stored.completed, stored.failed
        records = islice(progress.records(), completed + failed, None)
        while found := await asyncio.to_thread(_answers, records):
            completed += sum(is_success for is_success, _ in found)
            failed += sum(not is_success for is_success, _ in found)
            await self.count([answer for _, answer in found if answer is not None], completed, failed)

    async def count(self, answers: Sequence[PassedTokens], completed: int, failed: int) -> None:
        """Count answers, after which so many of the batch are counted."""
        actor = await self._actor()
        calls = await self._calls(answers, actor)
        day = day_of(self._clock())
        rows: dict[UsageKey, UsageSums] = {}
        for call in calls:
            key = UsageKey(day, call.user_id, call.key_id, call.model, call.source, call.endpoint)
            count_call(rows.setdefault(key, UsageSums()), call)
        is_stored = await self._store.store_usage(self._batch.id, rows, completed, failed)
        if is_stored:
            await self._charge(calls)

    async def can_hold(self, estimates: Mapping[str, TokenUsage], actor: Actor) -> bool:
        """Return whether the budgets of a user have room for requests, with estimates by models."""
        for name, usage in estimates.items():
            [call] = await self._calls([PassedTokens(name, usage)], actor)
            for admission in self._charging():
                if not await admission.can_hold(call, usage):
                    return False
        return True

    async def _charge(self, calls: Sequence[MeteredCall]) -> None:
        """Charge budgets with the sums of calls, one for each model."""
        sums: dict[str, MeteredCall] = {}
        for call in calls:
            known = sums.setdefault(call.model, call)
            if known is not call:
                known.usage = (known.usage or NO_USAGE).plus(call.usage or NO_USAGE)
                is_unknown = known.cost is None or call.cost is None
                known.cost = None if is_unknown else (known.cost or 0) + (call.cost or 0)
        for admission in self._charging():
            for call in sums.values():
                await admission.charge(call)

    def _charging(self) -> Iterator[ChargingAdmission]:
        return (each for each in self._catalog.meter.admissions if isinstance(each, ChargingAdmission))

    async def _actor(self) -> Actor | None:
        """Return the user of the batch, None if they have no rights any more."""
        try:
            return await self._actors.of(self._batch)
        except GatewayError as error:
            if error.kind is not ErrorKind.FORBIDDEN:
                raise
            return None

    async def _calls(self, answers: Sequence[PassedTokens], actor: Actor | None) -> list[MeteredCall]:
        models: dict[str, Model | None] = {}
        calls = []
        for answer in answers:
            if answer.model not in models:
                models[answer.model] = await self._find_model(answer.model, actor)
            calls.append(self._call(answer, models[answer.model], actor))
        return calls

    async def _find_model(self, name: str, actor: Actor | None) -> Model | None:
        if actor is None:
            return None
        try:
            found = await self._catalog.candidates(name, actor)
        except GatewayError:
            # Without the model its price is unknown, and its tokens count.
            return None
        return next((each.model for each in found if each.source.name == self.provider), None)

    def _call(self, answer: PassedTokens, model: Model | None, actor: Actor | None) -> MeteredCall:
        batch = self._batch
        name = answer.model if model is None else model.id
        groups = () if actor is None else actor.group_ids
        call = MeteredCall(batch.user_id, groups, batch.key_id or "", name, KINDS[batch.endpoint])
        if model is None:
            call.source = self.provider
        else:
            foresee(call, model, self.provider)
        call.attempts, call.ended_at, call.outcome = 1, call.began, CallOutcome.ANSWERED
        call.usage = answer.usage or NO_USAGE
        call.cost = self._catalog.meter.pricing(call, call.usage)
        return call


def _answers(records: Iterator[FinishedLine]) -> list[tuple[bool, PassedTokens | None]]:
    """Return the next answers, in a thread."""
    return [(each.is_success, usage_of(each)) for each in islice(records, RECOUNTED_AT_ONCE)]


def usage_of(record: FinishedLine) -> PassedTokens | None:
    """Return what the request of a stored answer used, None for one that failed."""
    if not record.is_success:
        return None
    value = orjson.loads(record.result)
    body = value["result"]["message"] if "result" in value else value["response"]["body"]
    return PassedTokens(str(body.get("model")), read_usage(body.get("usage")))
