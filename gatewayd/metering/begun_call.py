"""A call of a model that the fast path has begun and that the general way goes on with.

The general way finds it in `BEGUN`: the call is metered once, and its request is not sent again.
"""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Final

from gatewayd.measurement.request_notes import RequestNotes
from gatewayd.metering.records import MeteredCall


class BegunCall:
    """A metered call, the request that it has sent, and the provider's response to it.

    `abandon` ends what nobody has taken. `began` is the time of the request in seconds of `perf_counter`, and
    `notes` are those of the request.
    """

    __slots__ = ("_abandon", "_call", "_response", "_sent", "began", "notes", "request_id")

    def __init__(
        self,
        call: MeteredCall,
        sent: tuple[str, Mapping[str, str], bytes],
        response: object,
        abandon: Callable[[MeteredCall | None, object | None], None],
    ) -> None:
        self._call: MeteredCall | None = call
        self._sent = sent
        self._response: object | None = response
        self._abandon = abandon
        self.request_id = call.request_id
        self.began = 0.0
        self.notes: RequestNotes | None = None

    def take_call(self, model: str) -> MeteredCall | None:
        """Return the call for a model, once; None for another model."""
        call = self._call
        if call is None or call.model != model:
            return None
        self._call = None
        # The source is asked again, by the general way; nothing that has to admit it concerned the call.
        call.attempts = 0
        call.is_admitted = True
        return call

    def take_response(self, url: str, headers: Mapping[str, str], body: bytes | None) -> object | None:
        """Return the response to a request, once; None for another request than the one that was sent."""
        if self._response is None or self._sent != (url, headers, body):
            return None
        response, self._response = self._response, None
        return response

    def abandon(self) -> None:
        """End the call and the response unless they were taken."""
        call, self._call = self._call, None
        response, self._response = self._response, None
        self._abandon(call, response)


BEGUN: Final[ContextVar[BegunCall | None]] = ContextVar("begun_call", default=None)
"""The call that the fast path has begun for the present request, None for most requests."""
