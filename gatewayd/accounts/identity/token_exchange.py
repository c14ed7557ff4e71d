"""Access tokens of listed clients of a provider in exchange for a session (off without a list)."""

from typing import Any

from gatewayd import ids
from gatewayd.accounts.identity import claims as claim_reader
from gatewayd.accounts.identity.discovery import ProviderDirectory
from gatewayd.accounts.identity.external_accounts import refuse
from gatewayd.accounts.identity.id_tokens import check_access_token
from gatewayd.accounts.identity.interfaces import ProviderTransport
from gatewayd.accounts.identity.provider_login import ProviderLogin
from gatewayd.accounts.identity.providers import ProviderKind, ProviderMetadata, ProviderOptions
from gatewayd.accounts.identity.records import ExternalIdentity, RefusalCode
from gatewayd.accounts.identity.signatures import read_header, verify
from gatewayd.accounts.identity.token_answers import MAX_TOKEN_CHARACTERS
from gatewayd.errors import not_found


class TokenExchange:
    """Tells who an access token of a provider belongs to."""

    def __init__(
        self,
        login: ProviderLogin,
        directory: ProviderDirectory,
        transport: ProviderTransport,
        clock: ids.Clock = ids.now,
    ) -> None:
        self._login = login
        self._directory = directory
        self._transport = transport
        self._clock = clock

    def get(self, name: str) -> ProviderOptions:
        """Return the options of a provider whose tokens are exchanged; raise not_found for another one."""
        options = self._login.get(name)
        if not options.trusted_clients or options.kind is not ProviderKind.OIDC:
            raise not_found("provider", name)
        return options

    async def identify(self, name: str, token: str) -> ExternalIdentity:
        """Return the person of an access token; raise forbidden for one of another client.

        A signed token (RFC 9068) must name a listed client in `azp` or `client_id`; for another token the
        provider is asked (RFC 7662).
        """
        options = self.get(name)
        if not 0 < len(token) <= MAX_TOKEN_CHARACTERS or not token.isascii() or not token.isprintable():
            raise refuse(RefusalCode.PROVIDER, "the access token is not plain")
        metadata = await self._directory.metadata(options)
        is_signed = token.count(".") == 2
        found = await (self._read_signed if is_signed else self._introspect)(options, metadata, token)
        userinfo = await self._login.read_userinfo(options, metadata, found, token)
        return claim_reader.read_identity(found, userinfo, options, metadata.issuer)

    async def _read_signed(
        self, options: ProviderOptions, metadata: ProviderMetadata, token: str
    ) -> dict[str, Any]:
        header = read_header(token, metadata.algorithms)
        claims = verify(token, header, await self._directory.keys(options, header.fits))
        client = check_access_token(claims, header.type, issuer=metadata.issuer, now=self._clock())
        _check_client(options, client)
        return claims

    async def _introspect(
        self, options: ProviderOptions, metadata: ProviderMetadata, token: str
    ) -> dict[str, Any]:
        if not metadata.introspection_endpoint:
            raise refuse(RefusalCode.PROVIDER, "the provider does not say whom the token belongs to")
        form = {"token": token, "token_type_hint": "access_token"}
        found = await self._transport.post_form(options, metadata, metadata.introspection_endpoint, form)
        if found.get("active") is not True or not isinstance(found.get("sub"), str):
            raise refuse(RefusalCode.PROVIDER, "the access token is not active")
        _check_client(options, str(found.get("client_id", "")))
        return dict(found)


def _check_client(options: ProviderOptions, client: str) -> None:
    if not client or client not in options.trusted_clients:
        raise refuse(RefusalCode.PROVIDER, "the access token is one of another client")
