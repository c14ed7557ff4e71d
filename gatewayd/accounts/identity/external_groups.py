"""Memberships that follow from the groups of a provider."""

import logging
from collections.abc import Collection, Sequence

from gatewayd.accounts.groups import Groups
from gatewayd.accounts.identity.records import ExternalIdentity, GroupRules
from gatewayd.accounts.records import Group, MembershipSource, NewGroup, User
from gatewayd.accounts.texts import object_or_empty
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.text import casefold_nfc

log = logging.getLogger(__name__)


class ExternalGroups:
    """Applies the groups of an identity: memberships of other sources stay as they are."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    async def apply(self, user: User, identity: ExternalIdentity, rules: GroupRules) -> tuple[str, ...]:
        """Add and remove memberships with the source oauth; return `+name` and `-name` of those changed.

        Unknown groups (None) change nothing. A group is found by its external id at the provider, else by its
        name.
        """
        if not rules.is_managed or identity.groups is None:
            return ()
        unmanaged = {casefold_nfc(name) for name in rules.unmanaged}
        every = await self._groups.list()
        managed = [group for group in every if not unmanaged & _names(group, identity.provider)]
        wanted = await self._wanted(identity, rules, managed, unmanaged)
        changed = []
        for group in wanted:
            if await self._groups.add_members(group.id, [user.id], MembershipSource.OAUTH):
                changed.append(f"+{group.name}")
        wanted_ids = {group.id for group in wanted}
        present = {group.id for group in await self._groups.list(user.id)}
        for group in managed:
            if group.id not in present or group.id in wanted_ids:
                continue
            if await self._groups.remove_members(group.id, [user.id], MembershipSource.OAUTH):
                changed.append(f"-{group.name}")
        return tuple(changed)

    async def _wanted(
        self,
        identity: ExternalIdentity,
        rules: GroupRules,
        managed: Sequence[Group],
        unmanaged: Collection[str],
    ) -> Sequence[Group]:
        by_id = {found: group for group in managed if (found := _external_id(group, identity.provider))}
        by_name = {casefold_nfc(group.name): group for group in managed}
        wanted: dict[str, Group] = {}
        for name in dict.fromkeys(identity.groups or ()):
            key = casefold_nfc(name.strip())
            group = by_id.get(name) or by_name.get(key)
            if group is None and rules.may_create and key and key not in unmanaged:
                group = await self._create(name, rules)
            if group is not None:
                wanted[group.id] = by_name[key] = group
        return [*wanted.values()]

    async def _create(self, name: str, rules: GroupRules) -> Group | None:
        try:
            return await self._groups.create(NewGroup(name, data={"config": {"share": rules.share}}))
        except GatewayError as error:
            if error.kind not in {ErrorKind.INVALID_REQUEST, ErrorKind.CONFLICT}:
                raise
            log.warning("group of a provider not created: %s", error.message)
            return None


def _names(group: Group, provider: str) -> set[str]:
    return {casefold_nfc(group.name), casefold_nfc(_external_id(group, provider))} - {""}


def _external_id(group: Group, provider: str) -> str:
    found = object_or_empty(object_or_empty(group.scim).get(provider)).get("external_id")
    return found if isinstance(found, str) else ""
