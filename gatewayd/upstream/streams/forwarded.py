"""A provider's answer whose bytes are passed on as they come, as far as they are an answer."""

from typing import Self

from gatewayd.errors import GatewayError
from gatewayd.upstream.http.client import TransportError, UpstreamResponse
from gatewayd.upstream.sources.failures import ProviderFailures
from gatewayd.upstream.streams.checks import StreamChecker
from gatewayd.upstream.streams.sse import FramingError


class ForwardedReply:
    """A `catalog.interfaces.Forwarded` over a response; `check` decides what of it passes."""

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
        """The media type with its parameters, empty when none was named."""
        return self._response.headers.get("Content-Type", "")

    def __aiter__(self) -> Self:
        """Return itself: a body is read once."""
        return self

    async def __anext__(self) -> bytes:
        """Return what may pass next; raises GatewayError when the answer breaks off, fails or is none."""
        while True:
            self._raise_error()
            if self._check.is_done and not self._has_ended:
                # The provider may leave the connection open.
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
        """Close the provider's connection at once unless the body was read to its end."""
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
