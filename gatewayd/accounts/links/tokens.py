"""Issue and use of links that work once."""

from collections.abc import Sequence
from typing import Final

from gatewayd import ids
from gatewayd.accounts.links.interfaces import OneTimeLinkStore
from gatewayd.accounts.links.records import LinkKind, OneTimeLink
from gatewayd.errors import ErrorKind, GatewayError, invalid, not_found

MAX_OPEN_LINKS: Final = 10_000
"""Maximum number of unused links of one kind."""

TOKEN_BYTES: Final = 32
LEEWAY_SECONDS: Final = 86_400
"""Time after its expiry at which a link is deleted, in case the clock is set back."""


class LinkTokens:
    """Tokens of links: made, found and used up."""

    def __init__(
        self, store: OneTimeLinkStore, clock: ids.Clock = ids.now, prune_clock: ids.Clock | None = None
    ) -> None:
        self._store = store
        self._clock = clock
        self._prune_clock = prune_clock or ids.retention_clock()

    def now(self) -> int:
        """Return the time from which lifetimes count."""
        return self._clock()

    async def add(self, link: OneTimeLink, token: str) -> None:
        """Store a link for a token of `new_token`; raise conflict above `MAX_OPEN_LINKS`."""
        if link.digest != ids.digest(token):
            raise ValueError("the digest is not that of the token")
        if len(await self._store.list(link.kind, after=self._clock())) >= MAX_OPEN_LINKS:
            raise GatewayError(
                ErrorKind.CONFLICT, f"cannot make another link: {MAX_OPEN_LINKS} were not used yet"
            )
        await self._store.add(link)

    async def find(self, kind: LinkKind, token: str) -> OneTimeLink:
        """Return the link of a token.

        Raises invalid_request, the same for an unknown, a used, a revoked and an expired one.
        """
        link = await self._store.find_by_digest(ids.digest(token)) if is_token(token) else None
        if link is None or link.kind is not kind or link.expires_at <= self._clock():
            raise invalid_link_error()
        return link

    async def use(self, link: OneTimeLink) -> None:
        """Use a link up, in the transaction of what it is used for; raise as `find` if it is gone."""
        if not await self._store.remove(link.id):
            raise invalid_link_error()

    async def list(self, kind: LinkKind) -> Sequence[OneTimeLink]:
        """Return the valid links of a kind, oldest first."""
        return await self._store.list(kind, after=self._clock())

    async def revoke(self, kind: LinkKind, link_id: str) -> OneTimeLink:
        """Delete an unused link and return it; raise not_found without it."""
        link = await self._store.find(link_id)
        if link is None or link.kind is not kind or not await self._store.remove(link_id):
            raise not_found(kind.value, link_id)
        return link

    async def revoke_of_user(self, user_id: str) -> None:
        """Delete the sign-in links of an account."""
        await self._store.remove_of_user(user_id)

    async def prune(self) -> int:
        """Delete expired links; return how many."""
        return await self._store.prune(self._prune_clock() - LEEWAY_SECONDS)


def new_token() -> str:
    """Return a new token, of 256 random bits."""
    return ids.new_secret(TOKEN_BYTES)


def is_token(token: str) -> bool:
    """Tell whether a text has the length of a token, so that nothing longer is digested."""
    return len(token) == 2 * TOKEN_BYTES


def invalid_link_error() -> GatewayError:
    """Return the error for a link that does not work."""
    return invalid(
        "cannot use the link: it was used or revoked, or it has expired; ask for another one",
        param="token",
        code="invalid_link",
    )
