"""In whose name plugins ask."""

from dataclasses import replace
from typing import Final

from gatewayd.accounts.key_rules import KeyRules
from gatewayd.accounts.permissions import Permissions
from gatewayd.accounts.records import Actor, CredentialKind, Role, User
from gatewayd.accounts.users import Users
from gatewayd.errors import ErrorKind, GatewayError, not_found
from gatewayd.plugins.runtime.call_context import current_asker

NAME: Final = "plugins"


class PluginActors:
    """Makes actors: accounts with the rights that they have, and what plugins do by themselves."""

    def __init__(self, users: Users, rules: KeyRules, permissions: Permissions) -> None:
        self._users = users
        self._rules = rules
        self._permissions = permissions

    async def of(self, user_id: str) -> Actor | None:
        """Return an account with its rights, None when there is none."""
        user = await self._users.find(user_id)
        if user is None:
            return None
        rights = await self._rules.rights(user)
        return Actor(user, CredentialKind.SESSION, rights.group_ids, rights.permissions)

    async def verified(self, user_id: str) -> Actor:
        """Return an account that may act; not_found without one, forbidden when it is not active."""
        return _checked(await self.of(user_id), user_id)

    async def find_reader(self, user_id: str) -> Actor | None:
        """Return an account with its rights, or the operator at the control socket, who has none.

        The operator is known to a plugin by the call that it serves, for nobody else. What is kept needs an
        account as its owner: `of` and `verified` are for that.
        """
        actor = await self.of(user_id)
        if actor is not None:
            return actor
        now = current_asker.get()
        is_operator = now is not None and now.kind is CredentialKind.CONTROL and now.user_id == user_id
        return now if is_operator else None

    async def reader(self, user_id: str) -> Actor:
        """Return who may read, the operator among them; not_found and forbidden as `verified`."""
        return _checked(await self.find_reader(user_id), user_id)

    async def owner(self, user_id: str) -> Actor | None:
        """Return an account with every permission: what plugins do with its things is not the user's doing.

        It is bound to what is the account's own as before.
        """
        actor = await self.of(user_id)
        if actor is None:
            return None
        every = self._permissions.effective_permissions(replace(actor.user, role=Role.ADMIN), ())
        return replace(actor, permissions=every)

    def everybody(self) -> Actor:
        """Return who may read and change everything: for reads and writes that name no user."""
        user = User(id=f"host:{NAME}", email="", name=NAME, role=Role.ADMIN)
        return Actor(user, CredentialKind.CONTROL, (), self._permissions.effective_permissions(user, ()))


def _checked(actor: Actor | None, user_id: str) -> Actor:
    if actor is None:
        raise not_found("user", user_id)
    if not actor.is_verified:
        raise GatewayError(
            ErrorKind.FORBIDDEN, f"cannot act for user {user_id!r}: the account is pending or deactivated"
        )
    return actor
