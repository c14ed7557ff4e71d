"""Tokens of providers for plugins: the argument `__oauth_token__`, for the person of the call alone."""

import logging
from typing import Any, Final

from gatewayd import ids
from gatewayd.accounts.identity.interfaces import IdentityStore
from gatewayd.accounts.identity.provider_login import ProviderLogin
from gatewayd.accounts.identity.records import ProviderTokens
from gatewayd.accounts.records import Actor
from gatewayd.accounts.sessions import Sessions
from gatewayd.errors import GatewayError
from gatewayd.keyed_locks import KeyedLocks

log = logging.getLogger(__name__)

REFRESH_SECONDS: Final = 60
"""Rest of the life of an access token in which it is refreshed."""

RETRY_SECONDS: Final = 30
"""Time in which one process asks a provider once for the tokens of a person."""


class PersonTokens:
    """Gives the access token of a person for the provider at which their session began.

    A call with a key, or in a session by a password, has none. A token that is about to expire is refreshed
    (RFC 6749, 6). The refresh token stays here: providers replace it at each use, and end all of them when an
    old one comes back.
    """

    def __init__(
        self, login: ProviderLogin, store: IdentityStore, sessions: Sessions, clock: ids.Clock = ids.now
    ) -> None:
        self._login = login
        self._store = store
        self._sessions = sessions
        self._clock = clock
        self._locks = KeyedLocks[tuple[str, str]]()

    async def of(self, actor: Actor) -> dict[str, Any] | None:
        """Return `{"access_token", "token_type", "id_token"?, "expires_at"?}`; None without a valid token."""
        session = None if actor.jti is None else await self._sessions.find(actor.jti)
        if session is None or session.user_id != actor.user_id or not session.origin.provider:
            return None
        person = (actor.user_id, session.origin.provider)
        tokens = await self._store.find_tokens(*person)
        if tokens.refresh_token and self._left(tokens) < REFRESH_SECONDS:
            async with self._locks.of(person):
                tokens = await self._refreshed(person)
        if not tokens.access_token or self._left(tokens) <= 0:
            return None
        given: dict[str, Any] = {"access_token": tokens.access_token, "token_type": "Bearer"}
        if tokens.id_token:
            given["id_token"] = tokens.id_token
        if tokens.expires_at:
            given["expires_at"] = tokens.expires_at
        return given

    async def _refreshed(self, person: tuple[str, str]) -> ProviderTokens:
        """Return the tokens after a refresh, or the present ones if it fails or was tried just now."""
        # Another call may have refreshed them while this one waited.
        tokens = await self._store.find_tokens(*person)
        if not tokens.refresh_token or self._left(tokens) >= REFRESH_SECONDS:
            return tokens
        now = self._clock()
        tried = ids.digest(f"refresh {person} {tokens.expires_at} {now // RETRY_SECONDS}")
        if not await self._store.use_once(tried, now + 2 * RETRY_SECONDS):
            return tokens
        try:
            fresh = await self._login.refresh(person[1], tokens.refresh_token)
        except GatewayError as error:
            told = {"provider": person[1], "reason": error.message}
            log.warning("provider token not refreshed", extra=told)
            return tokens
        await self._store.put_tokens(*person, fresh)
        return await self._store.find_tokens(*person)

    def _left(self, tokens: ProviderTokens) -> float:
        """Return the seconds for which an access token is valid; infinite if the provider does not tell."""
        if tokens.access_token and not tokens.expires_at:
            return float("inf")
        return tokens.expires_at - self._clock()
