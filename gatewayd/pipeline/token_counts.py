"""Counts of the tokens of messages requests: by the provider, by a tokenizer, or estimated."""

import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

import orjson

from gatewayd import json_encoder
from gatewayd.accounts.records import Actor
from gatewayd.catalog.interfaces import CallContext, CountingSource
from gatewayd.catalog.records import Model
from gatewayd.catalog.service import Catalog
from gatewayd.completions.reasoning_memory import ReasoningMemory
from gatewayd.completions.records import Body
from gatewayd.deadlines import TimeLimit
from gatewayd.errors import GatewayError
from gatewayd.pipeline.documents.placeholders import fill_message_request
from gatewayd.pipeline.endpoints import model_of
from gatewayd.pipeline.filters.inputs import InputFilters
from gatewayd.pipeline.local_counts import CountMethod, LocalCounter, LocalCounts, TokenCount
from gatewayd.pipeline.reasoning_keeper import ReasoningKeeper

COUNT_SECONDS: Final = 2.0
"""How long a provider may take to count."""

MAX_REMEMBERED_COUNTS: Final = 1000
"""Maximum number of counts of providers that are remembered, over all users."""


@dataclass(frozen=True, slots=True)
class CountCaller:
    """The user who asks for a count, with the facts of their request."""

    actor: Actor
    context: CallContext


class TokenCounts:
    """Counts requests. A provider counts only what it would get unchanged if it were asked for an answer.

    Thinking that others made never reaches it. `reasoning` is that of the pipeline, which knows signatures.
    """

    def __init__(
        self,
        catalog: Catalog,
        filters: InputFilters,
        counter: LocalCounter,
        *,
        reasoning: ReasoningKeeper | None = None,
        seconds: float = COUNT_SECONDS,
    ) -> None:
        self._catalog = catalog
        self._filters = filters
        self.local = LocalCounts(counter)
        self._reasoning = reasoning or ReasoningKeeper(ReasoningMemory())
        self._seconds = seconds
        self._known: OrderedDict[bytes, int] = OrderedDict()

    async def count(self, body: Body, caller: CountCaller) -> TokenCount:
        """Return the number of input tokens of a messages request.

        Placeholders in system messages are filled, as for an answer. A model that the actor may not use is
        counted like an unknown one, without a provider.
        """
        body = fill_message_request(body, caller.actor)
        try:
            model, source = await self._catalog.get(model_of(body), caller.actor)
            is_plain = not await self._filters.alters_requests(model.id)
        except GatewayError:
            return await self.local.count(body, "", caller.actor.user_id)
        if is_plain and isinstance(source, CountingSource):
            native = (await self._reasoning.restore_native(body, caller.actor.user_id, model)).body
            tokens = await self._ask({**native, "model": model.upstream_id}, model, source, caller.context)
            if tokens is not None:
                return TokenCount(tokens, CountMethod.PROVIDER)
        return await self.local.count(body, model.family or model.upstream_id, caller.actor.user_id)

    async def _ask(
        self, body: Body, model: Model, source: CountingSource, context: CallContext
    ) -> int | None:
        key = await _digest(body, model, context)
        if key in self._known:
            self._known.move_to_end(key)
            return self._known[key]
        try:
            async with TimeLimit(self._seconds):
                tokens = await source.count_message(body, model, context)
        except (GatewayError, TimeoutError):
            # It cannot count, or not now: the count of the gateway is better than none.
            return None
        self._known[key] = tokens
        if len(self._known) > MAX_REMEMBERED_COUNTS:
            self._known.popitem(last=False)
        return tokens


async def _digest(body: Body, model: Model, context: CallContext) -> bytes:
    """Return the hash of everything on which a count depends."""
    found = hashlib.sha256(orjson.dumps([model.source, sorted(context.client_headers.items())]))
    for part in await json_encoder.encode(body):
        found.update(part)
    return found.digest()
