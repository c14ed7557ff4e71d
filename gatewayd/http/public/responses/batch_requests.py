"""Requests of the Responses protocol in batches."""

from typing import Any

from gatewayd.accounts.records import Actor
from gatewayd.batches.interfaces import RequestRunner
from gatewayd.batches.lines import RESPONSES_ENDPOINT
from gatewayd.batches.records import Batch
from gatewayd.batches.requests import read_answer
from gatewayd.completions.records import Body
from gatewayd.dialects.responses.request import background_refusal
from gatewayd.http.public.responses.conversion import ResponseConversion
from gatewayd.http.public.responses.native import NativeResponses
from gatewayd.pipeline.filters.inputs import RequestCaller
from gatewayd.pipeline.pipeline import Pipeline


class ResponseBatchRequests:
    """A `RequestRunner` that answers the Responses protocol, and leaves all other endpoints to `others`."""

    def __init__(
        self,
        others: RequestRunner,
        pipeline: Pipeline,
        native: NativeResponses,
        conversion: ResponseConversion,
    ) -> None:
        self._others = others
        self._pipeline = pipeline
        self._native = native
        self._conversion = conversion

    async def run(self, batch: Batch, body: Body, actor: Actor, request_id: str) -> Any:
        """Return the answer to a request: that of a native source, or a converted one."""
        if batch.endpoint != RESPONSES_ENDPOINT:
            return await self._others.run(batch, body, actor, request_id)
        forwarded = await self._native.pass_on(body, RequestCaller(actor, request_id))
        if forwarded is not None:
            return await read_answer(forwarded)
        prepared = await self._conversion.prepare(body, actor)
        if prepared.request.is_background:
            raise background_refusal()
        prepared.chat.request_id = request_id
        answer = await self._pipeline.run(prepared.chat, actor)
        stream = prepared.stream
        stream.sources, stream.origin = answer.sources, answer.origin
        stream.feed_whole({} if answer.completion is None else answer.completion.body)
        stream.finish()
        is_stored = await self._conversion.keep(prepared, actor, request_id)
        return {**stream.response, "store": is_stored}
