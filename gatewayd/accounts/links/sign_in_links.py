"""Sign-in links: an address that signs in to one account, once."""

from typing import Final

from gatewayd import ids
from gatewayd.accounts.links.records import LinkKind, OneTimeLink
from gatewayd.accounts.links.tokens import LinkTokens, new_token
from gatewayd.accounts.records import User
from gatewayd.accounts.users import Users
from gatewayd.errors import ErrorKind, GatewayError, invalid
from gatewayd.transactions import Transactor

LIFETIME_SECONDS: Final = 3600
MAX_LIFETIME_SECONDS: Final = 7 * 86_400


class SignInLinks:
    """Creates and uses sign-in links. An account has one at a time: a new one replaces it."""

    def __init__(self, tokens: LinkTokens, users: Users, transactor: Transactor) -> None:
        self._tokens = tokens
        self._users = users
        self._transactor = transactor

    async def create(
        self, user: User, by: str, lifetime_seconds: int = LIFETIME_SECONDS
    ) -> tuple[OneTimeLink, str]:
        """Return a new link of an account and its token, which is not stored; `by` is its creator.

        Raises invalid_request for a bad lifetime, forbidden for a deactivated account.
        """
        if not 0 < lifetime_seconds <= MAX_LIFETIME_SECONDS:
            raise invalid(
                f"cannot accept expires_in: expected 1 to {MAX_LIFETIME_SECONDS} seconds", param="expires_in"
            )
        _check_active(user)
        token, now = new_token(), self._tokens.now()
        link = OneTimeLink(
            id=ids.new_id(),
            digest=ids.digest(token),
            kind=LinkKind.SIGN_IN,
            created_by=by,
            created_at=now,
            expires_at=now + lifetime_seconds,
            user_id=user.id,
        )
        async with self._transactor.transaction():
            await self._tokens.revoke_of_user(user.id)
            await self._tokens.add(link, token)
        return link, token

    async def use(self, token: str) -> User:
        """Use a link up and return its account.

        Raises invalid_request for a token that does not work, or whose account was removed; forbidden for a
        deactivated account.
        """
        link = await self._tokens.find(LinkKind.SIGN_IN, token)
        async with self._transactor.transaction():
            await self._tokens.use(link)
            user = await self._users.find(link.user_id)
        if user is None:
            raise invalid("cannot use the link: its account was removed", param="token", code="invalid_link")
        _check_active(user)
        return user


def _check_active(user: User) -> None:
    if not user.active:
        raise GatewayError(
            ErrorKind.FORBIDDEN, "cannot sign in: the account is deactivated", code="deactivated"
        )
