"""Services that are asked for documents' sake: embeddings, reranking, extraction."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from gatewayd.errors import GatewayError, Kind
from gatewayd.upstream.http.client import UpstreamClient
from gatewayd.upstream.sources.config import ProviderConfig, SourceKind, Timeouts
from gatewayd.upstream.sources.provider_client import Exchange

CONNECT_SECONDS: Final = 5.0

PASSED_ON: Final = frozenset(
    {Kind.UPSTREAM_UNREACHABLE, Kind.UPSTREAM_FAILED, Kind.RATE_LIMITED, Kind.TIMEOUT, Kind.UNAVAILABLE}
)
"""Failures that are what they say; of others, the caller's document or question is not at fault."""


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """How a service is reached.

    `timeout` is for a whole answer, in seconds. `connections` are open at a time at most.
    """

    base_url: str
    key: str | None = field(default=None, repr=False)
    timeout: float = 60.0
    connections: int = 8


def exchange_with(name: str, options: ServiceOptions, client: UpstreamClient | None = None) -> Exchange:
    """Return the exchange with a service, which failures call by this name."""
    seconds = options.timeout
    connect = min(CONNECT_SECONDS, seconds)
    config = ProviderConfig(
        name,
        SourceKind.OPENAI,
        options.base_url,
        key=options.key or None,
        timeouts=Timeouts(connect=connect, first_byte=seconds, idle=seconds, total=seconds),
        connections=options.connections,
    )
    headers = {"Authorization": f"Bearer {options.key}"} if options.key else {}
    return Exchange(config, headers, client)


@contextmanager
def service_failures(*passed_on: Kind) -> Iterator[None]:
    """Make refusals of a service its failures, but for the kinds that are passed on."""
    try:
        yield
    except GatewayError as error:
        if error.kind in PASSED_ON or error.kind in passed_on:
            raise
        raise GatewayError(Kind.UPSTREAM_FAILED, error.message) from error
