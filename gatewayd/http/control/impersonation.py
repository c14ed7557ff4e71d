"""Actors of requests on the control socket: the operator, or an account by name."""

from gatewayd.accounts.key_rules import KeyRules
from gatewayd.accounts.permissions import Permissions
from gatewayd.accounts.records import Actor, CredentialKind, Role, User
from gatewayd.accounts.users import Users
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.control.peer import SocketPeer


class ControlActors:
    """Factory of actors: the operator with all permissions, or an account with its own ones."""

    def __init__(self, users: Users, rules: KeyRules, permissions: Permissions) -> None:
        self._users = users
        self._rules = rules
        self._permissions = permissions

    def operator(self, peer: SocketPeer) -> Actor:
        """Return the unix user of the peer as an administrator without an account."""
        user = User(id=f"control:{peer.name}", email="", name=peer.name, role=Role.ADMIN)
        return Actor(user, CredentialKind.CONTROL, (), self._permissions.effective_permissions(user, ()))

    async def account(self, ref: str) -> Actor:
        """Return an account by id or e-mail; forbidden when it is pending or deactivated."""
        user = await self._users.resolve(ref)
        rights = await self._rules.rights(user)
        actor = Actor(user, CredentialKind.CONTROL, rights.group_ids, rights.permissions)
        if not actor.is_verified:
            raise GatewayError(
                ErrorKind.FORBIDDEN, f"cannot act as {user.email!r}: the account is pending or deactivated"
            )
        return actor

    async def choose(self, ref: str | None, peer: SocketPeer) -> Actor:
        """Return the named account, or the operator for None."""
        return self.operator(peer) if ref is None else await self.account(ref)
