"""Actors for the calls of plugins, and the rule that absent objects are None for them."""

from collections.abc import Awaitable
from dataclasses import replace
from typing import Final, TypeVar

from gatewayd.accounts.key_rules import KeyRules
from gatewayd.accounts.permissions import Permissions
from gatewayd.accounts.records import Actor, CredentialKind, Role, User
from gatewayd.accounts.users import Users
from gatewayd.errors import ErrorKind, GatewayError, not_found
from gatewayd.plugins.runtime.call_context import current_asker

NAME: Final = "plugins"

Found = TypeVar("Found")


class PluginActors:
    """Makes the actors of host calls: an account with its rights, or an unrestricted actor."""

    def __init__(self, users: Users, rules: KeyRules, permissions: Permissions) -> None:
        self._users = users
        self._rules = rules
        self._permissions = permissions

    async def of(self, user_id: str) -> Actor | None:
        """Return the account with its rights; None when it does not exist."""
        user = await self._users.find(user_id)
        if user is None:
            return None
        rights = await self._rules.rights(user)
        return Actor(user, CredentialKind.SESSION, rights.group_ids, rights.permissions)

    async def verified(self, user_id: str) -> Actor:
        """Return the account with its rights; not_found when absent, forbidden when inactive."""
        return _checked(await self.of(user_id), user_id)

    async def find_reader(self, user_id: str) -> Actor | None:
        """Return the account with its rights, or the operator at the control socket; None without either.

        The operator has no account and is found only inside a call that the operator made. Use `of` or
        `verified` for writes, since stored objects need an account as owner.
        """
        actor = await self.of(user_id)
        if actor is not None:
            return actor
        caller = current_asker.get()
        is_operator = (
            caller is not None and caller.kind is CredentialKind.CONTROL and caller.user_id == user_id
        )
        return caller if is_operator else None

    async def reader(self, user_id: str) -> Actor:
        """Return the actor of `find_reader`; raises not_found and forbidden as `verified` does."""
        return _checked(await self.find_reader(user_id), user_id)

    async def owner(self, user_id: str) -> Actor | None:
        """Return the account with every permission; None when it does not exist.

        A plugin changes objects of the account without its restrictions. The actor still reaches only what
        the account owns.
        """
        actor = await self.of(user_id)
        if actor is None:
            return None
        every = self._permissions.effective_permissions(replace(actor.user, role=Role.ADMIN), ())
        return replace(actor, permissions=every)

    def unrestricted(self) -> Actor:
        """Return an actor that may read and change everything, for calls that name no user."""
        user = User(id=f"host:{NAME}", email="", name=NAME, role=Role.ADMIN)
        return Actor(user, CredentialKind.CONTROL, (), self._permissions.effective_permissions(user, ()))


async def none_if_not_found(work: Awaitable[Found]) -> Found | None:
    """Return the result of `work`; None when it raises not_found. Other errors are raised."""
    try:
        return await work
    except GatewayError as error:
        if error.kind is not ErrorKind.NOT_FOUND:
            raise
        return None


def _checked(actor: Actor | None, user_id: str) -> Actor:
    if actor is None:
        raise not_found("user", user_id)
    if not actor.is_verified:
        raise GatewayError(
            ErrorKind.FORBIDDEN, f"cannot act for user {user_id!r}: the account is pending or deactivated"
        )
    return actor
