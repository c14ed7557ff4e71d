"""A provider's answer whose bytes are passed on as they come."""

from typing import Self

from gatewayd.upstream.client import TransportError, UpstreamResponse
from gatewayd.upstream.failures import Failures


class ForwardedReply:
    """A `catalog.interfaces.Forwarded` over a response."""

    __slots__ = ("_failures", "_response")

    def __init__(self, response: UpstreamResponse, failures: Failures) -> None:
        self._response = response
        self._failures = failures

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
        """Return what the next read brings; raises GatewayError when the answer breaks off."""
        try:
            read = await self._response.read_some()
        except TransportError as error:
            raise self._failures.from_transport(error) from error
        if not read:
            raise StopAsyncIteration
        return read

    async def aclose(self) -> None:
        """Close the provider's connection at once unless the body was read to its end."""
        self._response.close()
