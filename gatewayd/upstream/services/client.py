"""Client of the services for documents: embeddings, reranking, extraction."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from yarl import URL

from gatewayd.dialects.providers.family import family_of, is_hosted
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.upstream.http.client import UpstreamClient
from gatewayd.upstream.sources.config import ProviderConfig, SourceKind, UpstreamTimeouts
from gatewayd.upstream.sources.provider_client import ProviderClient

CONNECT_SECONDS: Final = 5.0

PASSED_KINDS: Final = frozenset(
    {
        ErrorKind.UPSTREAM_UNREACHABLE,
        ErrorKind.UPSTREAM_FAILED,
        ErrorKind.RATE_LIMITED,
        ErrorKind.TIMEOUT,
        ErrorKind.UNAVAILABLE,
    }
)
"""Kinds of failures that callers receive unchanged; other kinds become upstream_failed, because the document
or query of the caller is not at fault."""


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """Address, key and limits of a service.

    `timeout` is for a whole answer, in seconds. `connections` is the maximum number of open connections.
    """

    base_url: str
    key: str | None = field(default=None, repr=False)
    timeout: float = 60.0
    connections: int = 8


def make_service_client(
    name: str, options: ServiceOptions, client: UpstreamClient | None = None
) -> ProviderClient:
    """Return the client of a service; `name` stands for it in errors."""
    seconds = options.timeout
    connect = min(CONNECT_SECONDS, seconds)
    config = ProviderConfig(
        name,
        SourceKind.OPENAI,
        options.base_url,
        key=options.key or None,
        timeouts=UpstreamTimeouts(connect=connect, first_byte=seconds, idle=seconds, total=seconds),
        connections=options.connections,
    )
    headers = {"Authorization": f"Bearer {options.key}"} if options.key else {}
    return ProviderClient(config, headers, client)


def service_maker(options: ServiceOptions, kind: str = SourceKind.OPENAI.value) -> str:
    """Return the maker that hosts a service, whose prices apply; "" for one that people run themselves."""
    maker = family_of(kind, URL(options.base_url).host or "", "").maker
    return maker if is_hosted(maker) else ""


@contextmanager
def translate_refusals(*passed_on: ErrorKind) -> Iterator[None]:
    """Turn refusals of a service into upstream_failed, except the kinds in `passed_on`."""
    try:
        yield
    except GatewayError as error:
        if error.kind in PASSED_KINDS or error.kind in passed_on:
            raise
        raise GatewayError(ErrorKind.UPSTREAM_FAILED, error.message) from error
