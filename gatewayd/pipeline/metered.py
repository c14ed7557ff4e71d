"""Metered calls of the endpoints outside of the chat pipeline: one answer, or a reply that is passed on."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from gatewayd.catalog.failover import Candidate, foresee
from gatewayd.catalog.interfaces import CallContext, ForwardedAnswer, ModelSource
from gatewayd.catalog.records import Model
from gatewayd.catalog.service import Catalog
from gatewayd.completions.records import Body
from gatewayd.metering.answers import MeteredReply, finish_whole
from gatewayd.metering.limit_headers import add_limit_headers
from gatewayd.metering.records import MeteredCaller
from gatewayd.pipeline.records import Endpoint

Result = TypeVar("Result")


class MeteredQuestion:
    """One request to the sources of its model."""

    def __init__(
        self,
        catalog: Catalog,
        candidates: Sequence[Candidate[ModelSource]],
        caller: MeteredCaller,
        context: CallContext,
        endpoint: Endpoint,
        body: Body,
    ) -> None:
        self._catalog = catalog
        self._candidates = candidates
        self._headers = context.reply_headers
        self._call = context.call = catalog.meter.begin(
            caller,
            candidates[0].model.id,
            endpoint,
            body,
            request_id=context.request_id,
            is_stream=body.get("stream") is True,
        )
        foresee(self._call, candidates[0].model, candidates[0].source.name)

    async def whole(self, question: Callable[[Model, ModelSource], Awaitable[Body]]) -> Body:
        """Return the answer of the first source that gives one, as `Failover.ask`."""
        answer = await self._ask(question)
        finish_whole(self._catalog.meter, self._call, answer)
        return answer

    async def reply(
        self, question: Callable[[Model, ModelSource], Awaitable[ForwardedAnswer]]
    ) -> ForwardedAnswer:
        """Return the reply of the first source that gives one; the call ends with its body."""
        reply = await self._ask(question)
        return MeteredReply(reply, self._call, self._catalog.meter)

    async def _ask(self, question: Callable[[Model, ModelSource], Awaitable[Result]]) -> Result:
        meter, failover = self._catalog.meter, self._catalog.failover
        answer = await meter.run(self._call, failover.ask, self._candidates, question, self._call)
        if self._call.admissions:
            add_limit_headers(self._call, self._headers)
        return answer
