"""Manual links of users and groups to their external ids and OAuth subjects at a provider.

See gatewayd-scim(7), External ids.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from gatewayd.accounts import groups as group_service
from gatewayd.accounts import users as user_service
from gatewayd.accounts.groups import Groups
from gatewayd.accounts.identity.interfaces import IdentityStore
from gatewayd.accounts.records import Group, GroupChange, User, UserChange
from gatewayd.accounts.texts import clean, object_or_empty
from gatewayd.accounts.users import Users
from gatewayd.errors import ErrorKind, GatewayError, invalid
from gatewayd.scim.external_ids import EXTERNAL_ID
from gatewayd.scim.filters.conditions import CompareCondition, Operator
from gatewayd.scim.interfaces import ScimDirectory
from gatewayd.scim.records import ResourceQuery
from gatewayd.scim.values import MAX_EXTERNAL_ID_CHARACTERS
from gatewayd.transactions import Transactor

LinkStore = Mapping[str, Any]
"""Data of providers, keyed by provider name, as in `User.scim` and `User.oauth`."""

EXTERNAL_ID_FIELD: Final = "external_id"
SUBJECT_FIELD: Final = "sub"


@dataclass(frozen=True, slots=True)
class LinkChange:
    """Link to set: None leaves a field unchanged, an empty text removes it.

    A `provider` of None is the configured one.
    """

    external_id: str | None = None
    subject: str | None = None
    provider: str | None = None


class ProviderLinks:
    """Links accounts and groups to their ids at a provider; `provider` is the configured one, "" for none.

    Errors: conflict with the code `taken` that names the owner, not_configured without a provider,
    invalid_request naming the field, not_found.
    """

    def __init__(
        self,
        users: Users,
        groups: Groups,
        directory: ScimDirectory,
        identities: IdentityStore,
        transactor: Transactor,
        provider: str,
    ) -> None:
        self._users = users
        self._groups = groups
        self._directory = directory
        self._identities = identities
        self._transactor = transactor
        self._provider = provider

    async def link_user(self, user_id: str, link: LinkChange) -> User:
        """Set the external id, the subject or both of an account and return it.

        Another subject, or none, also removes the link of the sign-ins by the former one.
        """
        link = self._checked(link)
        provider = link.provider or ""
        async with self._transactor.exclusive(user_service.CHANGE_LOCK):
            user = await self._users.get(user_id)
            await self._check_user(user, link.external_id, provider, by_subject=False)
            await self._check_user(user, link.subject, provider, by_subject=True)
            if link.subject is not None:
                await self._remove_identity(user_id, provider, link.subject)
            change = UserChange(
                scim=_changed(user.scim, provider, EXTERNAL_ID_FIELD, link.external_id),
                oauth=_changed(user.oauth, provider, SUBJECT_FIELD, link.subject),
            )
            return await self._users.change(user_id, change, None)

    async def link_group(self, group_id: str, link: LinkChange) -> Group:
        """Set the external id of a group and return it."""
        if link.subject is not None:
            raise invalid("cannot link the group to an OAuth subject: groups have none", param="subject")
        link = self._checked(link)
        provider = link.provider or ""
        async with self._transactor.exclusive(group_service.CHANGE_LOCK):
            group = await self._groups.get(group_id)
            await self._check_group(group, link.external_id, provider)
            change = GroupChange(scim=_changed(group.scim, provider, EXTERNAL_ID_FIELD, link.external_id))
            return await self._groups.change(group_id, change)

    async def _remove_identity(self, user_id: str, provider: str, subject: str) -> None:
        for found in await self._identities.list(user_id):
            if found.provider == provider and found.subject != subject:
                await self._identities.remove(user_id, provider)

    def _checked(self, link: LinkChange) -> LinkChange:
        if link.external_id is None and link.subject is None:
            raise invalid(
                "cannot link: neither an external id nor a subject was given", param=EXTERNAL_ID_FIELD
            )
        provider = self._provider if link.provider is None else clean(link.provider, "provider")
        if not provider:
            raise GatewayError(
                ErrorKind.NOT_CONFIGURED,
                "cannot link: SCIM_AUTH_PROVIDER is not set, so name the provider",
                param="provider",
            )
        return replace(
            link,
            external_id=_clean(link.external_id, EXTERNAL_ID_FIELD),
            subject=_clean(link.subject, "oauth_subject"),
            provider=provider,
        )

    async def _check_user(self, user: User, value: str | None, provider: str, *, by_subject: bool) -> None:
        if not value:
            return
        what = "OAuth subject" if by_subject else "external id"
        query = replace(_query(value, provider), by_subject=by_subject)
        for owner in (await self._directory.list_users(query)).items:
            if owner.id != user.id:
                raise _taken(what, value, provider, f"user {owner.email!r}")

    async def _check_group(self, group: Group, value: str | None, provider: str) -> None:
        if not value:
            return
        for owner in (await self._directory.list_groups(_query(value, provider))).items:
            if owner.id != group.id:
                raise _taken("external id", value, provider, f"group {owner.name!r}")


def read_links(store: LinkStore | None, field: str) -> dict[str, str]:
    """Return provider -> value of a field of a store, `EXTERNAL_ID_FIELD` or `SUBJECT_FIELD`."""
    found = {name: object_or_empty(entry).get(field) for name, entry in object_or_empty(store).items()}
    return {name: value for name, value in found.items() if isinstance(value, str) and value}


def _changed(store: LinkStore | None, provider: str, field: str, value: str | None) -> dict[str, Any] | None:
    if value is None:
        return None
    present = dict(object_or_empty(store))
    entry = object_or_empty(present.pop(provider, None))
    kept = {key: each for key, each in entry.items() if key != field}
    if value:
        kept[field] = value
    return {**present, provider: kept} if kept else present


def _query(value: str, provider: str) -> ResourceQuery:
    return ResourceQuery(
        condition=CompareCondition(EXTERNAL_ID, Operator.EQ, value), provider=provider, limit=1
    )


def _clean(value: str | None, name: str) -> str | None:
    # Only an empty text removes the link; a blank one is an error.
    return value if not value else clean(value, name, longest=MAX_EXTERNAL_ID_CHARACTERS)


def _taken(what: str, value: str, provider: str, owner: str) -> GatewayError:
    return GatewayError(
        ErrorKind.CONFLICT,
        f"cannot link: the {what} {value!r} of {provider!r} belongs to {owner}",
        code="taken",
    )
