"""Group service: create, change and remove groups, and manage their members."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from gatewayd import ids
from gatewayd.accounts import permissions as trees
from gatewayd.accounts.change_notifier import AccountChange, AccountChangeNotifier
from gatewayd.accounts.interfaces import GroupStore
from gatewayd.accounts.records import EnsureOutcome, Group, GroupChange, MembershipSource, NewGroup
from gatewayd.accounts.texts import clean, clean_long, clean_object, is_plain
from gatewayd.errors import ErrorKind, GatewayError, not_found
from gatewayd.transactions import Transactor

MAX_DESCRIPTION: Final = 10_000
MAX_MEMBERS_AT_ONCE: Final = 10_000
MAX_ANNOUNCED_ONE_BY_ONE: Final = 100
"""Maximum number of users for a notification each; a change of more users is one notification for all."""

CHANGE_LOCK: Final = "groups"


class Groups:
    """The group service.

    Errors: invalid_request naming the field, conflict for a taken name (any case), not_found.
    """

    def __init__(
        self,
        groups: GroupStore,
        transactor: Transactor,
        changes: AccountChangeNotifier,
        clock: ids.Clock = ids.now,
    ) -> None:
        self._groups = groups
        self._transactor = transactor
        self._changes = changes
        self._clock = clock

    def check_new(self, new: NewGroup) -> Group:
        """Return the group that `create` adds; raise invalid_request naming the field of an invalid one."""
        now = self._clock()
        return Group(
            id=ids.new_id(),
            name=clean(new.name, "name"),
            description=clean_long(new.description, "description", longest=MAX_DESCRIPTION),
            user_id=new.user_id,
            permissions=trees.check(new.permissions),
            data=clean_object(new.data, "data"),
            meta=clean_object(new.meta, "meta"),
            scim=clean_object(new.scim, "scim") if new.scim else None,
            updated_at=now,
            created_at=now,
            modified_us=ids.now_us(),
        )

    async def create(self, new: NewGroup) -> Group:
        """Add a group without members."""
        group = self.check_new(new)
        await self._groups.add(group)
        return group

    async def get(self, group_id: str) -> Group:
        """Return a group; raise not_found without it."""
        group = await self._groups.find(group_id) if is_plain(group_id) else None
        if group is None:
            raise not_found("group", group_id)
        return group

    async def resolve(self, ref: str) -> Group:
        """Return the group with this id, else with this name; raise not_found without it."""
        group = None
        if is_plain(ref):
            group = await self._groups.find(ref) or await self._groups.find_by_name(ref.strip())
        if group is None:
            raise not_found("group", ref)
        return group

    async def find(self, group_id: str) -> Group | None:
        """Return a group, or None."""
        return await self._groups.find(group_id) if is_plain(group_id) else None

    async def list(self, user_id: str | None = None) -> Sequence[Group]:
        """Return all groups, or those of one user, sorted by name."""
        return await self._groups.list(user_id=user_id)

    async def change(self, group_id: str, change: GroupChange) -> Group:
        """Change a group and return it; the rights of its members change with it."""
        async with self._transactor.exclusive(CHANGE_LOCK):
            before = await self.get(group_id)
            group = _changed(before, change)
            if group == before:
                return before
            group = replace(group, updated_at=self._clock(), modified_us=ids.now_us())
            if not await self._groups.change(group):
                raise not_found("group", group_id)
        self._changes.publish(AccountChange(None))
        return group

    async def remove(self, group_id: str) -> None:
        """Delete a group; its members keep their accounts and lose its permissions."""
        if not is_plain(group_id) or not await self._groups.remove(group_id):
            raise not_found("group", group_id)
        self._changes.publish(AccountChange(None))

    async def count_members(
        self, groups: Sequence[Group], source: MembershipSource | None = None
    ) -> Mapping[str, int]:
        """Return the number of members that `source` (None: any source) added, by group id."""
        counts = await self._groups.count_members([group.id for group in groups], source=source)
        return {group.id: counts.get(group.id, 0) for group in groups}

    async def count_by_source(self, group_id: str) -> Mapping[MembershipSource, int]:
        """Return the number of members that each source added to the group."""
        return await self._groups.count_by_source(_plain(group_id))

    async def count_members_outside(self, group_id: str, group_ids: Sequence[str]) -> int:
        """Return the number of members that are in none of the other groups, without administrators."""
        return await self._groups.count_members_outside(_plain(group_id), group_ids)

    async def list_member_ids(self, group_id: str) -> Sequence[str]:
        """Return the ids of the members, sorted by name."""
        await self.get(group_id)
        return await self._groups.list_member_ids(group_id)

    async def list_sources(
        self, group_id: str, user_ids: Sequence[str]
    ) -> Mapping[str, Sequence[MembershipSource]]:
        """Return the sources of each membership, by user id; users who are not members are absent."""
        await self.get(group_id)
        return await self._groups.list_sources(group_id, user_ids)

    async def add_members(
        self,
        group_id: str,
        user_ids: Sequence[str],
        source: MembershipSource = MembershipSource.MANUAL,
        displays: Mapping[str, str] | None = None,
    ) -> int:
        """Add users, except unknown ones and those whom `source` already added; return how many.

        `displays` holds display names from the source, by user id; a member with a changed display name
        counts as added.
        """
        wanted = _checked_ids(user_ids)
        async with self._transactor.transaction():
            added = await self._add(group_id, wanted, source, displays)
            await self._touch(group_id, added)
        self._announce(wanted)
        return added

    async def set_members(
        self,
        group_id: str,
        user_ids: Sequence[str],
        source: MembershipSource,
        displays: Mapping[str, str] | None = None,
    ) -> tuple[int, int]:
        """Replace the members that `source` added by these users; return how many were added and removed.

        Members of other sources stay. `displays` is as in `add_members`.
        """
        wanted = _checked_ids(user_ids)
        async with self._transactor.transaction():
            added = await self._add(group_id, wanted, source, displays)
            removed = await self._groups.keep_members(group_id, wanted, source=source)
            await self._touch(group_id, added + removed)
        if added or removed:
            self._changes.publish(AccountChange(None))
        return added, removed

    async def remove_members(
        self, group_id: str, user_ids: Sequence[str], source: MembershipSource | None = None
    ) -> int:
        """Remove users that `source` (None: any source) added; return how many."""
        wanted = _checked_ids(user_ids)
        async with self._transactor.transaction():
            removed = await self._groups.remove_members(_plain(group_id), wanted, source=source)
            await self._touch(group_id, removed)
        self._announce(wanted)
        return removed

    async def ensure(self, new: NewGroup) -> tuple[Group, EnsureOutcome]:
        """Create or update the group with this name (any case), with the given description and permissions.

        Permissions override the present ones leaf by leaf; an empty field of `new` leaves the present value.
        """
        existing = await self._groups.find_by_name(clean(new.name, "name"))
        if existing is None:
            return await self.create(new), EnsureOutcome.CREATED
        wanted = trees.check(new.permissions)
        merged = trees.copy(existing.permissions)
        for section, leaves in wanted.items():
            merged[section] = {**merged.get(section, {}), **leaves}
        group = await self.change(
            existing.id, GroupChange(description=new.description or None, permissions=merged)
        )
        return group, EnsureOutcome.UNCHANGED if group == existing else EnsureOutcome.CHANGED

    async def _add(
        self,
        group_id: str,
        user_ids: Sequence[str],
        source: MembershipSource,
        displays: Mapping[str, str] | None,
    ) -> int:
        return await self._groups.add_members(
            _plain(group_id), user_ids, source=source, at=self._clock(), displays=displays
        )

    async def _touch(self, group_id: str, changed: int) -> None:
        if changed:
            await self._groups.touch(group_id, at=self._clock(), modified_us=ids.now_us())

    def _announce(self, user_ids: Sequence[str]) -> None:
        if len(user_ids) > MAX_ANNOUNCED_ONE_BY_ONE:
            self._changes.publish(AccountChange(None))
            return
        for user_id in user_ids:
            self._changes.publish(AccountChange(user_id))


def _changed(group: Group, change: GroupChange) -> Group:
    if change.name is not None:
        group = replace(group, name=clean(change.name, "name"))
    if change.description is not None:
        text = clean_long(change.description, "description", longest=MAX_DESCRIPTION)
        group = replace(group, description=text)
    if change.permissions is not None:
        group = replace(group, permissions=trees.check(change.permissions))
    if change.data is not None:
        group = replace(group, data=clean_object(change.data, "data"))
    if change.meta is not None:
        group = replace(group, meta=clean_object(change.meta, "meta"))
    if change.scim is not None:
        group = replace(group, scim=clean_object(change.scim, "scim") or None)
    return group


def _plain(group_id: str) -> str:
    if not is_plain(group_id):
        raise not_found("group", group_id)
    return group_id


def _checked_ids(user_ids: Sequence[str]) -> list[str]:
    if len(user_ids) > MAX_MEMBERS_AT_ONCE:
        raise GatewayError(
            ErrorKind.TOO_LARGE,
            f"cannot accept user_ids: more than {MAX_MEMBERS_AT_ONCE} at once",
            param="user_ids",
        )
    return [user_id for user_id in dict.fromkeys(user_ids) if is_plain(user_id)]
