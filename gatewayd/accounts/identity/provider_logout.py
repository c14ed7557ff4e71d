"""The end of sessions at a provider (OpenID Connect Back-Channel Logout 1.0, RP-Initiated Logout 1.0)."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlencode

from gatewayd import ids
from gatewayd.accounts.identity.discovery import ProviderDirectory
from gatewayd.accounts.identity.external_accounts import refuse
from gatewayd.accounts.identity.id_tokens import (
    MAX_LOGOUT_AGE_SECONDS,
    LogoutNotice,
    check_logout_token,
    is_audience,
)
from gatewayd.accounts.identity.interfaces import IdentityStore
from gatewayd.accounts.identity.provider_login import ProviderLogin
from gatewayd.accounts.identity.providers import ProviderKind, ProviderOptions
from gatewayd.accounts.identity.records import RefusalCode
from gatewayd.accounts.identity.signatures import read_claims, read_header, verify
from gatewayd.accounts.sessions import Sessions
from gatewayd.errors import GatewayError

MAX_HINT_CHARACTERS: Final = 4000
"""Longest id token in an address; servers limit addresses to about 8,000 characters."""


class ProviderLogout:
    """Ends sessions that began at a provider, on either side."""

    def __init__(
        self,
        login: ProviderLogin,
        directory: ProviderDirectory,
        store: IdentityStore,
        sessions: Sessions,
        clock: ids.Clock = ids.now,
    ) -> None:
        self._login = login
        self._directory = directory
        self._store = store
        self._sessions = sessions
        self._clock = clock

    async def end_by_token(self, token: str) -> tuple[str, int]:
        """End the sessions that a logout token names; return the provider and how many.

        Raises forbidden for a token that is not valid or was used before; then nothing ends. An unknown
        person or session is not an error.
        """
        options, notice = await self._read(token)
        names_person = options.claims.subject == "sub"
        if not names_person and not notice.session:
            raise refuse(
                RefusalCode.PROVIDER,
                f"the logout token names nobody known: accounts have the claim {options.claims.subject!r} of"
                " the provider; let it send sid",
            )
        used = ids.digest(f"jti {options.name} {notice.jti}")
        expires_at = self._clock() + 2 * MAX_LOGOUT_AGE_SECONDS
        if not await self._store.use_once(used, expires_at):
            raise refuse(RefusalCode.PROVIDER, "the logout token was used before")
        user_id = None
        if notice.subject and names_person:
            issuer = (await self._directory.metadata(options)).issuer
            link = await self._store.find(issuer, notice.subject)
            if link is None and not notice.session:
                return options.name, 0
            user_id = None if link is None else link.user_id
        if notice.session:
            ended = await self._sessions.end_of_provider(
                options.name, user_id=user_id, provider_session=notice.session
            )
            if user_id is not None:
                # Without an id the session may be that one.
                ended += await self._sessions.end_of_provider(
                    options.name, user_id=user_id, provider_session=""
                )
            return options.name, ended
        return options.name, await self._sessions.end_of_provider(options.name, user_id=user_id)

    async def address(self, session_id: str, return_to: str) -> str:
        """Return where to send the browser after its sign-out here, "" for nowhere.

        `session_id` is that of the session that ends. `return_to` is the address to come back to.
        """
        session = await self._sessions.find(session_id)
        if session is None or not session.origin.provider:
            return ""
        found = [each for each in self._login.providers if each.name == session.origin.provider]
        if not found:
            return ""
        options = found[0]
        endpoint = options.end_session_endpoint
        if not endpoint and options.kind is ProviderKind.OIDC:
            try:
                endpoint = (await self._directory.metadata(options)).end_session_endpoint
            except GatewayError:
                return ""
        if not endpoint:
            return ""
        tokens = await self._store.find_tokens(session.user_id, options.name)
        params = {"client_id": options.client_id, "post_logout_redirect_uri": return_to}
        if 0 < len(tokens.id_token) <= MAX_HINT_CHARACTERS:
            params["id_token_hint"] = tokens.id_token
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(params)}"

    async def _read(self, token: str) -> tuple[ProviderOptions, LogoutNotice]:
        """Return the provider of a logout token and what it says; raise forbidden."""
        for options in self._candidates(token):
            metadata = await self._directory.metadata(options)
            header = read_header(token, metadata.algorithms)
            unverified = read_claims(token)
            if unverified.get("iss") != metadata.issuer or not is_audience(unverified, options.client_id):
                continue
            claims = verify(token, header, await self._directory.keys(options, header.fits))
            notice = check_logout_token(
                claims,
                header.type,
                issuer=metadata.issuer,
                client_id=options.client_id,
                now=self._clock(),
            )
            return options, notice
        raise refuse(RefusalCode.PROVIDER, "the logout token is of no configured provider")

    def _candidates(self, token: str) -> Sequence[ProviderOptions]:
        """Return the providers that may have sent a token, by the address of their description."""
        if token.count(".") != 2:
            return ()
        issuer = read_claims(token).get("iss")
        if not isinstance(issuer, str) or not issuer:
            return ()
        return [
            options
            for options in self._login.providers
            if options.kind is ProviderKind.OIDC
            and issuer in (options.issuer, issuer_of(options), f"{issuer_of(options)}/")
        ]


def issuer_of(options: ProviderOptions) -> str:
    """Return the issuer that belongs to the address of a description, without a final slash."""
    return options.discovery_url.removesuffix("/.well-known/openid-configuration")
