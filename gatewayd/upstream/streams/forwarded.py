"""Answer of a provider that is forwarded byte by byte after a check."""

from typing import Self

from gatewayd.errors import GatewayError
from gatewayd.upstream.http.client import TransportError, UpstreamResponse
from gatewayd.upstream.sources.failures import ProviderFailures
from gatewayd.upstream.streams.checks import StreamChecker
from gatewayd.upstream.streams.sse import FramingError


class ForwardedReply:
    """A `catalog.interfaces.ForwardedAnswer` over a response; `check` decides which bytes are forwarded."""

    __slots__ = ("_check", "_failures", "_has_ended", "_response")

    def __init__(self, response: UpstreamResponse, failures: ProviderFailures, check: StreamChecker) -> None:
        self._response = response
        self._failures = failures
        self._check = check
        self._has_ended = False

    @property
    def status(self) -> int:
        """The HTTP status, below 300."""
        return self._response.status

    @property
    def content_type(self) -> str:
        """The media type with its parameters, empty if there is none."""
        return self._response.headers.get("Content-Type", "")

    def __aiter__(self) -> Self:
        """Return itself: a body is read once."""
        return self

    async def __anext__(self) -> bytes:
        """Return the next bytes to forward; raises GatewayError if the answer fails or is invalid."""
        while True:
            self._raise_error()
            if self._check.is_done and not self._has_ended:
                # The provider may keep the connection open.
                self._has_ended = True
                await self._response.finish()
            if self._has_ended:
                raise StopAsyncIteration
            read = await self._read()
            self._has_ended = not read
            passed = self._check.feed(read) if read else self._check.finish()
            if passed:
                return self._failures.redacted(passed)

    async def aclose(self) -> None:
        """Close the connection of the provider at once unless the body is complete."""
        self._response.close()

    async def _read(self) -> bytes:
        try:
            return await self._response.read_some()
        except TransportError as error:
            raise self._failures.from_transport(error) from error

    def _raise_error(self) -> None:
        error = self._check.error
        if error is None:
            return
        self._response.close()
        raise self._failure(error)

    def _failure(self, error: object) -> GatewayError:
        if isinstance(error, FramingError):
            return self._failures.broken(str(error))
        return self._failures.from_event(error)
