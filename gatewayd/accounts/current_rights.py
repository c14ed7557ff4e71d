"""Current rights of an account, for a request that was authenticated some time ago."""

from dataclasses import replace

from gatewayd.accounts.interfaces import UserStore
from gatewayd.accounts.key_rules import KeyRules
from gatewayd.accounts.records import Actor, CredentialKind
from gatewayd.errors import ErrorKind, GatewayError


class CurrentRights:
    """Reads role, groups and permissions again after the body of a request, which may take minutes."""

    def __init__(self, users: UserStore, rules: KeyRules) -> None:
        self._users = users
        self._rules = rules

    async def of(self, actor: Actor) -> Actor:
        """Return the actor with the current rights of its account.

        An actor of the control socket keeps every right. Raises unauthenticated if the account was removed,
        deactivated or made pending.
        """
        if actor.kind is CredentialKind.CONTROL:
            return actor
        user = await self._users.find(actor.user_id)
        if user is None or not user.is_verified:
            raise GatewayError(
                ErrorKind.UNAUTHENTICATED,
                "cannot continue the request: the account was deactivated, removed or made pending",
            )
        rights = await self._rules.rights(user)
        return replace(actor, user=user, group_ids=rights.group_ids, permissions=rights.permissions)
