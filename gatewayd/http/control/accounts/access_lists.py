"""Access lists on the control socket: parser of grants in requests, and serializer."""

from collections.abc import Sequence
from dataclasses import replace

from gatewayctl.wire import models as wire
from gatewayd.accounts.groups import Groups
from gatewayd.accounts.users import Users
from gatewayd.catalog.records import EVERYBODY, Grant
from gatewayd.errors import invalid


class AccessLists:
    """Translator between grants and the names of users and groups."""

    def __init__(self, users: Users, groups: Groups) -> None:
        self._users = users
        self._groups = groups

    async def read(self, wanted: wire.Holders) -> tuple[Grant, ...]:
        """Return a grant for each named user and group; invalid_request without one, not_found for an unknown
        one."""
        blank = Grant(principal_type="user", principal_id=EVERYBODY, permission=wanted.permission)
        named = [replace(blank, principal_id=(await self._users.resolve(ref)).id) for ref in wanted.users]
        for ref in wanted.groups:
            group = await self._groups.resolve(ref)
            named.append(replace(blank, principal_type="group", principal_id=group.id))
        if wanted.everyone:
            named.append(blank)
        if not named:
            raise invalid("cannot change the access list: name users, groups or everyone", param="users")
        return tuple(dict.fromkeys(named))

    async def show(self, grants: Sequence[Grant]) -> list[wire.Grant]:
        """Return an access list with the names of its users and groups."""
        return [
            wire.Grant(
                principal_type=grant.principal_type,
                principal_id=grant.principal_id,
                principal=await self._name(grant),
                permission=grant.permission,
            )
            for grant in grants
        ]

    async def _name(self, grant: Grant) -> str:
        # A deleted user or group is shown by its id, so that its grant can still be revoked.
        if grant.principal_type == "group":
            group = await self._groups.find(grant.principal_id)
            return grant.principal_id if group is None else group.name
        if grant.principal_id == EVERYBODY:
            return EVERYBODY
        user = await self._users.find(grant.principal_id)
        return grant.principal_id if user is None else user.email


def combine_grants(
    before: Sequence[Grant], *, add: Sequence[Grant] = (), drop: Sequence[Grant] = ()
) -> tuple[Grant, ...]:
    """Return an access list with the grants of `add` and without those of `drop`."""
    kept = tuple(grant for grant in before if grant not in drop)
    return kept + tuple(grant for grant in add if grant not in kept)
