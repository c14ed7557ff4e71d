"""Groups and who is in them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from tortoise.functions import Count
from tortoise.queryset import QuerySet
from tortoise.transactions import in_transaction

from gatewayd.accounts.records import Group, User
from gatewayd.storage.failures import translated
from gatewayd.storage.rows import GroupRow, MembershipRow, UserRow
from gatewayd.storage.users import fold, record_of

TAKEN: Final = "the name is taken"
BATCH: Final = 500


class TortoiseGroups:
    """Implements `accounts.interfaces.GroupStore`."""

    async def add(self, group: Group) -> None:
        """Insert a group; conflict when the id or the name (any case) is taken."""
        async with translated(f"add group {group.name!r}", TAKEN):
            await GroupRow(**_columns(group)).save(force_create=True)

    async def find(self, group_id: str) -> Group | None:
        """Return the group with its member count."""
        async with translated("read a group"):
            row = await _counted(GroupRow.filter(id=group_id)).first()
        return None if row is None else _record_of(row)

    async def find_by_name(self, name: str) -> Group | None:
        """Return the group with this name, in any case."""
        async with translated("read a group"):
            row = await _counted(GroupRow.filter(name_key=fold(name))).first()
        return None if row is None else _record_of(row)

    async def list(self, *, user_id: str | None = None) -> Sequence[Group]:
        """Return all groups, or those of one user, by name."""
        async with translated("list groups"):
            wanted = GroupRow.all()
            if user_id is not None:
                mine = await MembershipRow.filter(user_id=user_id).values_list("group_id", flat=True)
                if not mine:
                    return []
                wanted = GroupRow.filter(id__in=[str(group_id) for group_id in mine])
            rows = await _counted(wanted).order_by("name_key")
        return [_record_of(row) for row in rows]

    async def change(self, group: Group) -> bool:
        """Write every field; conflict when the name is taken."""
        columns = _columns(group)
        del columns["id"]
        async with translated(f"change group {group.name!r}", TAKEN):
            return await GroupRow.filter(id=group.id).update(**columns) > 0

    async def remove(self, group_id: str) -> bool:
        """Delete a group; its memberships go along."""
        async with translated("remove a group"):
            return await GroupRow.filter(id=group_id).delete() > 0

    async def list_members(self, group_id: str) -> Sequence[User]:
        """Return the members by name."""
        async with translated("list members"):
            rows = await UserRow.filter(memberships__group_id=group_id).order_by("name", "id")
        return [record_of(row) for row in rows]

    async def list_group_ids(self, user_ids: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Return the group ids of each of the users, one query for each five hundred users."""
        found: dict[str, list[str]] = {}
        async with translated("list memberships"):
            for batch in _batches(user_ids):
                pairs = await (
                    MembershipRow.filter(user_id__in=batch).order_by("id").values_list("user_id", "group_id")
                )
                for user_id, group_id in pairs:
                    found.setdefault(str(user_id), []).append(str(group_id))
        return found

    async def add_members(self, group_id: str, user_ids: Sequence[str], *, source: str, at: int) -> int:
        """Add the existing users who are no members yet; return how many."""
        added = 0
        async with translated("add members", "a member was added at the same time"), in_transaction():
            for batch in _batches(list(dict.fromkeys(user_ids))):
                known = {row.id for row in await UserRow.filter(id__in=batch).only("id")}
                members = MembershipRow.filter(group_id=group_id, user_id__in=batch)
                known -= {str(user_id) for user_id in await members.values_list("user_id", flat=True)}
                rows = [
                    MembershipRow(group_id=group_id, user_id=user_id, source=source, created_at=at)
                    for user_id in batch
                    if user_id in known
                ]
                if rows:
                    await MembershipRow.bulk_create(rows)
                added += len(rows)
        return added

    async def remove_members(self, group_id: str, user_ids: Sequence[str]) -> int:
        """Remove members; return how many there were."""
        removed = 0
        async with translated("remove members"), in_transaction():
            for batch in _batches(user_ids):
                removed += await MembershipRow.filter(group_id=group_id, user_id__in=batch).delete()
        return removed


def _batches(values: Sequence[str]) -> list[Sequence[str]]:
    return [values[start : start + BATCH] for start in range(0, len(values), BATCH)]


def _counted(rows: QuerySet[GroupRow]) -> QuerySet[GroupRow]:
    return rows.annotate(members=Count("memberships"))


def _columns(group: Group) -> dict[str, Any]:
    columns = asdict(group)
    del columns["member_count"]
    return {**columns, "name_key": fold(group.name)}


def _record_of(row: Any) -> Group:
    return Group(
        id=row.id,
        name=row.name,
        description=row.description,
        user_id=row.user_id,
        permissions=row.permissions or {},
        data=row.data or {},
        meta=row.meta or {},
        member_count=row.members,
        updated_at=row.updated_at,
        created_at=row.created_at,
    )
