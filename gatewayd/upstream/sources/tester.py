"""Check and test of a provider that an administrator enters, with the client that chats use."""

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Final

import orjson

from gatewayd.catalog.interfaces import RuntimeSource
from gatewayd.catalog.providers.records import ManagedProvider, ProviderOffer
from gatewayd.completions.refusal_reasons import RefusalReason
from gatewayd.deadlines import TimeLimit
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.upstream.sources.config import ModelListUse, ProviderConfig, SourceKind
from gatewayd.upstream.sources.factory import open_source

MAX_VERSION_BYTES = 64 * 1024
"""Maximum number of bytes of a runtime's version."""

UNPROVED: Final = "its models are listed without a key"
"""Why the list of models says nothing about a key."""

REFUSAL_KINDS: Final = frozenset({ErrorKind.INVALID_REQUEST, ErrorKind.NOT_FOUND})
"""Kinds of errors that refuse a request without a key, besides those about the key."""

ConfigOf = Callable[[ManagedProvider], ProviderConfig]


class SourceTester:
    """Implements `ProviderTester`; `config_of` adds the timeouts of the settings."""

    def __init__(self, config_of: ConfigOf, deadline: Callable[[], float]) -> None:
        self._config_of = config_of
        self._deadline = deadline

    def validate(self, provider: ManagedProvider) -> None:
        """Raise invalid_request naming `base_url`, `key` or `name`."""
        self._config_of(provider)

    async def test(self, provider: ManagedProvider) -> ProviderOffer:
        """Request the models, and the version of a runtime; raises GatewayError with what failed."""
        return await self._ask(self._config_of(provider))

    async def find_key_doubt(self, provider: ManagedProvider) -> str:
        """Return why a list of models that was read with the key does not show that the key works, or ""."""
        config = self._config_of(provider)
        if config.kind is SourceKind.BEDROCK:
            # Without a key the credentials of the machine would be used; each request of the list is signed.
            return UNPROVED if config.model_list is ModelListUse.REPLACE else ""
        try:
            await self._ask(replace(config, key=None, keys=()))
        except GatewayError as error:
            if error.kind in REFUSAL_KINDS or error.provider_code == RefusalReason.KEY:
                return ""
            return f"whether its list of models needs a key is not known: {error.message}"
        return UNPROVED

    async def _ask(self, config: ProviderConfig) -> ProviderOffer:
        source = open_source(config)
        seconds = self._deadline()
        try:
            async with TimeLimit(seconds):
                models = await source.list_models()
                version = await _version(source) if isinstance(source, RuntimeSource) else None
        except TimeoutError as error:
            raise GatewayError(
                ErrorKind.TIMEOUT,
                f"cannot list the models of provider {config.name!r}: no answer within {seconds:g} s",
            ) from error
        finally:
            await source.close()
        return ProviderOffer(tuple(model.upstream_id for model in models), version)


async def _version(source: RuntimeSource) -> str | None:
    """Return the version that a runtime tells; None when it tells none."""
    data = bytearray()
    async with aclosing(await source.forward("GET", "/api/version", None)) as answer:
        async for part in answer:
            data += part
            if len(data) > MAX_VERSION_BYTES:
                return None
    try:
        found = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    version = found.get("version") if isinstance(found, dict) else None
    return version if isinstance(version, str) else None
