"""Links of accounts to providers, as their owners and operators see and remove them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from gatewayd.accounts.identity.interfaces import IdentityStore
from gatewayd.accounts.identity.provider_login import ProviderLogin
from gatewayd.accounts.identity.records import LinkedIdentity, ProviderTokens
from gatewayd.accounts.interfaces import UserStore
from gatewayd.accounts.records import User, UserChange
from gatewayd.accounts.texts import object_or_empty
from gatewayd.accounts.users import CHANGE_LOCK, Users
from gatewayd.errors import ErrorKind, GatewayError, not_found
from gatewayd.transactions import Transactor

HINT_CHARACTERS: Final = 4
LAST_WAY_IN: Final = "last_way_in"


@dataclass(frozen=True, slots=True)
class ProviderLink:
    """A provider and the link of an account to it; None if it has none."""

    provider: str
    label: str
    link: LinkedIdentity | None

    @property
    def subject_hint(self) -> str:
        """The end of the subject, to tell two persons apart."""
        return "" if self.link is None else f"…{self.link.subject[-HINT_CHARACTERS:]}"


@dataclass(frozen=True, slots=True)
class RemovedLink:
    """A link that was removed, and its last tokens."""

    link: LinkedIdentity
    tokens: ProviderTokens = field(repr=False)

    @property
    def person(self) -> str:
        """The person at the provider, for the audit."""
        return self.link.email or self.link.subject


class IdentityLinks:
    """Lists and removes links.

    `has_passwords` tells whether a password is a way in, `other_ways` has the names of those that are no
    identity provider, such as a directory.
    """

    def __init__(
        self,
        users: Users,
        user_store: UserStore,
        store: IdentityStore,
        transactor: Transactor,
        login: ProviderLogin,
        *,
        has_passwords: bool = True,
        other_ways: Collection[str] = (),
    ) -> None:
        self._users = users
        self._user_store = user_store
        self._store = store
        self._transactor = transactor
        self._login = login
        self._has_passwords = has_passwords
        self._other_ways = other_ways

    async def list(self, user_id: str) -> Sequence[ProviderLink]:
        """Return every configured provider, then the links to providers that are not configured any more."""
        links = {link.provider: link for link in await self._store.list(user_id)}
        shown = [
            ProviderLink(options.name, options.shown_label, links.pop(options.name, None))
            for options in self._login.providers
        ]
        return [*shown, *(ProviderLink(name, name, link) for name, link in links.items())]

    async def keep_tokens(self, user_id: str, provider: str, tokens: ProviderTokens) -> None:
        """Store the tokens of a sign-in, encrypted."""
        await self._store.put_tokens(user_id, provider, tokens)

    async def remove(self, user_id: str, provider: str, *, is_operator: bool = False) -> RemovedLink:
        """Remove a link with its tokens, and the names by which SCIM or a sign-in would find it again.

        The caller revokes the tokens, which are returned with the link, when the change is committed.
        Raises not_found without the link, conflict (`last_way_in`) for the last way in of a person; an
        operator may remove it.
        """
        async with self._transactor.exclusive(CHANGE_LOCK):
            user = await self._users.get(user_id)
            links = {link.provider: link for link in await self._store.list(user_id)}
            if provider not in links:
                raise not_found("identity", provider)
            if not is_operator and not await self._has_other_way(user, links, provider):
                raise GatewayError(
                    ErrorKind.CONFLICT,
                    f"cannot unlink {provider!r}: it is the last way to sign in; set a password, or link"
                    " another provider, first",
                    param="provider",
                    code=LAST_WAY_IN,
                )
            tokens = await self._store.find_tokens(user_id, provider)
            await self._store.remove(user_id, provider)
            await self._users.change(user_id, _without(user, links[provider]), None)
        return RemovedLink(links[provider], tokens)

    async def revoke(self, removed: RemovedLink) -> None:
        """Revoke the refresh token of a removed link at its provider, as far as that is possible."""
        await self._login.revoke(removed.link.provider, removed.tokens)

    async def _has_other_way(self, user: User, links: dict[str, LinkedIdentity], provider: str) -> bool:
        if self._has_passwords and await self._user_store.find_password_hash(user.id) is not None:
            return True
        usable = {*self._other_ways, *(options.name for options in self._login.providers)}
        return bool((links.keys() & usable) - {provider})


def _without(user: User, link: LinkedIdentity) -> UserChange:
    """Return the change without the subject, and without an external id that the sign-in has set."""
    oauth = {name: each for name, each in object_or_empty(user.oauth).items() if name != link.provider}
    scim = dict(object_or_empty(user.scim))
    is_own = object_or_empty(scim.get(link.provider)).get("external_id") == link.provisioning_id
    if is_own and link.provisioning_id and user.identity.user_name is None:
        del scim[link.provider]
    return UserChange(oauth=oauth, scim=scim)
