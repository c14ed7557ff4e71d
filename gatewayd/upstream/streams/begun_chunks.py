"""Chunks of an answer to a request that was sent at once."""

from collections.abc import Callable, Mapping
from typing import NoReturn

from gatewayd.catalog.interfaces import AnswerWatch
from gatewayd.upstream.http.client import FollowedResponse
from gatewayd.upstream.sources.failures import ProviderFailures
from gatewayd.upstream.streams.chunks import AnswerChunks, StreamReader, media_type

WHOLE_TYPES = frozenset({"application/json", "text/html"})
"""Media types of answers that are read whole."""

MAX_EARLY_BYTES = 64 * 1024
"""Maximum number of bytes before the first chunk."""


class BegunChunks(AnswerChunks):
    """A `catalog.interfaces.ImmediateChunks`.

    `arrived` is the follower of the response, up to `follow`; so long nothing closes the response. `expect`
    is called with an answer that is forwarded.
    """

    def __init__(
        self,
        sent: tuple[str, Mapping[str, str], bytes],
        response: FollowedResponse,
        arrived: Callable[[], None],
        reading: tuple[StreamReader, ProviderFailures, AnswerWatch | None],
        expect: Callable[[], None],
    ) -> None:
        reader, failures, watch = reading
        super().__init__(None, reader, failures, None, watch)
        self.sent = sent
        """URL, headers and body of the request."""
        self.response = response
        self._followed, self._arrived = response, arrived
        self._expect = expect

    def is_forwardable(self) -> bool:
        """Return whether the answer is one of chunks, as far as it has arrived."""
        response = self.response
        if not 200 <= response.status < 300 or self._size > MAX_EARLY_BYTES:
            return False
        if media_type(response) in WHOLE_TYPES:
            return False
        self._expect()
        return True

    def follow(self, arrived: Callable[[], None]) -> bool:
        """Call `arrived` from now on when `take` may return something; nothing is handed back any more."""
        self._response = self.response
        return super().follow(arrived)

    def hand_back(self) -> None:
        """Give the response with all its bytes to another reader."""
        self.response.hand_back()

    def _end(self, response: FollowedResponse) -> NoReturn:
        if self._response is None:
            self._is_done()
            raise StopAsyncIteration
        super()._end(response)
