"""Resolver of grantee names of the control protocol: e-mails, `group:NAME`, and `*` for everyone."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from gatewayd.accounts.groups import Groups
from gatewayd.accounts.records import User
from gatewayd.accounts.users import Users
from gatewayd.catalog.records import EVERYBODY, Grant
from gatewayd.errors import ErrorKind, GatewayError

GROUP: Final = "group:"

Principal = tuple[str, str]
"""Type and id of the grantee of a grant."""


class GranteeFinder:
    """Resolver between names and ids of users and groups. A call looks each of them up once."""

    def __init__(self, users: Users, groups: Groups) -> None:
        self._users = users
        self._groups = groups

    async def owner(self, ref: str | None) -> User:
        """Return the account with this id or e-mail, the first administrator for None; not_configured without
        one."""
        if ref is not None:
            return await self._users.resolve(ref)
        primary = await self._users.find_primary()
        if primary is None:
            raise GatewayError(
                ErrorKind.NOT_CONFIGURED,
                "cannot choose an owner: there is no administrator yet, name a user or create the first one",
                param="user",
            )
        return primary

    async def grants(self, refs: Sequence[str], permission: str) -> tuple[Grant, ...]:
        """Return a grant for each of the names; not_found for an unknown name."""
        return tuple([Grant(*await self._principal(ref), permission) for ref in dict.fromkeys(refs)])

    async def emails(self, user_ids: Iterable[str]) -> Mapping[str, str]:
        """Return the e-mails of accounts by id, "" for deleted accounts."""
        found = {user_id: await self._users.find(user_id) for user_id in dict.fromkeys(user_ids)}
        return {user_id: "" if user is None else user.email for user_id, user in found.items()}

    async def names(self, grants: Iterable[Grant]) -> Mapping[Principal, str]:
        """Return the names of the grantees; a deleted one has its id as name."""
        wanted = dict.fromkeys((grant.principal_type, grant.principal_id) for grant in grants)
        return {(kind, name): await self._name(kind, name) for kind, name in wanted}

    async def _principal(self, ref: str) -> Principal:
        if ref == EVERYBODY:
            return "user", EVERYBODY
        if ref.startswith(GROUP):
            return "group", (await self._groups.resolve(ref.removeprefix(GROUP))).id
        return "user", (await self._users.resolve(ref)).id

    async def _name(self, kind: str, principal_id: str) -> str:
        if kind == "group":
            group = await self._groups.find(principal_id)
            return GROUP + (principal_id if group is None else group.name)
        if principal_id == EVERYBODY:
            return EVERYBODY
        user = await self._users.find(principal_id)
        return principal_id if user is None else user.email
