"""A streamed chat request that the fast path has sent."""

from enum import Enum
from typing import Final, cast

from gatewayd.catalog.interfaces import CallContext, ClosableResponse, ImmediateChunks
from gatewayd.completions.records import CompletionChunk
from gatewayd.errors import GatewayError
from gatewayd.metering.answers import MeteredArrivals
from gatewayd.metering.begun_call import BegunCall
from gatewayd.metering.meter import CallMeter
from gatewayd.metering.records import CallOutcome, MeteredCall
from gatewayd.pipeline.pipeline import told_warnings
from gatewayd.pipeline.records import ChatAnswer, ChatRequest


class Pending(Enum):
    """Says that the beginning of an answer has not come yet."""

    PENDING = "pending"


PENDING: Final = Pending.PENDING

Asked = tuple[ChatRequest, CallContext, str, bool]
"""A request, what its source knows of it, who makes the reasoning of its answer, and whether the answer is in
the messages dialect."""


class BegunChatStream:
    """The answer to a streamed request: its first chunk, then the others as they come."""

    __slots__ = ("_asked", "_call", "_chunks", "_meter", "_metered", "_origin", "first")

    def __init__(
        self,
        chunks: ImmediateChunks,
        call: MeteredCall,
        meter: CallMeter,
        asked: Asked,
        *,
        hides_usage: bool,
    ) -> None:
        self._asked = asked
        self._chunks = chunks
        self._call = call
        self._meter = meter
        self._metered = MeteredArrivals(chunks, call, meter, hides_usage=hides_usage)
        self.first: CompletionChunk | None = None
        """The first chunk, once `take` has returned the answer."""

    @property
    def chunks(self) -> MeteredArrivals:
        """The chunks behind the first one."""
        return self._metered

    def take(self) -> ChatAnswer | Pending | None:
        """Return the answer once its first chunk has come; None for one that the pipeline has to read.

        After None the request is to be handed over.
        """
        if not self._chunks.is_forwardable():
            return None
        try:
            self.first = self._metered.take()
        except (GatewayError, StopAsyncIteration):
            return None
        if self.first is None:
            return PENDING
        request, context, origin, is_native = self._asked
        return ChatAnswer(
            chunks=self._metered,
            warnings=told_warnings(request, context),
            is_native=is_native,
            headers=context.reply_headers,
            origin=origin,
        )

    def hand_over(self) -> BegunCall:
        """Return what `Pipeline.run` needs to go on with the request."""
        self._chunks.hand_back()
        return BegunCall(self._call, self._chunks.sent, self._chunks.response, self._end)

    def cancel(self) -> None:
        """End the request, whose client does not wait for the answer."""
        self._metered.close()
        self._end(self._call, self._chunks.response)

    def _end(self, call: MeteredCall | None, response: object | None) -> None:
        end_call(self._meter, call, response)


def end_call(meter: CallMeter, call: MeteredCall | None, response: object | None) -> None:
    """End a call without an answer, and its response."""
    if response is not None:
        cast(ClosableResponse, response).close()
    if call is not None:
        meter.finish(call, CallOutcome.CANCELLED)
