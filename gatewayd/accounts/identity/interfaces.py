"""Storage interfaces of external identities; the rules of `accounts.interfaces` apply."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from gatewayd.accounts.identity.providers import JsonObject, ProviderMetadata, ProviderOptions
from gatewayd.accounts.identity.records import LinkedIdentity, ProviderTokens


class IdentityStore(Protocol):
    """Links of accounts to persons at providers, and values that may be used once.

    No two links have the same issuer and subject, or the same user and provider.
    """

    async def add(self, link: LinkedIdentity) -> None:
        """Insert a link; raise conflict if its identity, or the provider of its user, is linked."""
        ...

    async def find(self, issuer: str, subject: str) -> LinkedIdentity | None:
        """Return the link of an identity."""
        ...

    async def list(self, user_id: str) -> Sequence[LinkedIdentity]:
        """Return the links of a user, sorted by provider."""
        ...

    async def touch(self, link: LinkedIdentity) -> None:
        """Write `provisioning_id`, `email` and `used_at` of a link."""
        ...

    async def remove(self, user_id: str, provider: str) -> bool:
        """Delete a link with its tokens; return whether there was one."""
        ...

    async def find_subject_owner(self, provider: str, subject: str) -> str | None:
        """Return the id of the user whose `oauth` has this subject of a provider."""
        ...

    async def find_external_id_owner(self, provider: str, external_id: str) -> str | None:
        """Return the id of the user whose `scim` has this external id of a provider."""
        ...

    async def put_tokens(self, user_id: str, provider: str, tokens: ProviderTokens) -> None:
        """Store the tokens of a link; an empty token leaves the present one.

        `expires_at` is stored with an access token only.
        """
        ...

    async def find_tokens(self, user_id: str, provider: str) -> ProviderTokens:
        """Return the tokens of a link; empty ones without a link or if they cannot be decrypted."""
        ...

    async def use_once(self, digest: str, expires_at: int) -> bool:
        """Store that a value was used; return False if it was used before, in any process."""
        ...

    async def prune(self, before: int) -> int:
        """Delete the used values that expired before this time (epoch seconds); return how many."""
        ...


class ProviderTransport(Protocol):
    """Requests to a provider: no redirects, limited in time and size.

    Raises forbidden with the code `unreachable` for no answer, a server error or a 429, and `provider` for
    another answer that is no JSON object with a status of 200.
    """

    async def get_json(self, options: ProviderOptions, url: str, *, bearer: str = "") -> JsonObject:
        """Return the JSON object at an address; a JSON list is `{"items": [...]}`."""
        ...

    async def post_form(
        self, options: ProviderOptions, metadata: ProviderMetadata, url: str, form: Mapping[str, str]
    ) -> JsonObject:
        """Send a form as the client of the provider, with its secret, and return the JSON object."""
        ...

    async def revoke(self, options: ProviderOptions, metadata: ProviderMetadata, token: str) -> None:
        """Revoke a refresh token (RFC 7009)."""
        ...

    async def check_endpoints(self, options: ProviderOptions, metadata: ProviderMetadata) -> None:
        """Raise forbidden (`provider`) if an endpoint on another host than the issuer's is at a private
        address and the issuer is not."""
        ...
