"""Interfaces of the store and of the test of managed providers."""

from typing import Protocol

from gatewayd.catalog.providers.records import ManagedProvider, ProviderOffer, StoredProviders


class ProviderStore(Protocol):
    """Store of the providers in the database, with their keys encrypted."""

    async def load(self) -> StoredProviders:
        """Return what is stored; a provider whose key cannot be decrypted has a `problem` and no key."""
        ...

    async def save(self, stored: StoredProviders, *, at: int, by: str) -> None:
        """Replace what is stored in one statement; the change is committed on return."""
        ...


class ProviderTester(Protocol):
    """Checks and tests a provider with the client that chats use."""

    def validate(self, provider: ManagedProvider) -> None:
        """Raise invalid_request that names `base_url`, `key` or `name`, as for a provider of the settings."""
        ...

    async def test(self, provider: ManagedProvider) -> ProviderOffer:
        """Request the list of models now, with a deadline; raises GatewayError with what failed."""
        ...

    async def find_key_doubt(self, provider: ManagedProvider) -> str:
        """Return why the list of models does not show that the key works, "" if it does."""
        ...
